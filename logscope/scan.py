"""From blocks of bytes to the physical lines worth reading: those that hold a literal of the pattern files. The rest is counted.

Two engines find literals and give the same lines: hyperscan, where it is installed, and a trie written as a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import NamedTuple, Protocol

from msgspec import Struct

Block = bytes | bytearray
LONGEST_LINE = 64 << 20  # a "line" that is longer, without a line end, is read in parts of this size
TAIL_BYTES = 1 << 16  # of the end of a log are kept: they tell whether a server still serves


class Gate(Protocol):
    """Finds literals. ``literals`` are in alphabetical order, each once."""

    literals: list[str]

    def find(self, block: bytes | memoryview) -> list[int]:
        """Return offsets of last bytes of literals in the block, ascending: at least one in each line that holds a literal."""
        ...

    def literals_in(self, text: str) -> list[str]:
        """Return the literals that stand in a text, each once, in alphabetical order."""
        ...


def open_gate(literals: Iterable[str]) -> Gate:
    """Return the gate for these literals, with the fastest engine that there is on this machine."""
    try:
        return HyperscanGate(literals)
    except ImportError:
        return TrieGate(literals)


class HyperscanGate:
    """About 2 GB/s whatever the number of literals: with 531 of them 3 times Aho and Corasick's automaton, 100 times the trie."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = sorted(set(literals))
        hyperscan = import_module("hyperscan")
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        encoded = [literal.encode() for literal in self.literals]
        if encoded:
            self._database.compile(expressions=encoded, ids=range(len(encoded)), elements=len(encoded), literal=True)
            self._scratch = hyperscan.Scratch(self._database)

    def find(self, block: bytes | memoryview) -> list[int]:
        """Do what ``Gate.find`` says."""
        found: list[int] = []

        def take(_index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append(end - 1)

        if self.literals:
            self._database.scan(block, match_event_handler=take, scratch=self._scratch)
        return sorted(found)

    def literals_in(self, text: str) -> list[str]:
        """Do what ``Gate.literals_in`` says."""
        found: set[int] = set()

        def take(index: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(index)

        if self.literals:
            encoded = text.encode(errors="surrogatepass")
            self._database.scan(encoded, match_event_handler=take, scratch=self._scratch)
        return [self.literals[index] for index in sorted(found)] if found else []


class TrieGate:
    """The same without a library: no slower for more literals, but at 20 MB/s."""

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = sorted(set(literals))
        self._regex = re.compile(_trie_regex(literal.encode() for literal in self.literals))

    def find(self, block: bytes | memoryview) -> list[int]:
        """Do what ``Gate.find`` says."""
        return [match.end() - 1 for match in self._regex.finditer(block)]

    def literals_in(self, text: str) -> list[str]:
        """Do what ``Gate.literals_in`` says."""
        return [literal for literal in self.literals if literal in text]


_Node = dict[int, "_Node"]
_END = -1


def _trie_regex(words: Iterable[bytes]) -> bytes:
    """Return a regex that finds the words by their common beginnings; of two that begin alike, the shorter one."""
    root: _Node = {}
    for word in words:
        node = root
        for byte in word:
            node = node.setdefault(byte, {})
        node[_END] = {}
    return _regex_of(root) if root else b"(?!)"


def _regex_of(node: _Node) -> bytes:
    if _END in node:
        return b""
    ways = [re.escape(bytes([byte])) + _regex_of(after) for byte, after in node.items()]
    return ways[0] if len(ways) == 1 else b"(?:" + b"|".join(ways) + b")"


class ReadState(Struct):
    """What is known of a log while it is read: physical lines so far, and the bytes it ends with.

    ``follow``: the next line is asked for, whatever it holds.
    """

    lines: int = 0
    ends_whole: bool = True
    tail: bytes = b""
    follow: bool = False


class RawLine(NamedTuple):
    """A physical line: its number from 1, whether its line end was seen, and whether it holds a literal."""

    number: int
    raw: bytes
    ended: bool
    is_hit: bool


def candidate_lines(blocks: Iterable[Block], gate: Gate, state: ReadState) -> Iterator[RawLine]:
    """Yield the lines that hold a literal or are asked for by ``follow``.

    Args:
        blocks: the log, cut anywhere; each block is done with before the next one is asked for.
        gate: finds the literals.
        state: is kept up to date.
    """
    carry, in_long_line = b"", False
    for block in blocks:
        first, cut = block.find(b"\n") + 1, block.rfind(b"\n") + 1
        if cut == 0:
            carry += block
            if len(carry) > LONGEST_LINE:
                yield from _scan(carry, 0, len(carry), gate, state)
                carry, in_long_line = b"", True
            continue
        if carry:  # the line that the block before began; the rest of the block is scanned where it lies
            joined = carry + block[:first]
            yield from _scan(joined, 0, len(joined), gate, state)
        yield from _scan(block, first if carry else 0, cut, gate, state)
        state.tail = _tail(state.tail + carry, block, cut)
        carry, in_long_line = bytes(block[cut:]), False
    if carry or in_long_line:
        yield from _scan(carry, 0, len(carry), gate, state)
        state.lines += 1
        state.ends_whole = False
        state.tail = (state.tail + carry)[-TAIL_BYTES:]


def _tail(before: bytes, block: Block, cut: int) -> bytes:
    """Return the end of what has been read, up to ``cut`` in the block."""
    return bytes(block[cut - TAIL_BYTES : cut]) if cut >= TAIL_BYTES else (before + block[:cut])[-TAIL_BYTES:]


def _scan(data: Block, at: int, stop: int, gate: Gate, state: ReadState) -> Iterator[RawLine]:
    """Scan the whole lines (or one unfinished line) in ``data[at:stop]``, counting line ends into ``state``."""
    base = at
    with memoryview(data) as view, view[at:stop] as part:
        hits = iter(gate.find(part))
    hit = next(hits, stop) + base
    while at < stop:
        start = at
        while hit < at:
            hit = next(hits, stop) + base
        if not state.follow:
            if hit >= stop:
                break
            start = data.rfind(b"\n", at, hit) + 1 or at
            state.lines += data.count(b"\n", at, start)
        end = data.find(b"\n", start, stop)
        ended = end >= 0
        if not ended:
            end = stop
        yield RawLine(state.lines + 1, bytes(data[start:end]), ended, hit < end)
        state.lines += ended
        at = end + 1
    state.lines += data.count(b"\n", at, stop)
