"""The lines that findings rest on."""

from __future__ import annotations

from logscope.explainer._subject import Subject
from logscope.model import Pos


def some(*places: Pos | None) -> tuple[Pos, ...]:
    """Return those of the places that are known."""
    return tuple(place for place in places if place is not None)


def pool_places(subject: Subject) -> tuple[Pos, ...]:
    """Return the lines that the implied fraction rests on: the limiting rank's pool, A and T."""
    own, sizing = subject.limiting, subject.sizing
    pools = [pool.pos for pool in own.pools[:1]] if own else []
    return some(*pools, sizing.avail.pos if sizing.avail else None, sizing.total.pos if sizing.total else None)
