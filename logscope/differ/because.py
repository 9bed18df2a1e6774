"""Why two launches differ: what was changed, named by the argument that acts on what came of it; what explains most is first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from logscope.amounts import flag_text, fraction_text
from logscope.differ.arguments import acts_on
from logscope.differ.effects import find_effects
from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.phrases import change_text, effects_text
from logscope.differ.steps import Tolerance
from logscope.differ.types import ArgChange, Cause, CauseKind, Side

TITLES = {
    "free_at_init": "free memory before the weights",
    "weights": "memory taken by the weights",
    "draft": "the draft model's weights, counted in the budget",
    "draft_cell": "the draft's layers, counted in bytes per token",
    "fraction": "mem_fraction_static",
    "cell": "bytes per token",
    "page": "whole pages",
    "limits": "a cap of tokens",
    "graphs": "memory of graphs",
    "distributed_init": "memory of distributed init",
    "draft_memory": "memory of the draft model",
    "load_time": "time to load the weights",
    "graph_time": "time to capture graphs",
}
_FRACTION = "mem_fraction_static"
_OWN_ARGS = {"draft_cell": ("draft", "cell"), "draft_memory": ("draft",)}  # arguments of these terms act on it
_OF_THE_BUDGET = ("not_enough_memory", "weights_leave_no_memory", "hybrid_state_no_memory", "memory_unbalanced")
_FAILED_BY = {
    "oom_graph_capture": ("graphs", "fraction"),
    "oom_kv_pool": ("fraction", "weights", "draft"),
    "oom_backend_init": ("fraction",),
    "oom_runtime": ("fraction",),
    "oom_weight_load": ("weights",),
    "weight_mismatch": ("weights",),
    "weights_missing": ("weights",),
}


class _Named(NamedTuple):
    """What an effect is put down to."""

    kind: CauseKind
    name: str
    before: str | None
    after: str | None


def find_causes(evidence: Evidence, others: Sequence[Evidence], tolerance: Tolerance) -> list[Cause]:
    """Return the causes: of the budget, of a failure, of memory beside the budget, of time; of each the one that explains most first.

    Args:
        others: the launch compared with further baselines.
    """
    groups: dict[tuple[str, str], tuple[_Named, list[Effect]]] = {}
    for effect in find_effects(evidence, others, tolerance):
        named = _name(effect, evidence)
        groups.setdefault((named.kind, named.name), (named, []))[1].append(effect)
    ranked = sorted(groups.values(), key=lambda group: _rank(group[1]))
    causes = [_cause(named, effects, evidence) for named, effects in ranked]
    failures = list(_failure(evidence, has_budget_effect=bool(ranked) and _rank(ranked[0][1])[0] == 0))
    blamed = {failure.name for failure in failures}
    return [*failures, *(cause for cause in causes if cause.name not in blamed)]


def _rank(effects: Sequence[Effect]) -> tuple[int, float]:
    """Return what sorts causes: by what they act on, then by how much."""
    main = _main(effects)
    place = 2 if main[0].seconds is not None else 1 if main[0].term in BESIDE else 0
    return place, -_sum_of(main).weight


def _main(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects on the budget; where there are none, those on memory beside it; else those on time."""
    budget = [effect for effect in effects if effect.seconds is None and effect.term not in BESIDE]
    return budget or [effect for effect in effects if effect.seconds is None] or list(effects)


def _sum_of(effects: Sequence[Effect]) -> Effect:
    """Return effects of one kind as one; its figures are those of the first."""
    first = max(effects, key=lambda effect: effect.weight)
    amounts = (
        _total(effect.bytes for effect in effects),
        _total(effect.tokens for effect in effects),
        _total(effect.seconds for effect in effects),
    )
    return Effect(first.term, *amounts, first.before, first.after, first.where)


def _total(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _cause(named: _Named, effects: Sequence[Effect], evidence: Evidence) -> Cause:
    main = _sum_of(_main(effects))
    kinds = [_main(effects)]
    while rest := [effect for effect in effects if not any(effect in kind for kind in kinds)]:
        kinds.append(_main(rest))
    text = effects_text([_sum_of(kind) for kind in kinds], evidence)
    moved = ""
    if named.name != _FRACTION and any(effect.term == "fraction" for effect in effects):
        shown = [_fraction_of(side) for side in (evidence.before, evidence.after)]
        moved = f"moves {_FRACTION} {shown[0]} -> {shown[1]} and "
    where = f" on {main.where}" if named.kind == "memory" and main.where and main.term not in BESIDE else ""
    sentence = f"{change_text(named.name, named.before, named.after, named.kind, evidence)}{where} {moved}{text}."
    return Cause(*named, main.bytes, main.tokens, sentence)


def _name(effect: Effect, evidence: Evidence) -> _Named:
    """Name an effect by the argument that acts on it, by the release, or by itself."""
    if effect.term == "fraction":
        return _fraction(evidence)
    arg = _acting(_OWN_ARGS.get(effect.term, (effect.term,)), evidence.args, evidence)
    if arg is not None:
        return _Named(_kind(arg), arg.name, arg.before, arg.after)
    if effect.seconds is None and effect.term != "free_at_init" and not evidence.may_be_one_release:
        return _release(evidence)
    kind: CauseKind = "time" if effect.seconds is not None else "memory"
    return _Named(kind, TITLES.get(effect.term, effect.term), effect.before, effect.after)


def _acting(terms: Sequence[str], args: Sequence[ArgChange], evidence: Evidence) -> ArgChange | None:
    """Return the argument that acts on one of the terms, the terms in their order: a typed one, and one that acts on little else."""
    declared = list(evidence.packs.acts_on)

    def rank(arg: ArgChange) -> tuple[object, ...]:
        own = acts_on(arg.name, evidence.packs)
        place = declared.index(arg.name) if arg.name in declared else len(declared)
        return arg.origin == "derived", own.index(term), place, arg.name

    for term in terms:
        acting = [arg for arg in args if not arg.noise and term in acts_on(arg.name, evidence.packs)]
        if acting:
            return min(acting, key=rank)
    return None


def _kind(arg: ArgChange) -> CauseKind:
    return "environment" if arg.origin == "environment" else "argument"


def _release(evidence: Evidence) -> _Named:
    releases = [str(side.launch.releases) for side in (evidence.before, evidence.after)]
    return _Named("release", "SGLang release", releases[0], releases[1])


def _fraction(evidence: Evidence) -> _Named:
    """Name a change of the fraction: by itself, unless SGLang chose it and what it chose by was changed."""
    own = next((arg for arg in evidence.args if arg.name == _FRACTION), None)
    if own is not None and own.origin == "derived":
        arg = _acting(("fraction",), [arg for arg in evidence.args if arg.origin == "typed"], evidence)
        if arg is not None:
            return _Named("argument", arg.name, arg.before, arg.after)
        if not evidence.may_be_one_release:
            return _release(evidence)
    sides = (evidence.before, evidence.after)
    kind: CauseKind = "argument" if all(side.sizing.fraction.in_force is not None for side in sides) else "inferred"
    return _Named(kind, _FRACTION, _fraction_of(sides[0]), _fraction_of(sides[1]))


def _fraction_of(side: Side) -> str:
    fraction = side.sizing.fraction
    if fraction.in_force is not None:
        return flag_text(fraction.in_force)
    return fraction_text(fraction.implied) if fraction.implied else "?"


def _failure(evidence: Evidence, *, has_budget_effect: bool) -> Iterator[Cause]:
    """Yield the failure of one launch as a cause where no change of the budget explains it."""
    first, second = evidence.before, evidence.after
    failed = second if second.diagnosis is not None else first
    if (first.diagnosis is None) == (second.diagnosis is None) or failed.diagnosis is None:
        return
    diagnosis = failed.diagnosis
    if has_budget_effect and (diagnosis.cause in _OF_THE_BUDGET or diagnosis.cause.startswith("oom_")):
        return
    arg = _acting(_FAILED_BY.get(diagnosis.cause, ()), evidence.args, evidence)
    if arg is not None:
        what = change_text(arg.name, arg.before, arg.after, _kind(arg), evidence)
        sentence = f"{what}: {failed.name} failed, {diagnosis.sentence}."
        yield Cause(_kind(arg), arg.name, arg.before, arg.after, None, None, sentence)
        return
    states = ("ready", "failed") if failed is second else ("failed", "ready")
    sentence = f"{failed.name} failed: {diagnosis.sentence}."
    yield Cause("failure", diagnosis.cause, states[0], states[1], None, None, sentence)
