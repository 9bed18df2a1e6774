"""The failure of one of two launches as a cause, where no change of the KV budget tells why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from logscope.differ.evidence import Effect, Evidence
from logscope.differ.naming import acting, kind_of
from logscope.differ.phrases import change_text
from logscope.differ.types import Cause, Side

_OF_THE_BUDGET = ("not_enough_memory", "weights_leave_no_memory", "hybrid_state_no_memory", "memory_unbalanced")
# What acts on a failure, and whether more of it (True) or less fails, None where either may: a larger budget leaves less beside it.
_FAILED_BY: Mapping[str, Sequence[tuple[str, bool | None]]] = {
    "oom_graph_capture": (("graphs", True), ("fraction", True)),
    "oom_kv_pool": (("fraction", True), ("weights", False), ("draft", False)),
    "oom_backend_init": (("fraction", True),),
    "oom_runtime": (("fraction", True),),
    "oom_weight_load": (("weights", False),),
    "weight_mismatch": (("weights", None),),
    "weights_missing": (("weights", None),),
}


def failures(evidence: Evidence, effects: Sequence[Effect]) -> Iterator[Cause]:
    """Yield the failure of one launch as a cause where no effect explains it."""
    failed = failed_side(evidence) or _later_failure(evidence, effects)
    if failed is None or failed.diagnosis is None:
        return
    diagnosis, is_second = failed.diagnosis, failed is evidence.after
    if diagnosis.cause in _OF_THE_BUDGET and any(_is_against(effect, is_second) for effect in effects):
        return
    for term, is_more in _FAILED_BY.get(diagnosis.cause, ()):
        is_up = None if is_more is None else is_more == is_second
        if any(effect.term == term and is_up in (None, effect.is_up) for effect in effects):
            return
        arg = acting((term,), evidence, is_up=is_up)
        if arg is not None:
            what = change_text(arg.name, arg.before, arg.after, kind_of(arg), evidence)
            sentence = f"{what}: {failed.name} failed, {diagnosis.sentence}."
            yield Cause(kind_of(arg), arg.name, arg.before, arg.after, None, None, sentence)
            return
    states = ("ready", "failed") if is_second else ("failed", "ready")
    sentence = f"{failed.name} failed: {diagnosis.sentence}."
    yield Cause("failure", diagnosis.cause, states[0], states[1], None, None, sentence)


def _is_against(effect: Effect, is_second: bool) -> bool:
    """Return whether an effect takes from the budget of the launch that failed."""
    return effect.is_of_budget and effect.is_up != is_second


def failed_side(evidence: Evidence) -> Side | None:
    """Return the launch that failed, None where both did or neither."""
    failed = [side for side in (evidence.before, evidence.after) if side.diagnosis is not None]
    return failed[0] if len(failed) == 1 else None


def _later_failure(evidence: Evidence, effects: Sequence[Effect]) -> Side | None:
    """Return the one of two that failed for reasons of their own that came to its pools: the budget tells of the other failure only."""
    sides = evidence.before, evidence.after
    causes = {side.diagnosis.cause for side in sides if side.diagnosis is not None}
    later = [side for side in sides if side.sizing.tokens is not None]
    is_told = len(causes) == 2 and len(later) == 1 and any(effect.is_of_budget for effect in effects)
    return later[0] if is_told else None


def is_out_of_memory_by(effects: Sequence[Effect], evidence: Evidence) -> bool:
    """Return whether a larger fraction may be what makes the later launch run out of memory beside the pools."""
    failed = failed_side(evidence)
    if failed is not evidence.after or failed.diagnosis is None:
        return False
    is_acting = ("fraction", True) in _FAILED_BY.get(failed.diagnosis.cause, ())
    return is_acting and any(effect.term == "fraction" and effect.is_up for effect in effects)
