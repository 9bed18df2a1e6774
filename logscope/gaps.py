"""What the pattern files do not know of a log: unrecognised lines, grouped, as blocks to paste into a pattern file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logscope.events import Recogniser
from logscope.lines import ReadState, read_lines
from logscope.model import Drift, LogLine, Pos

MOST_GROUPS = 20_000
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]*\.\w)")
_MASKED = re.compile(r"0x[0-9a-fA-F]+|(?:/[\w.+-]+){2,}|'[^']*'|\"[^\"]*\"|\d+(?:\.\d+)?")
_UNIT = re.compile(r"\s?(?P<unit>GiB|GB|MiB|MB|KiB|ms|s|%)(?![A-Za-z])")
_UNIT_NAMES = {"GB": "GiB", "MB": "MiB", "%": "percent"}  # SGLang's "GB" is GiB
_MEMORY = re.compile(
    r"\b(?:mem|memory|avail|tokens?|kv|cache|pool|alloc\w*|GB|GiB|MB|MiB|bytes)\b|mem_|_mem|\d(?:GB|GiB|MB|MiB)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Gap:
    """A group of unrecognised lines that differ in their numbers only."""

    pos: Pos
    text: str
    tags: str
    prefixed: bool
    count: int = 1
    near: tuple[str, ...] = ()

    @property
    def is_memory(self) -> bool:
        """Whether the line looks like one about memory: it has a number, and a word or a unit of memory."""
        return bool(self.near) or (bool(_NUMBER.search(self.text)) and bool(_MEMORY.search(self.text)))


def find_gaps(name: str, blocks: Iterable[bytes], recogniser: Recogniser) -> list[Gap]:
    """Return the unrecognised lines of a log, grouped; those that look like memory first, then the most frequent."""
    groups: dict[str, Gap] = {}
    state = ReadState()
    for line in read_lines(name, blocks, recogniser.packs, recogniser.gate, state, everything=True):
        if not line.text.strip() or line.block:
            continue
        found = recogniser.recognise(line)
        if found is not None and not isinstance(found, Drift):
            continue
        _count(groups, line, found.patterns if found is not None else ())
    return sorted(groups.values(), key=lambda gap: (not gap.is_memory, not gap.prefixed, -gap.count, gap.pos.line))


def _count(groups: dict[str, Gap], line: LogLine, near: tuple[str, ...]) -> None:
    masked = _MASKED.sub("#", line.text)
    known = groups.get(masked)
    if known is not None:
        known.count += 1
    elif len(groups) < MOST_GROUPS:
        groups[masked] = Gap(line.pos, line.text, line.tags, line.prefixed, near=near)


def gap_pack(gaps: Sequence[Gap], phase: str = "mine", order: int = 1000) -> str:
    """Return the gaps as a pattern file that ``patterns check`` accepts; names are guesses to be changed."""
    blocks = [f'[phase]\nid    = "{phase}"\ntitle = "{phase.capitalize()}"\norder = {order}\n']
    blocks += [_block(gap, f"{phase}.line_{number}") for number, gap in enumerate(gaps, 1)]
    return "\n".join(blocks)


def _block(gap: Gap, event_id: str) -> str:
    near = f", like {', '.join(gap.near)}" if gap.near else ""
    fields = list(_fields(gap.text))
    said_by = "every rank" if gap.tags else "any"
    lines = [
        f"# {gap.count} line{'s' if gap.count > 1 else ''}, the first is {gap.pos}{near}",
        "[[event]]",
        f'id       = "{event_id}"',
        'means    = ""',
        f'said_by  = "{said_by}"',
        f"contains = {_toml(_literal(gap.text, fields))}",
        *(f'fields.{name} = {{ unit = "{unit}" }}' for name, unit, _ in fields),
        "",
        "  [[event.form]]",
        f"  regex = {_toml(_regex(gap.text, fields))}",
        "    [[event.form.sample]]",
        f"    line = {_toml(gap.text)}",
        f"    want = {{ {', '.join(f'{name} = {_plain(match[0])}' for name, _, match in fields)} }}",
        "",
    ]
    return "\n".join(lines)


_Found = tuple[str, str, re.Match[str]]


def _fields(text: str) -> Iterator[_Found]:
    """Yield (name, unit, match) of each number that may be a value, named after the words before it."""
    used: set[str] = set()
    at = 0
    for match in _NUMBER.finditer(text):
        name = _name(text[at : match.start()]) or "value"
        at = match.end()
        unit = _UNIT.match(text, match.end())
        unit_name = _UNIT_NAMES.get(unit["unit"], unit["unit"]) if unit else "tokens" if "token" in name else "count"
        number = 2
        base = name
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        yield name, unit_name, match


def _name(before: str) -> str:
    """Make a field name of the last words before a number: "V size: " gives v_size."""
    words = re.findall(r"[A-Za-z][A-Za-z0-9]*", re.split(r"[,;(\[]|\.\s", before)[-1].replace("_", " "))
    return "_".join(words[-3:]).lower()


def _regex(text: str, fields: Sequence[_Found]) -> str:
    parts, at = ["^"], 0
    for name, _, match in fields:
        digits = r"-?\d+\.\d+" if "." in match[0] else r"-?\d+"
        parts.append(f"{_escaped(text[at : match.start()])}(?P<{name}>{digits})")
        at = match.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return re.sub(r"\\([ #=,:/'\"<>%&~`-])", r"\1", re.escape(text))


def _literal(text: str, fields: Sequence[_Found]) -> str:
    """Return the longest piece of the line without a number: it is the gate."""
    pieces, at = [], 0
    for _, _, match in fields:
        pieces.append(text[at : match.start()])
        at = match.end()
    pieces.append(text[at:])
    return max((piece.strip() for piece in pieces), key=len)[:80].strip()


def _plain(number: str) -> str:
    """Write a number as TOML: no leading zeros."""
    return repr(float(number)) if "." in number else str(int(number))


def _toml(text: str) -> str:
    if "'''" in text or text.endswith("'") or any(ord(char) < 32 for char in text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(char if ord(char) >= 32 else f"\\u{ord(char):04x}" for char in escaped) + '"'
    return f"'''{text}'''"
