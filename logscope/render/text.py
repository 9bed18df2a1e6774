"""Text for people: fits 80 columns, reads well without colour."""

from __future__ import annotations

import io
import sys
import textwrap

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from logscope.render._shared import cell_text, number_text
from logscope.report import Bars, Report, Section, Table, Text
from logscope.report.mapping import map_section
from logscope.safe import clean, without_commands

NAME = "text"
IS_BINARY = False

PIPE_WIDTH = 80  # a pipe has no width; a pull request or a ticket has about this one
WIDEST = 120
_STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "warning": "yellow",
    "aside": "dim",
    "plain": "",
}
_NARROWEST_BAR = 10
_LONGEST_NAME = 28  # of a row: "kv_cache_dtype=fp8_e4m3" and "max_total_tokens=10000000" are shorter


def render(report: Report) -> bytes:
    """Return the report as plain text of 80 columns."""
    buffer = io.StringIO()
    _write(report, Console(file=buffer, width=PIPE_WIDTH, no_color=True, highlight=False, legacy_windows=False))
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return without_commands("\n".join(lines) + "\n").encode("utf-8")


def show(report: Report) -> None:
    """Write the report to the terminal, as wide as it is (at most 120 columns); to anything else what ``render`` returns."""
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        sys.stdout.buffer.write(render(report))
        sys.stdout.buffer.flush()
        return
    if console.width > WIDEST:
        console = Console(file=sys.stdout, width=WIDEST, highlight=False)
    with console.capture() as written:
        _write(report, console)
    sys.stdout.write(without_commands(written.get()))
    sys.stdout.flush()


def _write(report: Report, console: Console) -> None:
    can_draw = not console.options.ascii_only
    for index, section in enumerate(map_section(section, clean) for section in report.sections):
        starts_launch = isinstance(section, Text) and section.style in ("good", "bad")
        if index and (starts_launch or not isinstance(section, Text)):
            console.print()
        _write_section(section, console, can_draw)


def _write_section(section: Section, console: Console, can_draw: bool) -> None:
    if isinstance(section, Text):
        for line in section.lines:
            hang = " " * section.hang
            wrapped = textwrap.wrap(
                line, console.width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
            )
            for part in wrapped or [""]:
                console.print(RichText(part, style=_STYLES[section.style]), soft_wrap=True)
    elif isinstance(section, Bars):
        _write_bars(section, console, can_draw)
    else:
        _write_table(section, console)


def _write_table(table: Table, console: Console) -> None:
    if table.title:
        console.print(RichText(table.title, style="bold"))
    rich = RichTable(
        box=box.SIMPLE_HEAD if not console.options.ascii_only else box.ASCII, pad_edge=False, show_edge=False
    )
    is_named = all(len(str(row.cells[0])) <= _LONGEST_NAME for row in table.rows)
    for index, column in enumerate(table.columns):
        is_number = column.unit != "text"
        is_whole = is_number or (index == 0 and is_named)  # what a row is about is not broken in two
        rich.add_column(column.title, justify="right" if is_number else "left", no_wrap=is_whole, overflow="fold")
    # a mark is there without colour, too: in a column of its own, before the row
    marks = any(row.mark for row in table.rows)
    for row in table.rows:
        cells = [cell_text(cell, column.unit) for cell, column in zip(row.cells, table.columns, strict=True)]
        gutter = ("! " if row.mark else "  ") if marks else ""
        first = Padding(RichText(gutter + cells[0]), (0, 0, 0, 2 if row.is_detail else 0))
        style = "dim" if row.is_detail else "bold yellow" if row.mark else ""
        rich.add_row(first, *[RichText(cell) for cell in cells[1:]], style=style)
    console.print(rich)


def _write_bars(bars: Bars, console: Console, can_draw: bool) -> None:
    console.print(RichText(bars.title, style="bold"))
    longest = max((number.value for _, number in bars.rows), default=0)
    labels = max(len(label) for label, _ in bars.rows)
    figures = [number_text(number, bars.unit) for _, number in bars.rows]
    width = max(console.width - labels - max(map(len, figures)) - 5, _NARROWEST_BAR)
    for (label, number), figure in zip(bars.rows, figures, strict=True):
        filled = 0 if longest <= 0 else round(max(number.value, 0) / longest * width)
        bar = ("█" if can_draw else "#") * filled
        line = RichText(f"  {label:<{labels}}  {figure:>{max(map(len, figures))}} ")
        line.append(bar, style="cyan")
        console.print(line, no_wrap=True, overflow="crop")
