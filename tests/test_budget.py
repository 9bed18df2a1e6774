"""The arithmetic of the budget: worked examples, numbers that SGLang printed, and SGLang's own functions where a cache holds releases."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import logscope
import logscope.budget
from conformance.budget_check import SMALL, check_release, report_lines
from conformance.releases import cache_dir
from logscope.budget import (
    Heads,
    Interval,
    KvModel,
    Latent,
    Launch,
    LaunchFlags,
    NotModelled,
    Speculation,
    States,
    Vision,
    Window,
    by_release,
    capacity,
    cell_size,
    default_fraction,
    draft_pool_tokens,
    exact,
    final_tokens,
    fraction_for_rest,
    fraction_for_tokens,
    fraction_in_force,
    headroom,
    hint,
    interval_of,
    least,
    least_fraction,
    longest_context,
    measured_cell_size,
    minimum_fraction,
    padding,
    pool_bytes,
    request_slots,
    requests_that_fit,
    reserve,
    rest,
    rest_for_tokens,
    split_states,
    split_window,
    stored_cell_size,
    tokens,
    total_for_rest,
    union,
)
from logscope.budget.releases import CHANGES, FIRST, LAST_READ
from logscope.units import GIB, parse_number

AVAIL, TOTAL = exact(21.708 * GIB), exact(94.037 * GIB)
DEEPSEEK = KvModel(Latent(512, 64), 61, attention_tp=8)
CELL = 576 * 61 * 2
LLAMA = KvModel(Heads(8, 128), 32)


def gib(text: str) -> Interval:
    """Return the interval that a printed number of GB stands for."""
    quantity = parse_number(text, "GiB")
    assert quantity is not None
    return interval_of(quantity)


# The worked example: 8 cards, DeepSeek, memory known to 0.001 GiB.


@pytest.mark.parametrize(
    ("fraction", "rest_gib", "count", "printed", "printed_in_pages"),
    [
        (0.55, -20.60865, -314896, None, None),
        (0.80, 2.90060, 44320, "2.90", "2.90"),
        (0.827, 5.43960, 83115, "5.44", "5.44"),
        (0.848, 7.41438, 113290, "7.41", "7.42"),
        (0.88, 10.42356, 159269, "10.42", "10.43"),
        (0.90, 12.30430, 188007, "12.30", "12.31"),
    ],
)
def test_worked_example(
    fraction: float, rest_gib: float, count: int, printed: str | None, printed_in_pages: str | None
) -> None:
    budget = rest(AVAIL, TOTAL, exact(fraction))
    assert rest_gib == round(budget.low / GIB, 5)
    assert exact(count) == tokens(budget, CELL, "0.5.9") == tokens(budget, CELL, "0.5.6")
    if printed is not None:
        assert printed == f"{pool_bytes(exact(count), CELL, 1, '0.5.9').low / GIB:.2f}"
        in_pages = exact(final_tokens(count, "0.5.9", page_size=64).tokens)
        assert printed_in_pages == f"{pool_bytes(in_pages, CELL, 64, '0.5.9').low / GIB:.2f}"


def test_implied_fraction_of_the_worked_example() -> None:
    by_size = fraction_for_rest(AVAIL, TOTAL, gib("10.42"))
    assert (0.87991, 0.88002) == (round(by_size.low, 5), round(by_size.high, 5))
    by_count = fraction_for_rest(AVAIL, TOTAL, Interval(158_500 * CELL, 159_500 * CELL))
    assert (0.87946, 0.88016) == (round(by_count.low, 5), round(by_count.high, 5))


def test_implied_fraction_from_numbers_with_two_decimals() -> None:
    """The log of the story: 94.04 before the weights, 21.71 after, 10.42 of KV cache."""
    implied = fraction_for_rest(gib("21.71"), gib("94.04"), gib("10.42"))
    assert (0.8798, 0.8801) == (round(implied.low, 4), round(implied.high, 4))
    assert implied.holds(0.88)
    assert not implied.holds(0.55)
    exactly = fraction_for_rest(gib("21.71"), gib("94.04"), rest_for_tokens(exact(159_269), CELL))
    assert implied.low < exactly.low < 0.88 < exactly.high < implied.high


def test_minimum_and_hint_of_the_worked_example() -> None:
    assert 0.7692 == round(minimum_fraction(AVAIL, TOTAL).low, 4)
    assert exact(0.770) == hint(AVAIL, TOTAL)


def test_total_is_found_again_from_the_rest() -> None:
    budget = rest(AVAIL, TOTAL, exact(0.88))
    found = total_for_rest(AVAIL, exact(0.88), budget)
    assert round(TOTAL.low) == round(found.low)
    with pytest.raises(ValueError, match="nothing is reserved"):
        total_for_rest(AVAIL, exact(1.0), budget)


# Numbers that SGLang printed itself: tests/fixtures.


@pytest.mark.parametrize(
    ("release", "avail", "total", "fraction", "tp", "draft_layers", "count", "size"),
    [
        ("0.4.4", "88.09", "94.98", 0.88, 1, 0, 628_286, "38.35"),
        ("0.4.6.post5", "91.63", "94.98", 0.88, 2, 0, 1_314_572, "40.12"),
        ("0.5.9", "88.09", "94.98", 0.867, 1, 0, 618_171, "37.73"),
        ("0.5.9", "91.63", "94.98", 0.866, 2, 0, 1_292_787, "39.45"),
        ("0.5.9", "94.20", "94.98", 0.858, 8, 0, 5_289_354, "40.35"),
        ("0.5.9", "91.63", "94.98", 0.846, 2, 1, 1_261_665, "38.50"),
        ("0.5.13", "91.63", "94.98", 0.866, 2, 0, 1_292_787, "39.45"),
        ("0.5.14", "91.50", "94.98", 0.866, 2, 1, 1_251_575, "38.20"),
        ("0.5.23", "88.09", "94.98", 0.867, 1, 0, 618_171, "37.73"),
    ],
)
def test_printed_pools_meet_the_formula(
    release: str, avail: str, total: str, fraction: float, tp: int, draft_layers: int, count: int, size: str
) -> None:
    model = replace(LLAMA, attention_tp=tp, draft_layers=draft_layers)
    found = capacity(Launch(gib(avail), gib(total), model), exact(fraction), release)
    assert not isinstance(found, NotModelled)
    assert found.tokens.holds(count)
    assert found.tokens.high - found.tokens.low < 1000
    stored = stored_cell_size(model, release)
    assert not isinstance(stored, NotModelled)
    assert size == f"{pool_bytes(exact(count), stored, 1, release).low / 2 / GIB:.2f}"
    measured = measured_cell_size(gib(size) + gib(size), count, 1, release)
    assert measured.holds(stored)


def test_printed_window_pools_meet_the_formula() -> None:
    model = KvModel(Heads(8, 64), 8, window=Window(8, Heads(8, 64)))
    found = capacity(Launch(gib("93.07"), gib("94.98"), model, window_ratio=0.8), exact(0.868), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert found.tokens.holds(2_932_221)
    assert found.window_tokens is not None
    assert found.window_tokens.holds(2_345_776)


def test_printed_state_pool_meets_the_formula() -> None:
    """0.5.23, a Mamba hybrid: 148,989 states of 1.71 + 36.37 GB, then 1,386,445 tokens of 2 * 21.16 GB."""
    each = measured_cell_size(gib("1.71") + gib("36.37"), 148_989, 1, "0.5.23")
    budget = rest(gib("93.02"), gib("94.98"), exact(0.867))
    low, high = (
        split_states(end, States(round((each.low + each.high) / 2)), "0.5.23") for end in (budget.low, budget.high)
    )
    assert not isinstance(low, NotModelled)
    assert not isinstance(high, NotModelled)
    assert low.states - 50 <= 148_989 <= high.states + 50
    assert Interval(low.rest_bytes, high.rest_bytes).meets(gib("21.16") + gib("21.16"))


@pytest.mark.parametrize(("avail", "minimum", "suggested"), [("88.09", 0.0725, 0.073), ("17.52", 0.8155, 0.816)])
def test_printed_minimum_meets_the_formula(avail: str, minimum: float, suggested: float) -> None:
    found = minimum_fraction(gib(avail), gib("94.98"))
    assert found.meets(Interval(minimum - 0.00005, minimum + 0.00005))
    assert hint(gib(avail), gib("94.98")).holds(suggested)


# Intervals.


def test_interval_ends_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="lower end"):
        Interval(2, 1)
    with pytest.raises(ValueError, match="lower end"):
        Interval(float("nan"), 1)


@given(
    st.floats(1, 100),
    st.floats(0, 0.01),
    st.floats(1, 100),
    st.floats(0, 0.01),
    st.floats(0.01, 0.99),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_results_hold_for_every_value_inside(
    avail: float, width: float, total: float, wide: float, fraction: float, share: float, part: float
) -> None:
    inside = rest(exact(avail + width * share), exact(total + wide * part), exact(fraction))
    outer = rest(Interval(avail, avail + width), Interval(total, total + wide), exact(fraction))
    assert outer.low - 1e-9 <= inside.low <= outer.high + 1e-9


@given(st.floats(5, 90), st.floats(91, 100), st.floats(0.5, 0.95))
def test_fraction_is_found_again_from_the_rest(avail: float, total: float, fraction: float) -> None:
    budget = rest(exact(avail), exact(total), exact(fraction))
    assert pytest.approx(fraction) == fraction_for_rest(exact(avail), exact(total), budget).low


def test_least_is_the_minimum_over_ranks() -> None:
    assert Interval(1, 3) == least([Interval(1, 4), Interval(2, 3)])


# Cell sizes.


@pytest.mark.parametrize(
    ("model", "release", "expected"),
    [
        (LLAMA, "0.1.13", 131_072),
        (LLAMA, "0.5.23", 131_072),
        (replace(LLAMA, attention_tp=16), "0.5.9", 1 * 256 * 32 * 2),
        (KvModel(Heads(8, 192, 128), 10), "0.5.6", 8 * 384 * 10 * 2),
        (KvModel(Heads(8, 192, 128), 10), "0.5.7", 8 * 320 * 10 * 2),
        (DEEPSEEK, "0.5.9", CELL),
        (KvModel(Latent(512, 64, 128), 61), "0.5.3", CELL),
        (KvModel(Latent(512, 64, 128), 61), "0.5.4", CELL + 132 * 61),
        (KvModel(Latent(512, 64, 128, scaled_fp8=True), 61, 1), "0.5.16", (576 + 132) * 61),
        (KvModel(Latent(512, 64, 128, scaled_fp8=True), 61, 1), "0.5.17", (656 + 132) * 61),
        (replace(DEEPSEEK, draft_layers=1), "0.5.13", CELL),
        (replace(DEEPSEEK, draft_layers=1), "0.5.14", CELL + 576 * 2),
        (replace(LLAMA, element_bytes=1, fp4=True), "0.5.6", 32_768 + 65_536 // 16),
        (replace(LLAMA, element_bytes=1, fp4=True), "0.5.16", 32_768 + 65_536 // 16 + 2048),
    ],
)
def test_cell_sizes(model: KvModel, release: str, expected: int) -> None:
    assert expected == cell_size(model, release)


def test_fp8_dsa_pools_are_larger_than_they_are_charged() -> None:
    model = KvModel(Latent(512, 64, 128, scaled_fp8=True), 61, 1)
    assert (708 * 61, 788 * 61) == (cell_size(model, "0.5.9"), stored_cell_size(model, "0.5.9"))
    assert cell_size(model, "0.5.17") == stored_cell_size(model, "0.5.17")


@pytest.mark.parametrize(
    ("model", "release"),
    [
        (replace(DEEPSEEK, unmodelled="DeepSeek V4"), "0.5.23"),
        (DEEPSEEK, "0.2.9"),
        (replace(LLAMA, fp4=True), "0.5.5"),
        (replace(LLAMA, fp4=True), "0.5.21"),
        (replace(LLAMA, fp4=True, window=Window(1, Heads(8, 128))), "0.5.9"),
        (replace(DEEPSEEK, window=Window(1, Heads(8, 128))), "0.5.23"),
    ],
)
def test_what_is_not_modelled_is_never_a_number(model: KvModel, release: str) -> None:
    assert isinstance(cell_size(model, release), NotModelled)
    assert isinstance(stored_cell_size(model, release), NotModelled)
    launch = Launch(AVAIL, TOTAL, model)
    assert isinstance(capacity(launch, exact(0.88), release), NotModelled)
    assert isinstance(least_fraction(launch, 1000, release), NotModelled)


def test_not_modelled_says_why() -> None:
    assert "not modelled: unified pool sizes its pools by its own formula" == str(
        cell_size(replace(LLAMA, unmodelled="unified pool"), "0.5.23")
    )


def test_window_layers_had_no_pool_of_their_own_before_0_4_9_post3() -> None:
    model = KvModel(Heads(8, 128), 12, window=Window(20, Heads(8, 128)))
    assert cell_size(LLAMA, "0.4.9") == cell_size(model, "0.4.9")
    assert isinstance(cell_size(model, "0.5.9"), NotModelled)


def test_padding_is_a_page_from_0_4_4_on() -> None:
    assert (1, 64) == (padding(64, "0.4.3"), padding(64, "0.4.4"))
    with pytest.raises(ValueError, match="tells no cell size"):
        measured_cell_size(gib("1.00"), 0, 1, "0.5.9")


# Pools.


def test_request_slots_by_release() -> None:
    assert 2048 == request_slots(1000, 32_768, "0.5.9")
    assert 2048 == request_slots(-314_896, 32_768, "0.5.9")
    assert 500 == request_slots(1000, 32_768, "0.5.10")
    assert (5120, 4096) == (request_slots(10**7, 1024, "0.3.0"), request_slots(10**7, 1024, "0.3.1"))
    assert (48, 24) == (request_slots(10**6, 1024, "0.5.9", 48, 2), request_slots(10**6, 1024, "0.5.10", 48, 2))
    assert (0, 1) == (request_slots(10**6, 1024, "0.5.22", 1, 2), request_slots(10**6, 1024, "0.5.23", 1, 2))


def test_speculative_headroom_lasted_from_0_4_3_post3_to_0_5_6() -> None:
    speculation = Speculation(3, 4, 8)
    amounts = [headroom(speculation, 48, each) for each in ("0.4.3.post2", "0.4.3.post3", "0.5.6.post2", "0.5.7")]
    assert [0, 48 * 12 + 48 * 8 + 100, 48 * 12 + 48 * 8 + 100, 0] == amounts
    assert 0 == headroom(None, 48, "0.5.6")


def test_draft_pools_by_release() -> None:
    speculation = Speculation(3, 4, 8)
    assert None is draft_pool_tokens(1000, 1000, speculation, 48, "0.4.1.post3")
    assert 1000 + 48 * 3 + 100 == draft_pool_tokens(1000, 1000, speculation, 48, "0.4.3")
    assert 1500 == draft_pool_tokens(1000, 1500, speculation, 48, "0.5.6")


def test_the_limit_that_binds_is_named() -> None:
    assert "fraction" == final_tokens(1000, "0.5.9", max_total_tokens=2000).limit
    capped = final_tokens(3000, "0.5.9", page_size=64, max_total_tokens=2000)
    assert (1984, "max_total_tokens") == (capped.tokens, capped.limit)
    assert "pipeline stage" == final_tokens(3000, "0.5.9", stage_tokens=2000).limit
    assert 3000 == final_tokens(3000, "0.2.7", max_total_tokens=2000).tokens


def test_a_cap_does_not_rescue_a_negative_count() -> None:
    assert -315_008 == final_tokens(-314_960, "0.5.9", page_size=64, max_total_tokens=1000).tokens


def test_a_floor_can_set_the_reserve() -> None:
    assert "fraction" == reserve(TOTAL, exact(0.88)).bound_by
    floored = reserve(TOTAL, exact(0.99), exact(4.0 * GIB))
    assert ("floor", exact(4.0 * GIB)) == (floored.bound_by, floored.amount)
    assert "either" == reserve(gib("100.00"), exact(0.9), gib("10.00")).bound_by


# Windows and states.


def test_window_splits_by_release() -> None:
    model = KvModel(Heads(8, 64), 12, window=Window(12, Heads(8, 64)))
    layer = 8 * 128 * 2
    budget = 1_000_000 * layer * 24
    found = {each: split_window(budget, model, 0.5, each, 64) for each in ("0.4.9.post3", "0.5.7", "0.5.9", "0.5.11")}
    assert 1_333_333 == getattr(found["0.4.9.post3"], "full", None)
    assert 2_666_624 == getattr(found["0.5.7"], "full", None), "only full layers are charged, and the split is the same"
    assert {1_333_312} == {getattr(found[each], "full", None) for each in ("0.5.9", "0.5.11")}
    assert isinstance(split_window(budget, model, 0.5, "0.4.9"), NotModelled)
    assert isinstance(split_window(budget, LLAMA, 0.5, "0.5.9"), NotModelled)


def test_a_window_pool_alone_takes_all() -> None:
    model = KvModel(Heads(8, 64), 0, window=Window(10, Heads(8, 64)))
    found = split_window(20_480 * 1000, model, 0.1, "0.5.9")
    assert not isinstance(found, NotModelled)
    assert (0, 1000, 1000) == (found.full, found.window, found.max_total_tokens)


def test_states_take_their_share_in_whole_states() -> None:
    found = split_states(1900.0, States(100, ratio=0.9), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert (9, 1000.0, 3) == (found.states, found.rest_bytes, found.requests)
    padded = split_states(1900.0, States(100, ratio=0.9), "0.5.17")
    assert not isinstance(padded, NotModelled)
    assert (8, 1000.0) == (padded.states, padded.rest_bytes)


def test_states_that_are_not_modelled() -> None:
    assert isinstance(split_states(1.0, States(1), "0.5.1"), NotModelled)
    assert isinstance(split_states(1.0, States(1, replay=True), "0.5.20"), NotModelled)
    assert isinstance(split_states(1.0, States(1, draft_tokens=4), "0.5.9"), NotModelled)


# Default fractions.


@pytest.mark.parametrize(
    ("release", "flags", "expected"),
    [
        ("0.1.13", LaunchFlags(97887.0, tp=8), 0.80),
        ("0.1.20", LaunchFlags(97887.0, tp=8), 0.78),
        ("0.1.26", LaunchFlags(97887.0, tp=8), 0.84),
        ("0.2.15", LaunchFlags(97887.0, tp=8), 0.83),
        ("0.3.6", LaunchFlags(97887.0, tp=8), 0.82),
        ("0.4.5", LaunchFlags(97887.0, tp=8), 0.81),
        ("0.4.6.post5", LaunchFlags(97887.0, tp=8), 0.88),
        ("0.4.8", LaunchFlags(97887.0, tp=8), 0.833),
        ("0.4.8", LaunchFlags(97887.0, tp=8, speculative="EAGLE"), 0.812),
        ("0.5.9", LaunchFlags(97887.0, tp=8), 0.848),
        ("0.5.9", LaunchFlags(97887.0, tp=8, speculative="EAGLE"), 0.827),
        ("0.5.9", LaunchFlags(97887.0, tp=8, chunked_prefill_size=6144), 0.88),
        ("0.5.10", LaunchFlags(97887.0, tp=8, mla=True), 0.833),
        ("0.5.10", LaunchFlags(97887.0, tp=8, mla=True, speculative="EAGLE"), 0.791),
        ("0.5.14", LaunchFlags(97887.0, tp=8, mla=True, speculative="EAGLE"), 0.833),
        ("0.5.14", LaunchFlags(97887.0, tp=8, mla=True, prefill_graphs=False), 0.848),
        ("0.5.3", LaunchFlags(97887.0, tp=8, dsa=True), 0.8),
        ("0.5.19", LaunchFlags(None), 0.88),
        ("0.5.20", LaunchFlags(None), 0.95),
    ],
)
def test_default_fractions(release: str, flags: LaunchFlags, expected: float) -> None:
    found = default_fraction(flags, release)
    assert not isinstance(found, NotModelled)
    assert expected == found.printed


def test_a_multimodal_default_has_many_decimals() -> None:
    found = default_fraction(LaunchFlags(97887.0, tp=8, vision=Vision(27, 1152)), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert 0.7714564062499999 == found.printed == found.in_force


def test_a_multimodal_model_reduces_a_given_fraction_to_0_4_8() -> None:
    flags = LaunchFlags(None, vision=Vision())
    found = [fraction_in_force(0.8, flags, each) for each in ("0.2.14", "0.4.4.post3", "0.4.8.post1", "0.4.9")]
    assert [0.8, 0.76, 0.72, 0.8] == [round(each, 10) for each in found]


def test_the_terms_of_a_reserve_add_up() -> None:
    found = default_fraction(LaunchFlags(143771.0, tp=2, speculative="EAGLE", deepep=True), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert found.reserved_mib == sum(amount for _, amount in found.terms)


def test_an_unknown_card_is_not_modelled_where_sglang_must_know_it() -> None:
    assert isinstance(default_fraction(LaunchFlags(None), "0.4.6"), NotModelled)


# All together, and the ways back.


def test_the_least_fraction_gives_what_is_wanted_and_no_less_does() -> None:
    launch = Launch(AVAIL, TOTAL, DEEPSEEK, page_size=64)
    found = least_fraction(launch, 100_000, "0.5.9")
    assert isinstance(found, Interval)
    enough, short = (capacity(launch, exact(found.high + step), "0.5.9") for step in (1e-9, -1e-9))
    assert not isinstance(enough, NotModelled)
    assert not isinstance(short, NotModelled)
    assert enough.tokens.low >= 100_000 > short.tokens.low
    assert pytest.approx(fraction_for_tokens(AVAIL, TOTAL, 100_032, CELL).low) == found.low


def test_no_fraction_gives_more_than_a_cap_allows() -> None:
    launch = Launch(AVAIL, TOTAL, DEEPSEEK, max_total_tokens=1000)
    assert "no fraction" == least_fraction(launch, 2000, "0.5.9")
    assert "no fraction" == least_fraction(Launch(AVAIL, TOTAL, DEEPSEEK), 10**6, "0.5.9")


def test_a_measured_cell_stands_in_for_a_model() -> None:
    found = capacity(Launch(AVAIL, TOTAL, None, measured_cell=CELL), exact(0.88), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert exact(159_269) == found.tokens
    assert isinstance(capacity(Launch(AVAIL, TOTAL, None), exact(0.88), "0.5.9"), NotModelled)


def test_limits_stay_open_where_intervals_leave_them_open() -> None:
    launch = Launch(gib("21.71"), gib("94.04"), DEEPSEEK, max_total_tokens=159_269)
    found = capacity(launch, exact(0.88), "0.5.9")
    assert not isinstance(found, NotModelled)
    assert ("fraction", "max_total_tokens") == found.limits


def test_headroom_needs_the_number_of_requests() -> None:
    launch = Launch(AVAIL, TOTAL, DEEPSEEK, speculation=Speculation(1, 1, 2))
    assert isinstance(capacity(launch, exact(0.88), "0.5.6"), NotModelled)
    found = capacity(replace(launch, max_running_requests=48), exact(0.88), "0.5.6")
    assert not isinstance(found, NotModelled)
    assert exact(159_269 + 48 * 3 + 100) == found.tokens


def test_what_fits() -> None:
    assert (5, 0, 0) == (requests_that_fit(46_611, 8192), requests_that_fit(46_611, 131_072), requests_that_fit(-5, 10))
    assert 15_537 == longest_context(46_611, 3)


# Ranges of releases.


def test_results_over_a_range_of_releases_are_joined() -> None:
    drafted = replace(DEEPSEEK, draft_layers=1)
    found = by_release(lambda each: cell_size(drafted, each), "0.5.9", None)
    assert [("0.5.9", "0.5.14", CELL), ("0.5.14", None, CELL + 1152)] == [
        (each.since, each.until, each.result) for each in found
    ]
    numbers = by_release(lambda each: tokens(exact(10.0 * GIB), CELL, each), "0.4.0", "0.5.0")
    assert 1 == len(numbers)
    with pytest.raises(ValueError, match="no release"):
        by_release(str, "0.5.9", "0.5.9")


def test_the_union_of_results_holds_them_all() -> None:
    def formula(release: str) -> Interval | NotModelled:
        cell = cell_size(replace(DEEPSEEK, draft_layers=1), release)
        return cell if isinstance(cell, NotModelled) else tokens(exact(10.0 * GIB), cell, release)

    joined = union(by_release(formula, "0.5.9", None))
    assert Interval(10 * GIB // (CELL + 1152), 10 * GIB // CELL) == joined
    assert isinstance(union(by_release(formula, None, None)), NotModelled)


def test_every_release_that_a_formula_names_is_a_change() -> None:
    """Else a range of releases could miss it."""
    named: set[str] = set()
    for path in Path(logscope.budget.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(re.findall(r"^0\.\d+\.\d+(?:\.post\d+)?$", node.value))
    assert len(named) > 30
    assert named <= {*CHANGES, FIRST, LAST_READ}


def test_only_the_budget_takes_the_complement_of_a_fraction() -> None:
    package = Path(logscope.__file__).parent
    found = [
        path.name
        for path in package.rglob("*.py")
        if "budget" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Constant)
        and node.left.value in (1, 1.0)
    ]
    assert [] == found


# SGLang's own functions.


@pytest.mark.conformance
@pytest.mark.parametrize("release", SMALL)
def test_sglang_gives_the_same_numbers(release: str) -> None:
    """Downloads the release if the cache does not hold it."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    checked = check_release(release)
    assert [] == checked.differences, "\n".join(report_lines([checked]))
    assert sum(tally.equal for tally in checked.tallies.values()) > 1000
