"""What a command has to say, before any format: sentences, tables, bars, and the data behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from logscope.units import Quantity

if TYPE_CHECKING:
    from logscope.checker import Checked  # only a check needs it

CellUnit = Literal["text", "bytes", "s", "count"]
Style = Literal["good", "bad", "warning", "aside", "plain"]


class Range(Struct, frozen=True):
    """The smallest and the largest of several printed numbers; one number where they agree within their resolution."""

    low: Quantity
    high: Quantity

    @property
    def agrees(self) -> bool:
        """Whether both can stand for one true value."""
        return self.low.meets(self.high)


Cell = str | int | Quantity | Range | None


class Column(Struct, frozen=True):
    """A column: its title, and what its numbers are."""

    title: str
    unit: CellUnit = "text"


class TableRow(Struct, frozen=True):
    """One row; ``is_detail`` rows belong to the row above them, ``mark`` makes one stand out."""

    cells: tuple[Cell, ...]
    is_detail: bool = False
    mark: bool = False


class Table(Struct, frozen=True):
    """A table for people."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]


class Bars(Struct, frozen=True):
    """Amounts to draw as bars, longest = full width."""

    title: str
    unit: CellUnit
    rows: tuple[tuple[str, Quantity], ...]


class Text(Struct, frozen=True):
    """Lines of text. ``good`` and ``bad`` are the sentence that says how a launch went. ``hang`` indents what of a line wraps."""

    lines: tuple[str, ...]
    style: Style = "plain"
    hang: int = 0


Section = Text | Table | Bars


class Records(Struct, frozen=True):
    """Flat rows for spreadsheets and data frames; ``schema`` is column -> (dtype, meaning)."""

    name: str
    schema: Mapping[str, tuple[str, str]]
    rows: Sequence[Mapping[str, str | int | float | bool | None]]


class Report(Struct, frozen=True):
    """All that a command says: ``sections`` for people, ``data`` for programs (JSON), ``records`` for tables of data.

    ``checked`` are the results of a check, for the formats of CI systems; None for any other command.
    """

    command: str
    sections: tuple[Section, ...]
    data: Mapping[str, object]
    records: Records | None = field(default=None)
    checked: Checked | None = None
