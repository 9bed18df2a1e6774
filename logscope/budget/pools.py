"""From the tokens that a budget holds to the tokens that SGLang uses: request slots, speculative headroom, caps, whole pages."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from logscope.budget.releases import since

Limit = Literal["fraction", "max_total_tokens", "pipeline stage"]
CAP_SINCE = "0.2.8"
PAGES_SINCE = "0.4.4"
STAGE_MINIMUM_SINCE = "0.5.2"
HEADROOM_SINCE, HEADROOM_UNTIL = "0.4.3.post3", "0.5.7"


class Speculation(Struct, frozen=True):
    """Flags of speculative decoding with a draft model: EAGLE (which includes MTP) and, from 0.5.2 on, STANDALONE."""

    steps: int
    topk: int
    draft_tokens: int


class TokenCount(Struct, frozen=True):
    """Tokens of the target's pool, and the limit that set them. ``headroom``: tokens above what the budget holds."""

    tokens: int
    limit: Limit
    headroom: int = 0


def request_slots(
    tokens: int, context_length: int, release: str, max_running_requests: int | None = None, dp_size: int = 1
) -> int:
    """Return how many requests one data-parallel worker has slots for.

    Default: int(tokens / context_length * 512) within 2048..4096 (5120 at most before 0.3.1; 256 a token, unbounded, before 0.2.7).
    From 0.5.10 on a default is at most tokens // 2, and a given number is divided by dp; it is bounded by the estimate to 0.5.13,
    by tokens // 2 from 0.5.14 on.

    Args:
        tokens: that the budget holds; to 0.5.9 before headroom and caps, from 0.5.10 on the final count.
        context_length: tokens.
        max_running_requests: as given; None is the default.
        dp_size: dp under DP attention, else 1.

    Source: sglang/srt/model_executor/model_runner.py (init_memory_pool) and what followed it (resolve_max_num_reqs).
    """
    estimate = int(tokens / context_length * (512 if since(release, "0.2.7") else 256))
    if since(release, "0.2.7"):
        estimate = min(max(estimate, 2048), 4096 if since(release, "0.3.1") else 5120)
    if not since(release, "0.5.10"):
        return estimate if max_running_requests is None else max_running_requests
    if max_running_requests is None:
        return min(estimate, tokens // 2)
    share = max_running_requests // dp_size
    if since(release, "0.5.23"):
        share = max(1, share)
    return min(share, tokens // 2) if since(release, "0.5.14") else min(share, estimate)


def headroom(speculation: Speculation | None, requests: int, release: str) -> int:
    """Return tokens that are added to the target's pool after it was sized: reqs * steps * topk + reqs * draft_tokens + 100.

    Only from 0.4.3.post3 to 0.5.6: the pool is larger there than the budget, and reaches into the reserve.

    Source: sglang/srt/model_executor/model_runner.py (init_memory_pool).
    """
    if speculation is None or not since(release, HEADROOM_SINCE) or since(release, HEADROOM_UNTIL):
        return 0
    return requests * speculation.steps * speculation.topk + requests * speculation.draft_tokens + 100


def draft_pool_tokens(profiled: int, final: int, speculation: Speculation, requests: int, release: str) -> int | None:
    """Return the tokens of the draft's pool; None where there is none (before 0.4.1.post4).

    0.4.1.post4 to 0.4.3.post2: what the budget holds + reqs * steps + 100. 0.4.3.post3 to 0.5.6: with the same headroom as the
    target, then capped and cut to pages alike. From 0.5.7 on the target's own count.

    Args:
        profiled: tokens that the budget holds.
        final: tokens of the target's pool.
        requests: request slots.
    """
    if not since(release, "0.4.1.post4"):
        return None
    return final if since(release, HEADROOM_SINCE) else profiled + requests * speculation.steps + 100


def whole_pages(tokens: int, page_size: int, release: str) -> int:
    """Return tokens cut to whole pages, downwards (0.4.4 on); negative counts become more negative."""
    return tokens // page_size * page_size if since(release, PAGES_SINCE) else tokens


def final_tokens(
    profiled: int,
    release: str,
    page_size: int = 1,
    max_total_tokens: int | None = None,
    added: int = 0,
    stage_tokens: int | None = None,
) -> TokenCount:
    """Return the tokens of the target's pool from what the budget holds, and which limit binds.

    min(profiled + headroom, max_total_tokens), cut to pages, then the minimum over pipeline stages (0.5.2 on).

    Args:
        profiled: tokens that the budget holds, see ``tokens``.
        max_total_tokens: the flag (0.2.8 on); it cannot raise a count, nor rescue a negative one.
        added: see ``headroom``.
        stage_tokens: the least count of the other pipeline stages, already cut to pages.

    Returns:
        0 or less where SGLang raises "Not enough memory".

    Source: sglang/srt/model_executor/model_runner.py (init_memory_pool) and what followed it.
    """
    count, limit = profiled + added, "fraction"
    if max_total_tokens is not None and since(release, CAP_SINCE) and max_total_tokens < count:
        count, limit, added = max_total_tokens, "max_total_tokens", max(0, max_total_tokens - profiled)
    count = whole_pages(count, page_size, release)
    if stage_tokens is not None and since(release, STAGE_MINIMUM_SINCE) and stage_tokens < count:
        return TokenCount(stage_tokens, "pipeline stage", max(0, stage_tokens - profiled))
    return TokenCount(count, "max_total_tokens" if limit == "max_total_tokens" else "fraction", added)
