"""What GitHub Actions gets beside the report: annotations of the run and a summary of the step."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

from logscope.commands import _shared as shared
from logscope.render import find_renderer
from logscope.report import Report

MOST_SUMMARY_BYTES = 900_000  # of a step: GitHub refuses more than 1 MiB
_CUT = b"\nThe rest did not fit in here: `logscope check LOG -o markdown=FILE` writes all of it.\n"


def write_for_actions(report: Report, formats: Collection[str]) -> None:
    """Annotate the run and add a summary to it, where this is a step of GitHub Actions; never instead of anything else.

    Annotations go to stderr, which Actions reads like stdout: a report on stdout stays what it is.

    Args:
        report: of a check.
        formats: what was asked for: who asked for annotations puts them where they are to be.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    if "github" not in formats:
        sys.stderr.write(find_renderer("github").render(report).decode())
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            _add_summary(Path(summary), find_renderer("markdown").render(report))
        except OSError as error:
            shared.say(f"no summary of the step: {error.strerror or error}")


def _add_summary(path: Path, text: bytes) -> None:
    """Add a summary to what is there already; one that does not fit ends at a line end."""
    size = path.stat().st_size if path.exists() else 0
    if size:
        text = b"\n" + text  # a table goes on up to an empty line
    room = MOST_SUMMARY_BYTES - size
    if len(text) > room:
        kept = text[: max(room - len(_CUT), 0)]
        text = kept[: kept.rfind(b"\n") + 1] + _CUT
    with path.open("ab") as file:
        file.write(text)
