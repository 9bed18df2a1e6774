"""Read pattern files into plain data, and say with file:line what in them is not understood."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from logscope.errors import PackError
from logscope.packs.builtin import builtin_dir
from logscope.packs.entries import read_pattern, read_phase
from logscope.packs.envelope import joined, read_envelope
from logscope.packs.problems import Problem, pack_error
from logscope.packs.types import Envelope, Packs, Pattern, Phase, Place
from logscope.packs.values import FileValues, Table, suggestion

ENVELOPE = "envelope.toml"
NamedFile = tuple[Path, str]
_EVENT_KEYS = "id means edge said_by logged contains drift fallback closes worker opens_launch progress ends blame cause fields form"
_PHASE_KEYS = (
    "id title order item pair_by dense once per_worker draft_model_types frequent aliases noise_args arguments acts_on"
)


def pack_files(extra_dirs: Iterable[Path] = ()) -> list[NamedFile]:
    """Return the built-in pattern files and those of ``extra_dirs``, each with the name to show; a folder counts once.

    Raises:
        PackError: a folder is not there, or holds no pattern file.
    """
    files = [(path, f"patterns/{path.name}") for path in sorted(builtin_dir().glob("*.toml"))]
    seen = {builtin_dir().resolve()}
    problems = []
    for directory in extra_dirs:
        found = sorted(directory.glob("*.toml")) if directory.is_dir() else []
        if not found:
            why = "no pattern file (*.toml) in this folder" if directory.is_dir() else "no such folder"
            problems.append(f"{directory}: {why}\n  do: give a folder that holds pattern files")
        if directory.resolve() not in seen:
            files.extend((path, str(path)) for path in found)
        seen.add(directory.resolve())
    if problems:
        raise PackError(problems)
    return files


def read_files(files: Iterable[NamedFile]) -> Packs:
    """Read pattern files given as (path, name to show) into one set.

    Raises:
        PackError: with all problems of all files.
    """
    packs, problems = read_understood(files)
    if problems:
        raise pack_error(problems, packs.files)
    return packs


def read_understood(files: Iterable[NamedFile]) -> tuple[Packs, list[Problem]]:
    """Read of pattern files what can be understood; events with a problem are left out."""
    reader = _Reader()
    for path, name in files:
        reader.read(path, name)
    reader.check_extended()
    phases = dict(sorted(reader.phases.items(), key=lambda item: item[1].order))
    patterns = tuple(pattern for pattern in reader.patterns if pattern.phase in phases)
    packs = Packs(
        phases,
        patterns,
        reader.envelope,
        reader.aliases,
        tuple(reader.names),
        tuple(reader.noise_args),
        reader.acts_on,
        frozenset(reader.arguments),
    )
    return packs, reader.problems


class _Reader(Struct):
    """Collects what the files hold, and every problem."""

    phases: dict[str, Phase] = field(default_factory=dict)
    extended: list[tuple[str, Place]] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    event_places: dict[str, Place] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    noise_args: list[str] = field(default_factory=list)
    acts_on: dict[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    envelope: Envelope = field(default_factory=Envelope)

    def read(self, path: Path, name: str) -> None:
        self.names.append(name)
        try:
            text = path.read_text(encoding="utf-8")
            document: Table = tomllib.loads(text)
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(Problem(Place(name, 1), f"cannot be read: {error}", "give a readable UTF-8 file"))
            return
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"at line (\d+)", str(error))
            place = Place(name, int(at[1]) if at else len(text.splitlines()))
            self.problems.append(Problem(place, f"not TOML: {error}", "mend the syntax; regexes go into '''...'''"))
            return
        values = FileValues(name, text, self.problems, is_builtin=path.parent == builtin_dir())
        if path.name == ENVELOPE:
            self.envelope = joined(self.envelope, read_envelope(document, values))
            return
        values.check_keys(document, "phase event", Place(name, 1), "a pattern file")
        phase_id = self._read_phase(document, values)
        for entry, place in values.tables(document, "event", "event"):
            self._read_event(entry, phase_id, place, values)

    def check_extended(self) -> None:
        """Refuse events for phases that no file describes. Any order of files is fine, so this comes last."""
        for phase_id, place in self.extended:
            if phase_id and phase_id not in self.phases:
                do = f"{suggestion(phase_id, list(self.phases))}  A new phase needs  order = 55  (its position in the launch)"
                self.problems.append(Problem(place, f"there is no phase '{phase_id}'", do))

    def _read_phase(self, document: Table, values: FileValues) -> str:
        if "phase" not in document:
            values.problem(Place(values.name, 1), "the file has no [phase]", 'add  [phase]  with  id = "..."')
            return ""
        place = values.next_table("phase")
        table = values.table(document, "phase", place)
        values.check_keys(table, _PHASE_KEYS, place, "[phase]")
        phase_id = values.text(table, "id", place, needed=True)
        self.arguments.update(values.text(table, "arguments", place).split())
        if set(table) <= {"id", "arguments"}:  # more events for a phase that another file describes
            self.extended.append((phase_id, place))
            return phase_id
        self._check_new_phase(table, phase_id, place, values)
        self.aliases.update({key: str(value) for key, value in values.table(table, "aliases", place).items()})
        self.noise_args.extend(values.texts(table, "noise_args", place))
        acts_on = values.table(table, "acts_on", place)
        self.acts_on.update({name: values.texts(acts_on, name, place) for name in acts_on})
        self.phases.setdefault(phase_id, read_phase(table, phase_id, place, values))
        return phase_id

    def _check_new_phase(self, table: Table, phase_id: str, place: Place, values: FileValues) -> None:
        order = table.get("order")
        if not isinstance(order, int) or isinstance(order, bool):
            what = f"'order' is {order!r}, not a whole number" if "order" in table else "'order' is missing"
            do = "add  order = 55  (its position in the launch)"
            values.problem(values.key_place(place, "order"), what, do)
        for other in self.phases.values():
            if other.id == phase_id:
                what = f"phase '{phase_id}' exists already ({other.place})"
                values.problem(values.key_place(place, "id"), what, "to add events to it write only  id  in [phase]")
            elif other.order == order:
                what = f"order {order} is taken by phase '{other.id}' ({other.place})"
                values.problem(values.key_place(place, "order"), what, "take a free number")

    def _read_event(self, table: Table, phase_id: str, place: Place, values: FileValues) -> None:
        before = values.problem_count
        values.check_keys(table, _EVENT_KEYS, place, "an event")
        pattern = read_pattern(table, phase_id, place, values)
        id_place = values.key_place(place, "id")
        if pattern.id and phase_id and not pattern.id.startswith(f"{phase_id}."):
            what = f"event '{pattern.id}' is not led by its phase"
            values.problem(id_place, what, f"call it '{phase_id}.{pattern.id.rpartition('.')[2]}'")
        if pattern.id in self.event_places:
            what = f"event '{pattern.id}' exists already ({self.event_places[pattern.id]})"
            values.problem(id_place, what, "take another id: two events may share a literal")
        elif pattern.id:
            self.event_places[pattern.id] = place
        if "form" not in table:
            values.problem(place, f"event '{pattern.id}' has no [[event.form]]", "add one, with a sample")
        elif not pattern.literals and not pattern.closes:
            what = f"event '{pattern.id}' has no literal"
            values.problem(place, what, 'add  contains = "..."  (a text that every such line holds)')
        if values.problem_count == before:
            self.patterns.append(pattern)
