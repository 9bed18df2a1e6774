"""CSV for spreadsheets: the flat rows, base units, one header line."""

from __future__ import annotations

import csv
import io

from logscope.errors import UsageError
from logscope.report import Report
from logscope.safe import spreadsheet_text, without_commands

NAME = "csv"
IS_BINARY = False


def render(report: Report) -> bytes:
    """Return the report's records; what is not known is empty, and no text is a formula."""
    if report.records is None:
        raise UsageError(f"{report.command} has no flat rows for csv\n  do: -f json")
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(report.records.schema), lineterminator="\n")
    writer.writeheader()
    for row in report.records.rows:
        writer.writerow({name: spreadsheet_text(cell) if isinstance(cell, str) else cell for name, cell in row.items()})
    return without_commands(buffer.getvalue()).encode("utf-8")
