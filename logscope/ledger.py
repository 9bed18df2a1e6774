"""Where each byte of a rank went: rows that add up from the free memory at the start to what is left.

Between two lines of a rank that state free memory lies an interval. What lines in it say was taken is a measured row; memory that a phase
took without stating it is derived from its two ends; what no line explains is a row of its own, never spread over the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from logscope.model import Event, Launch, Pos, Worker
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.timeline import item_quantities
from logscope.units import Quantity, count_text

Kind = Literal["measured", "derived", "unexplained"]
UNEXPLAINED = "unexplained"
_ROUNDING_BYTES = 64  # printed decimals do not end on whole bytes


class LedgerRow(Struct, frozen=True):
    """Memory taken (positive) or given back (negative) between two lines of a rank, in bytes.

    ``free_before - bytes == free_after``, and the next row starts where this one ends. ``resolution`` is the summed print resolution of
    the numbers behind it: an unexplained row within it is rounding. ``label`` tells pools of one name apart:
    as printed ("SWA"), else by their tokens.
    """

    rank: Rank
    worker: Worker | None
    phase: str
    item: str
    bytes: int
    resolution: int
    kind: Kind
    free_before: int
    free_after: int
    begin: Pos
    end: Pos
    label: str = ""

    @property
    def is_rounding(self) -> bool:
        """Whether the row is nothing but print resolution."""
        return self.kind == UNEXPLAINED and abs(self.bytes) <= self.resolution / 2


def build_ledger(launch: Launch, items: Mapping[str, str]) -> list[LedgerRow]:
    """Return the ledger of every rank that states free memory at least once, ranks in order.

    Args:
        launch: the launch.
        items: phase id -> what memory is called that the phase took without saying so ("weights").
    """
    lines: dict[Rank, list[tuple[Event, Worker | None]]] = {}
    for event, worker in zip(launch.events, launch.workers, strict=True):
        if event.pattern.is_of_a_rank:
            lines.setdefault(event.rank, []).append((event, worker))
    return [row for rank in sorted(lines) for row in _rank_ledger(lines[rank], items)]


def ledger_of(launch: Launch, packs: Packs) -> list[LedgerRow]:
    """Return the ledger of a launch, with the names that the pattern files give to what phases take."""
    return build_ledger(launch, {phase.id: phase.item for phase in packs.phases.values() if phase.item})


class _Taken(Struct, frozen=True):
    """An amount that a line says was taken."""

    event: Event
    worker: Worker | None
    item: str
    amount: Quantity


def _rank_ledger(lines: Sequence[tuple[Event, Worker | None]], items: Mapping[str, str]) -> Iterator[LedgerRow]:
    pending: list[_Taken] = []
    point: Event | None = None
    for event, worker in lines:
        pending.extend(_Taken(event, worker, name, amount) for name, amount in _summed(event).items())
        free = event.quantity("avail_mem_bytes")
        if free is None:
            continue
        left = int(free.value)
        rows = _interval(pending, point, (event, worker), left, items) if point else _opening(pending, event, left)
        yield from _balanced(rows, left + sum(row.bytes for row in rows))
        pending, point = [], event


def _summed(event: Event) -> dict[str, Quantity]:
    """Return what a line says was taken, one amount per name: K and V of a pool are one."""
    amounts: dict[str, Quantity] = {}
    for name, amount in item_quantities(event):
        amounts[name] = amounts[name] + amount if name in amounts else amount
    return amounts


def _opening(pending: Sequence[_Taken], first: Event, left: int) -> list[LedgerRow]:
    return [_measured(taken, taken.event.pos, first.pos, left) for taken in pending]


def _interval(
    pending: Sequence[_Taken], start: Event, stop: tuple[Event, Worker | None], free: int, items: Mapping[str, str]
) -> list[LedgerRow]:
    event, worker = stop
    before, after = start.quantity("avail_mem_bytes"), event.quantity("avail_mem_bytes")
    assert before is not None
    assert after is not None
    change = int(before.value) - int(after.value)
    resolution = int(before.resolution + after.resolution)
    rows = [_measured(taken, start.pos, event.pos, free) for taken in pending]
    rest = change - sum(row.bytes for row in rows)
    name = items.get(event.pattern.phase)
    if not rows and name is not None and event.pattern.edge == "end":
        return [_row(event, worker, name, change, resolution, "derived", start.pos)]
    if rows and abs(rest) <= _ROUNDING_BYTES:
        return [*rows[:-1], replace(rows[-1], bytes=rows[-1].bytes + rest)]
    if rest:
        resolution += sum(row.resolution for row in rows)
        rows.append(_row(event, worker, UNEXPLAINED, rest, resolution, "unexplained", start.pos))
    return rows


def _measured(taken: _Taken, begin: Pos, end: Pos, free: int) -> LedgerRow:
    event, amount = taken.event, taken.amount
    prefix = "draft " if taken.worker == "draft" and not taken.item.startswith("draft") else ""
    tokens = event.quantity("tokens")
    label = event.string("label") or (f"{count_text(tokens.value)} tokens" if tokens is not None else "")
    return LedgerRow(
        event.rank, taken.worker, event.pattern.phase, prefix + taken.item, int(amount.value), int(amount.resolution),
        "measured", free, free, begin, end, label,
    )  # fmt: skip


def _row(
    event: Event, worker: Worker | None, item: str, amount: int, resolution: int, kind: Kind, begin: Pos
) -> LedgerRow:
    prefix = "draft " if worker == "draft" and kind == "derived" else ""
    return LedgerRow(
        event.rank, worker, event.pattern.phase, prefix + item, amount, resolution, kind, 0, 0, begin, event.pos
    )


def _balanced(rows: Sequence[LedgerRow], free: int) -> Iterator[LedgerRow]:
    """Write the running balance into the rows."""
    for row in rows:
        yield replace(row, free_before=free, free_after=free - row.bytes)
        free -= row.bytes
