"""Which architectures keep their KV cache in one plain pool, and what tells that others do not. Tables of ``model_config``.

Source: sglang/srt/configs/model_config.py, model_executor/model_runner.py, server_args.py, models/, 0.1.13 to 0.5.23; transformers
4.44 to 5.18 for what its classes put in where config.json is silent.
"""

from __future__ import annotations

from collections.abc import Mapping

Config = Mapping[str, object]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Architectures with keys and values by head in one pool, in every release that has them (0.1.13 to 0.5.23).
HEADS = frozenset(
    _words("""AfmoeForCausalLM ApertusForCausalLM ArceeForCausalLM BaichuanForCausalLM BailingMoEForCausalLM BailingMoeForCausalLM
    BailingMoeV2ForCausalLM ChatGLMForCausalLM ChatGLMModel Cohere2ForCausalLM Cohere2VisionForConditionalGeneration CohereForCausalLM
    DeepseekForCausalLM DotsOCRForCausalLM Ernie4_5_ForCausalLM Ernie4_5_MoeForCausalLM Exaone4ForCausalLM ExaoneForCausalLM
    ExaoneMoEForCausalLM GPT2LMHeadModel GPTJForCausalLM GemmaForCausalLM Glm4ForCausalLM Glm4MoeForCausalLM
    Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration GlmOcrForConditionalGeneration GraniteForCausalLM
    GraniteMoeForCausalLM GraniteMoeSharedForCausalLM HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM IQuestCoderForCausalLM
    InternLM2ForCausalLM InternLM2ForRewardModel InternLM3ForCausalLM InternS1ForConditionalGeneration InternVLChatModel
    LlamaEmbeddingModel LlamaForCausalLM LlamaForClassification LlamaForSequenceClassification LlavaForConditionalGeneration
    LlavaLlamaForCausalLM LlavaMistralForCausalLM LlavaQwenForCausalLM MiMoForCausalLM MiniCPMForCausalLM MiniCPMO MiniCPMV
    MiniMaxM2ForCausalLM Ministral3ForCausalLM Mistral3ForConditionalGeneration MistralForCausalLM MistralModel MixtralForCausalLM
    OPTForCausalLM Olmo2ForCausalLM OlmoForCausalLM OlmoeForCausalLM PersimmonForCausalLM Phi3ForCausalLM Phi4MMForCausalLM
    PhiForCausalLM PhiMoEForCausalLM QWenLMHeadModel Qwen2AudioForConditionalGeneration Qwen2ForCausalLM Qwen2ForRewardModel
    Qwen2ForSequenceClassification Qwen2MoeForCausalLM Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration
    Qwen3ForCausalLM Qwen3ForSequenceClassification Qwen3MoeForCausalLM Qwen3OmniMoeForConditionalGeneration
    Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration SolarForCausalLM StableLmForCausalLM Starcoder2ForCausalLM
    Step3VLForConditionalGeneration XverseForCausalLM""")
)
# Those with MLA, since they came (DeepseekV2ForCausalLM: 0.2.10).
LATENT = frozenset(
    _words("""DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM DotsVLMForCausalLM Glm4MoeLiteForCausalLM
    GlmMoeDsaForCausalLM KimiK25ForConditionalGeneration KimiVLForConditionalGeneration MiniCPM3ForCausalLM
    SarvamMLAForCausalLM""")
)
SPARSE = frozenset({"DeepseekV32ForCausalLM", "DeepseekV3ForCausalLM", "GlmMoeDsaForCausalLM"})
# Those that tell their stage to the pool under pipeline parallelism. Others charge all layers to every stage, or refuse.
STAGED = frozenset(
    _words("""ApertusForCausalLM ArceeForCausalLM BailingMoEForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM DeepseekV2ForCausalLM
    DeepseekV32ForCausalLM DeepseekV3ForCausalLM Exaone4ForCausalLM ExaoneMoEForCausalLM Glm4ForCausalLM Glm4MoeForCausalLM
    Glm4MoeLiteForCausalLM GlmMoeDsaForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM KimiK25ForConditionalGeneration
    LlamaForCausalLM Ministral3ForCausalLM MistralForCausalLM MixtralForCausalLM OPTForCausalLM Phi3ForCausalLM Qwen2ForCausalLM
    Qwen2MoeForCausalLM Qwen3ForCausalLM Qwen3MoeForCausalLM SarvamMLAForCausalLM""")
)
_WINDOWS = "sliding-window layers, which some or all releases keep in a pool of their own"
_STATES = "Mamba or linear-attention layers, whose states take a share of the budget"
# Beginnings of architectures' names, and why they are not modelled.
_REFUSED = (
    ("DeepseekV4", "DeepSeek V4, which sizes its pools by its own formula"),
    ("MiniMaxM3", "MiniMax sparse attention"),
    ("Qwen4Exp", "QSA sparse attention"),
    ("Longcat", "two attention layers in each layer"),
    *((name, "layers that run more than once") for name in ("IQuestLoop", "Nanbeige")),
    ("DeciLM", "layers that differ in their heads"),
    *((name, "cross-attention layers") for name in ("Mllama", "MossVL")),
    *((name, "an encoder and a decoder") for name in ("Whisper", "T5", "Bart")),
    *(
        (name, _WINDOWS)
        for name in _words("""Llama4 GptOss Gemma2 Gemma3 Gemma4 EmbeddingGemma DiffusionGemma MiMoV2 Step3p Laguna Mellum Muse Inkling
        UnlimitedOCR GraniteSWA GraniteMoeSWA IQuestQ1 Beam Spark2 Dots3""")
    ),
    *(
        (name, _STATES)
        for name in _words("""Qwen3Next Qwen3_5 FalconH1 FalconMamba Mamba NemotronH Jamba Bamba Zamba Lfm2 GraniteMoeHybrid KimiLinear
        KimiK3 BailingMoeV2_5 BailingMoeV3 Zaya Jet MiniCPMSALA MiniCPMV4_ GigaChat35 Glm5Next InternS2 MiniMaxText MiniMaxM1""")
    ),
)
# Keys that tell the same of configurations whose architecture does not. A prefix ends in "_".
_REFUSED_KEYS = (
    *(
        (key, _STATES)
        for key in _words("""mamba_ linear_num_ linear_attn_config full_attention_interval hybrid_override_pattern attn_layer_period
        attn_layer_indices ssm_cfg mixer_types layers_block_type conv_L_cache""")
    ),
    *(
        (key, _WINDOWS)
        for key in _words("""is_hybrid_swa hybrid_layer_pattern swa_num_key_value_heads swa_head_dim global_head_dim
        num_global_key_value_heads attention_chunk_size""")
    ),
    *((key, "layers that share their keys and values") for key in ("num_kv_shared_layers", "use_cla")),
    *((key, "layers that differ in their heads") for key in ("block_configs", "per_layer_config")),
    *(
        (key, "cross-attention layers")
        for key in ("cross_attention_layers", "is_encoder_decoder", "add_cross_attention")
    ),
    *((key, "sparse attention") for key in ("compress_ratios", "sparse_attention_config", "indexer_n_heads")),
    *((key, "indexer keys that some layers share") for key in ("index_topk_pattern", "indexer_types")),
    ("multi_query", "multi_query"),
)
_REFUSED_ABOVE_ONE = (
    *((key, "indexer keys that some layers share") for key in ("index_topk_freq", "cli_factor", "index_kpool")),
    *((key, "layers that run more than once") for key in ("num_loops", "loop_num")),
)
# Types whose class in transformers, or in the checkpoint, derives what config.json leaves out; others put in a number of their own.
DERIVE_KV_HEADS = frozenset(
    _words("""apertus arcee baichuan cohere cohere2 gpt2 gptj granite granitemoe granitemoeshared internlm2 llama minicpm olmo olmo2 olmoe
    opt persimmon phi phi3 qwen""")
)
DERIVE_HEAD_DIM = DERIVE_KV_HEADS | frozenset(
    _words("""chatglm deepseek dots_ocr ernie4_5_moe exaone llava llava_llama llava_mistral llava_qwen minicpmo minicpmv mistral mixtral
    phi4mm phimoe qwen2 qwen2_5_vl qwen2_5_vl_text qwen2_moe qwen2_vl qwen2_vl_text stablelm starcoder2 xverse""")
)
# In the order in which SGLang asks for them.
KV_HEADS_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")


def refuse_architecture(architectures: tuple[str, ...], inner: Config) -> str | None:
    """Return why a model is not modelled, from its architectures' names and that of its language model."""
    if not architectures:
        return "a config.json without architectures"
    nested = inner.get("architectures")
    for name in (*architectures, *(nested if isinstance(nested, list) else ())):
        for beginning, reason in _REFUSED:
            if str(name).startswith(beginning):
                return f"{reason} ({name})"
    return None


def refuse_keys(config: Config, inner: Config, sparse: bool) -> str | None:
    """Return why a model is not modelled, from the keys of its configuration and of its language model's; ``sparse``: it is a DSA model."""
    for key, value in (*inner.items(), *config.items()):
        for refused, reason in _REFUSED_KEYS:
            if value and (key == refused or (refused.endswith("_") and key.startswith(refused))):
                return f"{reason} ({key})"
        for refused, reason in _REFUSED_ABOVE_ONE:
            if key == refused and isinstance(value, int) and value > 1:
                return f"{reason} ({key})"
        if key == "layer_types" and isinstance(value, list):
            odd = next(
                (kind for kind in value if kind not in ("full_attention", "sliding_attention", "attention")), None
            )
            if odd is not None:
                return f"layers of type {str(odd)[:40]} (layer_types)"
        if key == "attn_type_list" and isinstance(value, list) and not all(value):
            return f"{_STATES} ({key})"
        if key in KV_HEADS_KEYS and isinstance(value, list):
            return f"layers that differ in their heads ({key})"
        if key == "index_topk" and value and not sparse:
            return f"sparse attention ({key})"
    return None


def has_quantized_cache(config: Config) -> bool:
    """Return whether the quantization speaks of the cache, or is of a method that keeps a file of its own (ModelOpt, Petit)."""
    quantization = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(quantization, dict):
        return False
    section = quantization.get("quantization")
    parts: list[Config] = [quantization, section] if isinstance(section, dict) else [quantization]
    stated = any(part.get(key) for part in parts for key in ("kv_cache_quant_algo", "kv_cache_scheme", "quant_algo"))
    return stated or str(quantization.get("quant_method")).startswith(("modelopt", "petit"))
