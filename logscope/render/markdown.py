"""Markdown for tickets and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from logscope.render._shared import cell_text, number_text
from logscope.report import Bars, Report, Table, Text
from logscope.safe import clean, without_commands

NAME = "markdown"
IS_BINARY = False

_SPECIAL = re.compile(r"[\\|`\[\]]")
_WORD = re.compile(r"[^\s<>&]+")
_LINK_MARKS = ("://", "www.", "@")  # what GitHub makes a link or a mention of


def render(report: Report) -> bytes:
    """Return the report's sections as GitHub-flavoured markdown."""
    parts = []
    for section in report.sections:
        if isinstance(section, Text):
            parts.append("\n".join(_text(section)))
        elif isinstance(section, Table):
            parts.append("\n".join(_table(section)))
        else:
            parts.append("\n".join(_bars(section)))
    return without_commands("\n\n".join(parts) + "\n").encode("utf-8")


def _escape(text: str) -> str:
    """Return a text that stands for itself: no HTML, image, link or mention; words with one of these are shown as code."""
    text = clean(text)
    parts, at = [], 0
    for match in _WORD.finditer(text):
        if any(mark in match[0] for mark in _LINK_MARKS):
            word = match[0].replace("`", "'").replace("|", r"\|")
            parts += [_plain(text[at : match.start()]), f"`{word}`"]
            at = match.end()
    return "".join([*parts, _plain(text[at:])])


def _plain(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return f"&gt;{escaped[1:]}" if escaped.startswith(">") else escaped


def _text(text: Text) -> Iterator[str]:
    is_verdict = text.style in ("good", "bad")
    for index, line in enumerate(text.lines):
        shown = f"**{_escape(line)}**" if is_verdict else _escape(line)
        is_last = index == len(text.lines) - 1
        yield (
            shown if is_last and is_verdict else f"{shown}  " if line else ""
        )  # two spaces end a line, else all is one


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"{_escape(table.title)}:\n"
    yield f"| {' | '.join(_escape(column.title) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if column.unit != 'text' else '---' for column in table.columns)}|"
    for row in table.rows:
        cells = [_escape(cell_text(cell, column.unit)) for cell, column in zip(row.cells, table.columns, strict=True)]
        cells[0] = f"&emsp;{cells[0]}" if row.is_detail else cells[0]
        cells = [f"**{cell}**" if row.mark and cell else cell for cell in cells]
        yield f"| {' | '.join(cells)} |"


def _bars(bars: Bars) -> Iterator[str]:
    yield f"{_escape(bars.title)}: " + " → ".join(
        f"{_escape(label)} {number_text(number, bars.unit)}" for label, number in bars.rows
    )
