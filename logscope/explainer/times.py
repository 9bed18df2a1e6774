"""Findings about time: which phase is most of the launch, at what rate it reads, and the one thing to mend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from logscope.clock import seconds_between
from logscope.explainer._subject import Subject
from logscope.model import Finding, Pos
from logscope.rank import Rank
from logscope.timeline import GAP, PhaseRow, phase_rows
from logscope.units import GIB, Quantity, gib
from logscope.words import duration_text, elapsed_until, inside_a_sentence, phase_title

WORTH_SAYING_S = 60.0
MOST_OF_IT = 0.4
REMEDIES: Mapping[str, str] = {
    "load_weights": "Faster or local storage, or files already in the page cache, is the one thing to mend.",
    "cuda_graph": "Fewer batch sizes to capture (--cuda-graph-max-bs), and a kernel cache that outlives the container.",
    "warmup": "Compile the kernels beforehand, and keep their cache.",
    "init_torch_distributed": "Look at the network between ranks, and at the slowest of them to arrive.",
}


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the phase that is most of the launch, if that took long."""
    rows = [row for row in _silent(phase_rows(subject.launch)) if row.duration is not None]
    longest = max(rows, key=lambda row: row.duration.value if row.duration else 0, default=None)
    if longest is None or longest.duration is None or longest.duration.value < WORTH_SAYING_S:
        return
    whole = _whole(subject)
    share = longest.duration.value / whole if whole else None
    if share is not None and share < MOST_OF_IT:
        return
    title = phase_title(longest, subject.packs)
    took = duration_text(longest.duration.value)
    of_all = f" of {duration_text(whole)} ({min(share, 1):.0%})" if whole and share is not None else ""
    rate = _rate(rows, longest)
    sentence = f"{title} took {took}{of_all}{rate}."
    if longest.phase == GAP:
        sentence = f"{took}{of_all} passed without a line of any phase, {inside_a_sentence(title.strip('()'))}."
    places = tuple(event.pos for event in (longest.begin, longest.end) if event is not None)
    yield Finding("slow_phase", "note", sentence, places, _remedy(subject, longest.phase))


def _silent(rows: Sequence[PhaseRow]) -> Iterator[PhaseRow]:
    """Yield phases as they are, and of each gap of a rank the longest stretch in which no other rank says anything of a phase, either."""
    phases = [row for row in rows if row.phase != GAP]
    marks = sorted(
        {event.pos: event for row in phases for event in (row.begin, row.end) if event is not None}.values(),
        key=lambda event: (event.pos.file, event.pos.line),
    )
    for row in rows:
        if row.phase != GAP or row.begin is None or row.end is None:
            yield row
            continue
        first, last = row.begin.pos, row.end.pos
        inside = [event for event in marks if event.pos.file == first.file and first.line < event.pos.line < last.line]
        stretches = [
            (seconds, begin, end)
            for begin, end in pairwise([row.begin, *inside, row.end])
            if (seconds := seconds_between(begin.clock, end.clock)) is not None and not _is_busy(begin.pos, phases)
        ]
        if not inside:
            yield row
        elif stretches:
            seconds, begin, end = max(stretches, key=lambda each: each[0])
            time = Quantity(seconds, row.duration.resolution if row.duration else 0.0)
            yield replace(row, begin=begin, end=end, duration=time, clock=time)


def _is_busy(place: Pos, phases: Sequence[PhaseRow]) -> bool:
    """Return whether some rank is in a phase right after a line."""
    return any(
        row.begin is not None
        and row.begin.pos.file == place.file
        and row.begin.pos.line <= place.line
        and (row.is_open or (row.end is not None and row.end.pos.line > place.line))
        for row in phases
    )


def _remedy(subject: Subject, phase: str) -> str:
    """Return what to mend; nothing where the only rank waits for no other, or where the launch did not become ready: that comes first."""
    launch = subject.launch
    is_alone = phase == "init_torch_distributed" and len(launch.ranks) < 2
    is_well = launch.outcome.kind == "ready" and subject.diagnosis is None
    return REMEDIES.get(phase, "") if is_well and not is_alone else ""


def _whole(subject: Subject) -> float | None:
    """Return how long the launch took to become ready, to fail, or to where the log ends."""
    launch = subject.launch
    stop = launch.outcome.evidence[0] if launch.outcome.evidence else launch.events[-1].pos
    return elapsed_until(launch, stop) if launch.has_start else None


def _rate(rows: list[PhaseRow], longest: PhaseRow) -> str:
    """Write how fast the weights are read: by the slowest rank, and by all together."""
    if longest.phase != "load_weights" or longest.used is None or longest.duration is None:
        return ""
    if longest.used.low <= 0:
        return ""  # weights that gave memory back tell no rate
    loads: dict[Rank, float] = {}
    for row in rows:
        if row.phase == "load_weights" and row.worker == longest.worker and row.used is not None:
            loads[row.rank] = loads.get(row.rank, 0.0) + row.used.value
    own = longest.used.value / GIB / longest.duration.value
    text = f": {gib(longest.used.value)} GiB at {own:.3g} GiB/s"
    if len(loads) > 1:
        text += f" per rank, {sum(loads.values()) / GIB / longest.duration.value:.3g} GiB/s for all {len(loads)}"
    return text
