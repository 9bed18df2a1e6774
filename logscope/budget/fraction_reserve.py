"""The default fraction from 0.5.3 on: a reserve in MiB from chunk size, graph sizes and parallel sizes."""

from __future__ import annotations

from itertools import chain

from logscope.budget.flags import DefaultFraction, LaunchFlags
from logscope.budget.releases import since

GRAPHS_DEFAULT_SINCE = "0.5.10"
NO_SPECULATION_SINCE = "0.5.14"
ROLES_SINCE = "0.5.15"
POST_CAPTURE_SINCE = "0.5.16"
Terms = list[tuple[str, float]]

# Cards below so many GiB: chunk, largest decode graph for tp < 4, and for more. The last is for larger ones.
SIZES: tuple[tuple[int, int, int, int], ...] = (
    (20, 2048, 8, 8),
    (35, 2048, 24, 80),
    (60, 4096, 32, 160),
    (90, 8192, 256, 512),
    (160, 8192, 256, 512),
)
LARGE, UNKNOWN = (16384, 512), (4096, 160)


def by_reserve(flags: LaunchFlags, release: str) -> DefaultFraction:
    """Return round((card - R) / card, 3), without factors for multimodal models.

    R, MiB = 512 + 1.5 * max(chunk, 2048) + 2 * graph_bs + 128 * tp * pp, and terms for DP attention, prefill graphs, speculation
    (to 0.5.13) and DeepEP (0.5.15 on); at least 10240 on cards above 60 GiB. A given chunk or graph size changes the fraction. A
    card unknown: .88, .95 from 0.5.20 on.

    Source: sglang/srt/server_args.py (_handle_gpu_memory_settings, 0.5.3 to 0.5.18), arg_groups/memory_hook.py (0.5.19 on).
    """
    chunk, graph_bs = default_sizes(flags, release)
    if flags.post_capture and since(release, POST_CAPTURE_SINCE):
        base = 1536 if since(release, "0.5.18") else 512
        terms: Terms = [("constant", base), ("parallel size", flags.tp * flags.pp / 8 * 1024)]
    else:
        terms = _terms(flags, release, chunk, graph_bs)
    reserved = sum(amount for _, amount in terms)
    if flags.card_mib is None:
        fraction = 0.95 if since(release, "0.5.20") else 0.88
    else:
        fraction = round((flags.card_mib - reserved) / flags.card_mib, 3)
    return DefaultFraction(fraction, fraction, reserved, chunk, graph_bs, tuple(terms))


def default_sizes(flags: LaunchFlags, release: str) -> tuple[int, int]:
    """Return chunked_prefill_size and the largest decode graph, as given or by class of card."""
    card = flags.card_mib
    chunk, graph_bs = UNKNOWN
    if card is not None:
        chunk, graph_bs = LARGE
        for limit, size, few, many in SIZES:
            if card < limit * 1024:
                chunk, graph_bs = _of_release(limit, size, few, many, flags.tp >= 4, release)
                break
    if since(release, "0.5.22") and flags.max_running_requests is not None:
        graph_bs = min(graph_bs, flags.max_running_requests)
    return (
        chunk if flags.chunked_prefill_size is None else flags.chunked_prefill_size,
        graph_bs if flags.graph_max_bs is None else flags.graph_max_bs,
    )


def _of_release(limit: int, chunk: int, few: int, many: int, is_many: bool, release: str) -> tuple[int, int]:
    if limit == 35 and since(release, "0.5.20"):
        return 4096, 160 if is_many else 48
    if limit == 35 and not since(release, "0.5.4.post1"):
        few = 16
    return chunk, many if is_many else few


def _terms(flags: LaunchFlags, release: str, chunk: int, graph_bs: int) -> Terms:
    terms: Terms = [("constant", 512), ("activations", _activation_tokens(flags, release, chunk, graph_bs) * 1.5)]
    roles = since(release, ROLES_SINCE)
    decodes = not (roles and flags.disaggregation == "prefill")
    captures = decodes and (flags.graphs or not roles)
    if captures:
        terms.append(("decode graphs", graph_bs * 2))
    terms.append(("parallel size", flags.tp * flags.pp / 8 * 1024))
    if flags.dp_attention and decodes:
        terms.append(("DP attention", graph_bs * flags.dp * (4.5 if graph_bs > 300 else 3)))
    late_piecewise = not since(release, "0.5.8")
    prefill = _prefill_graph_term(flags, release, chunk)
    if prefill and not late_piecewise:
        terms.append(("prefill graphs", prefill))
    sum_so_far = sum(amount for _, amount in terms)
    if flags.card_mib is not None and flags.card_mib > 60 * 1024 and sum_so_far < 10 * 1024:
        terms.append(("floor of 10 GiB", 10 * 1024 - sum_so_far))
    if flags.speculative and not since(release, NO_SPECULATION_SINCE):
        terms.append(("speculation", _speculation_term(flags.speculative, release)))
    if prefill and late_piecewise:
        terms.append(("prefill graphs", prefill))
    if flags.deepep and captures and roles:
        terms.append(("DeepEP", 2 * 1024))
    if flags.xpu and since(release, "0.5.20"):
        terms.append(("XPU", 2 * 1024))
    return terms


def _activation_tokens(flags: LaunchFlags, release: str, chunk: int, graph_bs: int) -> int:
    if since(release, ROLES_SINCE) and flags.disaggregation == "decode":
        running = flags.max_running_requests or graph_bs or 1
        return max(running * (flags.draft_tokens or 1), 2048)
    return max(chunk if chunk > 0 else flags.max_prefill_tokens, 2048)


def _speculation_term(algorithm: str, release: str) -> float:
    if algorithm == "STANDALONE":
        return 6 * 1024
    if algorithm == "NGRAM":
        return 0
    return (4 if since(release, "0.5.10") else 2) * 1024


def _prefill_graph_term(flags: LaunchFlags, release: str, chunk: int) -> float:
    """Return MiB for piecewise (prefill) graphs: by size to 0.5.7, then 8 per graph; 1536 for MLA from 0.5.10 on."""
    on = flags.prefill_graphs if flags.prefill_graphs is not None else since(release, GRAPHS_DEFAULT_SINCE)
    if not on or not since(release, "0.5.5.post1"):
        return 0
    if since(release, ROLES_SINCE) and flags.disaggregation == "decode":
        return 0
    if not since(release, "0.5.8"):
        if since(release, "0.5.7"):
            return (chunk if flags.prefill_graph_max_tokens is None else flags.prefill_graph_max_tokens) // 8
        return (4096 if flags.prefill_graph_max_tokens is None else flags.prefill_graph_max_tokens) // 4
    breakable = 1024 if flags.breakable and flags.deepep and since(release, "0.5.17") else 0
    if flags.mla and since(release, GRAPHS_DEFAULT_SINCE):
        return 1536 + breakable
    return len(prefill_graph_sizes(_largest_prefill_graph(flags, release, chunk), release)) * 8 + breakable


def _largest_prefill_graph(flags: LaunchFlags, release: str, chunk: int) -> int:
    largest = flags.prefill_graph_max_tokens
    if largest is None:
        largest = 2048 if flags.mla else chunk
        if since(release, "0.5.19") and flags.pp > 1 and flags.breakable:
            largest = min(largest, 8192)
        if since(release, "0.5.10") and flags.max_total_tokens is not None:
            largest = min(largest, flags.max_total_tokens)
        if since(release, "0.5.10") and flags.llama2:
            largest = min(largest, 4096)
    if flags.context_length is not None and since(release, "0.5.13") and not since(release, "0.5.17"):
        largest = min(largest, flags.context_length)
    return largest


def prefill_graph_sizes(largest: int, release: str) -> list[int]:
    """Return the token counts that prefill graphs are captured for (0.5.8 on)."""
    first = 576 if since(release, "0.5.9") else 640
    steps = chain(
        range(4, 33, 4),
        range(48, 257, 16),
        range(288, 513, 32),
        range(first, 1025, 64),
        range(1280, 4097, 256),
        range(4608, largest + 1, 512),
    )
    return [size for size in steps if size <= largest]
