"""The timeline report: how each launch went, what each phase took on which rank, and what memory was left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from logscope.errors import UsageError
from logscope.frames import SCHEMA, Row, frame_rows
from logscope.ledger import ledger_of
from logscope.model import Launch, OutcomeKind
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.report.memory import ledger_table, memory_bars
from logscope.report.phases import phase_table
from logscope.report.positions import positions
from logscope.report.types import Records, Report, Section, Style, Text
from logscope.timeline import phase_rows
from logscope.units import count_text
from logscope.words import clip, headline, last_step, name_of, rank_runs

JSON_SCHEMA = 1
_MOST_DRIFT = 5
_STYLES: Mapping[OutcomeKind, Style] = {
    "ready": "good",
    "failed": "bad",
    "hung": "bad",
    "cut": "warning",
    "running": "warning",
}


class Selection(Struct, frozen=True):
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
        chosen = tuple(rank for rank in launch.ranks if rank.answers_to(self.only))
        if not chosen:
            has = ", ".join(rank_runs(launch.ranks, launch.ranks)) or "none"
            raise UsageError(f"no rank {self.only!r} in launch {launch.number}\n  do: take one of {has}")
        return chosen


def timeline_report(
    launches: Sequence[Launch], packs: Packs, selection: Selection, *, has_headline: bool = True
) -> Report:
    """Return the report of ``logscope timeline``: one part per launch; ``has_headline``: with the sentence that says how it went.

    Raises:
        UsageError: the selection names a rank that no launch has.
    """
    sections: list[Section] = list(_overview(launches))
    for launch in launches:
        own = list(_launch_sections(launch, packs, selection, len(launches) > 1))
        sections.extend(own if has_headline else own[1:])
    rows = [row for launch in launches for row in _rows("timeline", launch, packs, selection)]
    data = {
        "schema": JSON_SCHEMA,
        "command": "timeline",
        "launches": [launch_data(launch, packs, selection) for launch in launches],
    }
    return Report("timeline", tuple(sections), data, Records("timeline", SCHEMA["timeline"], rows))


def _overview(launches: Sequence[Launch]) -> Iterator[Section]:
    """Say how several files and several launches go together."""
    files = {node.file for launch in launches for node in launch.nodes}
    joined = [launch for launch in launches if len(launch.nodes) > 1]
    if len(files) < 2 and len(launches) < 2:
        return
    text = f"{_counted(len(launches), 'launch', 'launches')} in {_counted(len(files), 'file', 'files')}"
    for launch in joined:
        which = "one launch" if len(launches) == 1 else f"launch {launch.number}"
        text += f"; {name_of(launch)} are the nodes of {which}, by their server_args"
    if len(files) > 1 and not joined:
        text += "; no two of them are nodes of one launch, by their server_args"
    yield Text((f"{text}.",))


def _counted(count: int, one: str, several: str) -> str:
    return f"{count_text(count)} {one if count == 1 else several}"


def _launch_sections(launch: Launch, packs: Packs, selection: Selection, is_one_of_several: bool) -> Iterator[Section]:
    has_died = launch.ended is not None and launch.ended.kind == "failed"
    prefix = f"[{launch.number}] " if is_one_of_several else ""
    yield Text((prefix + headline(launch, packs),), "bad" if has_died else _STYLES[launch.outcome.kind])
    ranks = set(selection.ranks(launch))
    rows = [row for row in phase_rows(launch) if selection.only is None or row.rank in ranks]
    if rows:
        yield phase_table(rows, launch, packs, selection.unfold)
    bars = memory_bars(rows, packs)
    if bars is not None:
        yield bars
    ledger = ledger_table([row for row in ledger_of(launch, packs) if row.rank in ranks], launch)
    if ledger is not None:
        yield ledger
    yield Text(tuple(_facts(launch, packs)), "aside")
    drift = tuple(_drift_lines(launch))
    if drift:
        yield Text(drift, "warning")


def _facts(launch: Launch, packs: Packs) -> Iterator[str]:
    said = next((event.pattern for event in launch.events if event.pos in launch.outcome.evidence), None)
    if launch.outcome.kind == "failed" and said is not None and said.means:
        yield f"{said.id}: {said.means}."
    if launch.outcome.kind == "failed" and any(span.begin and not span.end for span in launch.spans):
        yield f"When it failed, {last_step(launch, packs)}."
    tally = launch.tally
    counted = f"{_counted(tally.lines, 'line', 'lines')}: {count_text(tally.events)} recognised"
    rest = f"{count_text(tally.drift)} in an unknown wording, {count_text(tally.rest)} other"
    yield f"{counted}, {rest}. SGLang release by its wording: {launch.releases}."
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


def _rows(name: str, launch: Launch, packs: Packs, selection: Selection) -> list[Row]:
    """Return the rows of a frame for the ranks chosen; all, also those of no known rank, if none is."""
    shown = {(rank.node, rank.tag) for rank in selection.ranks(launch)}
    own = frame_rows(name, launch, packs)
    return [row for row in own if selection.only is None or (row["node"], row["rank"]) in shown]


def launch_data(launch: Launch, packs: Packs, selection: Selection) -> dict[str, object]:
    """Return a launch for JSON: outcome, facts, and the frames as lists of objects."""
    outcome, ended = launch.outcome, launch.ended
    return {
        "launch": launch.number,
        "headline": headline(launch, packs),
        "outcome": outcome.kind,
        "reason": outcome.reason,
        "evidence": positions(outcome.evidence),
        "ended": None
        if ended is None
        else {
            "kind": ended.kind,
            "reason": ended.reason,
            "evidence": positions(ended.evidence),
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
        **{name: _rows(name, launch, packs, selection) for name in ("ranks", "phases", "timeline", "ledger")},
        "args": frame_rows("args", launch, packs),
        "drift": [
            {"file": drift.pos.file, "line": drift.pos.line, "text": drift.text, "patterns": list(drift.patterns)}
            for drift in launch.drift
        ],
    }
