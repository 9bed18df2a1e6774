"""From templates to the lines that a release prints: every alternative, with values, behind the release's own prefix."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.version import Version

from .guess import printed_value, variants
from .harvest import Message
from .template import Choice, Hole, Template

MOST_ALTERNATIVES = 24
TRACEBACK_HEAD = "Traceback (most recent call last):\n"
_CONSTANT = re.compile(r"^(?:[\w.]+\.)?([A-Z][A-Z0-9_]{4,})$")
_UNIT_AFTER = re.compile(
    r"\s*~?(?P<unit>GB|GiB|MB|MiB|KB|KiB|bytes|ms|milliseconds|seconds|secs?|s|%|tokens)(?![\w/])(?! per)"
)
_TOKENS_BEFORE = re.compile(r"(?<!draft_)tokens[:=] ?$", re.I)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?%?")
_BAR = "{}:  50%|█████     | 2/4 [00:03<00:03,  1.60s/it]"
_WEIGHTS_BAR = "{}:  50% Completed | 2/4 [00:03<00:03,  1.60s/it]"


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a rendered line holds: as printed, and the unit that the text around it states."""

    text: str
    unit: str
    expr: str = ""
    line: int = 0  # of the message, from 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """One alternative of a message as lines of a log, and the numbers with units in it."""

    message: Message
    lines: str
    text: str
    numbers: tuple[Number, ...]


def render(message: Message, release: str, constants: Mapping[str, Template]) -> Iterator[Rendered]:
    """Yield the alternatives of a message, as the release prints them."""
    for flat in alternatives(message.template, constants):
        text, numbers = _fill(flat)
        if text.strip():
            yield Rendered(message, _framed(message, text, release), text, numbers)


def alternatives(template: Template, constants: Mapping[str, Template]) -> Iterator[tuple[str | Hole, ...]]:
    """Yield the texts that a template stands for, at most MOST_ALTERNATIVES; those with one choice changed come first."""
    queue: list[dict[str, int]] = [{}]
    seen: set[tuple[str | Hole, ...]] = set()
    at = 0
    while at < len(queue) and len(seen) < MOST_ALTERNATIVES:
        picks = queue[at]
        at += 1
        flat: list[str | Hole] = []
        met: dict[str, int] = {}
        _flatten(template, picks, constants, flat, met)
        key = tuple(flat)
        if key not in seen:
            seen.add(key)
            yield key
        fixed = dict(picks)
        for name, count in met.items():
            if name in picks:
                continue
            queue += [{**fixed, name: option} for option in range(1, count)]
            fixed[name] = 0


def _flatten(
    template: Template,
    picks: Mapping[str, int],
    constants: Mapping[str, Template],
    flat: list[str | Hole],
    met: dict[str, int],
) -> None:
    for piece in template:
        if isinstance(piece, Hole) and (texts := variants(piece)):
            piece = Choice(piece.expr, tuple((text,) for text in texts))
        if isinstance(piece, Choice):
            met.setdefault(piece.key, len(piece.options))
            option = min(picks.get(piece.key, 0), len(piece.options) - 1)
            _flatten(piece.options[option], picks, constants, flat, met)
        elif isinstance(piece, Hole) and (found := _CONSTANT.match(piece.expr)) and found[1] in constants:
            _flatten(constants[found[1]], picks, constants, flat, met)
        elif isinstance(piece, str) and flat and isinstance(flat[-1], str):
            flat[-1] += piece
        else:
            flat.append(piece)


def _fill(flat: tuple[str | Hole, ...]) -> tuple[str, tuple[Number, ...]]:
    out: list[str] = []
    numbers: list[Number] = []
    for index, piece in enumerate(flat):
        if isinstance(piece, str):
            out.append(piece)
            continue
        before = flat[index - 1] if index else ""
        after = flat[index + 1] if index + 1 < len(flat) else ""
        before, after = (text if isinstance(text, str) else "" for text in (before, after))
        value = printed_value(piece, index, before, after)
        unit = _unit(value, before, after)
        if unit:
            numbers.append(Number(value.rstrip("%"), unit, piece.expr, "".join(out).count("\n")))
        out.append(value)
    return "".join(out), tuple(number for number in numbers if not _is_repeated(number, flat))


def _is_repeated(number: Number, flat: tuple[str | Hole, ...]) -> bool:
    """Tell whether the same value is printed in another unit, too: ``total_bytes / GB`` beside ``total_bytes``."""
    others = (piece.expr for piece in flat if isinstance(piece, Hole) and piece.expr != number.expr)
    return any(re.search(rf"(?<![\w.]){re.escape(other)} / ", number.expr) for other in others)


def _unit(value: str, before: str, after: str) -> str:
    """Return the unit of a printed number, by the text around it; "" if it is no number or has none."""
    if not _NUMBER.fullmatch(value):
        return ""
    if value.endswith("%"):
        return "%"
    after_unit = _UNIT_AFTER.match(after)
    if after_unit:
        return after_unit["unit"]
    return "tokens" if _TOKENS_BEFORE.search(before) else ""


def _framed(message: Message, text: str, release: str) -> str:
    match message.kind:
        case "raise":
            return f"{raised_as(message.level)}: {text}\n"
        case "warn":
            return f"/opt/venv/lib/python3.11/site-packages/{message.place}: {message.level}: {text}\n"
        case "tqdm":
            bar = _WEIGHTS_BAR if message.bar_format else _BAR
            return bar.format(text.removesuffix(": ")) + "\n"
        case "print":
            return text + "\n"
    return f"{prefix_of(release)}{text}\n"


def raised_as(name: str) -> str:
    """Return how Python names the class of an exception in a traceback: with its module, unless it is built in."""
    short = name.split("(")[0]
    return short if hasattr(builtins, short) or ":" in short else f"sglang.srt.{short.split('.')[-1]}"


def prefix_of(release: str) -> str:
    """Return the prefix of a log line of rank 3: releases before 0.2.14 print none, those before 0.3.4 no date."""
    version = Version(release)
    if version < Version("0.2.14"):
        return ""
    return "[10:00:00 TP3] " if version < Version("0.3.4") else "[2026-01-05 10:00:00 TP3] "
