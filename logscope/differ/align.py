"""Two launches side by side: their steps as pandas frames, joined by worker, phase, event, role, field and rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from logscope.differ.ranks import OVER_RANKS
from logscope.model import Event, Launch, Worker
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.server_args import arg_count
from logscope.timeline import GAP, PhaseRow, phase_rows
from logscope.units import Quantity
from logscope.words import rank_runs

if TYPE_CHECKING:
    import pandas

KEY = ("worker", "phase", "event", "role", "field", "rank")
_SIZES = ("tp_size", "pp_size", "dp_size")
_ROLES = ("kind", "label", "graph", "what", "step")  # fields that tell apart several lines of one event
_SAME_ROLES = {
    "verify": "decode"
}  # with a draft the target's one decode graph verifies; releases to 0.5.13 do not say so
_LEFT_OUT = (
    "server_args.printed", "server_args.command", "ready.kill_process_tree",
    "ready.server_process", "ready.listening", "ready.follower",
)  # fmt: skip
_OF_A_RUN = {("ready.timings", "cuda_graph"), ("warmup.autotune_begin", "cache")}  # texts with times and paths in them
_UNITS = {"_bytes": "bytes", "bytes": "bytes", "_s": "s", "tokens": "tokens"}


def align(before: Launch, after: Launch, packs: Packs) -> tuple[pandas.DataFrame, list[str]]:
    """Return one row per value of a step of either launch, and what could not be compared.

    Returns:
        Columns of ``KEY``, ``unit``, and for each side (suffix ``_before``, ``_after``) number, resolution, text, file, line, order.
    """
    import pandas

    frames = [step_frame(launch, packs) for launch in (before, after)]
    notes: list[str] = []
    if len(before.ranks) == len(after.ranks) == 1 and not _same_ranks(before, after):
        frames = [_named_alike(frame, launch) for frame, launch in zip(frames, (before, after), strict=True)]
    elif are_of_one_topology(before, after):
        common = {rank_name(rank) for rank in before.ranks} & {rank_name(rank) for rank in after.ranks} | {""}
        frames = [frame[frame["rank"].isin(common)] for frame in frames]
        notes.append(f"{' and '.join(_only_in(before, after))}: the ranks that both logs hold are compared")
    elif not _same_ranks(before, after):
        who = " and ".join(_ranks_of(launch) for launch in (before, after))
        notes.append(f"the ranks differ ({who}): of each step the least and the most over the ranks are compared")
        frames = [_over_ranks(frame) for frame in frames]
    joined = pandas.merge(
        frames[0], frames[1], on=[*KEY, "unit"], how="outer", suffixes=("_before", "_after"), sort=False
    )
    return joined, notes


def step_frame(launch: Launch, packs: Packs) -> pandas.DataFrame:
    """Return the values of a launch's steps: columns of ``KEY``, unit, number, resolution, text, file, line, order."""
    import pandas

    rows = [*_event_rows(launch, packs), *_phase_steps(launch)]
    columns = [*KEY, "unit", "number", "resolution", "text", "file", "line", "order"]
    frame = pandas.DataFrame(rows, columns=columns)
    return frame.astype({"number": "Float64", "resolution": "Float64", "line": "Int64", "order": "Int64"})


def _named_alike(frame: pandas.DataFrame, launch: Launch) -> pandas.DataFrame:
    """Return the frame with the one rank of a launch untagged: some releases tag it, and others do not."""
    own = rank_name(launch.ranks[0])
    return frame.assign(rank=frame["rank"].where(frame["rank"] != own, ""))


def are_of_one_topology(before: Launch, after: Launch) -> bool:
    """Return whether two launches have the same numbers of ranks by their arguments, and some but not all ranks in common."""
    sizes = [[arg_count(each.args.values, name) for name in _SIZES] for each in (before, after)]
    names = [{rank_name(rank) for rank in launch.ranks} for launch in (before, after)]
    is_told = bool(before.args.values and after.args.values)
    return is_told and sizes[0] == sizes[1] and names[0] != names[1] and bool(names[0] & names[1])


def _only_in(before: Launch, after: Launch) -> Iterator[str]:
    """Say which ranks one launch has and the other has not: "TP1..TP7 only in the log before"."""
    for own, other, where in ((before, after, "before"), (after, before, "after")):
        names = {rank_name(rank) for rank in other.ranks}
        only = [rank for rank in sorted(own.ranks) if rank_name(rank) not in names]
        if only:
            yield f"{', '.join(rank_runs(only, own.ranks))} only in the log {where}"


def _same_ranks(before: Launch, after: Launch) -> bool:
    tags = [{rank_name(rank) for rank in launch.ranks} for launch in (before, after)]
    return tags[0] == tags[1] or not tags[0] or not tags[1]


def _ranks_of(launch: Launch) -> str:
    return ", ".join(rank_runs(sorted(launch.ranks), launch.ranks))


def rank_name(rank: Rank) -> str:
    """Name a rank by its coordinates, so that releases with more words in their tags have the same names."""
    numbers = (("DP", rank.dp), ("PP", rank.pp), ("TP", rank.tp))
    named = " ".join(f"{word}{number}" for word, number in numbers if number is not None)
    node = f"node {rank.node} " if rank.node is not None and rank.tp is None else ""
    return named or f"{node}{rank.tag}"


def _event_rows(launch: Launch, packs: Packs) -> Iterator[tuple[object, ...]]:
    seen: dict[tuple[object, ...], int] = {}
    for order, (event, worker) in enumerate(zip(launch.events, launch.workers, strict=True)):
        if not _is_step(event, packs):
            continue
        role = _role(event)
        own = (rank_name(event.rank), worker, event.pattern.id, role)
        seen[own] = seen.get(own, 0) + 1
        if seen[own] > 1:
            role = f"{role} #{seen[own]}".strip()
        yield from _value_rows(event, worker, role, order)


def _is_step(event: Event, packs: Packs) -> bool:
    pattern = event.pattern
    return not (
        pattern.ends == "failed" or pattern.ends == "failed_unless_progress" or pattern.ends == "stopped"
        or pattern.said_by == "bar" or packs.phase_of(pattern).dense or pattern.id in _LEFT_OUT
    )  # fmt: skip


def _role(event: Event) -> str:
    return " ".join(_SAME_ROLES.get(text, text) for name in _ROLES if (text := event.string(name)))


def _value_rows(event: Event, worker: Worker | None, role: str, order: int) -> Iterator[tuple[object, ...]]:
    head = (worker or "", event.pattern.phase, event.pattern.id, role)
    rank = rank_name(event.rank)
    where = (event.pos.file, event.pos.line, order)
    said_anything = False
    for name, value in event.values.items():
        said_anything = True
        if (event.pattern.id, name) in _OF_A_RUN:
            continue
        if isinstance(value, Quantity):
            yield (*head, name, rank, _unit(name), value.value, value.resolution, None, *where)
        elif isinstance(value, str):
            yield (*head, name, rank, "", None, None, value, *where)
        elif isinstance(value, tuple):
            yield (*head, name, rank, "", None, None, ", ".join(map(str, value)), *where)
    if not said_anything:
        yield (*head, "said", rank, "", None, None, "yes", *where)


def _unit(name: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")


def _phase_steps(launch: Launch) -> Iterator[tuple[object, ...]]:
    """Yield what phases took where no line prints it: time by the clock, memory by before - after."""
    places = {event.pos: order for order, event in enumerate(launch.events)}
    for row in phase_rows(launch):
        last = row.end or row.begin
        if last is None or row.phase == GAP:
            continue
        head = (row.worker or "", row.phase, f"{row.phase}.phase", row.kind or "")
        where = (last.pos.file, last.pos.line, places.get(last.pos, 0))
        rank = rank_name(row.rank)
        for name, unit, amount in _derived(row):
            yield (*head, name, rank, unit, amount.value, amount.resolution, None, *where)


def _derived(row: PhaseRow) -> Iterator[tuple[str, str, Quantity]]:
    if row.duration_from == "clock" and row.duration is not None:
        yield "duration_s", "s", row.duration
    if row.used_from == "derived" and row.used is not None:
        yield "used_bytes", "bytes", row.used


def _over_ranks(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return the least and the most over the ranks of each number; texts as they stand on the first rank."""
    import pandas

    keys = [name for name in KEY if name != "rank"]
    numbers = frame[frame["number"].notna()].sort_values("number", kind="stable")
    parts = [
        numbers.drop_duplicates(keys, keep="first").assign(rank=OVER_RANKS[0]),
        numbers.drop_duplicates(keys, keep="last").assign(rank=OVER_RANKS[1]),
    ]
    texts = frame[frame["number"].isna()].drop_duplicates(keys).assign(rank="")
    return pandas.concat([*parts, texts]).sort_values("order", kind="stable", ignore_index=True)


def spread_of(launches: Sequence[Launch], packs: Packs) -> pandas.DataFrame:
    """Return for each numeric step the least and the most that several baselines print: columns of ``KEY``, low, high."""
    import pandas

    rows = pandas.concat([step_frame(launch, packs) for launch in launches])
    numbers = rows[rows["number"].notna()]
    return numbers.groupby(list(KEY), sort=False)["number"].agg(low="min", high="max").reset_index()
