"""Findings about time: which phase is most of the launch, at what rate it reads, and the one thing to mend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logscope.explainer._subject import Subject
from logscope.model import Finding
from logscope.rank import Rank
from logscope.timeline import GAP, PhaseRow, phase_rows
from logscope.units import GIB, gib
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
    rows = [row for row in phase_rows(subject.launch) if row.duration is not None]
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


def _remedy(subject: Subject, phase: str) -> str:
    """Return what to mend; nothing for a launch that died, which has another thing to mend, or whose only rank waits for no other."""
    is_alone = phase == "init_torch_distributed" and len(subject.launch.ranks) < 2
    return "" if subject.diagnosis is not None or is_alone else REMEDIES.get(phase, "")


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
