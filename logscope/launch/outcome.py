"""How a launch went: ready, failed, hung, cut or running; and how it ended after it was ready."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from logscope.clock import read_clock
from logscope.model import Ending, Event, Outcome, Pos
from logscope.packs import Packs
from logscope.rank import Rank

_LAST_WORDS = 200  # lines: while one rank dies, others may still print that they serve
_TRACEBACK = 200  # lines, of all ranks together
_WHY = {"cause": 0, "banner": 1, "consequence": 2}


class LogEnd(Struct, frozen=True):
    """How the log of a launch ends.

    ``whole`` is False when its last line has no line end. ``silent_s`` is how long it has been silent, None where that is not known.
    ``last`` is the last line of the launch. ``alive_until`` is the last line, near the end of the log, that only a serving server
    prints.
    """

    whole: bool
    silent_s: float | None
    last: Pos
    alive_until: int = 0


def judge(events: Sequence[Event], packs: Packs, end: LogEnd, silence_s: float | None) -> tuple[Outcome, Ending | None]:
    """Return (outcome, how it ended after it was ready).

    Args:
        events: of one launch, in file order.
        packs: the pattern files.
        end: how the log ends.
        silence_s: silence from which on a launch that is neither ready nor failed counts as hung; None: never.
    """
    events = _without_interrupted(events)
    ready = [index for index, event in enumerate(events) if event.pattern.ends == "ready"]
    if ready:
        said = sorted((events[index] for index in ready), key=lambda event: _WHY[event.pattern.blame])
        outcome = Outcome("ready", tuple(event.pos for event in said), event=said[0].pattern.id)
        return outcome, _ending(events[ready[0] + 1 :], packs, end.alive_until)
    has_start = begins_at_the_start(events, packs)
    if end.alive_until and not has_start:  # it served, so it had been ready: that is not in this log
        return Outcome("cut", (end.last,)), _ending(events, packs, end.alive_until)
    failure = _stopped_early(events, packs, has_start) or _failure(events, packs)
    if failure is not None:
        return failure, None
    if not end.whole or not has_start:
        return Outcome("cut", (end.last,)), None
    if silence_s is not None and end.silent_s is not None and end.silent_s >= silence_s:
        return Outcome("hung", (end.last,)), None
    return Outcome("running", (end.last,)), None


def _ending(events: Sequence[Event], packs: Packs, alive_until: int) -> Ending | None:
    """Return how a launch ended that had been ready: what comes first decides, a stop or a failure.

    A failure after which the server still served is none: what it survived is not how it ended. But while one rank dies, others may
    print a few lines more.
    """
    last_failure = max((event.pos.line for event in events if event.pattern.ends == "failed"), default=0)
    for event in events:
        if event.pattern.ends == "stopped":
            return Ending("stopped", (event.pos,), event.text.strip(), event.pattern.id)
        if event.pattern.ends == "failed" and last_failure > alive_until - _LAST_WORDS:
            dying = [other for other in events if other.pos.line > alive_until - _LAST_WORDS]
            failure = _failure(dying, packs)
            assert failure is not None
            return Ending("failed", failure.evidence, failure.reason, failure.event, failure.blame)
    return _unanswered(events, alive_until)


def _unanswered(events: Sequence[Event], alive_until: int) -> Ending | None:
    """Return the ending of a server that still failed its own health checks when the log ends, after the last line that it served."""
    checks = [event for event in events if event.pattern.cause == "watchdog" and event.pattern.ends is not None]
    if not checks or checks[-1].pos.line <= alive_until:
        return None
    since = next(event for event in checks if event.pos.line > alive_until)
    return Ending("failed", (since.pos,), since.text.strip(), since.pattern.id, since.pattern.blame)


def _stopped_early(events: Sequence[Event], packs: Packs, has_start: bool) -> Outcome | None:
    """Return the outcome of a launch that somebody stopped before it was ready; without its start nobody knows whether it was.

    What fails after the stop follows from it. A process that ended before it, without a word why, may have been stopped, too.
    """
    stop = next((event for event in events if event.pattern.ends == "stopped"), None)
    if stop is None or not has_start:
        return None
    before = _not_survived(events[: events.index(stop)], packs)
    if any(event.pattern.blame != "consequence" for event in before):
        return None
    return Outcome("failed", (stop.pos,), f"stopped before it was ready: {stop.text.strip()}", stop.pattern.id)


def _without_interrupted(events: Sequence[Event]) -> list[Event]:
    """Return the events but for banners of which an interrupt is the reason: it ends the traceback of each rank.

    Ranks interleave: the banners of all may come before the first reason.
    """
    kept: list[Event] = []
    reason: Event | None = None  # the next line that says why
    for event in reversed(events):
        if event.pattern.ends is not None and event.pattern.blame == "cause":
            reason = event
        is_stopped = (
            reason is not None
            and reason.pattern.ends == "stopped"
            and reason.pattern.closes == "traceback"
            and reason.pos.file == event.pos.file
            and reason.pos.line - event.pos.line <= _TRACEBACK
        )
        if not (is_stopped and is_bare_banner(event)):
            kept.append(event)
    return kept[::-1]


def _failure(events: Sequence[Event], packs: Packs) -> Outcome | None:
    """Return the failure that the events tell, None if they tell none.

    The first line in time that says *why* is the evidence; a banner or a consequence stands in only where no such line exists.
    """
    if len({event.pos.file for event in events}) > 1:
        events = _in_time_order(events)
    told = _not_survived(events, packs)
    if not told:
        return None
    weight = min(_WHY[event.pattern.blame] for event in told)
    heavy = [event for event in told if _WHY[event.pattern.blame] == weight]
    first = next((event for event in heavy if not is_bare_banner(event)), heavy[0])
    same = [event for event in told if event.pattern.id == first.pattern.id and event.text == first.text]
    ranks = tuple(sorted({event.rank for event in same if event.rank.tag}))
    positions = tuple(event.pos for event in same)
    return Outcome("failed", positions, first.text.strip(), first.pattern.id, ranks, first.pattern.blame)


def is_bare_banner(event: Event) -> bool:
    """Return whether a line says only that something failed, and the reason is to follow: "Scheduler hit an exception: Traceback"."""
    message = event.string("message") or ""
    is_empty = not message or message.startswith("Traceback")
    return event.pattern.blame == "banner" and event.pattern.cause is None and is_empty


def _in_time_order(events: Sequence[Event]) -> list[Event]:
    """Return the events of several files in the order of their clocks; one file is in order already.

    A line without a clock (the end of a traceback) has that of the line before it in its file.
    """
    clocks: dict[str, float] = {}
    timed = []
    for event in events:
        clock = read_clock(event.clock or "")
        if clock is not None:
            clocks[event.pos.file] = clock[0]
        timed.append((clocks.get(event.pos.file, float("-inf")), event))
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])]


def _not_survived(events: Sequence[Event], packs: Packs) -> list[Event]:
    """Return the failures after which the process that printed them did not go on with the launch, in their order."""
    told: list[Event] = []
    goes_on: dict[Rank, int] = {}  # the earliest phase that a rank is yet to speak of
    for event in reversed(events):
        order = packs.phase_of(event.pattern).order
        ends = event.pattern.ends
        if ends == "failed" or (ends == "failed_unless_progress" and goes_on.get(event.rank, order) >= order):
            told.append(event)
        elif ends is None and event.pattern.progress and event.pattern.said_by != "bar":
            goes_on[event.rank] = min(order, goes_on.get(event.rank, order))
    return told[::-1]


def begins_at_the_start(events: Sequence[Event], packs: Packs) -> bool:
    """Tell whether the log shows the launch from its beginning: its command, its arguments, or the begin of the first phase."""
    if any(event.pattern.opens_launch for event in events):
        return True
    phases = [packs.phase_of(event.pattern) for event in events]
    first = next((event for event, phase in zip(events, phases, strict=True) if phase.once), None)
    lowest = min((phase.order for phase in packs.phases.values() if phase.once), default=None)
    if first is None:
        return False
    return first.pattern.edge == "begin" and packs.phase_of(first.pattern).order == lowest
