"""The timeline report: how each launch went, what each phase took on which rank, and what memory was left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logscope.errors import UsageError
from logscope.frames import SCHEMA, Row, frame_rows, ledger_of
from logscope.ledger import LedgerRow
from logscope.model import Launch
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.report.types import Bars, Cell, Column, Range, Records, Report, Section, Table, TableRow, Text
from logscope.report.words import clip, headline, phase_title, ranks_text
from logscope.timeline import GAP, PhaseRow, phase_rows
from logscope.units import Quantity, count_text

JSON_SCHEMA = 1
_MOST_DETAILS = 8
_MOST_DRIFT = 5
_COLUMNS = (
    Column("Phase"),
    Column("Seconds", "s"),
    Column("Used GiB", "bytes"),
    Column("Free GiB", "bytes"),
    Column("Ranks"),
)
_LEDGER_COLUMNS = (
    Column("Item"),
    Column("Taken GiB", "bytes"),
    Column("Free GiB", "bytes"),
    Column("How"),
    Column("Lines"),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which ranks to show: those whose tag is ``only`` (all if None), each in rows of its own if ``unfold``."""

    only: str | None = None
    unfold: bool = False

    def ranks(self, launch: Launch) -> tuple[Rank, ...]:
        """Return the ranks chosen.

        Raises:
            UsageError: the launch has no such rank.
        """
        if self.only is None:
            return launch.ranks
        wanted = " ".join(self.only.upper().split())
        chosen = tuple(rank for rank in launch.ranks if wanted in (rank.tag.upper(), *rank.tag.upper().split()))
        if not chosen:
            has = ", ".join(rank.label for rank in launch.ranks[:16]) or "none"
            raise UsageError(f"no rank {self.only!r} in launch {launch.number}\n  do: take one of {has}")
        return chosen


def timeline_report(launches: Sequence[Launch], packs: Packs, selection: Selection) -> Report:
    """Return the report of ``logscope timeline``: one part per launch.

    Raises:
        UsageError: the selection names a rank that no launch has.
    """
    sections: list[Section] = []
    for launch in launches:
        sections.extend(_launch_sections(launch, packs, selection))
    rows: list[Row] = []
    for launch in launches:
        tags = {(rank.node, rank.tag) for rank in selection.ranks(launch)}
        rows.extend(row for row in frame_rows("timeline", launch, packs) if (row["node"], row["rank"]) in tags)
    data = {
        "schema": JSON_SCHEMA,
        "command": "timeline",
        "launches": [launch_data(launch, packs) for launch in launches],
    }
    return Report("timeline", tuple(sections), data, Records("timeline", SCHEMA["timeline"], rows))


def _launch_sections(launch: Launch, packs: Packs, selection: Selection) -> Iterator[Section]:
    style = {"ready": "good", "failed": "bad", "hung": "bad"}.get(launch.outcome.kind, "warning")
    if launch.ended is not None and launch.ended.kind == "failed":
        style = "bad"
    prefix = f"[{launch.number}] " if launch.number > 1 else ""
    yield Text((prefix + headline(launch, packs),), style)  # type: ignore[arg-type] # the table above holds styles only
    ranks = set(selection.ranks(launch))
    rows = [row for row in phase_rows(launch) if row.rank in ranks]
    if rows:
        yield _phase_table(rows, launch, packs, selection)
    bars = _memory_bars(rows, packs)
    if bars is not None:
        yield bars
    ledger = _ledger_table([row for row in ledger_of(launch, packs) if row.rank in ranks], launch)
    if ledger is not None:
        yield ledger
    yield Text(tuple(_facts(launch)), "aside")
    drift = tuple(_drift_lines(launch))
    if drift:
        yield Text(drift, "warning")


# -- phases --------------------------------------------------------------------------------------------------------------------

_Key = tuple[str, str | None, str | None]


def _phase_table(rows: Sequence[PhaseRow], launch: Launch, packs: Packs, selection: Selection) -> Table:
    groups: dict[_Key, list[PhaseRow]] = {}
    for row in rows:
        groups.setdefault((row.phase, row.worker, row.kind), []).append(row)
    shown: list[TableRow] = []
    for group in sorted(groups.values(), key=lambda group: min(row.order for row in group)):
        shown.extend(_group_rows(group, launch, packs, selection))
    return Table("", _COLUMNS, tuple(shown))


def _group_rows(group: Sequence[PhaseRow], launch: Launch, packs: Packs, selection: Selection) -> Iterator[TableRow]:
    title = _title(group[0], packs)
    used, after = _range(row.used for row in group), _range(row.after for row in group)
    opened = [row for row in group if row.is_open]
    is_split = len(group) > 1 and not (_agrees(used) and _agrees(after))
    own = {row.rank for row in group}
    who = f"{len(own)} alike" if len(own) == len(launch.ranks) > 1 else ranks_text(own, launch.ranks)
    if is_split:
        who = f"{len(own)} differ"
    if opened:
        who = f"open on {ranks_text((row.rank for row in opened), launch.ranks)}"
    elif is_split and after is not None and not _agrees(after):
        who = f"least: {min((row for row in group if row.after), key=lambda row: row.after.value if row.after else 0).rank.label}"
    yield TableRow((title, _range(row.duration for row in group), used, after, who), mark=bool(opened))
    if selection.unfold and len(launch.ranks) > 1:
        for row in sorted(group, key=lambda row: row.rank):
            yield _detail(row.rank.label, [row], "")
    elif is_split:
        yield from _details(group, launch)


def _details(group: Sequence[PhaseRow], launch: Launch) -> Iterator[TableRow]:
    """Yield one row for all ranks with the same memory figures, those with the least free memory first."""
    alike: dict[tuple[float | None, float | None], list[PhaseRow]] = {}
    for row in group:
        alike.setdefault((row.after.value if row.after else None, row.used.value if row.used else None), []).append(row)
    parts = sorted(alike.items(), key=lambda item: (item[0][0] if item[0][0] is not None else 0, -(item[0][1] or 0)))
    for _, rows in parts[:_MOST_DETAILS]:
        yield _detail(ranks_text((row.rank for row in rows), launch.ranks), rows, "")
    if len(parts) > _MOST_DETAILS:
        hidden = sum(len(rows) for _, rows in parts[_MOST_DETAILS:])
        yield TableRow((f"{hidden} more ranks: --ranks", None, None, None, ""), is_detail=True)


def _detail(title: str, rows: Sequence[PhaseRow], who: str) -> TableRow:
    numbers = (
        _range(row.duration for row in rows),
        _range(row.used for row in rows),
        _range(row.after for row in rows),
    )
    return TableRow((title, *numbers, who), is_detail=True)


def _title(row: PhaseRow, packs: Packs) -> str:
    if row.phase != GAP:
        return phase_title(row, packs)
    title = packs.phases[(row.kind or "").removeprefix("after ")].title
    return f"(after {title[:1].lower()}{title[1:]})"


def _range(numbers: Iterable[Quantity | None]) -> Cell:
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    return Range(min(known, key=lambda number: number.value), max(known, key=lambda number: number.value))


def _agrees(cell: Cell) -> bool:
    return not isinstance(cell, Range) or cell.agrees


# -- memory --------------------------------------------------------------------------------------------------------------------


def _memory_bars(rows: Sequence[PhaseRow], packs: Packs) -> Bars | None:
    """Return the free memory after each phase, on the rank that has the least."""
    least: dict[str, Quantity] = {}
    before = [row.before for row in rows if row.before is not None]
    for row in rows:
        if row.after is not None:
            title = _title(row, packs)
            if title not in least or row.after.value < least[title].value:
                least[title] = row.after
    if not before or not least:
        return None
    start = min(before[: len({row.rank for row in rows})], key=lambda number: number.value)
    bars = [("at the start", start), *least.items()]
    several = len({row.rank for row in rows}) > 1
    return Bars(
        f"Free memory after each phase, GiB{' (the rank with the least)' if several else ''}", "bytes", tuple(bars)
    )


def _ledger_table(rows: Sequence[LedgerRow], launch: Launch) -> Table | None:
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
    for row in own:
        if row.is_rounding or not row.bytes:
            continue
        where = f"{row.begin.line}-{row.end.line}"
        taken = Quantity(row.bytes, row.resolution)
        shown.append(TableRow((row.item, taken, Quantity(row.free_after, row.resolution), row.kind, where)))
    if len(launch.ranks) > 1:
        same = [rank for rank in left if left[rank] == left[poorest]]
        title = f"Where the memory of {poorest.label} went" + (
            f" ({len(same)} ranks end alike)" if len(same) > 1 else ""
        )
    else:
        title = "Where the memory went"
    return Table(title, _LEDGER_COLUMNS, tuple(shown))


# -- the rest ------------------------------------------------------------------------------------------------------------------


def _facts(launch: Launch) -> Iterator[str]:
    tally = launch.tally
    yield (
        f"{count_text(tally.lines)} lines: {count_text(tally.events)} recognised, {count_text(tally.drift)} in an unknown wording, "
        f"{count_text(tally.rest)} other. SGLang by its wording: {launch.releases}."
    )
    if launch.data_parallel == "replicas":
        yield "Data parallel: every DP number is a replica of the model with its own TP0."
    elif launch.data_parallel == "attention":
        yield "Data-parallel attention: all ranks hold one model; DP numbers are attention groups."
    yield from launch.notes


def _drift_lines(launch: Launch) -> Iterator[str]:
    for drift in launch.drift[:_MOST_DRIFT]:
        yield f"not recognised: {drift.pos}: {clip(drift.text, 160)} (like {', '.join(drift.patterns)})"
    if len(launch.drift) > _MOST_DRIFT:
        yield f"not recognised: {len(launch.drift) - _MOST_DRIFT} more lines; `logscope patterns gaps` lists them all"


def launch_data(launch: Launch, packs: Packs) -> dict[str, object]:
    """Return a launch for JSON: outcome, facts, and the frames as lists of objects."""
    outcome, ended = launch.outcome, launch.ended
    return {
        "launch": launch.number,
        "headline": headline(launch, packs),
        "outcome": outcome.kind,
        "reason": outcome.reason,
        "evidence": [{"file": pos.file, "line": pos.line} for pos in outcome.evidence],
        "ended": None
        if ended is None
        else {
            "kind": ended.kind,
            "reason": ended.reason,
            "evidence": [{"file": pos.file, "line": pos.line} for pos in ended.evidence],
        },
        "nodes": [
            {
                "file": node.file,
                "origin": node.origin or None,
                "node": node.number,
                "first_line": node.first_line,
                "last_line": node.last_line,
            }
            for node in launch.nodes
        ],
        "data_parallel": launch.data_parallel,
        "releases": {"since": launch.releases.since, "until": launch.releases.until, "empty": launch.releases.empty},
        "tally": {
            "lines": launch.tally.lines,
            "events": launch.tally.events,
            "drift": launch.tally.drift,
            "rest": launch.tally.rest,
        },
        "notes": list(launch.notes),
        **{name: frame_rows(name, launch, packs) for name in ("ranks", "phases", "timeline", "ledger", "args")},
        "drift": [
            {"file": drift.pos.file, "line": drift.pos.line, "text": drift.text, "patterns": list(drift.patterns)}
            for drift in launch.drift
        ],
    }
