"""Where each byte went: rows that chain and add up, whatever is missing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import CASES, FIXTURES, ReadText, at, gb, graph_lines, load_lines, log, pool_lines, rank_lines
from logscope.errors import NoLaunchError
from logscope.ledger import LedgerRow, ledger_of
from logscope.model import Launch
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.units import GIB, gib

BASELINE = (FIXTURES / "baseline/launch.log").read_bytes().splitlines(keepends=True)


def rows_of(launch: Launch, packs: Packs, tag: str = "TP0") -> list[tuple[str, str, str]]:
    """Return (item, GiB, kind) of one rank."""
    return [(row.item, gib(row.bytes), row.kind) for row in ledger_of(launch, packs) if row.rank.tag == tag]


def last_free(launch: Launch, rank: Rank) -> int | None:
    """Return the free memory that a rank printed last."""
    printed = [
        amount.value
        for event in launch.events
        if event.rank == rank
        and event.pattern.is_of_a_rank
        and (amount := event.quantity("avail_mem_bytes")) is not None
    ]
    return int(printed[-1]) if printed else None


def assert_adds_up(rows: list[LedgerRow], launch: Launch) -> None:
    by_rank: dict[Rank, list[LedgerRow]] = {}
    for row in rows:
        by_rank.setdefault(row.rank, []).append(row)
    for rank, own in by_rank.items():
        for row in own:
            assert row.free_after == row.free_before - row.bytes
        for earlier, later in pairwise(own):
            assert earlier.free_after == later.free_before
        assert last_free(launch, rank) == own[-1].free_after
        assert own[0].free_before - own[-1].free_after == sum(row.bytes for row in own)


def test_enough_logs_are_there_to_add_up() -> None:
    assert 20 <= len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_rows_of_every_log_add_up(case: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    launch = fixture_launches[case]
    rows = ledger_of(launch, packs)
    assert_adds_up(rows, launch)
    measured = [rank for rank in launch.ranks if last_free(launch, rank) is not None]
    assert set(measured) == {row.rank for row in rows}


def test_most_logs_have_a_ledger(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    empty = sorted(case for case, launch in fixture_launches.items() if not ledger_of(launch, packs))
    assert ["0.4.10.post2-tp2", "0.5.23-unknown-flag", "0.5.9-fakecuda-imbalance"] == empty


@pytest.mark.parametrize("tag", [f"TP{number}" for number in range(8)])
def test_the_ledger_of_the_baseline(tag: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    launch = fixture_launches["baseline"]
    first = {"TP0": "0.64", "TP7": "0.64"}.get(tag, "0.61")
    assert [
        ("distributed init", first, "measured"),
        ("weights", "72.33", "measured"),
        ("KV cache", "10.42", "measured"),
        ("unexplained", "0.03", "unexplained"),
        ("unexplained", "0.03", "unexplained"),
        ("graphs: decode", "1.41", "measured"),
    ] == rows_of(launch, packs, tag)
    own = [row for row in ledger_of(launch, packs) if row.rank.tag == tag]
    assert ("9.82", gb("9.82")) == (gib(own[-1].free_after), own[-1].free_after)
    assert [False, False] == [row.is_rounding for row in own if row.kind == "unexplained"]


def test_the_ledger_without_arguments_is_the_same(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert rows_of(fixture_launches["baseline"], packs) == rows_of(fixture_launches["baseline_grep"], packs)


def test_custom_all_reduce_costs_a_hundredth(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert [("distributed init", "0.65", "measured"), ("weights", "72.33", "measured")] == rows_of(
        fixture_launches["car"], packs
    )


def test_the_ledger_of_a_mamba_model(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert [
        ("weights", "1.95", "measured"),
        ("unexplained", "0.01", "unexplained"),
        ("Mamba state", "38.08", "measured"),
        ("KV cache", "42.32", "measured"),
        ("unexplained", "0.05", "unexplained"),
        ("graphs: prefill", "0.07", "measured"),
        ("graphs: decode", "0.00", "measured"),
    ] == rows_of(fixture_launches["0.5.23-new-mamba-tp1"], packs, "")


def test_the_total_of_a_sliding_window_pool_is_not_counted_again(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    rows = rows_of(fixture_launches["0.5.9-new-swa-tp1"], packs, "")
    assert [
        ("KV cache", "35.80", "measured"),
        ("KV cache", "44.74", "measured"),
        ("unexplained", "0.06", "unexplained"),
    ] == rows[3:6]
    assert ["distributed init", "weights", "unexplained", "graphs: decode"] == [
        item for item, *_ in rows[:3] + rows[6:]
    ]


@pytest.mark.parametrize("tag", ["TP0", "TP1"])
def test_the_ledger_of_a_draft_to_0_5_13(tag: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert [
        ("distributed init", "0.00", "measured"),
        ("weights", "3.34", "measured"),
        ("unexplained", "0.01", "unexplained"),
        ("KV cache", "77.00", "measured"),
        ("graphs: decode", "0.55", "measured"),
        ("draft distributed init", "0.00", "measured"),
        ("draft weights", "0.13", "measured"),
        ("draft KV cache", "2.40", "measured"),
        ("unexplained", "0.01", "unexplained"),
        ("draft graphs: draft decode", "0.55", "measured"),
        ("unexplained", "-0.01", "unexplained"),
        ("draft graphs: draft extend", "0.55", "measured"),
    ] == rows_of(fixture_launches["0.5.9-new-eagle-tp2"], packs, tag)


def test_the_ledger_of_a_draft_from_0_5_14(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert [
        ("distributed init", "0.00", "measured"),
        ("weights", "3.34", "measured"),
        ("unexplained", "0.01", "unexplained"),
        ("draft distributed init", "0.00", "measured"),
        ("draft weights", "0.13", "measured"),
        ("KV cache", "76.40", "measured"),
        ("unexplained", "-0.01", "unexplained"),
        ("draft KV cache", "2.38", "measured"),
        ("graphs: verify", "0.16", "measured"),
        ("draft graphs: draft decode", "0.16", "measured"),
    ] == rows_of(fixture_launches["0.5.14-new-eagle-tp2"], packs)


def test_a_hundredth_of_rounding_is_told_from_memory(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    rows = ledger_of(fixture_launches["0.5.9-new-eagle-tp2"], packs)
    unexplained = [row for row in rows if row.kind == "unexplained"]
    assert unexplained
    assert all(row.is_rounding for row in unexplained)


OLD = [
    at("10:00:06", "TP0", "Load weight begin. avail mem=94.04 GB"),
    at("10:00:20", "TP0", "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=21.71 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=11.26 GB"),
]


def test_what_an_old_log_does_not_print_is_derived(read_text: ReadText, packs: Packs) -> None:
    (launch,) = read_text(log(*OLD))
    assert [("weights", "72.33", "derived"), ("unexplained", "10.45", "unexplained")] == rows_of(launch, packs)
    weights = ledger_of(launch, packs)[0]
    assert (gb("94.04"), gb("21.71")) == (weights.free_before, weights.free_after)
    assert 0.02 * GIB <= weights.resolution <= 0.02 * GIB + 2


def test_the_weights_of_a_draft_are_derived_as_its_own(read_text: ReadText, packs: Packs) -> None:
    end = "Load weight end. type=LlamaForCausalLMEagle, dtype=torch.bfloat16, avail mem=11.13 GB"
    draft = [at("10:00:40", "TP0", "Load weight begin. avail mem=11.26 GB"), at("10:00:41", "TP0", end)]
    (launch,) = read_text(log(*OLD, *draft))
    assert ("draft weights", "0.13", "derived") == rows_of(launch, packs)[-1]


def test_memory_that_nothing_explains_is_a_row_of_its_own(read_text: ReadText, packs: Packs) -> None:
    (launch,) = read_text(log(*load_lines(), *pool_lines(kv="8.00"), *graph_lines(before="11.00", after="9.59")))
    assert [
        ("weights", "72.33", "measured"),
        ("KV cache", "8.00", "measured"),
        ("unexplained", "2.45", "unexplained"),
        ("unexplained", "0.26", "unexplained"),
        ("graphs: decode", "1.41", "measured"),
    ] == rows_of(launch, packs)
    rows = ledger_of(launch, packs)
    assert [(2, 4), (4, 5)] == [(row.begin.line, row.end.line) for row in rows if row.kind == "unexplained"]
    assert_adds_up(rows, launch)


def test_memory_that_is_given_back_is_negative(read_text: ReadText, packs: Packs) -> None:
    (launch,) = read_text(log(*load_lines("7.48", "9.34", "-1.86")))
    assert [("weights", "-1.86", "measured")] == rows_of(launch, packs)
    assert_adds_up(ledger_of(launch, packs), launch)


def test_ranks_have_ledgers_of_their_own(read_text: ReadText, packs: Packs) -> None:
    pairs = zip(rank_lines("TP2"), rank_lines("TP10"), strict=True)
    (launch,) = read_text(log(*(line for pair in pairs for line in pair)))
    assert 5 == len(rows_of(launch, packs, "TP2"))
    assert rows_of(launch, packs, "TP2") == rows_of(launch, packs, "TP10")
    assert ["TP2", "TP10"] == list(dict.fromkeys(row.rank.tag for row in ledger_of(launch, packs)))


def test_one_reading_alone_makes_no_ledger(read_text: ReadText, packs: Packs) -> None:
    (launch,) = read_text(log(pool_lines()[1]))
    assert [] == rows_of(launch, packs)


@settings(max_examples=60)
@given(kept=st.lists(st.booleans(), min_size=len(BASELINE), max_size=len(BASELINE)))
def test_whatever_lines_are_missing_the_rest_adds_up(read_text: ReadText, packs: Packs, kept: list[bool]) -> None:
    text = b"".join(line for line, keep in zip(BASELINE, kept, strict=True) if keep)
    try:
        launches = read_text(text)
    except NoLaunchError:
        return
    for launch in launches:
        assert_adds_up(ledger_of(launch, packs), launch)
