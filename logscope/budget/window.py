"""Models with sliding-window layers: the budget is split between a pool for full attention and one for the windows."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from logscope.budget.cells import SPLIT_SINCE, Heads, KvModel, cell_size, layer_bytes, refuse
from logscope.budget.formula import tokens
from logscope.budget.interval import NotModelled, exact
from logscope.budget.pools import CAP_SINCE, final_tokens
from logscope.budget.releases import since

BYTES_SPLIT_SINCE = "0.5.9"
ONE_STEP_SINCE = "0.5.11"


class WindowPools(Struct, frozen=True):
    """Tokens of both pools. ``max_total_tokens`` is what the server reports: the full pool's, or the window pool's where no other is."""

    full: int
    window: int
    max_total_tokens: int


def split_window(
    rest_bytes: float,
    model: KvModel,
    ratio: float,
    release: str,
    page_size: int = 1,
    max_total_tokens: int | None = None,
) -> WindowPools | NotModelled:
    """Return how a budget is split between full-attention and sliding-window layers.

    With F, S bytes per token of a layer, n of them, r = swa_full_tokens_ratio, M bytes of budget:

    - 0.4.9.post3 to 0.5.8: tokens as if all layers were full (0.5.7 charges the full ones only, but splits as before),
      full = tokens * (n_full + n_swa) / (n_full + r * n_swa); cut to pages from 0.5.7 on.
    - 0.5.9, 0.5.10: tokens = M / (F * n_full + S * n_swa), cut to pages, and full = tokens * that cell / (F * n_full + r * S * n_swa).
    - 0.5.11 on: full = M / (F * n_full + r * S * n_swa), before any other rounding. Draft layers (0.5.15 on) count as full ones.

    window = full * r, from the full pool before it is cut to pages to 0.5.9, after from 0.5.10 on. Without full-attention layers
    (0.5.9 on) the ratio has no meaning, and all is the windows'.

    Args:
        rest_bytes: M; a budget is monotone in it: call it for both ends of an interval.
        ratio: swa_full_tokens_ratio (a flag).

    Source: sglang/srt/model_executor/model_runner.py (set_num_token_hybrid), model_runner_kv_cache_mixin.py, pool_configurator.py.
    """
    refusal = _refuse_window(model, release)
    if refusal is not None:
        return refusal
    if since(release, ONE_STEP_SINCE):
        return _split_in_one_step(int(rest_bytes), model, ratio, release, page_size, max_total_tokens)
    charged = _charged_cell(model, release)
    if isinstance(charged, NotModelled):
        return charged
    profiled = int(tokens(exact(rest_bytes), charged, release).low)
    count = final_tokens(profiled, release, page_size, max_total_tokens).tokens
    return _split_tokens(count, model, ratio, release, page_size)


def _refuse_window(model: KvModel, release: str) -> NotModelled | None:
    if model.window is None or not isinstance(model.attention, Heads):
        return NotModelled("a split without sliding-window layers")
    if not since(release, SPLIT_SINCE):
        return NotModelled(f"a pool for sliding-window layers before SGLang {SPLIT_SINCE}")
    if model.layers == 0 and not since(release, BYTES_SPLIT_SINCE):
        return NotModelled(f"sliding-window layers only, before SGLang {BYTES_SPLIT_SINCE}")
    if model.window.heads != model.attention and not since(release, BYTES_SPLIT_SINCE):
        return NotModelled(f"sliding-window layers with other heads than the rest, before SGLang {BYTES_SPLIT_SINCE}")
    return refuse(model, release)


def _layers(model: KvModel, release: str) -> tuple[int, int]:
    """Return bytes per token of all full-attention layers and of all sliding-window layers."""
    assert model.window is not None and isinstance(model.attention, Heads), "refused before"
    full = layer_bytes(model.attention, model, release) * model.layers
    return full, layer_bytes(model.window.heads, model, release) * model.window.layers


def _charged_cell(model: KvModel, release: str) -> int | NotModelled:
    """Return what the two-step releases charge per token."""
    assert model.window is not None, "refused before"
    if since(release, BYTES_SPLIT_SINCE):
        return sum(_layers(model, release))
    only_full = since(release, "0.5.7") and not since(release, "0.5.8")
    layers = model.layers if only_full else model.layers + model.window.layers
    return cell_size(replace(model, layers=layers, window=None), release)


def _split_tokens(count: int, model: KvModel, ratio: float, release: str, page_size: int) -> WindowPools:
    assert model.window is not None, "refused before"
    if model.layers == 0:
        return WindowPools(0, count // page_size * page_size, count // page_size * page_size)
    if since(release, BYTES_SPLIT_SINCE):
        full_bytes, window_bytes = _layers(model, release)
        full = int(count * (full_bytes + window_bytes) / (full_bytes + ratio * window_bytes))
    else:
        full = int(count * (model.layers + model.window.layers) / (ratio * model.window.layers + model.layers))
    if since(release, "0.5.10"):
        full = full // page_size * page_size
    window = int(full * ratio)
    if since(release, "0.5.7"):
        full, window = full // page_size * page_size, window // page_size * page_size
    return WindowPools(full, window, full)


def _split_in_one_step(
    rest_bytes: int, model: KvModel, ratio: float, release: str, page_size: int, max_total_tokens: int | None
) -> WindowPools:
    assert isinstance(model.attention, Heads), "refused before"
    full_bytes, window_bytes = _layers(model, release)
    draft = model.draft_layers * layer_bytes(model.attention, model, release) if since(release, "0.5.15") else 0
    cell = window_bytes + draft if model.layers == 0 else full_bytes + draft + ratio * window_bytes
    count = int(rest_bytes // cell) // page_size * page_size
    if max_total_tokens is not None and since(release, CAP_SINCE) and max_total_tokens < count:
        count = max_total_tokens // page_size * page_size
    if model.layers == 0:
        return WindowPools(0, count, count)
    return WindowPools(count, int(count * ratio) // page_size * page_size, count)
