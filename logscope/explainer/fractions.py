"""Findings about mem_fraction_static: claims, what was typed, what is in force, what the numbers imply."""

from __future__ import annotations

from collections.abc import Iterator

from logscope import budget
from logscope.amounts import fraction_text, gib_text
from logscope.budget import exact
from logscope.explainer._subject import Subject
from logscope.frames import arg_text
from logscope.model import Finding, Pos
from logscope.server_args import ArgValue
from logscope.sizing.fraction import EXACT, FLAG
from logscope.units import count_text


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the findings about the fraction, and about claims of any argument."""
    yield from _contradicting_lines(subject)
    for name, value in subject.question.claims.items():
        is_fraction = name == FLAG and isinstance(value, (int, float))
        yield _claimed_fraction(subject, float(str(value))) if is_fraction else _claimed(subject, name, value)
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


def _places(*places: Pos | None) -> tuple[Pos, ...]:
    return tuple(place for place in places if place is not None)


def _pool_places(subject: Subject) -> tuple[Pos, ...]:
    own, sizing = subject.limiting, subject.sizing
    pools = [pool.pos for pool in own.pools[:1]] if own else []
    return _places(*pools, sizing.avail.pos if sizing.avail else None, sizing.total.pos if sizing.total else None)


def _claimed(subject: Subject, name: str, value: ArgValue) -> Finding:
    known = subject.launch.args.values
    if name not in known:
        return Finding(
            "claim_open", "note", f"{name}={arg_text(value)} is claimed; what is in force is not in this log."
        )
    place = _places(next((event.pos for event in subject.events("server_args.printed")), None))
    if known[name] == value:
        return Finding("claim_confirmed", "note", f"{name}={arg_text(value)} is in force, as claimed.", place)
    return Finding(
        "claim_refuted", "error", f"{name}={arg_text(value)} is not what ran: it was {arg_text(known[name])}.", place
    )


def _claimed_fraction(subject: Subject, claimed: float) -> Finding:
    """Judge a claimed fraction: by what the pools imply, else by whether any memory would have been left, else by the arguments."""
    fraction = subject.sizing.fraction
    if fraction.implied is not None and claimed < fraction.implied.low - EXACT:
        return _refuted(subject, claimed)
    slack = fraction.slack or 0.0
    if fraction.implied is not None and fraction.slack is not None and not fraction.is_floor:
        if claimed > fraction.implied.high + slack + EXACT:
            return _refuted(subject, claimed)
        sentence = f"{FLAG} {claimed:g} agrees with the pool, which implies {fraction_text(fraction.implied)}."
        return Finding("claim_confirmed", "note", sentence, _pool_places(subject))
    if fraction.in_force is not None:
        is_so = abs(fraction.in_force - claimed) < EXACT
        sentence = f"{FLAG} {claimed:g} is {'in force' if is_so else f'not what ran: it was {fraction.in_force:g}'}."
        level, name = ("note", "claim_confirmed") if is_so else ("error", "claim_refuted")
        return Finding(name, level, sentence, _places(fraction.in_force_at))  # type: ignore[arg-type]
    return Finding("claim_open", "note", f"Whether {FLAG} {claimed:g} ran cannot be told from this log.")


def _refuted(subject: Subject, claimed: float) -> Finding:
    fraction, sizing = subject.sizing.fraction, subject.sizing
    assert fraction.implied is not None and sizing.avail is not None and sizing.total is not None, (
        "asked with an implied fraction"
    )
    left = budget.rest(sizing.avail.amount, sizing.total.amount, exact(claimed))
    bounds = f"at least {fraction.implied.low:.4f}" if fraction.is_floor else fraction_text(fraction.implied)
    sentence = (
        f"{FLAG} {claimed:g} is not what ran: the pool implies {bounds}; with {claimed:g} the budget would be "
        f"{gib_text(left)} GiB{subject.per_rank}."
    )
    return Finding("claim_refuted", "error", sentence, _pool_places(subject))


def _typed(subject: Subject) -> Iterator[Finding]:
    fraction = subject.sizing.fraction
    if fraction.typed is None or fraction.in_force is None or abs(fraction.typed - fraction.in_force) < EXACT:
        return
    places = _places(fraction.typed_at, fraction.in_force_at)
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
        _places(fraction.in_force_at, fraction.typed_at),
        "Look for a wrapper, a second occurrence of the flag, or a configuration file that sets it.",
    )


def _contradiction(subject: Subject) -> Iterator[Finding]:
    fraction, sizing = subject.sizing.fraction, subject.sizing
    if fraction.verdict not in ("below", "above") or fraction.implied is None or fraction.in_force is None:
        return
    places = (*_places(fraction.in_force_at), *_pool_places(subject))
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
