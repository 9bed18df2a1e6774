"""The budget with the numbers put in, term by term, and what may be set instead."""

from __future__ import annotations

from collections.abc import Iterator

from logscope import budget
from logscope.amounts import flag_text, gib_text
from logscope.budget import exact
from logscope.causes import Direction
from logscope.explainer._types import Offer, Term
from logscope.model import Launch
from logscope.sizing import HIGHEST_FRACTION, Sizing, WhatIf, fraction_used, grant_for, least_viable, taken_beside

ROUND_VALUES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94)
MOST_OFFERS = 5
NEAR = 0.16


def _is_wanted(value: float, now: float, sizing: Sizing, suggested: float | None, direction: Direction | None) -> bool:
    """Return whether a round value is worth a row: one that may help, or without a direction one that is near."""
    if direction == "raise":
        return value > now and (sizing.run_out is None or value < sizing.run_out.fraction)
    if direction == "lower":
        return value < now if suggested is None else suggested - NEAR < value < suggested
    return abs(value - now) < NEAR


def budget_terms(sizing: Sizing) -> Iterator[Term]:
    """Yield the terms of the budget that the log tells: A, T, the reserve, what is left, the cell size, the tokens."""
    avail, total, fraction = sizing.avail, sizing.total, fraction_used(sizing)
    if total is not None:
        how = "free after the weights + what they took" if total.derived else "as printed"
        yield Term("T: free before the weights", total.amount, "bytes", how, (total.pos,))
    if avail is not None:
        yield Term("A: free when the pool is due", avail.amount, "bytes", "as printed", (avail.pos,))
    if avail is not None and total is not None and fraction is not None:
        kept = budget.reserve(total.amount, exact(fraction)).amount
        place = sizing.fraction.in_force_at if fraction == sizing.fraction.in_force else None
        yield Term(
            "kept: T * (1 - f)",
            kept,
            "bytes",
            f"{gib_text(total.amount)} * (1 - {flag_text(fraction)})",
            (place,) if place else (),
        )
        left = sizing.rest if sizing.rest is not None else avail.amount - kept
        yield Term("budget: A - kept", left, "bytes", f"{gib_text(avail.amount)} - {gib_text(kept)}")
    if sizing.size is not None:
        places = tuple(pool.pos for each in sizing.ranks[:1] for pool in each.pools[:1])
        yield Term("KV cache, as allocated", sizing.size, "bytes", "as printed", places)
    if sizing.cell is not None:
        yield Term("bytes per token", sizing.cell.size, "count", _cell_source(sizing))
        if sizing.cell.charged != sizing.cell.size:
            yield Term("bytes per token, charged", sizing.cell.charged, "count", "all pools that count")
    if sizing.tokens is not None:
        yield Term("tokens", sizing.tokens.amount, "count", "as printed", (sizing.tokens.pos,))


def _cell_source(sizing: Sizing) -> str:
    assert sizing.cell is not None, "asked for a cell that is known"
    source = sizing.cell.source
    return "size / tokens" if source == "pool line" else f"by the {source}"


def offers(launch: Launch, sizing: Sizing, suggested: float | None, direction: Direction | None) -> Iterator[Offer]:
    """Yield what may be set, in order of the fraction: what is in force, the least that starts, and round values.

    Only lower ones where memory ran out beside the pool, only higher ones where nothing was left for it; none that ran out before.
    """
    now, minimum = fraction_used(sizing), sizing.fraction.minimum
    if now is None or minimum is None:
        return
    beside, total = taken_beside(launch, sizing), sizing.total
    values: dict[float, str] = {now: "in force" if sizing.fraction.in_force == now else "implied"}
    if minimum.high < HIGHEST_FRACTION and sizing.tokens is None and now <= minimum.high:
        values.setdefault(least_viable(minimum.high), "the least that starts")
    if suggested is not None:
        values.setdefault(suggested, "suggested")
    for value in ROUND_VALUES:
        if (
            _is_wanted(value, now, sizing, suggested, direction)
            and value > minimum.high
            and not (beside and total and budget.reserve(total.amount, exact(value)).amount.high < beside.amount.low)
            and value not in values
            and len(values) < MOST_OFFERS
        ):
            values[value] = ""
    for value, why in sorted(values.items()):
        grant = grant_for(launch, sizing, WhatIf(fraction=value))
        if grant is not None:
            yield Offer(flag_text(value), grant, why, is_now=value == now)
