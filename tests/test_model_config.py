"""From config.json to the cell size: public models, models of the fixtures' logs, and what is not modelled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logscope.budget import (
    Interval,
    KvModel,
    ModelFacts,
    NotModelled,
    cell_size,
    kv_model,
    measured_cell_size,
    read_model_config,
    stored_cell_size,
)
from logscope.budget.architectures import HEADS, LATENT, SPARSE, STAGED
from logscope.errors import UsageError
from logscope.units import GIB

FIXTURES = Path(__file__).parent / "fixtures"
Config = dict[str, object]


def heads(
    architecture: str, kind: str, layers: int, attention: int, kv: int | None, hidden: int, **more: object
) -> Config:
    """Return a configuration with heads; ``kv`` None leaves num_key_value_heads out."""
    shape: Config = {"num_hidden_layers": layers, "num_attention_heads": attention, "hidden_size": hidden}
    if kv is not None:
        shape["num_key_value_heads"] = kv
    return {"architectures": [architecture], "model_type": kind, "torch_dtype": "bfloat16", **shape, **more}


def latent(architecture: str, kind: str, layers: int, **more: object) -> Config:
    """Return a configuration with MLA, as DeepSeek's."""
    shape: Config = {"num_hidden_layers": layers, "num_attention_heads": 128, "num_key_value_heads": 128}
    row: Config = {"hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}
    return {"architectures": [architecture], "model_type": kind, "torch_dtype": "bfloat16", **shape, **row, **more}


def nested(architecture: str, kind: str, key: str, inner: Config) -> Config:
    return {"architectures": [architecture], "model_type": kind, key: inner, "vision_config": {"hidden_size": 1280}}


LLAMA_8B = heads("LlamaForCausalLM", "llama", 32, 32, 8, 4096, max_position_embeddings=131072)
LLAMA_70B = heads("LlamaForCausalLM", "llama", 80, 64, 8, 8192)
QWEN_VL = heads("Qwen2VLForConditionalGeneration", "qwen2_vl", 28, 28, 4, 3584, vision_config={"depth": 32})
DEEPSEEK_V3 = latent("DeepseekV3ForCausalLM", "deepseek_v3", 61, num_nextn_predict_layers=1)
INDEXER: Config = {"index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64}
DEEPSEEK_V32 = latent("DeepseekV32ForCausalLM", "deepseek_v32", 61, **INDEXER)

PUBLIC = {
    "Llama-2-7B": (heads("LlamaForCausalLM", "llama", 32, 32, None, 4096), 524_288),
    "Llama-3.1-8B": (LLAMA_8B, 131_072),
    "Llama-3.1-70B": (LLAMA_70B, 327_680),
    "Llama-3.2-1B": (heads("LlamaForCausalLM", "llama", 16, 32, 8, 2048, head_dim=64), 32_768),
    "Mistral-Nemo": (heads("MistralForCausalLM", "mistral", 40, 32, 8, 5120, head_dim=128), 163_840),
    "Mistral-7B-v0.1": (heads("MistralForCausalLM", "mistral", 32, 32, 8, 4096, sliding_window=4096), 131_072),
    "Mixtral-8x7B": (heads("MixtralForCausalLM", "mixtral", 32, 32, 8, 4096), 131_072),
    "Qwen2.5-7B": (heads("Qwen2ForCausalLM", "qwen2", 28, 28, 4, 3584, sliding_window=131072), 57_344),
    "Qwen3-32B": (heads("Qwen3ForCausalLM", "qwen3", 64, 64, 8, 5120, head_dim=128), 262_144),
    "Qwen3-235B-A22B": (heads("Qwen3MoeForCausalLM", "qwen3_moe", 94, 64, 4, 4096, head_dim=128), 192_512),
    "Qwen2-VL-7B, flat": (QWEN_VL, 57_344),
    "Qwen2.5-VL-7B, nested": (
        nested(
            "Qwen2_5_VLForConditionalGeneration",
            "qwen2_5_vl",
            "text_config",
            heads("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text", 28, 28, 4, 3584),
        ),
        57_344,
    ),
    "InternVL3-8B": (
        nested("InternVLChatModel", "internvl_chat", "llm_config", heads("Qwen2ForCausalLM", "qwen2", 28, 28, 4, 3584)),
        57_344,
    ),
    "Qwen3-Omni": (
        {
            "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
            "model_type": "qwen3_omni_moe",
            "thinker_config": {"text_config": heads("", "qwen3_omni_moe_text", 48, 32, 4, 2048, head_dim=128)},
        },
        98_304,
    ),
    "Phi-3-mini": (heads("Phi3ForCausalLM", "phi3", 32, 32, 32, 3072, sliding_window=2047), 393_216),
    "Phi-4-mini": (heads("Phi3ForCausalLM", "phi3", 32, 24, 8, 3072), 131_072),
    "Gemma-7B": (heads("GemmaForCausalLM", "gemma", 28, 16, 16, 3072, head_dim=256), 458_752),
    "GLM-4.5": (heads("Glm4MoeForCausalLM", "glm4_moe", 92, 96, 8, 5120, head_dim=128), 376_832),
    "Command-R7B": (heads("Cohere2ForCausalLM", "cohere2", 32, 32, 8, 4096, sliding_window=4096), 131_072),
    "MiniMax-M2": (
        heads("MiniMaxM2ForCausalLM", "minimax_m2", 62, 48, 8, 3072, head_dim=128, attn_type_list=[1] * 62),
        253_952,
    ),
    "GPT-2": (
        {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768},
        36_864,
    ),
    "ChatGLM3-6B": (
        {
            "architectures": ["ChatGLMModel"],
            "model_type": "chatglm",
            "num_layers": 28,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "multi_query_group_num": 2,
        },
        28_672,
    ),
    "Step3": (
        nested(
            "Step3VLForConditionalGeneration",
            "step3_vl",
            "text_config",
            heads("Step3TextForCausalLM", "step3_text", 61, 64, None, 7168, num_attention_groups=1, head_dim=256),
        ),
        62_464,
    ),
    "DeepSeek-V2": (latent("DeepseekV2ForCausalLM", "deepseek_v2", 60), 69_120),
    "DeepSeek-V3": (DEEPSEEK_V3, 70_272),
    "Kimi-K2": (latent("DeepseekV3ForCausalLM", "kimi_k2", 61, num_attention_heads=64), 70_272),
    "Kimi-VL-A3B": (
        nested(
            "KimiVLForConditionalGeneration",
            "kimi_vl",
            "text_config",
            latent("DeepseekV3ForCausalLM", "deepseek_v3", 27),
        ),
        31_104,
    ),
    "GLM-4.7-Flash": (latent("Glm4MoeLiteForCausalLM", "glm4_moe_lite", 47), 54_144),
    "MiniCPM3-4B": (latent("MiniCPM3ForCausalLM", "minicpm3", 62, kv_lora_rank=256, qk_rope_head_dim=32), 35_712),
}


def facts_of(config: Config) -> ModelFacts:
    return read_model_config(json.dumps(config))


def cell(
    config: Config,
    release: str = "0.5.9",
    tp: int = 1,
    kv_cache_dtype: str | None = None,
    model_dtype: str | None = None,
    dp_attention: int = 1,
    pp: int = 1,
    scaled_fp8: bool | None = None,
) -> int | str:
    """Return the cell size, or the reason why there is none."""
    model = kv_model(
        facts_of(config),
        tp=tp,
        dp_attention=dp_attention,
        pp=pp,
        kv_cache_dtype=kv_cache_dtype,
        model_dtype=model_dtype,
        scaled_fp8=scaled_fp8,
    )
    found = model if isinstance(model, NotModelled) else cell_size(model, release)
    return found.reason if isinstance(found, NotModelled) else found


# Public models.


@pytest.mark.parametrize(("config", "expected"), PUBLIC.values(), ids=PUBLIC)
def test_cells_of_public_models(config: Config, expected: int) -> None:
    assert expected == cell(config)
    assert expected // 2 == cell(config, kv_cache_dtype="fp8_e4m3")
    assert expected == cell(config, kv_cache_dtype="bfloat16")


def test_heads_are_shared_among_ranks_and_replicated_where_there_are_too_few() -> None:
    assert 40_960 == cell(LLAMA_70B, tp=8)
    assert 40_960 == cell(LLAMA_70B, tp=16)
    assert 81_920 == cell(LLAMA_70B, tp=8, dp_attention=2)
    assert 327_680 == cell(LLAMA_70B, tp=8, dp_attention=8)


def test_latent_rows_are_the_same_on_every_rank() -> None:
    assert 70_272 == cell(DEEPSEEK_V3, tp=16) == cell(DEEPSEEK_V3, tp=16, dp_attention=16)


def test_dsa_has_keys_of_its_indexer_beside_the_row() -> None:
    assert (576 * 2 + 132) * 61 == cell(DEEPSEEK_V32, kv_cache_dtype="bfloat16")
    assert (656 + 132) * 61 == cell(DEEPSEEK_V32, "0.5.17", kv_cache_dtype="fp8_e4m3", scaled_fp8=True)
    assert (576 + 132) * 61 == cell(DEEPSEEK_V32, "0.5.17", kv_cache_dtype="fp8_e4m3", scaled_fp8=False)
    glm = latent("GlmMoeDsaForCausalLM", "glm_moe_dsa", 78, head_dim=64, **INDEXER)
    assert (576 * 2 + 132) * 78 == cell(glm, kv_cache_dtype="bf16", scaled_fp8=True)


def test_v_head_dim_of_a_model_with_heads_is_charged() -> None:
    config = heads("Qwen3ForCausalLM", "qwen3", 10, 8, 8, 1024, head_dim=192, v_head_dim=128)
    assert 8 * 320 * 10 * 2 == cell(config)
    assert cell({**config, "v_head_dim": 0}) == cell({**config, "v_head_dim": None}) == 8 * 384 * 10 * 2


@pytest.mark.parametrize(
    ("written", "flag", "expected"),
    [
        ("float16", None, 131_072),
        ("float32", None, 131_072),
        ("float32", "auto", 131_072),
        (None, None, 131_072),
        ("bfloat16", "half", 131_072),
        ("bfloat16", "float32", 262_144),
        ("float8_e4m3fn", None, "a model of dtype float8_e4m3fn"),
        ("bfloat16", "int4", "a model of dtype int4"),
    ],
)
def test_an_auto_cache_has_the_dtype_of_the_model(written: str | None, flag: str | None, expected: int | str) -> None:
    """SGLang loads float32 weights as float16 or bfloat16 unless --dtype says otherwise."""
    assert expected == cell({**LLAMA_8B, "torch_dtype": written}, model_dtype=flag)


def test_dtype_is_read_under_its_new_name() -> None:
    assert "float16" == facts_of({**LLAMA_8B, "dtype": "float16"}).dtype


def test_fp4_caches_are_marked() -> None:
    model = kv_model(facts_of(LLAMA_8B), tp=1, kv_cache_dtype="fp4_e2m1")
    assert isinstance(model, KvModel)
    assert (True, 1) == (model.fp4, model.element_bytes)
    assert 32_768 + 65_536 // 16 == cell_size(model, "0.5.6")


def test_the_largest_pipeline_stage_counts() -> None:
    assert 131_072 // 2 == cell(LLAMA_8B, pp=2)
    assert 11 * 4096 == cell({**LLAMA_8B, "num_hidden_layers": 31}, pp=3)
    assert "32 layers over 5 pipeline stages, which releases split in two ways" == cell(LLAMA_8B, pp=5)
    assert "pipeline stages of Qwen2VLForConditionalGeneration" == cell(QWEN_VL, pp=2)


def test_draft_layers_are_charged_from_0_5_14_on() -> None:
    facts = facts_of(DEEPSEEK_V3)
    assert 1 == facts.mtp_layers
    model = kv_model(facts, tp=8, kv_cache_dtype="auto", speculative="EAGLE", draft_layers=1)
    assert isinstance(model, KvModel)
    assert (70_272, 70_272 + 1152) == (cell_size(model, "0.5.13"), cell_size(model, "0.5.14"))


@pytest.mark.parametrize(
    ("algorithm", "draft_layers", "expected"),
    [
        (None, 0, None),
        ("NGRAM", 0, None),
        ("nextn", 1, None),
        ("EAGLE3", 0, "a draft of EAGLE3 whose number of layers is not known"),
        ("DFLASH", 5, "drafts of DFLASH"),
    ],
)
def test_drafts_unlike_the_target_are_not_modelled(
    algorithm: str | None, draft_layers: int, expected: str | None
) -> None:
    found = kv_model(facts_of(LLAMA_8B), tp=1, kv_cache_dtype=None, speculative=algorithm, draft_layers=draft_layers)
    assert expected == (found.reason if isinstance(found, NotModelled) else None)


# What SGLang printed itself.

TINY = heads("LlamaForCausalLM", "llama", 2, 4, 4, 64)
MID = heads("LlamaForCausalLM", "llama", 32, 8, 8, 64, head_dim=128)
POOL = re.compile(r"KV Cache is allocated\..*#tokens: (\d+), K size: ([\d.]+) GB, V size: ([\d.]+) GB")


def printed_pools(case: str) -> list[tuple[Interval, int]]:
    """Return size and tokens of the pools that a launch printed, in order."""
    text = (FIXTURES / case / "launch.log").read_text(encoding="utf-8")
    found = [(float(match[2]) + float(match[3]), int(match[1])) for match in POOL.finditer(text)]
    return [(Interval((size - 0.01) * GIB, (size + 0.01) * GIB), count) for size, count in found]


@pytest.mark.parametrize(
    ("case", "release", "config", "tp", "draft_layers"),
    [
        ("0.4.4-new-fakecuda-tp1", "0.4.4", MID, 1, 0),
        ("0.4.6.post5-new-fakecuda-tp2", "0.4.6.post5", MID, 2, 0),
        ("0.5.9-ok", "0.5.9", TINY, 1, 0),
        ("0.5.9-fakecuda-tp2-dp2", "0.5.9", MID, 2, 0),
        ("0.5.9-fakecuda-tp8", "0.5.9", MID, 8, 0),
        ("0.5.9-new-eagle-tp2", "0.5.9", MID, 2, 1),
        ("0.5.13-new-fakecuda-tp2", "0.5.13", MID, 2, 0),
        ("0.5.14-new-eagle-tp2", "0.5.14", MID, 2, 1),
        ("0.5.23-ok", "0.5.23", TINY, 1, 0),
        ("0.5.23-fakecuda-tp1", "0.5.23", MID, 1, 0),
    ],
)
def test_cells_meet_the_pools_of_logs(case: str, release: str, config: Config, tp: int, draft_layers: int) -> None:
    """The shapes are those of mkmodel.py and mkmodel2.py, which made the models of these launches."""
    speculative = "EAGLE" if draft_layers else None
    model = kv_model(facts_of(config), tp=tp, kv_cache_dtype="auto", speculative=speculative, draft_layers=draft_layers)
    assert isinstance(model, KvModel)
    stored = stored_cell_size(model, release)
    assert isinstance(stored, int)
    size, count = printed_pools(case)[0]
    measured = measured_cell_size(size, count, 1, release)
    assert measured.holds(stored)
    assert measured.high - measured.low < 0.01 * stored


# What is not modelled.

WINDOWS = "sliding-window layers, which some or all releases keep in a pool of their own"
STATES = "Mamba or linear-attention layers, whose states take a share of the budget"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            heads("Qwen3NextForCausalLM", "qwen3_next", 48, 16, 2, 2048, head_dim=256),
            f"{STATES} (Qwen3NextForCausalLM)",
        ),
        (heads("FalconH1ForCausalLM", "falcon_h1", 8, 8, 8, 64, mamba_d_ssm=128), f"{STATES} (FalconH1ForCausalLM)"),
        (heads("NemotronHForCausalLM", "nemotron_h", 52, 32, 8, 4096), f"{STATES} (NemotronHForCausalLM)"),
        (heads("JambaForCausalLM", "jamba", 32, 32, 8, 4096), f"{STATES} (JambaForCausalLM)"),
        (heads("KimiLinearForCausalLM", "kimi_linear", 27, 32, 32, 2304), f"{STATES} (KimiLinearForCausalLM)"),
        (heads("GptOssForCausalLM", "gpt_oss", 36, 64, 8, 2880, head_dim=64), f"{WINDOWS} (GptOssForCausalLM)"),
        (
            nested(
                "Gemma3ForConditionalGeneration", "gemma3", "text_config", heads("", "gemma3_text", 62, 32, 16, 5376)
            ),
            f"{WINDOWS} (Gemma3ForConditionalGeneration)",
        ),
        (heads("Gemma2ForCausalLM", "gemma2", 42, 16, 8, 3584, head_dim=256), f"{WINDOWS} (Gemma2ForCausalLM)"),
        (
            nested(
                "Llama4ForConditionalGeneration", "llama4", "text_config", heads("", "llama4_text", 48, 40, 8, 5120)
            ),
            f"{WINDOWS} (Llama4ForConditionalGeneration)",
        ),
        (heads("MiMoV2FlashForCausalLM", "mimo_v2_flash", 48, 64, 4, 4096), f"{WINDOWS} (MiMoV2FlashForCausalLM)"),
        (heads("Step3p5ForCausalLM", "step3p5", 45, 64, 8, 4096), f"{WINDOWS} (Step3p5ForCausalLM)"),
        (
            latent("DeepseekV4ForCausalLM", "deepseek_v4", 61),
            "DeepSeek V4, which sizes its pools by its own formula (DeepseekV4ForCausalLM)",
        ),
        (
            heads("MiniMaxM3SparseForCausalLM", "minimax_m3", 60, 64, 4, 6144),
            "MiniMax sparse attention (MiniMaxM3SparseForCausalLM)",
        ),
        (
            nested(
                "MllamaForConditionalGeneration", "mllama", "text_config", heads("", "mllama_text", 40, 32, 8, 4096)
            ),
            "cross-attention layers (MllamaForConditionalGeneration)",
        ),
        (heads("WhisperForConditionalGeneration", "whisper", 32, 20, 20, 1280), "an encoder and a decoder"),
        (heads("DeciLMForCausalLM", "nemotron-nas", 80, 64, None, 8192), "layers that differ in their heads"),
        (heads("FrobnicatorForCausalLM", "x", 2, 2, 2, 64), "FrobnicatorForCausalLM, an architecture that was not"),
        (
            nested(
                "InternVLChatModel",
                "internvl_chat",
                "llm_config",
                heads("GptOssForCausalLM", "gpt_oss", 24, 64, 8, 2880),
            ),
            WINDOWS,
        ),
        ({"architectures": None, "model_type": "llama"}, "a config.json without architectures"),
    ],
)
def test_architectures_with_pools_of_their_own_get_a_note(config: Config, reason: str) -> None:
    found = cell(config)
    assert isinstance(found, str)
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"full_attention_interval": 4}, f"{STATES} (full_attention_interval)"),
        ({"mamba_d_state": 16}, f"{STATES} (mamba_d_state)"),
        ({"hybrid_override_pattern": "M-M*"}, f"{STATES} (hybrid_override_pattern)"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "layers of type linear_attention (layer_types)"),
        ({"attn_type_list": [0, 1]}, f"{STATES} (attn_type_list)"),
        ({"is_hybrid_swa": True}, f"{WINDOWS} (is_hybrid_swa)"),
        ({"attention_chunk_size": 8192}, f"{WINDOWS} (attention_chunk_size)"),
        ({"num_kv_shared_layers": 15}, "layers that share their keys and values (num_kv_shared_layers)"),
        ({"num_key_value_heads": [8, 4]}, "layers that differ in their heads (num_key_value_heads)"),
        ({"cross_attention_layers": [3]}, "cross-attention layers (cross_attention_layers)"),
        ({"index_topk": 2048}, "sparse attention (index_topk)"),
        ({"compress_ratios": [4]}, "sparse attention (compress_ratios)"),
        ({"num_loops": 2}, "layers that run more than once (num_loops)"),
        (
            {"text_config": {}, "llm_config": {}},
            "llm_config and text_config: releases differ in which of them they take",
        ),
        ({"num_hidden_layers": None}, "LlamaForCausalLM without num_hidden_layers in its config.json"),
        ({"num_key_value_heads": "8"}, "LlamaForCausalLM without num_key_value_heads in its config.json"),
        ({"num_key_value_heads": None, "model_type": "mistral"}, "LlamaForCausalLM without num_key_value_heads in its"),
        ({"model_type": "qwen3"}, "LlamaForCausalLM without head_dim in its config.json"),
    ],
)
def test_keys_that_tell_of_other_pools_get_a_note(keys: Config, reason: str) -> None:
    found = cell({**LLAMA_8B, **keys})
    assert isinstance(found, str)
    assert found.startswith(reason)


def test_keys_that_are_off_do_not_matter() -> None:
    off: Config = {
        "mamba_d_state": None,
        "is_hybrid_swa": False,
        "num_kv_shared_layers": 0,
        "num_loops": 1,
        "index_topk": None,
        "layer_types": ["full_attention", "sliding_attention"],
        "attn_type_list": [1, 1],
        "sliding_window": 4096,
        "cross_attention_layers": [],
        "is_encoder_decoder": False,
        "text_config": None,
    }
    assert 131_072 == cell({**LLAMA_8B, **off})


@pytest.mark.parametrize(
    ("config", "dtype", "reason"),
    [
        (DEEPSEEK_V32, None, "a cache dtype of 'auto' with DSA, where the card decides it"),
        (DEEPSEEK_V32, "fp8_e4m3", "an FP8 cache with DSA whose backend is not known"),
        (DEEPSEEK_V32, "fp8_e5m2", "a cache of dtype fp8_e5m2 with DSA"),
        (DEEPSEEK_V32, "fp4_e2m1", "a cache of dtype fp4_e2m1 with DSA"),
        ({**DEEPSEEK_V32, "index_topk_freq": 4}, "bfloat16", "indexer keys that some layers share (index_topk_freq)"),
        ({**DEEPSEEK_V32, "index_head_dim": None}, "bfloat16", "DeepseekV32ForCausalLM without index_head_dim"),
        (latent("GlmMoeDsaForCausalLM", "glm_moe_dsa", 78, head_dim=192, **INDEXER), "bf16", "head_dim beside qk_rope"),
        (LLAMA_8B, "mxfp8", "a cache of dtype mxfp8"),
    ],
)
def test_caches_that_are_not_known_get_a_note(config: Config, dtype: str | None, reason: str) -> None:
    found = cell(config, kv_cache_dtype=dtype)
    assert isinstance(found, str)
    assert found.startswith(reason)


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
        {"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}},
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}},
    ],
)
def test_a_quantization_that_may_choose_the_cache_needs_the_dtype_in_force(quantization: Config) -> None:
    """Such a cache is FP8 in 0.5.3 and later, or in later releases still; before, it has the model's dtype."""
    config = {**LLAMA_8B, "quantization_config": quantization}
    assert "a cache dtype of 'auto' where the checkpoint's quantization may decide it" == cell(config)
    assert 65_536 == cell(config, kv_cache_dtype="fp8_e4m3")


def test_a_quantization_of_the_weights_alone_does_not_matter() -> None:
    assert 131_072 == cell(
        {**LLAMA_8B, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    )
    assert 131_072 == cell(
        {**LLAMA_8B, "compression_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": None}}
    )


def test_sizes_that_do_not_fit_are_refused() -> None:
    assert "tp=8 that dp=3 does not divide" == cell(LLAMA_8B, tp=8, dp_attention=3)
    with pytest.raises(ValueError, match="tp=0 dp=1 pp=1"):
        cell(LLAMA_8B, tp=0)


# Facts and errors.


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, 131_072),
        ({"rope_scaling": {"factor": 8.0, "rope_type": "llama3"}}, 131_072),
        ({"rope_scaling": {"factor": 4.0, "type": "yarn", "original_max_position_embeddings": 32_768}}, 131_072),
        ({"rope_scaling": {"factor": 2.5, "type": "linear"}}, 327_680),
        ({"rope_parameters": {"rope_type": "default"}}, 131_072),
        ({"rope_scaling": {"factor": float("inf")}}, 131_072),
        ({"seq_length": 8192}, 8192),
        ({"max_position_embeddings": None}, None),
    ],
)
def test_context_lengths_are_those_of_sglang(keys: Config, expected: int | None) -> None:
    assert expected == facts_of({**LLAMA_8B, **keys}).context_length


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "model config:2:6: this is no JSON: expecting ':' delimiter"),
        ("", "model config:1:1: this is no JSON: expecting value"),
        ("[1]", "model config: a list where an object with the model's settings must be"),
        ("null", "model config: null where an object with the model's settings must be"),
        ("7", "model config: a number where an object with the model's settings must be"),
        ('{"temperature": 0.6}', "model config: neither 'architectures' nor 'model_type' is in it, but temperature"),
        ("{}", "model config: neither 'architectures' nor 'model_type' is in it, but nothing"),
    ],
)
def test_what_is_no_models_config_is_an_error_that_says_what_to_do(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_model_config(text)
    assert f"{message}\n  do: give the config.json that lies beside the model's weights" == str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "1" * 10_000 + "}"])
def test_json_beyond_measure_is_an_error_not_a_traceback(text: str) -> None:
    with pytest.raises(UsageError, match=r"models/x/config\.json"):
        read_model_config(text, "models/x/config.json")


def test_a_byte_order_mark_is_no_error() -> None:
    assert 32 == read_model_config("\ufeff" + json.dumps(LLAMA_8B)).layers


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
KEYS = sorted(
    {
        *LLAMA_8B,
        *DEEPSEEK_V32,
        "head_dim",
        "layer_types",
        "rope_scaling",
        "quantization_config",
        "text_config",
        "n_layer",
    }
)


@given(st.sampled_from([LLAMA_8B, DEEPSEEK_V32, QWEN_VL]), st.dictionaries(st.sampled_from(KEYS), ODD))
def test_any_json_gives_a_model_or_a_note(config: Config, odd: Config) -> None:
    try:
        facts = facts_of({**config, **odd})
    except UsageError:
        return
    found = kv_model(facts, tp=8, kv_cache_dtype="bfloat16")
    size = found if isinstance(found, NotModelled) else cell_size(found, "0.5.9")
    assert isinstance(size, NotModelled) or size > 0


def test_tables_of_architectures_agree() -> None:
    assert HEADS and LATENT
    assert not HEADS & LATENT
    assert SPARSE < LATENT
    assert STAGED < HEADS | LATENT


def test_no_listed_architecture_is_refused_by_its_name() -> None:
    reasons = {name: facts_of({"architectures": [name]}).unmodelled for name in HEADS | LATENT}
    assert {} == {name: reason for name, reason in reasons.items() if not str(reason).startswith(f"{name} without")}
