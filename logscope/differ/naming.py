"""What an effect is put down to: an argument that acts on it and moved the right way, the release, or itself."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from logscope.amounts import flag_text, fraction_text
from logscope.differ.arguments import acts_on, are_one_setting
from logscope.differ.direction import could_make, could_make_alone
from logscope.differ.evidence import Effect, Evidence
from logscope.differ.figures import middle, stated_avail, stated_fraction
from logscope.differ.times import time_title
from logscope.differ.types import ArgChange, CauseKind, Side
from logscope.differ.unexplained import MISSING, is_left_free
from logscope.units import GIB

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
    "states": "memory of Mamba states in the same budget",
    "limits": "a cap of tokens",
    "graphs": "memory of graphs",
    "distributed_init_beside": "memory of distributed init (NCCL buffers and the like)",
    "draft_memory": "memory of the draft model",
    "pool": "memory of the KV cache",
    "missing": "what no line explains",
    "capacity": "capacity of the KV cache",
    "load_time": "time to load the weights",
    "graph_time": "time to capture graphs",
}
_OWN_TERMS = {  # what an argument has to act on, to be the cause of these
    "draft_cell": ("draft", "cell"),
    "draft_memory": ("draft",),
    "states": ("cell",),
    "distributed_init_beside": ("distributed_init",),
    "pool": ("limits", "cell", "page"),
    "missing": ("between",),
    "capacity": ("fraction", "limits", "cell", "weights", "between", "draft", "page"),
}
_OF_GRAPHS = ("graphs", "graph_time")
_OF_THE_RELEASE = ("graphs", "between", "page")
_MOST_OF_THE_RELEASE = (
    0.1  # of weights and bytes per token: another release lays them out otherwise, it does not halve them
)
_MOST_BEFORE_WEIGHTS = 4 * GIB  # of all communicators and their buffers: more is another process or another card


class Named(NamedTuple):
    """What an effect is put down to."""

    kind: CauseKind
    name: str
    before: str | None
    after: str | None
    others: tuple[ArgChange, ...] = ()


def name_effect(effect: Effect, evidence: Evidence) -> Named:
    """Name an effect by the argument that acts on it, by the release, or by itself."""
    if effect.term == "fraction":
        return _name_fraction(effect, evidence)
    is_of_none = _is_before_arguments(effect, evidence) or (effect.term == MISSING and is_left_free(evidence))
    args = [] if is_of_none else fitting(_terms(effect), evidence, is_up=effect.is_up)
    if args:
        named = _name_by(args, _terms(effect), evidence)
        return _with_release(named, evidence) if effect.term == "graphs" else named
    if not evidence.may_be_one_release and _is_of_the_release(effect, evidence):
        return _name_release(evidence)
    if effect.seconds is not None:
        title = TITLES.get(effect.term) or f"time {_of(effect.term)}{time_title(effect.term, evidence.packs)}"
        return Named("time", title, effect.before, effect.after)
    return Named("memory", _title(effect, evidence), effect.before, effect.after)


def _name_by(args: Sequence[ArgChange], terms: Sequence[str], evidence: Evidence) -> Named:
    """Name an effect by the first of the arguments that fit, and by the others that act on it as directly."""
    arg, others = args[0], list[ArgChange]()
    for other in args[1:]:
        is_known = any(are_one_setting(other, each, evidence.packs) for each in (arg, *others))
        if other.origin != "derived" and _is_direct(other, terms, evidence) and not is_known:
            others.append(other)
    return Named(kind_of(arg), arg.name, arg.before, arg.after, tuple(others))


def _with_release(named: Named, evidence: Evidence) -> Named:
    """Return what is named together with the release, where that is another: graphs of each take other memory."""
    if evidence.may_be_one_release:
        return named
    _, name, before, after, _ = _name_release(evidence)
    return named._replace(others=(*named.others, ArgChange(name, before, after, None, noise=False)))


def _is_direct(arg: ArgChange, terms: Sequence[str], evidence: Evidence) -> bool:
    """Return whether an argument is there to act on one of the terms; what cuts the model acts on bytes per token, too."""
    own = acts_on(arg.name, evidence.packs)
    is_shared = {"fraction", *_OF_GRAPHS} & set(terms)  # what has many makers, and shows none of their parts
    return own[0] in terms or bool(is_shared) or (terms[0] == "cell" and own[0] == "weights")


def _is_of_the_release(effect: Effect, evidence: Evidence) -> bool:
    """Return whether another release can have made an effect."""
    if effect.seconds is not None:
        return False
    sides = evidence.before, evidence.after
    if effect.term.startswith("draft"):
        # a release counts a draft otherwise, it does not switch one on
        return all("draft" in side.launch.workers for side in sides)
    if effect.term in _OF_THE_RELEASE:
        return effect.term != "graphs" or len({"draft" in side.launch.workers for side in sides}) == 1
    if not all(side.launch.args.values for side in sides):
        return False  # it may be another model
    own = next((term for term in evidence.budget.terms if term.term == effect.term), None)
    if effect.term == "weights" and own is not None and own.before and own.after:
        return abs(own.after - own.before) <= _MOST_OF_THE_RELEASE * max(own.before, own.after)
    if effect.term not in ("cell", "pool"):
        return False
    cells = [middle(side.sizing.cell.size) for side in sides if side.sizing.cell]
    return len(cells) == 2 and abs(cells[1] - cells[0]) <= _MOST_OF_THE_RELEASE * max(cells)


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
    """Return whether memory was taken before the server's own: it is not what distributed init took, or more than that can take."""
    if effect.term != "free_at_init":
        return False
    own = next((term for term in evidence.budget.terms if term.term == "distributed_init"), None)
    is_told = own is not None and own.before is not None and own.after is not None
    return is_told or abs(effect.bytes or 0.0) > _MOST_BEFORE_WEIGHTS


def fitting(
    terms: Sequence[str], evidence: Evidence, *, is_up: bool | None, args: Sequence[ArgChange] | None = None
) -> list[ArgChange]:
    """Return the arguments that act on the first of the terms for which there are any: typed ones first, and those that act on little else.

    Args:
        is_up: which way the effect goes; an argument that moved the other way is none. None: either way.
        args: those to choose from; all where None.
    """
    declared = list(evidence.packs.acts_on)

    def rank(arg: ArgChange) -> tuple[object, ...]:
        own = acts_on(arg.name, evidence.packs)
        place = next((index for index, each in enumerate(declared) if fnmatchcase(arg.name, each)), len(declared))
        return arg.origin == "derived", own.index(term), place, arg.name

    for term in terms:
        own = next((each for each in evidence.budget.terms if each.term == term), None)
        figures = (own.before, own.after) if own is not None else (None, None)
        found = [
            arg
            for arg in (evidence.args if args is None else args)
            if not arg.noise
            and term in acts_on(arg.name, evidence.packs)
            and not _is_idle(arg, evidence)
            and could_make(arg, term, is_up=is_up)
        ]
        if any(could_make_alone(arg, figures) for arg in found):
            return sorted(found, key=rank)
    return []


def _is_idle(arg: ArgChange, evidence: Evidence) -> bool:
    """Return whether an argument does nothing in these launches: replicas without DP attention do not share a model."""
    launches = evidence.before.launch, evidence.after.launch
    return arg.name == "dp_size" and not any(launch.args.values.get("enable_dp_attention") for launch in launches)


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
        args = fitting(("fraction",), evidence, is_up=effect.is_up, args=typed)
        if args:
            return _name_by(args, ("fraction",), evidence)
        if not evidence.may_be_one_release:
            return _name_release(evidence)
    sides = (evidence.before, evidence.after)
    kind: CauseKind = "argument" if all(stated_fraction(side.sizing) is not None for side in sides) else "inferred"
    return Named(kind, FRACTION, fraction_of(sides[0]), fraction_of(sides[1]))


def fraction_of(side: Side) -> str:
    """Write the fraction of a launch: in force, or as its pools imply."""
    stated, implied = stated_fraction(side.sizing), side.sizing.fraction.implied
    if stated is not None:
        return flag_text(stated)
    return fraction_text(implied) if implied else "?"
