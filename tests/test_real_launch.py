"""Logs of real SGLang servers read twice: by logscope, and in the simplest way there is (``real_launch.plain``).

The opt-in mark starts the servers (see docs/real_launches.md); without it the same comparison is made on the logs among the fixtures.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

import logscope
from conftest import FIXTURES
from logscope.units import GIB
from real_launch.cases import CASES, KEY_BYTES_PER_TOKEN, LIMIT, READY, Case
from real_launch.places import is_set_up, kept_place
from real_launch.plain import (
    Edge,
    Line,
    arguments_of,
    edges_of,
    lines_of,
    named_numbers_of,
    numbers_in,
    numbers_of,
    physical_lines,
)
from real_launch.server import Ran, run
from real_launch.setup import RELEASES

REAL_FIXTURES = sorted(log for log in FIXTURES.glob("*/launch.log") if re.match(r"\d", log.parent.name))

DONE = {"generate": "generate: 200"}
LAST_WORDS = {"stopped": r"^SIGTERM received\.", "failed": r"crashed with exit code -9|exit code 9"}
STATED = {
    "init_torch_distributed": (),
    "load_weights": ("avail_mem_bytes",),
    "kv_cache": ("tokens", "k_size_bytes", "v_size_bytes"),
    "memory_pool": ("avail_mem_bytes",),
    "cuda_graph": ("mem_usage_bytes", "elapsed_s"),
}


@dataclass(frozen=True, slots=True)
class ReadTwice:
    """One log, as logscope reads it and as its plain lines."""

    view: logscope.LaunchView
    lines: list[Line]
    physical: list[str]


def read_twice(log: Path) -> ReadTwice:
    launches = logscope.read(log, serving=True)
    assert 1 == len(launches)
    return ReadTwice(launches[0], lines_of(log.read_bytes()), physical_lines(log.read_bytes()))


# -- the comparison --------------------------------------------------------------------------------------------------------------


def lost_numbers(log: ReadTwice) -> list[str]:
    """Return the numbers of memory-bearing lines that logscope has no value for, each with its line."""
    values = log.view.frames.values
    lost = []
    for number, stated in numbers_of(log.lines).items():
        of_line = values[values["line"] == number]
        read = [float(value) for value in of_line["value"].dropna()]
        read += [value for text in of_line["text"].dropna() for value in numbers_in(text.replace("{", " "))]
        for value in stated:
            near = next((other for other in read if abs(other - value) <= _tolerance(value)), None)
            if near is None:
                lost.append(f"{number}: {value:g} of {log.physical[number - 1][:200]!r}")
            else:
                read.remove(near)
    return lost


def _tolerance(value: float) -> float:
    return 1.0 if abs(value) > 1e6 else 1e-6


def named_numbers(log: ReadTwice) -> Counter[tuple[int, str, float]]:
    """Return (line, field, value) of the values whose line and field the plain reading knows."""
    known = {(line, field) for line, field, _ in named_numbers_of(log.lines)}
    values = log.view.frames.values
    numbers = values[values["value"].notna()]
    rows = zip(numbers["line"].astype(int), numbers["field"], numbers["value"].astype(float), strict=True)
    return Counter(row for row in rows if row[:2] in known)


def edges(log: ReadTwice) -> list[Edge]:
    """Return where phases begin and end as logscope sees it."""
    phases = log.view.frames.phases
    spans = phases[phases["phase"] != "gap"].astype(object)
    return sorted(
        Edge(row["phase"], edge, row[f"{edge}_line"], row["rank"] or "", row[f"{edge}_time"])
        for row in spans.where(spans.notna(), None).to_dict("records")
        for edge in ("begin", "end")
        if row[f"{edge}_line"] is not None and (row["phase"], edge) != ("kv_cache", "begin")
    )


def assert_read_alike(log: ReadTwice, release: str) -> None:
    """Assert that logscope has every number, edge and argument that the plain reading has, and that the release fits."""
    launch = log.view.launch
    assert () == launch.drift
    assert [] == lost_numbers(log)
    assert named_numbers_of(log.lines) == named_numbers(log)
    assert edges_of(log.lines) == edges(log)
    arguments = arguments_of(log.lines)
    assert arguments == {name: launch.args.values.get(name) for name in arguments}
    assert len(log.physical) == launch.tally.lines == launch.tally.events + launch.tally.drift + launch.tally.rest
    since, until = launch.releases.since, launch.releases.until
    assert not launch.releases.empty
    assert since is None or Version(since) <= Version(release)
    assert until is None or Version(release) < Version(until)


def last_line(log: ReadTwice, regex: str) -> int:
    """Return the last line in which the regex is found."""
    return max(line.number for line in log.lines if re.search(regex, line.text))


# -- on the logs among the fixtures ----------------------------------------------------------------------------------------------


def test_there_are_logs_of_real_servers_among_the_fixtures() -> None:
    assert len(REAL_FIXTURES) >= 24


@pytest.mark.parametrize("log", REAL_FIXTURES, ids=lambda log: log.parent.name)
def test_a_fixture_is_read_as_a_plain_reading_has_it(log: Path) -> None:
    assert_read_alike(read_twice(log), re.split(r"-", log.parent.name)[0])


def test_the_comparison_sees_a_number_that_is_not_read() -> None:
    log = read_twice(FIXTURES / "0.5.23-ok" / "launch.log")
    changed = [
        Line(line.number, line.text.replace("V size: 7.53 GB", "V size: 7.54 GB"), line.time, line.tag)
        for line in log.lines
    ]
    other = ReadTwice(log.view, changed, log.physical)
    assert [] == lost_numbers(log)
    assert 1 == len(lost_numbers(other))
    assert named_numbers_of(changed) != named_numbers(log)


# -- on live servers -------------------------------------------------------------------------------------------------------------


@cache
def ran(release: str, name: str) -> tuple[Case, Ran]:
    """Run a case once, or take what the last run left."""
    case = next(case for case in CASES if case.name == name)
    kept = kept_place(release, name)
    if os.environ.get("LOGSCOPE_REAL_LAUNCH_KEPT") and kept.is_file():
        found = json.loads(kept.read_text(encoding="utf-8"))
        return case, Ran(**found | {"log": Path(found["log"])})
    server = run(release, case)
    kept.write_text(json.dumps(asdict(server), default=str, indent=1) + "\n", encoding="utf-8")
    return case, server


def live(release: str, name: str) -> tuple[Case, Ran]:
    if not is_set_up(release):
        pytest.skip(f"SGLang {release} is not set up: python -m tests.real_launch.setup {release}")
    return ran(release, name)


@pytest.mark.real_launch
@pytest.mark.parametrize("name", [case.name for case in CASES])
@pytest.mark.parametrize("release", RELEASES)
class TestLive:
    """One server per release and case; the tests of a case share it."""

    def test_the_server_did_what_the_case_is_about(self, release: str, name: str) -> None:
        case, server = live(release, name)
        assert server.reached, f"see {server.log}"
        assert [DONE.get(action, action) for action in case.then] == [*server.done]

    def test_the_log_is_read_as_a_plain_reading_has_it(self, release: str, name: str) -> None:
        case, server = live(release, name)
        log = read_twice(server.log)
        assert_read_alike(log, release)
        stated = {field for _, field, _ in named_numbers(log)}
        assert set() == {field for phase in case.complete for field in STATED[phase]} - stated
        assert "max_total_num_tokens" in stated or case.outcome != "ready"

    def test_the_outcome_is_the_one_that_was_caused(self, release: str, name: str) -> None:
        case, server = live(release, name)
        log = read_twice(server.log)
        assert case.outcome == log.view.outcome
        ended = None if release in case.unseen_end else case.ended
        assert ended == log.view.ended
        evidence = [place.line for place in log.view.launch.outcome.evidence]
        if case.cause:
            assert [last_line(log, case.cause)] == evidence
            assert re.search(case.cause, log.view.launch.outcome.reason or "")
        else:
            assert [last_line(log, re.escape(READY))] == evidence
        if ended:
            assert log.view.launch.ended
            assert re.search(LAST_WORDS[ended], log.view.launch.ended.reason or "")

    def test_the_numbers_are_those_that_flags_and_model_give(self, release: str, name: str) -> None:
        case, server = live(release, name)
        if case.args[: len(LIMIT)] != LIMIT or "kv_cache" not in case.complete:
            pytest.skip("the flags do not say how many tokens there are")
        values = read_twice(server.log).view.frames.values
        read = {field: set(values[values["field"] == field]["value"]) for field in values["field"].unique()}
        tokens = int(LIMIT[1])
        assert {tokens} == read["tokens"] == read["max_total_num_tokens"]
        ranks = 2 if "--tp" in case.args else 1
        assert read["k_size_bytes"] == read["v_size_bytes"]
        [key_bytes] = read["k_size_bytes"]
        assert tokens * KEY_BYTES_PER_TOKEN / ranks == pytest.approx(key_bytes, abs=GIB / 100)

    def test_the_phases_are_those_that_were_reached(self, release: str, name: str) -> None:
        case, server = live(release, name)
        view = read_twice(server.log).view
        spans = view.frames.phases[view.frames.phases["phase"] != "gap"]
        complete = set(spans[~spans["open"]]["phase"])
        begun = set(spans[spans["open"]]["phase"])
        assert {*case.complete} == complete
        assert {*case.begun} == begun
        if "--tp" in case.args:
            assert ["TP0", "TP1"] == [rank.tag for rank in view.ranks]
