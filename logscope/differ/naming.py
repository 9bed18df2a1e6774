"""What an effect is put down to: an argument that acts on it and moved the right way, the release, or itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from logscope.amounts import flag_text, fraction_text
from logscope.differ.arguments import acts_on
from logscope.differ.direction import could_make
from logscope.differ.evidence import Effect, Evidence
from logscope.differ.figures import stated_avail
from logscope.differ.times import time_title
from logscope.differ.types import ArgChange, CauseKind, Side
from logscope.differ.unexplained import UNEXPLAINED

FRACTION = "mem_fraction_static"
TITLES = {
    "free_at_init": "free memory before the weights",
    "distributed_init": "memory of distributed init (NCCL buffers and the like)",
    "weights": "memory taken by the weights",
    "between": "memory taken between the weights and the KV cache",
    "draft": "the draft model's weights, counted in the budget",
    "draft_cell": "the draft's layers, counted in bytes per token",
    "fraction": FRACTION,
    "cell": "bytes per token",
    "page": "whole pages",
    "limits": "a cap of tokens",
    "graphs": "memory of graphs",
    "distributed_init_beside": "memory of distributed init (NCCL buffers and the like)",
    "draft_memory": "memory of the draft model",
    "pool": "memory of the KV cache",
    "missing": "memory that no line explains",
    "capacity": "capacity of the KV cache",
    "load_time": "time to load the weights",
    "graph_time": "time to capture graphs",
}
_OWN_TERMS = {  # what an argument has to act on, to be the cause of these
    "draft_cell": ("draft", "cell"),
    "draft_memory": ("draft",),
    "distributed_init_beside": ("distributed_init",),
    "pool": ("limits", "cell", "page"),
    "missing": ("between",),
    "capacity": ("fraction", "limits", "cell", "weights", "between", "draft", "page"),
}
_NOT_THE_RELEASE = ("free_at_init", "distributed_init", *UNEXPLAINED)


class Named(NamedTuple):
    """What an effect is put down to."""

    kind: CauseKind
    name: str
    before: str | None
    after: str | None


def name_effect(effect: Effect, evidence: Evidence) -> Named:
    """Name an effect by the argument that acts on it, by the release, or by itself."""
    if effect.term == "fraction":
        return _name_fraction(effect, evidence)
    arg = None if _is_before_arguments(effect, evidence) else acting(_terms(effect), evidence, is_up=effect.is_up)
    if arg is not None:
        return Named(kind_of(arg), arg.name, arg.before, arg.after)
    if effect.seconds is None and effect.term not in _NOT_THE_RELEASE and not evidence.may_be_one_release:
        return _name_release(evidence)
    if effect.seconds is not None:
        title = TITLES.get(effect.term) or f"time {_of(effect.term)}{time_title(effect.term, evidence.packs)}"
        return Named("time", title, effect.before, effect.after)
    return Named("memory", _title(effect, evidence), effect.before, effect.after)


def _of(term: str) -> str:
    return "" if " " in term else "of "


def _title(effect: Effect, evidence: Evidence) -> str:
    """Name memory that went after the weights by the line that says so, or that states what was left."""
    if effect.term != "between":
        return TITLES[effect.term]
    if evidence.budget.named_between:
        return f"memory of the {evidence.budget.named_between}"
    terms = [term for term in evidence.budget.terms if term.term == "between"]
    is_second = any((term.after or 0.0) > (term.before or 0.0) for term in terms)
    side = evidence.after if is_second else evidence.before
    stated = stated_avail(side)
    last = next((event for event in side.launch.events if stated is not None and event.pos == stated.pos), None)
    if last is None or last.pattern.phase == "load_weights":
        return TITLES[effect.term]
    return f"memory taken between the weights and {last.pattern.id}"


def _terms(effect: Effect) -> tuple[str, ...]:
    return _OWN_TERMS.get(effect.term, (effect.term,))


def _is_before_arguments(effect: Effect, evidence: Evidence) -> bool:
    """Return whether memory was taken before the server's own: both logs say what distributed init took, and this is not it."""
    own = next((term for term in evidence.budget.terms if term.term == "distributed_init"), None)
    return effect.term == "free_at_init" and own is not None and own.before is not None and own.after is not None


def acting(
    terms: Sequence[str], evidence: Evidence, *, is_up: bool | None, args: Sequence[ArgChange] | None = None
) -> ArgChange | None:
    """Return the argument that acts on one of the terms, the terms in their order: a typed one, and one that acts on little else.

    Args:
        is_up: which way the effect goes; an argument that moved the other way is none. None: either way.
        args: those to choose from; all where None.
    """
    declared = list(evidence.packs.acts_on)

    def rank(arg: ArgChange) -> tuple[object, ...]:
        own = acts_on(arg.name, evidence.packs)
        place = declared.index(arg.name) if arg.name in declared else len(declared)
        return arg.origin == "derived", own.index(term), place, arg.name

    for term in terms:
        fitting = [
            arg
            for arg in (evidence.args if args is None else args)
            if not arg.noise and term in acts_on(arg.name, evidence.packs) and could_make(arg, term, is_up=is_up)
        ]
        if fitting:
            return min(fitting, key=rank)
    return None


def kind_of(arg: ArgChange) -> CauseKind:
    """Return the kind of cause that an argument is."""
    return "environment" if arg.origin == "environment" else "argument"


def _name_release(evidence: Evidence) -> Named:
    releases = [str(side.launch.releases) for side in (evidence.before, evidence.after)]
    return Named("release", "SGLang release", releases[0], releases[1])


def _name_fraction(effect: Effect, evidence: Evidence) -> Named:
    """Name a change of the fraction: by itself, unless SGLang chose it and what it chose by was changed."""
    own = next((arg for arg in evidence.args if arg.name == FRACTION), None)
    if own is not None and own.origin == "derived":
        typed = [arg for arg in evidence.args if arg.origin == "typed"]
        arg = acting(("fraction",), evidence, is_up=effect.is_up, args=typed)
        if arg is not None:
            return Named("argument", arg.name, arg.before, arg.after)
        if not evidence.may_be_one_release:
            return _name_release(evidence)
    sides = (evidence.before, evidence.after)
    kind: CauseKind = "argument" if all(side.sizing.fraction.in_force is not None for side in sides) else "inferred"
    return Named(kind, FRACTION, fraction_of(sides[0]), fraction_of(sides[1]))


def fraction_of(side: Side) -> str:
    """Write the fraction of a launch: in force, or as its pools imply."""
    fraction = side.sizing.fraction
    if fraction.in_force is not None:
        return flag_text(fraction.in_force)
    return fraction_text(fraction.implied) if fraction.implied else "?"
