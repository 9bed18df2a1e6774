"""What differs and is suspected, and measurably is not the cause."""

from __future__ import annotations

from collections.abc import Sequence

from logscope.differ.arguments import acts_on, are_one_setting
from logscope.differ.attribution import budget_step
from logscope.differ.effects import amount_of, rows_beside
from logscope.differ.evidence import Evidence
from logscope.differ.figures import is_refuted
from logscope.differ.naming import FRACTION, TITLES
from logscope.differ.steps import SPREAD, TOLERATED
from logscope.differ.types import ArgChange, Cause, RuledOut

_IN_TOKENS = ("cell", "page", "limits")
_OF_TIME = ("load_time", "graph_time")
_PRINTED = "within print resolution"
_OF_RANKS = ("tp_size", "pp_size")  # another number of ranks is an effect
_OF_NO_ARGUMENT = (TITLES["free_at_init"], TITLES["distributed_init"])
_LARGE = ("weights", "cell", "graphs", "draft")  # what two arguments can move by much, in opposite directions


def find_ruled_out(evidence: Evidence, causes: Sequence[Cause]) -> list[RuledOut]:
    """Return what differs, is suspected, and measurably has no effect on memory; nothing that goes with what is blamed."""
    if any(cause.kind == "memory" and cause.name not in _OF_NO_ARGUMENT for cause in causes):
        return []  # what nothing explains may be due to what differs
    blamed = {name for cause in causes for name in cause.names}
    covered = [set(acts_on(name, evidence.packs)) for name in blamed]
    found: dict[str, RuledOut] = {}
    for arg in evidence.args:
        terms = acts_on(arg.name, evidence.packs)
        if arg.name == FRACTION and any(is_refuted(side.sizing) for side in (evidence.before, evidence.after)):
            continue  # it is not what ran
        if arg.noise or arg.name in (*blamed, *_OF_RANKS) or not terms or any(set(terms) <= each for each in covered):
            continue
        measured = [_measured(term, evidence) for term in terms if term not in _OF_TIME]
        if any(_may_cancel(arg, other, evidence) for other in evidence.args):
            continue
        known = [each for each in measured if each is not None]
        if known and len(known) == len(measured):
            name = _custom_all_reduce(arg, evidence) or arg.name
            found.setdefault(name, RuledOut(name, *max(known, key=lambda each: abs(each[0]))))
    return list(found.values())


def _may_cancel(arg: ArgChange, other: ArgChange, evidence: Evidence) -> bool:
    """Return whether what one argument took may be what another one gave, so that nothing is seen of either."""
    if other is arg or other.noise or are_one_setting(arg, other, evidence.packs):
        return False
    shared = set(acts_on(arg.name, evidence.packs)) & set(acts_on(other.name, evidence.packs))
    return bool(shared & set(_LARGE))


def _measured(term: str, evidence: Evidence) -> tuple[float, str] | None:
    """Return by how many bytes a term differs and within what that is; None where it is more, or the logs do not tell."""
    if term in ("graphs", "distributed_init"):
        lines = rows_beside(evidence, "distributed_init_beside" if term == "distributed_init" else term)
        rows = [row for row in lines if row.verdict != "unknown"]
        if rows:
            if any(row.verdict == "changed" for row in rows):
                return None
            most = max(rows, key=lambda row: abs(amount_of(row)))
            return amount_of(most), most.reason if most.reason.startswith((TOLERATED, SPREAD)) else _PRINTED
        if term == "graphs":
            return None
        term = "free_at_init"  # where no line tells what distributed init took, what it left does
    own = next((each for each in evidence.budget.terms if each.term == term), None)
    if own is None or term in _IN_TOKENS:
        is_alike = evidence.budget.tokens_before == evidence.budget.tokens_after is not None
        return (0.0, _PRINTED) if is_alike and evidence.budget.terms else None
    return (own.bytes, _PRINTED) if abs(own.bytes) <= budget_step(evidence.budget) + 1 else None


def _custom_all_reduce(arg: ArgChange, evidence: Evidence) -> str | None:
    if "CUSTOM_A" not in arg.name.upper():
        return None
    if arg.origin == "environment":
        where = evidence.after.name if arg.after is not None else evidence.before.name
        return f"custom all-reduce (forced by environment in {where})"
    where = evidence.after.name if arg.after == "True" else evidence.before.name
    return f"custom all-reduce (switched off by its flag in {where})"
