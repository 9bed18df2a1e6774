"""The change of the KV budget, split exactly into its terms.

budget = A - T * (1 - f), with A = S - W - O - D: T free before the weights, the least over the ranks; S the same on the rank with the
least A, W the weights there, O what else went until the pool was sized, D the draft's weights where they count. A product's change is split
at the mean of its factors, so that the parts add up and swapping the launches negates them:

    change = dS - mean(1 - f) * dT - dW - dO - dD + mean(T) * df

What distributed init took more is a part of what S has less. Tokens are budget / cell, split in the same way; a cap keeps them from what
the budget gives. What caps and whole pages do to them, and Mamba states that the budget pays for, too, are terms of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from logscope.differ.figures import Figures, cells_of, figures_of, init_of, middle, tokens_of, with_states
from logscope.differ.types import Attribution, Side, Term


def attribute(before: Side, after: Side, *, same_cell: bool = True) -> Attribution:
    """Return the terms of the change; none where a launch does not tell its budget.

    Args:
        same_cell: whether a launch that failed before any pool may be taken to have the other's bytes per token.
    """
    first, second = figures_of(before), figures_of(after)
    if first is None or second is None:
        return _without_terms(before, after)
    cells = cells_of((first, second), same_cell=same_cell)
    first = replace(first, cell=cells[0][0], own_cell=cells[0][1])
    second = replace(second, cell=cells[1][0], own_cell=cells[1][1])
    first, second = with_states((first, second))
    free = [*_memory_terms(first, second), *_cell_terms(first, second), *_state_terms(first, second)]
    share = _share_beside_caps(first, second)
    terms = [term if term.tokens is None else replace(term, tokens=term.tokens * share) for term in free]
    terms.extend(_limit_terms(first, second, share))
    terms.extend(_page_terms(first, second, sum(term.tokens or 0.0 for term in terms)))
    residual = second.budget - first.budget - sum(term.bytes for term in terms)
    lost = None
    if first.tokens is not None and second.tokens is not None and first.cell and second.cell:
        lost = second.tokens - first.tokens - sum(term.tokens or 0.0 for term in terms)
    return Attribution(
        before=first.budget,
        after=second.budget,
        terms=tuple(terms),
        residual=residual,
        tokens_before=first.tokens,
        tokens_after=second.tokens,
        residual_tokens=lost,
        missing=_missing(residual, lost, first, second, share),
        named_between=_named_between(first, second),
    )


def _missing(residual: float, lost: float | None, first: Figures, second: Figures, share: float) -> Term:
    worth = lost if lost is not None else _worth(residual, first, second, share)
    lacks = first.formula - first.budget, second.formula - second.budget
    return Term("missing", residual, worth, first.slack + second.slack, *lacks)


def _named_between(first: Figures, second: Figures) -> str:
    """Return the item whose lines account for what went between the weights and the pools."""
    more = second.between - first.between
    step = first.step + second.step
    items = dict.fromkeys([*first.named, *second.named])
    changes = {item: second.named.get(item, 0.0) - first.named.get(item, 0.0) for item in items}
    return next((item for item, change in changes.items() if change and abs(change - more) <= step), "")


def _without_terms(before: Side, after: Side) -> Attribution:
    paid = [side.sizing.paid for side in (before, after)]
    budgets = [None if each is None else middle(each) for each in paid]
    tokens = [tokens_of(side.sizing) for side in (before, after)]
    residual = budgets[1] - budgets[0] if budgets[0] is not None and budgets[1] is not None else 0.0
    lost = tokens[1] - tokens[0] if tokens[0] is not None and tokens[1] is not None else None
    return Attribution(budgets[0], budgets[1], (), residual, tokens[0], tokens[1], lost)


def _memory_terms(first: Figures, second: Figures) -> Iterator[Term]:
    given = (first.fraction + second.fraction) / 2
    free, init = second.own_total - first.own_total, _init_part(first, second)
    step = first.step + second.step
    from_init = init * given
    total_change = second.total - first.total
    before_weights = free - total_change + given * total_change
    yield _term("free_at_init", before_weights - from_init, step, first, second)
    yield _term("distributed_init", from_init, step, first, second, *init_of(first, second))
    yield _term("weights", first.weights - second.weights, step, first, second, first.weights, second.weights)
    yield _term("between", first.between - second.between, step, first, second, first.between, second.between)
    yield _term("draft", first.draft - second.draft, step / 2, first, second)
    total = (first.total + second.total) / 2
    moved = total * (second.fraction - first.fraction)
    yield _term("fraction", moved, total * (first.fraction_step + second.fraction_step), first, second)


def _init_part(first: Figures, second: Figures) -> float:
    """Return how much of the change of free memory is what distributed init took more or less.

    What another release counts as that is not the same: between releases it is never more than the change itself. What print
    resolution allows to be one change is one.
    """
    before, after = init_of(first, second)
    if before is None or after is None:
        return 0.0
    free, left = second.own_total - first.own_total, before - after
    may_be_one_release = first.releases.overlaps(second.releases.since, second.releases.until)
    if may_be_one_release and abs(free - left) > (first.step + second.step) / 2:
        return left
    return max(min(left, free), 0.0) if free > 0 else min(max(left, free), 0.0)


def _term(
    name: str,
    amount: float,
    step: float,
    first: Figures,
    second: Figures,
    before: float | None = None,
    after: float | None = None,
) -> Term:
    return Term(name, amount, _worth(amount, first, second), step / 2, before, after)


def _worth(amount: float, first: Figures, second: Figures, share: float = 1.0) -> float | None:
    if not first.cell or not second.cell:
        return None
    return share * _kept_by_tokens(first, second) * amount * (1 / first.cell + 1 / second.cell) / 2


def _kept_by_tokens(first: Figures, second: Figures) -> float:
    """Return how much of a change of the budget tokens have: the rest goes to states, where these have a share and no fixed number."""
    if first.has_fixed_states and second.has_fixed_states:
        return 1.0
    return (first.rate + second.rate) / 2


def _state_terms(first: Figures, second: Figures) -> Iterator[Term]:
    """Yield what Mamba states leave tokens less of the budget: they move tokens and no bytes."""
    if not first.states and not second.states:
        return
    if not first.cell or not second.cell:
        return
    change = second.net - first.net - _kept_by_tokens(first, second) * (second.budget - first.budget)
    yield Term("states", 0.0, change * (1 / first.cell + 1 / second.cell) / 2, 0.0)


def _cell_terms(first: Figures, second: Figures) -> Iterator[Term]:
    """Yield the terms of bytes per token, and of what the draft is charged in them: they change tokens and no bytes."""
    if not first.cell or not second.cell or not first.own_cell or not second.own_cell:
        return
    budget = (first.net + second.net) / 2
    whole = budget * (1 / second.cell - 1 / first.cell)
    shares = [first.cell / first.own_cell, second.cell / second.own_cell]
    mean_share = (1 / shares[0] + 1 / shares[1]) / 2
    by_own = budget * (1 / second.own_cell - 1 / first.own_cell) * mean_share
    yield Term("cell", 0.0, by_own, 0.0)
    yield Term("draft_cell", 0.0, whole - by_own, 0.0)


def _share_beside_caps(first: Figures, second: Figures) -> float:
    """Return how much of the tokens that budget and cell give reaches the capacity, 0..1: a cap in force keeps the rest from it.

    Under either launch's cap the change of the budget makes some change of the capacity; the smaller one is what it surely made.
    """
    if not (first.capped or second.capped) or not first.cell or not second.cell:
        return 1.0
    counts = first.net / first.cell, second.net / second.cell
    if counts[0] == counts[1]:
        return 0.0
    under = [min(counts[1], cap) - min(counts[0], cap) for cap in (first.cap, second.cap)]
    return min(under, key=abs) / (counts[1] - counts[0])


def _limit_terms(first: Figures, second: Figures, share: float) -> Iterator[Term]:
    """Yield what a cap in force does to the capacity: all that the budget and the cell do not."""
    if not (first.capped or second.capped) or first.tokens is None or second.tokens is None:
        return
    if first.cell and second.cell:
        made = share * (second.net / second.cell - first.net / first.cell)
        yield Term("limits", 0.0, second.tokens - first.tokens - made, 0.0)


def _page_terms(first: Figures, second: Figures, explained: float) -> Iterator[Term]:
    """Yield what pages of another size cut off: what the other terms leave, within what pages can do."""
    if first.tokens is None or second.tokens is None or not first.cell or not second.cell:
        return
    if first.page_size != second.page_size:
        left = second.tokens - first.tokens - explained
        yield Term("page", 0.0, min(max(left, -(second.page_size - 1.0)), first.page_size - 1.0), 0.0)


def token_steps(attribution: Attribution, before: Side, after: Side, tolerance: float) -> tuple[float, float]:
    """Return how many tokens of capacity print resolution is worth, and how many the tolerance; 1 where pages or caps tell.

    Args:
        tolerance: bytes.
    """
    sizings = (before.sizing, after.sizing)
    cells = [sizing.cell.charged.low for sizing in sizings if sizing.cell]
    is_exact = any(sizing.bound_by == "max_total_tokens" for sizing in sizings)
    if not cells or is_exact or sizings[0].page_size != sizings[1].page_size or not attribution.terms:
        return 1.0, 1.0
    page = sizings[0].page_size
    return budget_step(attribution) / min(cells) + page, tolerance / min(cells) + page


def budget_step(attribution: Attribution) -> float:
    """Return how far the terms may be off for print resolution, bytes."""
    return max((term.step for term in attribution.terms), default=0.0)
