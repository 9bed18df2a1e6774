"""Compare what logscope reads with what a person read in the same logs: `expected/` was written without the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logscope.frames import frame_rows
from logscope.model import Event, Launch
from logscope.packs import load_packs
from logscope.reading import Reading, read_launches
from logscope.units import GIB, NUMBER_UNITS, Quantity

FIXTURES = Path(__file__).parent / "fixtures"
LAUNCHES = sorted(path.parent.parent.name for path in FIXTURES.glob("*/expected/launch.json"))
MEMORY = sorted(path.parent.parent.name for path in FIXTURES.glob("*/expected/memory_lines.jsonl"))
PACKS = load_packs()


def read_case(case: str) -> Launch:
    launches = read_launches([str(FIXTURES / case / "launch.log")], Reading(PACKS))
    assert 1 == len(launches)
    return launches[0]


def expected_of(case: str) -> dict[str, object]:
    data: dict[str, object] = json.loads((FIXTURES / case / "expected/launch.json").read_text())
    return data


# where the pattern files call a value otherwise, so that it is not taken for what a phase took
OTHER_NAMES = {("init_torch_distributed.baseline", "mem_usage"): "drop", ("kv_cache.swa_pool", "mem_usage"): "total"}


def as_printed(event: Event, name: str) -> float | str | None:
    """Return a value of an event in the unit in which it was printed: torch names the unit of each of its numbers, here GiB."""
    declared = event.pattern.fields[OTHER_NAMES.get((event.pattern.id, name), name)]
    value = event.values.get(declared.result)
    if not isinstance(value, Quantity):
        return value if isinstance(value, str) else None
    scale = GIB if event.pattern.id == "failure.out_of_memory" else float(NUMBER_UNITS[declared.unit].scale)
    return value.value / scale


def test_the_hand_read_cases_are_all_here() -> None:
    assert 30 == len(LAUNCHES)
    assert 14 == len(MEMORY)


@pytest.mark.parametrize("case", MEMORY)
def test_every_memory_line_is_one_event_with_the_values_that_it_prints(case: str) -> None:
    launch = read_case(case)
    lines = [json.loads(line) for line in (FIXTURES / case / "expected/memory_lines.jsonl").read_text().splitlines()]
    assert len(lines) >= 4
    said = list(zip(launch.events, launch.workers, strict=True))
    for line in lines:
        found = [
            (event, worker)
            for event, worker in said
            if event.pos.line == line["line"] and event.pattern.said_by != "bar"
        ]
        assert [line["event"]] == [event.pattern.id for event, _ in found], f"{case}:{line['line']}"
        event, worker = found[0]
        assert line["worker"] == worker, f"{case}:{line['line']}"
        if line["rank"] is not None:  # the end of a traceback has no tag of its own
            assert line["rank"] == event.rank.tag
        for field, printed in line["values"].items():
            if printed is None:
                continue
            value = as_printed(event, field)
            if isinstance(printed, str):
                assert printed == value, f"{case}:{line['line']} {field}"
            else:
                assert isinstance(value, float)
                assert printed == pytest.approx(value, abs=1e-6), f"{case}:{line['line']} {field}"


@pytest.mark.parametrize("case", LAUNCHES)
def test_outcome_and_its_evidence_are_what_a_person_reads(case: str) -> None:
    launch, expected = read_case(case), expected_of(case)
    assert expected["outcome"] == launch.outcome.kind
    if expected["outcome_line"] is not None:
        assert expected["outcome_line"] == launch.outcome.evidence[0].line
    assert expected["ended"] == (launch.ended.kind if launch.ended else None)


@pytest.mark.parametrize("case", LAUNCHES)
def test_ranks_workers_and_arguments_are_what_a_person_reads(case: str) -> None:
    launch, expected = read_case(case), expected_of(case)
    assert expected["ranks"] == [rank.tag for rank in launch.ranks]
    workers = [worker for worker in ("target", "draft") if worker in launch.workers]
    assert expected["workers"] == workers
    arguments = expected["server_args"]
    assert isinstance(arguments, dict)
    assert arguments == {name: launch.args.values.get(name) for name in arguments}


@pytest.mark.parametrize("case", LAUNCHES)
def test_free_memory_of_every_rank_is_what_a_person_reads(case: str) -> None:
    launch, expected = read_case(case), expected_of(case)
    timeline = expected["timeline"]
    assert isinstance(timeline, dict)
    read: dict[str, list[list[object]]] = {tag: [] for tag in timeline}
    for row in frame_rows("timeline", launch, PACKS):
        is_phase = row["phase"] in ("load_weights", "memory_pool", "cuda_graph")
        if is_phase and row["edge"] != "point" and row["avail_mem_bytes"] is not None:
            assert isinstance(row["avail_mem_bytes"], int)
            free = round(row["avail_mem_bytes"] / GIB, 4)
            read[str(row["rank"])].append([row["worker"], row["phase"], row["edge"], free])
    assert timeline == read


@pytest.mark.parametrize("case", LAUNCHES)
def test_phases_of_the_first_rank_are_what_a_person_reads(case: str) -> None:
    launch, expected = read_case(case), expected_of(case)
    phases = expected["phases"]
    assert isinstance(phases, list)
    if not phases:
        return
    first = launch.ranks[0].tag
    read = [
        {
            "phase": row["phase"],
            "worker": row["worker"],
            "kind": row["kind"],
            "duration_s": row["duration_s"] if row["duration_from"] == "printed" else None,
            "begin_line": row["begin_line"],
            "end_line": row["end_line"],
        }
        for row in frame_rows("phases", launch, PACKS)
        if row["rank"] == first and row["phase"] in ("init_torch_distributed", "load_weights", "cuda_graph")
    ]
    assert phases == read
