"""Numbers for sentences: intervals with the digits that they are sure of."""

from __future__ import annotations

import math

from logscope.budget import Interval
from logscope.units import GIB, count_text, gib

_FIGURE_STEP = 0.0211 * GIB  # two printed numbers of 0.01 GiB: one figure still says it


def gib_text(amount: Interval) -> str:
    """Write bytes as GiB: the middle where the bounds print within two steps, else both bounds; so, too, where nothing was printed."""
    if amount.low == 0 < amount.high:  # of a printed 0.00 the middle would be a figure that nothing says
        return f"{gib(0)}..{gib(amount.high)}"
    if amount.high - amount.low <= _FIGURE_STEP:
        return gib((amount.low + amount.high) / 2)
    return f"{gib(amount.low)}..{gib(amount.high)}"


def fraction_text(amount: Interval) -> str:
    """Write a fraction as bounds of four decimals, rounded outwards: 0.8798..0.8801."""
    low, high = math.floor(amount.low * 10_000) / 10_000, math.ceil(amount.high * 10_000) / 10_000
    return f"{low:.4f}" if low == high else f"{low:.4f}..{high:.4f}"


def flag_text(fraction: float) -> str:
    """Write a fraction as one types it: two decimals, more where it has them (0.80, 0.867)."""
    return f"{fraction:.4g}" if len(f"{fraction:.4g}") > 4 else f"{fraction:.2f}"


def tokens_text(amount: Interval) -> str:
    """Write a number of tokens with the digits that both bounds share: "about 44,000"; exact ones exactly, vague ones as bounds."""
    if amount.is_exact:
        return count_text(amount.low)
    spread = amount.high - amount.low
    if spread > 0.2 * min(abs(amount.low), abs(amount.high)):
        return f"{count_text(math.floor(amount.low))}..{count_text(math.ceil(amount.high))}"
    step = 10 ** math.ceil(math.log10(spread)) if spread > 1 else 1
    return f"about {count_text(round((amount.low + amount.high) / 2 / step) * step)}"


def cell_text(amount: Interval) -> str:
    """Write bytes per token, with bounds rounded outwards where it is not exact."""
    if amount.is_exact:
        return f"{count_text(amount.low)}"
    return f"{count_text(math.floor(amount.low))}..{count_text(math.ceil(amount.high))}"
