"""From blocks of bytes to messages: find the physical lines worth reading, peel what stands around SGLang's message.

Only lines that hold a literal of the pattern files are decoded. One pass over the bytes finds them; the rest is counted. What prefixes
look like is declared in ``patterns/envelope.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, MatchKind

from logscope.model import LogLine, Pos
from logscope.packs import Envelope, Packs, Pattern, Secret

REDACTED = "<redacted>"
LONGEST_LINE = 64 << 20  # a "line" that is longer, without a line end, is read in parts of this size
TAIL_BYTES = 1 << 16  # of the end of a log are kept: they tell whether a server still serves
LONGEST_BLOCK = 5000  # lines; the deepest recursion of Python prints about 2000
_GATE_GROUP = 60  # beyond 64 literals the automaton loses its fast path
_LONGEST_PEEL = 6
_CHAINED_WITHIN = 4  # lines between the end of a traceback and the next one of the same chain of exceptions


class Gate:
    """Finds which literals stand in a block of bytes or in a message."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = sorted(set(literals))
        encoded = [literal.encode("utf-8") for literal in self.literals]
        groups = [encoded[at : at + _GATE_GROUP] for at in range(0, len(encoded), _GATE_GROUP)]
        self._blocks = [BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst) for group in groups]
        self._texts = AhoCorasick(self.literals, matchkind=MatchKind.Standard)

    def find(self, block: bytes) -> list[int]:
        """Return where literals begin in the block, in ascending order."""
        starts = {start for group in self._blocks for _, start, _ in group.find_matches_as_indexes(block)}
        return sorted(starts)

    def literals_in(self, text: str) -> list[str]:
        """Return the literals that stand in a text, each once, in alphabetical order."""
        found = {index for index, _, _ in self._texts.find_matches_as_indexes(text, overlapping=True)}
        return [self.literals[index] for index in sorted(found)]


def build_gate(packs: Packs, patterns: Sequence[Pattern]) -> Gate:
    """Return the gate for these patterns: their literals, and those that the envelope needs (blocks, partial lines)."""
    literals = [literal for pattern in patterns for literal in pattern.literals]
    literals += [block.begins for block in packs.envelope.blocks]
    literals += [prefix.gate for prefix in packs.envelope.outer if prefix.gate]
    return Gate(literals)


@dataclass(slots=True)
class ReadState:
    """What is known of a log while it is read: physical lines so far, and the bytes it ends with."""

    lines: int = 0
    ends_whole: bool = True
    tail: bytes = b""
    follow: bool = field(default=False, repr=False)


def read_lines(
    name: str, blocks: Iterable[bytes], packs: Packs, gate: Gate, state: ReadState, everything: bool = False
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
    for number, raw, ended in _candidates(blocks, gate, state):
        yield from peeler.messages(number, raw, ended)
        state.follow = everything or peeler.wants_next
    yield from peeler.unfinished()


def _candidates(blocks: Iterable[bytes], gate: Gate, state: ReadState) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (line number, bytes, whether its line end was seen) of the lines that hold a literal or are asked for by ``follow``."""
    carry, in_long_line = b"", False
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut == 0:
            carry += block
            if len(carry) > LONGEST_LINE:
                yield from _scan(carry, gate, state, ended=False)
                carry, in_long_line = b"", True
            continue
        yield from _scan(carry + block[:cut], gate, state, ended=True)
        carry, in_long_line = block[cut:], False
    if carry or in_long_line:
        yield from _scan(carry, gate, state, ended=False)
        state.lines += 1
        state.ends_whole = False
        state.tail = (state.tail + carry)[-TAIL_BYTES:]


def _scan(data: bytes, gate: Gate, state: ReadState, ended: bool) -> Iterator[tuple[int, bytes, bool]]:
    """Scan whole lines (or one unfinished line), counting line ends into ``state``."""
    at = 0
    hits = iter(gate.find(data))
    hit = next(hits, None)
    while at < len(data):
        if state.follow:
            start = at
        else:
            while hit is not None and hit < at:
                hit = next(hits, None)
            if hit is None:
                break
            start = data.rfind(b"\n", at, hit) + 1 or at
        end = data.find(b"\n", start)
        state.lines += data.count(b"\n", at, start)
        yield state.lines + 1, data[start:] if end < 0 else data[start:end], ended
        if end < 0:
            return
        state.lines += 1
        at = end + 1
    state.lines += data.count(b"\n", at)
    if ended:
        state.tail = data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else (state.tail + data)[-TAIL_BYTES:]


class _Peeler:
    """Takes physical lines apart into messages; remembers partial lines and open blocks per origin."""

    def __init__(self, name: str, envelope: Envelope, gate: Gate, everything: bool) -> None:
        self._name, self._envelope, self._gate, self._everything = name, envelope, gate, everything
        self._partial: dict[tuple[str, str], LogLine] = {}
        self._open: dict[tuple[str, str], _OpenBlock] = {}  # by origin and block
        self._closed: dict[str, tuple[int, str]] = {}

    @property
    def wants_next(self) -> bool:
        """Whether the next physical line is to be read whatever it holds."""
        return bool(self._partial) or bool(self._open)

    def messages(self, number: int, raw: bytes, ended: bool) -> Iterator[LogLine]:
        text = raw.decode("utf-8", errors="replace").replace("\x00", "").replace("\ufeff", "")  # NULs, byte order marks
        if "\x1b" in text:
            for noise in self._envelope.noise:
                text = noise.regex.sub("", text)
        line = LogLine(Pos(self._name, number), text.rstrip("\r\n"), whole=ended)
        line, is_partial = peel_outer(line, self._envelope)
        said_by = (line.origin, line.stream)
        earlier = self._partial.pop(said_by, None)
        if earlier is not None:
            line = replace(line, pos=earlier.pos, text=earlier.text + line.text)
        if is_partial and len(line.text) < LONGEST_LINE:
            self._partial[said_by] = line
            return
        yield from self._split(line)

    def unfinished(self) -> Iterator[LogLine]:
        """Yield what partial lines hold when the log ends: nothing follows, so they may be cut anywhere."""
        for line in self._partial.values():
            yield from self._split(replace(line, whole=False))
        self._partial.clear()

    def _split(self, line: LogLine) -> Iterator[LogLine]:
        pieces = line.text.split("\r")
        for index, piece in enumerate(pieces):
            whole = line.whole or index < len(pieces) - 1
            is_wanted = self._everything or bool(self._open) or len(pieces) == 1
            if not is_wanted and not (piece and self._gate.literals_in(piece)):
                continue
            segments = split_at_prefixes(piece, self._envelope)
            loose = False
            for place, (tags, time, text, prefixed) in enumerate(segments):
                ended, clean = whole or place < len(segments) - 1, self._cleaned(text)
                message = replace(line, text=clean, tags=tags, time=time, prefixed=prefixed, whole=ended, loose=loose)
                yield self._placed(message)
                loose = loose or (prefixed and bool(clean))

    def _cleaned(self, text: str) -> str:
        for suffix in self._envelope.suffix:
            text = suffix.regex.sub("", text)
        return redact(text.rstrip(), self._envelope.secrets)

    def _placed(self, message: LogLine) -> LogLine:
        """Tell a message that stands in a block, or closes one; open a block where one begins."""
        begins = next((block for block in self._envelope.blocks if block.begins in message.text), None)
        if begins is not None:
            key = (message.origin, begins.id)
            self._open[key] = self._opened(message, self._open.get(key))
            return message
        if message.prefixed and message.text.endswith(":"):  # announces the traceback that follows
            self._closed[message.origin] = (message.pos.line, message.tags)
        if not self._open or message.prefixed:
            return message
        for block in self._envelope.blocks:
            if (opened := self._open.get(key := (message.origin, block.id))) is None:
                continue
            message = replace(message, loose=True)
            opened.lines += 1
            if opened.lines > LONGEST_BLOCK:
                del self._open[key]
            elif block.continues.search(message.text):
                return replace(message, block=block.id)
            elif block.closes.search(message.text):
                opened.count -= 1
                if opened.count == 0:
                    del self._open[key]
                    self._closed[message.origin] = (message.pos.line, opened.tags)
                return replace(message, closes=block.id, tags=opened.tags)
        return message

    def _opened(self, message: LogLine, opened: _OpenBlock | None) -> _OpenBlock:
        """Open a block, remembering whose it is; where blocks of several ranks interleave, that is not known."""
        line, tags = self._closed.get(message.origin, (0, ""))
        chained = not message.prefixed and message.pos.line - line <= _CHAINED_WITHIN
        own = tags if chained else message.tags
        if opened is None:
            return _OpenBlock(own)
        return _OpenBlock(opened.tags if opened.tags == own else "", opened.count + 1, opened.lines)


@dataclass(slots=True)
class _OpenBlock:
    """Blocks of one kind that are open in one origin: tracebacks of several ranks interleave line by line."""

    tags: str
    count: int = 1
    lines: int = 0


def peel_outer(line: LogLine, envelope: Envelope) -> tuple[LogLine, bool]:
    """Take off what other programs put in front; return the line and whether it goes on in the next one."""
    text, is_partial = line.text, False
    outer_time, origin, stream = line.outer_time, line.origin, line.stream
    for _ in range(_LONGEST_PEEL):
        match = next((found for prefix in envelope.outer if (found := prefix.regex.match(text))), None)
        if match is None or match.end() == 0:
            break
        groups = match.groupdict()
        outer_time = groups.get("time") or outer_time
        origin = " ".join(part for part in (origin, (groups.get("origin") or "").strip()) if part)
        stream = groups.get("stream") or stream
        is_partial = is_partial or bool(groups.get("partial"))
        text = text[match.end() :]
    if text is line.text:
        return line, False
    return replace(line, text=text, outer_time=outer_time, origin=origin, stream=stream), is_partial


def split_at_prefixes(text: str, envelope: Envelope) -> list[tuple[str, str | None, str, bool]]:
    """Split a text at SGLang's own prefixes, wherever they stand: an event may be glued to the end of a progress bar.

    Returns:
        (tags, time, message, whether it has a prefix) for each part.
    """
    found = _prefixes(text, envelope)
    if not found:
        return [("", None, text, False)]
    parts: list[tuple[str, str | None, str, bool]] = []
    if text[: found[0].start()].strip():
        parts.append(("", None, text[: found[0].start()], False))
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        groups = match.groupdict()
        parts.append(((groups.get("tags") or "").strip(), groups.get("time"), text[match.end() : end], True))
    return parts


def _prefixes(text: str, envelope: Envelope) -> list[re.Match[str]]:
    """Return the matches of SGLang's prefix forms, in order, without overlaps; the earlier form wins."""
    found: list[re.Match[str]] = []
    for prefix in envelope.sglang:
        for match in prefix.regex.finditer(text):
            if all(match.end() <= other.start() or match.start() >= other.end() for other in found):
                found.append(match)
    return sorted(found, key=lambda match: match.start())


def redact(text: str, secrets: Sequence[Secret]) -> str:
    """Replace what must not be shown by ``<redacted>``."""
    for secret in secrets:
        if secret.regex.search(text):
            text = secret.regex.sub(lambda match, secret=secret: _redacted(match, secret), text)  # type: ignore[misc] # bound here
    return text


def _redacted(match: re.Match[str], secret: Secret) -> str:
    value = match["secret"]
    if not value or (secret.keep is not None and secret.keep.search(value)):
        return match[0]
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + REDACTED + match[0][end:]
