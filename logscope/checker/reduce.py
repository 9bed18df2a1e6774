"""Many values to one: by quantifier, and of several baselines the middle one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from logscope.checker.types import Quantifier, Value
from logscope.model import Pos
from logscope.units import Quantity

PER_VALUE = ("each", "any")


def reduced(quantifier: Quantifier, values: Sequence[Value]) -> tuple[Quantity | None, tuple[Value, ...]]:
    """Return one number for many, and the values that it comes from; None where there are none."""
    if quantifier == "count":
        return Quantity(len(values), 0), tuple(values)
    known = [(value.number, value) for value in values if value.number is not None]
    if not known:
        return None, ()
    low, high = min(known, key=lambda pair: pair[0].value), max(known, key=lambda pair: pair[0].value)
    if quantifier == "sum":
        total = Quantity(0, 0)
        for number, _ in known:
            total += number
        return total, tuple(values)
    if quantifier == "spread":
        return high[0] - low[0], (low[1], high[1])
    chosen = high if quantifier == "max" else low
    return chosen[0], tuple(value for number, value in known if number.value == chosen[0].value)


def middle(numbers: Sequence[Quantity]) -> Quantity | None:
    """Return the median, with the coarsest print resolution of all."""
    if not numbers:
        return None
    return Quantity(median(number.value for number in numbers), max(number.resolution for number in numbers))


def same_values(values: Sequence[Value], base: Sequence[Sequence[Value]]) -> Iterator[tuple[Value, list[Quantity]]]:
    """Yield each value with what the baselines have in its place: on that rank, of as many values there the same one."""
    places = [_placed(each) for each in base]
    for place, value in _placed(values).items():
        own = [each[place].number for each in places if place in each]
        yield value, [number for number in own if number is not None]


def _placed(values: Sequence[Value]) -> dict[tuple[str, int], Value]:
    counts: dict[str, int] = {}
    found: dict[tuple[str, int], Value] = {}
    for value in values:
        number = counts[value.rank] = counts.get(value.rank, 0) + 1
        found[value.rank, number] = value
    return found


def places_of(values: Sequence[Value]) -> tuple[Pos, ...]:
    """Return where values stand."""
    return tuple(value.pos for value in values if value.pos is not None)
