"""What the log says around the line that says why: lines of the same rank, what was free, and what was being captured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from logscope.causes._types import Case
from logscope.causes._words import argument
from logscope.model import Event, Finding, PhaseSpan, Pos, Worker
from logscope.units import GIB, Quantity, gib

_CHAINED = 150  # lines: of the tracebacks between the first exception of a failed capture and SGLang's banner
CAPTURE_FAILED = "failure.capture_failed"
GRAPHS = "cuda_graph"
_LATEST_STEPS = 2
_CRASHES = ("failure.fatal_python_error", "failure.signal")  # that say nothing of why
PLENTY = 2 * GIB  # free at the begin of a capture: what then fails does not fail for want of memory


def own_events(case: Case) -> list[tuple[Event, Worker | None]]:
    """Return what the rank of the failure said before it, each with its worker; of all ranks where nobody knows whose it is."""
    pairs = zip(case.launch.events, case.launch.workers, strict=True)
    before = [(event, worker) for event, worker in pairs if is_before(event, case.root) and event.pattern.is_of_a_rank]
    return [pair for pair in before if pair[0].rank == case.root.rank] or before


def last_free(case: Case) -> tuple[Quantity, Pos] | None:
    """Return what was free on the device of the rank when it last said so, and where."""
    for event, _ in reversed(own_events(case)):
        free = event.quantity("avail_mem_bytes")
        if free is not None:
            return free, event.pos
    return None


def is_loading(case: Case) -> bool:
    """Return whether weights were being loaded."""
    return case.phase == "load_weights" and case.is_open


def has_ended(case: Case, phase: str) -> bool:
    """Return whether the rank's target had ended a phase."""
    return any(
        event.pattern.phase == phase and event.pattern.edge == "end" and worker != "draft"
        for event, worker in own_events(case)
    )


def has_pools(case: Case) -> bool:
    """Return whether all pools of the rank's target stood."""
    later = (GRAPHS, "ready", "serving")
    return has_ended(case, "memory_pool") or any(event.pattern.phase in later for event, _ in own_events(case))


def is_serving(case: Case) -> bool:
    """Return whether the models were initialised: requests came, if only those of the warm-up."""
    events = [event for event in case.launch.events if is_before(event, case.root)]
    return case.was_ready or any(event.pattern.phase in ("ready", "serving") for event in events)


# ---- graph capture -----------------------------------------------------------------------------------------------------------


def capture_banner(case: Case) -> Event | None:
    """Return SGLang's "Capture cuda graph failed" that belongs to the failure."""
    if case.root.pattern.id == CAPTURE_FAILED:
        return case.root
    for event in case.launch.events:
        place = event.pos
        if event.pattern.id == CAPTURE_FAILED and place.file == case.root.pos.file:
            is_near = 0 <= place.line - case.root.pos.line < _CHAINED
            if is_near and (event.rank == case.root.rank or not (event.rank.tag and case.root.rank.tag)):
                return event
    return None


def is_capturing(case: Case) -> bool:
    """Return whether a graph was being captured."""
    return (case.phase == GRAPHS and case.is_open) or capture_banner(case) is not None


def graphs_named(case: Case) -> str:
    """Return what was being captured: "the decode graph", "the draft extend graph"."""
    banner = capture_banner(case)
    name = (banner.string("graph") or "") if banner else ""
    if "prefill" in name.lower():
        return "the prefill graph"
    span = _open_capture(case)
    return f"the {span.kind} graph" if span is not None and span.kind else "a graph"


def _open_capture(case: Case) -> PhaseSpan | None:
    line = case.root.pos.line
    spans = [
        span
        for span in case.launch.spans
        if span.phase == GRAPHS and span.begin is not None and is_before(span.begin, case.root)
    ]
    spans = [span for span in spans if span.end is None or span.end.pos.line > line]
    own = [span for span in spans if span.rank == case.root.rank] or spans
    return own[-1] if own else None


class Progress(Struct, frozen=True):
    """How far a capture was.

    Attributes:
        size: the one in hand.
        in_tokens: whether sizes are numbers of tokens; of requests otherwise.
        done: how many sizes were captured.
        total: how many there are.
        step_bytes: what the captured sizes took by the bars, in their order.
        sizes: all of them, ascending; empty where the log does not name them.
        pos: the last bar.
    """

    size: int
    in_tokens: bool
    done: int
    total: int
    step_bytes: tuple[float, ...]
    sizes: tuple[int, ...]
    pos: Pos

    @property
    def left(self) -> int:
        """How many sizes were still to come after the one in hand."""
        return max(0, self.total - self.done - 1)

    @property
    def is_measured(self) -> bool:
        """Whether enough sizes were captured to tell what another one takes: the first pays for what all share."""
        return len(self.step_bytes) > _LATEST_STEPS

    @property
    def each_bytes(self) -> float:
        """What another size takes at most: smaller ones take no more than the least of the latest that were captured."""
        return min(self.step_bytes[-_LATEST_STEPS:])


def progress_of(case: Case) -> Progress | None:
    """Return the state of the last progress bar before the failure, None where no bar names a size."""
    span = _open_capture(case)
    begun = span.begin.pos.line if span is not None and span.begin is not None else 0
    bars = [
        event
        for event in case.launch.events
        if event.pattern.id == "cuda_graph.progress" and is_before(event, case.root) and event.pos.line > begun
    ]
    if not bars:
        return None
    last = bars[-1]
    size, done, total = _size(last), last.quantity("done"), last.quantity("total")
    if size is None or done is None or total is None:
        return None
    in_tokens = last.quantity("num_tokens") is not None
    sizes = _sizes(case, begun, in_tokens=in_tokens)
    return Progress(size, in_tokens, int(done.value), int(total.value), _steps(bars), sizes, last.pos)


def _size(bar: Event) -> int | None:
    for name in ("bs", "num_tokens"):
        size = bar.quantity(name)
        if size is not None:
            return int(size.value)
    return None


def _steps(bars: Sequence[Event]) -> tuple[float, ...]:
    """Return what each captured size took: from what was free when it was begun to what was when the next one was."""
    free: dict[int | None, float] = {}
    for bar in bars:
        amount = bar.quantity("avail_mem_bytes")
        if amount is not None:
            free.setdefault(_size(bar), amount.value)
    begun = list(free.values())
    return tuple(max(0.0, before - after) for before, after in pairwise(begun))


def _sizes(case: Case, begun: int, *, in_tokens: bool) -> tuple[int, ...]:
    name = "num_tokens" if in_tokens else "bs"
    for event in reversed(case.launch.events):
        found = event.values.get(name)
        if isinstance(found, tuple) and is_before(event, case.root) and event.pos.line >= begun:
            return tuple(sorted(int(size) for size in found))
    for flag in () if in_tokens else ("cuda_graph_bs", "cuda_graph_bs_decode"):
        value = argument(case, flag)
        if isinstance(value, tuple):
            return tuple(sorted(size for size in value if isinstance(size, int)))
    return ()


def is_before(event: Event, root: Event) -> bool:
    """Return whether an event stands before another, in the same file."""
    return event.pos.file == root.pos.file and event.pos.line < root.pos.line


def beside_capture(case: Case) -> tuple[str, tuple[Pos, ...]]:
    """Return ", while capturing the decode graph with 12.60 GiB free: ..." and the line that says so; empty where it was no capture."""
    if case.was_ready or not is_capturing(case):
        return "", ()
    text, free = f", while capturing {graphs_named(case)}", last_free(case)
    if free is None:
        return text, ()
    text += f" with {gib(free[0].value)} GiB free"
    if free[0].low > PLENTY and case.said.pattern.id not in _CRASHES:
        text += ": not for want of memory, lowering the fraction will not help"
    return text, (free[1],)


def hint_of_capture(case: Case) -> tuple[Finding, ...]:
    """Warn of the list of solutions that SGLang prints after every failed capture, whatever it failed of."""
    banner, free = capture_banner(case), last_free(case)
    if banner is None or case.is_out_of_device_memory:
        return ()
    left = f"; {gib(free[0].value)} GiB were free" if free is not None else ""
    sentence = (
        f"SGLang's list of solutions (lower --mem-fraction-static, ...) is the same for every failed capture{left}."
    )
    return (Finding("sglang_hint", "warning", sentence, (banner.pos, *((free[1],) if free else ()))),)
