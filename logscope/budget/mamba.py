"""Models with Mamba or linear-attention layers: their states are taken out of the budget before tokens are counted."""

from __future__ import annotations

from msgspec import Struct

from logscope.budget.interval import NotModelled
from logscope.budget.releases import since

FIRST = "0.5.2"
RATIO_SINCE = "0.5.3.post2"
JOINT_SINCE = "0.5.13"
PADDED_SINCE = "0.5.17"
DEFAULT_STATES = 512


class States(Struct, frozen=True):
    """What the state pool depends on.

    Attributes:
        bytes_per_request: of one state on this rank; under pipeline parallelism of all layers to 0.5.16, of the largest stage's
            from 0.5.17 on.
        ratio: mamba_full_memory_ratio, the flag: states to KV cache.
        count: max_mamba_cache_size where it is given.
        radix_cache: whether it is on. 0.5.2 turns it off.
        max_running_requests: where it is given; with speculation it always is.
        dp_size: dp under DP attention, else 1.
        draft_tokens: speculative_num_draft_tokens, 0 without speculation.
        slots_per_request: states that a running request may take: 1 without radix cache, else 3, and up to 2 more with extra buffers.
        linear: gated delta net (Qwen3-Next); only to 0.5.6 is it of importance, with DP attention.
        replay: ReplaySSM is on (0.5.17 on).
    """

    bytes_per_request: int
    ratio: float = 0.9
    count: int | None = None
    radix_cache: bool = True
    max_running_requests: int | None = None
    dp_size: int = 1
    draft_tokens: int = 0
    slots_per_request: int = 3
    linear: bool = True
    replay: bool = False


class StateSplit(Struct, frozen=True):
    """What is left for the KV cache, bytes, may be negative; the states (``max_mamba_cache_size``); and the requests that they serve.

    From 0.5.13 on a launch fails without a state or a request.
    """

    rest_bytes: float
    states: int
    requests: int


def split_states(rest_bytes: float, states: States, release: str) -> StateSplit | NotModelled:
    """Return what the state pool leaves of a budget.

    A number of states is given, or follows from max_running_requests where the radix cache is off, or (0.5.3.post2 on) the
    ratio m gives them m / (1 + m) of the budget, in whole states. What speculation keeps beside each state differs by release:

    - 0.5.3.post2 to 0.5.6: each state takes 1 + draft_tokens states' bytes.
    - 0.5.7 (where the ratio decides), 0.5.8 to 0.5.12: states * max_running_requests * draft_tokens off the budget before the split.
    - 0.5.13 on: solved together, states / slots_per_request requests' worth; from 0.5.17 on one state and one request more, as padding.

    Args:
        rest_bytes: budget before states; the result is monotone in it: call it for both ends of an interval.

    Source: sglang/srt/model_executor/model_runner.py (0.5.2 to 0.5.6), model_runner_kv_cache_mixin.py (to 0.5.15),
    mem_cache/kv_cache_configurator.py.
    """
    if not since(release, FIRST):
        return NotModelled(f"state pools before SGLang {FIRST}")
    if states.replay:
        return NotModelled("ReplaySSM state rings")
    if states.draft_tokens and states.max_running_requests is None and since(release, "0.5.7"):
        return NotModelled("speculation with states without max_running_requests")
    if since(release, JOINT_SINCE):
        left, count = _split_jointly(rest_bytes, states, release)
    elif since(release, "0.5.7"):
        left, count = _split_after_speculation(rest_bytes, states, release)
    else:
        left, count = _split_with_drafts(rest_bytes, states, release)
    return StateSplit(left, count, count // states.slots_per_request if since(release, RATIO_SINCE) else count)


def _given(states: States) -> int:
    """Return the states where the ratio does not decide, in releases that fall back to 512."""
    if states.count is not None:
        return states.count
    return states.max_running_requests if states.max_running_requests is not None else DEFAULT_STATES


def _share(rest_bytes: float, states: States) -> float:
    return rest_bytes * states.ratio / (1 + states.ratio)


def _split_with_drafts(rest_bytes: float, states: States, release: str) -> tuple[float, int]:
    if not since(release, RATIO_SINCE):
        count = _given(states) // states.dp_size
        return rest_bytes - count * states.bytes_per_request, count
    copies = 1 + states.draft_tokens
    count = (
        _given(states)
        if not states.radix_cache
        else int(_share(rest_bytes, states) // states.bytes_per_request // copies)
    )
    if states.linear:
        count //= states.dp_size
    return rest_bytes - count * states.bytes_per_request * copies, count


def _split_after_speculation(rest_bytes: float, states: States, release: str) -> tuple[float, int]:
    requests = states.max_running_requests or 0
    divided = requests // states.dp_size if since(release, "0.5.8") else requests
    drafts = states.bytes_per_request * divided * states.draft_tokens
    explicit = not states.radix_cache or states.count is not None
    if since(release, "0.5.9"):
        explicit = states.count is not None or (not states.radix_cache and states.max_running_requests is not None)
    if since(release, "0.5.8") or not explicit:
        rest_bytes -= drafts
    count = (
        _given(states) // states.dp_size if explicit else int(_share(rest_bytes, states) // states.bytes_per_request)
    )
    return rest_bytes - count * states.bytes_per_request, count


def _split_jointly(rest_bytes: float, states: States, release: str) -> tuple[float, int]:
    pad = 1 if since(release, PADDED_SINCE) else 0
    each, drafts, slots = states.bytes_per_request, states.draft_tokens, states.slots_per_request
    running = None if states.max_running_requests is None else states.max_running_requests // states.dp_size
    if running is not None and since(release, "0.5.23"):
        running = max(1, running)
    by_requests = states.count is None and not states.radix_cache and running is not None
    if states.count is not None:
        count = states.count // states.dp_size
    elif by_requests and running is not None:
        count = running
    elif drafts:
        count = int((_share(rest_bytes, states) - each * (1 + drafts) * pad) // (each * (1 + drafts / slots)))
    else:
        count = int((_share(rest_bytes, states) - each * pad) // each)
    if drafts and running is not None:
        kept = count if by_requests else min(running, count // slots)
        rest_bytes -= each * (kept + pad) * drafts
    return rest_bytes - (count + pad) * each, count
