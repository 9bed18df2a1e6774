"""The table and the plot of a launch that serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from msgspec import Struct

from logscope.rank import Rank
from logscope.report.serving_view import View, duration_text, rate_text, together, width_text
from logscope.report.types import Bars, Column, Table, TableRow
from logscope.serving import DATED_FROM_S
from logscope.serving.summary import Cell, LaunchSum, summed
from logscope.units import Quantity, count_text

LONGEST_ROW = 80
_BETWEEN = 3  # columns of a terminal between those of a table


class _Figure(Struct, frozen=True):
    """A column of the table: its title, the value of a cell, and how it is written."""

    title: str
    of: Callable[[Cell], float | None]
    write: Callable[[float], str]


def _whole(value: float) -> str:
    return count_text(int(value))


def _short_count(value: float) -> str:
    """Write a count in six characters."""
    for least, step, letter in ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 10**3, "k")):
        if value >= least:
            return f"{value / step:.1f}{letter}"
    return count_text(int(value))


_FIGURES = (
    _Figure("tok/s", lambda cell: cell.gen_mean, rate_text),
    _Figure("run", lambda cell: cell["running_most"], _whole),
    _Figure("queue", lambda cell: cell["queue_most"], _whole),
    _Figure("usage", lambda cell: cell.usage[0] if cell.usage else None, lambda value: f"{value:.2f}"),
    _Figure("accept", lambda cell: cell.accept_mean, lambda value: f"{value:.2f}"),
    _Figure("prefilled", lambda cell: cell["new_tokens"], _short_count),
    _Figure("cached", lambda cell: cell.cache_hit_rate, lambda value: f"{value:.0%}"),
    _Figure("retracted", lambda cell: cell["retracted_reqs"], _whole),
)
_LEFT_OUT = ("cached", "prefilled", "accept", "queue", "run")  # where a row would be too long, in this order


def serving_table(view: View) -> Table | None:
    """Return the table of a launch: a row for each bucket and rank, and the sum of ranks that may be added; None where all is unknown."""
    totals = [view.launch.ranks[place].total for place in view.ranks]
    figures = [figure for figure in _FIGURES if any(figure.of(total) is not None for total in totals)]
    if not figures or not view.launch.cells:
        return None
    table = _table_with(view, figures)
    for title in _LEFT_OUT:
        if _length(table) <= LONGEST_ROW:
            break
        figures = [figure for figure in figures if figure.title != title]
        table = _table_with(view, figures)
    return table


def _length(table: Table) -> int:
    """Return how many columns of a terminal the longest row takes."""
    widths = [len(column.title) for column in table.columns]
    for row in table.rows:
        for place, cell in enumerate(row.cells):
            indent = 2 if row.is_detail and not place else 0
            widths[place] = max(widths[place], len(str(cell or "")) + indent)
    gutter = 2 if any(row.mark for row in table.rows) else 0
    return gutter + sum(widths) + _BETWEEN * (len(widths) - 1)


def _table_with(view: View, figures: Sequence[_Figure]) -> Table:
    launch = view.launch
    has_ranks = len(view.ranks) > 1
    columns = [Column("from" if launch.axis == "time" else "from line"), *([Column("rank")] if has_ranks else [])]
    columns += [Column(figure.title, "count") for figure in figures]
    rows: list[TableRow] = []
    for before, bucket in pairwise([None, *launch.buckets]):
        assert bucket is not None
        if before is not None and bucket - before > 1:
            silent = _width_of(launch, bucket - before - 1)
            rows.append(TableRow((f"({silent})", *[None] * (len(columns) - 1)), is_detail=True))
        rows += _rows_of(view, bucket, figures, has_ranks)
    title = f"Each {width_text(launch)}{_day(launch)}"
    has_gap = any(row.is_detail for row in rows)
    return Table(f"{title}; (..) is a stretch without a line" if has_gap else title, tuple(columns), tuple(rows))


def _width_of(launch: LaunchSum, buckets: int) -> str:
    amount = buckets * launch.width
    return duration_text(amount) if launch.axis == "time" else f"{count_text(int(amount))} lines"


def _day(launch: LaunchSum) -> str:
    first = launch.first_s
    if launch.axis == "line" or first is None or first < DATED_FROM_S:
        return ""
    return f" from {datetime.fromtimestamp(first, UTC):%Y-%m-%d} on"


def _rows_of(view: View, bucket: int, figures: Sequence[_Figure], has_ranks: bool) -> Iterator[TableRow]:
    launch = view.launch
    label = view.begin(bucket).removeprefix("line ")
    cells = [launch.cells.get((bucket, place), Cell()) for place in view.ranks]
    has_retracted = any(cell.count("retractions") for cell in cells)
    if view.is_folded:
        printed = (_span(figure, cells) for figure in figures)
        yield TableRow((label, f"each of {len(cells)}", *printed), mark=has_retracted)
    else:
        for place, cell in zip(view.ranks, cells, strict=True):
            who = [_short(launch, launch.ranks[place].rank)] if has_ranks else []
            yield TableRow(
                (label, *who, *(_written(figure, cell) for figure in figures)), mark=cell.count("retractions") > 0
            )
            label = ""
    total = together(view, bucket)
    if len(view.speakers) > 1 and total is not None:
        speaking = sum(1 for place in view.speakers if launch.cells.get((bucket, place), Cell()).gen_mean is not None)
        yield TableRow(("", f"sum of {speaking}", rate_text(total), *[None] * (len(figures) - 1)))


def _written(figure: _Figure, cell: Cell) -> str | None:
    value = figure.of(cell)
    return None if value is None else figure.write(value)


def _span(figure: _Figure, cells: Sequence[Cell]) -> str | None:
    """Write the least and the most of several ranks."""
    values = [value for cell in cells if (value := figure.of(cell)) is not None]
    if not values:
        return None
    low, high = figure.write(min(values)), figure.write(max(values))
    return low if low == high else f"{low}..{high}"


def _short(launch: LaunchSum, rank: Rank) -> str:
    """Return what tells a rank apart: its DP number where no other rank has it, else its tag."""
    same = [own for own in launch.ranks if own.rank.dp == rank.dp]
    return f"DP{rank.dp}" if rank.dp is not None and len(same) == 1 else rank.label


def serving_bars(view: View) -> Bars | None:
    """Return what was generated in each bucket as bars; of a server that only computes prompts, the prompt tokens."""
    launch = view.launch
    rows = [(bucket, total) for bucket in launch.buckets if (total := together(view, bucket)) is not None]
    title = "Generated token/s" + (f", sum of {len(view.speakers)} ranks" if len(view.speakers) > 1 else "")
    if not rows:
        title = "Prompt tokens computed" + (f", sum of {len(view.speakers)} ranks" if len(view.speakers) > 1 else "")
        rows = [(bucket, tokens) for bucket in launch.buckets if (tokens := _prefilled(view, bucket)) is not None]
    if len(rows) < 2:
        return None
    return Bars(
        f"{title}, each {width_text(launch)}",
        "count",
        tuple((view.begin(bucket), Quantity(amount, 0.01)) for bucket, amount in rows),
    )


def _prefilled(view: View, bucket: int) -> float | None:
    total = summed([view.launch.cells.get((bucket, place), Cell()) for place in view.speakers])
    return total["new_tokens"]
