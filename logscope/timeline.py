"""Per-rank rows of a launch: what each line says of time and memory, and what each phase took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from logscope.clock import seconds_between
from logscope.model import Event, Launch, PhaseSpan, Pos, Worker
from logscope.packs import Edge
from logscope.rank import Rank
from logscope.units import Quantity

GAP = "gap"
SHORTEST_GAP_S = 2.0  # clocks have one-second steps: less is not seen with certainty
CLOCK_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One line of a rank's timeline. ``avail`` is the free memory at that moment, ``used`` what the phase took, both in bytes."""

    rank: Rank
    worker: Worker | None
    phase: str
    kind: str | None
    event: str
    edge: Edge
    time: str | None
    elapsed: Quantity | None
    avail: Quantity | None
    used: Quantity | None
    pos: Pos


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One phase of one worker of one rank, or a gap in which no phase is open (``phase`` is ``gap``, ``kind`` says after what).

    ``duration`` is the line's own figure where it prints one, else by the clock (one-second steps). ``used`` is what the lines print, or
    before - after. ``items`` is what its points say was taken. ``is_open``: it began and the log does not show its end.
    """

    phase: str
    rank: Rank
    worker: Worker | None
    kind: str | None
    begin: Event | None
    end: Event | None
    duration: Quantity | None
    duration_from: Literal["printed", "clock"] | None
    clock: Quantity | None
    before: Quantity | None
    after: Quantity | None
    used: Quantity | None
    used_from: Literal["printed", "derived"] | None
    is_open: bool
    items: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, int]:
        """Where the phase first stands in its file."""
        first = self.begin or self.end
        assert first is not None
        return first.pos.file, first.pos.line


def timeline_rows(launch: Launch) -> list[TimelineRow]:
    """Return the timeline of every rank, in file order: begins, ends, and points that state memory."""
    return [
        TimelineRow(
            rank=event.rank,
            worker=worker,
            phase=event.pattern.phase,
            kind=event.string("kind"),
            event=event.pattern.id,
            edge=event.pattern.edge,
            time=event.clock,
            elapsed=event.quantity("elapsed_s"),
            avail=event.quantity("avail_mem_bytes"),
            used=_printed_use(event),
            pos=event.pos,
        )
        for event, worker in zip(launch.events, launch.workers, strict=True)
        if is_rank_line(event)
        and (event.pattern.edge != "point" or _printed_use(event) or event.quantity("avail_mem_bytes"))
    ]


def is_rank_line(event: Event) -> bool:
    """Tell whether an event is said by a rank, not by a launcher or a progress bar."""
    return event.pattern.said_by in ("every rank", "rank 0")


def item_quantities(event: Event) -> Iterator[tuple[str, Quantity]]:
    """Yield (name in the ledger, bytes) of the memory that an event says was taken."""
    for field in event.pattern.fields.values():
        amount = event.quantity(field.result)
        if field.item is not None and amount is not None:
            yield field.item.replace("{kind}", event.string("kind") or "").strip(), amount


def _printed_use(event: Event) -> Quantity | None:
    amounts = [amount for _, amount in item_quantities(event)]
    if not amounts:
        return event.quantity("mem_usage_bytes") if event.pattern.edge == "end" else None
    return _sum(amounts)


def _sum(amounts: Iterable[Quantity]) -> Quantity:
    total = Quantity(0, 0)
    for amount in amounts:
        total += amount
    return total


def phase_rows(launch: Launch) -> list[PhaseRow]:
    """Return the phases of every rank in the order of their first lines, with the gaps of two seconds and more between them."""
    free_before = _free_before(launch)
    spans = [
        span for span in launch.spans if span.begin or span.end or any(_printed_use(point) for point in span.points)
    ]
    rows = [_phase_row(span, free_before) for span in spans]
    return sorted([*rows, *_gaps(rows)], key=lambda row: row.order)


def _free_before(launch: Launch) -> dict[Pos, Quantity]:
    """Return for each line of a rank the free memory that the rank stated last before it."""
    last: dict[Rank, Quantity] = {}
    before: dict[Pos, Quantity] = {}
    for event in launch.events:
        if not is_rank_line(event):
            continue
        if event.rank in last:
            before[event.pos] = last[event.rank]
        free = event.quantity("avail_mem_bytes")
        if free is not None:
            last[event.rank] = free
    return before


def _phase_row(span: PhaseSpan, free_before: dict[Pos, Quantity]) -> PhaseRow:
    printed = span.end.quantity("elapsed_s") if span.end else None
    clock = _clock(span)
    before = span.begin.quantity("avail_mem_bytes") if span.begin else None
    after = span.end.quantity("avail_mem_bytes") if span.end else None
    amounts = [
        used for event in (*span.points, span.end) if event is not None and (used := _printed_use(event)) is not None
    ]
    used = _sum(amounts) if amounts else None
    used_from: Literal["printed", "derived"] | None = "printed" if used else None
    if used is None and after is not None and span.end is not None:
        start = before or free_before.get(span.end.pos)
        if start is not None:
            used, used_from = start - after, "derived"
    only_points = span.begin is None and span.end is None
    return PhaseRow(
        phase=span.phase,
        rank=span.rank,
        worker=span.worker,
        kind=span.kind,
        begin=span.points[0] if only_points else span.begin,
        end=span.points[-1] if only_points else span.end,
        duration=printed or (None if only_points else clock),
        duration_from="printed" if printed else "clock" if clock and not only_points else None,
        clock=clock,
        before=before,
        after=after,
        used=used,
        used_from=used_from,
        is_open=span.begin is not None and span.end is None,
        items=tuple(dict.fromkeys(name for event in span.points for name, _ in item_quantities(event))),
    )


def _clock(span: PhaseSpan) -> Quantity | None:
    if span.begin is None or span.end is None:
        return None
    seconds = seconds_between(span.begin.clock, span.end.clock)
    return None if seconds is None else Quantity(seconds, 2 * CLOCK_STEP_S)


def _gaps(rows: list[PhaseRow]) -> Iterator[PhaseRow]:
    """Yield the stretches of two seconds and more between the phases of a rank."""
    by_rank: dict[Rank, list[PhaseRow]] = {}
    for row in sorted(rows, key=lambda row: row.order):
        by_rank.setdefault(row.rank, []).append(row)
    for own in by_rank.values():
        for earlier, later in pairwise(own):
            start, stop = earlier.end, later.begin or later.end
            if start is None or stop is None or (later.begin is None and later.duration is not None):
                continue
            seconds = seconds_between(start.clock, stop.clock)
            if seconds is not None and seconds > SHORTEST_GAP_S:
                duration = Quantity(seconds, 2 * CLOCK_STEP_S)
                yield PhaseRow(
                    GAP, later.rank, later.worker, f"after {earlier.phase}", start, stop, duration, "clock", duration,
                    None, None, None, None, False,
                )  # fmt: skip
