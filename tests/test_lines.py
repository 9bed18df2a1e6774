"""Physical lines become messages: numbered as ``grep -n`` counts, without what stands around them, nothing lost or invented."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from logscope.events import Recogniser
from logscope.lines import REDACTED, peel_outer, read_lines, redact, split_at_prefixes
from logscope.lines import read as lines
from logscope.model import LogLine, Pos
from logscope.packs import Packs, Prefix, load_packs
from logscope.packs.types import Place
from logscope.scan import Gate, HyperscanGate, ReadState, TrieGate, open_gate

BEGIN = b"[2026-01-05 10:00:05 TP0] Load weight begin. avail mem=78.52 GB"
TRACEBACK = "Traceback (most recent call last):"
FRAME = '  File "/opt/sglang/srt/managers/scheduler.py", line 3005, in run'
CODE = "    scheduler = Scheduler("
ALL = Recogniser(load_packs())  # hypothesis and fixtures do not mix


def read(data: bytes | str, cuts: Sequence[int] = (), everything: bool = False) -> tuple[list[LogLine], ReadState]:
    """Read bytes that are cut into blocks at ``cuts``."""
    data = data.encode() if isinstance(data, str) else data
    edges = [0, *sorted(cuts), len(data)]
    blocks = (data[start:end] for start, end in itertools.pairwise(edges))
    state = ReadState()
    return list(read_lines("run.log", blocks, ALL.packs, ALL.gate, state, everything)), state


def texts(data: bytes | str, everything: bool = False) -> list[tuple[int, str]]:
    return [(line.pos.line, line.text) for line in read(data, everything=everything)[0]]


def log(*text: str) -> str:
    return "".join(f"{line}\n" for line in text)


# ---- line numbers and blocks ----------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        BEGIN,
        b"noise",
        b"",
        b"\r",
        b"\r\n",
        b"\n",
        b"\n\n",
        b"\x00",
        b"\xff\xfe\x80",
        b"\xef\xbb\xbf",
        "█".encode(),
        b"Load weight",
        b" begin",
    ]
)
_LOGS = st.lists(_PIECES | st.binary(max_size=6), max_size=24).map(b"".join)


def naive(data: bytes) -> list[int]:
    """Return the numbers of the lines that hold the literal, by splitting at line ends."""
    return [number for number, line in enumerate(data.split(b"\n"), 1) if b"Load weight begin" in line]


@given(_LOGS, st.data())
@settings(max_examples=300)
def test_line_numbers_are_those_of_a_naive_split_for_any_blocks(data: bytes, more: st.DataObject) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=6))
    found, state = read(data, cuts)
    assert naive(data) == sorted({line.pos.line for line in found if "Load weight begin" in line.text})
    assert data.count(b"\n") + (not data.endswith(b"\n") and bool(data)) == state.lines
    assert (not data or data.endswith(b"\n")) == state.ends_whole


@given(_LOGS)
@settings(max_examples=150)
def test_blocks_of_one_byte_give_the_same_as_one_block(data: bytes) -> None:
    whole, state = read(data)
    bytewise, other = read(data, range(1, len(data)))
    assert whole == bytewise
    assert state == other


@given(_LOGS)
@settings(max_examples=150)
def test_reading_everything_counts_every_line(data: bytes) -> None:
    found, state = read(data, everything=True)
    assert list(range(1, state.lines + 1)) == sorted({line.pos.line for line in found})
    among_all = iter(found)
    assert all(line in among_all for line in read(data)[0])


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_a_literal_may_be_cut_by_blocks(size: int) -> None:
    data = b"first\n" + BEGIN + b"\n\n" + BEGIN + b"\nlast\n"
    found, state = read(data, range(size, len(data), size))
    assert [2, 4] == [line.pos.line for line in found]
    assert (5, True, data) == (state.lines, state.ends_whole, state.tail)


def test_no_blocks_are_no_lines() -> None:
    state = ReadState()
    assert [] == list(read_lines("run.log", iter([]), ALL.packs, ALL.gate, state))
    assert (0, True, b"") == (state.lines, state.ends_whole, state.tail)


def test_empty_blocks_change_nothing() -> None:
    state = ReadState()
    blocks = [b"", BEGIN, b"", b"\n", b""]
    assert [1] == [line.pos.line for line in read_lines("run.log", blocks, ALL.packs, ALL.gate, state)]
    assert (1, True) == (state.lines, state.ends_whole)


def test_last_line_without_line_end_may_be_cut() -> None:
    found, state = read(b"first\n" + BEGIN)
    assert [(2, False)] == [(line.pos.line, line.whole) for line in found]
    assert (2, False, b"first\n" + BEGIN) == (state.lines, state.ends_whole, state.tail)


def test_line_with_line_end_is_whole() -> None:
    found, _ = read(BEGIN + b"\n")
    assert [True] == [line.whole for line in found]


def test_crlf_is_a_line_end() -> None:
    found, _ = read(b"first\r\n" + BEGIN + b"\r\n")
    assert [(2, "Load weight begin. avail mem=78.52 GB", True)] == [
        (line.pos.line, line.text, line.whole) for line in found
    ]


def test_byte_order_mark_nul_bytes_and_invalid_utf_8_do_not_hide_a_line() -> None:
    data = (
        b"\xef\xbb\xbf"
        + BEGIN
        + b"\n\x00\x00"
        + BEGIN
        + b"\x00\n"
        + BEGIN
        + b"\n\xff\xfe broken \xc3\n"
        + BEGIN
        + b"\n"
    )
    expected = "Load weight begin. avail mem=78.52 GB"
    assert [(n, expected) for n in (1, 2, 3, 5)] == texts(data)


def test_invalid_utf_8_is_shown_as_replacement_characters() -> None:
    assert [(1, "Load weight begin\ufffd\ufffd")] == texts(b"Load weight begin\xff\xfe\n")


def test_form_feeds_and_unicode_line_separators_end_no_line() -> None:
    assert [3] == [number for number, _ in texts("a\x0bb\x0cc\u2028d\x85\n\n" + BEGIN.decode() + "\n")]


# ---- progress bars --------------------------------------------------------------------------------------------------

BAR = "Loading safetensors checkpoint shards: {}% Completed | {}/4 [00:0{}<00:00,  1.6s/it]"


def test_states_of_a_bar_are_messages_of_one_line() -> None:
    states = [BAR.format(share, done, done) for share, done in ((0, 0), (50, 2), (100, 4))]
    assert [(1, state) for state in states] == texts("\r" + "\r".join(states) + "\n")


def test_message_glued_to_a_bar_is_a_message_of_its_own() -> None:
    bar = BAR.format(100, 4, 4)
    (first, second), _ = read(f"{bar}{BEGIN.decode()}\n")
    assert ("", None, False, bar) == (first.tags, first.time, first.prefixed, first.text)
    assert ("TP0", "2026-01-05 10:00:05", True) == (second.tags, second.time, second.prefixed)
    assert "Load weight begin. avail mem=78.52 GB" == second.text


def test_messages_of_two_ranks_glued_together_are_two() -> None:
    line = BEGIN.decode() + BEGIN.decode().replace("TP0", "TP1")
    found, _ = read(line + "\n")
    assert ["TP0", "TP1"] == [message.tags for message in found]
    assert ["Load weight begin. avail mem=78.52 GB"] * 2 == [message.text for message in found]


def test_only_the_last_piece_of_an_unfinished_line_may_be_cut() -> None:
    found, _ = read(f"{BAR.format(50, 2, 2)}\r{BEGIN.decode()}{BEGIN.decode()}")
    assert [True, True, False] == [message.whole for message in found]


def test_carriage_return_after_a_message_of_an_unfinished_line_ends_it() -> None:
    found, _ = read(BEGIN + b"\rnoise")
    assert [True] == [message.whole for message in found]


# ---- long lines -----------------------------------------------------------------------------------------------------


_FILLERS = [b"\xe2\x96\x88", b"a b", b"0|", b"--", b"Error", b"\t", b"key=", b'"', b"a.", b"a-", b"(", b"://", b"key='"]
# whatever a line is filled with, the regexes of the envelope take time in proportion to its length
_LONG = [(filler, 10_000_000) for filler in (b"x", b" ", b"[")] + [(filler, 500_000) for filler in _FILLERS]


@pytest.mark.parametrize(("filler", "size"), [*_LONG, (b"\r", 500_000)])
def test_long_line_before_a_carriage_return_is_read(filler: bytes, size: int) -> None:
    data = b"first\n" + filler * (size // len(filler)) + b"\r" + BEGIN + b"\n" + BEGIN + b"\n"
    found, state = read(data, range(1 << 20, len(data), 1 << 20))
    wanted = [line for line in found if "Load weight begin" in line.text]
    assert [(2, "TP0"), (3, "TP0")] == [(line.pos.line, line.tags) for line in wanted]
    assert 3 == state.lines


@pytest.mark.parametrize(("filler", "size"), _LONG)
def test_long_line_without_a_carriage_return_is_read(filler: bytes, size: int) -> None:
    data = filler * (size // len(filler)) + BEGIN + b"\n" + BEGIN + b"\n"
    found, state = read(data)
    wanted = [line for line in found if "Load weight begin" in line.text]
    assert [(1, "TP0"), (2, "TP0")] == [(line.pos.line, line.tags) for line in wanted]
    assert 2 == state.lines


def test_endless_line_is_read_in_parts_with_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 200)
    data = b"\n" + BEGIN + b"x" * 300 + BEGIN + b"y" * 300 + b"\n" + BEGIN + b"\n"
    found, state = read(data, range(50, len(data), 50))
    assert [2, 2, 3] == [line.pos.line for line in found if "Load weight begin" in line.text]
    assert (3, True) == (state.lines, state.ends_whole)


def test_endless_line_that_ends_with_a_part_is_counted_and_may_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 200)
    data = b"\n" + b"x" * 300
    _, state = read(data, [1])
    assert (2, False) == (state.lines, state.ends_whole)


# ---- tracebacks -----------------------------------------------------------------------------------------------------


def prefix(rank: str) -> str:
    return f"[2026-01-05 10:00:05 {rank}] Scheduler hit an exception: "


def blocks(data: str) -> list[tuple[int, str, str | None, str | None]]:
    """Return (line, tags, inside of, closes) of every message."""
    return [(line.pos.line, line.tags, line.block, line.closes) for line in read(data, everything=True)[0]]


def test_inside_of_a_traceback_only_lines_with_a_literal_are_given() -> None:
    code = "    raise RuntimeError('Load weight begin.')"
    data = log(prefix("TP3") + TRACEBACK, FRAME, CODE, code, "ValueError", "Odd")
    found = [(line.pos.line, line.block, line.closes) for line in read(data)[0]]
    assert [(1, None, None), (4, "traceback", None), (5, None, "traceback")] == found


def test_traceback_is_a_block_that_its_exception_closes() -> None:
    data = log(
        prefix("TP3") + TRACEBACK, FRAME, CODE, "ValueError: no such thing", "ValueError: not part of it any more"
    )
    expected = [
        (1, "TP3", None, None),
        (2, "", "traceback", None),
        (3, "", "traceback", None),
        (4, "TP3", None, "traceback"),
        (5, "", None, None),
    ]
    assert expected == blocks(data)


@pytest.mark.parametrize(
    "last",
    [
        "KeyError: 'a'",
        "KeyError",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "pkg.mod.f.<locals>.Odd: x",
        "SystemExit: 1",
        "AssertionError",
    ],
)
def test_any_exception_closes_a_traceback(last: str) -> None:
    assert [(3, "TP1", None, "traceback")] == blocks(log(prefix("TP1") + TRACEBACK, FRAME, last))[2:]


@pytest.mark.parametrize(
    "foreign",
    [
        "INFO: text",
        "WARNING: text",
        "usage: x",
        "[Gloo] Rank 0 is connected",
        "50%|█████     | 2/4 [00:01<00:01]",
        "a b: c",
        "",
    ],
)
def test_what_other_processes_write_in_between_does_not_close_a_traceback(foreign: str) -> None:
    found = blocks(log(prefix("TP1") + TRACEBACK, FRAME, foreign, CODE, "ValueError: x"))
    assert (3, "", None, None) == found[2]
    assert (5, "TP1", None, "traceback") == found[-1]


def test_messages_of_other_ranks_do_not_close_a_traceback() -> None:
    data = log(prefix("TP1") + TRACEBACK, FRAME, BEGIN.decode(), CODE, "ValueError: x")
    assert (3, "TP0", None, None) == blocks(data)[2]
    assert (5, "TP1", None, "traceback") == blocks(data)[-1]


def test_interleaved_tracebacks_of_two_ranks_are_not_pinned_to_one() -> None:
    data = log(
        prefix("TP0") + TRACEBACK,
        prefix("TP1") + TRACEBACK,
        FRAME,
        FRAME,
        "ValueError: a",
        "ValueError: b",
        "ValueError: c",
    )
    assert [(5, "", None, "traceback"), (6, "", None, "traceback"), (7, "", None, None)] == blocks(data)[4:]


def test_tracebacks_of_two_ranks_after_each_other_are_pinned_to_each() -> None:
    data = log(prefix("TP0") + TRACEBACK, FRAME, "ValueError: a", prefix("TP1") + TRACEBACK, FRAME, "ValueError: b")
    assert ["TP0", "TP1"] == [tags for _, tags, _, closes in blocks(data) if closes]


def test_chained_exceptions_are_all_pinned_to_the_rank_of_the_first() -> None:
    data = log(
        prefix("TP2") + TRACEBACK,
        FRAME,
        "RuntimeError: inner",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        TRACEBACK,
        FRAME,
        "Exception: outer",
    )
    assert [(3, "TP2", None, "traceback"), (9, "TP2", None, "traceback")] == [item for item in blocks(data) if item[3]]


def test_traceback_in_the_line_after_its_banner_is_pinned_to_the_rank_of_the_banner() -> None:
    banner = "[10:00:05 TP5] Exception in run_tp_server:"
    found = blocks(log(banner, TRACEBACK, FRAME, "ValueError: x", TRACEBACK, FRAME, "ValueError: y"))
    assert [(4, "TP5", None, "traceback"), (7, "TP5", None, "traceback")] == [item for item in found if item[3]]


def test_traceback_in_the_line_after_any_other_message_is_not_pinned() -> None:
    assert (4, "", None, "traceback") == blocks(log(BEGIN.decode(), TRACEBACK, FRAME, "ValueError: x"))[-1]


def test_traceback_far_from_another_is_not_pinned() -> None:
    data = log(prefix("TP2") + TRACEBACK, FRAME, "RuntimeError: x", *[""] * 10, TRACEBACK, FRAME, "ValueError: y")
    assert (16, "", None, "traceback") == blocks(data)[-1]


def test_traceback_without_an_end_does_not_swallow_the_next_launch() -> None:
    data = log(prefix("TP2") + TRACEBACK, FRAME, *["text of something else"] * 6000, "ValueError: y", BEGIN.decode())
    found = blocks(data)
    assert (6004, "TP0", None, None) == found[-1]
    assert [] == [item for item in found if item[3]]


def test_tracebacks_of_two_containers_do_not_mix() -> None:
    data = log(
        f"a-1  | {prefix('TP0')}{TRACEBACK}",
        f"b-1  | {prefix('TP0')}{TRACEBACK}",
        f"a-1  | {FRAME}",
        "b-1  | ValueError: b",
        "a-1  | ValueError: a",
    )
    found, _ = read(data)
    assert [("b-1", "TP0", "ValueError: b"), ("a-1", "TP0", "ValueError: a")] == [
        (line.origin, line.tags, line.text) for line in found if line.closes
    ]


# ---- what stands in front -------------------------------------------------------------------------------------------


def test_partial_lines_of_a_container_are_joined() -> None:
    data = log(
        "2025-11-10T18:47:33.1+01:00 stderr P [2025-11-10 17:47:33 TP0] Load wei",
        "2025-11-10T18:47:33.2+01:00 stderr P ght begin. avail",
        "2025-11-10T18:47:33.3+01:00 stderr F  mem=78.52 GB",
        "2025-11-10T18:47:34.0+01:00 stderr F Load weight begin",
    )
    found, state = read(data)
    assert [(1, "TP0", "Load weight begin. avail mem=78.52 GB"), (4, "", "Load weight begin")] == [
        (line.pos.line, line.tags, line.text) for line in found
    ]
    assert 4 == state.lines


def test_partial_lines_of_stdout_and_stderr_do_not_mix() -> None:
    data = log(
        "2025-11-10T18:47:33.1Z stderr P Load weight begin. avail",
        "2025-11-10T18:47:33.2Z stdout F Init torch distributed begin.",
        "2025-11-10T18:47:33.3Z stderr F  mem=78.52 GB",
    )
    assert [(1, "Load weight begin. avail mem=78.52 GB"), (2, "Init torch distributed begin.")] == sorted(texts(data))


def test_partial_line_at_the_end_of_a_log_may_be_cut() -> None:
    found, _ = read(log("2025-11-10T18:47:33.1Z stderr P Load weight begin. avail mem=78"))
    assert [(1, "Load weight begin. avail mem=78", False)] == [(line.pos.line, line.text, line.whole) for line in found]


def test_colours_are_noise() -> None:
    assert [(1, "Load weight begin.")] == texts("\x1b[36m\x1b[1mLoad weight begin\x1b[0m.\x1b[0m\n")


def test_several_outer_prefixes_are_peeled_and_the_inner_clock_is_kept_apart() -> None:
    line = LogLine(Pos("run.log", 1), "2025-11-10T18:47:33Z [pod/a-0/b] (Worker pid=7) [2025-11-10 17:47:33 TP1] text")
    peeled, is_partial = peel_outer(line, ALL.packs.envelope)
    assert ("[2025-11-10 17:47:33 TP1] text", "2025-11-10T18:47:33Z", "a-0/b Worker pid=7", False) == (
        peeled.text,
        peeled.outer_time,
        peeled.origin,
        is_partial,
    )


def test_text_without_a_prefix_is_one_message() -> None:
    assert [("", None, "a [b] c", False)] == split_at_prefixes("a [b] c", ALL.packs.envelope)


def test_prefix_without_a_message_is_an_empty_message() -> None:
    assert [("TP0", "2026-01-05 10:00:05", "", True)] == split_at_prefixes(
        "[2026-01-05 10:00:05 TP0] ", ALL.packs.envelope
    )


def test_prefixes_stand_anywhere_from_left_to_right() -> None:
    text = "Loading 99% [2026-01-05 10:00:05 TP0] one [2026-01-05 10:00:06 TP1] two"
    parts = [("", None, "Loading 99% ", False), ("TP0", "2026-01-05 10:00:05", "one ", True)]
    assert [*parts, ("TP1", "2026-01-05 10:00:06", "two", True)] == split_at_prefixes(text, ALL.packs.envelope)


def test_a_users_prefix_may_have_flags_and_back_references_of_its_own() -> None:
    own = [
        Prefix("own", r"(?i)<srv (?P<tags>tp\d+)> ", Place("own.toml", 1)),
        Prefix("twice", r"(?P<quote>['|])(?P<tags>TP\d+)(?P=quote) ", Place("own.toml", 2)),
    ]
    envelope = replace(ALL.packs.envelope, sglang=(*own, *ALL.packs.envelope.sglang))
    text = "bar <SRV TP0> one |TP1| two [2026-01-05 10:00:05 TP2] three"
    parts = [("", None, "bar ", False), ("TP0", None, "one ", True), ("TP1", None, "two ", True)]
    assert [*parts, ("TP2", "2026-01-05 10:00:05", "three", True)] == split_at_prefixes(text, envelope)


@pytest.mark.parametrize("lines_between", [1, 9, 10, 99])
def test_frames_that_differ_in_digits_only_go_on_a_traceback_alike(lines_between: int) -> None:
    frames = [f'  File "/app/a{n}.py", line {n}, in run'.encode() for n in range(lines_between)]
    text = b"\n".join([b"[2026-01-05 10:00:05 TP0] x hit an exception: Traceback (most recent call last):", *frames])
    text += b"\nValueError: 12\nValueError: 13\n"
    found = [(line.pos.line, line.tags, line.closes) for line in read(text)[0]]
    assert [(1, "TP0", None), (lines_between + 2, "TP0", "traceback")] == found[:2]


# ---- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("server_args=ServerArgs(api_key='abc', port=1)", f"server_args=ServerArgs(api_key='{REDACTED}', port=1)"),
        (
            "+ HF_TOKEN=abc python3 -m sglang.launch_server --api-key=x",
            f"+ HF_TOKEN={REDACTED} python3 -m sglang.launch_server --api-key={REDACTED}",
        ),
        ("https://user:pass@host/x", f"https://user:{REDACTED}@host/x"),
        ("Authorization: Bearer abcdef123", f"Authorization: Bearer {REDACTED}"),
        ("max_total_num_tokens=5, api_key=None", "max_total_num_tokens=5, api_key=None"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert shown == redact(text, ALL.packs.envelope.secrets)
    assert shown == redact(shown, ALL.packs.envelope.secrets)


def test_secret_of_a_line_is_gone_before_anything_else_sees_it(packs: Packs) -> None:
    found, _ = read("[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', api_key='hunter2', port=30000)\n")
    assert [f"server_args=ServerArgs(model_path='m', api_key='{REDACTED}', port=30000)"] == [
        line.text for line in found
    ]
    event = Recogniser(packs).recognise(found[0])
    assert "hunter2" not in repr(event)


# ---- the gate -------------------------------------------------------------------------------------------------------


ENGINES = (HyperscanGate, TrieGate)


@pytest.mark.parametrize("engine", ENGINES)
def test_gate_finds_every_line_with_a_literal_of_many(engine: type[Gate]) -> None:
    literals = [f"literal {number:03}." for number in range(200)]
    gate = engine(literals)
    data = "\n".join(literals).encode()
    assert [number * len("literal 000.\n") + len("literal 00.") for number in range(200)] == gate.find(data)
    assert ["literal 007.", "literal 150."] == gate.literals_in("a literal 150. literal 007. literal 7.")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("text", "found"), [("abcdef", ["abc", "abcdef", "cde"]), ("xcde", ["cde"]), ("ab cd", [])])
def test_gate_tells_overlapping_literals_of_a_message(engine: type[Gate], text: str, found: list[str]) -> None:
    gate = engine(["abcdef", "abc", "cde", "abc"])
    assert found == gate.literals_in(text)
    assert bool(found) == bool(gate.find(text.encode()))


@pytest.mark.parametrize("engine", ENGINES)
def test_gate_of_no_literal_finds_nothing(engine: type[Gate]) -> None:
    assert [] == engine([]).find(b"abc")
    assert [] == engine([]).literals_in("abc")


def test_gate_is_the_fast_one_where_its_library_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_gate(["abc"]), HyperscanGate)
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert isinstance(open_gate(["abc"]), TrieGate)
