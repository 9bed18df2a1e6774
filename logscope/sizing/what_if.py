"""What another fraction, cap or page size would give: the budget solved forward with the figures of a log."""

from __future__ import annotations

from msgspec import Struct

from logscope import budget
from logscope.budget import Interval, exact
from logscope.budget.releases import LAST_READ
from logscope.model import Launch
from logscope.server_args import arg_number
from logscope.sizing.figures import KV_CACHE, STATES
from logscope.sizing.fraction import value_used
from logscope.sizing.types import Pool, Sizing, Stated


class WhatIf(Struct, frozen=True):
    """What is to be changed; None stays as it is. ``cell_factor``: bytes per token, times this (another dtype of the cache)."""

    fraction: float | None = None
    max_total_tokens: int | None = None
    page_size: int | None = None
    cell_factor: float = 1.0


class Grant(Struct, frozen=True):
    """What a launch would get on each rank: ``rest`` for its pools, ``reserve`` left for graphs and activations (bytes), ``tokens``.

    ``tokens`` is None where no cell size is known. A ``rest`` of 0 or less fails.
    """

    fraction: float
    rest: Interval
    reserve: Interval
    tokens: Interval | None
    capped: bool

    @property
    def fails(self) -> bool:
        """Return whether the launch surely fails for want of memory."""
        return self.rest.high <= 0 or (self.tokens is not None and self.tokens.high <= 0)

    @property
    def starts(self) -> bool:
        """Return whether the pools surely get some memory."""
        return self.rest.low > 0 and (self.tokens is None or self.tokens.low > 0)


def grant_for(launch: Launch, sizing: Sizing, change: WhatIf) -> Grant | None:
    """Return what a launch would get; None where free memory before and after the weights, or the fraction, is not known."""
    fraction = change.fraction if change.fraction is not None else fraction_used(sizing)
    if sizing.avail is None or sizing.total is None or fraction is None:
        return None
    left = budget.rest(sizing.avail.amount, sizing.total.amount, exact(fraction))
    kept = budget.reserve(sizing.total.amount, exact(fraction)).amount
    if sizing.cell is None:
        return Grant(fraction, left, kept, None, capped=False)
    page = change.page_size or sizing.page_size
    cap = change.max_total_tokens or int(arg_number(launch.args.values, "max_total_tokens") or 0) or None
    counts, caps = [], []
    cells = (sizing.cell.charged.high, sizing.cell.charged.low)
    for amount, cell in zip((left.low, left.high), cells if left.low >= 0 else cells[::-1], strict=True):
        found = _count(_for_tokens(amount, sizing, launch), cell * change.cell_factor, page, cap, launch)
        counts.append(found[0])
        caps.append(found[1])
    tokens = Interval(min(counts), max(counts))
    if all(caps) and not _states_and_cached(sizing)[0]:  # what the cap leaves of the budget stays free, too
        charged, factor = sizing.cell.charged, change.cell_factor
        kept = sizing.avail.amount - Interval(tokens.low * charged.low * factor, tokens.high * charged.high * factor)
    return Grant(fraction, left, kept, tokens, any(caps))


def fraction_used(sizing: Sizing) -> float | None:
    """Return the fraction that is in force, or the middle of what the pools imply."""
    return value_used(sizing.fraction)


def worth(launch: Launch, sizing: Sizing, amount: Interval) -> Interval | None:
    """Return how many tokens more the budget holds with so many bytes more; None where that is not known, or a cap set the capacity.

    Of what it gains, states of Mamba layers take the share that they have of it, unless their number is given.
    """
    cell = sizing.cell
    if cell is None or cell.charged.low <= 0 or amount.low < 0 or sizing.bound_by == "max_total_tokens":
        return None
    share = 1.0 if launch.args.values.get("max_mamba_cache_size") is not None else _share_of_tokens(sizing)
    return Interval(amount.low * share // cell.charged.high, amount.high * share // cell.charged.low)


def taken_beside(launch: Launch, sizing: Sizing) -> Stated | None:
    """Return what a launch that became ready took on its limiting rank beside the pools: graphs, buffers, a draft that is not paid for.

    All of it comes out of what the fraction keeps free. None where the log does not show it, or is no proof (see ``Sizing.notes``); the
    place is that of the last free memory.
    """
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    if launch.outcome.kind != "ready" or sizing.notes or own is None or own.avail is None or own.last is None:
        return None
    paid = [pool for pool in own.pools if pool.worker != "draft" or sizing.is_draft_paid]
    if not paid or own.last.pos.line <= max(pool.pos.line for pool in paid):
        return None
    left = own.avail.amount - sum((pool.size for pool in paid), start=exact(0.0))
    return Stated(left - own.last.amount, own.last.pos)


def _count(amount: float, cell: float, page: int, cap: int | None, launch: Launch) -> tuple[int, bool]:
    release = launch.releases.since or LAST_READ
    profiled = int(budget.tokens(exact(amount), cell, release).low)
    final = budget.final_tokens(profiled, release, page, cap)
    return final.tokens, final.limit == "max_total_tokens"


def _for_tokens(amount: float, sizing: Sizing, launch: Launch) -> float:
    """Return the part of a budget that is for tokens: states of Mamba layers take a share of it, or what was given for them."""
    states, cached = _states_and_cached(sizing)
    if cached and launch.args.values.get("max_mamba_cache_size") is not None:
        return amount - states
    return amount * _share_of_tokens(sizing)


def _share_of_tokens(sizing: Sizing) -> float:
    states, cached = _states_and_cached(sizing)
    return cached / (cached + states) if states and cached else 1.0


def _states_and_cached(sizing: Sizing) -> tuple[float, float]:
    """Return the bytes of the limiting rank's pools: those of states, those of tokens."""
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    pools: tuple[Pool, ...] = own.pools if own else ()
    states = sum(pool.size.low for pool in pools if pool.item in STATES)
    return states, sum(pool.size.low for pool in pools if pool.item == KV_CACHE)
