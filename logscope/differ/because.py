"""Why two launches differ: what was changed, named by the argument that acts on what came of it; what explains most is first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logscope.differ.arguments import changed_facts
from logscope.differ.attribution import budget_step
from logscope.differ.effects import find_effects
from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.failing import failures, is_of_the_first, is_out_of_memory_by
from logscope.differ.naming import FRACTION, TITLES, Named, fraction_of, kind_of, name_effect
from logscope.differ.phrases import change_text, effects_text, is_of_launch
from logscope.differ.steps import Tolerance
from logscope.differ.types import Cause
from logscope.differ.unexplained import UNEXPLAINED

_LEAST_PART = 0.02  # of the change of the budget: less is not worth a word
_INIT = "distributed_init"
_FACTS = {  # what lines say in words of a term
    _INIT: {"nccl_version": "NCCL"},
    "distributed_init_beside": {"nccl_version": "NCCL"},
    "cell": {"dtype": "KV cache dtype", "allocated dtype": "KV cache dtype"},
}


def find_causes(evidence: Evidence, others: Sequence[Evidence], tolerance: Tolerance) -> list[Cause]:
    """Return the causes: of the budget, of a failure, of memory beside the budget, of time; of each the one that explains most first.

    Args:
        others: the launch compared with further baselines.
    """
    groups: dict[tuple[str, str], tuple[Named, list[Effect]]] = {}
    effects = find_effects(evidence, others, tolerance)
    for effect in effects:
        named = name_effect(effect, evidence)
        known, own = groups.get((named.kind, named.name), (named, []))
        together = tuple(dict.fromkeys((*known.others, *named.others)))
        groups[named.kind, named.name] = (known._replace(others=together), [*own, effect])
    ranked = sorted(groups.values(), key=lambda group: _rank(group[1]))
    is_alone = sum(_rank(group[1])[0] == 0 for group in ranked) == 1
    causes = [_cause(named, own, evidence, is_alone=is_alone) for named, own in ranked]
    found = list(failures(evidence, effects))
    blamed = {name for failure in found for name in failure.names}
    rest = [cause for cause in causes if cause.name not in blamed]
    is_of_first = evidence.after.diagnosis is not None and is_of_the_first(evidence, effects)
    return [*rest, *found] if is_of_first else [*found, *rest]


def _rank(effects: Sequence[Effect]) -> tuple[int, float, float]:
    """Return what sorts causes: by what they act on, then by how much."""
    main = _sum_of(_main(effects))
    place = 2 if main.seconds is not None else 1 if main.term in BESIDE else 0
    return place, -main.weight, -abs(main.bytes or 0.0)


def _main(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects on the budget; where there are none, those on memory beside it; else those on time."""
    budget = [effect for effect in effects if effect.is_of_budget]
    return budget or [effect for effect in effects if effect.seconds is None] or list(effects)


def _sum_of(effects: Sequence[Effect]) -> Effect:
    """Return effects of one kind as one; its figures are those of the largest."""
    first = max(effects, key=lambda effect: (effect.weight, abs(effect.bytes or 0.0)))
    amounts = (
        _total(effect.bytes for effect in effects),
        _total(effect.tokens for effect in effects),
        _total(effect.seconds for effect in effects),
    )
    return Effect(first.term, *amounts, first.before, first.after, first.where)


def _total(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _cause(named: Named, effects: Sequence[Effect], evidence: Evidence, *, is_alone: bool) -> Cause:
    main = _sum_of(_main(effects))
    has_arg = named.kind in ("argument", "environment")
    parts = _parts(effects)
    is_alone = is_alone and main.is_of_budget and _is_all_of_it(main, evidence)
    text = effects_text(parts, evidence, is_alone=is_alone, has_arg=has_arg)
    text = f"{_moved(named, effects, evidence)}{text}{_beside_it(named, effects, evidence)}{_left(effects, evidence)}"
    if named.kind == "memory" and main.term == "graphs":
        text += "; no argument that is known to act on it differs"
    if has_arg or parts[0].term not in UNEXPLAINED:
        changed = _changed_text(named, evidence)
        where = (
            f" on {main.where}" if named.kind in ("memory", "time") and main.where and main.term not in BESIDE else ""
        )
        is_told_apart = parts[0].term in UNEXPLAINED or (
            parts[0].seconds is not None and not is_of_launch(parts[0].seconds, evidence)
        )
        text = f"{changed}{where}{':' if is_told_apart else ''} {text}"
    together = tuple(other.name for other in named.others)
    return Cause(*named[:4], main.bytes, main.tokens, f"{text}.", main.is_of_budget, together)


def _is_all_of_it(main: Effect, evidence: Evidence) -> bool:
    """Return whether an effect is the whole change of the budget: a part of it may be within what the baselines vary by."""
    change, step = evidence.budget.change, 2 * budget_step(evidence.budget) + 1
    return change is None or main.bytes is None or abs(change - main.bytes) <= max(step, _LEAST_PART * abs(change))


def _changed_text(named: Named, evidence: Evidence) -> str:
    """Write what was changed, with what else acts on the same."""
    text = change_text(named.name, named.before, named.after, named.kind, evidence)
    if not named.others:
        return text
    others = [change_text(arg.name, arg.before, arg.after, kind_of(arg), evidence) for arg in named.others]
    return f"{text}, together with {' and '.join(others)},"


def _parts(effects: Sequence[Effect]) -> list[Effect]:
    """Return what a sentence says one by one: what goes missing, the budget, memory beside it, time."""
    missing = [effect for effect in effects if effect.term in UNEXPLAINED]
    rest = [effect for effect in effects if effect not in missing]
    parts = []
    while rest:
        kind = _main(rest)
        kind = [effect for effect in kind if (effect.bytes is None) == (kind[0].bytes is None)]
        parts.append(_sum_of(kind))
        rest = [effect for effect in rest if effect not in kind]
    return [*missing, *parts]


def _moved(named: Named, effects: Sequence[Effect], evidence: Evidence) -> str:
    """Write what an argument acted through, where that has figures of its own."""
    moved = []
    if named.name != FRACTION and any(effect.term == "fraction" for effect in effects):
        shown = [fraction_of(side) for side in (evidence.before, evidence.after)]
        moved.append(f"moves {FRACTION} {shown[0]} -> {shown[1]} and ")
    init = next((effect for effect in effects if effect.term == _INIT), None)
    if init is not None and named.kind != "memory" and init.before and init.after:
        moved.append(f"moves {TITLES[_INIT]} {init.before} -> {init.after} and ")
    return "".join(moved)


def _beside_it(named: Named, effects: Sequence[Effect], evidence: Evidence) -> str:
    """Write what else differs in what lines say of it: NCCL where distributed init took memory, types that no argument tells."""
    terms = {effect.term for effect in effects if named.kind == "memory" or effect.term.startswith(_INIT)}
    told = {name: word for term in terms for name, word in _FACTS.get(term, {}).items()}
    facts = [fact for fact in changed_facts(evidence.changes) if fact.name in told and fact.before and fact.after]
    shown = dict.fromkeys(f"{told[fact.name]} {fact.before} -> {fact.after}" for fact in facts)
    return f"; {', '.join(shown)}" if shown else ""


def _left(effects: Sequence[Effect], evidence: Evidence) -> str:
    """Write that a larger budget leaves less beside it, where a launch ran out of memory there."""
    return ", and leaves that much less beside it" if is_out_of_memory_by(effects, evidence) else ""
