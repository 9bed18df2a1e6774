"""Memory for people: the free memory after each phase as bars, and where the memory of one rank went."""

from __future__ import annotations

from collections.abc import Sequence

from logscope.ledger import LedgerRow
from logscope.model import Launch
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.report.types import Bars, Column, Table, TableRow
from logscope.report.words import phase_title, rank_label
from logscope.timeline import PhaseRow
from logscope.units import Quantity

_LEDGER_COLUMNS = (
    Column("Item"),
    Column("Taken GiB", "bytes"),
    Column("Free GiB", "bytes"),
    Column("How"),
    Column("Lines"),
)


def memory_bars(rows: Sequence[PhaseRow], packs: Packs) -> Bars | None:
    """Return the free memory after each phase, on the rank that has the least."""
    least: dict[str, Quantity] = {}
    first: dict[Rank, Quantity] = {}
    for row in rows:
        if row.before is not None:
            first.setdefault(row.rank, row.before)
        if row.after is not None:
            title = phase_title(row, packs)
            if title not in least or row.after.value < least[title].value:
                least[title] = row.after
    if not first or not least:
        return None
    start = min(first.values(), key=lambda number: number.value)
    bars = [("at the start", start), *least.items()]
    several = len({row.rank for row in rows}) > 1
    return Bars(
        f"Free memory after each phase, GiB{' (the rank with the least)' if several else ''}", "bytes", tuple(bars)
    )


def ledger_table(rows: Sequence[LedgerRow], launch: Launch) -> Table | None:
    """Return the ledger of the rank that has the least memory left."""
    if not rows:
        return None
    left: dict[Rank, int] = {row.rank: row.free_after for row in rows}
    poorest = min(sorted(left), key=lambda rank: left[rank])
    own = [row for row in rows if row.rank == poorest]
    shown = [
        TableRow(
            ("free at the start", None, Quantity(own[0].free_before, own[0].resolution), "", str(own[0].begin.line))
        )
    ]
    for row, after in zip(own, [*own[1:], None], strict=True):
        if row.is_rounding or not row.bytes:
            continue
        free = after.free_after if after is not None and after.is_rounding else row.free_after  # as the log prints it
        where = f"{row.begin.line}-{row.end.line}"
        taken = Quantity(row.bytes, row.resolution)
        shown.append(TableRow((row.item, taken, Quantity(free, row.resolution), row.kind, where)))
    if len(launch.ranks) > 1:
        same = [rank for rank in left if left[rank] == left[poorest]]
        title = f"Where the memory of {rank_label(poorest, launch.ranks)} went" + (
            f" ({len(same)} ranks end alike)" if len(same) > 1 else ""
        )
    else:
        title = "Where the memory went"
    return Table(title, _LEDGER_COLUMNS, tuple(shown))
