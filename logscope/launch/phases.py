"""Pair the begin and end lines of each phase, per rank and worker."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from logscope.model import Event, PhaseSpan, Worker
from logscope.packs import Packs
from logscope.rank import Rank

Key = tuple[Rank, Worker | None, str, tuple[str | None, ...]]


def pair_phases(events: Sequence[Event], workers: Sequence[Worker | None], packs: Packs) -> tuple[PhaseSpan, ...]:
    """Return the spans of a launch in the order of their first lines.

    A begin without an end stays open; an end without a begin is a span of its own. Points of a phase belong to the span that is open,
    or to a span of points.
    """
    spans: list[PhaseSpan] = []
    open_at: dict[Key, int] = {}
    points_at: dict[tuple[Rank, Worker | None, str], int] = {}
    for event, worker in zip(events, workers, strict=True):
        if not event.pattern.is_of_a_rank:
            continue
        phase = packs.phase_of(event.pattern)
        kinds = tuple(_text(event, name) for name in phase.pair_by)
        key: Key = (event.rank, worker, phase.id, kinds)
        if event.pattern.edge == "begin":
            open_at[key] = len(spans)
            spans.append(PhaseSpan(phase.id, event.rank, worker, kinds[0] if kinds else None, event, None))
        elif event.pattern.edge == "end":
            at = open_at.pop(key, None)
            if at is None:
                spans.append(PhaseSpan(phase.id, event.rank, worker, kinds[0] if kinds else None, None, event))
            else:
                spans[at] = replace(spans[at], end=event)
        else:
            _add_point(spans, open_at, points_at, event, worker)
    return tuple(spans)


def _add_point(
    spans: list[PhaseSpan],
    open_at: dict[Key, int],
    points_at: dict[tuple[Rank, Worker | None, str], int],
    event: Event,
    worker: Worker | None,
) -> None:
    owner = (event.rank, worker, event.pattern.phase)
    at = next((index for key, index in open_at.items() if key[:3] == owner), points_at.get(owner))
    if at is None:
        points_at[owner] = len(spans)
        spans.append(PhaseSpan(event.pattern.phase, event.rank, worker, None, None, None, (event,)))
    else:
        spans[at] = replace(spans[at], points=(*spans[at].points, event))


def _text(event: Event, name: str) -> str | None:
    value = event.values.get(name)
    if value is None or isinstance(value, str):
        return value
    number = event.quantity(name)
    return None if number is None else f"{number.value:g}"
