"""Per-rank rows of a launch: what each line says of time and memory, and what each phase took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from logscope.clock import seconds_between
from logscope.model import Event, Launch, PhaseSpan, Pos, Worker
from logscope.packs import Edge
from logscope.rank import Rank
from logscope.units import Quantity

GAP = "gap"
SHORTEST_GAP_S = 2.0  # clocks have one-second steps: less is not seen with certainty
CLOCK_STEP_S = 1.0


class TimelineRow(Struct, frozen=True):
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


class PhaseRow(Struct, frozen=True):
    """One phase of one worker of one rank, or a gap in which no phase is open (``phase`` is ``gap``, ``kind`` says where).

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
        if event.pattern.is_of_a_rank
        and (event.pattern.edge != "point" or _printed_use(event) or event.quantity("avail_mem_bytes"))
    ]


def item_quantities(event: Event) -> Iterator[tuple[str, Quantity]]:
    """Yield (name in the ledger, bytes) of the memory that an event says was taken."""
    for field in event.pattern.fields.values():
        amount = event.quantity(field.result)
        if field.item is not None and amount is not None:
            yield field.item.replace("{kind}", event.string("kind") or "").strip(), amount


def token_capacity(launch: Launch) -> tuple[Quantity, Pos] | None:
    """Return the token capacity of one model replica, the smallest that any rank states, and the line that states it."""
    for name in ("max_total_num_tokens", "tokens"):
        pairs = zip(launch.events, launch.workers, strict=True)
        stated = [
            (number, event.pos)
            for event, worker in pairs
            if worker != "draft" and (number := event.quantity(name)) is not None
        ]
        if stated:
            return min(stated, key=lambda pair: pair[0].value)
    return None


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
    """Return the phases of every rank in the order of their first lines, with the gaps of more than two seconds.

    A gap is time in which a rank is in no phase, from the launch's arguments to its ready line, or that a phase took beyond the duration
    that its own line prints.
    """
    free_before = _free_before(launch)
    spans = [
        span for span in launch.spans if span.begin or span.end or any(_printed_use(point) for point in span.points)
    ]
    rows = sorted((_phase_row(span, free_before) for span in spans), key=lambda row: row.order)
    return sorted([*rows, *_gaps(rows, launch)], key=lambda row: row.order)


def _free_before(launch: Launch) -> dict[Pos, Event]:
    """Return for each line of a rank the line before it in which the rank stated its free memory last."""
    last: dict[Rank, Event] = {}
    before: dict[Pos, Event] = {}
    for event in launch.events:
        if not event.pattern.is_of_a_rank:
            continue
        if event.rank in last:
            before[event.pos] = last[event.rank]
        if event.quantity("avail_mem_bytes") is not None:
            last[event.rank] = event
    return before


def _start_of(span: PhaseSpan, free_before: dict[Pos, Event]) -> Quantity | None:
    """Return the free memory before a phase whose end states what is left; None if another phase's end is missing in between."""
    if span.begin is not None or span.end is None:
        return span.begin.quantity("avail_mem_bytes") if span.begin else None
    stated = free_before.get(span.end.pos)
    if stated is None or (stated.pattern.edge == "begin" and stated.pattern.phase != span.phase):
        return None
    return stated.quantity("avail_mem_bytes")


def _phase_row(span: PhaseSpan, free_before: dict[Pos, Event]) -> PhaseRow:
    printed = span.end.quantity("elapsed_s") if span.end else None
    clock = _clock(span)
    before = span.begin.quantity("avail_mem_bytes") if span.begin else None
    after = span.end.quantity("avail_mem_bytes") if span.end else None
    amounts = [
        used for event in (*span.points, span.end) if event is not None and (used := _printed_use(event)) is not None
    ]
    used = _sum(amounts) if amounts else None
    used_from: Literal["printed", "derived"] | None = "printed" if used else None
    start = _start_of(span, free_before)
    if used is None and after is not None and start is not None:
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


def _gaps(rows: Sequence[PhaseRow], launch: Launch) -> Iterator[PhaseRow]:
    """Yield the gaps of every rank; ``kind`` says where: "before", "after" or "beside" a phase."""
    openers = {event.pos.file: event for event in launch.events if event.pattern.opens_launch and event.clock}
    ready = next((event for event in launch.events if event.pos == launch.outcome.evidence[0]), None)
    by_rank: dict[Rank, list[PhaseRow]] = {}
    for row in rows:
        by_rank.setdefault(row.rank, []).append(row)
        if row.duration_from == "printed" and row.clock and row.duration and row.begin and row.end:
            yield from _gap(row, f"beside {row.phase}", row.begin, row.end, row.clock.value - row.duration.value)
    for own in by_rank.values():
        if own[0].begin is not None:
            yield from _gap(own[0], f"before {own[0].phase}", openers.get(own[0].begin.pos.file), own[0].begin)
        for earlier, later in pairwise(own):
            stop = later.begin or (later.end if later.duration is None else None)
            yield from _gap(later, f"after {earlier.phase}", earlier.end, stop)
        if launch.outcome.kind == "ready" and ready is not None and own[-1].rank.node in (None, ready.rank.node, 0):
            yield from _gap(own[-1], f"after {own[-1].phase}", own[-1].end, ready)


def _gap(
    row: PhaseRow, kind: str, start: Event | None, stop: Event | None, seconds: float | None = None
) -> Iterator[PhaseRow]:
    """Yield the gap from one line to another, if it is long enough to be seen by clocks with one-second steps."""
    if start is None or stop is None or start.pos.file != stop.pos.file:
        return
    seconds = seconds_between(start.clock, stop.clock) if seconds is None else seconds
    if seconds is not None and seconds > SHORTEST_GAP_S:
        time = Quantity(seconds, 2 * CLOCK_STEP_S)
        yield PhaseRow(GAP, row.rank, row.worker, kind, start, stop, time, "clock", time, None, None, None, None, False)
