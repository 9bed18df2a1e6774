"""mem_fraction_static three times over: what was typed, what is in force, and what the numbers imply."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from logscope.budget import Interval, fraction_for_rest, minimum_fraction
from logscope.model import Event, Launch, Pos
from logscope.server_args import arg_number
from logscope.sizing.types import Fraction, Stated, Verdict

FLAG = "mem_fraction_static"
EXACT = 1e-6  # typed fractions have few digits; floats that were multiplied have many


class Clues(Struct, frozen=True):
    """What the implied fraction rests on.

    ``rest``: what the pools that the budget pays for take, None where that is not known. ``is_floor``: something else than the
    fraction set their size. ``unexplained``: bytes taken before the pools were sized, at most. ``certain``: every rank is in the log,
    and free memory belongs to a device that nobody else uses (no CPU).
    """

    avail: Stated | None
    total: Stated | None
    rest: Interval | None
    is_floor: bool
    unexplained: float | None
    certain: bool


def fraction_of(launch: Launch, clues: Clues) -> Fraction:
    """Return the three values of the fraction, and whether they meet."""
    typed = arg_number(launch.command.flags, FLAG) if launch.command else None
    found = Fraction(typed=typed, typed_at=_place(launch, "server_args.command") if typed is not None else None)
    found = _with_value_in_force(found, launch)
    if clues.avail is None or clues.total is None or clues.total.amount.low <= 0:
        return found
    minimum = minimum_fraction(clues.avail.amount, clues.total.amount)
    found = replace(found, minimum=Interval(max(0.0, minimum.low), max(0.0, minimum.high)))
    if clues.rest is None:
        return found
    implied = fraction_for_rest(clues.avail.amount, clues.total.amount, clues.rest)
    implied = Interval(max(0.0, implied.low), max(0.0, implied.high))
    if implied.low >= 1:
        return found  # no fraction: the line of A was written after the pools were made
    slack = None if clues.unexplained is None else clues.unexplained / clues.total.amount.low
    found = replace(found, implied=implied, is_floor=clues.is_floor, slack=slack)
    return replace(found, verdict=_verdict(found, clues))


def _with_value_in_force(found: Fraction, launch: Launch) -> Fraction:
    """Add the value that SGLang used: of the failure that prints it, else as adjusted after the arguments, else of the arguments."""
    value, place = arg_number(launch.args.values, FLAG), _place(launch, "server_args.printed")
    adjusted: str | None = None
    for event in launch.events:
        stated = event.quantity(FLAG)
        if stated is None or event.pattern.id == "server_args.kept_mem_fraction_static":
            continue
        if event.pattern.id == "server_args.adjusted_mem_fraction_static":
            adjusted = event.string("reason") or "by SGLang itself"
            is_later = place is None or (place.file == event.pos.file and event.pos.line > place.line)
            if is_later:
                value, place = stated.value, event.pos
        elif event.pattern.ends == "failed" and value is None:
            value, place = stated.value, event.pos
    if value is None:
        profile = next((e for e in launch.events if e.quantity("fraction") and e.quantity("profile_avail_bytes")), None)
        stated = profile.quantity("fraction") if profile else None
        if profile is not None and stated is not None:
            value, place = stated.value, profile.pos
    return replace(found, in_force=value, in_force_at=place if value is not None else None, adjusted=adjusted)


def _place(launch: Launch, event_id: str) -> Pos | None:
    return next((event.pos for event in launch.events if event.pattern.id == event_id), None)


def _verdict(found: Fraction, clues: Clues) -> Verdict:
    value, implied = found.in_force, found.implied
    if value is None or implied is None:
        return "unknown"
    if value < implied.low - EXACT:
        return "below" if clues.certain else "unknown"
    if value <= implied.high + EXACT or found.is_floor:
        return "meets"
    if found.slack is None:
        return "unknown"
    if value <= implied.high + found.slack + EXACT:
        return "meets"
    return "above" if clues.certain else "unknown"


def value_used(known: Fraction) -> float | None:
    """Return the fraction that ran: the one in force, or the middle of what the pools imply where they refute it or stand alone."""
    if known.in_force is not None and known.verdict in ("meets", "unknown"):
        return known.in_force
    if known.implied is not None and not known.is_floor:
        return (known.implied.low + known.implied.high) / 2
    return known.in_force


def profile_events(events: Sequence[Event]) -> list[Event]:
    """Return the DEBUG lines with the terms of the budget."""
    return [event for event in events if event.quantity("profile_avail_bytes") is not None]
