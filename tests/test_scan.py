"""Both engines of the gate read every log alike, with the line numbers of grep, however the bytes are cut into blocks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import regex

from logscope.events import Recogniser
from logscope.model import Drift, Event
from logscope.packs import Form, Packs, builtin_dir, load_packs
from logscope.packs.load import read_files
from logscope.scan import Gate, HyperscanGate, ReadState, TrieGate, candidate_lines

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*/*.log"))
ENGINES = (HyperscanGate, TrieGate)
LITERALS = ["needle", "pin"]


@pytest.fixture(scope="module")
def packs() -> Packs:
    return load_packs()


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) >= 30


@pytest.mark.parametrize("log", FIXTURES, ids=lambda log: log.parent.name)
def test_both_engines_give_the_same_events(log: Path, packs: Packs, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> tuple[list[Event | Drift], ReadState]:
        state = ReadState()
        return list(Recogniser(packs, dense=True).read(log.name, [log.read_bytes()], state)), state

    fast = found()
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert found() == fast
    assert fast[0]


def reused(blocks: Sequence[bytes]) -> Iterator[bytearray]:
    """Yield blocks in one buffer, as files are read: what was not copied is overwritten."""
    buffer = bytearray()
    for block in blocks:
        buffer[:] = block
        yield buffer
        buffer[:] = b"?" * len(buffer)


TEXT = b"one\nneedle\r a\n\nfour needle and pin\nfive\nsix\npin\r\neight"
HITS = [(2, b"needle\r a"), (4, b"four needle and pin"), (7, b"pin\r")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", range(1, len(TEXT) + 1))
def test_lines_with_a_literal_have_the_numbers_of_grep(engine: type[Gate], size: int) -> None:
    state = ReadState()
    blocks = reused([TEXT[at : at + size] for at in range(0, len(TEXT), size)])
    assert list(candidate_lines(blocks, engine(LITERALS), state)) == [(*hit, True, True) for hit in HITS]
    assert (state.lines, state.ends_whole, state.tail) == (8, False, TEXT)


@pytest.mark.parametrize("size", range(1, len(TEXT) + 1))
def test_the_next_line_is_given_where_it_is_asked_for(size: int) -> None:
    state = ReadState()
    blocks = reused([TEXT[at : at + size] for at in range(0, len(TEXT), size)])
    found = []
    for line in candidate_lines(blocks, HyperscanGate(LITERALS), state):
        found.append(line)
        state.follow = line.number in {1, 4, 7}
    asked = [(5, b"five", True, False), (8, b"eight", False, False)]
    assert sorted([(*hit, True, True) for hit in HITS] + asked) == found


def test_python_reads_built_in_forms_as_the_library_with_a_time_limit_does(packs: Packs) -> None:
    forms = [form for pattern in packs.patterns for form in pattern.forms if form.regex is not None]
    assert len(forms) >= 280
    assert [] == [str(form.place) for form in forms if "__" in " ".join(form.compiled().groupindex)]
    lines = {sample.line for pattern in packs.patterns for form in pattern.forms for sample in form.samples}
    lines |= {line for pattern in packs.patterns for form in pattern.forms for line in form.rejects}
    assert len(lines) >= 700
    for form in forms:
        plain, limited = form.plain(), form.compiled()
        assert plain is not None, form.place
        for line in lines:
            one, other = plain.search(line), limited.search(line)
            assert (one and (one.span(), texts(form, one))) == (other and (other.span(), texts(form, other)))


def texts(form: Form, match: re.Match[str] | regex.Match[str]) -> dict[str, str]:
    return {name: match[group] for name, group in form.captured(match).items()}


def test_forms_of_users_keep_their_time_limit(tmp_path: Path) -> None:
    (tmp_path / "ready.toml").write_bytes((builtin_dir() / "ready.toml").read_bytes())
    mine = read_files([(tmp_path / "ready.toml", "ready.toml")])
    assert {None} == {form.plain() for pattern in mine.patterns for form in pattern.forms if form.regex}
