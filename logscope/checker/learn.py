"""Write a rules file from launches that worked: bounds around what they print, with where these come from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from logscope.checker.baseline import pack_hash
from logscope.checker.judge import judge_rule
from logscope.checker.rules import read_rules
from logscope.checker.select import select_values
from logscope.checker.subject import Subject
from logscope.checker.types import Select
from logscope.model import Event, Launch
from logscope.packs import Packs
from logscope.safe import clean
from logscope.timeline import GAP, item_quantities, phase_rows
from logscope.units import GIB, count_text
from logscope.words import duration_text, elapsed_until

MEMORY_MARGIN_GIB = 0.10  # beyond the spread: contexts and communicators differ a little from run to run
TIME_FACTOR = 1.5
TIME_MARGIN_S = 10
TOKEN_SHARE = 0.99
READY_WHY = "nothing else matters if the server never came up"


class _Draft(Struct, frozen=True):
    """A rule that may hold: its text is the body of a [[rule]]."""

    name: str
    why: str
    body: str

    @property
    def text(self) -> str:
        return f"[[rule]]\nid = {_quoted(self.name)}\nwhy = {_quoted(self.why)}\n{self.body}\n"


def learn_rules(subjects: Sequence[Subject], packs: Packs, date: str) -> str:
    """Return the text of a rules file that holds for all launches; what does not hold for each of them is left out.

    Args:
        subjects: at least one launch that became ready.
        date: as given by whoever asks; logscope does not look at a clock.
    """
    launches = [subject.launch for subject in subjects]
    names = ", ".join(launch.source for launch in launches)
    releases = "; ".join(dict.fromkeys(str(launch.releases) for launch in launches))
    many = "es" if len(launches) > 1 else ""
    head = [
        f"# Learned from {len(launches)} launch{many}: {clean(names)}{f'; {clean(date)}' if date else ''}.",
        f"# SGLang by its wording: {releases}. Pattern files: {pack_hash(packs)}.",
        "",
        "version = 1",
    ]
    kept = [draft for draft in _drafts(subjects) if _holds(draft, subjects, packs)]
    return "\n".join([*head, *(f"\n{draft.text}".rstrip("\n") for draft in kept)]) + "\n"


def _holds(draft: _Draft, subjects: Sequence[Subject], packs: Packs) -> bool:
    """Return whether a rule holds for each launch that it comes from."""
    rules = read_rules(f"version = 1\n{draft.text}", "learned", packs).rules
    return all(judge_rule(rule, subject, {}).status == "pass" for rule in rules for subject in subjects)


def _quoted(text: str) -> str:
    """Write a text that TOML reads as it is."""
    return json.dumps(clean(text), ensure_ascii=False)


def _drafts(subjects: Sequence[Subject]) -> Iterator[_Draft]:
    launches = [subject.launch for subject in subjects]
    yield from _ready(launches)
    yield _Draft("no-failure", "a launch that works has no failure", 'expect = { absent = ["failure.*"] }')
    yield from _order(launches)
    counts = sorted({len(launch.ranks) for launch in launches})
    bounds = f'min = ">= {counts[0]}", max = "<= {counts[-1]}"' if len(counts) > 1 else f'min = "== {counts[0]}"'
    yield _Draft("ranks", "a silent rank is a dead one", f'select = {{ launch = "ranks" }}\nexpect = {{ {bounds} }}')
    yield from _tokens(subjects)
    yield from _memory(launches)
    yield from _free(subjects)
    yield from _times(launches)
    yield _Draft("budget", "the pool is what mem_fraction_static grants", 'expect = { identity = "kv_budget" }')
    unknown = [sum(gap.count for gap in subject.unknown) for subject in subjects if subject.unknown is not None]
    lines = f', unknown_memory_lines = "<= {max(unknown)}"' if unknown else ""
    why = "a line about memory in a new wording would be missed"
    yield _Draft("known", why, f'expect = {{ coverage = ">= 100 %"{lines} }}')


def _ready(launches: Sequence[Launch]) -> Iterator[_Draft]:
    """Yield that it comes up: in time where the logs tell how long it took."""
    took = [elapsed_until(each, each.outcome.evidence[0]) if each.has_start else None for each in launches]
    known = [seconds for seconds in took if seconds is not None]
    if len(known) < len(launches):
        yield _Draft("ready", READY_WHY, 'expect = { reach = "ready" }')
        return
    why = f"{READY_WHY}; it took {duration_text(max(known))} at most"
    yield _Draft("ready", why, f'expect = {{ reach = "ready", within = "{_time_limit(max(known)):.0f} s" }}')


def _time_limit(seconds: float) -> float:
    return max(seconds * TIME_FACTOR, seconds + TIME_MARGIN_S)


def _order(launches: Sequence[Launch]) -> Iterator[_Draft]:
    """Yield the steps of every rank of every launch, in the order in which all of them take them."""
    kept: list[str] = []
    for name in dict.fromkeys(event.pattern.id for event in launches[0].events if _is_step(event)):
        if all(_is_in_order([*kept, name], launch) for launch in launches):
            kept.append(name)
    if len(kept) > 1:
        why = "every rank goes through all of this, in this order"
        yield _Draft("order", why, f"expect = {{ sequence = {json.dumps(kept)} }}")


def _is_step(event: Event) -> bool:
    """Return whether an event is a step of each rank: a phase's begin or end, or memory that is taken."""
    is_step = event.pattern.edge != "point" or any(item_quantities(event))
    return event.pattern.said_by == "every rank" and is_step


def _is_in_order(names: Sequence[str], launch: Launch) -> bool:
    """Return whether every rank says some events, each for the first time after the one before it."""
    for rank in launch.ranks:
        said = [event.pattern.id for event in launch.events if event.rank == rank]
        if not all(name in said for name in names):
            return False
        if any(said.index(first) > said.index(second) for first, second in pairwise(names)):
            return False
    return bool(launch.ranks)


def _tokens(subjects: Sequence[Subject]) -> Iterator[_Draft]:
    found = [subject.explanation.sizing.tokens for subject in subjects]
    known = [each.amount.low for each in found if each is not None]
    if len(known) == len(subjects) and min(known) > 0:
        why = f"the launches had {count_text(min(known))} tokens; a percent less is another configuration"
        limit = int(min(known) * TOKEN_SHARE)
        yield _Draft("tokens", why, f'select = {{ launch = "tokens" }}\nexpect = {{ min = ">= {limit} tokens" }}')


def _memory(launches: Sequence[Launch]) -> Iterator[_Draft]:
    """Yield a rule for what each phase takes: within the launches' spread, print resolution and a margin."""
    taken: dict[tuple[str, str | None, str | None], list[float]] = {}
    for launch in launches:
        for row in phase_rows(launch):
            if row.used is not None and row.phase != GAP:
                taken.setdefault((row.phase, row.kind, row.worker), []).append(row.used.value)
    for (phase, kind, worker), amounts in taken.items():
        options = "".join(f", {key} = {_quoted(word)}" for key, word in (("role", kind), ("worker", worker)) if word)
        words = ("memory", phase, kind, worker if worker == "draft" else None)
        name = "-".join(word.replace(" ", "-") for word in words if word)
        select = f'select = {{ phase = {_quoted(phase)}, field = "used"{options} }}'
        yield _Draft(name, f"what {phase} takes on each rank", f"{select}\nexpect = {{ {_around(amounts)} }}")


def _free(subjects: Sequence[Subject]) -> Iterator[_Draft]:
    """Yield what is free on each rank before the weights, and at the end."""
    selects = {
        "free-before": ("free before the weights: another process would take of it", Select("phase", "load_weights", "before")),
        "free-after": ("left free: what a phase takes without saying so is missing here", Select("launch", "left_free")),
    }  # fmt: skip
    for name, (why, select) in selects.items():
        found = [
            value.number.value
            for each in subjects
            for value in select_values(select, each.launch, each.packs, each.explanation)
            if value.number is not None
        ]
        if found:
            field = f', field = "{select.field}"' if select.field else ""
            body = f'select = {{ {select.source} = "{select.name}"{field} }}\nexpect = {{ {_around(found)} }}'
            yield _Draft(name, why, body)


def _around(amounts: Sequence[float]) -> str:
    """Write bounds around amounts of memory."""
    low, high = min(amounts) / GIB - MEMORY_MARGIN_GIB, max(amounts) / GIB + MEMORY_MARGIN_GIB
    return f'min = ">= {low:.2f} GiB", max = "<= {high:.2f} GiB"'


def _times(launches: Sequence[Launch]) -> Iterator[_Draft]:
    slowest: dict[str, float] = {}
    for launch in launches:
        for row in phase_rows(launch):
            if row.duration is not None and row.phase != GAP:
                slowest[row.phase] = max(slowest.get(row.phase, 0.0), row.duration.value)
    for phase, seconds in slowest.items():
        select = f'select = {{ phase = {_quoted(phase)}, field = "duration" }}'
        body = f'{select}\nexpect = {{ max = "<= {_time_limit(seconds):.0f} s" }}'
        yield _Draft(f"time-{phase}", f"{phase} took {duration_text(seconds)} at most", body)
