"""From blocks of bytes to messages: find the physical lines worth reading, peel what stands around SGLang's message.

Only lines that hold a literal of the pattern files are decoded. One pass over the bytes finds them; the rest is counted. What prefixes
look like is declared in ``patterns/envelope.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from logscope.lines.prefixes import any_of, peel_outer, split_at
from logscope.lines.secrets import redact
from logscope.model import LogLine, Pos
from logscope.packs import Envelope, Packs, Pattern
from logscope.scan import LONGEST_LINE, Gate, RawLine, ReadState, candidate_lines, open_gate

LONGEST_BLOCK = 5000  # lines; the deepest recursion of Python prints about 2000
_FRAMES_KEPT = 5000
_ANY_DIGIT = bytes.maketrans(
    b"123456789", b"000000000"
)  # no prefix that tells digits apart begins with white space, as frames do
_CHAINED_WITHIN = 4  # lines between the end of a traceback and the next one of the same chain of exceptions


def build_gate(packs: Packs, patterns: Sequence[Pattern]) -> Gate:
    """Return the gate for these patterns: their literals, and those that the envelope needs (blocks, partial lines)."""
    literals = [literal for pattern in patterns for literal in pattern.literals]
    literals += [block.begins for block in packs.envelope.blocks]
    literals += [prefix.gate for prefix in packs.envelope.outer if prefix.gate]
    return open_gate(literals)


def read_lines(
    name: str, blocks: Iterable[bytes | bytearray], packs: Packs, gate: Gate, state: ReadState, everything: bool = False
) -> Iterator[LogLine]:
    """Yield the messages of one log that hold a literal, or belong to a block (a traceback) that begins with one.

    Args:
        name: the file, for positions.
        blocks: its bytes, cut anywhere.
        packs: for the envelope.
        gate: from ``build_gate``.
        state: is kept up to date; read it when the iterator is exhausted.
        everything: yield all other messages, too.
    """
    peeler = _Peeler(name, packs.envelope, gate, everything)
    state.follow = everything
    for line in candidate_lines(blocks, gate, state):
        if line.is_hit or not peeler.goes_on_as_before(line.raw):
            yield from peeler.messages(line)
        state.follow = everything or peeler.wants_next
    yield from peeler.unfinished()


def _decode(raw: bytes) -> str:
    """Decode a line; bytes that are no UTF-8 become U+FFFD, NUL bytes and byte order marks vanish."""
    return raw.decode("utf-8", errors="replace").replace("\x00", "").replace("\ufeff", "")


class _Peeler:
    """Takes physical lines apart into messages; remembers partial lines and open blocks per origin."""

    def __init__(self, name: str, envelope: Envelope, gate: Gate, everything: bool) -> None:
        self._name, self._envelope, self._gate, self._everything = name, envelope, gate, everything
        self._may_be_peeled = any_of(envelope.outer).match
        self._somewhere = any_of(envelope.sglang)
        self._partial: dict[tuple[str, str], LogLine] = {}
        self._open: dict[tuple[str, str], _OpenBlock] = {}  # by origin and block
        self._frames: dict[bytes, str] = {}  # the block that such a line goes on, whatever its digits
        self._closed: dict[str, tuple[int, str]] = {}

    @property
    def wants_next(self) -> bool:
        """Whether the next physical line is to be read whatever it holds."""
        return bool(self._partial) or bool(self._open)

    def goes_on_as_before(self, raw: bytes) -> bool:
        """Return whether a line without a literal is one that has gone on the open block before: nothing else need be known of it.

        The frames of tracebacks repeat, but for the numbers of lines. Saves a third of the time of tracebacks.
        """
        key = ("", self._frames.get(raw.translate(_ANY_DIGIT), ""))
        opened = self._open.get(key)
        if opened is None or len(self._open) > 1 or self._everything or self._partial:
            return False
        opened.lines += 1
        if opened.lines > LONGEST_BLOCK:
            del self._open[key]
        return True

    def messages(self, read: RawLine) -> Iterator[LogLine]:
        """Yield the messages of a physical line. Of one that holds no literal only that which closes a block is of use."""
        is_idle = not (read.is_hit or self._everything or self._partial)
        text = _decode(read.raw)
        if "\x1b" in text:
            for noise in self._envelope.noise:
                text = noise.regex.sub("", text)
        line = LogLine(Pos(self._name, read.number), text.rstrip("\r\n"), whole=read.ended)
        line, is_partial = peel_outer(line, self._envelope) if self._may_be_peeled(line.text) else (line, False)
        said_by = (line.origin, line.stream)
        earlier = self._partial.pop(said_by, None)
        if earlier is not None:
            line = replace(line, pos=earlier.pos, text=earlier.text + line.text)
        if is_partial and len(line.text) < LONGEST_LINE:
            self._partial[said_by] = line
            return
        if len(text) < len(read.raw):  # what was taken out may have stood inside of a literal
            is_idle = False
        yield from self._split(line, read.raw if is_idle else None)

    def unfinished(self) -> Iterator[LogLine]:
        """Yield what partial lines hold when the log ends: nothing follows, so they may be cut anywhere."""
        for line in self._partial.values():
            yield from self._split(replace(line, whole=False))
        self._partial.clear()

    def _split(self, line: LogLine, idle: bytes | None = None) -> Iterator[LogLine]:
        """Yield the messages of a line; of ``idle``, the bytes of one without a literal, only what closes a block."""
        pieces = line.text.split("\r")
        for index, piece in enumerate(pieces):
            whole = line.whole or index < len(pieces) - 1
            is_wanted = self._everything or bool(self._open) or len(pieces) == 1
            if not is_wanted and not (piece and self._gate.literals_in(piece)):
                continue
            segments = split_at(piece, self._envelope.sglang, self._somewhere)
            loose = False
            for place, (tags, time, text, prefixed) in enumerate(segments):
                bare = self._bare(text)
                placed = self._placed(line, bare, tags, prefixed)
                if idle is not None and not placed.closes:
                    if (
                        placed.block
                        and not line.origin
                        and len(pieces) == len(segments) == 1
                        and len(self._frames) < _FRAMES_KEPT
                    ):
                        self._frames[idle.translate(_ANY_DIGIT)] = placed.block
                    continue
                yield LogLine(
                    pos=line.pos,
                    text=redact(bare, self._envelope.secrets),
                    tags=placed.tags,
                    time=time,
                    outer_time=line.outer_time,
                    origin=line.origin,
                    prefixed=prefixed,
                    whole=whole or place < len(segments) - 1,
                    block=placed.block,
                    closes=placed.closes,
                    stream=line.stream,
                    loose=loose or placed.loose,
                )
                loose = loose or (prefixed and bool(bare))

    def _bare(self, text: str) -> str:
        for suffix in self._envelope.suffix:
            text = suffix.regex.sub("", text)
        return text.rstrip()

    def _placed(self, line: LogLine, text: str, tags: str, prefixed: bool) -> _Placed:
        """Tell a message that stands in a block, or closes one; open a block where one begins."""
        for block in self._envelope.blocks:
            if block.begins in text:
                self._open[line.origin, block.id] = self._opened(block.id, line, tags, prefixed)
                return _Placed(tags)
        if prefixed and text.endswith(":"):  # announces the traceback that follows
            self._closed[line.origin] = (line.pos.line, tags)
        if not self._open or prefixed:
            return _Placed(tags)
        loose = False
        for block in self._envelope.blocks:
            if (opened := self._open.get(key := (line.origin, block.id))) is None:
                continue
            loose = True
            opened.lines += 1
            if opened.lines > LONGEST_BLOCK:
                del self._open[key]
            elif block.continues.search(text):
                return _Placed(tags, block=block.id)
            elif block.closes.search(text):
                opened.count -= 1
                if opened.count == 0:
                    del self._open[key]
                    self._closed[line.origin] = (line.pos.line, opened.tags)
                return _Placed(opened.tags, closes=block.id)
        return _Placed(tags, loose=loose)

    def _opened(self, block: str, line: LogLine, tags: str, prefixed: bool) -> _OpenBlock:
        """Open a block, remembering whose it is; where blocks of several ranks interleave, that is not known."""
        opened = self._open.get((line.origin, block))
        closed_at, closed_tags = self._closed.get(line.origin, (0, ""))
        chained = not prefixed and line.pos.line - closed_at <= _CHAINED_WITHIN
        own = closed_tags if chained else tags
        if opened is None:
            return _OpenBlock(own)
        return _OpenBlock(opened.tags if opened.tags == own else "", opened.count + 1, opened.lines)


class _Placed(NamedTuple):
    """Whose a message is, the block that it stands in or closes, and whether one is open that it does not belong to."""

    tags: str
    block: str | None = None
    closes: str | None = None
    loose: bool = False


class _OpenBlock(Struct):
    """Blocks of one kind that are open in one origin: tracebacks of several ranks interleave line by line."""

    tags: str
    count: int = 1
    lines: int = 0
