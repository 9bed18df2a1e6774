"""Memory for people: the free memory after each phase as bars, and where the memory of one rank went."""

from __future__ import annotations

from collections.abc import Sequence

from logscope.ledger import UNEXPLAINED, LedgerRow
from logscope.model import Launch, Pos
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.report.types import Bars, Column, Table, TableRow
from logscope.timeline import PhaseRow
from logscope.units import Quantity, gib
from logscope.words import inside_a_sentence, phase_title, rank_label

_START = ("", "free at the start")
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
    phase = phase_title(next(row for row in rows if row.before is not None), packs)
    bars = [(f"before {inside_a_sentence(phase)}", start), *least.items()]
    several = len({row.rank for row in rows}) > 1
    return Bars(
        f"Free memory after each phase, GiB{' (the rank with the least)' if several else ''}", "bytes", tuple(bars)
    )


def ledger_table(rows: Sequence[LedgerRow], launch: Launch) -> Table | None:
    """Return the ledger of the rank that had the least memory free at any time, among equals of the one with most unexplained.

    The title says how far the other ranks differ.
    """
    if not rows:
        return None
    least: dict[Rank, int] = {}
    unexplained: dict[Rank, int] = {}
    for row in rows:
        least[row.rank] = min(least.get(row.rank, row.free_before), row.free_before, row.free_after)
        unknown = abs(row.bytes) if row.kind == UNEXPLAINED else 0
        unexplained[row.rank] = max(unexplained.get(row.rank, 0), unknown)
    poorest = min(least, key=lambda rank: (least[rank], -unexplained[rank], rank))
    own = [row for row in rows if row.rank == poorest]
    stated = {event.pos for event in launch.events if event.quantity("avail_mem_bytes") is not None}
    how = "measured" if own[0].begin in stated else "derived"
    start = Quantity(own[0].free_before, own[0].resolution)
    shown = [TableRow(("free at the start", None, start, how, _lines(own[0].begin, own[0].begin, launch)))]
    free = own[0].free_before
    for row, after in zip(own, [*own[1:], None], strict=True):
        before = free
        free = after.free_after if after is not None and after.is_rounding else row.free_after  # as the log prints it
        if row.is_rounding or (not row.bytes and free == before):
            continue
        numbers = (Quantity(row.bytes, row.resolution), Quantity(free, row.resolution))
        shown.append(TableRow((_item(row, own), *numbers, row.kind, _lines(row.begin, row.end, launch))))
    title = "Where the memory went"
    if len(least) > 1:
        apart = _furthest(rows, own)
        others = f"the others differ by up to {gib(apart)} GiB" if apart else "the others are alike"
        title = f"Where the memory of {rank_label(poorest, launch.ranks)} went ({others})"
    return Table(title, _LEDGER_COLUMNS, tuple(shown))


def _item(row: LedgerRow, own: Sequence[LedgerRow]) -> str:
    """Name a row; with its label where another one of the rank has the same name."""
    is_alone = len({other.label for other in own if other.item == row.item}) == 1
    return row.item if is_alone or not row.label else f"{row.item} ({row.label})"


def _furthest(rows: Sequence[LedgerRow], own: Sequence[LedgerRow]) -> int:
    """Return the largest difference, beyond print resolution, between one rank and any other: in what it had, or took for one thing."""
    taken: dict[Rank, dict[tuple[str, str], int]] = {}
    steps: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.phase, row.item)
        amounts = taken.setdefault(row.rank, {_START: row.free_before})
        steps[_START] = max(steps.get(_START, 0), row.resolution)
        amounts[key] = amounts.get(key, 0) + row.bytes
        steps[key] = max(steps.get(key, 0), row.resolution)
    mine = taken[own[0].rank]
    apart = [
        abs(theirs.get(key, 0) - mine.get(key, 0))
        for theirs in taken.values()
        for key in {*theirs, *mine}
        if abs(theirs.get(key, 0) - mine.get(key, 0)) > steps[key]
    ]
    return max(apart, default=0)


def _lines(begin: Pos, end: Pos, launch: Launch) -> str:
    file = f"{begin.file}:" if len({node.file for node in launch.nodes}) > 1 else ""
    return f"{file}{begin.line}" if begin == end else f"{file}{begin.line}-{end.line}"
