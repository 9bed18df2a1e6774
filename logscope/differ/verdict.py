"""The verdict of a comparison, sentence by sentence: how both went, the cause, what is not the cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from logscope.amounts import flag_text, fraction_text
from logscope.differ.figures import is_refuted
from logscope.differ.ranks import in_order, ranks_phrase
from logscope.differ.steps import CAPACITY, SILENT, SPREAD, TOLERATED, step_of
from logscope.differ.types import Attribution, Cause, Change, RuledOut, Side
from logscope.units import count_text, gib
from logscope.words import clip

MOST_CAUSES = 3
_MANIFOLD = 10
_LEAST_SHARE = 0.0005  # less is 0.0 %


def verdict_lines(
    before: Side,
    after: Side,
    budget: Attribution,
    causes: Sequence[Cause],
    ruled_out: Sequence[RuledOut],
    changes: Sequence[Change],
    *,
    is_whole: bool = True,
) -> Iterator[str]:
    """Yield the lines of the verdict.

    Args:
        is_whole: all ranks speak in both logs.
    """
    changed = [change for change in changes if change.is_worth_showing]
    if not causes and not changed:
        yield f"No {'change' if is_whole else 'other change'} beyond {_floor(changes)}: {_both(before, after, budget)}."
        yield from _refuted(before, after)
        yield from (f"No effect: {_ruled_out_text(each)}." for each in ruled_out)
        return
    yield _outcomes(before, after, budget) + _budgets(budget, causes)
    yield from _refuted(before, after)
    yield from (_contradiction(side) for side in (before, after) if side.sizing.contradictions)
    for index, cause in enumerate(causes[:MOST_CAUSES]):
        lead = "Cause" if index == 0 and _has_consequence(before, after, changes) else "Also" if index else "Difference"
        yield f"{lead}: {cause.sentence}"
    if not causes and _fail_apart(before, after):
        yield "Each failed for a reason of its own; what the earlier failure did not reach is not compared."
    elif not causes and not any(change.verdict == "changed" for change in changed):
        verb = "printed" if all(change.reason.startswith(SILENT) for change in changed) else "reached"
        yield f"No difference as far as both logs go: {_lacking(changed, changes)} not {verb} by {_unreached(changed, before, after)}."
    elif not causes and not any(change.is_amount for change in changed):
        yield f"No difference in memory or time beyond {_floor(changes)}; {_settings(changed)}."
    elif not causes:
        yield f"No cause found: {_steps(changed, changes, 'differs', 'differ')}, see below."
    is_of_settings = not causes and not any(change.is_amount for change in changed)
    lead = "No effect on memory" if is_of_settings else "Not the cause"
    yield from (f"{lead}: {_ruled_out_text(each)}." for each in ruled_out)


def _unreached(changed: Sequence[Change], before: Side, after: Side) -> str:
    """Name the launch that did not reach steps."""
    silent = [
        side.name
        for side, lacks in ((before, "before"), (after, "after"))
        if any(c.reason.endswith(lacks) for c in changed)
    ]
    return silent[0] if len(silent) == 1 else "one of them"


def _lacking(changed: Sequence[Change], changes: Sequence[Change]) -> str:
    """Count the steps that no rank reached, and those that some did: "12 steps on all 8 ranks, and 2 steps on TP5 only, are"."""
    lacks: dict[tuple[str | None, str, str, str, str], list[Change]] = {}
    for change in changed:
        lacks.setdefault(step_of(change), []).append(change)
    counts = Counter(step_of(change) for change in changes)
    some = [c for step, own in lacks.items() if len(own) < counts[step] for c in own]
    whole = [c for step, own in lacks.items() if len(own) == counts[step] for c in own]
    parts = [_steps(each, changes, "", "").strip() for each in (whole, some) if each]
    return f"{', and '.join(parts)}{', are' if len(parts) > 1 else ' is' if len(lacks) == 1 else ' are'}"


def _settings(changed: Sequence[Change]) -> str:
    """Name what lines say of settings, each once; texts are listed with what else differed."""
    numbers = {f"{c.setting} {_plain(c.before)} -> {_plain(c.after)}": c for c in changed if c.delta is not None}
    if not numbers:
        return "what the lines say in words differs, see below"
    return f"the lines differ in {', '.join(list(numbers)[:MOST_CAUSES])}"


def _plain(value: float | str | None) -> str:
    return f"{value:,.6g}" if isinstance(value, float) and value != int(value) else count_text(float(value or 0))


def _fail_apart(before: Side, after: Side) -> bool:
    """Return whether both failed, and not for the same root cause."""
    both = before.diagnosis, after.diagnosis
    return both[0] is not None and both[1] is not None and both[0].cause != both[1].cause


def _steps(changed: Sequence[Change], changes: Sequence[Change], one: str, many: str) -> str:
    """Count steps, each once however many ranks say it, and say on which ranks: "2 steps on all 8 ranks differ"."""
    count = len({step_of(change) for change in changed})
    where = ranks_phrase((change.rank for change in changed), len(in_order(change.rank for change in changes)))
    return f"{count} step{'s' if count > 1 else ''}{f' on {where}' if where else ''} {many if count > 1 else one}"


def _budgets(budget: Attribution, causes: Sequence[Cause]) -> str:
    """Write the budgets of both launches, where several causes have a part in their difference."""
    if budget.before is None or budget.after is None or sum(cause.is_of_budget for cause in causes) < 2:
        return ""
    before, after = gib(budget.before), gib(budget.after)
    return "" if before == after else f" KV budget per rank: {before} -> {after} GiB."


def _ruled_out_text(each: RuledOut) -> str:
    amount = f"{gib(abs(each.bytes))} GiB per rank, " if each.bytes is not None else ""
    return f"{each.name}: {amount}{each.reason}"


def _has_consequence(before: Side, after: Side, changes: Sequence[Change]) -> bool:
    """Return whether anything came of the difference: another outcome, another end, another capacity."""
    is_other = any(change.verdict == "changed" and change.field in CAPACITY for change in changes)
    return _end(before) != _end(after) or is_other


def _end(side: Side) -> tuple[str, bool]:
    """Return how a launch went, and whether it died after it was ready."""
    ended = side.launch.ended
    return side.launch.outcome.kind, ended is not None and ended.kind == "failed"


def _refuted(*sides: Side) -> Iterator[str]:
    """Say that a fraction is not what ran, where the pools refute it."""
    for side in sides:
        fraction = side.sizing.fraction
        if is_refuted(side.sizing) and fraction.in_force is not None and fraction.implied is not None:
            bounds = f"at least {fraction.implied.low:.4f}" if fraction.is_floor else fraction_text(fraction.implied)
            yield f"In {side.name} mem_fraction_static {flag_text(fraction.in_force)} is not what ran: the pool implies {bounds}."


def _floor(changes: Sequence[Change]) -> str:
    """Say what all that differs is within: print resolution, or what the user or other baselines allow."""
    reasons = {change.reason for change in changes}
    if TOLERATED in reasons:
        return "the tolerance"
    return "the spread of the baselines" if any(each.startswith(SPREAD) for each in reasons) else "print resolution"


def _both(before: Side, after: Side, budget: Attribution) -> str:
    names = f"{before.name} and {after.name}"
    if before.launch.outcome.kind == after.launch.outcome.kind == "ready":
        first, second = budget.tokens_before, budget.tokens_after
        if not first or not second:
            return f"{names} are both ready"
        counts = count_text(first) if first == second else f"{count_text(first)} and {count_text(second)}"
        return f"{names} are both ready with {counts} tokens of KV cache{_share_text(first, second)}"
    return f"{names} are alike in what both show ({_state(before, None)}; {_state(after, None)})"


def _outcomes(before: Side, after: Side, budget: Attribution) -> str:
    first, second = budget.tokens_before, budget.tokens_after
    pools = [side.launch.args.values.get("dp_size") for side in (before, after)]
    share = _share_text(first, second) if pools[0] == pools[1] else _pools_text(pools)
    return f"{before.name} {_state(before, first)}; {after.name} {_state(after, second, share)}."


def _pools_text(pools: Sequence[object]) -> str:
    """Say that the capacities are those of one pool each, where the launches have other numbers of them: a ratio would mislead."""
    counts = " and ".join(str(count or 1) for count in pools)
    return f" (each of one pool; dp_size makes {counts} of them)"


def _share_text(first: float | None, second: float | None) -> str:
    is_other = first and second and abs(second / first - 1) >= _LEAST_SHARE
    return f" ({_share(first, second)})" if first and second and is_other else ""


def _share(first: float, second: float) -> str:
    """Write how much more or less it is: "+12.3%", and from tenfold on "62 times as many"."""
    return f"{second / first:,.0f} times as many" if second / first >= _MANIFOLD else f"{second / first - 1:+.1%}"


def _short(sentence: str) -> str:
    """Return what happened without its figures; where it begins with who says it, also what that is."""
    head, mark, rest = sentence.partition(": ")
    return f"{head}{mark}{rest}" if head.startswith("on ") else head


def _contradiction(side: Side) -> str:
    """Say that lines of a launch cannot all be true, and that no budget rests on them."""
    found = side.sizing.contradictions[0]
    lines = ", ".join(str(pos.line) for pos in found.places)
    which = f"line{'s' if len(found.places) > 1 else ''} {lines}"
    return f"{side.name} contradicts itself: {found.sentence} ({which}); its KV budget is not compared."


def _state(side: Side, tokens: float | None, share: str = "") -> str:
    launch = side.launch
    capacity = f" with {count_text(tokens)} tokens of KV cache{share}" if tokens else ""
    if launch.outcome.kind == "ready":
        died = ", and died later" if _end(side)[1] else ""
        return f"is ready{capacity}{died}"
    if side.diagnosis is not None:
        return f"failed{capacity}: {clip(_short(side.diagnosis.sentence), 160)}"
    if launch.outcome.kind == "cut" and not launch.has_start:
        return f"shows only a part of its launch{capacity.replace(' with', ',', 1)}"
    if launch.outcome.kind == "cut":
        return f"is cut before it was ready{capacity.replace(' with', ', with', 1)}"
    return f"is neither ready nor failed when its log ends{capacity.replace(' with', ', with', 1)}"
