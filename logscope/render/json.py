"""JSON for programs: a contract, with a schema number."""

from __future__ import annotations

from logscope.report import Report
from logscope.safe import json_text

NAME = "json"
IS_BINARY = False


def render(report: Report) -> bytes:
    """Return the report's data as one JSON object."""
    return (json_text(report.data, indent=2) + "\n").encode("utf-8")
