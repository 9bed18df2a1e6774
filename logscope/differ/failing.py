"""The failure of one of two launches as a cause, where no change of the KV budget tells why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from logscope.differ.arguments import are_one_setting
from logscope.differ.direction import could_make
from logscope.differ.evidence import Effect, Evidence
from logscope.differ.naming import FRACTION, fitting, kind_of
from logscope.differ.phrases import change_text
from logscope.differ.types import ArgChange, Cause, Side

_OF_THE_BUDGET = ("not_enough_memory", "weights_leave_no_memory", "hybrid_state_no_memory", "memory_unbalanced")
_UNCLEAR = ("python_exception", "cause_not_in_log")
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
    if _is_for_want_of_budget(failed, evidence) and any(_is_against(effect, is_second) for effect in effects):
        return
    acts = [
        (t, None if is_more is None else is_more == is_second) for t, is_more in _FAILED_BY.get(diagnosis.cause, ())
    ]
    is_shown = any(effect.term == term and is_up in (None, effect.is_up) for effect in effects for term, is_up in acts)
    suspects = _suspects(acts, evidence)
    if is_shown and all(arg.name == FRACTION for arg in suspects):
        return
    changed = [change_text(arg.name, arg.before, arg.after, kind_of(arg), evidence) for arg in suspects]
    if suspects and not evidence.may_be_one_release:
        changed.append("the release")
    if len(changed) == 1:
        arg, sentence = suspects[0], f"{changed[0]}: {failed.name} failed, {diagnosis.sentence}."
        yield Cause(kind_of(arg), arg.name, arg.before, arg.after, None, None, sentence)
        return
    states = ("ready", "failed") if is_second else ("failed", "ready")
    doubt = f"; it may be due to any of {', '.join(changed)}" if changed else ""
    yield Cause("failure", diagnosis.cause, *states, None, None, f"{failed.name} failed: {diagnosis.sentence}{doubt}.")


def _suspects(acts: Sequence[tuple[str, bool | None]], evidence: Evidence) -> list[ArgChange]:
    """Return the arguments that may have made a failure, of several that set one thing the first.

    A term of the budget that both launches tell is an effect, or it did not change: no argument is suspected by it then.
    """
    found: list[ArgChange] = []
    for term, is_up in acts:
        if term != "fraction" and (term == "graphs" or not evidence.budget.terms):
            found.extend(fitting((term,), evidence, is_up=is_up))
        own = [arg for arg in evidence.args if term == "fraction" and arg.name == FRACTION]
        found.extend(arg for arg in own if could_make(arg, term, is_up=is_up))
    suspects: list[ArgChange] = []
    for arg in found:
        if not any(arg is each or are_one_setting(arg, each, evidence.packs) for each in suspects):
            suspects.append(arg)
    return suspects


def _is_for_want_of_budget(failed: Side, evidence: Evidence) -> bool:
    """Return whether a launch failed because its budget was too small: by its message, or, where that is cut, by the figures."""
    assert failed.diagnosis is not None, "it failed"
    own = evidence.budget.after if failed is evidence.after else evidence.budget.before
    is_negative = own is not None and own < 0 and failed.sizing.tokens is None
    return failed.diagnosis.cause in _OF_THE_BUDGET or (is_negative and failed.diagnosis.cause in _UNCLEAR)


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


def is_of_the_first(evidence: Evidence, effects: Sequence[Effect]) -> bool:
    """Return whether the failure that is told is that of the launch before: the one after has its own reasons, which come first."""
    return _later_failure(evidence, effects) is evidence.before


def is_out_of_memory_by(effects: Sequence[Effect], evidence: Evidence) -> bool:
    """Return whether a larger fraction may be what makes the later launch run out of memory beside the pools."""
    failure = evidence.after.diagnosis
    is_acting = failure is not None and ("fraction", True) in _FAILED_BY.get(failure.cause, ())
    return is_acting and any(effect.term == "fraction" and effect.is_up for effect in effects)
