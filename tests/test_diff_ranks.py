"""Ranks that are missing or silent in one of two logs: that is said first, and nothing else is made of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Diff, ReadText
from logscope.differ import Difference, Tolerance, diff_launches
from logscope.packs import Packs
from made import Made, log_text

GOOD = Made()
TEXT = log_text(GOOD)
BASELINE = (Path(__file__).parent / "fixtures/baseline/launch.log").read_text(encoding="utf-8")


@pytest.fixture
def compare_texts(read_text: ReadText, packs: Packs):  # type: ignore[no-untyped-def]
    def compare(before: str, after: str, tolerance: Tolerance | None = None) -> Difference:
        launches = [read_text(text, f"{name}.log")[-1] for text, name in ((before, "a"), (after, "b"))]
        return diff_launches([launches[0]], launches[1], packs, tolerance or Tolerance(), ("a.log", "b.log"))

    return compare


def without(text: str, tags: str, what: str = "") -> str:
    """Return a log without the lines of some ranks (a regex) that have some words (a regex)."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not re.match(rf"\[\S+ \S+ ({tags})\].*{what}", line)
    )


def test_ranks_that_are_not_in_the_log_come_first(compare_texts) -> None:  # type: ignore[no-untyped-def]
    difference = compare_texts(TEXT, without(TEXT, "TP[56]"))
    assert "b.log holds 6 of its 8 ranks: TP5, TP6 print nothing." == difference.lines[0]
    assert difference.lines[1].startswith("No other change beyond print resolution")
    assert difference.is_changed
    assert difference.notes == ("TP5, TP6 only in the log before: the ranks that both logs hold are compared",)
    back = compare_texts(without(TEXT, "TP[56]"), TEXT)
    assert "a.log holds 6 of its 8 ranks: TP5, TP6 print nothing." == back.lines[0]


def test_the_ranks_of_both_logs_are_compared(compare_texts) -> None:  # type: ignore[no-untyped-def]
    """TP0 takes 0.64 GiB in distributed init, others 0.61: a log of TP0 alone has no other figure for it."""
    difference = compare_texts(BASELINE, without(BASELINE, "TP[1-7]"))
    assert "b.log holds 1 of its 8 ranks: TP1..TP7 print nothing." == difference.lines[0]
    assert {"same"} == {change.verdict for change in difference.changes}
    assert {"", "TP0"} == {change.rank for change in difference.changes}
    assert difference.first is None


def test_another_number_of_ranks_is_a_change(compare_texts) -> None:  # type: ignore[no-untyped-def]
    """Whatever the figures say of one rank: with four of the same size the server has half the memory."""
    half = without(TEXT, "TP[4-7]").replace("--tp 8", "--tp 4").replace("tp_size=8", "tp_size=4")
    difference = compare_texts(TEXT, half)
    assert "a.log has 8 ranks, b.log has 4 ranks." == difference.lines[0]
    assert difference.is_changed
    assert () == difference.ruled_out


def test_a_rank_that_falls_silent_is_named_with_the_step(compare_texts) -> None:  # type: ignore[no-untyped-def]
    """All but TP5 finish the weights, and then the log ends."""
    reached = TEXT[: TEXT.index("KV Cache is allocated")].rpartition("\n")[0] + "\n"
    difference = compare_texts(TEXT, without(reached, "TP5", "Load weight end"))
    assert (
        "In b.log TP5 alone does not print load weights (load_weights.end), as the other 7 do." == difference.lines[0]
    )
    assert re.search(
        r"steps on all 8 ranks, and 2 steps on TP5 only, are not reached by b\.log\.$", difference.lines[2]
    )
    assert difference.first is not None
    assert ("load_weights.end", ("TP5",), 8) == (difference.first.event, difference.first.ranks, difference.first.of)


def test_several_silent_ranks_are_counted(compare_texts) -> None:  # type: ignore[no-untyped-def]
    reached = TEXT[: TEXT.index("Capture cuda graph begin")].rpartition("\n")[0] + "\n"
    difference = compare_texts(TEXT, without(reached, "TP[0-4]", "Memory pool end"))
    assert difference.lines[0].startswith("In b.log 5 of 8 ranks do not print memory pools in all (memory_pool.end)")
    assert difference.lines[0].endswith("as the other 3 do.")


def test_a_silent_rank_of_a_ready_launch_took_no_less_memory(compare_texts) -> None:  # type: ignore[no-untyped-def]
    gone = without(TEXT, "TP5", "(Load weight end|KV Cache|Memory pool|Capture)")
    for difference in (compare_texts(TEXT, gone), compare_texts(gone, TEXT)):
        assert () == difference.causes
        assert difference.lines[0].endswith(
            "TP5 alone does not print load weights (load_weights.end), as the other 7 do."
        )
        assert difference.first is not None
        assert "load_weights.end" == difference.first.event
        assert difference.is_changed


def test_a_log_that_is_whole_says_nothing_of_ranks(diff: Diff) -> None:
    assert () == diff(GOOD, replace(GOOD, fraction=0.8)).absent
    assert () == diff(GOOD, replace(GOOD, fraction=0.4)).absent


def test_distributed_init_is_compared_on_one_rank(compare_texts) -> None:  # type: ignore[no-untyped-def]
    """2 GiB less of it, and 5 GiB of another process on TP3: 3 GiB less are free there, and of both 12 % is kept."""
    first, second = replace(GOOD, init_gib=2.5, free_gib=95.0), replace(GOOD, foreign_gib={3: 5.0})
    for pair, sign in (((first, second), 1), ((second, first), -1)):
        difference = compare_texts(log_text(pair[0]), log_text(pair[1]))
        told = {term.term: sign * term.bytes / 2**30 for term in difference.budget.terms}
        assert -4.40 == pytest.approx(told["free_at_init"], abs=0.01)
        assert 1.76 == pytest.approx(told["distributed_init"], abs=0.01)
        assert ["free memory before the weights", "memory of distributed init (NCCL buffers and the like)"] == [
            cause.name for cause in difference.causes
        ]
