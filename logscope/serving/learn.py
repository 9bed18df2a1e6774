"""Make a template of a line that the pattern files have read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from logscope.lines import read_lines
from logscope.model import Event, LogLine
from logscope.packs import Field, Pairs
from logscope.scan import ReadState
from logscope.serving.recogniser import ServingRecogniser
from logscope.serving.template import CLOCK_FRACTION, Clock, Literal, Mark, Number, Scaled, Template, Token
from logscope.serving.types import KIND_OF
from logscope.units import NUMBER_UNITS

_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<fraction>[.]\d{1,6})?")
_NUMBER = re.compile(r"(?P<whole>\d{1,8})(?:\.(?P<fraction>\d{1,6}))?(?P<rest>%?[ ]*)")
_DIGITS = re.compile(r"(\d+)")
_MOST_TAG_NUMBERS = 4
_NAME = re.compile(r"\W+")


class _Spot(NamedTuple):
    """A piece of the line that is not just text and numbers that nobody needs."""

    start: int
    end: int
    tokens: Sequence[Token]


def learn(raw: bytes, recogniser: ServingRecogniser) -> Template | None:
    """Return the template of a line, None where it is no line of serving, or has what numpy would not read.

    Args:
        raw: the line, without its line end.
        recogniser: with the patterns of serving.
    """
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        return None
    lines = list(read_lines("", [raw + b"\n"], recogniser.packs, recogniser.gate, ReadState()))
    if len(lines) != 1 or not text.rstrip().endswith(lines[0].text):
        return None
    event = recogniser.recognise_silently(lines[0])
    if not isinstance(event, Event) or event.pattern.id not in KIND_OF:
        return None
    start = len(text.rstrip()) - len(lines[0].text)
    head = _head_spots(text[:start], lines[0])
    pairs = event.form.pairs
    found = _pairs_in(text, start, event, pairs) if pairs else _groups_in(text, start, event)
    body = _value_spots(text, list(found))
    if head is None or body is None:
        return None
    template = _template(text, start, lines[0], event, [*head, *body[0]], body[1])
    literals = recogniser.gate.literals_in(text)
    template.tokens = list(_marked(template.tokens, literals))
    marks = sum(isinstance(token, Mark) for token in template.tokens)
    return template if marks == sum(map(text.count, literals)) else None  # none may go over the end of a token


def _template(
    text: str, start: int, line: LogLine, event: Event, spots: list[_Spot], values: Sequence[Scaled]
) -> Template:
    """Put the pieces together: between the spots, digits may be any."""
    tokens: list[Token] = []
    at = 0
    between = _any_digits if event.form.pairs else _literally  # a regex may mean the digits that it does not name
    for spot in sorted(spots):
        tokens += [*(_any_digits if at < start else between)(text[at : spot.start]), *spot.tokens]
        at = spot.end
    tokens += [*between(text[at:]), Literal(b"\n")]
    numeric = {value.name for value in values}
    texts = {name: value for name, value in event.values.items() if isinstance(value, str) and name not in numeric}
    tag = _DIGITS.split(" ".join(line.tags.split()))[::2]
    clock = _CLOCK.fullmatch(line.time or "")
    decimals = len(clock["fraction"] or ".") - 1 if clock else 0
    return Template(
        KIND_OF[event.pattern.id], line.origin, list(_joined(tokens)), tag, values, texts, clock_divisor=10**decimals
    )


def _head_spots(head: str, line: LogLine) -> list[_Spot] | None:
    """Find clock, rank tag and origin in what stands before the message."""
    spots: list[_Spot] = []
    at = 0
    if line.origin:
        at = head.find(line.origin)
        if at < 0:
            return None
        spots.append(_Spot(at, at + len(line.origin), [Literal(line.origin.encode())]))
        at += len(line.origin)
    if line.time is None and line.outer_time is not None:
        return None
    if line.time is not None:
        clock = _CLOCK.fullmatch(line.time)
        at = head.find(line.time, at)
        if clock is None or at < 0:
            return None
        spots.append(_Spot(at, at + len(line.time), _clock_tokens(clock["fraction"])))
        at += len(line.time)
    if line.tags:
        at = head.find(line.tags, at)
        if at < 0 or line.tags != " ".join(line.tags.split()) or len(_DIGITS.findall(line.tags)) > _MOST_TAG_NUMBERS:
            return None
        spots.append(_Spot(at, at + len(line.tags), list(_tag_tokens(line.tags))))
    return spots


def _clock_tokens(fraction: str | None) -> list[Token]:
    if fraction is None:
        return [Clock()]
    return [Clock(), Literal(b"."), Number(CLOCK_FRACTION, len(fraction) - 1)]


def _tag_tokens(tags: str) -> Iterator[Token]:
    for place, part in enumerate(_DIGITS.split(tags)):
        if place % 2:
            yield Number(place // 2)
        elif part:
            yield Literal(part.encode())


class _Printed(NamedTuple):
    """A value in the line: its field, or its name where no pattern file names it."""

    name: str
    field: Field | None
    start: int
    end: int


def _value_spots(text: str, values: Sequence[_Printed]) -> tuple[list[_Spot], list[Scaled]] | None:
    """Say how the values of other lines are read: a text is what it is, a number may be any with as many decimals."""
    spots: list[_Spot] = []
    scales: list[Scaled] = []
    for name, field, start, end in values:
        number = _NUMBER.fullmatch(text, start, end)
        if number is None or (field is not None and field.unit == "text"):
            if (field is not None and field.unit in NUMBER_UNITS) or _DIGITS.search(text, start, end):
                return None  # no number, or a text that differs from line to line
            spots.append(_Spot(start, end, [Literal(text[start:end].encode())]))
            continue
        scale = _scaled(name, number, field)
        if scale is None:
            return None
        scales.append(scale)
        spots.append(_Spot(start, end, _number_tokens(name, number)))
    return spots, scales


def _pairs_in(text: str, start: int, event: Event, pairs: Pairs) -> Iterator[_Printed]:
    """Find the values of ``key: value`` pairs; of a key that stands twice the first one counts."""
    literal = next(found for found in event.form.contains if found in text[start:])
    at = text.index(literal, start) + len(literal)
    by_key = {field.key: field for field in event.pattern.fields.values() if field.key}
    seen: set[str] = set()
    for part in text[at:].split(pairs.sep):
        key, found, printed = part.partition(pairs.kv)
        end = at + len(part)
        field = by_key.get(key.strip())
        name = field.result if field else name_of(key)
        if found and name not in seen:
            seen.add(name)
            yield _Printed(name, field, end - len(printed), end)
        at = end + len(pairs.sep)


def _groups_in(text: str, start: int, event: Event) -> Iterator[_Printed]:
    """Find the values of a regex."""
    match = (event.form.plain() or event.form.compiled()).search(text.rstrip()[start:])
    assert match is not None, "the form has been found to fit"
    for name, group in event.form.captured(match).items():
        field = event.pattern.fields.get(name)
        if not (field is None and name.endswith("_unit")):
            yield _Printed(field.result if field else name, field, start + match.start(group), start + match.end(group))


def _scaled(name: str, number: re.Match[str], field: Field | None) -> Scaled | None:
    """Return how a number becomes base units, None where that is no division by a whole number."""
    decimals = len(number["fraction"] or "")
    unit = field.unit if field is not None else "percent" if "%" in number["rest"] else "count"
    if unit not in NUMBER_UNITS:
        return None
    divisor = Decimal(10) ** decimals / NUMBER_UNITS[unit].scale
    return Scaled(name, decimals, int(divisor)) if divisor == int(divisor) else None


def _number_tokens(name: str, number: re.Match[str]) -> list[Token]:
    tokens: list[Token] = [Number(name)]
    if number["fraction"]:
        tokens += [Literal(b"."), Number(f"{name}.", len(number["fraction"]))]
    if number["rest"]:
        tokens.append(Literal(number["rest"].encode()))
    return tokens


def name_of(key: str) -> str:
    """Return the name of a key that no pattern file names."""
    return _NAME.sub("_", key).strip("_").lower()


def read_unknown(printed: str) -> float | None:
    """Return the number of a key that no pattern file names, in base units; None for any other text."""
    number = _NUMBER.fullmatch(printed)
    value = _scaled("", number, None) if number else None
    if number is None or value is None:
        return None
    return int(number["whole"] + (number["fraction"] or "")) / value.divisor


def _any_digits(text: str) -> Iterator[Token]:
    for place, part in enumerate(_DIGITS.split(text)):
        if part:
            yield Number() if place % 2 else Literal(part.encode())


def _marked(tokens: Iterable[Token], literals: Sequence[str]) -> Iterator[Token]:
    """Mark the first byte of each literal of the pattern files."""
    for token in tokens:
        if isinstance(token, Literal):
            for literal in literals:
                yield from (Mark(match.start()) for match in re.finditer(re.escape(literal.encode()), token.text))
        yield token


def _literally(text: str) -> Iterator[Token]:
    if text:
        yield Literal(text.encode())


def _joined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Make neighbouring literals one: they are compared eight bytes at a time."""
    held = b""
    for token in tokens:
        if isinstance(token, Literal):
            held += token.text
            continue
        if held:
            yield Literal(held)
            held = b""
        yield token
    if held:
        yield Literal(held)
