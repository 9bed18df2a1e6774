"""Findings about mem_fraction_static: what was typed, what is in force, what the numbers imply."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.amounts import fraction_text, gib_text
from logscope.budget import exact
from logscope.explainer._places import pool_places, some
from logscope.explainer._subject import Subject
from logscope.model import Finding
from logscope.sizing.fraction import EXACT, FLAG
from logscope.units import count_text


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the findings about the fraction."""
    yield from _contradicting_lines(subject)
    yield from _typed(subject)
    yield from _contradiction(subject)
    yield from _profiles(subject)


def _contradicting_lines(subject: Subject) -> Iterator[Finding]:
    """Say which lines cannot be true together, and where free memory is no measure: nothing is reckoned from them."""
    for each in subject.sizing.contradictions:
        if each.kind == "rise":  # that can be: no line tells whether the device has memory of its own
            remedy = "Another process released memory, or the device shares that of the host, as GB10 and MI300A do."
            sentence = f"{each.sentence[:1].upper()}{each.sentence[1:]}. No figure is drawn from free memory here."
            yield Finding("memory_rises", "warning", sentence, each.places, remedy)
            continue
        whose = "This line contradicts itself" if len(each.places) == 1 else "These lines contradict each other"
        remedy = "Look for lines of two servers in this file, or for another process that released memory in between."
        sentence = f"{whose}: {each.sentence}. No figure is drawn from free memory here."
        yield Finding("lines_contradict", "error", sentence, each.places, remedy)


def _typed(subject: Subject) -> Iterator[Finding]:
    fraction = subject.sizing.fraction
    if fraction.typed is None or fraction.in_force is None or abs(fraction.typed - fraction.in_force) < EXACT:
        return
    places = some(fraction.typed_at, fraction.in_force_at)
    if fraction.adjusted:
        sentence = (
            f"{FLAG} was typed as {fraction.typed:g} and adjusted to {fraction.in_force:g} ({fraction.adjusted})."
        )
        yield Finding("fraction_adjusted", "note", sentence, places)
        return
    yield Finding(
        "fraction_not_in_force",
        "error",
        f"Your {fraction.typed:g} is not what ran: server_args say {FLAG} {fraction.in_force:g}.",
        some(fraction.in_force_at, fraction.typed_at),
        "Look for a wrapper, a second occurrence of the flag, or a configuration file that sets it.",
    )


def _contradiction(subject: Subject) -> Iterator[Finding]:
    fraction, sizing = subject.sizing.fraction, subject.sizing
    if fraction.verdict not in ("below", "above") or fraction.implied is None or fraction.in_force is None:
        return
    places = (*some(fraction.in_force_at), *pool_places(subject))
    bounds = f"at least {fraction.implied.low:.4f}" if fraction.is_floor else fraction_text(fraction.implied)
    if fraction.verdict == "below":
        sentence = f"Your {fraction.in_force:g} is not what ran: the pool implies {FLAG} {bounds}."
        remedy = "Look for what changed the value after the arguments were printed, or for a second server's lines in this file."
        yield Finding("fraction_contradicted", "error", sentence, places, remedy)
        return
    assert sizing.total is not None and fraction.slack is not None, "no verdict without them"
    missing = (fraction.in_force - fraction.implied.high) * sizing.total.amount.low
    slack = fraction.slack * sizing.total.amount.low
    sentence = (
        f"The pool is {gib_text(exact(missing))} GiB{subject.per_rank} smaller than {FLAG} {fraction.in_force:g} grants: it implies "
        f"{bounds}, and memory taken in between explains {gib_text(exact(slack))} GiB at most."
    )
    remedy = "Either another limit set the pool (context, requests, states), or this value is not what ran."
    yield Finding("fraction_contradicted", "error", sentence, places, remedy)


def _profiles(subject: Subject) -> Iterator[Finding]:
    profiles = subject.sizing.profiles
    if not profiles:
        return
    wrong = [each for each in profiles if each.faults]
    shown = wrong[0] if wrong else profiles[0]
    if wrong:
        yield Finding(
            "debug_profile", "warning", f"The DEBUG line contradicts itself: {'; '.join(shown.faults)}.", (shown.pos,)
        )
        return
    parts = []
    if shown.rest is not None:
        kind = "negative: nothing is left for the KV cache" if shown.rest.high <= 0 else "the budget"
        parts.append(f"rest {gib_text(shown.rest)} GiB ({kind})")
    if shown.tokens is not None:
        parts.append(f"max_tokens {count_text(shown.tokens)}")
    sentence = f"The arithmetic of the DEBUG line is right within its printed digits: {', '.join(parts)}."
    yield Finding("debug_profile", "note", sentence, (shown.pos,))
