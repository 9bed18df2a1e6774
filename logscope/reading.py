"""Read logs into launches, or into a stream of events: the stages put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from logscope.clock import seconds_between
from logscope.errors import NoLaunchError, SourceError
from logscope.events import Recogniser
from logscope.launch import NodeJoiner, NodeLog, Segment, assign_workers, build_launches, on_one_clock, split_streams
from logscope.lines import peel_outer, split_at_prefixes
from logscope.model import Drift, Event, Launch, LogLine, Pos, Worker
from logscope.packs import Packs
from logscope.scan import ReadState
from logscope.source import Source, find_sources, read_blocks
from logscope.wrapped import wrapped_in

HELD_EVENTS = 50_000  # events of a launch whose workers are not known yet: more are not held back


class Reading(Struct):
    """How to read, and what went wrong on the way: a damaged file is read as far as it goes.

    ``silence_s``: silence from which on an unfinished launch counts as hung. ``on_read``: told the bytes taken from files.
    ``problems``: logs that could be read in part only; ``foreign``: logs without a launch, and why.
    """

    packs: Packs
    silence_s: float | None = None
    on_read: Callable[[int], None] | None = None
    problems: list[SourceError] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    _recogniser: Recogniser | None = None

    @property
    def recogniser(self) -> Recogniser:
        """What tells events, built once for all logs."""
        if self._recogniser is None:
            self._recogniser = Recogniser(self.packs)
        return self._recogniser


def read_launches(paths: Sequence[str], reading: Reading, recogniser: Recogniser | None = None) -> list[Launch]:
    """Return all launches of the logs, in the order given.

    Raises:
        SourceError: a log cannot be found, or none can be read.
        NoLaunchError: the logs hold no line of an SGLang launch.
    """
    return read_sources(find_sources(paths), reading, recogniser)


def read_sources(sources: Sequence[Source], reading: Reading, recogniser: Recogniser | None = None) -> list[Launch]:
    """Do what ``read_launches`` does, for logs that have been found."""
    recogniser = recogniser or reading.recogniser
    logs = [log for source in sources for log in _read_segments(source, reading, recogniser)]
    launches = build_launches(logs, reading.packs, reading.silence_s)
    if not launches:
        raise no_launch([source.name for source in sources], reading)
    return launches


def no_launch(names: Sequence[str], reading: Reading) -> SourceError | NoLaunchError:
    """Return the error for logs in which nothing was recognised."""
    if reading.problems:
        return reading.problems[-1]
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    what = reading.foreign[0] if reading.foreign else f"no SGLang launch in {shown_name(names[0])}"
    if "\n" in what:  # it says itself what to do
        return NoLaunchError(what)
    return NoLaunchError(
        f"{what}{more}\n"
        "  do: give the server's stderr from its start (2>&1 | tee run.log); `logscope patterns try LINE` tests one line"
    )


def shown_name(name: str) -> str:
    """Return what a log is called in sentences."""
    return "standard input" if name == "-" else name


def _read_segments(source: Source, reading: Reading, recogniser: Recogniser) -> list[NodeLog]:
    state = ReadState()
    closed: list[Segment] = []
    before = len(reading.problems)
    items = _items(source, reading, recogniser, state)
    for segment, is_closed in split_streams(reading.packs, source.name, items):
        if is_closed:
            closed.append(segment)
    wrapper = wrapped_in(state.tail)
    if wrapper is not None:  # half of its lines would be read, and wrongly
        reading.foreign.append(_why_wrapped(source.name, *wrapper))
        return []
    for segment in closed:
        segment.close(segment.last_line if _next_line(segment, closed) else state.lines)
    damaged = len(reading.problems) > before
    if not any(segment.events for segment in closed) and not damaged:
        reading.foreign.append(_why_foreign(source.name, state))
    return [_node_log(segment, closed, source, state, damaged, reading) for segment in closed]


def _next_line(segment: Segment, closed: Sequence[Segment]) -> int | None:
    """Return where the next launch of the same stream begins, None if there is none."""
    later = (o.first_line for o in closed if o.origin == segment.origin and o.first_line > segment.first_line)
    return min(later, default=None)


def _why_foreign(name: str, state: ReadState) -> str:
    why = "no line is one that a launching server prints" if state.tail else "it is empty"
    return f"no SGLang launch in {shown_name(name)}: {why}"


def _why_wrapped(name: str, key: str, ends_lines: bool) -> str:
    path = key if name == "-" else f"{key} {name}"
    return (
        f"{shown_name(name)} is wrapped in JSON: each line is an object, with the message in {key!r}\n"
        f"  do: unwrap it first, jq {'-j' if ends_lines else '-r'} .{path} > plain.log"
    )


def _node_log(
    segment: Segment, closed: Sequence[Segment], source: Source, state: ReadState, damaged: bool, reading: Reading
) -> NodeLog:
    following = _next_line(segment, closed)
    if following is not None:
        return NodeLog(segment, followed_by=Pos(source.name, following))
    if segment.last_line < max(other.last_line for other in closed):
        return NodeLog(segment)
    silent_s = _silence(segment, source, state, reading.packs)
    return NodeLog(segment, state.ends_whole and not damaged, silent_s, _alive_until(segment, state, reading.packs))


def _alive_until(segment: Segment, state: ReadState, packs: Packs) -> int:
    """Return the last line, near the end of the log, that only a serving server prints; 0 if none is there or none matters."""
    may_have_failed = any((event.pattern.ends or "").startswith("failed") for event in segment.events)
    if segment.ready and not may_have_failed:
        return 0
    dense = tuple(pattern for pattern in packs.patterns if packs.phase_of(pattern).dense)
    serving = Recogniser(replace(packs, patterns=dense), dense=True)
    found = serving.read("", [state.tail], tail := ReadState())
    lines = [item.pos.line for item in found if isinstance(item, Event) and packs.phase_of(item.pattern).dense]
    return max(lines) + state.lines - tail.lines if lines else 0


def _items(source: Source, reading: Reading, recogniser: Recogniser, state: ReadState) -> Iterator[Event | Drift]:
    """Yield what is recognised in a log; a damaged file ends where it can no longer be read."""
    try:
        yield from recogniser.read(source.name, read_blocks(source, reading.on_read), state)
    except SourceError as error:
        reading.problems.append(error)


def _silence(segment: Segment, source: Source, state: ReadState, packs: Packs) -> float | None:
    """Return how long a launch has said nothing: by the file's age, or by what the log prints after its last event."""
    silences = []
    if source.modified is not None:
        silences.append(time.time() - source.modified)
    spoken = [event for event in segment.events if event.time or event.outer_time]
    if spoken:
        text = state.tail.rstrip().rpartition(b"\n")[2].decode("utf-8", errors="replace")
        line, _ = peel_outer(LogLine(Pos(source.name, state.lines), text), packs.envelope)
        clocks = [clock for _, clock, _, _ in split_at_prefixes(line.text, packs.envelope) if clock]
        last = spoken[-1]
        after = seconds_between(last.time, clocks[-1] if clocks else None)
        if after is None:
            after = seconds_between(last.outer_time, line.outer_time)
        if after is not None:
            silences.append(after)
    return max(silences, default=None)


class Spoken(Struct, frozen=True):
    """One event or drift with the number of its launch, its node and its worker."""

    launch: int
    node: int | None
    worker: Worker | None
    item: Event | Drift

    @property
    def is_drift(self) -> bool:
        """Whether it is a known line in an unknown wording."""
        return isinstance(self.item, Drift)

    @property
    def phase(self) -> str | None:
        """The phase of the event; for a drift that of the event that it is most like."""
        return self.item.pattern.phase if isinstance(self.item, Event) else self.item.patterns[0].partition(".")[0]


def stream_events(paths: Sequence[str], reading: Reading, dense: bool = False) -> Iterator[Spoken]:
    """Yield every event and drift, launch by launch as far as their workers are known; memory stays bounded.

    ``dense``: those of serving, too, of which a log has many a second.

    The events of a launch are held until it is ready or ends; then they are told apart and given out in file order.
    """
    recogniser = Recogniser(reading.packs, dense=dense)
    joiner = NodeJoiner()
    for source in find_sources(paths):
        numbers: dict[int, int] = {}
        before = joiner.placed
        state = ReadState()
        items = _items(source, reading, recogniser, state)
        for segment, is_closed in split_streams(reading.packs, source.name, items):
            settled = segment.ready or len(segment.events) >= HELD_EVENTS
            if is_closed or settled:
                yield from _give_out(segment, numbers, joiner, reading.packs)
            if is_closed:
                numbers.pop(id(segment), None)
        if joiner.placed == before and not reading.problems:
            reading.foreign.append(_why_foreign(source.name, state))


def _give_out(segment: Segment, numbers: dict[int, int], joiner: NodeJoiner, packs: Packs) -> Iterator[Spoken]:
    """Give out what a segment holds, and empty it."""
    if not segment.events and not (segment.drift and id(segment) in numbers):
        return
    if id(segment) not in numbers:
        numbers[id(segment)] = joiner.place(segment)
    number, node, events = numbers[id(segment)], segment.node, on_one_clock(segment.events)
    told: list[Spoken] = [
        Spoken(number, node, worker, event) for event, worker in zip(events, assign_workers(events, packs), strict=True)
    ]
    told.extend(Spoken(number, node, None, drift) for drift in segment.drift)
    segment.drain()
    yield from sorted(told, key=lambda spoken: spoken.item.pos.line)
