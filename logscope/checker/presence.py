"""Rules over what is there: events, findings and causes, their ranks, time and order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from logscope.checker.bounds import UNFINISHED, why_nothing
from logscope.checker.silent import silent_ranks, unseen_ranks
from logscope.checker.subject import Subject
from logscope.checker.types import Judgement, Rule, Status, Value
from logscope.checker.vocabulary import DRIFT, READY
from logscope.checker.wording import number_text
from logscope.model import Event, Launch, Pos
from logscope.rank import Rank
from logscope.server_args import arg_count
from logscope.timeline import CLOCK_STEP_S
from logscope.units import Quantity
from logscope.words import elapsed_until, ranks_text


def names(event: Event, word: str) -> bool:
    """Return whether a word of a rule means an event: by its id, with stars, or "ready" for the line that ends the launch so."""
    return event.pattern.ends == READY if word == READY else fnmatchcase(event.pattern.id, word)


def matching(subject: Subject, word: str) -> dict[str, tuple[Pos, ...]]:
    """Return the events, findings and causes that a word names, each with where it stands; empty if none is there."""
    launch, explanation = subject.launch, subject.explanation
    found: dict[str, tuple[Pos, ...]] = {}
    for event in launch.events:
        if names(event, word):
            found[event.pattern.id] = (*found.get(event.pattern.id, ()), event.pos)
    if launch.drift and fnmatchcase(DRIFT, word):
        found[DRIFT] = tuple(each.pos for each in launch.drift)
    for finding in explanation.findings:
        if fnmatchcase(finding.id, word):
            found[finding.id] = (*found.get(finding.id, ()), *finding.evidence)
    if explanation.diagnosis is not None and fnmatchcase(explanation.diagnosis.cause, word):
        found[explanation.diagnosis.cause] = (launch.ended or launch.outcome).evidence[:1]
    return found


def _may_be_cut(word: str, subject: Subject) -> bool:
    """Return whether a line that is not there may have been said: the log ends before, or begins after its phase."""
    launch, phases = subject.launch, subject.packs.phases
    if launch.outcome.kind in UNFINISHED:
        return True
    if launch.has_start:
        return False
    begins = min(phases[event.pattern.phase].order for event in launch.events)
    phase = phases.get(word.partition(".")[0])
    return phase is not None and phase.order < begins


def judge_present(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether all of some events, findings or causes are there."""
    found = {word: matching(subject, word) for word in rule.expect.present}
    words = [word for word, own in found.items() if not own]
    missing = ", ".join(words)
    if not words:
        return Judgement("pass", "all there", "", (), tuple(pos for own in found.values() for pos in _first(own)))
    if all(_may_be_cut(word, subject) for word in words):
        return Judgement("inconclusive", f"not there: {missing}", why_nothing(subject.launch))
    return Judgement("fail", f"not there: {missing}", "", (), subject.launch.outcome.evidence)


def _first(places: Mapping[str, tuple[Pos, ...]]) -> tuple[Pos, ...]:
    return next(iter(places.values()))[:1]


def judge_reach(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether an event was reached, by all ranks, in time."""
    expect, launch = rule.expect, subject.launch
    events = [event for event in launch.events if names(event, expect.reach or "")]
    places = tuple(event.pos for event in events)
    if not events:
        if _may_be_cut(expect.reach or "", subject):
            is_late = launch.outcome.kind == "failed" and not launch.has_start
            late = "the log begins too late to tell whether it was reached before the failure"
            return Judgement("inconclusive", "not reached", late if is_late else why_nothing(launch))
        return Judgement("fail", f"not reached: the launch {_went(launch)}", "", (), launch.outcome.evidence)
    if expect.all_ranks:
        silent = silent_ranks(events, launch)
        if silent:
            why = why_nothing(launch) if _may_be_cut(expect.reach or "", subject) else ""
            return Judgement("inconclusive" if why else "fail", f"not reached by {silent}", why, (), places)
        nodes = arg_count(launch.args.values, "nnodes")
        if nodes > len(launch.nodes):
            return Judgement(
                "inconclusive", "reached", f"the log shows {len(launch.nodes)} of {nodes} nodes", (), places
            )
    if expect.within_s is None:
        return Judgement("pass", "reached", _died(expect.reach or "", launch), (), places[:1])
    seconds = elapsed_until(launch, places[-1]) if launch.has_start else None
    if seconds is None:
        why = "the log does not show its start" if not launch.has_start else "its lines have no clock"
        why = "its clock runs backwards" if launch.has_start and events[-1].clock else why
        why = f"the log does not tell when: {why}"
        return Judgement("inconclusive", "reached", why, (), places[-1:])
    value = Value("", Quantity(seconds, 2 * CLOCK_STEP_S), "", "s", places[-1])
    status: Status = "pass" if seconds - CLOCK_STEP_S <= expect.within_s else "fail"
    why = _died(expect.reach or "", launch) if status == "pass" else ""
    return Judgement(status, f"after {number_text(seconds, 's')}", why, (value,), places[-1:])


def _died(word: str, launch: Launch) -> str:
    """Return that a server that became ready died later; empty where it did not, and for other events."""
    if word != READY or launch.ended is None or launch.ended.kind != "failed":
        return ""
    at = launch.ended.evidence[0] if launch.ended.evidence else ""
    return f"it became ready, and failed later ({at})"


def _went(launch: Launch) -> str:
    return {"failed": "failed", "hung": "hung", "ready": "is ready without it"}.get(
        launch.outcome.kind, launch.outcome.kind
    )


def judge_sequence(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether every rank says some events in their order."""
    wanted, launch = rule.expect.sequence, subject.launch
    if not launch.ranks:
        return Judgement("inconclusive", "nothing", "no rank says anything in this log")
    broken: dict[tuple[str, bool], list[Rank]] = {}
    places: list[Pos] = []
    for rank in launch.ranks:
        own = [event for event in launch.events if event.rank == rank and event.pattern.id in wanted]
        reached = _reached([event.pattern.id for event in own], wanted)
        if reached == len(wanted):
            continue
        is_missing = not any(event.pattern.id == wanted[reached] for event in own)
        after = wanted[reached - 1] if reached else "the start"
        what = f"no {wanted[reached]}" if is_missing else f"{wanted[reached]} does not follow {after}"
        broken.setdefault((what, is_missing and _may_be_cut(wanted[reached], subject)), []).append(rank)
        places.extend(event.pos for event in own if event.pattern.id == wanted[reached])
    unseen = unseen_ranks(launch)
    if unseen:
        broken["no line of theirs", _may_be_cut(wanted[0], subject)] = unseen
    if not broken:
        count = len(launch.ranks)
        return Judgement("pass", f"in order on {count} rank{'s' if count > 1 else ''}")
    found = "; ".join(f"{ranks_text(ranks, [*launch.ranks, *unseen])}: {what}" for (what, _), ranks in broken.items())
    if all(is_open for _, is_open in broken):
        return Judgement("inconclusive", found, why_nothing(launch))
    return Judgement("fail", found, "", (), tuple(places) or launch.outcome.evidence)


def _reached(said: Sequence[str], wanted: Sequence[str]) -> int:
    """Return how many of the wanted events stand in their order."""
    reached = 0
    for event in said:
        if reached < len(wanted) and event == wanted[reached]:
            reached += 1
    return reached
