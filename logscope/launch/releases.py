"""Which SGLang releases a log can come from: no release prints its version, but its wordings tell."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from logscope.model import Event, ReleaseRange


def infer_releases(events: Iterable[Event]) -> ReleaseRange:
    """Return the releases that all matched wordings allow; that of a line that may be cut says nothing."""
    return meet_ranges({(event.form.since, event.form.until) for event in events if event.whole})


def meet_ranges(ranges: Iterable[tuple[str | None, str | None]]) -> ReleaseRange:
    """Return the intersection of [since, until) ranges, None being open."""
    since: str | None = None
    until: str | None = None
    for begin, end in ranges:
        if begin is not None and (since is None or Version(begin) > Version(since)):
            since = begin
        if end is not None and (until is None or Version(end) < Version(until)):
            until = end
    if since is not None and until is not None and Version(since) >= Version(until):
        return ReleaseRange(empty=True)
    return ReleaseRange(since, until)
