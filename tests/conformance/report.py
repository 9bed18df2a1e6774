"""The report of a run, for people."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from packaging.version import Version

from logscope.model import ReleaseRange

from .run import Finding, ReleaseResult

_LONGEST_LINE = 300


def table_lines(results: Sequence[ReleaseResult]) -> list[str]:
    """Return the table release x phase: recognised messages, then those that bear on the launch and the faults."""
    counts = [Counter(_phases(result)) for result in results]
    phases = sorted({phase for count in counts for phase in count})
    lines = [
        " ".join(
            ["release".ljust(14), *(phase[:12].rjust(12) for phase in phases), "bearing".rjust(8), "faults".rjust(7)]
        )
    ]
    for result, count in zip(results, counts, strict=True):
        bearing = {f.place for f in result.findings if f.bears}
        faults = sum(1 for f in result.findings if f.fault)
        cells = [str(count[phase] or "").rjust(12) for phase in phases]
        lines.append(" ".join([result.release.ljust(14), *cells, str(len(bearing)).rjust(8), str(faults).rjust(7)]))
    return lines


def _phases(result: ReleaseResult) -> list[str]:
    """Return the phase of each message that fits a form, each message once a phase."""
    found = {(form.partition(".")[0], finding.place) for finding in result.findings for form in finding.forms}
    return [phase for phase, _ in found]


def fault_lines(results: Sequence[ReleaseResult]) -> list[str]:
    """Return every fault once, with the releases that have it and the place in the last of them."""
    grouped: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for result in results:
        for finding in result.findings:
            if finding.fault:
                what = "" if finding.fault == "number" else finding.what
                grouped.setdefault((finding.fault, finding.template, what), []).append((result.release, finding))
    lines = []
    for (fault, _, _), found in sorted(grouped.items()):
        first, (last, finding) = found[0][0], found[-1]
        releases = first if first == last else f"{first}..{last}"
        lines.append(
            f"{fault} ({finding.bears or 'any'}) {releases} {finding.place} {finding.function} {finding.what}".rstrip()
        )
        lines.append(f"    {finding.line.strip()[:_LONGEST_LINE]!r}")
    return lines


def inference_lines(results: Sequence[ReleaseResult]) -> list[str]:
    """Return how well the releases are inferred from their own lines, faults first."""
    releases = [result.release for result in results]
    lines = [
        f"release inference: {result.release} is not in what its own lines allow ({_text(result.allowed)})"
        for result in results
        if not contains(result.allowed, result.release) or not contains(result.allowed_minimal, result.release)
    ]
    for title, ranges in (
        ("all lines", [result.allowed for result in results]),
        ("a minimal launch", [result.allowed_minimal for result in results]),
    ):
        sizes = [sum(contains(allowed, release) for release in releases) for allowed in ranges]
        lines.append(
            f"release inference from {title}: median {statistics.median(sizes):g} of {len(releases)} releases, "
            f"at least {min(sizes)}, at most {max(sizes)}"
        )
    return lines


def contains(allowed: ReleaseRange, release: str) -> bool:
    """Tell whether a release is in a range."""
    version = Version(release)
    if allowed.empty or (allowed.since is not None and version < Version(allowed.since)):
        return False
    return allowed.until is None or version < Version(allowed.until)


def _text(allowed: ReleaseRange) -> str:
    return "none" if allowed.empty else f"{allowed.since or ''}..{allowed.until or ''}"
