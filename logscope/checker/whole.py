"""Rules over the launch as a whole: the budget adds up, the log is understood, nothing changed since the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from logscope.checker.amounts import holds, limit_of
from logscope.checker.bounds import UNFINISHED
from logscope.checker.silent import unseen_ranks
from logscope.checker.subject import Subject
from logscope.checker.types import Bound, Judgement, Rule
from logscope.checker.wording import number_text
from logscope.gaps import Gap
from logscope.model import Pos
from logscope.rank import Rank, parse_rank
from logscope.units import Quantity
from logscope.words import clip, rank_runs

if TYPE_CHECKING:
    from logscope.differ import Difference

MOST_CHANGES = 4


def judge_identity(subject: Subject) -> Judgement:
    """Judge whether the pool is what mem_fraction_static grants."""
    fraction = subject.explanation.sizing.fraction
    if fraction.verdict == "unknown" or fraction.implied is None:
        return Judgement(
            "inconclusive",
            "nothing",
            "the log does not tell the budget: weights, pool and mem_fraction_static are needed",
        )
    found = (
        f"the pool implies {fraction.implied.low:.4f}..{fraction.implied.high:.4f}, in force is {fraction.in_force:g}"
    )
    cap = subject.launch.args.values.get("max_total_tokens")
    if subject.explanation.sizing.bound_by == "max_total_tokens":
        found += f"; max_total_tokens={cap} caps the pool below what that grants"
    pools = [rank.pools[0].pos for rank in subject.explanation.sizing.ranks if rank.pools]
    places = tuple(pos for pos in (fraction.in_force_at, *pools[:1]) if pos is not None)
    return Judgement("pass" if fraction.verdict == "meets" else "fail", found, "", (), places)


def judge_coverage(rule: Rule, subject: Subject) -> Judgement:
    """Judge how much of the log is understood."""
    tally, expect = subject.launch.tally, rule.expect
    known = tally.events + tally.drift
    if not known:
        return Judgement("inconclusive", "nothing", "no line was recognised")
    share = tally.events / known
    places = tuple(drift.pos for drift in subject.launch.drift)
    found = [f"{tally.events} of {known} lines understood ({share:.1%})"]
    asked: list[tuple[Bound | None, float]] = [(expect.coverage, share)]
    if expect.unknown_lines is not None:
        unknown = subject.unknown
        if unknown is None:
            return Judgement(
                "inconclusive", found[0], "standard input cannot be read again for its other lines", (), places
            )
        asked.append((expect.unknown_lines, sum(gap.count for gap in unknown)))
        places = (*(gap.pos for gap in unknown), *places)
        found.append(_unknown_text(unknown))
    limits = [(bound, Quantity(number, 0), limit_of(bound)) for bound, number in asked if bound is not None]
    is_fine = all(holds(bound, number, limit) for bound, number, limit in limits if limit is not None)
    if is_fine and subject.launch.outcome.kind in UNFINISHED:
        return Judgement(
            "inconclusive", ", ".join(found), "the log ends before the launch is ready or failed", (), places
        )
    return Judgement("pass" if is_fine else "fail", ", ".join(found), "", (), places)


def _unknown_text(unknown: Sequence[Gap]) -> str:
    """Say how many unknown lines there are, in which files, and what the first of them says."""
    count = sum(gap.count for gap in unknown)
    text = f"{count} unknown line{'s' if count != 1 else ''} that look{'s' if count == 1 else ''} like memory"
    if not unknown:
        return text
    files = Counter[str]()
    for gap in unknown:
        files[gap.pos.file] += gap.count
    where = ", ".join(f"{file} {number}" for file, number in files.items())
    of_files = f" ({where})" if len(files) > 1 else ""
    return f'{text}{of_files}: {unknown[0].pos} "{clip(unknown[0].text, 70)}"'


def judge_unchanged(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether something is as in the baseline."""
    difference = subject.difference
    if difference is None:
        return Judgement(
            "inconclusive", "nothing", "the rule compares with a baseline, and there is none", uses_baseline=True
        )
    found: list[str] = []
    places: list[Pos] = []
    open_: list[str] = []
    for word in rule.expect.unchanged:
        part = _PARTS.get(word)
        changed, where, why = part(difference) if part else _steps(difference, word)
        found.extend(changed)
        places.extend(where)
        open_.extend([why] if why else [])
    lost = _lost(subject) if {*rule.expect.unchanged} - {"args", "outcome"} else []
    if lost:
        who = ", ".join(rank_runs(lost, lost))
        is_open = subject.launch.outcome.kind in UNFINISHED
        (open_ if is_open else found).append(f"{who}: no line in this log")
    shown = "; ".join(found[:MOST_CHANGES]) + (
        f"; and {len(found) - MOST_CHANGES} more" if len(found) > MOST_CHANGES else ""
    )
    if not found and open_:
        return Judgement("inconclusive", "nothing changed so far", "; ".join(open_), uses_baseline=True)
    return Judgement("fail" if found else "pass", shown or "nothing changed", "", (), tuple(places), uses_baseline=True)


def _lost(subject: Subject) -> list[Rank]:
    """Return the ranks that say nothing here: the arguments ask for them, or, where no line shows these, the baselines have them."""
    launch = subject.launch
    if launch.args.values:
        return unseen_ranks(launch)
    return sorted({rank for each in subject.baselines for rank in each.ranks} - {*launch.ranks})


# Of each part: what changed in words, where, and why that cannot be told (empty if it can)
_Part = tuple[list[str], list[Pos], str]


def _args(difference: Difference) -> _Part:
    sides = (difference.before.launch, difference.after.launch)
    if not all(side.args.values or side.command for side in sides):
        return [], [], "a log does not show its arguments"
    changed = [arg for arg in difference.args if not arg.noise and arg.origin != "log line"]
    return [f"{arg.name} {arg.before or 'not set'} -> {arg.after or 'not set'}" for arg in changed], [], ""


def _outcome(difference: Difference) -> _Part:
    before, after = difference.before.launch.outcome, difference.after.launch.outcome
    if before.kind == after.kind:
        return [], [], ""
    if after.kind in UNFINISHED:
        return [], [], "the log ends before the launch is ready or failed"
    return [f"outcome {before.kind} -> {after.kind}"], list(after.evidence[:1]), ""


def _capacity(difference: Difference) -> _Part:
    before, after = difference.budget.tokens_before, difference.budget.tokens_after
    if before is None:
        return [], [], "the baseline does not tell its token capacity"
    if after is None:
        is_open = difference.after.launch.outcome.kind in UNFINISHED
        why = "the log ends before the token capacity" if is_open else ""
        return ([] if is_open else [f"{number_text(before, 'tokens')} -> none"]), [], why
    is_same = abs(before - after) <= 1  # as in a comparison: the split of memory may round either way
    return ([] if is_same else [f"{number_text(before, 'tokens')} -> {number_text(after, 'tokens')}"]), [], ""


_PARTS: Mapping[str, Callable[[Difference], _Part]] = {"args": _args, "outcome": _outcome, "capacity": _capacity}


def _steps(difference: Difference, word: str) -> _Part:
    """Return the steps that differ, of all phases or one; ranks that differ alike are named together."""
    own = [change for change in difference.changes if word in ("steps", change.phase) and change.unit]
    parted = [change for change in own if change.is_worth_showing]
    is_open = difference.after.launch.outcome.kind in UNFINISHED
    told = [change for change in parted if change.verdict == "changed" or not is_open]
    if not told and (len(told) < len(parted) or not any(change.verdict == "same" for change in own)):
        return [], [], f"the log does not get through {word}" if parted else f"neither log has figures of {word}"
    groups: dict[str, list[Rank]] = {}
    for change in told:
        what = f"{change.event} {change.field.removesuffix('_bytes').removesuffix('_s')}"
        sides = " -> ".join(_side(value, change.unit) for value in (change.before, change.after))
        groups.setdefault(f"{what} {sides}", []).append(parse_rank(change.rank))
    texts = []
    for what, ranks in groups.items():
        who = ", ".join(rank_runs(sorted(ranks), ranks)) if ranks[0].tag else ""
        texts.append(f"{what} on {who}" if who else what)
    return texts, [change.after_at for change in told if change.after_at is not None], ""


def _side(value: float | str | None, unit: str) -> str:
    if value is None:
        return "not reached"
    return value if isinstance(value, str) else number_text(value, unit)
