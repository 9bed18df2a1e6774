"""Where one launch ends and the next begins, in one stream of events.

A stream is one file, or what one origin (pod, container, task, actor) said in it. A launch opens with its command or its printed
arguments; where those are missing (greps, tails) a new launch shows in what cannot happen within one: the clock of a rank runs back,
memory that was taken is free again, or a rank starts over after the launch was ready or had failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from logscope.clock import seconds_between
from logscope.model import Drift, Event
from logscope.packs import Packs, Phase
from logscope.server_args import ServerArgs, arg_count

CLOCK_SLACK_S = 2.0  # lines of one process are in order; clocks have one-second steps
KEPT_PER_PATTERN = 20_000  # further events of one pattern are counted, and the last one is kept


class Segment(Struct):
    """What one stream says of one launch."""

    file: str
    origin: str
    first_line: int = 1
    last_line: int = 1
    events: list[Event] = field(default_factory=list)
    drift: list[Drift] = field(default_factory=list)
    event_lines: set[int] = field(default_factory=set)
    drift_lines: set[int] = field(default_factory=set)
    omitted: dict[str, int] = field(default_factory=dict)
    ready: bool = False
    failed: bool = False
    node_ranks: set[int] = field(default_factory=set)
    progress: bool = False
    args: list[ServerArgs] = field(default_factory=list)
    openers: list[Event] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _last_omitted: dict[str, Event] = field(default_factory=dict)

    def add(self, item: Event | Drift) -> None:
        """Take one more item; of a pattern that says the same thing endlessly only the first ones and the last are kept."""
        self.last_line = max(self.last_line, item.pos.line)
        if isinstance(item, Drift):
            if len(self.drift) < KEPT_PER_PATTERN:
                self.drift.append(item)
            if not item.cut:  # the unfinished end of a line is no other wording
                self.drift_lines.add(item.pos.line)
            return
        self.event_lines.add(item.pos.line)
        self.ready = self.ready or item.pattern.ends == "ready"
        self.failed = self.failed or item.pattern.ends == "failed"
        if item.pattern.opens_launch:
            self.openers.append(item)
        args = printed_args(item)
        if args is not None:
            self.args.append(args)
            number = args.values.get("node_rank")
            if node_count(args) > 1 and isinstance(number, int):
                self.node_ranks.add(number)
        seen = self._counts[item.pattern.id] = self._counts.get(item.pattern.id, 0) + 1
        if seen > KEPT_PER_PATTERN:
            self._last_omitted[item.pattern.id] = item
            self.omitted[item.pattern.id] = seen - KEPT_PER_PATTERN - 1
        else:
            self.events.append(item)

    @property
    def node(self) -> int | None:
        """The node's rank; None where no arguments tell it, or several nodes speak in this stream."""
        return next(iter(self.node_ranks)) if len(self.node_ranks) == 1 else None

    def drain(self) -> None:
        """Forget what is held, for a reader that has taken it; what was learnt of the launch stays."""
        self.events.clear()
        self.drift.clear()
        self.event_lines.clear()
        self.drift_lines.clear()
        self._counts.clear()

    def close(self, last_line: int) -> None:
        """Settle the segment: no more items come."""
        self.last_line = max(self.last_line, last_line)
        self.events.extend(self._last_omitted.values())
        self.events.sort(key=lambda event: event.pos.line)


class _RankState(Struct):
    """What a rank has said so far in this launch."""

    time: str | None = None
    outer_time: str | None = None
    seen: set[str] = field(default_factory=set)
    free: float | None = None
    most_free: float | None = None

    def seconds_to(self, event: Event) -> float | None:
        """Return the seconds from what the rank said last to an event, by SGLang's clock, else by the container's."""
        inner = seconds_between(self.time, event.time)
        return inner if inner is not None else seconds_between(self.outer_time, event.outer_time)


class Splitter:
    """Cuts one stream into segments, one per launch."""

    def __init__(self, packs: Packs, file: str, origin: str = "", first_line: int = 1) -> None:
        self._packs = packs
        self._first_order = min((phase.order for phase in packs.phases.values() if phase.once), default=0)
        self.current = Segment(file, origin, first_line, first_line)
        self._ranks: dict[str, _RankState] = {}

    def feed(self, item: Event | Drift) -> Segment | None:
        """Take the next item; return the segment that it closes, if it opens a new launch."""
        closed = None
        if isinstance(item, Event) and self._ranks and self._starts_over(item):
            closed = self._cut(item)
        self.current.add(item)
        if isinstance(item, Event):
            self._note(item)
        return closed

    def _cut(self, opener: Event) -> Segment:
        """Close the current segment before ``opener`` and what already belongs to the new launch."""
        old = self.current
        moved = self._take_back(old.events, opener)
        first_line = min([opener.pos.line, *(event.pos.line for event in moved)])
        drifted = [item for item in old.drift if item.pos.line >= first_line]
        old.drift = old.drift[: len(old.drift) - len(drifted)]
        old.event_lines -= {event.pos.line for event in moved}
        old.drift_lines -= {item.pos.line for item in drifted}
        self.current = Segment(old.file, old.origin, first_line, first_line)
        self._ranks = {}
        for drift in drifted:
            self.current.add(drift)
        for event in moved:
            self.current.add(event)
            self._note(event)
        old.last_line = first_line - 1
        old.close(first_line - 1)
        return old

    def _take_back(self, events: list[Event], opener: Event) -> list[Event]:
        """Take from the end of ``events`` those that already belong to the launch that ``opener`` begins.

        Arguments warn before they are printed. Without arguments, a rank's lines just before the opener are taken as long as they run
        up to it in the order of a launch: what comes after it in that order was said by the launch before.
        """
        next_place = {opener.rank.tag: self._place(opener)}
        taken: list[Event] = []
        while len(events) > 1 and self._leads_to(events[-1], opener, next_place):
            event = events.pop()
            next_place[event.rank.tag] = self._place(event)
            taken.insert(0, event)
        return taken

    def _leads_to(self, event: Event, opener: Event, next_place: Mapping[str, tuple[int, bool]]) -> bool:
        """Tell whether an event stands before the opener in a launch, and before what its rank says next."""
        if event.pattern.ends or event.pattern.opens_launch:
            return False
        phase, place = self._phase(event), self._place(event)
        if phase.order < self._first_order:  # warnings of the arguments
            return True
        if opener.pattern.opens_launch:
            return phase.order <= self._phase(opener).order
        if not phase.once or event.pattern.edge == "point":
            return False
        rank_goes_on = next_place.get(event.rank.tag)
        return place < rank_goes_on if rank_goes_on else place <= self._place(opener)

    def _place(self, event: Event) -> tuple[int, bool]:
        """Return where in a launch an event stands: by its phase, a begin before an end."""
        return self._phase(event).order, event.pattern.edge == "end"

    def _phase(self, event: Event) -> Phase:
        return self._packs.phase_of(event.pattern)

    def _starts_over(self, event: Event) -> bool:
        if event.pattern.opens_launch:
            return self._opens_anew(event)
        if event.pattern.said_by == "bar":
            return False
        state = self._ranks.get(event.rank.tag)
        if state is None:
            return self._after_the_end(event)
        return self._runs_back(event, state) or self._after_the_end(event) or self._memory_is_back(event, state)

    def _runs_back(self, event: Event, state: _RankState) -> bool:
        """Tell whether a rank says again what it has said, at an earlier time; the time alone may be a clock that was set back."""
        seconds = state.seconds_to(event)
        return seconds is not None and seconds <= -CLOCK_SLACK_S and event.pattern.id in state.seen

    def _opens_anew(self, opener: Event) -> bool:
        if self._is_other_node(opener):
            return False
        if self.current.progress:
            return True
        same = [event for event in self.current.openers if event.pattern.id == opener.pattern.id]
        return bool(same) and same[-1].values != opener.values

    def _is_other_node(self, opener: Event) -> bool:
        """Tell whether another node of the launch at hand prints its arguments into the same file."""
        new = printed_args(opener)
        if new is None or not self.current.args or self.current.ready or self.current.failed:
            return False
        ranks = {args.values.get("node_rank") for args in self.current.args}
        nodes = {node_count(args) for args in self.current.args}
        return node_count(new) > 1 and nodes == {node_count(new)} and new.values.get("node_rank") not in ranks

    def _after_the_end(self, event: Event) -> bool:
        """Tell whether a phase that a launch goes through once begins again after the launch was ready or had failed."""
        if not self._phase(event).once or event.pattern.edge == "point":
            return False
        if self.current.ready:
            return True
        state = self._ranks.get(event.rank.tag)
        return (
            self.current.failed
            and event.pattern.edge == "begin"
            and state is not None
            and event.pattern.id in state.seen
        )

    def _memory_is_back(self, event: Event, state: _RankState) -> bool:
        """Tell whether a rank begins a phase again with most of the memory free again that it had taken."""
        free = event.quantity("avail_mem_bytes")
        if free is None or state.free is None or state.most_free is None or event.pattern.edge != "begin":
            return False
        if not self._phase(event).once or event.pattern.id not in state.seen:
            return False
        taken = state.most_free - state.free
        return taken > 0.05 * state.most_free and free.value > state.free + taken / 2

    def _note(self, event: Event) -> None:
        if self._phase(event).once or event.pattern.ends in ("failed", "ready"):
            self.current.progress = True
        if event.pattern.said_by == "bar":
            return
        state = self._ranks.setdefault(event.rank.tag, _RankState())
        state.time = event.time or state.time
        state.outer_time = event.outer_time or state.outer_time
        state.seen.add(event.pattern.id)
        free = event.quantity("avail_mem_bytes")
        if free is not None:
            state.free = free.value
            state.most_free = max(free.value, state.most_free or 0.0)


def printed_args(event: Event) -> ServerArgs | None:
    """Return the server_args that an event prints, None if it prints none."""
    return next((value for value in event.values.values() if isinstance(value, ServerArgs)), None)


def node_count(args: ServerArgs) -> int:
    """Return how many nodes the arguments speak of; 1 where they do not say."""
    return arg_count(args.values, "nnodes")


def split_streams(packs: Packs, file: str, items: Iterator[Event | Drift]) -> Iterator[tuple[Segment, bool]]:
    """Sort the items of a file into streams by origin and cut each into launches.

    Yields:
        (segment, closed): each segment when it changes (closed False) and once when it is closed. Lines without an origin belong to
        the stream that spoke last.
    """
    splitters: dict[str, Splitter] = {}
    last = ""
    for item in items:
        origin = item.origin or (last if last in splitters else "")
        last = origin
        if origin not in splitters:
            nameless = splitters.pop("", None) if origin and len(splitters) == 1 else None
            if nameless is not None:  # what came before the first prefix belongs to the same stream
                nameless.current.origin = origin
            splitters[origin] = nameless or Splitter(packs, file, origin)
        closed = splitters[origin].feed(item)
        if closed is not None:
            yield closed, True
        yield splitters[origin].current, False
    for splitter in splitters.values():
        yield splitter.current, True
