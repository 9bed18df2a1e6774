"""Ranks that say nothing: those of the log that lack an event, and those that the arguments ask for and no line shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from logscope.model import Event, Launch
from logscope.rank import Rank, parse_rank
from logscope.server_args import arg_count
from logscope.words import rank_runs


def silent_ranks(events: Sequence[Event], launch: Launch) -> str:
    """Name the ranks that did not say any of some events: those of the log, and those that the arguments ask for."""
    said = {event.rank for event in events}
    missing = [rank for rank in launch.ranks if rank not in said]
    missing.extend(unseen_ranks(launch))
    return ", ".join(rank_runs(sorted(missing), [*launch.ranks, *missing]))


def unseen_ranks(launch: Launch) -> list[Rank]:
    """Return the ranks that the arguments ask for and that say nothing in the log, where it shows all nodes."""
    args = launch.args.values
    sizes = [arg_count(args, name) for name in ("dp_size", "pp_size", "tp_size", "nnodes")]
    if args.get("enable_dp_attention") is True:
        sizes[0] = 1  # the groups of one model's attention are the ranks of tensor parallelism
    if sizes[3] > len(launch.nodes) or sizes[0] * sizes[1] * sizes[2] <= len(launch.ranks):
        return []
    seen = {((rank.dp or 0) if sizes[0] > 1 else 0, rank.pp or 0, rank.tp or 0) for rank in launch.ranks}
    unseen = [place for place in product(*(range(size) for size in sizes[:3])) if place not in seen]
    shown = zip(("DP", "PP", "TP"), sizes, strict=False)
    kinds = [name if size > 1 else "" for name, size in shown]
    return [
        parse_rank(" ".join(f"{kind}{number}" for kind, number in zip(kinds, place, strict=True) if kind))
        for place in unseen
    ]
