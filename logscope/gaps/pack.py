"""Write unrecognised lines as a pattern file that ``patterns check`` accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from logscope.gaps.find import TOKEN, Gap
from logscope.packs import SHORTEST_LITERAL, Packs, compile_regex

MessageText = Callable[[str], str]

_MOST_FIELDS = 20
_LONGEST_NUMBER = 18  # digits
_LONGEST_LITERAL = 80
_PLAIN_IN_REGEX = " #=,:/'\"<>%&~`-"
_CLOCK = "2026-01-05 10:00:00"
_UNIT = re.compile(r"\s?(?P<unit>GiB|GB|MiB|MB|KiB|bytes|tokens?|ms|s|%)(?!\w)")
_UNIT_NAMES = {"GB": "GiB", "MB": "MiB", "%": "percent", "token": "tokens"}  # SGLang's "GB" is GiB
_PIECES = {
    "hex": "0x[0-9a-fA-F]+",
    "path": r"(?:/[\w.+-]+){2,}",
    "numbers": r"\[[\d., -]+\]",
    "number": r"-?\d+(?:\.\d+)?",
    "digits": r"\d+(?:\.\d+)?",
}


class _Value(Struct, frozen=True):
    """A number (or a list of numbers) of a line, and what it is guessed to be."""

    name: str
    unit: str
    token: re.Match[str]


class _Draft(Struct, frozen=True):
    """A gap as an event."""

    gap: Gap
    values: tuple[_Value, ...]
    literal: str
    regex: str
    sample: str

    def fits(self, text: str) -> bool:
        regex = self.regex if self.gap.is_cut else rf"(?:{self.regex})\Z"
        return self.literal in text and compile_regex(regex).search(text) is not None


def gap_pack(gaps: Sequence[Gap], packs: Packs, message_text: MessageText) -> str:
    """Return the gaps as a pattern file; names and units are guesses to be changed.

    Every event fits its own line, none of the other lines, and none of the samples in ``packs``. Lines that this cannot be done for are
    named in comments.

    Args:
        gaps: from ``find_gaps``.
        packs: the pattern files that do not know them.
        message_text: returns the message of a line of a log, without the prefixes.
    """
    phase = next(name for name in _free_names("mine") if name not in packs.phases)
    order = max((known.order for known in packs.phases.values()), default=0) + 10
    forms = (form for pattern in packs.patterns for form in pattern.forms)
    texts = [message_text(sample.line) for form in forms for sample in form.samples]
    drafts: list[_Draft] = []
    blocks = [f'[phase]\nid    = "{phase}"\ntitle = "{phase.capitalize()}"\norder = {order}\n']
    for gap in gaps:
        draft = next((draft for draft in _drafts(gap, message_text) if _is_alone(draft, drafts, texts)), None)
        if draft is None or packs.frequent_line(draft.literal) is not None:
            blocks.append(f"# left out, too much like another line or too short: {_comment(gap)}\n")
            continue
        drafts.append(draft)
        has_drift = sum(draft.literal in other.text for other in gaps) == 1
        blocks.append(_block(draft, f"{phase}.line_{len(drafts)}", has_drift))
    return "\n".join(blocks)


def _free_names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(2, 1_000_000))


def _is_alone(draft: _Draft, others: Sequence[_Draft], texts: Sequence[str]) -> bool:
    if any(draft.fits(text) for text in texts):
        return False
    return not any(draft.fits(other.gap.text) or other.fits(draft.gap.text) for other in others)


def _drafts(gap: Gap, message_text: MessageText) -> Iterator[_Draft]:
    """Yield a gap as an event, with what differs between its lines left open; then with nothing left open."""
    values = tuple(_values(gap.text))
    literal = _literal(gap.text)
    sample = next((sample for sample in _samples(gap) if message_text(sample) == gap.text), None)
    if len(literal) < SHORTEST_LITERAL or sample is None:
        return
    yield _Draft(gap, values, literal, _regex(gap.text, values, is_verbatim=False), sample)
    yield _Draft(gap, values, literal, _regex(gap.text, values, is_verbatim=True), sample)


def _samples(gap: Gap) -> Iterator[str]:
    """Yield ways to write the line: with a prefix that its text cannot be taken for, if it had one."""
    if gap.prefixed:
        yield f"[{_CLOCK} {gap.tags}] {gap.text}" if gap.tags else f"[{_CLOCK}] {gap.text}"
        yield f"[{_CLOCK}] {gap.text}"
    yield gap.text


def _block(draft: _Draft, event_id: str, has_drift: bool) -> str:
    gap = draft.gap
    wanted = [f"{value.name} = {_plain(value.token[0])}" for value in draft.values if value.unit != "list"]
    lines = [
        f"# {gap.count} line{'s' if gap.count > 1 else ''}, the first is {_comment(gap)}",
        "[[event]]",
        f'id       = "{event_id}"',
        'means    = ""',
        f'said_by  = "{"every rank" if gap.tags else "any"}"',
        f"contains = {_toml(draft.literal)}",
        *([] if has_drift else ["drift    = false  # other lines hold the literal, too"]),
        *(f"fields.{value.name} = {_field(value)}" for value in draft.values),
        "",
        "  [[event.form]]",
        f"  regex = {_toml(draft.regex)}",
        *(["  open_end = true"] if gap.is_cut else []),
        "    [[event.form.sample]]",
        f"    line = {_toml(draft.sample)}",
        f"    want = {{ {', '.join(wanted)} }}",
        "",
    ]
    return "\n".join(lines)


def _comment(gap: Gap) -> str:
    near = f", like {', '.join(gap.near)}" if gap.near else ""
    return "".join(char if char.isprintable() else "?" for char in f"{gap.pos}{near}")


def _field(value: _Value) -> str:
    return f'{{ unit = "{value.unit}"{", optional = true" if value.unit == "list" else ""} }}'


def _values(text: str) -> Iterator[_Value]:
    """Yield each number that may be a value, named after the words before it."""
    used: set[str] = set()
    at = 0
    for token in TOKEN.finditer(text):
        before, at = text[at : token.start()], token.end()
        if token.lastgroup not in ("number", "numbers") or len(used) == _MOST_FIELDS:
            continue
        if token.lastgroup == "number" and len(token[0]) > _LONGEST_NUMBER:
            continue
        name = next(name for name in _free_names(_name(before) or "value") if name not in used)
        used.add(name)
        yield _Value(name, _unit(name, token), token)


def _unit(name: str, token: re.Match[str]) -> str:
    if token.lastgroup == "numbers":
        return "list"
    printed = _UNIT.match(token.string, token.end())
    if printed is not None:
        return _UNIT_NAMES.get(printed["unit"], printed["unit"])
    return "tokens" if "token" in name else "count"


def _name(before: str) -> str:
    """Make a field name of the last words before a number: "V size: " gives v_size."""
    words = re.findall(r"[A-Za-z][A-Za-z0-9]*", re.split(r"[,;(\[]|\.\s", before)[-1].replace("_", " "))
    return "_".join(words[-3:]).lower()


def _regex(text: str, values: Iterable[_Value], is_verbatim: bool) -> str:
    named = {value.token.start(): value.name for value in values}
    parts, at = ["^"], 0
    for token in TOKEN.finditer(text):
        quote = re.escape(token[0][0])
        kind = token.lastgroup or ""
        piece = _escaped(token[0]) if is_verbatim else _PIECES.get(kind, f"{quote}[^{quote}]*{quote}")
        name = named.get(token.start())
        parts += [_escaped(text[at : token.start()]), f"(?P<{name}>{piece})" if name else piece]
        at = token.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return "".join(char if char in _PLAIN_IN_REGEX else re.escape(char) for char in text)


def _literal(text: str) -> str:
    """Return the gate: the longest piece of the line that does not differ; all of a line that has none. U+FFFD stands for other bytes."""
    pieces = [
        piece
        for part in TOKEN.sub("\ufffd", text).split("\ufffd")
        if (piece := part.strip()[:_LONGEST_LITERAL].strip())
    ]
    longest = max(pieces, key=len, default="")
    if len(longest) < SHORTEST_LITERAL and "\ufffd" not in text:
        return text.strip()[:_LONGEST_LITERAL].strip()
    return longest


def _plain(number: str) -> str:
    """Write a number as TOML: no leading zeros."""
    return repr(float(number)) if "." in number else str(int(number))


def _toml(text: str) -> str:
    has_control = any(ord(char) < 32 or ord(char) == 127 for char in text)
    if not has_control and "'''" not in text and not text.endswith("'"):
        return f"'''{text}'''"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c for c in escaped) + '"'
