"""Two launches that differ in one thing: `diff` names it first, with the amount that plain arithmetic gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conftest import CASES, Diff
from logscope.differ import Cause, Change, Difference, Tolerance, diff_launches
from logscope.model import Launch
from logscope.packs import Packs
from made import GIB, RELEASES, Draft, Made, log_text

HALF_PRINT = 0.0100001  # GiB: both figures may be off by half a step, and so may their difference
EAGLE = Draft()

GOOD = Made()
NEW = Made(release="0.5.14")
LATEST = Made(release="0.5.23")
H200 = Made(free_gib=140.0)  # 12 GiB less on one of them is no error yet


@dataclass(frozen=True)
class Pair:
    """Two launches, and what is to be said: the first cause, GiB and tokens (None: nothing), and where they part."""

    name: str
    before: Made
    after: Made
    cause: str
    gib: float | None
    tokens: float | None
    kind: str = "argument"
    parts_at: str | None = None


def tokens_of(gib: float, cell: float) -> float:
    return gib * GIB / cell


SMALL = replace(GOOD, model_gib=200.0)
CELL = 327_680 / 8
F = "mem_fraction_static"
PAIRS = [
    # of 94.5 GiB
    Pair("fraction up", GOOD, replace(GOOD, fraction=0.9), F, 94.5 * 0.02, tokens_of(1.89, CELL), parts_at="kv_cache"),
    Pair("fraction down", GOOD, replace(GOOD, fraction=0.8), F, -94.5 * 0.08, tokens_of(-7.56, CELL), parts_at="kv_cache"),
    Pair("fraction fails", GOOD, replace(GOOD, fraction=0.4), F, -94.5 * 0.48, tokens_of(-45.36, CELL), parts_at="kv_cache"),
    Pair("it fails, 0.5.14", NEW, replace(NEW, fraction=0.4), F, -94.5 * 0.48, tokens_of(-45.36, CELL), parts_at="kv_cache"),
    Pair("fraction typed or not", replace(GOOD, fraction=None), GOOD, F, 94.5 * 0.023, tokens_of(2.1735, CELL)),
    # 40 GiB of weights become 80; the budget of 43.16 GiB becomes 3.16, and a token takes twice as much
    Pair("tp 8 to 4", GOOD, replace(GOOD, tp=4), "tp_size", -40.0, 41_418 - 1_131_413, parts_at="load_weights"),
    Pair("tp 4 to 8", replace(GOOD, tp=4), GOOD, "tp_size", 40.0, 1_131_413 - 41_418, parts_at="load_weights"),
    Pair("larger graphs", GOOD, replace(GOOD, graph_bs=256, graph_gib=2.4), "cuda_graph_max_bs", 1.0, None, parts_at="cuda_graph"),
    Pair("smaller graphs, 0.5.23", LATEST, replace(LATEST, graph_bs=32, graph_gib=0.6), "cuda_graph_max_bs", -0.8, None),
    Pair(
        "larger graphs lower the default fraction", replace(GOOD, fraction=None),
        replace(GOOD, fraction=None, default_fraction=0.846, graph_bs=256, graph_gib=2.4),
        "cuda_graph_max_bs", -94.5 * 0.011, tokens_of(-94.5 * 0.011, CELL), parts_at="kv_cache",
    ),
    Pair("graphs off", GOOD, replace(GOOD, disable_cuda_graph=True), "disable_cuda_graph", -1.4, None, parts_at="cuda_graph"),
    Pair(
        "attention backend", GOOD, replace(GOOD, attention_backend="triton", graph_gib=2.1),
        "attention_backend", 0.7, None, parts_at="cuda_graph",
    ),
    Pair("a cap", GOOD, replace(GOOD, max_total_tokens=500_000), "max_total_tokens", None, 500_000 - 1_131_413, parts_at="kv_cache"),
    Pair("FP8 cache", GOOD, replace(GOOD, kv_dtype="fp8_e4m3"), "kv_cache_dtype", None, 1_131_414, parts_at="kv_cache"),
    Pair("pages", GOOD, replace(GOOD, page_size=64), "page_size", None, 1_131_413 // 64 * 64 - 1_131_413, parts_at="kv_cache"),
    # 2 GiB of weights, 1.25 % of the pool (43.16 GiB) and 0.25 GiB of graphs
    Pair("draft on, 0.5.9", GOOD, replace(GOOD, draft=EAGLE), "speculative_algorithm", 2.25 + 43.16 * 0.0125, None),
    Pair("draft off, 0.5.9", replace(GOOD, draft=EAGLE), GOOD, "speculative_algorithm", -2.25 - 43.16 * 0.0125, None),
    Pair("draft on, 0.5.14", NEW, replace(NEW, draft=EAGLE), "speculative_algorithm", -2.0, 1_065_663 - 1_131_413),
    Pair("draft off, 0.5.14", replace(NEW, draft=EAGLE), NEW, "speculative_algorithm", 2.0, 1_131_413 - 1_065_663),
    Pair(
        "release counts the draft", replace(GOOD, release="0.5.13", draft=EAGLE), replace(NEW, draft=EAGLE),
        "SGLang release", -2.0, 1_065_663 - 1_131_413, "release", "kv_cache",
    ),
    # A and T are 12 GiB lower, of T 12 % is kept
    Pair(
        "another process", H200, replace(H200, foreign_gib={3: 12.0}),
        "free memory before the weights", -12 * 0.88, tokens_of(-10.56, CELL), "memory", "load_weights",
    ),
    Pair(
        "weights of one rank", GOOD, replace(GOOD, extra_gib={5: 3.0}),
        "memory taken by the weights", -3.0, tokens_of(-3.0, CELL), "memory", "load_weights",
    ),
    Pair("slower storage", GOOD, replace(GOOD, load_s=400.0), "time to load the weights", None, None, "time", "load_weights"),
    Pair("slower capture", GOOD, replace(GOOD, capture_s=90.0), "time to capture graphs", None, None, "time", "cuda_graph"),
    Pair("quantization", GOOD, replace(GOOD, quantization="fp8"), "quantization", 20.0, tokens_of(20.0, CELL), parts_at="load_weights"),
    Pair("dtype", SMALL, replace(SMALL, dtype="float32"), "dtype", -25.0, tokens_of(-25.0, CELL), parts_at="load_weights"),
    Pair("graphs do not fit", GOOD, replace(GOOD, graph_bs=512, graph_gib=14.0), "cuda_graph_max_bs", None, None, parts_at="cuda_graph"),
    Pair("the port is taken", GOOD, replace(GOOD, port_is_taken=True), "port_in_use", None, None, "failure"),
    Pair(
        "no arguments before", replace(GOOD, shows_args=False, shows_command=False), replace(GOOD, fraction=0.8),
        "mem_fraction_static", -7.56, tokens_of(-7.56, CELL), "inferred", "kv_cache",
    ),
    Pair(
        "no arguments after", GOOD, replace(GOOD, fraction=0.8, shows_args=False, shows_command=False),
        "mem_fraction_static", -7.56, tokens_of(-7.56, CELL), "inferred", "kv_cache",
    ),
    Pair(
        "0.4.6", Made(release="0.4.6.post5"), Made(release="0.4.6.post5", fraction=0.85),
        "mem_fraction_static", -94.5 * 0.03, tokens_of(-2.835, CELL), parts_at="kv_cache",
    ),
]  # fmt: skip


def rounded(difference: Difference) -> list[Change]:
    return [change for change in difference.changes if change.is_worth_showing]


def test_there_are_pairs_of_every_release() -> None:
    assert len(PAIRS) > 25
    assert set(RELEASES) == {made.release for pair in PAIRS for made in (pair.before, pair.after)}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_first_cause_is_the_thing_changed(pair: Pair, diff: Diff) -> None:
    difference = diff(pair.before, pair.after)
    cause = difference.causes[0]
    assert (pair.cause, pair.kind) == (cause.name, cause.kind)
    assert (pair.gib is None) == (cause.explains_bytes is None)
    if pair.gib is not None and cause.explains_bytes is not None:
        # of the draft three figures are summed
        steps = 3 if "draft" in pair.name else 1
        assert pair.gib == pytest.approx(cause.explains_bytes / GIB, abs=steps * HALF_PRINT)
    assert (pair.tokens is None) == (cause.explains_tokens is None)
    if pair.tokens is not None:
        assert pair.tokens == pytest.approx(cause.explains_tokens, rel=0.002, abs=1)
    assert [cause.name] == [each.name for each in difference.causes], "nothing else is blamed"
    assert difference.is_changed
    if pair.parts_at is not None:
        assert difference.first is not None
        assert pair.parts_at == difference.first.phase
    assert pair.cause not in {each.name for each in difference.ruled_out}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_made_numbers_are_those_of_the_log(pair: Pair, read: Callable[[Made, str], Launch]) -> None:
    """The generator's own tokens, and no line that logscope does not know."""
    for made in (pair.before, pair.after):
        launch = read(made, "check")
        assert 0 == launch.tally.drift
        stated = [e.quantity("max_total_num_tokens") for e in launch.events if e.pattern.id == "ready.capacity"]
        assert [made.tokens] * len(stated) == [number.value for number in stated if number]


def test_the_rank_of_another_process_is_named(diff: Diff) -> None:
    difference = diff(H200, replace(H200, foreign_gib={3: 12.0}))
    assert "139.50 GiB -> 127.50 GiB on TP3 takes 10.56 GiB" in difference.causes[0].sentence
    assert difference.first is not None
    assert ("load_weights.begin", "TP3") == (difference.first.event, difference.first.rank)


def test_the_rank_with_larger_weights_is_named(diff: Diff) -> None:
    assert "on TP5 takes 3.00 GiB" in diff(GOOD, replace(GOOD, extra_gib={5: 3.0})).causes[0].sentence


def test_a_fraction_that_sglang_chose_is_put_down_to_what_it_was_chosen_by(diff: Diff) -> None:
    other = replace(GOOD, fraction=None, default_fraction=0.846, graph_bs=256, graph_gib=2.4)
    (cause,) = diff(replace(GOOD, fraction=None), other).causes
    assert "moves mem_fraction_static 0.857 -> 0.846" in cause.sentence
    assert "1.00 GiB more of every rank's memory beside the KV cache" in cause.sentence


def test_a_failure_to_capture_says_why(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, graph_bs=512, graph_gib=14.0))
    assert difference.causes[0].sentence.startswith("cuda_graph_max_bs 128 -> 512: after.log failed, out of memory")
    assert () == difference.ruled_out


def test_a_failure_beside_a_larger_budget_is_the_cause(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, fraction=0.9, port_is_taken=True))
    assert ["port_in_use", "mem_fraction_static"] == [cause.name for cause in difference.causes]


def test_another_way_of_all_reduce_is_ruled_out(diff: Diff) -> None:
    forced = {"SGLANG_CUSTOM_ALLREDUCE_ALGO": "1stage"}
    difference = diff(GOOD, replace(GOOD, env=forced))
    assert not difference.is_changed
    (ruled_out,) = difference.ruled_out
    assert "custom all-reduce (forced by environment in after.log)" == ruled_out.name
    assert 0 == ruled_out.bytes
    difference = diff(GOOD, replace(GOOD, env=forced, fraction=0.8))
    assert ["mem_fraction_static"] == [cause.name for cause in difference.causes]
    assert "Not the cause: custom all-reduce (forced by environment in after.log)" in difference.lines[-1]


def again(made: Made, seed: int = 23, jitter: float = 0.0, load: float = 1.04) -> Made:
    return replace(
        made, seed=seed, port=30000 + seed, start="2026-02-03 04:05:06", jitter=jitter, load_s=made.load_s * load
    )


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("draft", [None, EAGLE], ids=["plain", "draft"])
@pytest.mark.parametrize("jitter", [0.0, 0.004, -0.003])
def test_two_runs_of_one_launch_are_alike(release: str, draft: Draft | None, jitter: float, diff: Diff) -> None:
    made = Made(release=release, draft=draft)
    difference = diff(made, again(made, jitter=jitter))
    assert [] == rounded(difference)
    assert difference.lines[0].startswith("No change beyond print resolution")
    assert () == difference.causes
    assert not difference.is_changed
    assert difference.first is None


def test_two_runs_of_one_failure_are_alike(diff: Diff) -> None:
    made = replace(GOOD, fraction=0.4)
    assert not diff(made, again(made, jitter=0.004)).is_changed


def test_one_token_is_no_change(diff: Diff) -> None:
    capped = replace(GOOD, max_total_tokens=500_000)
    assert "same" == verdict_of(diff(capped, replace(capped, max_total_tokens=500_001)))
    assert "changed" == verdict_of(diff(capped, replace(capped, max_total_tokens=500_002)))


def verdict_of(difference: Difference, event: str = "ready.capacity", name: str = "max_total_num_tokens") -> str:
    (change,) = (c for c in difference.changes if c.event == event and c.field == name)
    return change.verdict


SPREAD = [replace(GOOD, model_gib=8 * gib) for gib in (40.0, 40.15, 40.3)]


@pytest.mark.parametrize("last", [0, 1, 2])
@pytest.mark.parametrize(
    ("gib", "is_changed"), [(40.0, False), (40.2, False), (40.3, False), (40.8, True), (39.5, True)]
)
def test_what_baselines_vary_by_is_no_change(gib: float, is_changed: bool, last: int, diff: Diff) -> None:
    before = SPREAD[last]
    difference = diff(before, replace(GOOD, model_gib=8 * gib), *(each for each in SPREAD if each is not before))
    assert is_changed == difference.is_changed
    assert (["memory taken by the weights"] if is_changed else []) == [cause.name for cause in difference.causes]


@pytest.mark.parametrize(
    ("tolerance", "is_changed"),
    [
        (Tolerance(), True),
        (Tolerance(bytes=0.25 * GIB), True),
        (Tolerance(bytes=0.5 * GIB), False),
        (Tolerance(share=0.005), True),
        (Tolerance(share=0.01), False),
    ],
)
def test_a_tolerance_is_of_bytes_or_a_share(tolerance: Tolerance, is_changed: bool, diff: Diff) -> None:
    """0.3 GiB of weights: 0.75 % of them, 0.7 % of the budget and of the tokens."""
    difference = diff(GOOD, replace(GOOD, model_gib=8 * 40.3), tolerance=tolerance)
    assert is_changed == difference.is_changed
    assert is_changed == bool(difference.causes)


def test_what_was_not_reached_is_unknown_and_never_zero(diff: Diff) -> None:
    difference = diff(replace(GOOD, draft=EAGLE), replace(GOOD, draft=EAGLE, fraction=0.4))
    late = [c for c in difference.changes if c.phase in ("kv_cache", "memory_pool", "cuda_graph", "ready")]
    own = [c for c in late if c.after_at is None]
    draft = [c for c in difference.changes if c.worker == "draft"]
    assert len(own) > 30
    assert len(draft) > 30
    for change in (*own, *draft):
        assert ("unknown", "not reached after") == (change.verdict, change.reason)
        assert change.after is None
        assert change.delta is None
    back = diff(replace(GOOD, draft=EAGLE, fraction=0.4), replace(GOOD, draft=EAGLE))
    assert {None} == {c.before for c in back.changes if c.reason == "not reached before"}


def test_other_ranks_are_compared_by_the_least_and_the_most(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, tp=4))
    assert any("the ranks differ (TP0..TP7 and TP0..TP3)" in note for note in difference.notes)
    assert {"least", "most", ""} >= {change.rank for change in difference.changes}
    assert "every rank" in difference.causes[0].sentence


def test_another_release_is_said_to_be_one(diff: Diff) -> None:
    notes = diff(replace(GOOD, release="0.5.13"), NEW).notes
    assert any("steps that only one of them prints are not compared" in note for note in notes)
    assert not diff(replace(GOOD, release="0.5.13"), NEW).causes


# Properties


makes = st.builds(
    Made,
    release=st.sampled_from(RELEASES),
    tp=st.sampled_from([2, 4]),
    fraction=st.one_of(st.none(), st.floats(0.3, 0.95).map(lambda f: round(f, 3))),
    free_gib=st.floats(60, 140),
    init_gib=st.floats(0.1, 2),
    model_gib=st.floats(20, 150),
    token_bytes=st.sampled_from([70_272, 327_680]),
    page_size=st.sampled_from([1, 64]),
    max_total_tokens=st.one_of(st.none(), st.integers(1000, 400_000)),
    kv_dtype=st.sampled_from(["auto", "fp8_e4m3"]),
    quantization=st.sampled_from([None, "fp8"]),
    draft=st.sampled_from([None, EAGLE]),
    graph_gib=st.floats(0.1, 12),
    disable_cuda_graph=st.booleans(),
    extra_gib=st.dictionaries(st.integers(0, 1), st.floats(0, 4), max_size=1),
    load_s=st.floats(2, 300),
    shows_args=st.booleans(),
    shows_command=st.booleans(),
    seed=st.integers(0, 1000),
)


def assert_negated(there: Difference, back: Difference) -> None:
    """All that is told of two launches is told of the swapped ones, negated."""
    there_rows, back_rows = ({key_of(change): change for change in each.changes} for each in (there, back))
    assert set(there_rows) == set(back_rows)
    for key, change in there_rows.items():
        other = back_rows[key]
        assert (change.before, change.after, change.verdict) == (other.after, other.before, other.verdict)
        assert change.delta is None or other.delta is not None
        assert change.delta is None or -change.delta == other.delta
    assert [term.term for term in there.budget.terms] == [term.term for term in back.budget.terms]
    for term, other_term in zip(there.budget.terms, back.budget.terms, strict=True):
        assert term.bytes == pytest.approx(-other_term.bytes, abs=1)
        assert (term.tokens is None) == (other_term.tokens is None)
        assert (term.tokens or 0) == pytest.approx(-(other_term.tokens or 0), abs=0.01)
    assert there.budget.residual == pytest.approx(-back.budget.residual, abs=1)
    assert there.is_changed == back.is_changed
    causes = {(cause.kind, cause.name): cause for cause in back.causes}
    assert {(cause.kind, cause.name) for cause in there.causes} == set(causes)
    for cause in there.causes:
        assert_cause_negated(cause, causes[cause.kind, cause.name])


def assert_cause_negated(cause: Cause, other: Cause) -> None:
    assert (cause.before, cause.after) == (other.after, other.before)
    for one, two in (
        (cause.explains_bytes, other.explains_bytes),
        (cause.explains_tokens, other.explains_tokens),
    ):
        assert (one is None) == (two is None)
        assert (one or 0) == pytest.approx(-(two or 0), abs=1)


def key_of(change: Change) -> tuple[object, ...]:
    return (change.worker, change.phase, change.event, change.role, change.field, change.rank, change.unit)


def assert_adds_up(difference: Difference) -> None:
    budget = difference.budget
    if budget.change is not None:
        assert sum(term.bytes for term in budget.terms) + budget.residual == pytest.approx(budget.change, abs=1)
    if budget.residual_tokens is not None and budget.tokens_before is not None and budget.tokens_after is not None:
        told = sum(term.tokens or 0 for term in budget.terms) + budget.residual_tokens
        assert budget.tokens_after - budget.tokens_before == pytest.approx(told, abs=0.01)


def assert_alike(difference: Difference) -> None:
    assert {"same"} >= {change.verdict for change in difference.changes}
    assert ((), None, False) == (difference.causes, difference.first, difference.is_changed)


@settings(max_examples=30)
@given(before=makes, after=makes)
def test_swapping_made_launches_negates_all(before: Made, after: Made, compare: Diff) -> None:
    there = compare(before, after)
    assert_negated(there, compare(after, before))
    assert_adds_up(there)


@settings(max_examples=15)
@given(made=makes)
def test_a_made_launch_is_like_itself(made: Made, compare: Diff) -> None:
    assert_alike(compare(made, made))


@settings(max_examples=30)
@given(made=makes, share=st.floats(0.5, 0.95))
def test_a_made_change_of_the_fraction_is_found(made: Made, share: float, compare: Diff) -> None:
    """Whatever the launch is: the term is the total times the change of the fraction."""
    first = replace(made, shows_args=True, fraction=0.9, max_total_tokens=None)
    assume(min(first.avail) > 0)  # weights that do not fit print no free memory after them
    second = replace(first, fraction=round(share, 3))
    told = {term.term: term.bytes / GIB for term in compare(first, second).budget.terms}
    assert min(first.total) * (round(share, 3) - 0.9) == pytest.approx(told["fraction"], abs=0.006)
    assert 0 == told["weights"] == told["free_at_init"] == told["draft"]


def test_less_than_nothing_free_beside_the_figures_hides_no_cause(compare: Diff) -> None:
    """-3.10 GiB after the draft's weights cannot be, but the budget does not rest on it: 59 GiB * 0.4 are 23.60."""
    first = Made(
        release="0.4.6.post5",
        tp=2,
        fraction=0.9,
        free_gib=60.0,
        init_gib=1.0,
        model_gib=20.0,
        draft=EAGLE,
        graph_gib=1.0,
    )
    assert "avail mem=-3.10 GB" in log_text(first)
    told = {term.term: term.bytes / GIB for term in compare(first, replace(first, fraction=0.5)).budget.terms}
    assert -23.60 == pytest.approx(told["fraction"], abs=0.006)


STORY = ["baseline", "car", "car_050", "car_debug", "baseline_debug_nocar", "baseline_grep"]
SOME = [
    *STORY, "0.5.9-new-eagle-tp2", "0.5.14-new-eagle-tp2", "0.5.13-new-fakecuda-tp2", "0.4.6.post5-new-fakecuda-tp2",
    "0.5.9-fakecuda-graph-oom", "0.5.23-fakecuda-tp1", "0.5.23-new-mamba-tp1", "0.5.9-new-swa-tp1", "0.5.9-fakecuda-imbalance",
]  # fmt: skip


def story(fixture_launches: dict[str, Launch], packs: Packs, before: str, after: str) -> Difference:
    launches = fixture_launches[before], fixture_launches[after]
    return diff_launches([launches[0]], launches[1], packs, Tolerance(), (f"{before}.log", f"{after}.log"))


@pytest.mark.parametrize(("before", "after"), list(itertools.combinations(SOME, 2)))
def test_swapping_real_launches_negates_all(
    before: str, after: str, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    there, back = (story(fixture_launches, packs, *names) for names in ((before, after), (after, before)))
    assert_negated(there, back)
    assert_adds_up(there)


@pytest.mark.parametrize("case", CASES)
def test_a_launch_is_like_itself(case: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert_alike(story(fixture_launches, packs, case, case))


def test_the_story_is_told(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert (
        "baseline.log is ready with 159,269 tokens of KV cache; car.log failed: not enough memory for the KV cache.",
        "Cause: mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB from the KV budget of every rank (10.42 -> -20.61 GiB).",
        "Not the cause: custom all-reduce (forced by environment in car.log): 0.01 GiB per rank, within print resolution.",
    ) == story(fixture_launches, packs, "baseline", "car").lines


@pytest.mark.parametrize(
    ("before", "after", "gib"),
    [
        ("baseline", "car", -94.037 * 0.33),
        ("baseline", "car_050", -94.037 * 0.38),
        ("baseline", "car_debug", -94.037 * 0.33),
        ("baseline", "baseline_debug_nocar", -94.037 * 0.33),
        ("baseline_grep", "car", -94.037 * 0.33),
        ("car", "car_050", -94.037 * 0.05),
    ],
)
def test_the_fraction_is_the_cause_in_the_story(
    before: str, after: str, gib: float, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    (cause,) = story(fixture_launches, packs, before, after).causes
    assert "mem_fraction_static" == cause.name
    assert cause.explains_bytes is not None
    assert gib == pytest.approx(cause.explains_bytes / GIB, abs=0.011)


def test_an_inferred_fraction_is_said_to_be_one(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    difference = story(fixture_launches, packs, "baseline_grep", "car")
    assert "inferred" == difference.causes[0].kind
    assert "(inferred from the pool: no server_args in baseline_grep.log)" in difference.causes[0].sentence


def test_no_custom_all_reduce_at_all_is_not_blamed(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    difference = story(fixture_launches, packs, "baseline", "baseline_debug_nocar")
    assert not any("all-reduce" in cause.name for cause in difference.causes)


def test_a_part_of_the_same_log_is_alike(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert not story(fixture_launches, packs, "baseline", "baseline_grep").is_changed


def test_a_debug_print_is_no_step(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    assert not story(fixture_launches, packs, "car", "car_debug").is_changed
    difference = story(fixture_launches, packs, "baseline", "car_debug")
    assert difference.first is not None
    assert "kv_cache" == difference.first.phase
