"""JSON for programs: a contract, with a schema number."""

from __future__ import annotations

import json

from logscope.report import Report

NAME = "json"
IS_BINARY = False


def render(report: Report) -> bytes:
    """Return the report's data as one JSON object."""
    return (json.dumps(report.data, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
