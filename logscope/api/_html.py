"""Reports as HTML fragments, for notebooks."""

from __future__ import annotations

from html import escape

from logscope.render._shared import table_html
from logscope.report import Report, Table, Text
from logscope.safe import clean


def report_html(report: Report) -> str:
    """Return the sentences of a report as paragraphs, the first in bold, and its tables."""
    parts = []
    for index, section in enumerate(report.sections):
        if isinstance(section, Text):
            text = "<br>".join(escape(clean(line)) for line in section.lines if line)
            parts.append(f"<p><b>{text}</b></p>" if index == 0 else f"<p>{text}</p>")
        elif isinstance(section, Table):
            parts.append(table_html(section))
    return "".join(parts)
