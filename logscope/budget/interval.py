"""Intervals: a printed number stands for all values that print like it, and a formula gives all results that these allow."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from logscope.units import Quantity


class Interval(Struct, frozen=True):
    """All values from ``low`` to ``high``, both included; in base units.

    Raises:
        ValueError: low above high, or not a number.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval runs from its lower end to its higher: {self.low}..{self.high}")

    @property
    def is_exact(self) -> bool:
        """Return whether it holds one value only."""
        return self.low == self.high

    def holds(self, value: float) -> bool:
        """Return whether the value lies within."""
        return self.low <= value <= self.high

    def meets(self, other: Interval) -> bool:
        """Return whether both can stand for one true value. A log contradicts a formula only where they do not."""
        return self.low <= other.high and other.low <= self.high

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)


class NotModelled(Struct, frozen=True):
    """Stands where a number would be wrong: ``reason`` says which part of SGLang's arithmetic is not known here."""

    reason: str

    def __str__(self) -> str:
        return f"not modelled: {self.reason}"


def exact(value: float) -> Interval:
    """Return the interval of one value."""
    return Interval(value, value)


def interval_of(quantity: Quantity) -> Interval:
    """Return all values that print like this: 21.71 GB is 21.705..21.715 GiB."""
    return Interval(quantity.low, quantity.high)


def least(intervals: list[Interval]) -> Interval:
    """Return the minimum over ranks of values known as intervals. The list must not be empty.

    The budget takes the least free memory of all ranks; which rank it is may be open, the minimum's interval is not.
    """
    return Interval(min(each.low for each in intervals), min(each.high for each in intervals))


def over_corners(formula: Callable[..., float], *arguments: Interval) -> Interval:
    """Return the results of a formula that rises or falls steadily in each argument: the least and greatest over the corners."""
    points: list[list[float]] = [[]]
    for argument in arguments:
        points = [[*point, end] for point in points for end in {argument.low, argument.high}]
    results = [formula(*point) for point in points]
    return Interval(min(results), max(results))
