"""What a log says of the size of its KV cache: bounds computed by hand from the printed numbers."""

from __future__ import annotations

import pytest

from conftest import FIRED_UP, NO_MEMORY, ReadText, at, graph_lines, load_lines, log, pool_lines, printed_args
from logscope.budget import Interval, exact
from logscope.model import Launch
from logscope.rank import Rank
from logscope.sizing import (
    Profile,
    Sizing,
    WhatIf,
    fraction_used,
    grant_for,
    least_viable,
    size_up,
    suggested_fraction,
    worth,
)
from logscope.sizing.suggest import default_reserve
from logscope.units import GIB

HALF = 0.005  # half of the last digit of "21.71 GB"


def gib(amount: Interval) -> tuple[float, float]:
    return amount.low / GIB, amount.high / GIB


def near(low: float, high: float, apart: float = 1e-6) -> object:
    return pytest.approx((low, high), abs=apart)


def rank_of(tag: str) -> Rank:
    return Rank(tag=tag, tp=int(tag.removeprefix("TP")))


@pytest.fixture
def sized(read_text: ReadText) -> object:
    """Read lines and return the figures of their one launch."""

    def size(*lines: str) -> Sizing:
        (launch,) = read_text(log(*lines))
        return size_up(launch)

    return size


class Size:
    """How the fixture ``sized`` is called."""

    def __call__(self, *lines: str) -> Sizing: ...


# -- whole logs ------------------------------------------------------------------------------------------------------------------

# case -> T and A as printed, the fraction implied, that in force, the least. By hand: T and A +- 0.005, each printed size +- 0.005.
# implied = 1 - (A + .005 - sizes + n * .005) / (T - .005) .. 1 - (A - .005 - sizes - n * .005) / (T + .005), n sizes.
IMPLIED = {
    "0.4.4-new-fakecuda-tp1": (94.98, 88.09, (0.87992, 0.88024), 0.88, (0.07244, 0.07264)),  # 38.35 + 38.35
    "0.4.6.post5-new-fakecuda-tp2": (94.98, 91.63, (0.87992, 0.88024), 0.88, (0.03517, 0.03537)),  # 40.12 + 40.12
    "0.5.13-new-fakecuda-tp2": (94.98, 91.63, (0.86581, 0.86614), 0.866, (0.03517, 0.03537)),  # 39.45 + 39.45
    "0.5.14-new-eagle-tp2": (94.98, 91.50, (0.86581, 0.86635), 0.866, (0.03654, 0.03674)),  # 38.20 * 2 + draft 1.19 * 2
    "0.5.23-fakecuda-tp1": (94.98, 88.09, (0.86686, 0.86719), 0.867, (0.07244, 0.07264)),  # 37.73 + 37.73
    "0.5.23-new-mamba-tp1": (94.98, 93.02, (0.86686, 0.86740), 0.867, (0.02053, 0.02074)),  # 1.71 + 36.37 + 21.16 * 2
    "0.5.9-fakecuda-graph-oom": (94.98, 88.09, (0.86686, 0.86719), 0.867, (0.07244, 0.07264)),
    "0.5.9-fakecuda-tp2-dp2": (94.98, 91.63, (0.86581, 0.86614), 0.866, (0.03517, 0.03537)),
    "0.5.9-fakecuda-tp8": (94.98, 94.20, (0.85770, 0.85803), 0.858, (0.00811, 0.00832)),  # 40.35 + 40.35
    "0.5.9-new-eagle-tp2": (
        94.98,
        91.63,
        (0.84580, 0.84613),
        0.846,
        (0.03517, 0.03537),
    ),  # 38.50 * 2; the draft does not count
    "0.5.9-new-swa-tp1": (94.98, 93.07, (0.86781, 0.86835), 0.868, (0.02001, 0.02021)),  # 17.90 * 2 + 22.37 * 2
    "0.5.9-ok": (21.23, 21.23, (0.84335, 0.84483), 0.844, (0.0, 0.00047)),  # 8.96 + 8.96
    "0.5.23-ok": (21.07, 21.07, (0.71398, 0.71554), 0.716, (0.0, 0.00047)),  # 7.53 + 7.53; 0.33 GiB went in between
    "baseline": (94.04, 21.71, (0.87983, 0.88006), 0.88, (0.76908, 0.76921)),  # 10.42
    "baseline_grep": (94.04, 21.71, (0.87983, 0.88006), None, (0.76908, 0.76921)),
}
CAPPED = {
    "0.4.10.post2-ok": 0.88,
    "0.5.23-kill9-scheduler": 0.716,
    "0.5.23-port-in-use": 0.716,
}  # max_total_tokens=20000


def test_every_log_with_a_pool_is_compared(fixture_launches: dict[str, Launch]) -> None:
    with_pools = [case for case, launch in fixture_launches.items() if size_up(launch).size is not None]
    assert sorted({*IMPLIED, *CAPPED}) == sorted(with_pools)
    assert 12 <= len(IMPLIED)


@pytest.mark.parametrize("case", IMPLIED)
def test_the_pool_implies_the_fraction_in_force(case: str, fixture_launches: dict[str, Launch]) -> None:
    total, avail, implied, in_force, minimum = IMPLIED[case]
    sizing = size_up(fixture_launches[case])
    assert sizing.total is not None and sizing.avail is not None
    assert near(total - HALF, total + HALF) == gib(sizing.total.amount)
    assert near(avail - HALF, avail + HALF) == gib(sizing.avail.amount)
    fraction = sizing.fraction
    assert fraction.implied is not None and fraction.minimum is not None
    assert near(*implied, apart=2e-5) == (fraction.implied.low, fraction.implied.high)
    assert near(*minimum, apart=2e-5) == (fraction.minimum.low, fraction.minimum.high)
    assert in_force == fraction.in_force
    assert ("unknown" if in_force is None else "meets") == fraction.verdict
    assert not fraction.is_floor
    assert "fraction" == sizing.bound_by


@pytest.mark.parametrize("case", CAPPED)
def test_a_cap_makes_the_implied_fraction_a_floor(case: str, fixture_launches: dict[str, Launch]) -> None:
    sizing = size_up(fixture_launches[case])
    assert (True, CAPPED[case], "meets") == (
        sizing.fraction.is_floor,
        sizing.fraction.in_force,
        sizing.fraction.verdict,
    )
    assert ("max_total_tokens", 20000) == (sizing.bound_by, sizing.tokens and sizing.tokens.amount.low)


def test_the_least_fraction_of_the_story(fixture_launches: dict[str, Launch]) -> None:
    """1 - 21.705 / 94.025 = 0.76916 and 1 - 21.695 / 94.035 = 0.76929; the DEBUG lines have one digit more."""
    for case, low, high in (
        ("car", 0.76916, 0.76929),
        ("car_050", 0.76916, 0.76929),
        ("baseline_debug_nocar", 1 - 21.7085 / 94.0365, 1 - 21.7075 / 94.0375),
    ):
        minimum = size_up(fixture_launches[case]).fraction.minimum
        assert minimum is not None
        assert near(low, high, 1e-5) == (minimum.low, minimum.high), case


def test_all_ranks_that_print_the_least_limit(fixture_launches: dict[str, Launch]) -> None:
    assert [f"TP{number}" for number in range(8)] == [rank.tag for rank in size_up(fixture_launches["car"]).limiting]


# -- one launch by hand --------------------------------------------------------------------------------------------------------

GOOD = [
    *load_lines(),
    *pool_lines(),
    *graph_lines(),
]  # T 94.04, A 21.71, 10.42 for 159,269 tokens, 11.26 after: 0.03 unexplained


@pytest.mark.parametrize(
    ("in_force", "verdict"),
    [
        (0.55, "below"),
        (0.8798, "below"),  # implied from 0.879831 on
        (0.8799, "meets"),
        (0.88, "meets"),
        (0.8801, "meets"),  # implied to 0.880057; 0.03 + 0.015 GiB of 94.035 may have gone before: 0.000479 more
        (0.8805, "meets"),
        (0.8806, "above"),
        (0.95, "above"),
    ],
)
def test_only_what_printing_and_the_window_cannot_explain_is_a_contradiction(
    in_force: float, verdict: str, sized: Size
) -> None:
    assert verdict == sized(printed_args(mem_fraction_static=in_force), *GOOD).fraction.verdict


def test_the_window_before_the_pool_is_slack(sized: Size) -> None:
    """2.00 GiB less are free after the pool than A - 10.42: 2.03 +- 0.015 of 94.035 may be missing, which 0.90 does not exceed."""
    lines = [*load_lines(), *pool_lines(after="9.26")]
    fraction = sized(printed_args(mem_fraction_static=0.90), *lines).fraction
    assert "meets" == fraction.verdict
    assert fraction.slack == pytest.approx(2.045 / 94.035, abs=1e-7)
    assert "above" == sized(printed_args(mem_fraction_static=0.902), *lines).fraction.verdict
    assert "below" == sized(printed_args(mem_fraction_static=0.8798), *lines).fraction.verdict


def test_without_a_line_after_the_pool_nothing_is_above(sized: Size) -> None:
    fraction = sized(printed_args(mem_fraction_static=0.95), *load_lines(), pool_lines()[0]).fraction
    assert (None, "unknown") == (fraction.slack, fraction.verdict)


@pytest.mark.parametrize("in_force", [0.55, 0.95])
@pytest.mark.parametrize(
    "args",
    [{"device": "cpu"}, {"device": "mps"}, {"tp_size": 2}, {"tp_size": 1, "pp_size": 2}],
    ids=["cpu", "mps", "a rank of tp is missing", "a stage is missing"],
)
def test_no_accusation_on_a_shared_device_or_without_all_ranks(
    args: dict[str, object], in_force: float, sized: Size
) -> None:
    fraction = sized(printed_args(mem_fraction_static=in_force, **args), *GOOD).fraction
    assert "unknown" == fraction.verdict
    assert fraction.implied is not None


def test_aiter_to_0_5_4_reduces_the_fraction_unseen_so_that_there_is_no_accusation(sized: Size) -> None:
    """0.85 * 0.88 ran, and the arguments print 0.88: the wording allows 0.5.4 and earlier."""
    old = [
        load_lines()[0],
        at("10:00:20", "TP0", "Load weight end. type=M, dtype=d, avail mem=21.71 GB, mem usage=72.33 GB."),
    ]
    args = {"mem_fraction_static": 0.55}
    assert "unknown" == sized(printed_args(**args, attention_backend="aiter"), *old, *pool_lines()).fraction.verdict
    assert "below" == sized(printed_args(**args, attention_backend="triton"), *old, *pool_lines()).fraction.verdict
    assert "below" == sized(printed_args(**args, attention_backend="aiter"), *GOOD).fraction.verdict


def test_a_cap_accuses_only_from_below(sized: Size) -> None:
    cap = {"max_total_tokens": 159269}
    for in_force, verdict in ((0.95, "meets"), (0.88, "meets"), (0.8798, "below")):
        sizing = sized(printed_args(mem_fraction_static=in_force, **cap), *GOOD)
        assert ("max_total_tokens", True, verdict) == (
            sizing.bound_by,
            sizing.fraction.is_floor,
            sizing.fraction.verdict,
        )


def test_a_cap_is_cut_to_pages(sized: Size) -> None:
    """159,300 is 2,489 pages of 64 and 4 tokens: 159,296."""
    pool = [at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 159296, KV size: 10.42 GB"), pool_lines()[1]]
    capped = sized(printed_args(max_total_tokens=159300, page_size=64), *load_lines(), *pool)
    assert ("max_total_tokens", 64, True) == (capped.bound_by, capped.page_size, capped.page_known)
    assert sized(printed_args(max_total_tokens=159300, page_size=1), *load_lines(), *pool).bound_by is None
    typed = "+ python3 -m sglang.launch_server --model-path /models/m --max-total-tokens 159296"
    assert "max_total_tokens" == sized(typed, *load_lines(), *pool).bound_by


def test_a_cap_above_the_profiled_value_binds_nothing(sized: Size) -> None:
    said = at(
        "10:00:21", "TP0",
        "max_total_tokens=159269 is larger than the profiled value 159269. Use the profiled value instead.",
    )  # fmt: skip
    sizing = sized(printed_args(mem_fraction_static=0.88, max_total_tokens=159269), *load_lines(), said, *pool_lines())
    assert ("fraction", False) == (sizing.bound_by, sizing.fraction.is_floor)


@pytest.mark.parametrize(("tokens", "is_floor"), [(159000, True), (159269, False)])
def test_a_round_capacity_may_be_that_of_a_cap_where_the_log_has_no_arguments(
    tokens: int, is_floor: bool, sized: Size
) -> None:
    pool = [line.replace("159269", str(tokens)) for line in pool_lines()]
    sizing = sized(*load_lines(), *pool)
    assert (is_floor, False) == (sizing.fraction.is_floor, sizing.bound_by == "max_total_tokens")
    assert not sized(printed_args(mem_fraction_static=0.88), *load_lines(), *pool).fraction.is_floor


def test_free_memory_that_the_pools_left_is_not_what_they_were_sized_by(sized: Size) -> None:
    """Of TP1 only lines after its pools are there: it limits nothing, and A is TP0's."""
    sizing = sized(printed_args(tp_size=2), *GOOD, *pool_lines(tag="TP1")[1:], *graph_lines(tag="TP1"))
    assert sizing.avail is not None
    assert ([Rank("TP0", tp=0)], pytest.approx(21.705 * GIB)) == (list(sizing.limiting), sizing.avail.amount.low)
    assert sized(*graph_lines()).avail is None


def test_a_pool_line_after_the_end_of_all_pools_is_not_paid_from_what_they_left(sized: Size) -> None:
    """As where lines of a second are in disorder: 1 - (11.26 - 10.42) / 94.04 would be a fraction of 0.99, and an accusation."""
    sizing = sized(printed_args(mem_fraction_static=0.88), *load_lines(), *reversed(pool_lines()))
    assert sizing.avail is not None and pytest.approx(21.705 * GIB) == sizing.avail.amount.low
    assert (None, "unknown") == (sizing.fraction.implied, sizing.fraction.verdict)  # the pool is taken for a draft's


def test_a_fraction_above_1_is_none(sized: Size) -> None:
    """9.95 GiB before a pool of 10.42: no contradiction yet, and 1 - (9.95 - 10.42) / 94.04 = 1.005."""
    lines = [*load_lines(after="9.95", used="84.09"), *pool_lines()]
    fraction = sized(printed_args(mem_fraction_static=0.88), *lines).fraction
    assert (None, "unknown") == (fraction.implied, fraction.verdict)


def test_the_least_rank_is_what_counts(sized: Size) -> None:
    second = [*load_lines(after="19.11", used="74.93", tag="TP1"), *pool_lines(after="8.69", tag="TP1")]
    first = [*load_lines(), *pool_lines()]
    sizing = sized(printed_args(tp_size=2), *(line for pair in zip(first, second, strict=True) for line in pair))
    assert ("TP1",) == tuple(rank.tag for rank in sizing.limiting)
    assert sizing.avail is not None and sizing.fraction.implied is not None
    assert near(19.105, 19.115) == gib(sizing.avail.amount)
    low, high = 1 - (19.115 - 10.415 * 159269 / 159270) / 94.035, 1 - (19.105 - 10.425) / 94.045
    assert near(low, high) == (sizing.fraction.implied.low, sizing.fraction.implied.high)


def test_memory_that_lines_say_was_taken_before_the_pool_is_taken_off(sized: Size) -> None:
    """The window of A: free after the weights, less 0.50 GiB that a line of the pools says was taken."""
    said = at(
        "10:00:21",
        "TP0",
        "gfx950 fused DSA indexer: workspace preallocated (max_cols=131072, 512 MiB) before pool sizing",
    )
    sizing = sized(*load_lines(), said, *pool_lines())
    assert sizing.avail is not None
    assert near(21.705 - 0.5, 21.715 - 0.5, 5e-4) == gib(sizing.avail.amount)
    assert sizing.avail.derived


def test_free_memory_before_the_weights_is_derived_where_no_line_states_it(sized: Size) -> None:
    total = sized(load_lines()[1], *pool_lines()).total
    assert total is not None
    assert near(94.03, 94.05) == gib(total.amount)
    assert total.derived


# -- the cell ------------------------------------------------------------------------------------------------------------------


def cell_of(launch: Launch) -> tuple[tuple[float, float], tuple[float, float], str]:
    cell = size_up(launch).cell
    assert cell is not None
    return (cell.size.low, cell.size.high), (cell.charged.low, cell.charged.high), cell.source


@pytest.mark.parametrize(
    ("case", "size", "charged"),
    [
        ("baseline", (70214.2343, 70281.6508), None),  # 10.415 and 10.425 GiB over 159,269 + 1 rows
        ("0.5.23-fakecuda-tp1", (131053.8501, 131088.5894), None),  # 75.45 and 75.47 over 618,171 + 1
        ("0.5.14-new-eagle-tp2", (65535.8827, 65553.0409), (67569.1337, 67603.4502)),  # and the draft's 2.37..2.39
        (
            "0.5.9-new-eagle-tp2",
            (65522.3990, 65539.4200),
            None,
        ),  # 76.99 and 77.01 over 1,261,665 + 1: the draft is not charged
        ("0.5.23-new-mamba-tp1", (32767.2456, 32782.7347), None),  # states are per request, not per token
    ],
)
def test_bytes_per_token_are_size_over_tokens_and_a_page(
    case: str, size: tuple[float, float], charged: tuple[float, float] | None, fixture_launches: dict[str, Launch]
) -> None:
    own, all_that_counts, source = cell_of(fixture_launches[case])
    assert near(*size, apart=1e-3) == own
    assert near(*(charged or size), apart=1e-3) == all_that_counts
    assert "pool line" == source


def test_a_sliding_window_pool_is_charged_by_its_share(fixture_launches: dict[str, Launch]) -> None:
    """Full: 44.73..44.75 over 2,932,222 rows; window: 35.79..35.81 over 2,345,777 rows, for 2,345,776 of 2,932,221 tokens."""
    share = 2345776 / 2932221
    low = 44.73 * GIB / 2932222 + share * 35.79 * GIB / 2345777
    high = 44.75 * GIB / 2932222 + share * 35.81 * GIB / 2345777
    assert near(low, high, 1e-3) == cell_of(fixture_launches["0.5.9-new-swa-tp1"])[1]
    assert (29485.4, 29500.1) == pytest.approx((low, high), abs=0.1)


def test_a_pasted_line_is_enough_for_the_cell(sized: Size) -> None:
    """8.225..8.235 twice over 367,404 + 1 rows."""
    sizing = sized("KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB")
    assert sizing.cell is not None and sizing.size is not None
    assert near(48075.1569, 48133.6069, 1e-3) == (sizing.cell.size.low, sizing.cell.size.high)
    assert near(16.45, 16.47) == gib(sizing.size)
    assert (None, None, None) == (sizing.avail, sizing.fraction.implied, sizing.fraction.minimum)


def test_a_page_is_padding(sized: Size) -> None:
    """16.45..16.47 over 367,404 + 64 rows."""
    sizing = sized(
        printed_args(page_size=64), "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 367404, KV size: 16.46 GB"
    )
    assert sizing.cell is not None
    assert near(16.455 * GIB / 367468, 16.465 * GIB / 367468, 1e-3) == (sizing.cell.size.low, sizing.cell.size.high)


def test_where_padding_may_be_a_row_or_a_page_the_bounds_hold_both(sized: Size) -> None:
    """This wording is of 0.4.3.post3 to 0.5.12, and a page is padding from 0.4.4 on: 16.45 / 367,468 .. 16.47 / 367,405."""
    sizing = sized(
        printed_args(page_size=64), "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"
    )
    assert sizing.cell is not None
    assert near(48066.9147, 48133.6069, 1e-3) == (sizing.cell.size.low, sizing.cell.size.high)


@pytest.mark.parametrize("tokens", [0, -561981])
def test_a_pool_of_no_tokens_has_no_cell(tokens: int, sized: Size) -> None:
    assert (
        sized(*load_lines(), at("10:00:21", "TP0", f"KV Cache is allocated. #tokens: {tokens}, KV size: 0.00 GB")).cell
        is None
    )


def test_the_debug_line_gives_the_cell_exactly(fixture_launches: dict[str, Launch]) -> None:
    assert ((70272, 70272), (70272, 70272), "DEBUG line") == cell_of(fixture_launches["car_debug"])


# -- what is not modelled --------------------------------------------------------------------------------------------------------

OLD_LOAD = [
    load_lines()[0],
    at("10:00:20", "TP0", "Load weight end. type=M, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB."),
]  # 0.4.3.post3 to 0.5.8
FP8 = at("10:00:21", "TP0", "Using KV cache dtype: torch.float8_e4m3fn")
DSA = at("10:00:00", "", "Setting page size to 64 for DeepSeek DSA.")
WINDOW = at("10:00:21", "TP0", "Use sliding window memory pool. full_layer_tokens=159269, swa_layer_tokens=65536")
UNIFIED = at(
    "10:00:22",
    "TP0",
    "[unified-memory-pool] UnifiedKVPool allocated: total_bytes=20.00 GB (=21474836480 B), 2 sub-pool(s)",
)
NOT_MODELLED = [
    (
        "FP8 of DSA",
        [printed_args(), DSA, *load_lines(), FP8, *pool_lines()],
        "FP8 pools of DSA models are larger than what is charged for them (to 0.5.16): the fraction is not inferred",
    ),
    (
        "speculative headroom",
        [printed_args(speculative_algorithm="EAGLE"), *OLD_LOAD, *pool_lines()],
        "the pool has speculative headroom beyond the budget (to 0.5.6): the fraction is not inferred from it",
    ),
    (
        "sliding windows",
        [printed_args(), *OLD_LOAD, WINDOW, *pool_lines()],
        "the pools of sliding-window models may be larger than the budget (0.5.7): the fraction is not inferred",
    ),
    (
        "a formula of its own",
        [printed_args(), *load_lines(), UNIFIED, *pool_lines()],
        "this model's pools have a formula of their own: the fraction is not inferred from them",
    ),
]
MODELLED = [
    ("DSA without FP8", [printed_args(), DSA, *load_lines(), *pool_lines()]),
    ("FP8 without DSA", [printed_args(), *load_lines(), FP8, *pool_lines()]),
    ("speculation from 0.5.7 on", [printed_args(speculative_algorithm="EAGLE"), *load_lines(), *pool_lines()]),
    ("no speculation", [printed_args(), *OLD_LOAD, *pool_lines()]),
    ("sliding windows from 0.5.8 on", [printed_args(), *load_lines(), WINDOW, *pool_lines()]),
]


@pytest.mark.parametrize(("lines", "note"), [each[1:] for each in NOT_MODELLED], ids=[each[0] for each in NOT_MODELLED])
def test_what_is_not_modelled_gives_a_note_and_no_fraction(lines: list[str], note: str, sized: Size) -> None:
    sizing = sized(*lines)
    assert (note,) == sizing.notes
    assert (None, "unknown") == (sizing.fraction.implied, sizing.fraction.verdict)
    assert sizing.fraction.minimum is not None


@pytest.mark.parametrize("lines", [each[1] for each in MODELLED], ids=[each[0] for each in MODELLED])
def test_its_neighbours_are_modelled(lines: list[str], sized: Size) -> None:
    sizing = sized(*lines)
    assert () == sizing.notes
    assert sizing.fraction.implied is not None


def test_a_cpu_gets_a_note_beside_its_figures(sized: Size) -> None:
    sizing = sized(printed_args(device="cpu"), *GOOD)
    assert (
        "the device shares memory with the host, where other processes take and give at any time: these figures are estimates",
    ) == sizing.notes
    assert sizing.fraction.implied is not None


# -- typed, in force -----------------------------------------------------------------------------------------------------------

TYPED = "+ python3 -m sglang.launch_server --model-path /models/m --mem-fraction-static 0.9"
ADJUSTED = at("10:00:01", "", "Multimodal model: Dynamically adjusted --mem-fraction-static from: 0.874 to: 0.817.")
DEBUG = (
    "DEBUG profile_max_num_token: avail=21.708 GiB, total=94.037 GiB, fraction=0.55, reserved=42.316 GiB, rest=-20.608 GiB, "
    "cell_size=70272, max_tokens=-314887"
)


@pytest.mark.parametrize(
    ("lines", "typed", "in_force", "at_line", "adjusted"),
    [
        ([TYPED], 0.9, None, None, None),
        ([printed_args(mem_fraction_static=0.88)], None, 0.88, 1, None),
        ([TYPED, printed_args(mem_fraction_static=0.88)], 0.9, 0.88, 2, None),
        ([printed_args(mem_fraction_static=0.874), ADJUSTED], None, 0.817, 2, "Multimodal model"),
        ([TYPED, ADJUSTED, printed_args(mem_fraction_static=0.817)], 0.9, 0.817, 3, "Multimodal model"),
        ([*load_lines(), NO_MEMORY], None, 0.55, 3, None),
        ([printed_args(mem_fraction_static=0.5), *load_lines(), NO_MEMORY], None, 0.5, 1, None),
        ([*load_lines(), at("10:00:21", "TP0", DEBUG)], None, 0.55, 3, None),
        ([printed_args()], None, None, None, None),
        ([printed_args(mem_fraction_static=None)], None, None, None, None),
    ],
    ids=["typed", "args", "both", "adjusted after", "adjusted before", "failure", "args win", "DEBUG", "none", "None"],
)  # fmt: skip
def test_what_was_typed_and_what_is_in_force(
    lines: list[str], typed: float | None, in_force: float | None, at_line: int | None, adjusted: str | None, sized: Size
) -> None:  # fmt: skip
    fraction = sized(*lines).fraction
    assert (typed, in_force, adjusted) == (fraction.typed, fraction.in_force, fraction.adjusted)
    assert at_line == (fraction.in_force_at and fraction.in_force_at.line)
    assert (typed and 1) == (fraction.typed_at and fraction.typed_at.line)


# -- DEBUG lines ---------------------------------------------------------------------------------------------------------------


def profile_of(read_text: ReadText, text: str) -> Profile:
    (launch,) = read_text(log(*load_lines(), at("10:00:21", "TP0", text)))
    (profile,) = size_up(launch).profiles
    return profile


def test_the_debug_lines_of_the_story_are_confirmed(fixture_launches: dict[str, Launch]) -> None:
    for case, tokens in (("baseline_debug_nocar", -314887), ("car_debug", -314981)):
        profiles = size_up(fixture_launches[case]).profiles
        assert {(tokens, ())} == {(each.tokens, each.faults) for each in profiles}
        assert profiles[0].rest is not None
        assert -20.62 * GIB < profiles[0].rest.low < profiles[0].rest.high < -20.6 * GIB


@pytest.mark.parametrize("tokens", [-314895, -314887, -314878])
def test_what_the_printed_digits_allow_is_confirmed(tokens: int, read_text: ReadText) -> None:
    """rest is -20.6085..-20.6075 GiB, over 70,272 that is -314,894..-314,879 after rounding down; one more for single precision."""
    assert () == profile_of(read_text, DEBUG.replace("-314887", str(tokens))).faults


@pytest.mark.parametrize("tokens", [-314896, -314877])
def test_a_count_beyond_the_printed_digits_is_refused_with_both_numbers(tokens: int, read_text: ReadText) -> None:
    """-314,896 is what the rounded inputs give: 21.71 - 94.04 * 0.45 is -20.608, but not with these three digits."""
    faults = profile_of(read_text, DEBUG.replace("-314887", str(tokens))).faults
    assert (f"max_tokens is {tokens:,}, and rest / cell_size gives -314,894..-314,879",) == faults


@pytest.mark.parametrize(
    ("right", "wrong", "faults"),
    [
        ("avail=21.708", "avail=22.708", ("rest is -20.61 GiB, and avail - reserved gives -19.61",)),
        ("total=94.037", "total=95.037", ("reserved is 42.32 GiB, and total * (1 - fraction) gives 42.77",)),
        ("fraction=0.55", "fraction=0.56", ("reserved is 42.32 GiB, and total * (1 - fraction) gives 41.38",)),
        ("cell_size=70272", "cell_size=70372", ("max_tokens is -314,887, and rest / cell_size gives -314,447..-314,431",)),
        (
            "reserved=42.316", "reserved=42.416",
            (
                "reserved is 42.42 GiB, and total * (1 - fraction) gives 42.32",
                "rest is -20.61 GiB, and avail - reserved gives -20.71",
            ),
        ),
        (
            "rest=-20.608", "rest=-20.708",
            (
                "rest is -20.71 GiB, and avail - reserved gives -20.61",
                "max_tokens is -314,887, and rest / cell_size gives -316,422..-316,407",
            ),
        ),
    ],
    ids=["avail", "total", "fraction", "cell_size", "reserved", "rest"],
)  # fmt: skip
def test_each_wrong_term_is_a_fault_of_every_equation_that_it_stands_in(
    right: str, wrong: str, faults: tuple[str, ...], read_text: ReadText
) -> None:
    assert right in DEBUG
    found = profile_of(read_text, DEBUG.replace(right, wrong)).faults
    assert faults == found


# -- what another value would give ----------------------------------------------------------------------------------------------


def grant(read_text: ReadText, change: WhatIf, *lines: str) -> tuple[tuple[float, float], tuple[float, float] | None]:
    (launch,) = read_text(log(*(lines or (printed_args(mem_fraction_static=0.88), *GOOD, FIRED_UP))))
    found = grant_for(launch, size_up(launch), change)
    assert found is not None
    return gib(found.rest), (found.tokens.low, found.tokens.high) if found.tokens else None


@pytest.mark.parametrize(
    ("change", "rest", "tokens"),
    [
        # A - T * 0.2 = 21.705 - 18.809 .. 21.715 - 18.807; over 10.425 and 10.415 GiB for 159,270 rows
        (WhatIf(fraction=0.8), (2.896, 2.908), (44244, 44470)),
        (WhatIf(), (10.4196, 10.4308), (159187, 159511)),  # as in force, 0.88
        (WhatIf(fraction=0.8, page_size=64), (2.896, 2.908), (44224, 44416)),  # 691 and 694 pages
        (WhatIf(fraction=0.8, max_total_tokens=20000), (2.896, 2.908), (20000, 20000)),
        (WhatIf(fraction=0.8, max_total_tokens=44300), (2.896, 2.908), (44244, 44300)),
        (WhatIf(fraction=0.8, cell_factor=0.5), (2.896, 2.908), (88488, 88940)),  # FP8: half the bytes
        # 21.705 - 28.2135 .. 21.715 - 28.2105: over 10.415 for the least, over 10.425 for the greatest
        (WhatIf(fraction=0.7), (-6.5085, -6.4955), (-99531, -99237)),
    ],
    ids=["fraction", "as it is", "pages", "cap", "cap in between", "FP8", "too low"],
)  # fmt: skip
def test_the_budget_is_solved_forward(
    change: WhatIf, rest: tuple[float, float], tokens: tuple[int, int], read_text: ReadText
) -> None:
    found = grant(read_text, change)
    assert near(*rest) == found[0]
    assert tokens == found[1]


def test_a_cap_in_force_holds_for_what_ifs_too(read_text: ReadText) -> None:
    lines = (printed_args(mem_fraction_static=0.88, max_total_tokens=20000), *GOOD)
    assert (20000, 20000) == grant(read_text, WhatIf(fraction=0.9), *lines)[1]
    assert (30000, 30000) == grant(read_text, WhatIf(max_total_tokens=30000), *lines)[1]


def test_without_a_cell_there_are_no_tokens_and_without_figures_no_grant(read_text: ReadText) -> None:
    assert grant(read_text, WhatIf(fraction=0.8), *load_lines()) == (near(2.896, 2.908), None)
    (launch,) = read_text(log(*pool_lines()))
    assert grant_for(launch, size_up(launch), WhatIf(fraction=0.8)) is None
    (launch,) = read_text(log(*load_lines()))
    assert grant_for(launch, size_up(launch), WhatIf(page_size=64)) is None


def test_states_of_mamba_layers_keep_their_share(read_text: ReadText) -> None:
    """Half of the pools are states (5.00 of 10.00), so that half of another budget is for tokens: 12.31 GiB for 0.90 give 6.155."""
    states = at(
        "10:00:21",
        "TP0",
        "Mamba Cache is allocated. max_mamba_cache_size: 160, conv_state size: 1.00GB, ssm_state size: 4.00GB ",
    )
    pool = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 100000, KV size: 5.00 GB")
    end = at("10:00:22", "TP0", "Memory pool end. avail mem=11.71 GB")
    found = grant(read_text, WhatIf(fraction=0.9), printed_args(), *load_lines(), states, pool, end)
    assert found[0] == near(12.3005, 12.3115)
    assert found[1] is not None
    assert found[1][0] == pytest.approx(12.3005 * 4.995 / 9.985 / 5.005 * 100001, abs=2)
    assert found[1][1] == pytest.approx(12.3115 * 4.995 / 9.985 / 4.995 * 100001, abs=2)


@pytest.mark.parametrize(("count", "share"), [(None, 4.995 / 9.985), (160, 1.0)], ids=["a ratio", "a number"])
def test_more_memory_goes_to_states_too_unless_their_number_is_given(
    count: int | None, share: float, read_text: ReadText
) -> None:
    """1 GiB more is half a GiB of tokens of 5.00 GiB / 100,000 (one more for padding)."""
    states = "Mamba Cache is allocated. max_mamba_cache_size: 160, conv_state size: 1.00GB, ssm_state size: 4.00GB "
    pool = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 100000, KV size: 5.00 GB")
    args = printed_args() if count is None else printed_args(max_mamba_cache_size=count)
    (launch,) = read_text(log(args, *load_lines(), at("10:00:21", "TP0", states), pool))
    found = worth(launch, size_up(launch), exact(GIB))
    assert found is not None
    assert found.low == pytest.approx(share / 5.005 * 100000, abs=2)
    assert found.high == pytest.approx(share / 4.995 * 100001, abs=2)


def test_a_grant_says_whether_it_surely_starts_or_fails(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(mem_fraction_static=0.88), *GOOD))
    sizing = size_up(launch)
    for fraction, starts, fails in ((0.769, False, True), (0.7691, False, False), (0.7693, True, False)):
        found = grant_for(launch, sizing, WhatIf(fraction=fraction))
        assert found is not None
        assert (starts, fails) == (found.starts, found.fails), fraction


@pytest.mark.parametrize(
    ("minimum", "least"), [(0.0, 0.001), (0.769288, 0.770), (0.7699999, 0.770), (0.77, 0.771), (0.0724, 0.073), (0.999, 1.0)]
)  # fmt: skip
def test_the_least_that_starts_is_above_the_minimum(minimum: float, least: float) -> None:
    assert least == least_viable(minimum)


def test_the_fraction_used_is_the_one_that_ran(sized: Size) -> None:
    assert 0.88 == fraction_used(sized(printed_args(mem_fraction_static=0.88), *GOOD))
    assert pytest.approx((0.8798313 + 0.8800574) / 2, abs=1e-6) == fraction_used(sized(*GOOD))
    assert pytest.approx(0.87994, abs=1e-4) == fraction_used(sized(printed_args(mem_fraction_static=0.55), *GOOD))
    assert 0.55 == fraction_used(sized(printed_args(mem_fraction_static=0.55, tp_size=2), *GOOD))
    assert fraction_used(sized(*load_lines())) is None


def test_the_suggestion_is_half_way_to_what_sglang_would_keep(fixture_launches: dict[str, Launch]) -> None:
    """0.5.9, a card of 94 GiB: 512 + 1.5 * 8192 + 2 * 128 + 8 * 128 MiB = 13.75 GiB kept, 0.854; the least is 0.770: 0.812."""
    launch = fixture_launches["car"]
    sizing = size_up(launch)
    assert sizing.total is not None
    assert pytest.approx(13.75 * GIB, rel=2e-3) == default_reserve(launch, sizing.total.amount.low)
    assert 0.81 == suggested_fraction(launch, sizing)


def test_nothing_is_suggested_where_no_fraction_works(read_text: ReadText) -> None:
    """1 - 3.995 / 94.045 = 0.9576."""
    (launch,) = read_text(log(printed_args(tp_size=1), *load_lines(after="4.00", used="90.04"), NO_MEMORY))
    assert suggested_fraction(launch, size_up(launch)) is None
    (launch,) = read_text(log(printed_args(tp_size=1), *load_lines()[:1]))
    assert suggested_fraction(launch, size_up(launch)) is None


def test_the_suggestion_is_never_below_the_least(read_text: ReadText) -> None:
    """1 - 6.995 / 94.045 = 0.9257: above what SGLang would choose, so the least itself is said."""
    (launch,) = read_text(log(printed_args(tp_size=1), *load_lines(after="7.00", used="87.04"), NO_MEMORY))
    assert 0.926 == suggested_fraction(launch, size_up(launch))
