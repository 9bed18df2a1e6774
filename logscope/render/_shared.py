"""How cells look as text, the same in every format, and what the formats of a check share."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from logscope.checker import Checked, Result
from logscope.checker.types import LEVELS
from logscope.errors import UsageError
from logscope.report import Report
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


def checked_of(report: Report, name: str) -> Checked:
    """Return the results that a format of CI systems is made from.

    Raises:
        UsageError: the report is not that of a check.
    """
    if report.checked is None:
        raise UsageError(
            f"{name} needs a check, and this is {report.command}\n  do: logscope check LOG --rules FILE -f {name}"
        )
    return report.checked


def worst_first(checked: Checked) -> list[Result]:
    """Return what is broken or could not be judged: errors first, and of one level what is broken first."""
    return sorted((*checked.of("fail"), *checked.of("inconclusive")), key=lambda result: LEVELS[result.rule.level])


def named_results(results: Sequence[Result]) -> Iterator[tuple[str, Result]]:
    """Yield (name, result): the rule, its launch where there are several, and a number where that still is not unique."""
    several = len({result.launch for result in results}) > 1
    seen: set[str] = set()
    for result in results:
        base = clean(result.rule.id) + (f" [launch {result.launch}]" if several else "")
        number, name = 1, base
        while name in seen:
            number += 1
            name = f"{base} #{number}"
        seen.add(name)
        yield name, result


def summary_of(result: Result) -> str:
    """Return one line: what was expected, and what was found."""
    reason = f" ({result.reason})" if result.reason else ""
    word = "expected" if result.status == "fail" else "could not be judged: expected"
    return clean(f"{word} {result.expected}, found {result.found or 'nothing'}{reason}")
