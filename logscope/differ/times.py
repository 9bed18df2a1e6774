"""The time of launches, phase by phase."""

from __future__ import annotations

from logscope.differ.types import PhaseTime
from logscope.model import Launch
from logscope.packs import Packs
from logscope.timeline import GAP, phase_rows
from logscope.words import elapsed_until, inside_a_sentence

WHOLE = "launch"


def phase_times(before: Launch, after: Launch) -> list[PhaseTime]:
    """Return for each phase the time of the rank that took longest, and of the whole launch until it was ready."""
    first, second = _longest(before), _longest(after)
    if _openers(before) != _openers(after):  # what comes before the first phase has no common beginning
        first, second = _without_start(first), _without_start(second)
    return [PhaseTime(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]


def _openers(launch: Launch) -> set[str]:
    return {event.pattern.id for event in launch.events if event.pattern.opens_launch and event.clock}


def _without_start(times: dict[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in times.items() if name != WHOLE and not name.startswith(f"{GAP} before ")}


def is_gap(phase: str) -> bool:
    """Return whether a time is that between phases."""
    return phase.startswith(f"{GAP} ")


def time_title(phase: str, packs: Packs) -> str:
    """Name a time inside a sentence: "load weights", "before distributed init", "the whole launch, to ready"."""
    if phase == WHOLE:
        return "the whole launch, to ready"
    where, _, own = phase.removeprefix(f"{GAP} ").rpartition(" ")
    title = inside_a_sentence(packs.phases[own].title) if own in packs.phases else own
    return f"{where} {title}".strip()


def _longest(launch: Launch) -> dict[str, float]:
    """Return the seconds of each phase: on each rank all its spans together, then the most over the ranks.

    A phase that a launch died in has no time, even if some ranks went through it.
    """
    by_rank: dict[tuple[str, str], float] = {}
    unfinished = set()
    for row in phase_rows(launch):
        if row.is_open and launch.outcome.kind != "ready":
            unfinished.add(row.phase)
        if row.duration is not None:
            name = row.phase if row.phase != GAP else f"{GAP} {row.kind}"
            key = (name, f"{row.rank.node} {row.rank.tag}")
            by_rank[key] = by_rank.get(key, 0.0) + row.duration.value
    found: dict[str, float] = {}
    for (name, _), seconds in by_rank.items():
        if name not in unfinished:
            found[name] = max(found.get(name, 0.0), seconds)
    stop = launch.outcome.evidence[0] if launch.outcome.kind == "ready" and launch.outcome.evidence else None
    whole = elapsed_until(launch, stop) if stop is not None and launch.has_start else None
    return found if whole is None else {**found, WHOLE: whole}
