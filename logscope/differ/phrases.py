"""A cause in words: what was changed, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.types import CauseKind
from logscope.units import count_text, gib
from logscope.words import duration_text


def change_text(name: str, before: str | None, after: str | None, kind: CauseKind, evidence: Evidence) -> str:
    """Write what was changed: its name, both values, and where they were inferred from."""
    if before is None and after is None:
        return name
    values = f"{before if before is not None else 'not set'} -> {after if after is not None else 'not set'}"
    if kind != "inferred":
        return f"{name} {values}"
    sides = (evidence.before, evidence.after)
    unknown = [side.name for side in sides if side.sizing.fraction.in_force is None]
    return f"{name} {values} (inferred from the pool: no server_args in {' and '.join(unknown)})"


def effects_text(effects: Sequence[Effect], evidence: Evidence) -> str:
    """Write what came of it, in GiB, tokens and time: "takes 2.00 GiB .., and makes the launch 20 s slower"."""
    return ", and ".join(_effect_text(effect, evidence) for effect in effects)


def _effect_text(effect: Effect, evidence: Evidence) -> str:
    if effect.seconds is not None:
        return f"makes the launch {duration_text(abs(effect.seconds))} {'slower' if effect.seconds > 0 else 'faster'}"
    everyone = "every rank" if len(evidence.after.launch.ranks) > 1 else "the rank"
    if effect.bytes is None:
        return f"changes the capacity by {_signed(effect.tokens or 0)} tokens"
    amount = f"{gib(abs(effect.bytes))} GiB"
    if effect.term in BESIDE:
        whose = effect.where or everyone
        return f"takes {amount} {'more' if effect.bytes > 0 else 'less'} of {whose}'s memory beside the KV cache"
    verb = "takes" if effect.bytes < 0 else "gives"
    return f"{verb} {amount} {'from' if effect.bytes < 0 else 'to'} the KV budget of {everyone}{_budgets(effect, evidence)}"


def _budgets(effect: Effect, evidence: Evidence) -> str:
    """Write the budgets of both launches, and what the effect is worth in tokens where both have a pool."""
    budget = evidence.budget
    parts = []
    if budget.before is not None and budget.after is not None:
        parts.append(f"{gib(budget.before)} -> {gib(budget.after)} GiB")
    if effect.tokens is not None and budget.tokens_before and budget.tokens_after:
        parts.append(f"{_signed(effect.tokens)} tokens")
    return f" ({'; '.join(parts)})" if parts else ""


def _signed(amount: float) -> str:
    return f"{'+' if amount > 0 else '-'}{count_text(abs(round(amount)))}"
