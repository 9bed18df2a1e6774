"""From a model's config.json to what the cell size depends on; whatever SGLang does not surely keep in one plain pool gets a note."""

from __future__ import annotations

import json

from msgspec import Struct
from msgspec.structs import replace

from logscope.budget.architectures import (
    DERIVE_HEAD_DIM,
    DERIVE_KV_HEADS,
    HEADS,
    KV_HEADS_KEYS,
    LATENT,
    SPARSE,
    STAGED,
    Config,
    has_quantized_cache,
    refuse_architecture,
    refuse_keys,
)
from logscope.budget.cells import Heads, KvModel, Latent
from logscope.budget.interval import NotModelled
from logscope.errors import UsageError

_DO = "  do: give the config.json that lies beside the model's weights"
_NESTED_KEYS = ("thinker_config", "llm_config", "language_config", "text_config")
_CONTEXT_KEYS = (
    *("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings"),
    "n_positions",  # of GPT-2 and GPT-J, whose class gives it the name before
)
_DTYPE_BYTES = {"auto": 2, "half": 2, "float16": 2, "bfloat16": 2, "float": 4, "float32": 4}
_CACHE_BYTES = {"bf16": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1}
_LARGE = 1 << 40  # no dimension or factor of a model is
_FP4_CACHES = ("fp4_e2m1", "nvfp4", "fp4_mx_block16")
_LIKE_THE_TARGET = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")


class ModelFacts(Struct, frozen=True):
    """What a config.json says of a model's shape; None where it does not say, nor SGLang derive it.

    Attributes:
        architectures: the first is the class that SGLang serves.
        layers: hidden layers of the text model; ``mtp_layers``: those of the drafts that the checkpoint brings along.
        attention_heads, kv_heads: of the whole model.
        head_dim, v_head_dim: elements; ``v_head_dim`` None is as ``head_dim``.
        kv_lora_rank, qk_rope_head_dim: elements of the latent row, for models with MLA only.
        index_head_dim: elements of the indexer's keys, for models with DSA only.
        dtype: of the weights, as written ("bfloat16").
        context_length: tokens.
        quantized_cache: whether the checkpoint's quantization may choose the cache's dtype.
        unmodelled: why ``kv_model`` has no shape for it; reads well after "not modelled: ".
    """

    architectures: tuple[str, ...]
    layers: int | None = None
    mtp_layers: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    index_head_dim: int | None = None
    dtype: str | None = None
    context_length: int | None = None
    quantized_cache: bool = False
    unmodelled: str | None = None


def read_model_config(text: str, place: str = "model config") -> ModelFacts:
    """Return the facts of a HuggingFace config.json. ``place`` is what errors call it: the file's path.

    Raises:
        UsageError: the text is no JSON object, or not that of a model.

    Source: sglang/srt/configs/model_config.py (_derive_model_shapes, get_total_num_kv_heads, is_hybrid_swa_model), and
    utils/hf_transformers_utils.py (get_hf_text_config, get_context_length), 0.3.1 to 0.5.23.
    """
    config = _parse(text, place)
    names = config.get("architectures")
    architectures = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
    if not architectures and "model_type" not in config:
        held = ", ".join(list(config)[:5]) or "nothing"
        raise UsageError(f"{place}: neither 'architectures' nor 'model_type' is in it, but {held}\n{_DO}")
    name = architectures[0] if architectures else ""
    inner, nested = _text_config(config, name)
    latent, sparse = name in LATENT, name in SPARSE and bool(inner.get("index_topk"))
    heads = _whole(inner, "num_attention_heads", "n_head", "n_heads")
    kind = str(inner.get("model_type"))
    facts = ModelFacts(
        architectures,
        layers=_whole(inner, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        mtp_layers=_whole(inner, "num_nextn_predict_layers"),
        attention_heads=heads,
        kv_heads=_whole(inner, *KV_HEADS_KEYS, otherwise=heads if kind in DERIVE_KV_HEADS else None),
        head_dim=_whole(inner, "head_dim", otherwise=_share(inner, heads) if kind in DERIVE_HEAD_DIM else None),
        v_head_dim=_whole(inner, "v_head_dim"),
        kv_lora_rank=_whole(inner, "kv_lora_rank") if latent else None,
        qk_rope_head_dim=_whole(inner, "qk_rope_head_dim") if latent else None,
        index_head_dim=_whole(inner, "index_head_dim") if sparse else None,
        dtype=_dtype(inner) or _dtype(config),
        context_length=_context_length(inner),
        quantized_cache=has_quantized_cache(config) or has_quantized_cache(inner),
    )
    reason = nested or refuse_architecture(architectures, inner) or refuse_keys(config, inner, sparse)
    return replace(facts, unmodelled=reason or _refuse_shape(facts, sparse))


def _parse(text: str, place: str) -> Config:
    try:
        parsed: object = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        what = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise UsageError(f"{place}:{error.lineno}:{error.colno}: this is no JSON: {what}\n{_DO}") from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # numbers of thousands of digits, brackets within thousands of brackets
        raise UsageError(f"{place}: this JSON cannot be read: {error}\n{_DO}") from None
    if not isinstance(parsed, dict):
        what = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(parsed), "a number")
        raise UsageError(f"{place}: {what} where an object with the model's settings must be\n{_DO}")
    return parsed


def _text_config(config: Config, architecture: str) -> tuple[Config, str | None]:
    """Return the part that describes the language model, and why it is not known which one that is."""
    if architecture.startswith("Llava") and architecture.endswith("ForCausalLM"):
        return config, None
    found = [key for key in _NESTED_KEYS if isinstance(config.get(key), dict)]
    if not found:
        return config, None
    inner = config[found[0]]
    assert isinstance(inner, dict), "selected so"
    thinking = inner.get("text_config") if found[0] == "thinker_config" else None
    several = f"{' and '.join(found)}: releases differ in which of them they take" if len(found) > 1 else None
    return thinking if isinstance(thinking, dict) else inner, several


def _whole(config: Config, *keys: str, otherwise: int | None = None) -> int | None:
    """Return the first of the keys that has a value, if that is a whole number above 0. ``otherwise``: where none has one."""
    value = next((config[key] for key in keys if config.get(key) is not None), otherwise)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGE else None


def _share(config: Config, heads: int | None) -> int | None:
    hidden = _whole(config, "hidden_size", "n_embd", "d_model")
    return None if hidden is None or heads is None else hidden // heads or None


def _dtype(config: Config) -> str | None:
    value = config.get("dtype") or config.get("torch_dtype")
    return value if isinstance(value, str) else None


def _context_length(config: Config) -> int | None:
    """Return the first length that is stated, times the factor of RoPE scaling unless the length has it already."""
    length = _whole(config, *_CONTEXT_KEYS)
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if length is None or not isinstance(scaling, dict):
        return length
    factor = scaling.get("factor")
    scaled = "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3"
    if scaled or not isinstance(factor, int | float) or not 0 < factor < _LARGE:
        return length
    return int(factor * length)


def _refuse_shape(facts: ModelFacts, sparse: bool) -> str | None:
    name = facts.architectures[0]
    if name in HEADS:
        wanted = {"num_hidden_layers": facts.layers, "num_key_value_heads": facts.kv_heads, "head_dim": facts.head_dim}
    elif name in LATENT:
        wanted = {"num_hidden_layers": facts.layers, "kv_lora_rank": facts.kv_lora_rank}
        wanted |= {"qk_rope_head_dim": facts.qk_rope_head_dim}
        wanted |= {"index_head_dim": facts.index_head_dim} if sparse else {}
        if name == "GlmMoeDsaForCausalLM" and facts.head_dim not in (None, facts.qk_rope_head_dim):
            return "head_dim beside qk_rope_head_dim, which transformers before 5.10 took for it (GlmMoeDsaForCausalLM)"
    else:
        return f"{name}, an architecture that was not looked at"
    missing = [key for key, value in wanted.items() if value is None]
    return f"{name} without {' and '.join(missing)} in its config.json" if missing else None


def kv_model(
    facts: ModelFacts,
    *,
    tp: int,
    dp_attention: int = 1,
    pp: int = 1,
    kv_cache_dtype: str | None,
    model_dtype: str | None = None,
    speculative: str | None = None,
    draft_layers: int = 0,
    scaled_fp8: bool | None = None,
) -> KvModel | NotModelled:
    """Return what the cell size of a model depends on, in the pipeline stage that has most layers.

    Args:
        tp, pp: sizes; ``dp_attention``: dp under DP attention, else 1.
        kv_cache_dtype: the flag, as it is in force; None is "auto", the model's dtype.
        model_dtype: --dtype; None is "auto": 2 bytes an element, for SGLang halves float32.
        speculative: the algorithm; ``draft_layers``: layers of its draft model, which are charged from 0.5.14 on.
        scaled_fp8: see ``Latent``; must be known for an FP8 cache of a DSA model.

    Raises:
        ValueError: a size below 1.
    """
    if min(tp, dp_attention, pp) < 1:
        raise ValueError(f"sizes start at 1: tp={tp} dp={dp_attention} pp={pp}")
    if facts.unmodelled is not None or tp % dp_attention:
        return NotModelled(facts.unmodelled or f"tp={tp} that dp={dp_attention} does not divide")
    drafts = _draft_layers(speculative, draft_layers)
    if isinstance(drafts, NotModelled):
        return drafts
    layers = _stage_layers(facts, pp)
    if isinstance(layers, NotModelled):
        return layers
    cache = _cache_dtype(facts, kv_cache_dtype or "auto", model_dtype or "auto", scaled_fp8)
    if isinstance(cache, NotModelled):
        return cache
    attention = _attention(facts, scaled_fp8=scaled_fp8 is True and cache[0] == 1)
    return KvModel(attention, layers, cache[0], tp // dp_attention, cache[1], drafts)


def _draft_layers(speculative: str | None, draft_layers: int) -> int | NotModelled:
    name = (speculative or "none").upper()
    if name in ("NONE", "NGRAM"):
        return 0
    if name not in _LIKE_THE_TARGET:
        return NotModelled(f"drafts of {name}")
    return draft_layers if draft_layers > 0 else NotModelled(f"a draft of {name} whose number of layers is not known")


def _stage_layers(facts: ModelFacts, pp: int) -> int | NotModelled:
    """Return the layers of the largest stage: layers / pp, and one more where one is left over.

    More than one left over went to the last stage before 0.5.6, and one each to the last stages since.

    Source: sglang/srt/distributed/utils.py (get_pp_indices), 0.4.6.post2 to 0.5.23.
    """
    assert facts.layers is not None, "refused by _refuse_shape"
    if pp == 1:
        return facts.layers
    if facts.architectures[0] not in STAGED:
        return NotModelled(f"pipeline stages of {facts.architectures[0]}")
    if facts.layers % pp > 1:
        return NotModelled(f"{facts.layers} layers over {pp} pipeline stages, which releases split in two ways")
    return facts.layers // pp + facts.layers % pp


def _cache_dtype(
    facts: ModelFacts, cache: str, model_dtype: str, scaled_fp8: bool | None
) -> tuple[int, bool] | NotModelled:
    """Return bytes of an element, and whether the cache is FP4.

    Source: sglang/srt/model_executor/model_runner.py, mem_cache/kv_cache_dtype.py (configure_kv_cache_dtype); server_args.py and
    arg_groups/overrides.py for DSA; configs/model_config.py (_get_and_verify_dtype). 0.1.13 to 0.5.23.
    """
    sparse = facts.index_head_dim is not None
    if cache == "auto":
        if sparse:
            return NotModelled("a cache dtype of 'auto' with DSA, where the card decides it")
        if facts.quantized_cache:
            return NotModelled("a cache dtype of 'auto' where the checkpoint's quantization may decide it")
        width = _DTYPE_BYTES.get(model_dtype.lower())
        if width is None or (model_dtype == "auto" and facts.dtype is not None and facts.dtype not in _DTYPE_BYTES):
            return NotModelled(f"a model of dtype {facts.dtype if model_dtype == 'auto' else model_dtype}")
        return width, False
    if cache in _FP4_CACHES and not sparse:
        return 1, True
    if cache not in _CACHE_BYTES or (sparse and cache == "fp8_e5m2"):
        return NotModelled(f"a cache of dtype {cache}{' with DSA' if sparse else ''}")
    if sparse and _CACHE_BYTES[cache] == 1 and scaled_fp8 is None:
        return NotModelled(
            "an FP8 cache with DSA whose backend is not known: it decides whether scales lie beside the rows"
        )
    return _CACHE_BYTES[cache], False


def _attention(facts: ModelFacts, *, scaled_fp8: bool) -> Heads | Latent:
    if facts.kv_lora_rank is not None and facts.qk_rope_head_dim is not None:
        return Latent(facts.kv_lora_rank, facts.qk_rope_head_dim, facts.index_head_dim, None, scaled_fp8)
    assert facts.kv_heads is not None and facts.head_dim is not None, "refused by _refuse_shape"
    return Heads(facts.kv_heads, facts.head_dim, facts.v_head_dim)
