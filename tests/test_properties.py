"""What must hold whatever the log is: order between ranks, logs after one another, cuts anywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import CASES, FIXTURES, ReadText
from logscope.errors import NoLaunchError
from logscope.frames import frame_rows
from logscope.model import Launch
from logscope.packs import Packs
from logscope.server_args import Command, ServerArgs
from logscope.units import Quantity

SHUFFLED = ["baseline", "0.5.9-new-eagle-tp2", "0.5.14-new-eagle-tp2"]
POSITIONS = {"launch", "file", "line", "begin_line", "end_line", "from", "to"}
TAG = re.compile(rb"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ((?:DP\d+ )?TP\d+)\]")


def raw(case: str) -> bytes:
    return (FIXTURES / case / "launch.log").read_bytes()


def shuffle_ranks(text: bytes, seed: int) -> bytes:
    """Interleave the ranks anew between untagged lines; each rank keeps its order, untagged lines keep their place."""
    chance = random.Random(seed)  # noqa: S311 # not for secrets
    out: list[bytes] = []
    run: dict[bytes, list[bytes]] = {}

    def flush() -> None:
        turns = [tag for tag, lines in run.items() for _ in lines]
        chance.shuffle(turns)
        out.extend(run[tag].pop(0) for tag in turns)
        run.clear()

    for line in text.splitlines(keepends=True):
        match = TAG.match(line)
        if match:
            run.setdefault(match[1], []).append(line)
        else:
            flush()
            out.append(line)
    flush()
    return b"".join(out)


def per_rank(launch: Launch, packs: Packs) -> dict[str, list[tuple[object, ...]]]:
    """Return the phases and the ledger of each rank, without positions."""
    told: dict[str, list[tuple[object, ...]]] = {}
    for name in ("phases", "ledger"):
        for row in frame_rows(name, launch, packs):
            told.setdefault(f"{name} {row['rank']}", []).append(
                tuple(value for column, value in row.items() if column not in POSITIONS)
            )
    return told


@pytest.mark.parametrize("case", SHUFFLED)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_how_ranks_interleave_changes_nothing(read_text: ReadText, packs: Packs, case: str, seed: int) -> None:
    text = raw(case)
    shuffled = shuffle_ranks(text, seed)
    assert sorted(text.splitlines()) == sorted(shuffled.splitlines())
    (expected,), (actual,) = read_text(text), read_text(shuffled)
    assert per_rank(expected, packs) == per_rank(actual, packs)
    assert (expected.outcome.kind, expected.ranks) == (actual.outcome.kind, actual.ranks)


def summary(launch: Launch, packs: Packs) -> dict[str, object]:
    """Return what does not depend on where in a file a launch stands."""
    return {
        "outcome": (launch.outcome.kind, launch.outcome.event, launch.outcome.reason),
        "ended": launch.ended and (launch.ended.kind, launch.ended.event),
        "ranks": launch.ranks,
        "phases": per_rank(launch, packs),
        "args": launch.args,
        "command": launch.command,
        "events": [event.pattern.id for event in launch.events],
        "workers": launch.workers,
        "drift": [drift.text for drift in launch.drift],
        "releases": launch.releases,
    }


def test_there_are_logs_to_put_after_one_another() -> None:
    assert 20 <= len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_log_after_itself_is_two_equal_launches(read_text: ReadText, packs: Packs, case: str) -> None:
    text = raw(case)
    (once,) = read_text(text)
    twice = read_text(text * 2)
    assert 2 == len(twice)
    for launch in twice:
        assert summary(once, packs) == summary(launch, packs)
    lines = text.count(b"\n")
    assert 2 * lines == sum(launch.tally.lines for launch in twice)


Told = tuple[int, str, object]


def values(launches: list[Launch]) -> Iterator[Told]:
    """Yield (line, name, value) of all that the events of a log say; the flags of a command are left to a test of their own."""
    for launch in launches:
        for event in launch.events:
            for name, value in event.values.items():
                where = (event.pos.line, name)
                if isinstance(value, ServerArgs):
                    yield from ((*where, item) for item in value.values.items())
                elif not isinstance(value, Command):
                    yield (*where, (value.value, value.resolution) if isinstance(value, Quantity) else value)


def flags(launches: list[Launch]) -> set[tuple[str, object]]:
    return {item for launch in launches if launch.command for item in launch.command.flags.items()}


def read_cut(read_text: ReadText, text: bytes, at: int) -> list[Launch]:
    try:
        return read_text(text[:at])
    except NoLaunchError:
        return []


def invented(cut: list[Launch], whole: set[Told], text: bytes) -> list[Told]:
    """Return what a cut log says that the whole does not. A text may be of another event, but stands in its line as a whole."""
    lines = text.decode(errors="replace").split("\n")
    return [
        told
        for told in values(cut)
        if told not in whole
        and not (isinstance(told[2], str) and re.search(rf"(?<!\w){re.escape(told[2])}(?!\w)", lines[told[0] - 1]))
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_cut_log_says_nothing_that_the_whole_does_not(read_text: ReadText, case: str) -> None:
    text = raw(case)
    whole = set(values(read_text(text)))

    @settings(max_examples=15)
    @given(place=st.integers(0, 10**6))
    def holds(place: int) -> None:
        assert [] == invented(read_cut(read_text, text, place % len(text)), whole, text)

    holds()


@pytest.mark.parametrize("case", ["baseline", "0.5.9-new-eagle-tp2"])
def test_a_cut_in_any_place_of_a_line_with_numbers_gives_no_other_number(read_text: ReadText, case: str) -> None:
    lines = raw(case).splitlines(keepends=True)
    wanted = (b"Load weight", b"ends.", b"KV Cache is", b"Memory pool", b"Capture cuda", b"max_total", b"shards")
    picked: dict[bytes, int] = {}
    for number, line in enumerate(lines):
        for word in wanted:
            if word in line and len(line) < 400:
                picked.setdefault(word, number)
    assert set(wanted) == set(picked)
    for number in picked.values():
        head = b"".join(lines[max(number - 1, 0) : number])
        text = head + lines[number]
        whole = set(values(read_text(text)))
        for place in range(len(head), len(text)):
            assert [] == invented(read_cut(read_text, text, place), whole, text)


def test_a_cut_in_the_arguments_gives_no_other_argument(read_text: ReadText) -> None:
    text = raw("baseline").splitlines(keepends=True)[1]
    whole = set(values(read_text(text)))
    assert 30 < len(whole)
    for place in range(0, len(text), 3):
        assert [] == invented(read_cut(read_text, text, place), whole, text)


def test_a_cut_in_the_command_gives_no_other_flag(read_text: ReadText) -> None:
    text = raw("baseline").splitlines(keepends=True)[0]
    whole = flags(read_text(text))
    assert 10 <= len(whole)
    assert {} == {
        place: more for place in range(len(text)) if (more := flags(read_cut(read_text, text, place)) - whole)
    }
