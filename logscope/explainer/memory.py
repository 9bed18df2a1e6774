"""Findings about memory that no line explains, about what cannot be the cause, and about lines that are consequences."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.amounts import gib_text
from logscope.budget import Interval
from logscope.explainer._subject import Subject
from logscope.ledger import UNEXPLAINED
from logscope.model import Event, Finding, Pos
from logscope.units import GIB, gib
from logscope.words import clip, inside_a_sentence, per_rank_text

WORTH_SAYING = GIB // 2
MOST_PLACES = 6


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the findings about memory and about lines that say nothing of the cause."""
    yield from _unexplained(subject)
    yield from _init_is_not_it(subject)
    yield from _consequences(subject)
    yield from _drift(subject)


def _unexplained(subject: Subject) -> Iterator[Finding]:
    """Yield the stretches between two lines in which more than half a GiB went without a line that says so, the worst rank each."""
    worst: dict[tuple[str, str | None], tuple[float, int]] = {}
    for index, row in enumerate(subject.ledger):
        if row.kind == UNEXPLAINED and abs(row.bytes) - row.resolution > WORTH_SAYING:
            key = (row.phase, row.worker)
            if abs(row.bytes) > worst.get(key, (0, 0))[0]:
                worst[key] = (abs(row.bytes), index)
    for _, index in worst.values():
        row = subject.ledger[index]
        phase = inside_a_sentence(subject.packs.phases[row.phase].title)
        verb = "went" if row.bytes > 0 else "came back"
        whose = f" on {subject.names([row.rank])}" if len(subject.launch.ranks) > 1 else ""
        sentence = f"{gib(abs(row.bytes))} GiB {verb} in {phase}{whose} that no line explains."
        yield Finding("unexplained_memory", "warning", sentence, (row.begin, row.end))


def _init_is_not_it(subject: Subject) -> Iterator[Finding]:
    """Say how much custom all-reduce and the like can have taken, where memory was short by far more."""
    rest = subject.sizing.rest
    taken = [
        (event, used)
        for event in subject.events("init_torch_distributed.end")
        if (used := event.quantity("mem_usage_bytes")) is not None
    ]
    if subject.diagnosis is None or rest is None or rest.high >= 0 or not taken or len(subject.launch.ranks) < 2:
        return
    most = max(used.high for _, used in taken)
    if most >= -rest.high:
        return
    off = _all_reduce_off(subject)
    part = "it was off, and all of distributed init" if off else "all of distributed init, of which it is a part,"
    sentence = (
        f"Custom all-reduce is not the cause: {part} took {per_rank_text([used for _, used in taken])}, and "
        f"{gib_text(Interval(-rest.high, -rest.low))} GiB are missing."
    )
    places = tuple(dict.fromkeys((*off, *(event.pos for event, _ in taken))))[:MOST_PLACES]
    yield Finding("distributed_init_bounded", "note", sentence, places)


def _all_reduce_off(subject: Subject) -> tuple[Pos, ...]:
    """Return a line that says that custom all-reduce is off: the arguments, or one of every rank; empty where it may be on."""
    said = subject.events("init_torch_distributed.custom_all_reduce_off")
    if subject.launch.args.values.get("disable_custom_all_reduce") is True:
        said = subject.events("server_args.printed")
    elif not {event.rank for event in said}.issuperset(subject.launch.ranks):
        return ()
    return tuple(event.pos for event in said[:1])


def _consequences(subject: Subject) -> Iterator[Finding]:
    """Name the lines that only follow from the failure."""
    if subject.diagnosis is None:
        return
    said: dict[str, list[Event]] = {}
    for event in subject.launch.events:
        if event.pattern.ends and event.pattern.blame == "consequence":
            said.setdefault(event.pattern.id, []).append(event)
    if not said or subject.diagnosis.cause == "cause_not_in_log":
        return
    texts = [f'"{clip(events[0].text, 60)}"' for events in said.values()]
    places = tuple(events[0].pos for events in said.values())
    yield Finding(
        "consequences", "note", f"Consequences, not causes: {', '.join(texts[:MOST_PLACES])}.", places[:MOST_PLACES]
    )


def _drift(subject: Subject) -> Iterator[Finding]:
    drift = [each for each in subject.launch.drift if not each.cut]
    if not drift:
        return
    verb, they = ("line is", "it says") if len(drift) == 1 else ("lines are", "they say")
    sentence = f"{len(drift)} {verb} known in another wording only, and not read: what {they} is missing here."
    remedy = "logscope patterns gaps LOG lists them."
    yield Finding("unknown_wording", "warning", sentence, tuple(each.pos for each in drift[:MOST_PLACES]), remedy)
