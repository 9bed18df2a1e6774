"""Bounds that no launch could satisfy, or none break: they are refused when a rules file is read."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import inf

from logscope.checker.types import Bound, Quantifier

_Side = tuple[float, bool]  # a limit, and whether it is itself allowed
# Which end of the values a lower limit raises, and an upper limit lowers
_RAISES: Mapping[Quantifier, tuple[str, ...]] = {
    "each": ("min", "max"),
    "min": ("min",),
    "max": ("max",),
    "any": ("max",),
}
_LOWERS: Mapping[Quantifier, tuple[str, ...]] = {
    "each": ("min", "max"),
    "min": ("min",),
    "max": ("max",),
    "any": ("min",),
}


def is_settled(bound: Bound, *, signed: bool, most: float = inf) -> bool:
    """Return whether a bound holds of all numbers that there are, or of none.

    Args:
        signed: numbers may be negative.
        most: the greatest number that there is.
    """
    if bound.amount is None:
        return False
    limit = bound.amount.value
    if bound.from_baseline:  # a step down by all there is, or more: what is left is 0, or less
        return bound.sign < 0 and bound.amount.dimension == "percent" and limit >= 1
    below = not signed and (limit < 0 or (limit == 0 and bound.operator in ("<", ">=")))
    above = limit > most or (limit == most and bound.operator in (">", "<="))
    return below or above


def contradiction(bounds: Mapping[Quantifier, Bound]) -> tuple[Quantifier, Quantifier] | None:
    """Return two bounds of one rule that no values satisfy together, None if there are none; steps from a baseline are not looked at."""
    known = {key: bound for key, bound in bounds.items() if bound.amount is not None and not bound.from_baseline}
    of_values = [key for key in bounds if key != "count"]
    if "count" in known and of_values and _highest(known["count"])[0] < 1:
        return "count", of_values[0]
    for (one, first), (other, second) in product(known.items(), known.items()):
        ends = product(_RAISES.get(one, ()), _LOWERS.get(other, ()))
        if any(_is_same(low, high) for low, high in ends) and _crosses(_lowest(first), _highest(second)):
            return one, other
    return None


def _is_same(low: str, high: str) -> bool:
    """Return whether a lower limit of one end of the values is one of the other end, too: the least is no more than the greatest."""
    return low == high or low == "min"


def _crosses(low: _Side, high: _Side) -> bool:
    return low[0] > high[0] or (low[0] == high[0] and not (low[1] and high[1]))


def _lowest(bound: Bound) -> _Side:
    assert bound.amount is not None, "asked before"
    return (bound.amount.value, bound.operator != ">") if bound.operator in (">=", ">", "==") else (-inf, True)


def _highest(bound: Bound) -> _Side:
    assert bound.amount is not None, "asked before"
    return (bound.amount.value, bound.operator != "<") if bound.operator in ("<=", "<", "==") else (inf, True)
