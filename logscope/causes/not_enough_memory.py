"""The budget of the KV cache is zero or less: mem_fraction_static is too small for the weights."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import bytes_text, floor_of, per_rank, raise_by, raise_fraction, uncapped

ID = "not_enough_memory"
_POOLS = {
    "failure.swa_cap": ("the sliding window pool", "swa_bytes", "available_bytes", "Lower --max-running-requests, which sizes it."),
    "failure.unified_pool_budget": (
        "one longest request in the unified pool", "floor_bytes", "budget_bytes", "Lower --context-length.",
    ),
}  # fmt: skip


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis where SGLang itself says that nothing is left for the KV cache."""
    if not case.tells(ID):
        return None
    if case.said.pattern.id in _POOLS:
        return _pool(case)
    sizing = case.sizing
    sentence = "not enough memory for the KV cache"
    if sizing.rest is not None and sizing.rest.high <= 0:
        fraction = sizing.fraction.in_force
        sentence += f": under mem_fraction_static {fraction:g} the budget is {per_rank(sizing.rest, case)}"
    return Diagnosis(ID, sentence, "raise", raise_fraction(case), evidence=floor_of(case))


def _pool(case: Case) -> Diagnosis:
    """There is a budget, but one kind of pool needs more than all of it."""
    name, needed_field, given_field, fewer = _POOLS[case.said.pattern.id]
    needed, given = case.said.quantity(needed_field), case.said.quantity(given_field)
    sentence, missing = f"not enough memory for {name}", 0.0
    if needed and given:
        sentence += f": it needs {bytes_text(needed)}, the budget is {bytes_text(given)}"
        missing = max(0.0, needed.high - given.low)
    return Diagnosis(ID, sentence, "raise", f"{fewer} Or {uncapped(raise_by(case, missing))}", evidence=floor_of(case))
