"""Find the lines of logs that the pattern files do not know, and group them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from logscope.events import Recogniser
from logscope.lines import read_lines
from logscope.model import Drift, Event, LogLine, Pos
from logscope.scan import ReadState

MOST_GROUPS = 20_000
LONGEST_TEXT = 500  # of a line: what is longer is known by how it begins

# What differs between lines that say the same thing. Each kind becomes a piece of a regex (``pack``).
TOKEN = re.compile(
    r"(?P<hex>\b0x[0-9a-fA-F]+)|(?P<path>(?<![\w/])(?:/[\w.+-]+){2,})|(?P<quoted>(?<!\w)'[^']*'(?!\w)|\"[^\"]*\")"
    r"|(?P<numbers>\[-?\d+(?:\.\d+)?(?:, ?-?\d+(?:\.\d+)?)*\])"
    r"|(?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?!\d)(?!\w*\.\w))|(?P<digits>\d+(?:\.\d+)?)"
)
_DIGITS = str.maketrans("123456789", "000000000")
_NUMBER = re.compile(r"(?<![\w.])\d")
_MEMORY = re.compile(
    r"\b(?:mem|memory|avail|tokens?|kv|cache|pool|alloc\w*|GB|GiB|MB|MiB|bytes)\b|mem_|_mem|\d(?:GB|GiB|MB|MiB)",
    re.IGNORECASE,
)


class Gap(Struct):
    """A group of unrecognised lines that differ in their numbers, paths and quoted texts only.

    ``text`` is the first of them, without its prefixes; ``is_cut``: it is longer than that. ``near`` are the events whose literal it holds.
    """

    pos: Pos
    text: str
    tags: str
    prefixed: bool
    is_cut: bool = False
    count: int = 1
    near: tuple[str, ...] = ()

    @property
    def is_memory(self) -> bool:
        """Whether the line looks like one about memory: it has a number, and a word or a unit of memory."""
        return bool(self.near) or (bool(_NUMBER.search(self.text)) and bool(_MEMORY.search(self.text)))


def find_gaps(
    logs: Iterable[tuple[str, Iterable[bytes | bytearray]]],
    recogniser: Recogniser,
    is_wanted: Callable[[LogLine], bool] | None = None,
) -> list[Gap]:
    """Return the unrecognised lines of logs, grouped; those that look like memory first, then the most frequent.

    Args:
        logs: (name, blocks of bytes) of each.
        recogniser: of all pattern files, the dense ones, too.
        is_wanted: which lines are looked at; None: all.
    """
    groups: dict[str, Gap] = {}
    known: set[str] = set()  # lines that an event reads, whatever their digits
    for name, blocks in logs:
        for line in read_lines(name, blocks, recogniser.packs, recogniser.gate, ReadState(), everything=True):
            if not line.text.strip() or line.block or (is_wanted is not None and not is_wanted(line)):
                continue
            shape = line.text.translate(_DIGITS)
            if shape in known:  # half of the time that a log of batches takes
                continue
            found = recogniser.recognise(replace(line, whole=True))  # a line end that is missing is no other wording
            if isinstance(found, Event) and line.closes is None and len(known) < MOST_GROUPS:
                known.add(shape)
            elif found is None:
                _count(groups, line, ())
            elif isinstance(found, Drift) and line.whole:  # the cut end of a known line is no wording
                _count(groups, line, found.patterns)
    order = {name: number for number, name in enumerate(dict.fromkeys(gap.pos.file for gap in groups.values()))}

    def rank(gap: Gap) -> tuple[bool, bool, int, int, int]:
        return not gap.is_memory, not gap.prefixed, -gap.count, order[gap.pos.file], gap.pos.line

    return sorted(groups.values(), key=rank)


def _count(groups: dict[str, Gap], line: LogLine, near: tuple[str, ...]) -> None:
    text, is_cut = line.text, len(line.text) > LONGEST_TEXT
    if is_cut:
        begin = text[:LONGEST_TEXT]
        text = begin[: begin.rfind(" ")] if " " in begin.strip() else begin
    masked = TOKEN.sub(lambda token: f"\0{token.lastgroup}\0", text)
    known = groups.get(masked)
    if known is not None:
        known.count += 1
    elif len(groups) < MOST_GROUPS:
        groups[masked] = Gap(line.pos, text, line.tags, line.prefixed, is_cut, near=near)
