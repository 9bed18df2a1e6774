"""The change of the KV budget, split exactly into its terms.

budget = A - T * (1 - f), with A = T - W - D: T free before the weights, W what was taken until the pool was sized, D the draft's weights
where they count. A product's change is split at the mean of its factors, so that the parts add up and swapping the launches negates them:

    change = mean(f) * dT - dW - dD + mean(T) * df

Tokens are budget / cell, split in the same way. What caps and whole pages do to them is a term of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from logscope import budget
from logscope.budget import Interval, exact
from logscope.differ.types import Attribution, Side, Term
from logscope.model import Launch
from logscope.sizing import Sizing, fraction_used


@dataclass(frozen=True, slots=True)
class _Figures:
    """The figures of one launch: bytes, and the step that they are printed in. ``budget`` is what was granted, as far as known."""

    total: float
    avail: float
    draft: float
    fraction: float
    budget: float
    step: float
    fraction_step: float
    charged: Interval | None
    own: Interval | None
    tokens: float | None
    capped: bool
    page_size: int
    cell: float | None = None
    own_cell: float | None = None


def attribute(before: Side, after: Side, *, same_cell: bool = True) -> Attribution:
    """Return the terms of the change; none where a launch does not tell its budget.

    Args:
        same_cell: whether a launch that failed before any pool may be taken to have the other's bytes per token.
    """
    first, second = _figures(before), _figures(after)
    if first is None or second is None:
        budgets = [_mid(side.sizing.paid) for side in (before, after)]
        tokens = [_tokens(side.sizing) for side in (before, after)]
        residual = budgets[1] - budgets[0] if budgets[0] is not None and budgets[1] is not None else 0.0
        lost = tokens[1] - tokens[0] if tokens[0] is not None and tokens[1] is not None else None
        return Attribution(budgets[0], budgets[1], (), residual, tokens[0], tokens[1], lost)
    first, second = _with_cells(first, second, same_cell)
    terms = [*_memory_terms(first, second), *_token_terms(first, second)]
    terms.extend(_page_terms(first, second, sum(term.tokens or 0.0 for term in terms)))
    residual = second.budget - first.budget - sum(term.bytes for term in terms)
    lost = None
    if first.tokens is not None and second.tokens is not None and first.cell and second.cell:
        lost = second.tokens - first.tokens - sum(term.tokens or 0.0 for term in terms)
    return Attribution(first.budget, second.budget, tuple(terms), residual, first.tokens, second.tokens, lost)


def _mid(amount: Interval | None) -> float | None:
    return None if amount is None else (amount.low + amount.high) / 2


def _tokens(sizing: Sizing) -> float | None:
    return sizing.tokens.amount.low if sizing.tokens else None


def _figures(side: Side) -> _Figures | None:
    sizing, fraction = side.sizing, fraction_used(side.sizing)
    if sizing.total is None or sizing.avail is None or fraction is None:
        return None
    total, avail = sizing.total.amount, sizing.avail.amount
    capped = sizing.bound_by == "max_total_tokens"
    paid = None if capped else _mid(sizing.paid)
    middle_total, middle_avail = (total.low + total.high) / 2, (avail.low + avail.high) / 2
    implied = sizing.fraction.implied
    known = sizing.fraction.in_force is not None
    return _Figures(
        total=middle_total,
        avail=middle_avail,
        draft=counted_draft(side.launch, sizing),
        fraction=fraction,
        budget=paid if paid is not None else budget.rest(exact(middle_avail), exact(middle_total), exact(fraction)).low,
        step=total.high - total.low + avail.high - avail.low,
        fraction_step=0.0 if known or implied is None else implied.high - implied.low,
        charged=sizing.cell.charged if sizing.cell else None,
        own=sizing.cell.size if sizing.cell else None,
        tokens=_tokens(sizing),
        capped=capped,
        page_size=sizing.page_size,
    )


def counted_draft(launch: Launch, sizing: Sizing) -> float:
    """Return what the draft's weights took before the target's pools were sized; 0 where they came later, or there are none."""
    if sizing.avail is None or not sizing.limiting:
        return 0.0
    taken = [
        used.value
        for event, worker in zip(launch.events, launch.workers, strict=True)
        if worker == "draft"
        and event.pattern.id == "load_weights.end"
        and event.rank == sizing.limiting[0]
        and event.pos.line <= _due_line(sizing)
        and (used := event.quantity("mem_usage_bytes")) is not None
    ]
    return sum(taken)


def _due_line(sizing: Sizing) -> float:
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    lines = [pool.pos.line for pool in own.pools if pool.worker != "draft"] if own else []
    if lines:
        return min(lines)
    return own.avail.pos.line if own is not None and own.avail is not None else float("inf")


def _with_cells(first: _Figures, second: _Figures, same_cell: bool) -> tuple[_Figures, _Figures]:
    charged, own = _agreed(first.charged, second.charged, same_cell), _agreed(first.own, second.own, same_cell)
    return replace(first, cell=charged[0], own_cell=own[0]), replace(second, cell=charged[1], own_cell=own[1])


def _agreed(first: Interval | None, second: Interval | None, same_cell: bool) -> tuple[float | None, float | None]:
    """Return the bytes per token of both launches: one figure where what they print allows one, or only one prints any."""
    if first is None or second is None:
        only = _mid(first or second)
        return (only, only) if same_cell else (_mid(first), _mid(second))
    if first.meets(second):
        both = (max(first.low, second.low) + min(first.high, second.high)) / 2
        return both, both
    return _mid(first), _mid(second)


def _memory_terms(first: _Figures, second: _Figures) -> Iterator[Term]:
    fraction = (first.fraction + second.fraction) / 2
    total = (first.total + second.total) / 2
    weights = [each.total - each.avail - each.draft for each in (first, second)]
    step = first.step + second.step
    yield _term("free_at_init", fraction * (second.total - first.total), step, first, second)
    yield _term("weights", weights[0] - weights[1], step, first, second)
    yield _term("draft", first.draft - second.draft, step / 2, first, second)
    moved = total * (second.fraction - first.fraction)
    yield _term("fraction", moved, total * (first.fraction_step + second.fraction_step), first, second)


def _term(name: str, amount: float, step: float, first: _Figures, second: _Figures) -> Term:
    worth = amount * (1 / first.cell + 1 / second.cell) / 2 if first.cell and second.cell else None
    return Term(name, amount, worth, step / 2)


def _token_terms(first: _Figures, second: _Figures) -> Iterator[Term]:
    """Yield the terms that change tokens and no bytes: bytes per token, of it what the draft is charged, and caps."""
    if not first.cell or not second.cell or not first.own_cell or not second.own_cell:
        return
    budget = (first.budget + second.budget) / 2
    whole = budget * (1 / second.cell - 1 / first.cell)
    shares = [first.cell / first.own_cell, second.cell / second.own_cell]
    mean_share = (1 / shares[0] + 1 / shares[1]) / 2
    by_own = budget * (1 / second.own_cell - 1 / first.own_cell) * mean_share
    yield Term("cell", 0.0, by_own, 0.0)
    yield Term("draft_cell", 0.0, whole - by_own, 0.0)
    if first.tokens is None or second.tokens is None:
        return
    if first.capped or second.capped:
        beyond = (second.tokens - second.budget / second.cell) - (first.tokens - first.budget / first.cell)
        yield Term("limits", 0.0, beyond, 0.0)


def _page_terms(first: _Figures, second: _Figures, explained: float) -> Iterator[Term]:
    """Yield what pages of another size cut off: what the other terms leave, within what pages can do."""
    if first.tokens is None or second.tokens is None or not first.cell or not second.cell:
        return
    if first.page_size != second.page_size:
        left = second.tokens - first.tokens - explained
        yield Term("page", 0.0, min(max(left, -(second.page_size - 1.0)), first.page_size - 1.0), 0.0)


def token_step(attribution: Attribution, before: Side, after: Side, tolerance: float) -> float:
    """Return how many tokens of capacity are no difference: what print resolution and tolerance are worth; 1 where pages or caps tell.

    Args:
        tolerance: bytes.
    """
    sizings = (before.sizing, after.sizing)
    cells = [sizing.cell.charged.low for sizing in sizings if sizing.cell]
    is_exact = any(sizing.bound_by == "max_total_tokens" for sizing in sizings)
    if not cells or is_exact or sizings[0].page_size != sizings[1].page_size or not attribution.terms:
        return 1.0
    return max(budget_step(attribution), tolerance) / min(cells) + sizings[0].page_size


def budget_step(attribution: Attribution) -> float:
    """Return how far the terms may be off for print resolution, bytes."""
    return max((term.step for term in attribution.terms), default=0.0)
