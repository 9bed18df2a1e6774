"""A cause in words: what was changed, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.figures import middle
from logscope.differ.naming import FRACTION, TITLES
from logscope.differ.times import WHOLE
from logscope.differ.types import CauseKind, Side
from logscope.differ.unexplained import CAPACITY, MISSING, capacity_text, missing_text
from logscope.units import count_text, gib
from logscope.words import duration_text

_MOST_NUMBERS = 4  # of a list, in a sentence
_LEAST_OF_LAUNCH = 0.5  # of what a phase took longer: what else varies may hide the rest


def change_text(name: str, before: str | None, after: str | None, kind: CauseKind, evidence: Evidence) -> str:
    """Write what was changed: its name, both values, and where they were inferred from or nothing tells who set them."""
    if before is None and after is None:
        return name
    is_long = max(len(_sizes(value)) for value in (before, after)) > _MOST_NUMBERS
    values = " -> ".join(_value_text(value, is_long=is_long) for value in (before, after))
    if kind == "release":
        return f"{name} ({before}) -> ({after})"
    if kind == "inferred":
        unknown = [side.name for side in _sides(evidence) if side.sizing.fraction.in_force is None]
        why = f"no server_args in {' and '.join(unknown)}" if unknown else "what server_args say is not what ran"
        return f"{name} {values} (inferred from the pool: {why})"
    if name == FRACTION and not _is_typed_or_derived(evidence):
        return f"{name} {values} (in force; typed or chosen by SGLang is not in the log)"
    return f"{name} {values}"


def _sizes(value: str | None) -> list[int]:
    """Return the numbers of a list of numbers; none of another value."""
    return [int(size) for size in re.findall(r"\d+", str(value))] if re.fullmatch(r"\[[\d, ]+\]", str(value)) else []


def _value_text(value: str | None, *, is_long: bool) -> str:
    """Write a value; of a list of numbers, where one of both is long, how many there are, and the largest."""
    if value in (None, "None"):
        return "not set"
    sizes = _sizes(value)
    return f"{len(sizes)} sizes up to {max(sizes)}" if is_long and sizes else str(value)


def _sides(evidence: Evidence) -> tuple[Side, Side]:
    return evidence.before, evidence.after


def _is_typed_or_derived(evidence: Evidence) -> bool:
    own = next((arg for arg in evidence.args if arg.name == FRACTION), None)
    return own is not None and own.origin is not None


def effects_text(effects: Sequence[Effect], evidence: Evidence, *, is_alone: bool, has_arg: bool) -> str:
    """Write what came of it, in GiB, tokens and time: "takes 2.00 GiB .., and makes the launch 20 s slower".

    Args:
        is_alone: nothing else changed the budget, so that its change is said here.
        has_arg: an argument is named as what made it.
    """
    return ", and ".join(_effect_text(effect, evidence, is_alone, has_arg) for effect in effects)


def _effect_text(effect: Effect, evidence: Evidence, is_alone: bool, has_arg: bool) -> str:
    if effect.seconds is not None:
        is_told_apart = has_arg and not is_of_launch(effect.seconds, evidence)
        title = f"{TITLES.get(effect.term, effect.term)} is " if is_told_apart else ""
        return f"{title}{_time_text(effect.seconds, evidence)}"
    if effect.term == MISSING:
        return missing_text(effect, evidence) + _figures(effect, evidence, is_alone)
    if effect.term == CAPACITY:
        return capacity_text(effect, has_arg=has_arg)
    everyone = "every rank" if max(len(side.launch.ranks) for side in _sides(evidence)) > 1 else "the rank"
    if effect.bytes is None:
        verb = "raises" if (effect.tokens or 0) > 0 else "lowers"
        return f"{verb} the capacity by {count_text(abs(round(effect.tokens or 0)))} tokens{_cells(effect, evidence)}"
    amount = f"{gib(abs(effect.bytes))} GiB"
    if effect.term == "pool":
        return f"takes {amount} {'more' if effect.bytes > 0 else 'less'} of {effect.where or everyone} for the capped KV cache"
    if effect.term in BESIDE:
        whose = effect.where or everyone
        return f"takes {amount} {'more' if effect.bytes > 0 else 'less'} of {whose}'s memory beside the KV cache"
    verb = "takes" if effect.bytes < 0 else "gives"
    text = f"{verb} {amount} {'from' if effect.bytes < 0 else 'to'} the KV budget of {everyone}"
    capped = [side for side in _sides(evidence) if side.sizing.bound_by == "max_total_tokens"]
    if capped and effect.tokens == 0:
        where = f"in {capped[0].name} " if len(capped) == 1 else ""
        return f"{text}; {where}the cap of tokens, not this, sets the capacity"
    return text + _figures(effect, evidence, is_alone)


def is_of_launch(seconds: float, evidence: Evidence) -> bool:
    """Return whether the launch took longer by what a phase did: not where other work went on beside it, or one is not ready."""
    whole = next((each for each in evidence.times if each.phase == WHOLE), None)
    if not evidence.both_ready or whole is None or whole.before is None or whole.after is None:
        return evidence.both_ready
    change = whole.after - whole.before
    return change * seconds > 0 and abs(change) >= _LEAST_OF_LAUNCH * abs(seconds)


def _time_text(seconds: float, evidence: Evidence) -> str:
    if not is_of_launch(seconds, evidence):
        whole = next((each for each in evidence.times if each.phase == WHOLE), None)
        known = whole is not None and whole.before is not None and whole.after is not None
        shown = (
            [duration_text(each or 0) for each in (whole.before, whole.after)] if whole is not None and known else []
        )
        other = f"; the whole launch took {shown[0]} and {shown[1]}" if shown and evidence.both_ready else ""
        return f"{duration_text(abs(seconds))} {'longer' if seconds > 0 else 'shorter'}{other}"
    return f"makes the launch {duration_text(abs(seconds))} {'slower' if seconds > 0 else 'faster'}"


def _cells(effect: Effect, evidence: Evidence) -> str:
    """Write the bytes per token of both launches, or that the draft is charged in them, where that changed the capacity."""
    if effect.term == "draft_cell":
        return " (the draft's layers, charged in bytes per token)"
    cells = [side.sizing.cell for side in _sides(evidence)]
    if effect.term != "cell" or cells[0] is None or cells[1] is None:
        return ""
    shown = [count_text(round(middle(cell.size))) for cell in cells if cell is not None]
    return f" (about {shown[0]} -> {shown[1]} bytes per token)"


def _figures(effect: Effect, evidence: Evidence, is_alone: bool) -> str:
    """Write the budgets of both launches where nothing else changed them, and what the effect is worth in tokens."""
    parts = [_budget_text(evidence)] if is_alone else []
    if effect.tokens is not None and evidence.budget.tokens_before and evidence.budget.tokens_after:
        parts.append(f"{_signed(effect.tokens)} tokens")
    return f" ({'; '.join(part for part in parts if part)})" if any(parts) else ""


def _budget_text(evidence: Evidence) -> str:
    budget = evidence.budget
    if budget.before is None or budget.after is None:
        return ""
    before, after = gib(budget.before), gib(budget.after)
    return f"{before} -> {after} GiB" if before != after else ""


def _signed(amount: float) -> str:
    return f"{'+' if amount > 0 else '-'}{count_text(abs(round(amount)))}"
