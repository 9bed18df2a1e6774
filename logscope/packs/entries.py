"""From the tables of a pattern file to phases, patterns, fields and forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from logscope.packs.types import Blame, Edge, Ends, Field, Form, Pairs, Pattern, Phase, Place, SaidBy
from logscope.packs.values import FileValues, Table
from logscope.units import UNIT_NAMES, result_name


def read_phase(table: Table, phase_id: str, place: Place, values: FileValues) -> Phase:
    """Return the phase that a [phase] table describes."""
    order = table.get("order")
    return Phase(
        id=phase_id,
        title=values.text(table, "title", place) or phase_id,
        order=order if isinstance(order, int) else -1,
        place=place,
        item=values.text(table, "item", place) or None,
        pair_by=values.texts(table, "pair_by", place),
        dense=values.flag(table, "dense", place),
        once=values.flag(table, "once", place),
        per_worker=values.flag(table, "per_worker", place),
        draft_model_types=values.texts(table, "draft_model_types", place),
        frequent=values.texts(table, "frequent", place),
    )


def read_pattern(table: Table, phase_id: str, place: Place, values: FileValues) -> Pattern:
    """Return the event that an [[event]] table describes."""
    contains = values.texts(table, "contains", place)
    return Pattern(
        id=values.text(table, "id", place, needed=True),
        phase=phase_id,
        place=place,
        means=values.text(table, "means", place),
        edge=cast("Edge", values.choice(table, "edge", get_args(Edge), place, "point")),
        said_by=cast("SaidBy", values.choice(table, "said_by", get_args(SaidBy), place, "any")),
        logged=values.flag(table, "logged", place),
        contains=contains,
        drift=values.flag(table, "drift", place, default=True),
        fallback=values.flag(table, "fallback", place),
        closes=values.text(table, "closes", place) or None,
        worker=cast("None", values.choice(table, "worker", ("target", "draft"), place, None)),
        opens_launch=values.flag(table, "opens_launch", place),
        progress=values.flag(table, "progress", place, default=True),
        ends=cast("Ends | None", values.choice(table, "ends", get_args(Ends), place, None)),
        blame=cast("Blame", values.choice(table, "blame", get_args(Blame), place, "cause")),
        cause=values.text(table, "cause", place) or None,
        fields={
            name: _field(name, entry, values.key_place(place, f"fields.{name}"), values)
            for name, entry in values.table(table, "fields", place).items()
        },
        forms=tuple(
            _form(entry, contains, at, values) for entry, at in values.tables(table, "form", "event.form", place)
        ),
    )


def _field(name: str, entry: object, place: Place, values: FileValues) -> Field:
    if not isinstance(entry, dict):
        values.problem(
            place, f"field '{name}' is {entry!r}, not a table", f'write  fields.{name} = {{ unit = "text" }}'
        )
        return Field(name, "text", name)
    values.check_keys(entry, "unit optional item default key map", place, f"field '{name}'")
    if "unit" not in entry:
        values.problem(place, f"field '{name}' has no unit", f'add  unit = "...", one of {", ".join(UNIT_NAMES)}')
    unit = values.choice(entry, "unit", UNIT_NAMES, place, "text") or "text"
    return Field(
        name=name,
        unit=unit,
        result=result_name(name, unit),
        optional=values.flag(entry, "optional", place) or "default" in entry,
        item=values.text(entry, "item", place) or None,
        default=values.text(entry, "default", place) or None,
        key=values.text(entry, "key", place) or None,
        map={str(key): str(value) for key, value in values.table(entry, "map", place).items()},
    )


def _form(table: Table, contains: Sequence[str], place: Place, values: FileValues) -> Form:
    values.check_keys(table, "since until regex pairs contains open_end set sample rejects", place, "a form")
    text = values.text(table, "regex", place) or None
    pairs = _pairs(values.table(table, "pairs", place), values.key_place(place, "pairs"), values)
    if ("regex" in table) == ("pairs" in table):
        values.problem(place, "a form needs either 'regex' or 'pairs'", "write one of them")
    return Form(
        contains=values.texts(table, "contains", place) or tuple(contains),
        place=place,
        since=values.text(table, "since", place) or None,
        until=values.text(table, "until", place) or None,
        regex=text,
        pairs=pairs if "pairs" in table else None,
        open_end=values.flag(table, "open_end", place),
        set={key: str(value) for key, value in values.table(table, "set", place).items()},
        samples=values.samples(table, "event.form", place),
        rejects=values.texts(table, "rejects", place),
        is_builtin=values.is_builtin,
    )


def _pairs(table: Table, place: Place, values: FileValues) -> Pairs:
    values.check_keys(table, "sep kv without", place, "'pairs'")
    return Pairs(
        values.text(table, "sep", place, ", "),
        values.text(table, "kv", place, "="),
        values.texts(table, "without", place),
    )
