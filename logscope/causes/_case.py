"""From a launch that failed to the case that causes judge: the line that says why, and where its rank was."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from logscope.causes._types import Case
from logscope.events import Recogniser
from logscope.model import Event, Launch, PhaseSpan, Pos
from logscope.packs import Packs
from logscope.scan import ReadState
from logscope.sizing import Sizing

CHAIN_LINES = 200  # of a traceback between two exceptions of one chain
_LAST_ERROR = "last_error"  # the block under an exception of NCCL
_WARNED_WITHIN = 50  # lines above it
_LAST_ERROR_WITHIN = 12  # lines below the exception: ranks interleave


def build_case(launch: Launch, packs: Packs, sizing: Sizing) -> Case | None:
    """Return the case of a launch that failed, before or after it was ready; None for any other launch."""
    place, said = failed_at(launch), (launch.ended or launch.outcome).event
    root = next((event for event in launch.events if event.pos == place and event.pattern.id == said), None)
    if root is None:
        return None
    span = _span_at(launch, root)
    return Case(
        launch=launch,
        packs=packs,
        sizing=sizing,
        root=root,
        said=_inner(root, packs)
        or _last_error(launch, root)
        or _last_warning(launch, root, packs)
        or _rest_of_chain(launch, root)
        or root,
        phase=span.phase if span else None,
        is_open=span is not None and (span.end is None or span.end.pos.line > root.pos.line) and span.begin is not None,
        was_ready=launch.outcome.kind == "ready" or (launch.outcome.kind == "cut" and launch.ended is not None),
    )


def failed_at(launch: Launch) -> Pos | None:
    """Return the line that says why a launch failed, None if it did not."""
    evidence: tuple[Pos, ...] = ()
    if launch.ended is not None:
        evidence = launch.ended.evidence if launch.ended.kind == "failed" else ()
    elif launch.outcome.kind == "failed":
        evidence = launch.outcome.evidence
    return evidence[0] if evidence else None


def _inner(root: Event, packs: Packs) -> Event | None:
    """Return what the message of a banner is, read as a line of its own: "Capture cuda graph failed: CUDA out of memory. ..."."""
    message = root.string("message")
    if root.pattern.blame != "banner" or not message:
        return None
    text = (
        f"Traceback (most recent call last):\n  File\n{message}\n"  # the last line of a traceback: any exception counts
    )
    found = [item for item in Recogniser(packs).read("", [text.encode()], ReadState()) if isinstance(item, Event)]
    return found[-1] if found and found[-1].pattern.ends else None


def _last_error(launch: Launch, root: Event) -> Event | None:
    """Return what stands under "Last error:" of an exception of NCCL, whose own line says only of what kind it is."""
    if root.pattern.cause != "collective_failed" or root.pattern.closes == _LAST_ERROR:
        return None
    return next((event for event in _below(launch, root) if event.pattern.closes == _LAST_ERROR), None)


def _last_warning(launch: Launch, root: Event, packs: Packs) -> Event | None:
    """Return what NCCL warned of last, a few lines above an exception that has no "Last error:"."""
    if root.pattern.id != "failure.nccl_error":
        return None
    above = [
        event
        for event in launch.events
        if event.pos.file == root.pos.file and 0 < root.pos.line - event.pos.line <= _WARNED_WITHIN
    ]
    warned = next((event for event in reversed(above) if event.pattern.id == "failure.nccl_warning"), None)
    message = warned.string("message") if warned is not None else None
    if warned is None or not message:
        return None
    text = f"Last error:\n{message}\n"
    found = [item for item in Recogniser(packs).read("", [text.encode()], ReadState()) if isinstance(item, Event)]
    return replace(found[-1], pos=warned.pos) if found else None


def _below(launch: Launch, root: Event) -> Iterator[Event]:
    """Yield the events of the same rank a few lines below a line."""
    for event in launch.events:
        is_near = event.pos.file == root.pos.file and 0 < event.pos.line - root.pos.line <= _LAST_ERROR_WITHIN
        if is_near and (event.rank == root.rank or not event.rank.tag):
            yield event


def _rest_of_chain(launch: Launch, root: Event) -> Event | None:
    """Return the exception that was raised while ``root`` was handled, where it tells a cause and ``root``, a generic one, does not.

    transformers turns a KeyError into "does not recognize this architecture": the first in time is the lesser one.
    """
    if root.pattern.cause is not None or not (root.pattern.fallback or root.pattern.closes):
        return None
    later = [
        e
        for e in launch.events
        if e.pos.file == root.pos.file and e.pos.line > root.pos.line and e.pattern.said_by != "bar"
    ]
    following = next(iter(later), None)
    if following is None or following.rank != root.rank or following.pos.line - root.pos.line > CHAIN_LINES:
        return None
    is_failure = (following.pattern.ends or "").startswith("failed") and following.pattern.blame == "cause"
    return following if is_failure and following.pattern.cause is not None else None


def _span_at(launch: Launch, root: Event) -> PhaseSpan | None:
    """Return the phase in which the rank of a line was: the last one that is open there, else the last one that ended."""
    phases = [span for span in launch.spans if span.phase != root.pattern.phase or span.begin or span.end]
    before = [span for span in phases if _begins_before(span, root)]
    own = [span for span in before if span.rank == root.rank] or before
    opened = [span for span in own if span.begin is not None and not _ends_before(span, root)]
    if opened:
        return opened[-1]
    return max(own, key=lambda span: _last_line(span), default=None)


def _begins_before(span: PhaseSpan, root: Event) -> bool:
    first = span.begin or span.end or span.points[0]
    return first.pos.file == root.pos.file and first.pos.line < root.pos.line


def _ends_before(span: PhaseSpan, root: Event) -> bool:
    return span.end is not None and span.end.pos.line < root.pos.line


def _last_line(span: PhaseSpan) -> int:
    return max(event.pos.line for event in (span.begin, span.end, *span.points) if event is not None)
