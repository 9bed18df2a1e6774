"""Launches as pandas frames: one schema, nullable dtypes, every column there even when a frame is empty.

``docs/frames.md`` is generated from the schema below. Importing this module does not import pandas; calling its functions does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from logscope.ledger import ledger_of
from logscope.model import Drift, Event, Launch, Pos, Value
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.server_args import ArgValue, Command, ServerArgs
from logscope.timeline import PhaseRow, phase_rows, timeline_rows
from logscope.units import Quantity

if TYPE_CHECKING:
    import pandas

Cell = str | int | float | bool | None
Row = dict[str, Cell]
Schema = Mapping[str, tuple[str, str]]

INT, FLOAT, TEXT, BOOL = "Int64", "Float64", "string", "boolean"

_WHO: Schema = {
    "launch": (INT, "number of the launch, from 1"),
    "node": (INT, "node rank, where server_args tell it"),
    "rank": (TEXT, "tag as printed, 'DP0 TP3'; empty for the single rank that prints none"),
    "worker": (TEXT, "'target' or 'draft'; missing where a line is not about a model worker"),
}
_WHERE: Schema = {"file": (TEXT, "file as given"), "line": (INT, "physical line, from 1")}

SCHEMA: Mapping[str, Schema] = {
    "timeline": {
        **_WHO,
        "phase": (TEXT, "phase id"),
        "kind": (TEXT, "which of several spans of the phase (graphs: 'decode', 'draft extend')"),
        "event": (TEXT, "event id"),
        "edge": (TEXT, "'begin', 'end' or 'point'"),
        "time": (TEXT, "time as printed"),
        "elapsed_s": (FLOAT, "duration that the line prints, seconds"),
        "avail_mem_bytes": (INT, "free memory of the device at that moment"),
        "avail_mem_resolution_bytes": (INT, "step of the last printed digit"),
        "mem_usage_bytes": (INT, "memory that the line says was taken"),
        "mem_usage_resolution_bytes": (INT, "step of the last printed digit, summed over what was added"),
        **_WHERE,
    },
    "events": {
        **_WHO,
        "phase": (TEXT, "phase id"),
        "event": (TEXT, "event id; missing for drift"),
        "time": (TEXT, "time as printed"),
        "values": (TEXT, "all values in base units, as a JSON object"),
        "drift": (TEXT, "for a known line in an unknown wording: the event ids that it may be, separated by spaces"),
        "text": (TEXT, "for drift: the line"),
        **_WHERE,
    },
    "values": {
        **_WHO,
        "event": (TEXT, "event id"),
        "field": (TEXT, "name with the base unit: avail_mem_bytes, elapsed_s, tokens"),
        "value": (FLOAT, "number in base units; missing for texts"),
        "resolution": (FLOAT, "step of the last printed digit, in base units"),
        "text": (TEXT, "the value of a text; missing for numbers"),
        **_WHERE,
    },
    "phases": {
        **_WHO,
        "phase": (TEXT, "phase id, or 'gap' for a stretch in which no phase was open"),
        "kind": (TEXT, "which of several spans of the phase; for a gap: 'before', 'after' or 'beside' which phase"),
        "begin_time": (TEXT, "time of the first line as printed"),
        "end_time": (TEXT, "time of the last line as printed; missing while it is open"),
        "duration_s": (FLOAT, "seconds: the line's own figure where it prints one, else by the clock"),
        "duration_resolution_s": (FLOAT, "its step: 0.01 as printed, 2 by the clock"),
        "duration_from": (TEXT, "'printed' or 'clock'"),
        "before_bytes": (INT, "free memory at its begin line"),
        "after_bytes": (INT, "free memory at its end line"),
        "used_bytes": (INT, "memory taken, as printed, or before - after"),
        "used_resolution_bytes": (INT, "summed print resolution of used_bytes"),
        "used_from": (TEXT, "'printed' or 'derived'"),
        "open": (BOOL, "it began, and the log does not show its end"),
        "file": (TEXT, "file as given"),
        "begin_line": (INT, "line of the begin; missing where the log does not show it"),
        "end_line": (INT, "line of the end"),
    },
    "ranks": {
        "launch": _WHO["launch"],
        "node": _WHO["node"],
        "rank": _WHO["rank"],
        "dp": (INT, "data-parallel coordinate; missing where not printed, never 0"),
        "pp": (INT, "pipeline-parallel coordinate"),
        "tp": (INT, "tensor-parallel coordinate"),
        "ep": (INT, "expert-parallel coordinate"),
        "attn_cp": (INT, "attention context-parallel coordinate"),
        "moe_dp": (INT, "MoE data-parallel coordinate"),
        "gpu": (INT, "gpu_id of the oldest releases"),
        "extra": (TEXT, "other words of the tag"),
        "events": (INT, "number of events of this rank"),
    },
    "ledger": {
        **_WHO,
        "phase": (TEXT, "phase of the line that ends the row"),
        "item": (TEXT, "what took the memory"),
        "bytes": (INT, "memory taken; negative: given back"),
        "resolution_bytes": (INT, "summed print resolution behind it"),
        "kind": (TEXT, "'measured', 'derived' or 'unexplained'"),
        "free_before_bytes": (INT, "free memory before; the rows of a rank chain"),
        "free_after_bytes": (INT, "free_before_bytes - bytes"),
        "from": (TEXT, "file:line where the row starts"),
        "to": (TEXT, "file:line where it ends"),
    },
    "args": {
        "launch": _WHO["launch"],
        "name": (TEXT, "field of server_args"),
        "in_force": (TEXT, "value that server_args print, as text; missing where they do not print it"),
        "typed": (TEXT, "value in the launch command, as text; missing where the log shows none"),
        "env": (BOOL, "the name is an environment variable of the command, not a flag"),
    },
}


def frame_rows(name: str, launch: Launch, packs: Packs) -> list[Row]:
    """Return the rows of one frame as plain dictionaries: what needs no pandas uses these."""
    return list(_BUILDERS[name](launch, packs))


def build_frame(name: str, launches: Sequence[Launch], packs: Packs) -> pandas.DataFrame:
    """Return one frame over several launches: rows in launch order, columns and dtypes of ``SCHEMA[name]``."""
    return frame_of([row for launch in launches for row in frame_rows(name, launch, packs)], SCHEMA[name])


def frame_of(rows: Sequence[Mapping[str, Cell]], schema: Schema) -> pandas.DataFrame:
    """Return rows as a frame with the columns and dtypes of a schema."""
    import pandas

    return pandas.DataFrame(
        {name: pandas.Series([row.get(name) for row in rows], dtype=dtype) for name, (dtype, _) in schema.items()}
    )


class Frames:
    """The frames of one launch or of several; each is built when it is first asked for."""

    def __init__(self, launches: Sequence[Launch], packs: Packs) -> None:
        self._launches, self._packs = launches, packs
        self._built: dict[str, pandas.DataFrame] = {}

    def _frame(self, name: str) -> pandas.DataFrame:
        if name not in self._built:
            self._built[name] = build_frame(name, self._launches, self._packs)
        return self._built[name]

    @property
    def timeline(self) -> pandas.DataFrame:
        """One row per line of a rank that begins or ends a phase, or states memory."""
        return self._frame("timeline")

    @property
    def events(self) -> pandas.DataFrame:
        """One row per recognised line, and per line in an unknown wording."""
        return self._frame("events")

    @property
    def values(self) -> pandas.DataFrame:
        """One row per value of an event."""
        return self._frame("values")

    @property
    def phases(self) -> pandas.DataFrame:
        """One row per phase of a worker of a rank, and per gap between phases."""
        return self._frame("phases")

    @property
    def ranks(self) -> pandas.DataFrame:
        """One row per rank."""
        return self._frame("ranks")

    @property
    def ledger(self) -> pandas.DataFrame:
        """One row per stretch of memory of a rank; the rows of a rank add up."""
        return self._frame("ledger")

    @property
    def args(self) -> pandas.DataFrame:
        """One row per argument: typed and in force."""
        return self._frame("args")


# -- rows ----------------------------------------------------------------------------------------------------------------------


def _value(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.value


def _step(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.resolution


def _who(launch: Launch, rank: Rank, worker: str | None) -> Row:
    return {"launch": launch.number, "node": rank.node, "rank": rank.tag, "worker": worker}


def _where(pos: Pos) -> Row:
    return {"file": pos.file, "line": pos.line}


def _timeline(launch: Launch, _: Packs) -> Iterator[Row]:
    for row in timeline_rows(launch):
        yield {
            **_who(launch, row.rank, row.worker),
            "phase": row.phase,
            "kind": row.kind,
            "event": row.event,
            "edge": row.edge,
            "time": row.time,
            "elapsed_s": _value(row.elapsed),
            "avail_mem_bytes": _value(row.avail),
            "avail_mem_resolution_bytes": _step(row.avail),
            "mem_usage_bytes": _value(row.used),
            "mem_usage_resolution_bytes": _step(row.used),
            **_where(row.pos),
        }


def plain(value: Value) -> object:
    """Return a value as JSON knows it: numbers in base units, texts, lists, objects."""
    if isinstance(value, Quantity):
        return value.value
    if isinstance(value, ServerArgs):
        return dict(value.values)
    if isinstance(value, Command):
        return {"env": dict(value.env), "flags": dict(value.flags)}
    return list(value) if isinstance(value, tuple) else value


def _events(launch: Launch, _: Packs) -> Iterator[Row]:
    told: list[tuple[Event | Drift, str | None]] = [*zip(launch.events, launch.workers, strict=True)]
    told.extend((drift, None) for drift in launch.drift)
    for item, worker in told:
        is_event = isinstance(item, Event)
        yield {
            **_who(launch, item.rank, worker),
            "phase": item.pattern.phase if isinstance(item, Event) else None,
            "event": item.pattern.id if isinstance(item, Event) else None,
            "time": item.clock,
            "values": json.dumps({k: plain(v) for k, v in item.values.items()}) if isinstance(item, Event) else None,
            "drift": None if isinstance(item, Event) else " ".join(item.patterns),
            "text": None if is_event else item.text,
            **_where(item.pos),
        }


def _values(launch: Launch, _: Packs) -> Iterator[Row]:
    for event, worker in zip(launch.events, launch.workers, strict=True):
        for name, value in event.values.items():
            number = value if isinstance(value, Quantity) else None
            shown = value if isinstance(value, str) else json.dumps(plain(value))
            yield {
                **_who(launch, event.rank, worker),
                "event": event.pattern.id,
                "field": name,
                "value": _value(number),
                "resolution": _step(number),
                "text": None if number is not None else shown,
                **_where(event.pos),
            }


def _phases(launch: Launch, _: Packs) -> Iterator[Row]:
    for row in phase_rows(launch):
        yield _phase(launch, row)


def _phase(launch: Launch, row: PhaseRow) -> Row:
    first = row.begin or row.end
    assert first is not None
    return {
        **_who(launch, row.rank, row.worker),
        "phase": row.phase,
        "kind": row.kind,
        "begin_time": row.begin.clock if row.begin else None,
        "end_time": row.end.clock if row.end else None,
        "duration_s": _value(row.duration),
        "duration_resolution_s": _step(row.duration),
        "duration_from": row.duration_from,
        "before_bytes": _value(row.before),
        "after_bytes": _value(row.after),
        "used_bytes": _value(row.used),
        "used_resolution_bytes": _step(row.used),
        "used_from": row.used_from,
        "open": row.is_open,
        "file": first.pos.file,
        "begin_line": row.begin.pos.line if row.begin else None,
        "end_line": row.end.pos.line if row.end else None,
    }


def _ranks(launch: Launch, _: Packs) -> Iterator[Row]:
    for rank in launch.ranks:
        yield {
            "launch": launch.number,
            "node": rank.node,
            "rank": rank.tag,
            "dp": rank.dp,
            "pp": rank.pp,
            "tp": rank.tp,
            "ep": rank.ep,
            "attn_cp": rank.attn_cp,
            "moe_dp": rank.moe_dp,
            "gpu": rank.gpu,
            "extra": rank.extra,
            "events": sum(1 for event in launch.events if event.rank == rank),
        }


def _ledger(launch: Launch, packs: Packs) -> Iterator[Row]:
    for row in ledger_of(launch, packs):
        yield {
            **_who(launch, row.rank, row.worker),
            "phase": row.phase,
            "item": row.item,
            "bytes": row.bytes,
            "resolution_bytes": row.resolution,
            "kind": row.kind,
            "free_before_bytes": row.free_before,
            "free_after_bytes": row.free_after,
            "from": str(row.begin),
            "to": str(row.end),
        }


def _args(launch: Launch, _: Packs) -> Iterator[Row]:
    typed = launch.command.flags if launch.command else {}
    for name in dict.fromkeys([*launch.args.values, *typed]):
        yield {
            "launch": launch.number,
            "name": name,
            "in_force": _arg_text(launch.args.values, name),
            "typed": _arg_text(typed, name),
            "env": False,
        }
    for name, value in (launch.command.env if launch.command else {}).items():
        yield {"launch": launch.number, "name": name, "in_force": None, "typed": value, "env": True}


def _arg_text(values: Mapping[str, ArgValue], name: str) -> str | None:
    return None if name not in values else arg_text(values[name])


def arg_text(value: ArgValue) -> str:
    """Write the value of an argument as Python prints it, texts without quotes."""
    if isinstance(value, tuple):
        return f"[{', '.join(repr(item) for item in value)}]"
    return value if isinstance(value, str) else repr(value)


_Builder = Callable[[Launch, Packs], Iterable[Row]]
_BUILDERS: Mapping[str, _Builder] = {
    "timeline": _timeline,
    "events": _events,
    "values": _values,
    "phases": _phases,
    "ranks": _ranks,
    "ledger": _ledger,
    "args": _args,
}
