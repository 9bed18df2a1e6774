"""Ranks that are missing or fall silent: what the rest of a comparison says is not said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.differ.align import rank_name
from logscope.differ.evidence import Evidence
from logscope.differ.figures import due_ranks
from logscope.differ.ranks import OVER_RANKS, in_order
from logscope.differ.steps import NOT_REACHED, SILENT, step_of
from logscope.differ.types import Change, Side
from logscope.packs import Packs
from logscope.server_args import arg_count
from logscope.words import inside_a_sentence, rank_runs

_MOST_NAMED = 3


def absent_ranks(evidence: Evidence, *, is_explained: bool) -> Iterator[str]:
    """Say which ranks are not in a log, and which print less than the others of their launch and than the other launch.

    Args:
        is_explained: a cause is named: that there are fewer ranks needs no word of its own then.
    """
    sides = before, after = evidence.before, evidence.after
    counts = [len(side.launch.ranks) for side in sides]
    due = [due_ranks(side.launch) for side in sides]
    if (
        not is_explained
        and due[0] != due[1]
        and min(counts) > 0
        and counts[0] != counts[1]
        and all(side.launch.args.values for side in sides)
    ):
        yield f"{before.name} has {_ranks(due[0])}, {after.name} has {_ranks(due[1])}."
    for side, other in (sides, sides[::-1]):
        yield from _missing(side, other)
    for side, is_after in ((before, False), (after, True)):
        yield from _silent(side, evidence.changes, evidence.packs, is_after=is_after)


def _ranks(count: int) -> str:
    return f"{count} rank{'s' if count > 1 else ''}"


def _missing(side: Side, other: Side) -> Iterator[str]:
    """Say which of the ranks that a launch has to have are not in its log; a log of one of several nodes has them elsewhere."""
    launch, due = side.launch, due_ranks(side.launch)
    seen = len(launch.ranks)
    if not 0 < seen < due or arg_count(launch.args.values, "nnodes") > 1:
        return
    own = {rank_name(rank) for rank in launch.ranks}
    lacks = [rank for rank in sorted(other.launch.ranks) if rank_name(rank) not in own]
    if not lacks:
        return
    named = f": {', '.join(rank_runs(lacks, other.launch.ranks))} print nothing" if len(lacks) == due - seen else ""
    yield f"{side.name} holds {seen} of its {due} ranks{named}."


def _silent(side: Side, changes: Sequence[Change], packs: Packs, *, is_after: bool) -> Iterator[str]:
    """Say at which step some ranks are silent that the others of the launch print, and that the other launch has on all of them."""
    rows: dict[object, list[Change]] = {}
    for change in changes:
        if change.rank and change.rank not in OVER_RANKS and change.unit in ("bytes", "tokens"):
            rows.setdefault(step_of(change), []).append(change)
    for own in rows.values():
        lacks = [change.rank for change in own if _lacks(change, is_after=is_after)]
        has = [change.rank for change in own if (change.after if is_after else change.before) is not None]
        if lacks and has:
            first = own[0]
            title = inside_a_sentence(packs.phases[first.phase].title)
            others = f"the other {len(has)} do" if len(has) > 1 else f"{has[0]} does"
            yield f"In {side.name} {_who(lacks, len(own))} not print {title} ({first.event}), as {others}."
            return


def _lacks(change: Change, *, is_after: bool) -> bool:
    """Return whether a launch should print a step on a rank, and does not."""
    value = change.after if is_after else change.before
    return value is None and change.reason.startswith((NOT_REACHED, SILENT))


def _who(ranks: Sequence[str], of: int) -> str:
    named = in_order(ranks)
    if len(named) == 1:
        return f"{named[0]} alone does"
    return f"{', '.join(named)} do" if len(named) <= _MOST_NAMED else f"{len(named)} of {of} ranks do"
