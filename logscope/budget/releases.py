"""Which formula a release uses, and results over a range of releases: a log tells the release often only as a range."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Generic, TypeVar

from msgspec import Struct
from packaging.version import Version

from logscope.budget.interval import Interval, NotModelled

Result = TypeVar("Result")

FIRST = "0.1.13"
LAST_READ = "0.5.23"

# The releases whose arithmetic of the budget differs from that of the release before, so far as it is modelled here.
CHANGES = (
    *("0.1.18", "0.1.20", "0.1.21", "0.1.24", "0.2.7", "0.2.8", "0.2.10", "0.2.14", "0.2.14.post2", "0.2.15"),
    *("0.3.1", "0.3.1.post2", "0.3.6", "0.4.0", "0.4.1.post4", "0.4.3.post3", "0.4.4", "0.4.4.post4", "0.4.5.post3"),
    *(
        "0.4.6.post2",
        "0.4.6.post5",
        "0.4.7",
        "0.4.7.post1",
        "0.4.9",
        "0.4.9.post3",
        "0.5.2",
        "0.5.3",
        "0.5.3.post1",
        "0.5.3.post2",
    ),
    *("0.5.4.post1", "0.5.4.post2", "0.5.4.post3", "0.5.5.post1", "0.5.5.post3", "0.5.6", "0.5.7", "0.5.8", "0.5.9"),
    *("0.5.10", "0.5.11", "0.5.13", "0.5.14", "0.5.15", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21"),
    *("0.5.22", "0.5.23"),
)


@cache
def _version(release: str) -> Version:
    return Version(release)


def since(release: str, first: str) -> bool:
    """Return whether a release is ``first`` or later (PEP 440).

    Raises:
        packaging.version.InvalidVersion: the text is no release.
    """
    return _version(release) >= _version(first)


class ByRelease(Struct, Generic[Result], frozen=True):
    """A result and the releases that give it: from ``since`` on, before ``until``; None is open."""

    since: str
    until: str | None
    result: Result


def by_release(
    formula: Callable[[str], Result], since_release: str | None, until: str | None
) -> tuple[ByRelease[Result], ...]:
    """Return the results of a formula over a range of releases, neighbours with one result joined.

    Args:
        formula: takes a release.
        since_release: first possible release; None is 0.1.13.
        until: first release that is not possible; None is open.

    Returns:
        In order of release, at least one. More than one where the formula changed within the range: say so.

    Raises:
        ValueError: no release is in the range.
    """
    begin = since_release or FIRST
    if until is not None and since(begin, until):
        raise ValueError(f"no release from {begin} on is before {until}")
    starts = [begin]
    starts += [each for each in CHANGES if _version(each) > _version(begin) and not (until and since(each, until))]
    found: list[ByRelease[Result]] = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else until
        result = formula(start)
        if found and found[-1].result == result:
            found[-1] = ByRelease(found[-1].since, end, result)
        else:
            found.append(ByRelease(start, end, result))
    return tuple(found)


def union(results: tuple[ByRelease[Interval | NotModelled], ...]) -> Interval | NotModelled:
    """Return the interval that holds the results of all possible releases; not modelled if one of them is not."""
    joined: Interval | None = None
    for each in results:
        if isinstance(each.result, NotModelled):
            return each.result
        joined = each.result if joined is None else joined.hull(each.result)
    assert joined is not None, "by_release gives at least one result"
    return joined
