"""Bytes per token from elsewhere are used only where nothing in either log speaks against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

import pytest

from conftest import BANNER, FIRED_UP, NO_MEMORY, ReadText, at, load_lines, log, pool_lines, printed_args
from logscope.budget import exact, read_model_config
from logscope.explainer import (
    Explanation,
    GivenCell,
    ModelConfig,
    OtherLog,
    Question,
    Source,
    explain_launch,
)
from logscope.model import Launch
from logscope.packs import Packs
from logscope.sizing import size_up

LLAMA: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8, "hidden_size": 8192, "head_dim": 128, "torch_dtype": "bfloat16",
}  # fmt: skip
TWO_RANKS = [*load_lines(), *load_lines(tag="TP1")]
FAILED = [BANNER, NO_MEMORY]
# 10.42 GiB +- 0.005 over 159,270 rows
OWN = "70,214..70,282"


class Other(Protocol):
    """Explain lines with bytes per token of other lines."""

    def __call__(self, here: list[str], there: list[str]) -> Explanation: ...


@pytest.fixture
def like(read_text: ReadText, packs: Packs) -> Other:
    def like(here: list[str], there: list[str]) -> Explanation:
        (launch,) = read_text(log(*here))
        (other,) = read_text(log(*there), name="good.log")
        source = OtherLog("--like good.log", other, size_up(other))
        return explain_launch(launch, packs, Question(source=source))

    return like


def dead(loads: list[str] | None = None, **args: object) -> list[str]:
    """Return a launch that died before its pool."""
    return [printed_args(mem_fraction_static=0.55, **args), *(loads or load_lines()), *FAILED]


def good(loads: list[str] | None = None, pool: list[str] | None = None, **args: object) -> list[str]:
    """Return a launch with a pool."""
    return [printed_args(mem_fraction_static=0.88, **args), *(loads or load_lines()), *(pool or pool_lines()), FIRED_UP]


def said(explanation: Explanation) -> dict[str, str]:
    """Return what is said of the source: id -> sentence."""
    return {each.id: each.sentence for each in explanation.findings if each.id.startswith("hint_")}


EAGLE = {"speculative_algorithm": "EAGLE", "speculative_draft_model_path": "/models/eagle"}
PER_DP = {"tp_size": 8, "dp_size": 2, "enable_dp_attention": True}
DTYPE = at("10:00:20", "TP0", "Using KV cache dtype: torch.float8_e4m3fn")
MLA = load_lines(model_type="DeepseekV2ForCausalLM")
DIFFER: list[tuple[list[str], list[str], str]] = [
    (dead(model_path="/a/Llama-70B"), good(model_path="/b/Llama-8B/"), "model Llama-70B here, model Llama-8B there"),
    (dead(tp_size=8), good(tp_size=4), "tp_size 8 here, tp_size 4 there"),
    (dead(**PER_DP), good(tp_size=8), "tp_size 8 with dp_size 2 in DP attention here, tp_size 8 there"),
    (dead(pp_size=2), good(), "pp_size 2 here, pp_size 1 there"),
    (
        dead(kv_cache_dtype="fp8_e5m2"), good(kv_cache_dtype="bfloat16"),
        "a KV cache of fp8_e5m2 here, a KV cache of bfloat16 there",
    ),
    (
        dead(kv_cache_dtype="auto"), good(kv_cache_dtype="fp8_e5m2"),
        "kv_cache_dtype auto with dtype auto here, kv_cache_dtype fp8_e5m2 there",
    ),
    (
        dead(quantization="modelopt"), good(),
        "kv_cache_dtype auto with dtype auto and quantization modelopt here, kv_cache_dtype auto with dtype auto there",
    ),
    (dead(dtype="float32"), good(), "kv_cache_dtype auto with dtype float32 here, kv_cache_dtype auto with dtype auto there"),
    (
        dead(kv_cache_dtype="bfloat16"), good(pool=[DTYPE, *pool_lines()]),
        "a KV cache of bfloat16 here, a KV cache of float8_e4m3fn there",
    ),
    (
        dead(json_model_override_args="{'num_hidden_layers': 4}"), good(json_model_override_args="{}"),
        "json_model_override_args {'num_hidden_layers': 4} here, json_model_override_args {} there",
    ),
    (
        dead(load_lines(model_type="Qwen3ForCausalLM")), good(),
        "architecture Qwen3ForCausalLM here, architecture LlamaForCausalLM there",
    ),
]  # fmt: skip
AGREE: list[tuple[list[str], list[str]]] = [
    (dead(model_path="/a/m"), good(model_path="/hub/models--org--m/snapshots/0a1b/")),
    (dead(tp_size=8, dp_size=2), good(tp_size=8)),  # replicas: each has the whole model
    (dead(page_size=64), good(page_size=1)),  # of the pool line the padding is taken off
    (dead(dtype="float16"), good(dtype="bfloat16")),
    (dead(kv_cache_dtype="fp8_e5m2"), good(kv_cache_dtype="fp8_e4m3")),
    (dead(kv_cache_dtype="bfloat16", quantization="fp8"), good(kv_cache_dtype="bfloat16")),
    (dead(MLA, tp_size=16), good(MLA, tp_size=8)),  # not divided by tp
    (dead(speculative_algorithm="NGRAM"), good()),
    (dead(**EAGLE), good()),  # elapsed= and dtype= are of 0.5.9: the draft is not paid for
    (dead(json_model_override_args="{}"), good(json_model_override_args=None)),
    (dead(port=1, random_seed=2, mem_fraction=3), good(port=4)),
]


@pytest.mark.parametrize(("here", "there", "what"), DIFFER, ids=[each[2][:40] for each in DIFFER])
def test_a_log_of_another_shape_is_refused_with_both_values(
    here: list[str], there: list[str], what: str, like: Other
) -> None:
    found = like(here, there)
    assert {
        "hint_refused": f"--like good.log does not fit this launch, and its {OWN} bytes per token are not used: {what}."
    } == said(found)
    assert found.sizing.cell is None
    assert {None} == {offer.grant.tokens for offer in found.offers}


@pytest.mark.parametrize(("here", "there"), AGREE)
def test_what_does_not_change_a_token_is_no_difference(here: list[str], there: list[str], like: Other) -> None:
    found = like(here, there)
    assert {} == said(found)
    assert found.sizing.cell is not None and "other log" == found.sizing.cell.source
    assert (70214, 70282) == (int(found.sizing.cell.size.low), int(found.sizing.cell.size.high) + 1)


def test_where_arguments_are_missing_it_is_taken_on_trust(like: Other) -> None:
    trusted = "model_path, pp_size, kv_cache_dtype are not known, so a token may take other bytes here."
    bare = [*load_lines(), *pool_lines(), FIRED_UP]
    found = like(dead(tp_size=1), bare)
    assert {"hint_on_trust": f"--like good.log is taken on trust: {trusted}"} == said(found)
    assert found.sizing.cell is not None


def test_ranks_tell_a_tensor_parallel_size_that_arguments_do_not(like: Other) -> None:
    found = like([*TWO_RANKS, *FAILED], good())
    assert "2 ranks here, tp_size 1 there" in said(found)["hint_refused"]


def test_a_draft_that_is_paid_for_here_and_not_there_is_refused(
    fixture_launches: dict[str, Launch], read_text: ReadText, packs: Packs
) -> None:
    """From 0.5.14 on the cell has the draft's layers: 67,569..67,604 bytes are charged, 65,535..65,554 stored."""
    other = fixture_launches["0.5.14-new-eagle-tp2"]
    args = dict(other.args.values)
    source = OtherLog("--like good.log", other, size_up(other))

    def cell(**changed: object) -> tuple[object, dict[str, str]]:
        text = log(printed_args(**{**args, **changed}), *load_lines(), *FAILED)
        text = text.replace("type=LlamaForCausalLM, dtype=torch.bfloat16", "type=LlamaForCausalLM")
        (launch,) = read_text(text)
        found = explain_launch(launch, packs, Question(source=source))
        return found.sizing.cell, said(found)

    assert source.sizing.cell is not None
    assert (65535, 67569) == (int(source.sizing.cell.size.low), int(source.sizing.cell.charged.low))
    found, _ = cell()
    assert found is not None and source.sizing.cell.charged == found.charged  # type: ignore[attr-defined]
    found, why = cell(speculative_algorithm=None)
    assert {} == why and source.sizing.cell.size == found.charged  # type: ignore[attr-defined]
    found, why = cell(speculative_algorithm="STANDALONE")
    assert found is None and "speculative_algorithm STANDALONE here, EAGLE there" in why["hint_refused"]


# -- a log with a pool of its own ------------------------------------------------------------------------------------------------


def of(lines: list[str], source: Source, read_text: ReadText, packs: Packs) -> Explanation:
    (launch,) = read_text(log(*lines))
    return explain_launch(launch, packs, Question(source=source))


@pytest.mark.parametrize(
    ("size", "level", "rest"),
    [
        (70272, "note", ", and it agrees."),
        (70283, "warning", ". It says 70,283."),
        (70213, "warning", ". It says 70,213."),
    ],
)
def test_a_log_with_its_own_bytes_per_token_uses_these_and_says_whether_others_agree(
    size: int, level: str, rest: str, read_text: ReadText, packs: Packs
) -> None:
    found = of(good(), GivenCell(size, f"--cell-bytes {size}"), read_text, packs)
    sentence = f"--cell-bytes {size} is not needed: this log has bytes per token of its own, {OWN}{rest}"
    assert {"hint_not_needed": sentence} == said(found)
    assert [level] == [each.level for each in found.findings if each.id == "hint_not_needed"]
    assert found.sizing.cell is not None and "pool line" == found.sizing.cell.source


def test_a_pool_that_is_too_small_to_tell_a_cell_still_bounds_it(read_text: ReadText, packs: Packs) -> None:
    """0.00 GB is at most 0.005 GiB: 0.005 * 2^30 / 20,000 = 268 bytes."""
    pool = [at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 20000, KV size: 0.00 GB")]
    found = of(good(pool=pool), GivenCell(70272), read_text, packs)
    assert said(found)["hint_refused"].endswith(
        "the pool here has at most 268 bytes for each of its tokens, not 70,272."
    )
    assert found.sizing.cell is None
    fits = of(good(pool=pool), GivenCell(268), read_text, packs)
    assert {} == said(fits) and fits.sizing.cell is not None


# -- config.json -----------------------------------------------------------------------------------------------------------------


def config(lines: list[str], facts: Mapping[str, object], read_text: ReadText, packs: Packs) -> Explanation:
    source = ModelConfig("--model-config config.json", read_model_config(json.dumps(facts)))
    return of(lines, source, read_text, packs)


def test_a_configuration_of_the_same_architecture_is_used(read_text: ReadText, packs: Packs) -> None:
    """80 layers of 2 heads of 4 ranks, 2 * 128 values of 2 bytes."""
    found = config(dead(tp_size=4), LLAMA, read_text, packs)
    assert {} == said(found)
    assert found.sizing.cell is not None and exact(81920) == found.sizing.cell.size


def test_a_configuration_that_contradicts_the_pool_is_named_with_both_numbers(
    read_text: ReadText, packs: Packs
) -> None:
    found = config(good(tp_size=4), LLAMA, read_text, packs)
    assert {
        "hint_not_needed": "--model-config config.json is not needed: this log has bytes per token of its own, "
        f"{OWN}. It says 81,920."
    } == said(found)


def test_without_arguments_the_ranks_tell_tp_and_the_rest_is_taken_on_trust(read_text: ReadText, packs: Packs) -> None:
    """80 layers of 4 heads of 2 ranks."""
    found = config([*TWO_RANKS, *FAILED], LLAMA, read_text, packs)
    assert found.sizing.cell is not None and exact(163840) == found.sizing.cell.size
    names = "speculative_algorithm, kv_cache_dtype, pp_size, tp_size"
    assert {
        "hint_on_trust": f"--model-config config.json is taken on trust: {names} are not known, so a token may take other bytes here."
    } == said(found)


def test_what_a_launch_leaves_open_gives_no_number(read_text: ReadText, packs: Packs) -> None:
    untagged = config([*load_lines(tag=""), NO_MEMORY], LLAMA, read_text, packs)
    assert said(untagged)["hint_refused"].endswith("not modelled: a launch whose tp_size is not in its log.")
    assert untagged.sizing.cell is None
