"""DEBUG lines with the terms of the budget: every printed number is checked against the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from logscope.budget import Interval, exact, interval_of, rest, tokens, union
from logscope.budget import by_release as over_releases
from logscope.model import Event, Launch
from logscope.sizing.types import Profile
from logscope.units import count_text, gib


def check_profile(event: Event, launch: Launch) -> Profile:
    """Return what a DEBUG line says, and which of its numbers do not fit the rest within their printed resolution."""
    left, count = event.quantity("rest_bytes"), event.quantity("max_tokens")
    return Profile(
        event.pos,
        interval_of(left) if left else None,
        count.value if count else None,
        tuple(_faults(event, launch)),
    )


def _faults(event: Event, launch: Launch) -> Iterator[str]:
    avail, total, fraction = (_interval(event, name) for name in ("profile_avail_bytes", "total_bytes", "fraction"))
    reserved, left = _interval(event, "reserved_bytes"), _interval(event, "rest_bytes")
    if fraction is not None:
        fraction = exact(fraction.low + (fraction.high - fraction.low) / 2)  # printed as it was typed
    if total and fraction and reserved:
        nothing = rest(exact(0), total, fraction)
        due = Interval(-nothing.high, -nothing.low)
        if not due.meets(reserved):
            yield f"reserved is {_gib(reserved)} GiB, and total * (1 - fraction) gives {_gib(due)}"
    if avail and reserved and left and not (avail - reserved).meets(left):
        yield f"rest is {_gib(left)} GiB, and avail - reserved gives {_gib(avail - reserved)}"
    if avail and total and fraction and left and not reserved and not rest(avail, total, fraction).meets(left):
        yield f"rest is {_gib(left)} GiB, and avail - total * (1 - fraction) gives {_gib(rest(avail, total, fraction))}"
    cell, count = event.quantity("cell_size_bytes"), event.quantity("max_tokens")
    if left and cell and count and cell.value > 0:
        due = _tokens(left, cell.value, launch)
        if not Interval(due.low - 1, due.high + 1).holds(count.value):
            bounds = f"{count_text(due.low)}..{count_text(due.high)}"
            yield f"max_tokens is {count_text(count.value)}, and rest / cell_size gives {bounds}"


def _tokens(left: Interval, cell: float, launch: Launch) -> Interval:
    def count(release: str) -> Interval:
        return tokens(left, cell, release)

    formula: Callable[[str], Interval] = count
    found = union(over_releases(formula, launch.releases.since, None))
    assert isinstance(found, Interval), "tokens are modelled for every release"
    return found


def _interval(event: Event, name: str) -> Interval | None:
    quantity = event.quantity(name)
    return interval_of(quantity) if quantity is not None else None


def _gib(amount: Interval) -> str:
    low, high = gib(amount.low), gib(amount.high)
    return low if low == high else f"{low}..{high}"
