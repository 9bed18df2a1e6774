"""Read pattern files into plain data, and say with file:line what in them is not understood."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast, get_args

from logscope.errors import PackError
from logscope.packs.types import (
    Blame,
    Block,
    Edge,
    Ends,
    Envelope,
    Field,
    Form,
    Packs,
    Pairs,
    Pattern,
    Phase,
    Place,
    Prefix,
    SaidBy,
    Sample,
    Secret,
)
from logscope.units import UNIT_NAMES, result_name

Table = Mapping[str, object]
T = TypeVar("T")

ENVELOPE = "envelope.toml"
_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[\w.]+)\s*\]\]?")


def builtin_dir() -> Path:
    """Return the folder of the pattern files that come with logscope."""
    inside = Path(__file__).parent.parent / "_packs"
    return inside if inside.is_dir() else Path(__file__).parent.parent.parent / "patterns"


def load_packs(extra_dirs: Iterable[Path] = ()) -> Packs:
    """Read the built-in pattern files and those of ``extra_dirs``.

    Raises:
        PackError: a file is not TOML, or says something that docs/patterns.md does not know. Samples are not tried here:
            ``packcheck.check_packs`` does that.
    """
    builtin = sorted(builtin_dir().glob("*.toml"))
    files = [(path, f"patterns/{path.name}") for path in builtin]
    for directory in extra_dirs:
        found = sorted(directory.glob("*.toml")) if directory.is_dir() else []
        if not found:
            raise PackError(
                [
                    f"{directory}: no pattern file (*.toml) in this folder\n  do: give --patterns a folder that holds some"
                ]
            )
        files.extend((path, str(path)) for path in found)
    return read_files(files)


def read_files(files: Iterable[tuple[Path, str]]) -> Packs:
    """Read pattern files given as (path, name to show) into one set.

    Raises:
        PackError: with all problems of all files.
    """
    reader = _Reader()
    for path, name in files:
        reader.read(path, name)
    if reader.problems:
        raise PackError(reader.problems)
    phases = dict(sorted(reader.phases.items(), key=lambda item: item[1].order))
    envelope = Envelope(**{key: tuple(value) for key, value in reader.envelope.items()})  # type: ignore[arg-type] # keys are its fields
    return Packs(phases, tuple(reader.patterns), envelope, reader.aliases, tuple(reader.names))


class _Lines:
    """The lines on which the tables of one TOML file begin: tomllib does not keep them."""

    def __init__(self, text: str) -> None:
        self._of: dict[str, list[int]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            header = _HEADER.match(line)
            if header:
                self._of.setdefault(header["name"], []).append(number)

    def next(self, name: str) -> int:
        """Return the line of the next table of this name, in file order."""
        waiting = self._of.get(name)
        return waiting.pop(0) if waiting else 1


@dataclass
class _Reader:
    """Collects what the files hold, and every problem."""

    phases: dict[str, Phase] = field(default_factory=dict)
    patterns: list[Pattern] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    envelope: dict[str, list[object]] = field(
        default_factory=lambda: {name: [] for name in ("noise", "outer", "sglang", "suffix", "blocks", "secrets")}
    )

    def problem(self, place: Place, what: str, do: str) -> None:
        self.problems.append(f"{place}: {what}\n  do: {do}")

    def read(self, path: Path, name: str) -> None:
        self.names.append(name)
        try:
            text = path.read_text(encoding="utf-8")
            document: Table = tomllib.loads(text)
        except (OSError, UnicodeDecodeError) as error:
            self.problem(Place(name, 1), f"cannot be read: {error}", "give a readable UTF-8 file")
            return
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"at line (\d+)", str(error))
            self.problem(
                Place(name, int(at[1]) if at else 1), f"not TOML: {error}", "mend the syntax; regexes go into '''...'''"
            )
            return
        lines = _Lines(text)
        if path.name == ENVELOPE:
            self._read_envelope(document, name, lines)
        else:
            self._read_phase_file(document, name, lines)

    # -- values of tables ------------------------------------------------------------------------------------------------------

    def _known(self, table: Table, known: str, place: Place, what: str) -> None:
        names = known.split()
        for key in table:
            if key not in names:
                near = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(names)}"
                self.problem(place, f"unknown key '{key}' in {what}", hint)

    def _text(self, table: Table, key: str, place: Place, default: str = "", needed: bool = False) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            self.problem(place, f"'{key}' is {value!r}, not a text", f'write  {key} = "..."')
            return default
        if needed and not value:
            self.problem(place, f"'{key}' is missing", f'add  {key} = "..."')
        return value

    def _flag(self, table: Table, key: str, place: Place, default: bool = False) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.problem(place, f"'{key}' is {value!r}, not true or false", f"write  {key} = true")
            return default
        return value

    def _texts(self, table: Table, key: str, place: Place) -> tuple[str, ...]:
        value = table.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            self.problem(place, f"'{key}' is {value!r}, not a text or a list of texts", f'write  {key} = ["..."]')
            return ()
        return tuple(values)

    def _table(self, table: Table, key: str, place: Place) -> Table:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.problem(place, f"'{key}' is {value!r}, not a table", f"write  {key} = {{ ... }}")
            return {}
        return value

    def _tables(self, table: Table, key: str, place: Place) -> list[Table]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.problem(place, f"'{key}' is not a list of tables", f"write  [[{key}]]")
            return []
        return value

    def _choice(
        self, table: Table, key: str, choices: tuple[str, ...], place: Place, default: str | None
    ) -> str | None:
        value = table.get(key, default)
        if value is not None and value not in choices:
            near = difflib.get_close_matches(str(value), choices, 1)
            self.problem(
                place, f"'{key}' is {value!r}", f"did you mean '{near[0]}'?" if near else f"one of {', '.join(choices)}"
            )
            return default
        return value

    def _regex(self, text: str, place: Place, groups: tuple[str, ...] = ()) -> re.Pattern[str]:
        try:
            compiled = re.compile(text)
        except re.error as error:
            self.problem(place, f"not a regex: {error}: {text}", "mend the regex")
            return re.compile(r"(?!)")
        for group in groups:
            if group not in compiled.groupindex:
                self.problem(place, f"the regex has no group '{group}'", f"name it  (?P<{group}>...)")
        return compiled

    def _samples(self, table: Table, place: Place, lines: _Lines, header: str) -> tuple[Sample, ...]:
        samples = []
        for entry in self._tables(table, "sample", place):
            at = Place(place.file, lines.next(f"{header}.sample"))
            self._known(entry, "line want", at, "a sample")
            samples.append(Sample(self._text(entry, "line", at, needed=True), self._table(entry, "want", at), at))
        return tuple(samples)

    # -- phase files -----------------------------------------------------------------------------------------------------------

    def _read_phase_file(self, document: Table, name: str, lines: _Lines) -> None:
        self._known(document, "phase event", Place(name, 1), "a pattern file")
        place = Place(name, lines.next("phase"))
        phase_id = self._read_phase(self._table(document, "phase", place), place)
        for entry in self._tables(document, "event", place):
            self._read_event(entry, phase_id, Place(name, lines.next("event")), lines)

    def _read_phase(self, table: Table, place: Place) -> str:
        self._known(
            table, "id title order item pair_by dense once per_worker draft_model_types aliases", place, "[phase]"
        )
        phase_id = self._text(table, "id", place, needed=True)
        self.aliases.update({key: str(value) for key, value in self._table(table, "aliases", place).items()})
        if set(table) == {"id"} and phase_id in self.phases:  # more events for a phase that exists
            return phase_id
        order = table.get("order")
        if not isinstance(order, int):
            self.problem(
                place,
                f"'order' of phase '{phase_id}' is {order!r}, not a whole number",
                "add  order = 55  (its position in the launch)",
            )
            order = 0
        for other in self.phases.values():
            if other.order == order:
                self.problem(
                    place, f"order {order} is taken by phase '{other.id}' ({other.place})", "take a free number"
                )
            if other.id == phase_id:
                self.problem(
                    place,
                    f"phase '{phase_id}' exists already ({other.place})",
                    "to add events to it write only  id  in [phase]",
                )
        self.phases[phase_id] = Phase(
            id=phase_id,
            title=self._text(table, "title", place) or phase_id,
            order=order,
            place=place,
            item=self._text(table, "item", place) or None,
            pair_by=self._texts(table, "pair_by", place),
            dense=self._flag(table, "dense", place),
            once=self._flag(table, "once", place),
            per_worker=self._flag(table, "per_worker", place),
            draft_model_types=self._texts(table, "draft_model_types", place),
        )
        return phase_id

    def _read_event(self, table: Table, phase_id: str, place: Place, lines: _Lines) -> None:
        known = "id means edge said_by contains drift fallback closes worker opens_launch ends blame fields form"
        self._known(table, known, place, "an event")
        event_id = self._text(table, "id", place, needed=True)
        if event_id and not event_id.startswith(f"{phase_id}."):
            self.problem(
                place,
                f"event '{event_id}' is not led by its phase",
                f"call it '{phase_id}.{event_id.rpartition('.')[2]}'",
            )
        for other in self.patterns:
            if other.id == event_id:
                self.problem(
                    place,
                    f"event '{event_id}' exists already ({other.place})",
                    "add a [[event.form]] there, or take another id",
                )
        contains = self._texts(table, "contains", place)
        forms = tuple(
            self._read_form(entry, contains, Place(place.file, lines.next("event.form")), lines)
            for entry in self._tables(table, "form", place)
        )
        if not forms:
            self.problem(place, f"event '{event_id}' has no [[event.form]]", "add one, with a sample")
        pattern = Pattern(
            id=event_id,
            phase=phase_id,
            place=place,
            means=self._text(table, "means", place),
            edge=cast("Edge", self._choice(table, "edge", get_args(Edge), place, "point")),
            said_by=cast("SaidBy", self._choice(table, "said_by", get_args(SaidBy), place, "any")),
            contains=contains,
            drift=self._flag(table, "drift", place, default=True),
            fallback=self._flag(table, "fallback", place),
            closes=self._text(table, "closes", place) or None,
            worker=cast("None", self._choice(table, "worker", ("target", "draft"), place, None)),
            opens_launch=self._flag(table, "opens_launch", place),
            ends=cast("Ends | None", self._choice(table, "ends", get_args(Ends), place, None)),
            blame=cast("Blame", self._choice(table, "blame", get_args(Blame), place, "cause")),
            fields=self._read_fields(self._table(table, "fields", place), event_id, place),
            forms=forms,
        )
        if not pattern.literals and not pattern.closes:
            self.problem(
                place,
                f"event '{event_id}' has no literal",
                'add  contains = "..."  (a text that every such line holds)',
            )
        self.patterns.append(pattern)

    def _read_fields(self, table: Table, event_id: str, place: Place) -> dict[str, Field]:
        fields = {}
        for name, entry in table.items():
            if not isinstance(entry, dict):
                self.problem(
                    place,
                    f"field '{name}' of '{event_id}' is {entry!r}, not a table",
                    f'write  fields.{name} = {{ unit = "text" }}',
                )
                continue
            self._known(entry, "unit optional item default key map", place, f"field '{name}' of '{event_id}'")
            unit = self._choice(entry, "unit", UNIT_NAMES, place, None)
            if unit is None:
                self.problem(
                    place, f"field '{name}' of '{event_id}' has no known unit", f"one of {', '.join(UNIT_NAMES)}"
                )
                unit = "text"
            fields[name] = Field(
                name=name,
                unit=unit,
                result=result_name(name, unit),
                optional=self._flag(entry, "optional", place) or "default" in entry,
                item=self._text(entry, "item", place) or None,
                default=self._text(entry, "default", place) or None,
                key=self._text(entry, "key", place) or None,
                map={str(key): str(value) for key, value in self._table(entry, "map", place).items()},
            )
        return fields

    def _read_form(self, table: Table, contains: tuple[str, ...], place: Place, lines: _Lines) -> Form:
        self._known(table, "since until regex pairs contains open_end set sample rejects", place, "a form")
        text = self._text(table, "regex", place) or None
        pairs = self._read_pairs(self._table(table, "pairs", place), place) if "pairs" in table else None
        if (text is None) == (pairs is None):
            self.problem(place, "a form needs either 'regex' or 'pairs'", "write one of them")
        return Form(
            contains=self._texts(table, "contains", place) or contains,
            place=place,
            since=self._text(table, "since", place) or None,
            until=self._text(table, "until", place) or None,
            regex=text,
            pairs=pairs,
            open_end=self._flag(table, "open_end", place),
            set={key: str(value) for key, value in self._table(table, "set", place).items()},
            samples=self._samples(table, place, lines, "event.form"),
            rejects=self._texts(table, "rejects", place),
        )

    def _read_pairs(self, table: Table, place: Place) -> Pairs:
        self._known(table, "sep kv without", place, "'pairs'")
        return Pairs(
            self._text(table, "sep", place, ", "),
            self._text(table, "kv", place, "="),
            self._texts(table, "without", place),
        )

    # -- the envelope ----------------------------------------------------------------------------------------------------------

    def _read_envelope(self, document: Table, name: str, lines: _Lines) -> None:
        self._known(document, "noise outer sglang suffix block secret", Place(name, 1), "the envelope")
        self._each(document, name, lines, "noise", self._read_prefix, "noise")
        self._each(document, name, lines, "outer", self._read_prefix, "outer")
        self._each(document, name, lines, "sglang", self._read_prefix, "sglang")
        self._each(document, name, lines, "suffix", self._read_prefix, "suffix")
        self._each(document, name, lines, "block", self._read_block, "blocks")
        self._each(document, name, lines, "secret", self._read_secret, "secrets")

    def _each(
        self,
        document: Table,
        name: str,
        lines: _Lines,
        key: str,
        read: Callable[[Table, Place, _Lines, str], T],
        into: str,
    ) -> None:
        for entry in self._tables(document, key, Place(name, 1)):
            self.envelope[into].append(read(entry, Place(name, lines.next(key)), lines, key))

    def _read_prefix(self, table: Table, place: Place, lines: _Lines, header: str) -> Prefix:
        self._known(table, "id regex gate since until sample rejects", place, f"[[{header}]]")
        groups = ("tags",) if header == "sglang" else ()
        return Prefix(
            id=self._text(table, "id", place, needed=True),
            regex=self._regex(self._text(table, "regex", place, needed=True), place, groups),
            place=place,
            gate=self._text(table, "gate", place) or None,
            samples=self._samples(table, place, lines, header),
            rejects=self._texts(table, "rejects", place),
            since=self._text(table, "since", place) or None,
            until=self._text(table, "until", place) or None,
        )

    def _read_block(self, table: Table, place: Place, _lines: _Lines, header: str) -> Block:
        self._known(table, "id begins continues closes", place, f"[[{header}]]")
        return Block(
            id=self._text(table, "id", place, needed=True),
            begins=self._text(table, "begins", place, needed=True),
            continues=self._regex(self._text(table, "continues", place, needed=True), place),
            closes=self._regex(self._text(table, "closes", place) or r"\S", place),
            place=place,
        )

    def _read_secret(self, table: Table, place: Place, lines: _Lines, header: str) -> Secret:
        self._known(table, "id regex keep sample rejects", place, f"[[{header}]]")
        keep = self._text(table, "keep", place)
        return Secret(
            id=self._text(table, "id", place, needed=True),
            regex=self._regex(self._text(table, "regex", place, needed=True), place, ("secret",)),
            keep=self._regex(keep, place) if keep else None,
            place=place,
            samples=self._samples(table, place, lines, header),
            rejects=self._texts(table, "rejects", place),
        )
