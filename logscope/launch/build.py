"""Put the segments of all files together: nodes that belong to one launch are joined, all else is kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from logscope.clock import seconds_between
from logscope.launch.outcome import LogEnd, begins_at_the_start, judge
from logscope.launch.phases import pair_phases
from logscope.launch.releases import infer_releases
from logscope.launch.split import Segment, node_count, printed_args
from logscope.launch.workers import assign_workers
from logscope.model import DataParallel, Drift, Event, Launch, Node, Pos, Tally
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.server_args import Command, ServerArgs

MIXED = "lines of several launches are mixed"
_SET_BACK = 2.0  # seconds that a clock may be set back
NodeKey = tuple[tuple[str, str], ...]
# what differs between the nodes of one launch
_PER_NODE = ("node_rank", "host", "port", "random_seed", "nccl_port", "base_gpu_id", "log_level")


class NodeLog(Struct):
    """A closed segment and how its log ends: see ``LogEnd``."""

    segment: Segment
    ends_whole: bool = True
    silent_s: float | None = None
    alive_until: int = 0
    followed_by: Pos | None = None


def build_launches(logs: Sequence[NodeLog], packs: Packs, silence_s: float | None = None) -> list[Launch]:
    """Return the launches of all files, numbered from 1 in the order of their first lines.

    Segments without any event are left out: they hold no launch.
    """
    joiner, mixed = NodeJoiner(), _mixed(logs)
    groups: list[list[NodeLog]] = []
    for log in logs:
        if not log.segment.events:
            continue
        number = joiner.place(log.segment)
        if number > len(groups):
            groups.append([])
        groups[number - 1].append(log)
    launches = [_build(number, group, packs, silence_s) for number, group in enumerate(groups, 1)]
    streams = [(group[0].segment.file, group[0].segment.origin) for group in groups]
    return [
        replace(each, notes=(*each.notes, mixed[stream])) if stream in mixed else each
        for each, stream in zip(launches, streams, strict=True)
    ]


def _mixed(logs: Sequence[NodeLog]) -> dict[tuple[str, str], str]:
    """Return, by file and origin, that lines of several launches are mixed: the clock turns back to go on with an earlier one.

    Launches one after the other in any order do not do that: each begins with its own arguments.
    """
    found: dict[tuple[str, str], str] = {}
    streams: dict[tuple[str, str], list[Segment]] = {}
    for log in logs:
        if log.segment.events:
            streams.setdefault((log.segment.file, log.segment.origin), []).append(log.segment)
    for stream, segments in streams.items():
        for earlier, between, later in zip(segments, segments[1:], segments[2:], strict=False):
            has_start = any(event.pattern.opens_launch for event in later.events)
            goes_on, turns_back = _passed(earlier, later), _passed(between, later)
            if not has_start and goes_on is not None and turns_back is not None and turns_back < -_SET_BACK <= goes_on:
                found.setdefault(
                    stream, f"{MIXED} from line {later.first_line} on or before: the clock turns back there"
                )
    return found


def _passed(first: Segment, second: Segment) -> float | None:
    """Return the seconds from the last clock of a segment to the first one of another."""
    last = next((event.time for event in reversed(first.events) if event.time), None)
    return seconds_between(last, next((event.time for event in second.events if event.time), None))


class NodeJoiner:
    """Numbers launches; nodes of one launch get one number.

    Two segments are nodes of one launch when both print ``nnodes`` > 1, the same arguments but for what differs by node, and different
    ``node_rank``s.
    """

    def __init__(self) -> None:
        self._waiting: dict[NodeKey, list[tuple[int, set[object]]]] = {}
        self._count = 0
        self.placed = 0

    def place(self, segment: Segment) -> int:
        """Return the number of the launch that a segment belongs to."""
        self.placed += 1
        args = segment_args(segment.events)
        key = _node_key(args) if args is not None else None
        if args is None or key is None:
            return self._new()
        rank = args.values.get("node_rank")
        known = self._waiting.setdefault(key, [])
        for number, ranks in known:
            if rank not in ranks:
                ranks.add(rank)
                return number
        number = self._new()
        known.append((number, {rank}))
        return number

    def _new(self) -> int:
        self._count += 1
        return self._count


def _node_key(args: ServerArgs) -> NodeKey | None:
    """Return what the nodes of one launch have in common, None for a launch on one node."""
    if node_count(args) < 2:
        return None
    return tuple(sorted((name, repr(value)) for name, value in args.values.items() if name not in _PER_NODE))


def are_nodes(first: ServerArgs, second: ServerArgs) -> bool:
    """Return whether two sets of arguments are those of two nodes of one launch; see ``NodeJoiner``."""
    key = _node_key(first)
    return (
        key is not None and key == _node_key(second) and first.values.get("node_rank") != second.values.get("node_rank")
    )


def segment_args(events: Iterable[Event]) -> ServerArgs | None:
    """Return the first server_args that are printed, None if none are."""
    return next((args for event in events if (args := printed_args(event)) is not None), None)


def _command(events: Iterable[Event]) -> Command | None:
    commands = (value for event in events for value in event.values.values() if isinstance(value, Command))
    return next(commands, None)


def on_one_clock(events: Sequence[Event]) -> list[Event]:
    """Return events with ``clock`` set, all by one clock: SGLang's own where it is printed, else what a container put in front.

    The two may differ by a zone: a span from one to the other would mean nothing.
    """
    has_own = any(event.time for event in events)
    return [replace(event, clock=event.time if has_own else event.outer_time) for event in events]


def _on_node(event: Event, number: int | None) -> Event:
    return event if number is None else replace(event, rank=replace(event.rank, node=number))


def _build(number: int, logs: Sequence[NodeLog], packs: Packs, silence_s: float | None) -> Launch:
    events: list[Event] = []
    drift: list[Drift] = []
    nodes: list[Node] = []
    for log in logs:
        segment, node = log.segment, log.segment.node
        nodes.append(Node(segment.file, segment.origin, node, segment.first_line, segment.last_line))
        events.extend(_on_node(event, node) for event in on_one_clock(segment.events))
        drift.extend(segment.drift)
    workers = assign_workers(events, packs)
    ranks, args = _ranks(events), segment_args(events)
    last = logs[-1]
    end = LogEnd(
        whole=all(log.ends_whole for log in logs) and not any(item.cut for item in drift),
        silent_s=min((log.silent_s for log in logs if log.silent_s is not None), default=None),
        last=Pos(last.segment.file, last.segment.last_line),
        alive_until=max(log.alive_until for log in logs) if len(logs) == 1 else 0,
    )
    outcome, ended = judge(events, packs, end, silence_s)
    return Launch(
        number=number,
        nodes=tuple(nodes),
        events=tuple(events),
        workers=tuple(workers),
        spans=pair_phases(events, workers, packs),
        drift=tuple(item for item in drift if not item.cut),
        ranks=ranks,
        args=args or ServerArgs(),
        command=_command(events),
        tally=_tally(logs),
        releases=infer_releases(events),
        outcome=outcome,
        ended=ended,
        has_start=begins_at_the_start(events, packs),
        followed_by=last.followed_by if len(logs) == 1 else None,
        data_parallel=_data_parallel(ranks, args),
        notes=tuple(_notes(logs)),
        omitted={name: count for log in logs for name, count in log.segment.omitted.items()},
    )


def _ranks(events: Iterable[Event]) -> tuple[Rank, ...]:
    """Return the ranks that speak; the one without a tag only if none has a tag: else its rank is unknown, not another one."""
    spoken = {event.rank for event in events if event.rank.tag or event.pattern.is_of_a_rank}
    tagged = {rank for rank in spoken if rank.tag}
    return tuple(sorted(tagged or spoken))


def _data_parallel(ranks: Sequence[Rank], args: ServerArgs | None) -> DataParallel | None:
    """Tell replicas (TP starts at 0 in each) from DP attention (TP numbers run through all groups)."""
    replicas = {rank.dp for rank in ranks if rank.dp is not None}
    if len(replicas) < 2:
        return None
    stated = args.values.get("enable_dp_attention") if args is not None else None
    if isinstance(stated, bool):
        return "attention" if stated else "replicas"
    tensor = [(rank.node, rank.pp, rank.tp) for rank in ranks if rank.dp is not None]
    return "attention" if len(set(tensor)) == len(tensor) and all(tp is not None for *_, tp in tensor) else "replicas"


def _tally(logs: Iterable[NodeLog]) -> Tally:
    lines = events = drift = 0
    for log in logs:
        segment = log.segment
        lines += segment.last_line - segment.first_line + 1
        events += len(segment.event_lines)
        drift += len(segment.drift_lines - segment.event_lines)
    return Tally(lines, events, drift, lines - events - drift)


def _notes(logs: Sequence[NodeLog]) -> Iterable[str]:
    """Say what was joined, which nodes are missing, and how many events were left out."""
    first = segment_args(logs[0].segment.events)
    expected = node_count(first) if first is not None else 1
    if expected > 1:
        present = {number for log in logs for number in log.segment.node_ranks}
        files = ", ".join(f"node {_numbers(log.segment)} = {_name(log.segment)}" for log in logs)
        missing = [str(number) for number in range(expected) if number not in present]
        if missing:
            yield f"{expected} nodes, of which {files}; the log of node {', '.join(missing)} is not here"
        else:
            yield f"{expected} nodes joined, by their server_args: {files}"
    for log in logs:
        for name, count in log.segment.omitted.items():
            yield f"{count:,} more events {name} are counted, not kept"


def _numbers(segment: Segment) -> str:
    return "+".join(str(number) for number in sorted(segment.node_ranks)) or "?"


def _name(segment: Segment) -> str:
    return f"{segment.file} ({segment.origin})" if segment.origin else segment.file
