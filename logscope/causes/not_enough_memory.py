"""The budget of the KV cache is zero or less: mem_fraction_static is too small for the weights."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis, Direction
from logscope.causes._words import NONE_WORKS, bytes_text, floor_of, per_rank, raise_by, raise_fraction, uncapped
from logscope.units import GIB

ID = "not_enough_memory"
_LOST = (
    GIB  # what may be taken unseen between the last figure and the pools; more than that and the log contradicts itself
)
_CONTRADICTED = (
    "The figures contradict the error, so that no fraction follows from them. Something took that memory before the pools were sized, "
    "and no line says so: another process (see `nvidia-smi`), or pools that this log does not show."
)
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
    rest, fraction = case.sizing.rest, case.sizing.fraction.in_force
    sentence = "not enough memory for the KV cache"
    if rest is not None and rest.high <= 0:
        sentence += f": under mem_fraction_static {fraction:g} the budget is {per_rank(rest, case)}"
    elif rest is not None and rest.low > 0:
        sentence += f", although this log's figures leave {per_rank(rest, case)} under mem_fraction_static {fraction:g}"
        if rest.low > _LOST:
            return Diagnosis(ID, sentence, None, _CONTRADICTED, evidence=floor_of(case))
    return Diagnosis(ID, sentence, "raise", raise_fraction(case), evidence=floor_of(case))


def _pool(case: Case) -> Diagnosis:
    """There is a budget, but one kind of pool needs more than all of it."""
    name, needed_field, given_field, fewer = _POOLS[case.said.pattern.id]
    needed, given = case.said.quantity(needed_field), case.said.quantity(given_field)
    sentence, missing = f"not enough memory for {name}", 0.0
    if needed and given:
        sentence += f": it needs {bytes_text(needed)}, the budget is {bytes_text(given)}"
        missing = max(0.0, needed.high - given.low)
    more = raise_by(case, missing)
    direction: Direction | None = None if more.startswith(NONE_WORKS) else "raise"
    remedy = f"{fewer} Or {uncapped(more)}" if direction else f"{fewer} {more}"
    return Diagnosis(ID, sentence, direction, remedy, evidence=floor_of(case))
