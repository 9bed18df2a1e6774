"""The table of phases: what each took, folded where the ranks agree and unfolded where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from logscope.model import Launch
from logscope.packs import Packs
from logscope.report.types import Cell, Column, Range, Table, TableRow
from logscope.timeline import PhaseRow
from logscope.units import Quantity
from logscope.words import phase_title, rank_label, ranks_text

MOST_DETAILS = 8
_COLUMNS = (
    Column("Phase"),
    Column("Seconds", "s"),
    Column("Used GiB", "bytes"),
    Column("Free GiB", "bytes"),
    Column("Ranks"),
)


def phase_table(rows: Sequence[PhaseRow], launch: Launch, packs: Packs, unfold: bool) -> Table:
    """Return the phases of the ranks shown, in the order in which they begin; ``unfold`` gives every rank a row."""
    groups: dict[tuple[str, str | None], list[PhaseRow]] = {}
    for row in rows:
        groups.setdefault((phase_title(row, packs), row.worker), []).append(row)
    shown: list[TableRow] = []
    for group in sorted(groups.values(), key=lambda group: min(row.order for row in group)):
        shown.extend(_group_rows(group, launch, packs, unfold))
    return Table("", _COLUMNS, tuple(shown))


def _group_rows(group: Sequence[PhaseRow], launch: Launch, packs: Packs, unfold: bool) -> Iterator[TableRow]:
    title = phase_title(group[0], packs)
    used, after = _range(row.used for row in group), _range(row.after for row in group)
    opened = [row for row in group if row.is_open]
    is_split = len(group) > 1 and not (_agrees(used) and _agrees(after))
    own = {row.rank for row in group}
    who = f"{len(own)} alike" if len(own) == len(launch.ranks) > 1 else ranks_text(own, launch.ranks)
    if len(launch.ranks) == 1:
        who = ""
    if is_split:
        who = f"{len(own)} differ"
    if opened:
        who = "end not seen" if launch.outcome.kind == "ready" else "open"
        if len(opened) < len(launch.ranks):
            who += f": {ranks_text((row.rank for row in opened), launch.ranks)}"
    elif is_split and after is not None and not _agrees(after):
        _, poorest = min((row.after.value, row.rank) for row in group if row.after)
        who = f"least: {rank_label(poorest, launch.ranks)}"
    yield TableRow((title, _range(row.duration for row in group), used, after, who), mark=bool(opened))
    if unfold and len(launch.ranks) > 1:
        for row in sorted(group, key=lambda row: row.rank):
            yield _detail(rank_label(row.rank, launch.ranks), [row], "")
    elif is_split:
        yield from _details(group, launch)


def _details(group: Sequence[PhaseRow], launch: Launch) -> Iterator[TableRow]:
    """Yield one row for all ranks with the same memory figures, those with the least free memory first."""
    alike: dict[tuple[float | None, float | None], list[PhaseRow]] = {}
    for row in group:
        alike.setdefault((row.after.value if row.after else None, row.used.value if row.used else None), []).append(row)
    parts = sorted(alike.items(), key=lambda item: (item[0][0] if item[0][0] is not None else 0, -(item[0][1] or 0)))
    for _, rows in parts[:MOST_DETAILS]:
        yield _detail(ranks_text((row.rank for row in rows), launch.ranks), rows, "")
    if len(parts) > MOST_DETAILS:
        hidden = sum(len(rows) for _, rows in parts[MOST_DETAILS:])
        yield TableRow((f"{hidden} more ranks: --ranks", None, None, None, ""), is_detail=True)


def _detail(title: str, rows: Sequence[PhaseRow], who: str) -> TableRow:
    numbers = (
        _range(row.duration for row in rows),
        _range(row.used for row in rows),
        _range(row.after for row in rows),
    )
    return TableRow((title, *numbers, who), is_detail=True)


def _range(numbers: Iterable[Quantity | None]) -> Cell:
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    return Range(min(known, key=lambda number: number.value), max(known, key=lambda number: number.value))


def _agrees(cell: Cell) -> bool:
    return not isinstance(cell, Range) or cell.agrees
