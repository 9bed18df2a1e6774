"""Change every text of a finished report, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from logscope.model import Pos
from logscope.packs import Place
from logscope.report.types import Cell, Records, Report, Section, Table, TableRow, Text
from logscope.safe import map_texts

if TYPE_CHECKING:
    from logscope.checker import Checked, Result, Value  # only a check needs it

Change = Callable[[str], str]


def map_report(report: Report, change: Change) -> Report:
    """Return the report with every text changed: of its sections, its data, its records and its results."""
    return Report(
        report.command,
        tuple(map_section(section, change) for section in report.sections),
        {key: map_texts(value, change) for key, value in report.data.items()},
        None if report.records is None else _records(report.records, change),
        None if report.checked is None else map_checked(report.checked, change),
    )


def map_section(section: Section, change: Change) -> Section:
    """Return a section with its texts changed."""
    if isinstance(section, Text):
        return replace(section, lines=tuple(change(line) for line in section.lines))
    if isinstance(section, Table):
        columns = tuple(replace(column, title=change(column.title)) for column in section.columns)
        rows = tuple(_table_row(row, change) for row in section.rows)
        return replace(section, title=change(section.title), columns=columns, rows=rows)
    return replace(section, title=change(section.title), rows=tuple((change(name), n) for name, n in section.rows))


def _table_row(row: TableRow, change: Change) -> TableRow:
    cells: list[Cell] = [change(cell) if isinstance(cell, str) else cell for cell in row.cells]
    return replace(row, cells=tuple(cells))


def _records(records: Records, change: Change) -> Records:
    rows = [
        {name: change(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in records.rows
    ]
    return replace(records, rows=rows)


def map_checked(checked: Checked, change: Change) -> Checked:
    """Return results with their texts changed."""
    return replace(
        checked,
        source=change(checked.source),
        rules=change(checked.rules),
        verdict=change(checked.verdict),
        results=tuple(_result(result, change) for result in checked.results),
        properties={name: change(text) for name, text in checked.properties.items()},
    )


def _result(result: Result, change: Change) -> Result:
    rule = result.rule
    return replace(
        result,
        rule=replace(rule, why=change(rule.why), place=Place(change(rule.place.file), rule.place.line)),
        expected=change(result.expected),
        found=change(result.found),
        reason=change(result.reason),
        values=tuple(_value(value, change) for value in result.values),
        evidence=tuple(_pos(pos, change) for pos in result.evidence),
        cause=change(result.cause),
        remedy=change(result.remedy),
        accept=change(result.accept),
    )


def _value(value: Value, change: Change) -> Value:
    pos = None if value.pos is None else _pos(value.pos, change)
    return replace(value, rank=change(value.rank), text=change(value.text), pos=pos)


def _pos(pos: Pos, change: Change) -> Pos:
    return Pos(change(pos.file), pos.line)
