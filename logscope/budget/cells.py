"""The cell size: bytes of KV cache per token and rank, measured from a pool line or modelled from the model's shape."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from logscope.budget.interval import Interval, NotModelled
from logscope.budget.releases import since

PAGE_PADDING_SINCE = "0.4.4"
SPLIT_SINCE = "0.4.9.post3"
DSA_FP8_ROW_SINCE = "0.5.17"
DRAFT_COUNTED_SINCE = "0.5.14"
FP4_BLOCK = 16
SCALE_BLOCK = 128


class Heads(Struct, frozen=True):
    """Keys and values by head (MHA, GQA, MQA). ``kv_heads`` of the whole model; ``v_head_dim`` None: as ``head_dim``."""

    kv_heads: int
    head_dim: int
    v_head_dim: int | None = None


class Latent(Struct, frozen=True):
    """One latent vector per token (MLA), the same on every rank. ``index_head_dim``: of the indexer of NSA/DSA models.

    ``index_layers``: layers that keep indexer keys, None for all. ``scaled_fp8``: the cache is FP8 e4m3 and the backend keeps scales
    beside it (every DSA backend but TRT-LLM's, and TileLang's and AITER's on AMD).
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None
    index_layers: int | None = None
    scaled_fp8: bool = False


class Window(Struct, frozen=True):
    """The sliding-window layers of a hybrid model: their number on this stage, and their heads."""

    layers: int
    heads: Heads


class KvModel(Struct, frozen=True):
    """What the cell size depends on.

    Attributes:
        attention: of the layers with full attention.
        layers: with full attention, on this pipeline stage. Linear and Mamba layers do not count.
        element_bytes: of the cache's dtype; 1 for FP8 and FP4.
        attention_tp: ranks that share the heads: tp / dp under DP attention (0.4.1.post7 on), else tp.
        fp4: the cache is FP4, two values to a byte.
        draft_layers: of the draft model of EAGLE or STANDALONE; 0 without.
        window: the sliding-window layers, where they have a pool of their own.
        unmodelled: name of an architecture or option whose sizing is its own ("DeepSeek V4", "unified pool", "MiniMax sparse").
    """

    attention: Heads | Latent
    layers: int
    element_bytes: int = 2
    attention_tp: int = 1
    fp4: bool = False
    draft_layers: int = 0
    window: Window | None = None
    unmodelled: str | None = None


def rank_heads(kv_heads: int, attention_tp: int, release: str) -> int:
    """Return the KV heads of one rank: kv_heads // tp, at least 1 from 0.1.18 on (heads are replicated).

    Source: sglang/srt/configs/model_config.py (get_num_kv_heads).
    """
    share = kv_heads // attention_tp
    return max(1, share) if since(release, "0.1.18") else share


def layer_bytes(heads: Heads, model: KvModel, release: str) -> int:
    """Return bytes per token of one layer with heads: heads * (head_dim + v_head_dim) * element.

    Before 0.5.7 the values were taken to be as wide as the keys; before 0.1.18 an element to have 2 bytes.

    Source: see ``cell_size``.
    """
    values = heads.v_head_dim if heads.v_head_dim is not None and since(release, "0.5.7") else heads.head_dim
    element = model.element_bytes if since(release, "0.1.18") else 2
    return rank_heads(heads.kv_heads, model.attention_tp, release) * (heads.head_dim + values) * element


def cell_size(model: KvModel, release: str) -> int | NotModelled:
    """Return what SGLang charges per token and rank when it sizes the pool, bytes.

    MHA: heads * (head_dim + v_head_dim) * layers * element. MLA (0.2.10 on, with --enable-mla before 0.3.1.post2):
    (kv_lora_rank + qk_rope_head_dim) * layers * element, not divided by tp. Plus the indexer (0.5.3.post1 on): (dim + dim / 128 * 4)
    bytes a layer. FP4 (MLA 0.5.4.post3, MHA 0.5.5.post3 on): half, and a byte of scale per 16 values; from 0.5.16 to 0.5.20 MHA
    adds one layer of FP8 workspace. Draft layers of EAGLE and STANDALONE count from 0.5.14 on. For models with sliding-window
    layers there is none from 0.4.9.post3 on: see ``split_window``.

    Returns:
        Bytes, a whole number, or a note for what is not modelled.

    Source: sglang/srt/model_executor/model_runner.py (to 0.5.6), model_runner_kv_cache_mixin.py (0.5.7 to 0.5.10),
    pool_configurator.py (0.5.11 on).
    """
    refusal = refuse(model, release)
    if refusal is not None:
        return refusal
    if model.window is not None:
        if since(release, SPLIT_SINCE):
            return NotModelled("one cell size for two pools; they are split")
        model = replace(model, layers=model.layers + model.window.layers, window=None)
    target = _target_cell(model, release)
    if model.draft_layers == 0 or not since(release, DRAFT_COUNTED_SINCE):
        return target
    return target + _draft_cell(model, target, release)


def _target_cell(model: KvModel, release: str) -> int:
    attention = model.attention
    if isinstance(attention, Latent):
        indexers = attention.index_layers if attention.index_layers is not None else model.layers
        return _latent_bytes(attention, model, release) + _indexer_bytes(attention, indexers, release)
    total = layer_bytes(attention, model, release) * model.layers
    if not model.fp4:
        return total
    per_layer = rank_heads(attention.kv_heads, model.attention_tp, release) * attention.head_dim * 2
    workspace = per_layer * model.element_bytes if since(release, "0.5.16") else 0
    return total // 2 + per_layer * model.layers * model.element_bytes // FP4_BLOCK + workspace


def _latent_bytes(attention: Latent, model: KvModel, release: str) -> int:
    width = attention.kv_lora_rank + attention.qk_rope_head_dim
    row = fp8_row(attention) if attention.scaled_fp8 and since(release, DSA_FP8_ROW_SINCE) else width
    total = row * model.layers * model.element_bytes
    if model.fp4:
        total = total // 2 + width // FP4_BLOCK * model.layers * model.element_bytes
    return total


def _indexer_bytes(attention: Latent, layers: int, release: str) -> int:
    dim = attention.index_head_dim
    return 0 if dim is None or not since(release, "0.5.3.post1") else (dim + dim // SCALE_BLOCK * 4) * layers


def _draft_cell(model: KvModel, target: int, release: str) -> int:
    """Return what the draft's layers add: they are taken to be like the target's, but each keeps its own indexer keys (0.5.18 on)."""
    attention = model.attention
    if isinstance(attention, Latent) and attention.index_head_dim is not None and since(release, "0.5.18"):
        latent = _latent_bytes(attention, model, release)
        return int(latent * model.draft_layers / model.layers) + _indexer_bytes(attention, model.draft_layers, release)
    if since(release, "0.5.22"):
        return int(target * model.draft_layers / model.layers)
    return int(target * (1 + model.draft_layers / model.layers)) - target


def fp8_row(attention: Latent) -> int:
    """Return bytes of a row of an FP8 DSA pool: rank + rank / 128 * 4 of scales + rope * 2 (rope stays bf16). 656 for DeepSeek.

    Source: sglang/srt/model_executor/model_runner_kv_cache_mixin.py, mem_cache/kv_cache_configurator.py (calculate_mla_kv_cache_dim).
    """
    return attention.kv_lora_rank + attention.kv_lora_rank // SCALE_BLOCK * 4 + attention.qk_rope_head_dim * 2


def stored_cell_size(model: KvModel, release: str) -> int | NotModelled:
    """Return the bytes per token that the target's pool takes, for its printed size; with a window, its full-attention pool.

    Not what is charged where the draft's layers are charged, too (0.5.14 on), and for FP8 DSA from 0.5.3 to 0.5.16: those store 656
    bytes a layer and are charged 576, so that the pool is larger than the budget. Such a log is not wrong.
    """
    refusal = refuse(model, release)
    if refusal is not None:
        return refusal
    attention = model.attention
    stored = _target_cell(model, release)
    if isinstance(attention, Latent) and attention.scaled_fp8 and not since(release, DSA_FP8_ROW_SINCE):
        charged = (attention.kv_lora_rank + attention.qk_rope_head_dim) * model.layers * model.element_bytes
        stored += fp8_row(attention) * model.layers - charged if since(release, "0.5.3") else 0
    elif model.fp4 and isinstance(attention, Heads) and since(release, "0.5.16"):
        per_layer = rank_heads(attention.kv_heads, model.attention_tp, release) * attention.head_dim * 2
        stored -= per_layer * model.element_bytes
    return stored


def refuse(model: KvModel, release: str) -> NotModelled | None:
    """Return why the cell size of a model is not known for a release, None if it is."""
    latent = isinstance(model.attention, Latent)
    if model.unmodelled is not None:
        return NotModelled(f"{model.unmodelled} sizes its pools by its own formula")
    if latent and not since(release, "0.2.10"):
        return NotModelled("MLA before SGLang 0.2.10")
    if latent and model.window is not None:
        return NotModelled("sliding-window layers beside MLA")
    if model.fp4 and not since(release, "0.5.4.post3" if latent else "0.5.5.post3"):
        return NotModelled(f"an FP4 cache before SGLang {'0.5.4.post3' if latent else '0.5.5.post3'}")
    if model.fp4 and model.window is not None:
        return NotModelled("an FP4 cache with sliding-window layers")
    if model.fp4 and not latent and since(release, "0.5.21"):
        return NotModelled("an FP4 cache of heads from SGLang 0.5.21 on: each recipe has its own size")
    return None


def padding(page_size: int, release: str) -> int:
    """Return the rows that a pool has beyond its tokens: 1, a page from 0.4.4 on. They are part of the printed size.

    Source: sglang/srt/mem_cache/memory_pool.py.
    """
    return page_size if since(release, PAGE_PADDING_SINCE) else 1


def measured_cell_size(size: Interval, count: float, page_size: int, release: str) -> Interval:
    """Return bytes per token from a pool line: size / (tokens + padding).

    Args:
        size: of the whole pool, bytes; keys and values added where they are printed apart.
        count: tokens, as printed.
        page_size: of the server arguments; 1 if unknown is wrong by less than a page.

    Raises:
        ValueError: no tokens.
    """
    rows = count + padding(page_size, release)
    if count <= 0:
        raise ValueError(f"a pool of {count} tokens tells no cell size")
    return Interval(size.low / rows, size.high / rows)


def pool_bytes(count: Interval, cell: float, page_size: int, release: str) -> Interval:
    """Return the size of a pool as it is printed: (tokens + padding) * cell, bytes. Keys and values are half of it each."""
    pad = padding(page_size, release)
    return Interval((count.low + pad) * cell, (count.high + pad) * cell)
