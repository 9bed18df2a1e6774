"""Compare launches: which step diverged, on which ranks, and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from logscope.causes import diagnose
from logscope.differ.arguments import acts_on, changed_args, changed_facts
from logscope.differ.attribution import attribute, token_steps
from logscope.differ.because import find_causes
from logscope.differ.evidence import Evidence
from logscope.differ.figures import due_ranks
from logscope.differ.naming import TITLES
from logscope.differ.ranks import in_order, ranks_cell, ranks_phrase
from logscope.differ.ruled_out import find_ruled_out
from logscope.differ.silent import absent_ranks
from logscope.differ.steps import SILENT, Tolerance, compare_steps, first_divergence, step_of
from logscope.differ.times import WHOLE, phase_times, time_title
from logscope.differ.types import (
    ArgChange,
    Attribution,
    Cause,
    Change,
    Difference,
    Divergence,
    PhaseTime,
    RuledOut,
    Side,
    Term,
)
from logscope.differ.verdict import verdict_lines
from logscope.model import Launch
from logscope.packs import Packs
from logscope.server_args import arg_count
from logscope.sizing import size_up
from logscope.words import name_of


def diff_launches(
    baselines: Sequence[Launch], after: Launch, packs: Packs, tolerance: Tolerance, names: tuple[str, str] | None = None
) -> Difference:
    """Compare a launch with one or several baselines; the last of them is the one that figures are taken from.

    Args:
        baselines: at least one; several give the spread that counts as the same.
        names: what the last baseline and the launch are called; their files where None.
    """
    called = names or (name_of(baselines[-1]), name_of(after))
    first, second = (_side(launch, name, packs) for launch, name in zip((baselines[-1], after), called, strict=True))
    args, varying = _beyond_baselines(changed_args(first.launch, second.launch, packs), baselines[:-1], after, packs)
    same_cell = not any("cell" in acts_on(arg.name, packs) for arg in args if not arg.noise)
    budget = attribute(first, second, same_cell=same_cell)
    same_tokens = token_steps(budget, first, second, tolerance.bytes)
    changes, notes = compare_steps(baselines, after, packs, tolerance, same_tokens)
    evidence = Evidence(first, second, packs, budget, args, changes, phase_times(first.launch, second.launch))
    causes = find_causes(evidence, [_against(each, evidence, same_cell) for each in baselines[:-1]], tolerance)
    ruled, absent = tuple(find_ruled_out(evidence, causes)), tuple(absent_ranks(evidence, is_explained=bool(causes)))
    return Difference(
        before=first,
        after=second,
        baselines=len(baselines),
        lines=(*absent, *verdict_lines(first, second, budget, causes, ruled, changes, is_whole=not absent)),
        causes=tuple(causes),
        ruled_out=ruled,
        args=(*args, *changed_facts(changes)),
        budget=budget,
        times=tuple(evidence.times),
        changes=tuple(changes),
        first=first_divergence(changes),
        notes=(
            *notes,
            *_baseline_notes(called[0], len(baselines), varying),
            *_release_notes(first.launch, second.launch),
            *_node_notes((first, second)),
        ),
        absent=absent,
    )


def _beyond_baselines(
    args: Sequence[ArgChange], others: Sequence[Launch], after: Launch, packs: Packs
) -> tuple[list[ArgChange], list[str]]:
    """Return the arguments that differ from those of every baseline, and the names of those that one baseline has, too."""
    kept = list(args)
    for other in others:
        differing = {arg.name for arg in changed_args(other, after, packs)}
        kept = [arg for arg in kept if arg.name in differing or not _is_told(arg, other)]
    return kept, [arg.name for arg in args if arg not in kept and not arg.noise]


def _is_told(arg: ArgChange, launch: Launch) -> bool:
    return launch.command is not None if arg.origin == "environment" else bool(launch.args.values)


def _baseline_notes(name: str, count: int, varying: Sequence[str]) -> list[str]:
    """Say which of several baselines the figures are of, and which arguments are left out."""
    if count < 2:
        return []
    notes = [f"what stands under Before is that of {name}, the last of {count} baselines"]
    if varying:
        notes.append(f"{', '.join(varying)}: as in one of the baselines, which differ in that; left out")
    return notes


def _against(baseline: Launch, evidence: Evidence, same_cell: bool) -> Evidence:
    """Return the evidence with another baseline: the terms of the budget and the times."""
    side = _side(baseline, name_of(baseline), evidence.packs)
    budget = attribute(side, evidence.after, same_cell=same_cell)
    return replace(evidence, before=side, budget=budget, times=phase_times(baseline, evidence.after.launch))


def _node_notes(sides: Sequence[Side]) -> list[str]:
    """Say that a log is that of some nodes of a launch only: the rank with the least memory may be on another."""
    return [
        f"{side.name} holds {len(side.launch.ranks)} of {due_ranks(side.launch)} ranks: the one that sets the budget may be on another "
        "node; name the logs of a launch together, as node0.log,node1.log"
        for side in sides
        if arg_count(side.launch.args.values, "nnodes") > 1 and 0 < len(side.launch.ranks) < due_ranks(side.launch)
    ]


def _side(launch: Launch, name: str, packs: Packs) -> Side:
    sizing = size_up(launch)
    return Side(name, launch, sizing, diagnose(launch, packs, sizing))


def _release_notes(before: Launch, after: Launch) -> list[str]:
    if before.releases.overlaps(after.releases.since, after.releases.until):
        return []  # they may be of one release
    return [
        f"the wordings are of SGLang {before.releases} and {after.releases}: steps that only one of them prints are not compared"
    ]


__all__ = [
    "SILENT", "TITLES", "WHOLE", "ArgChange", "Attribution", "Cause", "Change", "Difference", "Divergence", "PhaseTime", "RuledOut", "Side",
    "Term", "Tolerance", "diff_launches", "in_order", "ranks_cell", "ranks_phrase", "step_of", "time_title",
]  # fmt: skip
