"""Parquet for data frames: the flat rows with their nullable types."""

from __future__ import annotations

import io

from logscope.errors import MissingExtraError, UsageError
from logscope.frames import frame_of
from logscope.report import Report

NAME = "parquet"
IS_BINARY = True


def render(report: Report) -> bytes:
    """Return the report's records as a Parquet file.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    if report.records is None:
        raise UsageError(f"{report.command} has no flat rows for parquet\n  do: -f json")
    try:
        import pyarrow  # noqa: F401 # pandas asks for it with a longer message
    except ImportError as error:
        raise MissingExtraError("writing parquet", "parquet") from error
    buffer = io.BytesIO()
    frame_of(report.records.rows, report.records.schema).to_parquet(buffer, index=False)
    return buffer.getvalue()
