"""Write events as they come: text for people, jsonl and csv for programs. Nothing is held back."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Protocol

from logscope.frames import plain
from logscope.model import Event
from logscope.reading import Spoken
from logscope.safe import clean, json_text, map_texts, spreadsheet_text, without_commands
from logscope.units import Quantity
from logscope.value_text import values_text

COLUMNS = ("launch", "file", "line", "time", "node", "rank", "worker", "phase", "event", "values", "resolution")


Change = Callable[[str], str]


class _Writer(Protocol):
    def write(self, spoken: Spoken) -> None:
        """Write one event or drift."""


def write_events(stream: Iterable[Spoken], sinks: Sequence[tuple[str, IO[str]]], change: Change | None = None) -> None:
    """Write every event to every (format, file); ``change`` is applied to every text."""
    writers = [_WRITERS[name](file, change or str) for name, file in sinks]
    for spoken in stream:
        for writer in writers:
            writer.write(spoken)


def event_object(spoken: Spoken, change: Change = str) -> dict[str, object]:
    """Return an event as the jsonl contract has it; a drift has ``event`` null, ``drift`` and ``text``."""
    item = spoken.item
    row: dict[str, object] = {
        "launch": spoken.launch,
        "file": change(item.pos.file),
        "line": item.pos.line,
        "time": item.clock,
        "node": spoken.node,
        "rank": item.rank.tag or None,
        "worker": spoken.worker,
        "phase": spoken.phase,
        "event": None,
        "values": {},
        "resolution": {},
    }
    if isinstance(item, Event):
        row["event"] = item.pattern.id
        row["values"] = {name: map_texts(plain(value), change) for name, value in item.values.items()}
        row["resolution"] = {
            name: value.resolution for name, value in item.values.items() if isinstance(value, Quantity)
        }
    else:
        row |= {"drift": list(item.patterns), "text": change(item.text)}
    return row


class _Jsonl:
    def __init__(self, file: IO[str], change: Change) -> None:
        self._file, self._change = file, change

    def write(self, spoken: Spoken) -> None:
        self._file.write(json_text(event_object(spoken, self._change)) + "\n")


class _Csv:
    def __init__(self, file: IO[str], change: Change) -> None:
        self._change = change
        self._rows = csv.DictWriter(file, (*COLUMNS, "drift", "text"), lineterminator="\n")
        self._rows.writeheader()

    def write(self, spoken: Spoken) -> None:
        row = event_object(spoken, self._change)
        for name in ("values", "resolution"):
            row[name] = json_text(row[name])
        row["drift"] = " ".join(spoken.item.patterns) if not isinstance(spoken.item, Event) else ""
        self._rows.writerow(
            {name: spreadsheet_text(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        )


class _Text:
    """One line an event: where, when, who, what, and the values with their units."""

    def __init__(self, file: IO[str], change: Change) -> None:
        self._file, self._change = file, change
        self._launch = 0

    def write(self, spoken: Spoken) -> None:
        item = spoken.item
        if spoken.launch != self._launch:
            self._line(f"launch {spoken.launch}: {item.pos.file}")
            self._launch = spoken.launch
        who = " ".join(part for part in (item.rank.tag, "draft" if spoken.worker == "draft" else "") if part)
        if isinstance(item, Event):
            what = f"{item.pattern.id}  {values_text(item.values)}"
        else:
            what = f"UNKNOWN WORDING of {', '.join(item.patterns)}: {item.text[:200]}"
        self._line(f"{item.pos.line:>6}  {item.clock or '':<19}  {who:<8}  {what}")

    def _line(self, text: str) -> None:
        self._file.write(without_commands(clean(self._change(text)).rstrip()) + "\n")


_WRITERS: Mapping[str, type[_Jsonl] | type[_Csv] | type[_Text]] = {"csv": _Csv, "jsonl": _Jsonl, "text": _Text}
FORMATS = tuple(_WRITERS)
