"""How cells look as text, the same in every format."""

from __future__ import annotations

import html

from logscope.report.types import Cell, CellUnit, Range, Table
from logscope.safe import clean
from logscope.units import Quantity, count_text, gib, seconds_text


def cell_text(cell: Cell, unit: CellUnit) -> str:
    """Write a cell, safe to show; nothing for what is not known."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return clean(cell)
    if isinstance(cell, int):
        return count_text(cell)
    if isinstance(cell, Range):
        low, high = number_text(cell.low, unit), number_text(cell.high, unit)
        return low if low == high or (unit == "bytes" and cell.agrees) else f"{low}..{high.removeprefix('~')}"
    return number_text(cell, unit)


def number_text(number: Quantity, unit: CellUnit) -> str:
    """Write a number with no more decimals than it was printed with."""
    if unit == "bytes":
        return gib(number.value, number.resolution)
    if unit == "s":
        return seconds_text(number.value, number.resolution)
    return count_text(number.value)


def table_html(table: Table) -> str:
    """Return a table as an HTML fragment, for notebooks."""
    head = "".join(f"<th>{_html(column.title)}</th>" for column in table.columns)
    body = []
    for row in table.rows:
        cells = [_html(cell_text(cell, column.unit)) for cell, column in zip(row.cells, table.columns, strict=True)]
        cells[0] = f"&emsp;{cells[0]}" if row.is_detail else cells[0]
        body.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    caption = f"<caption>{_html(table.title)}</caption>" if table.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _html(text: str) -> str:
    return html.escape(clean(text))
