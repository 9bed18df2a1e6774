"""A weight file cannot be read: it is cut or damaged, or the disk or network file system fails."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import on_rank, quoted

ID = "weights_io"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a file that cannot be read."""
    if not case.tells(ID):
        return None
    if case.said.pattern.id == "failure.read_error":
        remedy = "Look at the disk or the network file system of the weights; the files themselves may be whole."
        what = "a weight file could not be read"
    else:
        remedy = "Download the file again, and compare the sizes or checksums of all files: memory is irrelevant here."
        what = "a weight file is cut or damaged"
    file = case.said.string("file")
    message = case.said.string("message") or quoted(case)
    return Diagnosis(ID, f"{what}{on_rank(case)}{f' ({file})' if file else ''}: {message.rstrip('. ')}", None, remedy)
