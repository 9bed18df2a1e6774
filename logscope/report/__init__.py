"""Reports: what a command says, before any output format."""

from logscope.report.types import Bars, Cell, Column, Range, Records, Report, Section, Table, TableRow, Text

__all__ = ["Bars", "Cell", "Column", "Range", "Records", "Report", "Section", "Table", "TableRow", "Text"]
