"""Phases of a rank: what belongs together, how long it took, what it took."""

from __future__ import annotations

from conftest import ReadText, at, gb, graph_lines, init_lines, load_lines, log, pool_lines, rank_lines
from logscope.model import Launch
from logscope.timeline import GAP, PhaseRow, phase_rows, timeline_rows
from logscope.units import GIB, Quantity

LOAD_BEGIN = "Load weight begin. avail mem=94.04 GB"
OLD_LOAD_END = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB."
OLDEST_LOAD_END = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=21.71 GB"
CLOCK_STEPS = 2.0


def only(launch: Launch, phase: str) -> PhaseRow:
    (row,) = [row for row in phase_rows(launch) if row.phase == phase]
    return row


def test_a_printed_elapsed_wins_over_the_clock(read_text: ReadText) -> None:
    (launch,) = read_text(log(*load_lines()))
    row = only(launch, "load_weights")
    assert (Quantity(13.5, 0.01), "printed") == (row.duration, row.duration_from)
    assert Quantity(14.0, CLOCK_STEPS) == row.clock


def test_the_clock_stands_in_where_no_elapsed_is_printed(read_text: ReadText) -> None:
    (launch,) = read_text(log(at("10:00:06", "TP0", LOAD_BEGIN), at("10:00:20", "TP0", OLD_LOAD_END)))
    row = only(launch, "load_weights")
    assert (Quantity(14.0, CLOCK_STEPS), "clock") == (row.duration, row.duration_from)


def test_without_clock_and_elapsed_the_duration_is_unknown(read_text: ReadText) -> None:
    (launch,) = read_text(log(f"[TP0] {LOAD_BEGIN}", f"[TP0] {OLD_LOAD_END}"))
    row = only(launch, "load_weights")
    assert (None, None, None) == (row.duration, row.duration_from, row.clock)


def test_an_undated_clock_passes_midnight(read_text: ReadText) -> None:
    (launch,) = read_text(log(f"[23:59:50 TP0] {LOAD_BEGIN}", f"[00:00:20 TP0] {OLD_LOAD_END}"))
    assert Quantity(30.0, CLOCK_STEPS) == only(launch, "load_weights").duration


def test_a_dated_clock_passes_midnight(read_text: ReadText) -> None:
    lines = [f"[2026-01-05 23:59:50 TP0] {LOAD_BEGIN}", f"[2026-01-06 00:00:20 TP0] {OLD_LOAD_END}"]
    (launch,) = read_text(log(*lines))
    assert Quantity(30.0, CLOCK_STEPS) == only(launch, "load_weights").duration


def test_a_phase_without_an_end_stays_open(read_text: ReadText) -> None:
    (launch,) = read_text(log(*init_lines(), *load_lines()[:1]))
    row = only(launch, "load_weights")
    assert row.is_open
    assert (gb("94.04"), None, None, None) == (row.before and row.before.value, row.after, row.used, row.duration)
    assert not only(launch, "init_torch_distributed").is_open


def test_an_end_without_a_begin_is_a_phase_with_the_printed_duration(read_text: ReadText) -> None:
    (launch,) = read_text(log(load_lines()[1]))
    row = only(launch, "load_weights")
    assert (None, False) == (row.begin, row.is_open)
    assert (Quantity(13.5, 0.01), "printed", None) == (row.duration, row.duration_from, row.clock)
    assert (None, gb("21.71")) == (row.before, row.after and row.after.value)


def test_use_is_what_the_line_prints(read_text: ReadText) -> None:
    (launch,) = read_text(log(*load_lines(used="72.30")))
    row = only(launch, "load_weights")
    assert ("printed", gb("72.30")) == (row.used_from, row.used and row.used.value)


def test_use_is_derived_where_no_line_prints_it(read_text: ReadText) -> None:
    (launch,) = read_text(log(at("10:00:06", "TP0", LOAD_BEGIN), at("10:00:20", "TP0", OLDEST_LOAD_END)))
    row = only(launch, "load_weights")
    assert ("derived", gb("94.04") - gb("21.71")) == (row.used_from, row.used and row.used.value)
    assert row.used is not None
    assert 0.02 * GIB <= row.used.resolution <= 0.02 * GIB + 2, "both ends are rounded"


def test_use_of_the_pools_is_derived_from_the_line_before(read_text: ReadText) -> None:
    (launch,) = read_text(log(*load_lines(), *pool_lines()))
    row = only(launch, "memory_pool")
    assert ("derived", gb("21.71") - gb("11.26")) == (row.used_from, row.used and row.used.value)


def test_use_is_unknown_where_nothing_stands_before(read_text: ReadText) -> None:
    (launch,) = read_text(log(pool_lines()[1]))
    row = only(launch, "memory_pool")
    assert (None, None) == (row.used_from, row.used)


def test_k_and_v_of_a_pool_are_one_use(read_text: ReadText) -> None:
    line = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 165888, K size: 10.13 GB, V size: 9.13 GB")
    (launch,) = read_text(log(line))
    row = only(launch, "kv_cache")
    assert gb("10.13") + gb("9.13") == (row.used and row.used.value)
    assert (None, False) == (row.duration, row.is_open), "points have no duration"


def test_a_negative_use_is_kept(read_text: ReadText) -> None:
    (launch,) = read_text(log(*load_lines("7.48", "9.34", "-1.86")))
    row = only(launch, "load_weights")
    assert gb("-1.86") == (row.used and row.used.value)


def gaps(launch: Launch) -> list[tuple[str | None, float | None]]:
    return [(row.kind, row.duration and row.duration.value) for row in phase_rows(launch) if row.phase == GAP]


def test_a_gap_above_two_seconds_is_a_row(read_text: ReadText) -> None:
    first, second = init_lines(), load_lines(minute="10:02")
    (launch,) = read_text(log(*first, *second))
    assert [("after init_torch_distributed", 121.0)] == gaps(launch)
    assert ["init_torch_distributed", GAP, "load_weights"] == [row.phase for row in phase_rows(launch)]


def test_a_gap_of_two_seconds_is_none(read_text: ReadText) -> None:
    ends_at_5 = init_lines()
    (launch,) = read_text(log(*ends_at_5, at("10:00:07", "TP0", LOAD_BEGIN)))
    assert [] == gaps(launch)
    (launch,) = read_text(log(*ends_at_5, at("10:00:08", "TP0", LOAD_BEGIN)))
    assert [("after init_torch_distributed", 3.0)] == gaps(launch)


def test_no_gap_follows_an_open_phase(read_text: ReadText) -> None:
    (launch,) = read_text(log(init_lines()[0], *load_lines(minute="10:02")))
    assert [] == gaps(launch)


def test_gaps_are_those_of_one_rank(read_text: ReadText) -> None:
    late = load_lines(tag="TP1", minute="10:02")
    (launch,) = read_text(log(*init_lines("TP0"), *init_lines("TP1"), *load_lines(tag="TP0"), *late))
    rows = [row for row in phase_rows(launch) if row.phase == GAP]
    assert [("TP1", 121.0)] == [(row.rank.tag, row.duration and row.duration.value) for row in rows]


def test_graphs_of_different_kinds_are_different_phases(read_text: ReadText) -> None:
    begin, end = graph_lines()
    draft_begin, draft_end = graph_lines("9.85", "9.35", "0.50", kind="draft")
    (launch,) = read_text(log(begin, draft_begin, end, draft_end))
    rows = [(row.kind, row.used and row.used.value) for row in phase_rows(launch)]
    assert [("decode", gb("1.41")), ("draft decode", gb("0.50"))] == rows


def test_a_phase_that_begins_twice_closes_the_second(read_text: ReadText) -> None:
    begin, end = graph_lines()
    (launch,) = read_text(log(begin, begin, end))
    assert [True, False] == [row.is_open for row in phase_rows(launch)]


def test_phases_stand_in_the_order_of_their_first_lines(read_text: ReadText) -> None:
    (launch,) = read_text(log(*rank_lines()))
    assert ["init_torch_distributed", "load_weights", "kv_cache", "memory_pool", "cuda_graph"] == [
        row.phase for row in phase_rows(launch)
    ]


def test_the_timeline_holds_what_states_time_or_memory(read_text: ReadText) -> None:
    (launch,) = read_text(log(*rank_lines(), at("10:00:51", "TP0", "sglang is using nccl==2.28.3")))
    assert [
        ("init_torch_distributed.begin", None, None),
        ("init_torch_distributed.end", None, gb("0.64")),
        ("load_weights.begin", gb("94.04"), None),
        ("load_weights.end", gb("21.71"), gb("72.33")),
        ("kv_cache.allocated", None, gb("10.42")),
        ("memory_pool.end", gb("11.26"), None),
        ("cuda_graph.begin", gb("11.26"), None),
        ("cuda_graph.end", gb("9.85"), gb("1.41")),
    ] == [(row.event, row.avail and row.avail.value, row.used and row.used.value) for row in timeline_rows(launch)]
    assert 8 == len(launch.events) - 1
