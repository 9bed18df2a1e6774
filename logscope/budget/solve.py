"""All of it together: what a launch gets for a fraction, which limit binds, and which fraction gives what is wanted."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from logscope.budget.cells import SPLIT_SINCE, KvModel, cell_size
from logscope.budget.formula import NOTHING, Reserve, reserve, tokens
from logscope.budget.interval import Interval, NotModelled, exact
from logscope.budget.mamba import States, StateSplit, split_states
from logscope.budget.pools import Limit, Speculation, final_tokens, headroom, request_slots
from logscope.budget.releases import since
from logscope.budget.window import split_window

_STEPS = 60


class Launch(Struct, frozen=True):
    """What a launch's budget depends on, but for the fraction.

    Attributes:
        avail, total: A and T, bytes; see ``rest``.
        model: for the cell size. ``measured_cell`` (bytes) takes its place where the model is not known but a pool line is.
        context_length: for the default of request slots, which the headroom of 0.4.3.post3 to 0.5.6 needs.
        max_running_requests: as given, None for the default.
        dp_size: dp under DP attention, else 1.
        stage_tokens: the least count of the other pipeline stages.
        window_ratio: swa_full_tokens_ratio.
        states: of Mamba and linear layers.
        floor, multimodal: see ``rest``.
        window_cap: the window's pool is sized from max_running_requests (no radix cache; 0.5.14 on): not modelled.
    """

    avail: Interval
    total: Interval
    model: KvModel | None
    measured_cell: float | None = None
    page_size: int = 1
    max_total_tokens: int | None = None
    speculation: Speculation | None = None
    context_length: int | None = None
    max_running_requests: int | None = None
    dp_size: int = 1
    stage_tokens: int | None = None
    window_ratio: float = 0.8
    window_cap: bool = False
    states: States | None = None
    floor: Interval = NOTHING
    multimodal: Interval = NOTHING


class Capacity(Struct, frozen=True):
    """What a launch gets on one rank.

    Attributes:
        reserve: what is left free, and what sets it.
        rest: budget of the KV cache, bytes, after states; 0 or less fails.
        tokens: of the target's pool (with a window, of the pool that the server reports); 0 or less fails.
        window_tokens: of the sliding-window pool.
        states: states of Mamba and linear layers; ``state_requests``: the requests that they serve, 0 fails from 0.5.13 on.
        limits: what sets the number of tokens, one unless the intervals leave it open.
    """

    reserve: Reserve
    rest: Interval
    tokens: Interval
    limits: tuple[Limit, ...]
    window_tokens: Interval | None = None
    states: Interval | None = None
    state_requests: Interval | None = None


class _Point(Struct, frozen=True):
    """One end of a capacity: whole numbers for one exact budget."""

    rest: float
    tokens: int
    limit: Limit
    window: int | None = None
    split: StateSplit | None = None


def capacity(launch: Launch, fraction: Interval, release: str) -> Capacity | NotModelled:
    """Return what a launch gets for a fraction.

    rest = A - reserve; less states; / cell size; plus headroom; at most max_total_tokens; whole pages; split for windows. Every
    step rises with the budget, so that the ends of the intervals go through it one by one.

    Releases: 0.1.13 to 0.5.23. Source: see the functions that do the steps.
    """
    kept = reserve(launch.total, fraction, launch.floor)
    budget = launch.avail - kept.amount - launch.multimodal
    low, high = _point(launch, budget.low, release), _point(launch, budget.high, release)
    if isinstance(low, NotModelled):
        return low
    if isinstance(high, NotModelled):
        return high
    limits = tuple(dict.fromkeys((low.limit, high.limit)))
    return Capacity(
        kept,
        Interval(min(low.rest, high.rest), max(low.rest, high.rest)),
        Interval(min(low.tokens, high.tokens), max(low.tokens, high.tokens)),
        limits,
        None if low.window is None or high.window is None else Interval(low.window, high.window),
        None if low.split is None or high.split is None else Interval(low.split.states, high.split.states),
        None if low.split is None or high.split is None else Interval(low.split.requests, high.split.requests),
    )


def _point(launch: Launch, budget: float, release: str) -> _Point | NotModelled:
    split: StateSplit | None = None
    if launch.states is not None:
        found = split_states(budget, launch.states, release)
        if isinstance(found, NotModelled):
            return found
        budget, split = found.rest_bytes, found
    if launch.window_cap and since(release, "0.5.14"):
        return NotModelled("a window's pool sized from max_running_requests")
    if launch.model is not None and launch.model.window is not None and since(release, SPLIT_SINCE):
        return _windowed(launch, launch.model, budget, split, release)
    cell = _cell(launch, release)
    if isinstance(cell, NotModelled):
        return cell
    profiled = int(tokens(exact(budget), cell, release).low)
    added = _headroom(launch, profiled, release)
    if isinstance(added, NotModelled):
        return added
    final = final_tokens(profiled, release, launch.page_size, launch.max_total_tokens, added, launch.stage_tokens)
    return _Point(budget, final.tokens, final.limit, None, split)


def _cell(launch: Launch, release: str) -> float | NotModelled:
    if launch.measured_cell is not None:
        return launch.measured_cell
    return NotModelled("a model that is not known") if launch.model is None else cell_size(launch.model, release)


def _headroom(launch: Launch, profiled: int, release: str) -> int | NotModelled:
    if launch.speculation is None or not headroom(launch.speculation, 0, release):
        return 0
    requests = launch.max_running_requests
    if requests is None:
        if launch.context_length is None:
            return NotModelled(f"speculative headroom of SGLang {release} without the context length")
        requests = request_slots(profiled, launch.context_length, release)
    return headroom(launch.speculation, requests, release)


def _windowed(
    launch: Launch, model: KvModel, budget: float, split: StateSplit | None, release: str
) -> _Point | NotModelled:
    if launch.speculation is not None and headroom(launch.speculation, 0, release):
        return NotModelled(f"speculative headroom beside sliding-window layers in SGLang {release}")
    if launch.stage_tokens is not None:
        return NotModelled("pipeline stages with sliding-window layers")
    cap = launch.max_total_tokens
    pools = split_window(budget, model, launch.window_ratio, release, launch.page_size, cap)
    free = split_window(budget, model, launch.window_ratio, release, launch.page_size)
    if isinstance(pools, NotModelled) or isinstance(free, NotModelled):
        return pools if isinstance(pools, NotModelled) else NotModelled("")
    limit: Limit = "fraction" if pools == free else "max_total_tokens"
    return _Point(budget, pools.max_total_tokens, limit, pools.window, split)


def least_fraction(launch: Launch, wanted_tokens: int, release: str) -> Interval | Literal["no fraction"] | NotModelled:
    """Return the least fraction that gives at least so many tokens.

    Returns:
        low: with the most favourable values of A and T; high: with all of them. Between 0 and 1, accurate to 1e-12.
        "no fraction" if even a fraction next to 1 does not give it for all of them: the flag is not what limits, or memory is short.
    """
    ends: list[float] = []
    for favourable in (True, False):
        least = _bisect(launch, wanted_tokens, release, favourable)
        if isinstance(least, NotModelled):
            return least
        if least is None:
            return "no fraction"
        ends.append(least)
    return Interval(ends[0], max(ends))


def _bisect(launch: Launch, wanted: int, release: str, favourable: bool) -> float | NotModelled | None:
    low, high = 0.0, 1.0
    for step in range(_STEPS):
        middle = high if step == 0 else (low + high) / 2
        found = capacity(launch, exact(middle), release)
        if isinstance(found, NotModelled):
            return found
        enough = (found.tokens.high if favourable else found.tokens.low) >= wanted
        if step == 0 and not enough:
            return None
        if step > 0:
            low, high = (low, middle) if enough else (middle, high)
    return high


def requests_that_fit(tokens_available: int, context_length: int) -> int:
    """Return how many requests of the full context length fit a pool at once; 0 if one such request is refused."""
    return max(0, tokens_available) // context_length


def longest_context(tokens_available: int, requests: int = 1) -> int:
    """Return the longest context, tokens, of so many requests that fit a pool at once."""
    return max(0, tokens_available) // requests
