"""Findings about bytes per token from elsewhere: not needed, not of this launch, or taken on trust."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.amounts import cell_text
from logscope.explainer._subject import Subject
from logscope.explainer.cell_source import Hint
from logscope.model import Finding
from logscope.sizing import Cell


def find(subject: Subject) -> Iterator[Finding]:
    """Yield what is to be said of the source of bytes per token that was given, if any was."""
    hint, cell = subject.hint, subject.sizing.cell
    if hint is None:
        return
    if cell is not None and cell is not hint.cell:
        yield _not_needed(hint, cell)
    elif hint.conflicts:
        yield _refused(hint)
    elif hint.unchecked:
        verb = "is" if len(hint.unchecked) == 1 else "are"
        sentence = f"{hint.option} is taken on trust: {', '.join(hint.unchecked)} {verb} not known, so a token may take other bytes here."
        yield Finding("hint_on_trust", "note", sentence)


def _not_needed(hint: Hint, own: Cell) -> Finding:
    sentence = f"{hint.option} is not needed: this log has bytes per token of its own, {cell_text(own.size)}"
    if hint.cell is None:
        return Finding("hint_not_needed", "note", f"{sentence}.")
    if own.size.meets(hint.cell.size) or own.charged.meets(hint.cell.size):
        return Finding("hint_not_needed", "note", f"{sentence}, and it agrees.")
    why = f" ({'; '.join(hint.conflicts)})" if hint.conflicts else ""
    return Finding("hint_not_needed", "warning", f"{sentence}. It says {cell_text(hint.cell.size)}{why}.")


def _refused(hint: Hint) -> Finding:
    what = f"its {cell_text(hint.cell.size)} bytes per token are" if hint.cell is not None else "it is"
    sentence = f"{hint.option} does not fit this launch, and {what} not used: {'; '.join(hint.conflicts)}."
    remedy = "Give --cell-bytes N if you know the number, or a source that agrees."
    return Finding("hint_refused", "warning", sentence, (), remedy)
