"""What `diff` blames, and what it says: a cause must be able to have made the change, and figures are said once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Diff, ReadText
from logscope.differ import Difference, Tolerance, diff_launches
from logscope.model import Launch
from logscope.packs import Packs
from made import GIB, Draft, Made, log_text

HALF_PRINT = 0.0100001  # GiB: both figures may be off by half a step, and so may their difference
GOOD = Made()
NEW = Made(release="0.5.14")
LATEST = Made(release="0.5.23")
H200 = Made(free_gib=140.0)  # 12 GiB less on one of them is no error yet


def text_diff(before: str, after: str, read_text: ReadText, packs: Packs) -> Difference:
    launches = [read_text(text, f"{name}.log")[-1] for text, name in ((before, "a"), (after, "b"))]
    return diff_launches([launches[0]], launches[1], packs, Tolerance(), ("a.log", "b.log"))


# What a cause can have made


def test_two_arguments_that_act_on_one_thing_are_named_together(diff: Diff) -> None:
    """4 -> 8 ranks halve 80 GiB of weights, FP8 halves them again: neither alone gives 60 GiB."""
    difference = diff(replace(GOOD, tp=4), replace(GOOD, quantization="fp8"))
    (cause,) = difference.causes
    assert ("tp_size", ("quantization",)) == (cause.name, cause.together_with)
    assert cause.explains_bytes is not None
    assert 60.0 == pytest.approx(cause.explains_bytes / GIB, abs=HALF_PRINT)
    assert "tp_size 4 -> 8, together with quantization not set -> fp8, gives 60.00 GiB" in cause.sentence
    assert () == difference.ruled_out


def test_arguments_that_cancel_each_other_are_not_ruled_out(diff: Diff) -> None:
    """4 ranks instead of 8 double the weights, FP8 halves them: what is seen of either is nothing, and proves nothing."""
    difference = diff(GOOD, replace(GOOD, tp=4, quantization="fp8"))
    assert ["tp_size"] == [cause.name for cause in difference.causes]  # by bytes per token
    assert () == difference.ruled_out


def test_other_shares_of_a_model_are_no_other_model(diff: Diff) -> None:
    """Half as many ranks double the weights of one, they do not make 6.5 times as much of them."""
    first = replace(GOOD, tp=2, model_gib=20.0)
    difference = diff(first, replace(GOOD, tp=1, model_gib=65.0))
    weights = [cause for cause in difference.causes if cause.name == "memory taken by the weights"]
    assert [-55.0] == [pytest.approx((cause.explains_bytes or 0) / GIB, abs=HALF_PRINT) for cause in weights]


@pytest.mark.parametrize(("before", "after"), [(0.7, 0.9), (0.9, 0.7)])
def test_under_a_cap_the_fraction_makes_no_tokens(before: float, after: float, diff: Diff) -> None:
    """43.16 GiB hold 1,131,413 tokens; 500,000 and 400,000 fit into the budget of either fraction."""
    first = replace(GOOD, fraction=before, max_total_tokens=500_000)
    difference = diff(first, replace(GOOD, fraction=after, max_total_tokens=400_000))
    assert ["max_total_tokens", "mem_fraction_static"] == [cause.name for cause in difference.causes]
    assert [-100_000, 0] == [cause.explains_tokens for cause in difference.causes]
    assert "the cap of tokens, not this, sets the capacity" in difference.causes[1].sentence


def test_a_cap_that_one_launch_has_hides_the_fraction_there(diff: Diff) -> None:
    difference = diff(replace(GOOD, max_total_tokens=500_000), replace(GOOD, fraction=0.92))
    assert ["max_total_tokens", "mem_fraction_static"] == [cause.name for cause in difference.causes]
    assert "in before.log the cap of tokens, not this, sets the capacity" in difference.causes[1].sentence


def test_a_cap_that_does_not_bind_is_no_cause(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, max_total_tokens=5_000_000, fraction=0.92))
    assert ["mem_fraction_static"] == [cause.name for cause in difference.causes]


@pytest.mark.parametrize("sign", [1, -1])
def test_no_topology_takes_tens_of_gib_before_the_weights(sign: int, diff: Diff) -> None:
    """Free memory that differs by 40 GiB is that of another card or process, whatever tp_size is."""
    pair = [replace(LATEST, tp=4, model_gib=40.0, free_gib=60.0), replace(LATEST, model_gib=80.0, free_gib=100.0)]
    difference = diff(*pair[::sign])
    free = [cause for cause in difference.causes if cause.name == "free memory before the weights"]
    assert [sign * 40 * 0.88] == [pytest.approx((cause.explains_bytes or 0) / GIB, abs=HALF_PRINT) for cause in free]


def test_ranks_that_changed_alike_are_told_in_one_order(diff: Diff) -> None:
    """Both ranks lose 5 GiB, of 11 and of 10: whichever speaks first, the figures are those of the first rank."""
    small = Made(release="0.4.6.post5", tp=2, free_gib=60.0, model_gib=20.0, extra_gib={1: 1.0})
    for seed in (0, 86):
        (cause,) = diff(replace(small, seed=seed), replace(small, model_gib=10.0)).causes
        assert ("10.00 GiB", "5.00 GiB") == (cause.before, cause.after)


def test_a_release_does_not_double_weights(diff: Diff) -> None:
    difference = diff(replace(GOOD, release="0.5.13"), replace(NEW, model_gib=400.0))
    assert ["memory taken by the weights"] == [cause.name for cause in difference.causes]


def test_a_release_switches_no_draft_on(diff: Diff) -> None:
    """Without arguments nobody can tell what was typed; that only one launch has a draft is no doing of the release."""
    silent = Made(release="0.5.13", shows_args=False, shows_command=False)
    causes = diff(silent, replace(silent, release="0.5.14", draft=Draft())).causes
    assert "the draft model's weights, counted in the budget" == causes[0].name
    assert not any(cause.kind == "release" for cause in causes)


def test_without_arguments_the_type_of_the_cache_is_what_its_line_says(diff: Diff) -> None:
    silent = replace(GOOD, shows_args=False, shows_command=False)
    (cause,) = diff(silent, replace(silent, kv_dtype="fp8_e4m3")).causes
    assert "bytes per token" == cause.name
    assert cause.sentence.endswith("; KV cache dtype torch.bfloat16 -> torch.float8_e4m3fn.")


# What distributed init takes


def test_memory_of_distributed_init_is_one_cause(diff: Diff) -> None:
    """2 GiB more of it: A and T are 2 GiB lower, of T 12 % is kept, and nothing beside the budget changed."""
    difference = diff(GOOD, replace(GOOD, init_gib=2.5, nccl="2.28.3"))
    (cause,) = difference.causes
    assert "memory of distributed init (NCCL buffers and the like)" == cause.name
    assert -1.76 == pytest.approx((cause.explains_bytes or 0) / GIB, abs=HALF_PRINT)
    assert "0.50 GiB -> 2.50 GiB takes 1.76 GiB" in cause.sentence
    assert cause.sentence.endswith("; NCCL 2.27.3 -> 2.28.3.")


def test_a_variable_that_acts_on_distributed_init_is_named(diff: Diff) -> None:
    (cause,) = diff(GOOD, replace(GOOD, init_gib=2.5, env={"NCCL_BUFFSIZE": "16777216"})).causes
    assert ("environment", "NCCL_BUFFSIZE") == (cause.kind, cause.name)
    assert "0.50 GiB -> 2.50 GiB and takes 1.76 GiB" in cause.sentence


# Memory that no line explains


def test_memory_that_goes_missing_is_said_first(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, between_gib=3.0))
    (cause,) = difference.causes
    assert -3.0 == pytest.approx((cause.explains_bytes or 0) / GIB, abs=2 * HALF_PRINT)
    assert (
        "3.00 GiB go missing on each rank in after.log, between load weights (load_weights.end, line" in cause.sentence
    )
    assert "no line says to what" in cause.sentence
    assert difference.lines[1].startswith("Cause: 3.00 GiB go missing")


def test_missing_memory_beside_another_cause_has_the_tokens_of_the_table(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, between_gib=3.0, fraction=0.9))
    assert ["what no line explains", "mem_fraction_static"] == [cause.name for cause in difference.causes]
    assert difference.budget.residual_tokens == difference.causes[0].explains_tokens


def node_log(made: Made, node: int) -> str:
    """Return what one of two nodes prints: the main process, and half of the ranks."""
    lines = []
    for line in log_text(made).splitlines(keepends=True):
        rank = re.match(r"\[[^\]]* TP(\d+)\]", line)
        if rank is None or int(rank[1]) * 2 // made.tp == node:
            lines.append(line.replace("tp_size=", f"nnodes=2, node_rank={node}, dist_init_addr='a:1', tp_size="))
    return "".join(lines)


def test_a_smaller_pool_beside_free_memory_is_no_missing_memory(read_text: ReadText, packs: Packs) -> None:
    """A rank of the other node has 12 GiB less, which takes 10.56 GiB from the budget; here 9.6 and more GiB stay free."""
    difference = text_diff(node_log(H200, 0), node_log(replace(H200, foreign_gib={6: 12.0}), 0), read_text, packs)
    (cause,) = difference.causes
    assert cause.sentence.startswith(
        "the pools of b.log are 10.56 GiB smaller than free memory and mem_fraction_static give, and leave that free: "
        "4 of the 8 ranks are not in this log, and one of them may have less"
    )
    assert difference.notes[-1].startswith(
        "b.log holds 4 of 8 ranks: the one that sets the budget may be on another node"
    )


def test_a_line_between_the_weights_and_the_pool_names_what_took_memory(diff: Diff) -> None:
    (cause,) = diff(GOOD, replace(GOOD, between_gib=3.0, shows_between=True)).causes
    assert "memory taken between the weights and memory_pool.lora_end" == cause.name
    assert -3.0 == pytest.approx((cause.explains_bytes or 0) / GIB, abs=HALF_PRINT)


def test_lora_is_named_as_what_took_memory(diff: Diff) -> None:
    lora = {"enable_lora": True, "max_lora_rank": 64}
    (cause,) = diff(GOOD, replace(GOOD, between_gib=3.0, shows_between=True, extra_args=lora)).causes
    assert ("enable_lora", ()) == (cause.name, cause.together_with)
    assert "takes 3.00 GiB" in cause.sentence


# Words


def test_the_budget_is_quoted_once(diff: Diff) -> None:
    """By the only cause; where there are several, with the outcomes, and each says only what it explains."""
    (alone,) = diff(GOOD, replace(GOOD, fraction=0.8)).causes
    assert "(43.16 -> 35.60 GiB; -198,181 tokens)" in alone.sentence
    both = diff(H200, replace(H200, foreign_gib={3: 12.0}, fraction=0.9))
    assert both.lines[0].endswith("KV budget per rank: 82.76 -> 74.76 GiB.")
    assert not any("82.76" in cause.sentence for cause in both.causes)


def test_a_fraction_without_a_command_may_be_chosen_by_sglang(diff: Diff) -> None:
    silent = replace(GOOD, shows_command=False)
    (cause,) = diff(silent, replace(silent, fraction=0.8)).causes
    assert "0.88 -> 0.80 (in force; typed or chosen by SGLang is not in the log) takes" in cause.sentence


def test_a_launch_that_failed_is_not_faster(diff: Diff) -> None:
    difference = diff(replace(GOOD, load_s=400.0), replace(GOOD, fraction=0.4))
    assert "time to load the weights 6 min 40 s -> 60 s: 5 min 40 s shorter." == difference.causes[1].sentence
    (whole,) = (each for each in difference.times if each.phase == "launch")
    assert whole.after is None
    assert not any("faster" in line for line in difference.lines)


def test_the_later_of_two_failures_is_named(diff: Diff) -> None:
    """The fraction tells why the first failed; larger graphs, or what the fraction leaves to them, why the second did."""
    difference = diff(replace(GOOD, fraction=0.4), replace(GOOD, graph_bs=512, graph_gib=14.0))
    assert ["oom_graph_capture", "mem_fraction_static"] == [cause.name for cause in difference.causes]
    assert difference.causes[0].sentence.startswith("after.log failed: out of memory")
    assert difference.causes[0].sentence.endswith(
        "; it may be due to any of cuda_graph_max_bs 128 -> 512, mem_fraction_static 0.4 -> 0.88."
    )


def test_a_log_that_contradicts_itself_is_said_to(read_text: ReadText, packs: Packs) -> None:
    text = log_text(GOOD)
    wrong = re.sub(r"(TP2\] Load weight begin\. avail mem=)94\.50", r"\g<1>24.50", text)
    assert text != wrong
    difference = text_diff(text, wrong, read_text, packs)
    assert difference.lines[1].startswith("b.log contradicts itself: 24.50 GiB free before the weights and 54.50")
    assert difference.budget.terms == ()


def test_words_alone_are_no_difference_in_memory(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    launches = fixture_launches["baseline_debug_nocar"], fixture_launches["car"]
    difference = diff_launches([launches[0]], launches[1], packs, Tolerance())
    assert difference.lines[1].startswith("No difference in memory or time beyond print resolution")


def test_steps_are_counted_and_not_their_ranks(read_text: ReadText, packs: Packs) -> None:
    text = log_text(GOOD)
    cut = text[: text.index("Capture cuda graph end")].rpartition("\n")[0] + "\n"
    difference = text_diff(text, cut, read_text, packs)
    steps = {(c.worker, c.event, c.role, c.field) for c in difference.changes if c.is_worth_showing}
    said = f"No difference as far as both logs go: {len(steps)} steps on all 8 ranks are not reached by b.log."
    assert said == difference.lines[1]
    assert len(steps) < 8  # one of them is that of eight ranks


def test_one_rank_with_a_tag_is_one_without(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """0.4.4 tags the only rank, 0.5.23 does not: their steps are compared, and not the least and most of them."""
    launches = fixture_launches["0.4.4-new-fakecuda-tp1"], fixture_launches["0.5.23-fakecuda-tp1"]
    difference = diff_launches([launches[0]], launches[1], packs, Tolerance())
    assert not any("ranks differ" in note for note in difference.notes)
    assert {""} == {change.rank for change in difference.changes}


def test_ranks_that_part_are_all_named(diff: Diff) -> None:
    first = diff(H200, replace(H200, foreign_gib={3: 12.0})).first
    assert first is not None
    assert (("TP3",), 8, "avail_mem_bytes", "bytes") == (first.ranks, first.of, first.field, first.unit)
    everywhere = diff(GOOD, replace(GOOD, fraction=0.8)).first
    assert everywhere is not None
    assert tuple(f"TP{rank}" for rank in range(8)) == everywhere.ranks


MAMBA = (Path(__file__).parent / "fixtures/0.5.23-new-mamba-tp1/launch.log").read_text(encoding="utf-8")


def mamba_log(fraction: float, cache_size: int | None = None, state_gib: float | None = None) -> str:
    """Return a launch of a hybrid model: 93.02 - 94.98 * (1 - f) GiB, of which states take 0.9 parts of 1.9, or what is given."""
    budget = 93.02 - 94.98 * (1 - fraction)
    states = budget * 0.9 / 1.9 if state_gib is None else state_gib
    tokens = int((budget - states) * GIB / 32_775)
    text = MAMBA.replace("'mem_fraction_static': 0.867", f"'mem_fraction_static': {fraction}")
    text = text.replace("'max_mamba_cache_size': None", f"'max_mamba_cache_size': {cache_size}").replace(
        "1386445", str(tokens)
    )
    text = re.sub(
        r"conv_state size: [\d.]+GB, ssm_state size: [\d.]+GB",
        f"conv_state size: 0.00GB, ssm_state size: {states:.2f}GB",
        text,
    )
    half = (budget - states) / 2
    return re.sub(r"K size: [\d.]+ GB, V size: [\d.]+ GB", f"K size: {half:.2f} GB, V size: {half:.2f} GB", text)


@pytest.mark.parametrize(
    ("before", "after", "tokens"),
    [
        # of 0.1 * 94.98 GiB the states take 0.9 parts of 1.9, or nothing where their number is given
        (mamba_log(0.8), mamba_log(0.9), 9.498 / 1.9 * GIB / 32_775),
        (mamba_log(0.9), mamba_log(0.8), -9.498 / 1.9 * GIB / 32_775),
        (mamba_log(0.8, 1000, 10.0), mamba_log(0.9, 1000, 10.0), 9.498 * GIB / 32_775),
    ],
    ids=["more", "less", "fixed"],
)
def test_mamba_states_have_their_part_of_the_budget(
    before: str, after: str, tokens: float, read_text: ReadText, packs: Packs
) -> None:
    difference = text_diff(before, after, read_text, packs)
    (cause,) = difference.causes
    assert "mem_fraction_static" == cause.name
    assert tokens == pytest.approx(cause.explains_tokens, rel=0.003)
    assert abs(difference.budget.residual_tokens or 0) < 1000


def test_more_mamba_states_leave_fewer_tokens(read_text: ReadText, packs: Packs) -> None:
    difference = text_diff(mamba_log(0.9, 1000, 10.0), mamba_log(0.9, 2000, 20.0), read_text, packs)
    (cause,) = difference.causes
    assert ("max_mamba_cache_size", None) == (cause.name, cause.explains_bytes)
    assert -10 * GIB / 32_775 == pytest.approx(cause.explains_tokens, rel=0.003)
