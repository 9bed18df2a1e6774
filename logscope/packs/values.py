"""The values of one TOML file, and a problem with file:line for each that is not what docs/patterns.md says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from logscope.packs.problems import Problem
from logscope.packs.types import Place, Sample

Table = Mapping[str, object]

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[\w.]+)\s*\]\]?\s*(?:#.*)?$")
_NEVER = re.compile(r"(?!)")


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return what to do about an unknown word: the nearest known one, or all of them."""
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"


def _begins_with_key(line: str, key: str) -> bool:
    """Return whether a line sets a key. No regex: this is asked for every field of every event when the program starts."""
    text = line.lstrip()
    return text.startswith(key) and text[len(key) :].lstrip()[:1] in ("=", ".")


class FileValues:
    """Reads values out of the tables of one file, and adds to ``problems`` what is wrong with them."""

    def __init__(self, name: str, text: str, problems: list[Problem], is_builtin: bool = False) -> None:
        self.name, self.is_builtin = name, is_builtin
        self._problems = problems
        self._lines = text.split("\n")
        headers = ((number, _HEADER.match(line)) for number, line in enumerate(self._lines, 1))
        self._headers = [(number, match["name"]) for number, match in headers if match]
        self._header_lines = {number for number, _ in self._headers}
        self._used: set[int] = set()

    def problem(self, place: Place, what: str, do: str) -> None:
        """Take note of something wrong."""
        self._problems.append(Problem(place, what, do))

    @property
    def problem_count(self) -> int:
        """How many problems there are so far, in all files."""
        return len(self._problems)

    # tomllib keeps no line numbers: they are found again by the headers of tables and the names of keys

    def next_table(self, header: str, parent: Place | None = None) -> Place:
        """Return where the next table with this header stands in its parent; that of the parent if it has no header."""
        start = parent.line if parent else 0
        for number, name in self._headers:
            if number <= start or number in self._used:
                continue
            if header.startswith(f"{name}."):
                break
            if name == header:
                self._used.add(number)
                return Place(self.name, number)
        return Place(self.name, max(start, 1))

    def key_place(self, place: Place, key: str) -> Place:
        """Return where a key (or a table) of the table at ``place`` stands; ``place`` itself if it is not there."""
        number = place.line + 1 if place.line in self._header_lines else place.line
        while number <= len(self._lines) and number not in self._header_lines:
            if _begins_with_key(self._lines[number - 1], key):
                return Place(self.name, number)
            number += 1
        inner = (number for number, name in self._headers if number >= place.line and f".{name}".endswith(f".{key}"))
        return Place(self.name, next(inner, place.line))

    def check_keys(self, table: Table, known: str, place: Place, what: str) -> None:
        """Refuse keys other than the ``known`` ones, which are separated by spaces."""
        names = known.split()
        for key in table:
            if key not in names:
                self.problem(self.key_place(place, key), f"unknown key '{key}' in {what}", suggestion(key, names))

    def text(self, table: Table, key: str, place: Place, default: str = "", needed: bool = False) -> str:
        """Return a text; ``needed``: it must be there, and not be empty."""
        value = table.get(key, default)
        if not isinstance(value, str):
            self.problem(self.key_place(place, key), f"'{key}' is {value!r}, not a text", f'write  {key} = "..."')
            return default
        if needed and not value:
            self.problem(self.key_place(place, key), f"'{key}' is missing", f'add  {key} = "..."')
        return value

    def flag(self, table: Table, key: str, place: Place, default: bool = False) -> bool:
        """Return true or false."""
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.problem(self.key_place(place, key), f"'{key}' is {value!r}, not true or false", f"write  {key} = true")
            return default
        return value

    def texts(self, table: Table, key: str, place: Place) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one."""
        value = table.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            what = f"'{key}' is {value!r}, not a text or a list of texts"
            self.problem(self.key_place(place, key), what, f'write  {key} = ["..."]')
            return ()
        return tuple(values)

    def table(self, table: Table, key: str, place: Place) -> Table:
        """Return a table; empty if there is none."""
        value = table.get(key, {})
        if not isinstance(value, dict):
            what = f"'{key}' is {value!r}, not a table"
            self.problem(self.key_place(place, key), what, f"write  {key} = {{ ... }}")
            return {}
        return value

    def tables(self, table: Table, key: str, header: str, parent: Place | None = None) -> Iterator[tuple[Table, Place]]:
        """Yield each table of a list of tables, and where it stands."""
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            place = self.next_table(header, parent)
            self.problem(place, f"'{key}' is not a list of tables", f"write  [[{header}]]")
            return
        for entry in value:
            yield entry, self.next_table(header, parent)

    def choice(self, table: Table, key: str, choices: Sequence[str], place: Place, default: str | None) -> str | None:
        """Return one of several words."""
        value = table.get(key, default)
        if value is not None and value not in choices:
            self.problem(self.key_place(place, key), f"'{key}' is {value!r}", suggestion(str(value), choices))
            return default
        return str(value) if value is not None else None

    def regex(self, table: Table, key: str, place: Place, group: str | None = None) -> re.Pattern[str]:
        """Return a compiled regex, which must have a certain group; one that never fits if it is no regex."""
        text, place = self.text(table, key, place, needed=True), self.key_place(place, key)
        try:
            compiled = re.compile(text)
        except re.error as error:
            self.problem(place, f"not a regex: {error}: {text}", "mend the regex")
            return _NEVER
        if text and group is not None and group not in compiled.groupindex:
            self.problem(place, f"the regex has no group '{group}'", f"name it  (?P<{group}>...)")
        return compiled

    def samples(self, table: Table, header: str, parent: Place) -> tuple[Sample, ...]:
        """Return the samples of a form or of an entry of the envelope."""
        samples = []
        for entry, place in self.tables(table, "sample", f"{header}.sample", parent):
            self.check_keys(entry, "line want", place, "a sample")
            samples.append(
                Sample(self.text(entry, "line", place, needed=True), self.table(entry, "want", place), place)
            )
        return tuple(samples)
