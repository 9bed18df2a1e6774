"""``logscope.explain``: why a launch failed or what limits it, where its memory went, and what to set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logscope.api._html import report_html
from logscope.api.launches import Log, views_of
from logscope.explainer import Explanation, GivenCell, Question, check_question, explain_launches
from logscope.frames import frame_of
from logscope.model import Finding
from logscope.report import Report
from logscope.report.explain import explain_report
from logscope.safe import clean_lines
from logscope.server_args import ArgValue

if TYPE_CHECKING:
    import pandas


class ExplanationView:
    """What is to be said of one launch. ``explanation`` holds all of it, in bytes, tokens and seconds."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @property
    def verdict(self) -> str:
        """The sentences that come first: how it went, why, and what to set."""
        return self.explanation.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, errors first."""
        return self.explanation.findings

    @property
    def frame(self) -> pandas.DataFrame:
        """The findings, one a row."""
        return _frame(self._report())

    def _report(self) -> Report:
        return explain_report([self.explanation])

    def __str__(self) -> str:
        return clean_lines(self.verdict)

    def __repr__(self) -> str:
        return f"<explanation of launch {self.explanation.launch.number}: {self}>"

    def _repr_html_(self) -> str:
        return report_html(self._report())


def _frame(report: Report) -> pandas.DataFrame:
    assert report.records is not None, "this report has rows"
    return frame_of(report.records.rows, report.records.schema)


def explain(
    log: Log,
    *,
    what_if: Mapping[str, ArgValue] | None = None,
    claims: Mapping[str, ArgValue] | None = None,
    cell_bytes: float | None = None,
) -> ExplanationView:
    """Explain a launch, the last one of a log.

    Args:
        log: a log, several (nodes of one launch), or what ``read`` gives.
        what_if: argument -> value to try, such as ``{"mem_fraction_static": 0.85}``.
        claims: argument -> value that somebody says was in force; it is held against the log.
        cell_bytes: bytes of KV cache per token and rank, where the log does not tell them.

    Raises:
        logscope.LogscopeError: a log is missing, unreadable, or holds no launch; a what-if that is not modelled.
    """
    source = None if cell_bytes is None else GivenCell(cell_bytes, "cell_bytes")
    question = Question(what_if or {}, claims or {}, source)
    check_question(question)
    views = views_of(log)
    return ExplanationView(explain_launches([view.launch for view in views], views[-1].packs, question)[-1])
