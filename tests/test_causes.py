"""Root causes of failed launches: short logs with the wordings of many releases, near misses, and the fixtures."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from conftest import CASES as FIXTURES
from conftest import ReadText
from logscope import causes
from logscope.budget import since
from logscope.causes import LAST, ORDER, Diagnosis, diagnose, failed_at
from logscope.events import Recogniser
from logscope.model import Launch
from logscope.packs import Packs, load_packs
from logscope.reading import Reading, read_launches
from logscope.sizing import size_up
from logscope.words import after_text

FOLDER = Path(__file__).parent / "causes"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
KNOWN = {*ORDER, LAST}

# By reading the logs: case -> (cause, direction, the line that says why, what the sentence and the remedy hold).
OF_FIXTURES: dict[str, tuple[str, str | None, int, list[str]]] = {
    "0.4.10.post2-notenough-memfrac": ("not_enough_memory", "raise", 62, ["0.002 is the least that starts"]),
    "0.4.10.post2-tp2": ("environment", None, 53, ["2 ranks, 1 NUMA node", "--tp-size 1"]),
    "0.5.18-new-fakecuda-notenough": (
        "weights_leave_no_memory", "raise", 46, ["SGLang's minimum is 0.0725", "the same", "0.073 is the least"],
    ),
    "0.5.23-fakecuda-notenough": (
        "weights_leave_no_memory", "raise", 52, ["SGLang's minimum is 0.8155", "the same", "0.816 is the least"],
    ),
    "0.5.23-kill9-scheduler": ("cause_not_in_log", None, 67, ["process scheduler_0 died, exit code -9", "dmesg"]),
    "0.5.23-port-in-use": ("port_in_use", None, 58, ["port 30555 (--port) is in use", "may live on"]),
    "0.5.23-unknown-flag": ("bad_argument", None, 478, ["unrecognized arguments: --no-such-flag 3"]),
    "0.5.9-fakecuda-graph-oom": (
        "oom_graph_capture", "lower", 51,
        ["the decode graph for batch size 32 (4 of 12 sizes done): 2.54 GiB asked, 2.44 GiB free of 95.58",
         "--cuda-graph-max-bs 8", "from 0.867 to 0.67"],
    ),
    "0.5.9-fakecuda-imbalance": ("memory_unbalanced", None, 42, ["TP0 has 94.98 GiB, 45.00 GiB more", "TP1, which says nothing of it"]),
    "0.5.9-fakecuda-notenough": ("not_enough_memory", "raise", 51, ["the budget is -29.97 GiB", "0.816 is the least"]),
    "0.5.9-truncated": ("weights_io", None, 87, ["incomplete metadata, file not fully covered"]),
    "baseline_debug_nocar": ("not_enough_memory", "raise", 65, ["under mem_fraction_static 0.55", "0.770 is the least"]),
    "car": ("not_enough_memory", "raise", 49, ["the budget is -20.61 GiB per rank", "0.770 is the least"]),
    "car_050": ("not_enough_memory", "raise", 49, ["the budget is -25.31 GiB per rank", "0.770 is the least"]),
    "car_debug": ("not_enough_memory", "raise", 57, ["the budget is -20.61 GiB per rank", "0.770 is the least"]),
}  # fmt: skip

CUSTOM = """
[phase]
id = "failure"

[[event]]
id = "failure.licence"
means = "the licence server said no"
contains = "no licence: "
ends = "failed"
cause = "licence_refused"

  [[event.form]]
  regex = '''^(?:[\\w.]+: )?no licence: .*'''

    [[event.form.sample]]
    line = "RuntimeError: no licence: seats"
    want = {}
"""


def cause_of(launch: Launch, packs: Packs) -> Diagnosis | None:
    return diagnose(launch, packs, size_up(launch))


def launch_of(name: str, read_text: ReadText) -> Launch:
    (launch,) = read_text((FOLDER / f"{name}.log").read_bytes(), name=f"{name}.log")
    return launch


def test_the_suite_finds_its_cases() -> None:
    assert {log.stem for log in FOLDER.glob("*.log")} == set(EXPECTED)
    assert len(EXPECTED) >= 45
    assert KNOWN - {case["cause"] for case in EXPECTED.values()} == set(), "every cause has a case"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_is_of_the_release_that_its_name_says(name: str, read_text: ReadText) -> None:
    releases, found = launch_of(name, read_text).releases, re.search(r"\d+\.\d+\.\d+", name)
    assert not releases.empty
    if found:
        assert releases.since is None or since(found[0], releases.since)
        assert releases.until is None or not since(found[0], releases.until)


@pytest.mark.parametrize("name", [name for name, case in EXPECTED.items() if case["cause"]])
def test_a_failure_has_its_cause(name: str, read_text: ReadText, packs: Packs) -> None:
    case, launch = EXPECTED[name], launch_of(name, read_text)
    found, place = cause_of(launch, packs), failed_at(launch)
    assert found is not None
    assert place is not None
    assert (case["cause"], case["line"]) == (found.cause, place.line), found.sentence
    assert case.get("direction") == found.direction, found.remedy
    for text in case.get("says", []):
        assert text in found.sentence
    for text in case.get("remedy", []):
        assert text in found.remedy
    for text in case.get("unsaid", []):
        assert text not in f"{found.sentence} {found.remedy}"
    assert sorted(case.get("findings", [])) == sorted(finding.id for finding in found.findings)


@pytest.mark.parametrize("name", [name for name, case in EXPECTED.items() if case["cause"]])
def test_sentences_read_as_fragments_and_places_are_of_the_log(name: str, read_text: ReadText, packs: Packs) -> None:
    launch = launch_of(name, read_text)
    found = cause_of(launch, packs)
    assert found is not None
    assert not found.sentence.endswith(".")
    assert "  " not in f"{found.sentence}{found.remedy}"
    assert not found.remedy or (found.remedy[0].isupper() or found.remedy[0] == "`"), found.remedy
    assert not found.remedy or found.remedy[-1] in ".?", found.remedy
    assert all(finding.sentence.endswith(".") and finding.evidence for finding in found.findings)
    places = {event.pos for event in launch.events}
    assert {*found.evidence, *(pos for finding in found.findings for pos in finding.evidence)} <= places
    assert len(found.evidence) == len(set(found.evidence))


@pytest.mark.parametrize("name", [name for name, case in EXPECTED.items() if not case["cause"]])
def test_what_is_survived_or_stopped_has_no_cause(name: str, read_text: ReadText, packs: Packs) -> None:
    assert cause_of(launch_of(name, read_text), packs) is None


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_have_the_cause_that_their_reader_saw(
    name: str, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    launch = fixture_launches[name]
    found, place = cause_of(launch, packs), failed_at(launch)
    if name not in OF_FIXTURES:
        assert found is None
        return
    cause, direction, line, texts = OF_FIXTURES[name]
    assert found is not None
    assert place is not None
    assert (cause, direction, line) == (found.cause, found.direction, place.line)
    for text in texts:
        assert text in f"{found.sentence} {found.remedy}"


def test_all_failed_fixtures_are_read(fixture_launches: dict[str, Launch]) -> None:
    failed = {name for name, launch in fixture_launches.items() if failed_at(launch) is not None}
    assert failed == set(OF_FIXTURES)


def test_every_cause_is_a_module_of_its_name() -> None:
    folder = Path(causes.__file__).parent
    assert KNOWN == {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert [*ORDER, LAST] == [import_module(f"logscope.causes.{name}").ID for name in (*ORDER, LAST)]
    assert len(ORDER) == len(set(ORDER))


def test_every_cause_in_the_pattern_files_is_known(packs: Packs) -> None:
    named = {pattern.cause for pattern in packs.patterns if pattern.cause}
    assert len(named) > 10
    assert set() == named - KNOWN


def test_a_failure_is_as_late_as_the_clock_of_its_own_line(read_text: ReadText, packs: Packs) -> None:
    launch = launch_of("collective-timeout", read_text)
    place = failed_at(launch)
    assert place is not None
    assert after_text(launch, place, packs) == " after 20 min 22 s"


def test_a_cause_of_the_users_own_patterns_is_told_in_their_words(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(CUSTOM, encoding="utf-8")
    packs = load_packs([tmp_path])
    text = (FOLDER / "capture-unknown-reason.log").read_text(encoding="utf-8")
    log = tmp_path / "run.log"
    log.write_text(text.replace("RuntimeError: Tensors", "RuntimeError: no licence: Tensors"), encoding="utf-8")
    (launch,) = read_launches([str(log)], Reading(packs), Recogniser(packs))
    found = cause_of(launch, packs)
    assert found is not None
    assert "licence_refused" == found.cause
    assert "the licence server said no: RuntimeError: no licence: Tensors" in found.sentence
