"""Memory that goes missing between two lines, and a capacity that changes, where no line says why."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.differ.evidence import Effect, Evidence
from logscope.differ.figures import due_ranks, stated_avail
from logscope.differ.steps import Tolerance
from logscope.differ.types import Change, Side
from logscope.model import Event, Pos
from logscope.sizing import RankSizing
from logscope.units import count_text, gib
from logscope.words import inside_a_sentence

MISSING, CAPACITY = "missing", "capacity"
UNEXPLAINED = (MISSING, CAPACITY)
_HOSTS = ("cpu", "mps")  # their free memory is the host's, which other processes change at any time
_CAPACITY_STEPS = (("ready.capacity", "max_total_num_tokens"), ("kv_cache.allocated", "tokens"))
_BUDGET_NOISE = 1.0  # byte


def missing_effect(evidence: Evidence, tolerance: Tolerance) -> Iterator[Effect]:
    """Yield what the pools have more or less than free memory and fraction give, beyond print resolution."""
    term = evidence.budget.missing
    sides = (evidence.before, evidence.after)
    if term is None or any(str(side.launch.args.values.get("device", "cuda")) in _HOSTS for side in sides):
        return
    is_alike = abs(term.bytes) <= term.step + _BUDGET_NOISE
    if not is_alike and not tolerance.allows(term.bytes, evidence.budget.before or 0.0, "bytes"):
        yield Effect(MISSING, term.bytes, term.tokens)


def missing_text(effect: Effect, evidence: Evidence) -> str:
    """Say how much goes missing, in which launch, and between which lines; or that it is free, and a rank elsewhere may have less."""
    side, amount = _short(evidence)
    more = gib(abs(effect.bytes or 0.0))
    if amount < 0:
        return f"the pools of {side.name} take {more} GiB more than free memory and mem_fraction_static give; no line says why"
    if is_left_free(evidence):
        smaller = f"the pools of {side.name} are {more} GiB smaller than free memory and mem_fraction_static give"
        seen, due = len(side.launch.ranks), due_ranks(side.launch)
        if seen < due:
            return f"{smaller}, and leave that free: {due - seen} of the {due} ranks are not in this log, and one of them may have less"
        return f"{smaller}, and leave that free; no line says why"
    whose = "on each rank " if len(side.launch.ranks) > 1 else ""
    return f"{more} GiB go missing {whose}in {side.name}, {_between(side, evidence)}; no line says to what"


def _short(evidence: Evidence) -> tuple[Side, float]:
    """Return the launch whose pools are not what free memory and fraction give, and by how much they are smaller."""
    term = evidence.budget.missing
    assert term is not None, "the effect is told from it"
    amounts = (term.before or 0.0, term.after or 0.0)
    return max(zip((evidence.before, evidence.after), amounts, strict=True), key=lambda pair: abs(pair[1]))


def is_left_free(evidence: Evidence) -> bool:
    """Return whether what the pools have less is still free when they stand: nothing took it."""
    side, amount = _short(evidence)
    own = _own(side)
    return amount > 0 and own is not None and own.unexplained is not None and own.unexplained < amount / 2


def _own(side: Side) -> RankSizing | None:
    return side.sizing.of(side.sizing.limiting[0]) if side.sizing.limiting else None


def _between(side: Side, evidence: Evidence) -> str:
    stated = stated_avail(side)
    own = _own(side)
    pools = [pool.pos for pool in own.pools if pool.worker != "draft"] if own is not None else []
    ends = [_step_text(side, pos, evidence) for pos in (stated.pos if stated else None, pools[0] if pools else None)]
    return f"between {ends[0]} and {ends[1]}" if all(ends) else "before the pools"


def _step_text(side: Side, pos: Pos | None, evidence: Evidence) -> str:
    event: Event | None = next((event for event in side.launch.events if event.pos == pos), None)
    if event is None:
        return ""
    title = inside_a_sentence(evidence.packs.phases[event.pattern.phase].title)
    return f"{title} ({event.pattern.id}, line {event.pos.line})"


def capacity_effect(evidence: Evidence) -> Iterator[Effect]:
    """Yield a change of the capacity, for when nothing tells what made it."""
    row = next((row for name in _CAPACITY_STEPS for row in _changed(evidence, *name)), None)
    if row is None or row.delta is None:
        return
    budget = evidence.budget
    is_told = not budget.terms and budget.change is not None and abs(budget.change) > _BUDGET_NOISE
    yield Effect(CAPACITY, budget.change if is_told else None, row.delta)


def _changed(evidence: Evidence, event: str, field: str) -> Iterator[Change]:
    for change in evidence.changes:
        if (change.event, change.field, change.verdict) == (event, field, "changed") and change.worker != "draft":
            yield change


def capacity_text(effect: Effect, *, has_arg: bool) -> str:
    """Say by how much the capacity changes, and that the logs do not say why."""
    tokens = effect.tokens or 0.0
    pools = f", and the pools of a rank by {gib(abs(effect.bytes))} GiB" if effect.bytes else ""
    changed = f"the capacity {'rises' if tokens > 0 else 'falls'} by {count_text(abs(round(tokens)))} tokens{pools}"
    if has_arg:
        return f"{changed}; the logs do not show how much of it this makes"
    return f"{changed}; no line of these logs says why"
