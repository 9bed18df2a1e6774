"""From messages to events: the literals that a message holds say which forms to try; the first that fits gives the values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING

from logscope.lines import build_gate, read_lines
from logscope.model import Drift, Event, LogLine, Value
from logscope.packs import Field, Form, Packs, Pairs, Pattern
from logscope.rank import Rank, parse_rank
from logscope.scan import Gate, ReadState
from logscope.server_args import parse_command, parse_server_args, read_value
from logscope.units import NUMBER_UNITS, parse_number

if TYPE_CHECKING:
    from regex import Match as FormMatch

FORM_TIMEOUT_S = 1.0  # a form that takes longer on one line does not fit it
_TEXT_KEPT = 4000
_NUMBER = re.compile(r"(?P<number>-?[\d.,]*\d)\s*(?P<unit>[A-Za-z%]+(?:/s)?)?\.?$")
_PRINTED_UNITS = {"%": "percent", "B": "bytes", "Bytes": "bytes", "KB": "kB"}


class Recogniser:
    """Turns messages into events. Built once per run from the pattern files."""

    def __init__(self, packs: Packs, dense: bool = False) -> None:
        """Take the patterns of all phases; those of dense phases (serving lines) only if asked to."""
        self.packs = packs
        self.patterns = [p for p in packs.patterns if dense or not packs.phase_of(p).dense]
        self.gate: Gate = build_gate(packs, self.patterns)
        self._by_literal: dict[str, list[tuple[Pattern, Form]]] = {}
        for pattern in self.patterns:
            for form in pattern.forms:
                for literal in form.contains:
                    self._by_literal.setdefault(literal, []).append((pattern, form))
        self._closing = [(p, form) for p in self.patterns if p.closes for form in p.forms]
        self._with_literals = lru_cache(maxsize=4096)(self._find_candidates)  # lines repeat: twice as fast

    def read(self, name: str, blocks: Iterable[bytes | bytearray], state: ReadState) -> Iterator[Event | Drift]:
        """Yield the events and drifts of one log, in file order.

        What SGLang's logger prints (``logged``) is no event where it may be part of another message: of a request's text, a traceback.
        """
        # origins whose events have SGLang's prefix with a clock: there a logger's line never lacks it
        clocked: set[str] = set()
        for line in read_lines(name, blocks, self.packs, self.gate, state):
            found = self.recognise(line)
            if isinstance(found, Event):
                if found.pattern.logged and _may_be_quoted(line, clocked):
                    continue
                if line.prefixed and line.time is not None:
                    clocked.add(line.origin)
            if found is not None:
                yield found

    def recognise(self, line: LogLine) -> Event | Drift | None:
        """Return what a message is: an event, a known line in an unknown wording, or None for anything else."""
        candidates = self.candidates(line)
        for pattern, form, values in self.fitting(line, candidates):
            needed = (f.result for f in pattern.fields.values() if not f.optional)
            if not line.whole and any(name not in values for name in needed):
                return _drift(line, [pattern])
            return _event(line, pattern, form, values)
        drifted = {pattern.id: pattern for pattern, _ in candidates if pattern.drift and not pattern.fallback}
        if not drifted or line.block or (line.text[:1].isspace() and not line.prefixed):
            return None
        return _drift(line, list(drifted.values()))

    def candidates(self, line: LogLine) -> list[tuple[Pattern, Form]]:
        """Return the (pattern, form) pairs whose literal stands in the message, fallbacks last, each once."""
        return self._with_literals(tuple(self.gate.literals_in(line.text)), line.closes)

    def _find_candidates(self, literals: Sequence[str], closes: str | None) -> list[tuple[Pattern, Form]]:
        found = {
            id(form): (pattern, form) for literal in literals for pattern, form in self._by_literal.get(literal, ())
        }
        if closes:
            found.update((id(form), (p, form)) for p, form in self._closing if p.closes == closes)
        return sorted(found.values(), key=lambda pair: pair[0].fallback)

    def fitting(
        self, line: LogLine, candidates: Sequence[tuple[Pattern, Form]]
    ) -> Iterator[tuple[Pattern, Form, dict[str, Value]]]:
        """Yield the candidates that fit, with their values. More than one is a fault of the pattern files."""
        for pattern, form in candidates:
            values = match_form(line, pattern, form, self.packs.aliases)
            if values is not None:
                yield pattern, form, values


def match_form(line: LogLine, pattern: Pattern, form: Form, aliases: Mapping[str, str]) -> dict[str, Value] | None:
    """Return the values of a message in base units, None if the form does not fit it."""
    printed = printed_values(line, pattern, form)
    if printed is None:
        return None
    values: dict[str, Value] = dict(form.set)
    for name, text in printed.items():
        field = pattern.fields.get(name)
        if field is None:
            if not name.endswith("_unit"):
                values[name] = text
            continue
        value = _convert(field, text, printed.get(f"{name}_unit"), aliases)
        if value is None and not field.optional:
            return None
        if value is not None:
            values[field.result] = value
    for field in pattern.fields.values():
        if field.default is not None:
            values.setdefault(field.result, field.default)
    return values


def printed_values(line: LogLine, pattern: Pattern, form: Form) -> dict[str, str] | None:
    """Return the values as printed; None if the form does not fit. What touches the cut end of a file is left out."""
    if form.pairs is not None:
        return _read_pairs(line, pattern, form, form.pairs)
    match = _search(form, line.text)
    if match is None:
        return None
    groups = form.captured(match)
    printed: dict[str, str] = {name: match[group] for name, group in groups.items()}
    if line.whole:
        return printed
    at_the_cut = [name for name, group in groups.items() if match.end(group) == len(line.text)]
    return printed | {name: _until_cut(pattern.fields.get(name), printed.pop(name)) for name in at_the_cut}


def _search(form: Form, text: str) -> re.Match[str] | FormMatch[str] | None:
    plain = form.plain()
    if plain is not None:
        return plain.search(text)
    try:
        return form.compiled().search(text, timeout=FORM_TIMEOUT_S)
    except TimeoutError:
        return None


def _until_cut(field: Field | None, text: str) -> str:
    """Return what is sure of a value that touches the cut end of a file: nothing, or the whole words of a command.

    ``server_args`` stay: they tell by their brackets where they are cut.
    """
    if field is not None and field.unit == "args":
        return text
    if field is None or field.unit != "command":
        return ""
    words = text.split(" ")[:-1]
    return " ".join(words[:-1] if words and words[-1].startswith("--") else words)


def _read_pairs(line: LogLine, pattern: Pattern, form: Form, pairs: Pairs) -> dict[str, str] | None:
    literal = next((text for text in form.contains if text in line.text), None)
    if literal is None:
        return None
    by_key = {field.key: field.name for field in pattern.fields.values() if field.key}
    printed: dict[str, str] = {}
    parts = line.text.partition(literal)[2].split(pairs.sep)
    for index, part in enumerate(parts):
        key, found, text = part.strip().partition(pairs.kv)
        if not found or (not line.whole and index == len(parts) - 1):
            continue
        key = key.strip()
        printed.setdefault(by_key.get(key) or _name_of(key), text.strip())
    if any(_name_of(key) in printed for key in pairs.without):
        return None
    if any(not field.optional and name not in printed for name, field in pattern.fields.items()):
        return None
    return printed


@lru_cache(maxsize=1024)
def _name_of(key: str) -> str:
    """Turn a printed key into a field name: "#new-token" is new_token, "avail mem" is avail_mem."""
    return re.sub(r"\W+", "_", key).strip("_").lower()


def _convert(field: Field, text: str, printed_unit: str | None, aliases: Mapping[str, str]) -> Value | None:
    if field.unit == "args":
        return parse_server_args(text)
    if field.unit == "command":
        return parse_command(text, aliases)
    if field.unit == "list":
        return _read_list(text)
    if field.unit == "text":
        return field.map.get(text, text) or field.default
    if printed_unit is not None:
        unit = _PRINTED_UNITS.get(printed_unit, printed_unit)
        return parse_number(text, unit if unit in NUMBER_UNITS else field.unit)
    number = parse_number(text, field.unit)
    if number is None:  # "21.71 GB", "0.55." in pairs
        match = _NUMBER.match(text)
        number = parse_number(match["number"], field.unit) if match else None
    return number


def _read_list(text: str) -> tuple[str | int, ...] | None:
    value = read_value(text if text.startswith(("[", "(")) else f"[{text}]")
    if not isinstance(value, tuple):
        return None
    return tuple(item if isinstance(item, (str, int)) else str(item) for item in value)


def _may_be_quoted(line: LogLine, clocked: Set[str]) -> bool:
    return line.loose or line.block is not None or (not line.prefixed and line.origin in clocked)


@lru_cache(maxsize=4096)
def _rank(tags: str) -> Rank:
    return parse_rank(tags)


def _event(line: LogLine, pattern: Pattern, form: Form, values: Mapping[str, Value]) -> Event:
    text = line.text[:_TEXT_KEPT]
    rank = _rank(line.tags)
    return Event(line.pos, line.time, rank, pattern, form, values, line.outer_time, line.origin, text, line.whole)


def _drift(line: LogLine, patterns: Sequence[Pattern]) -> Drift:
    ids = tuple(sorted({pattern.id for pattern in patterns}))
    text = line.text[:_TEXT_KEPT]
    return Drift(line.pos, line.time, _rank(line.tags), text, ids, line.outer_time, line.origin, cut=not line.whole)
