"""``logscope.diff``: what differs between two launches, in which step, on which ranks, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logscope.api._html import report_html
from logscope.api.launches import Log, view_of
from logscope.checker.amounts import read_amount
from logscope.differ import Cause, Difference, Tolerance, diff_launches
from logscope.errors import UsageError
from logscope.frames import frame_of
from logscope.packs import Packs
from logscope.report import Report
from logscope.report.diff import Shown, diff_report
from logscope.safe import clean, clean_lines

if TYPE_CHECKING:
    import pandas


class DifferenceView:
    """What differs between two launches. ``difference`` holds all of it, in bytes, tokens and seconds."""

    def __init__(self, difference: Difference, packs: Packs) -> None:
        self.difference = difference
        self.packs = packs

    @property
    def verdict(self) -> str:
        """The sentences that come first: how each went, what is the cause, and what is not."""
        return "\n".join(self.difference.lines)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes, in the order of what they explain."""
        return self.difference.causes

    @property
    def is_changed(self) -> bool:
        """Whether a step, or how the launch went, changed beyond the tolerance."""
        return self.difference.is_changed

    @property
    def frame(self) -> pandas.DataFrame:
        """The steps that were compared, one a row, with those that are the same."""
        report = self._report(Shown(all_rows=True))
        assert report.records is not None, "this report has rows"
        return frame_of(report.records.rows, report.records.schema)

    def _report(self, shown: Shown) -> Report:
        return diff_report(self.difference, self.packs, shown)

    def __str__(self) -> str:
        return clean_lines(self.verdict)

    def __repr__(self) -> str:
        before, after = self.difference.before.name, self.difference.after.name
        return clean(f"<difference of {before} and {after}: {self.difference.lines[0]}>")

    def _repr_html_(self) -> str:
        return report_html(self._report(Shown()))


def diff(
    before: Log, after: Log, *, baselines: Sequence[Log] = (), tolerance: str | Tolerance | None = None
) -> DifferenceView:
    """Compare two launches, the last one of each log.

    Args:
        before: a launch that worked, as a log, several (nodes of one launch), or what ``read`` gives; figures are taken from it.
        after: the other one.
        baselines: more launches that worked: what they differ among themselves and from ``before`` counts as the same.
        tolerance: differences up to this are none: "0.5 GiB", "100 MiB", "1 %".

    Raises:
        logscope.LogscopeError: a log is missing, unreadable, or holds no launch; a tolerance that is no amount.
    """
    allowed = tolerance if isinstance(tolerance, Tolerance) else _tolerance(tolerance)
    first, second = view_of(before), view_of(after)
    others = [view_of(each).launch for each in baselines]
    difference = diff_launches([*others, first.launch], second.launch, second.packs, allowed)
    return DifferenceView(difference, second.packs)


def _tolerance(text: str | None) -> Tolerance:
    amount = read_amount(text) if text is not None else None
    if text is None:
        return Tolerance()
    if amount is None or amount.dimension not in ("bytes", "percent") or amount.value < 0:
        raise UsageError(f'tolerance {text!r}: no amount\n  do: tolerance="0.5 GiB", "100 MiB" or "1 %"')
    return Tolerance(share=amount.value) if amount.dimension == "percent" else Tolerance(bytes=amount.value)
