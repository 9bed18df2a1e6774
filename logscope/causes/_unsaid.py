"""What can be said where the log ends before, or without, the line that says why."""

from __future__ import annotations

from msgspec.structs import replace

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import NONE_WORKS, floor_of, per_rank, raise_fraction
from logscope.launch import is_bare_banner

REST = "Get the rest of the log."


def is_last_of_log(case: Case) -> bool:
    """Return whether nothing follows but, at most, other banners without a reason."""
    later = [
        event
        for event in case.launch.events
        if event.pos.file == case.root.pos.file and event.pos.line > case.root.pos.line
    ]
    return case.launch.followed_by is None and all(is_bare_banner(event) for event in later)


def with_shortage(case: Case, found: Diagnosis) -> Diagnosis:
    """Add that the budget leaves nothing for the KV cache, where that is so: whatever happened, such a launch cannot start."""
    rest, fraction = case.sizing.rest, case.sizing.fraction.in_force
    if case.was_ready or rest is None or rest.high > 0 or fraction is None or case.sizing.size is not None:
        return found
    why = f"under mem_fraction_static {fraction:g} the budget of the KV cache is {per_rank(rest, case)}, with which no launch starts"
    remedy = raise_fraction(case)
    return replace(
        found,
        sentence=f"{found.sentence}; {why}",
        direction=None if remedy.startswith(NONE_WORKS) else "raise",
        remedy=f"{remedy} {found.remedy}".rstrip(),
        evidence=(*found.evidence, *(pos for pos in floor_of(case) if pos not in found.evidence)),
    )
