"""Read the lines of serving: batches of rows by launch, in constant memory.

Lines that fit a template are taken out of the bytes; their line ends stay, so that lines are counted as ever. What is left (launches,
rare wordings, retractions) goes the ordinary way, and so does one line of each template in each block: it tells where launches begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from logscope.clock import DAY_S, read_clock
from logscope.errors import SourceError
from logscope.events import Recogniser, printed_values
from logscope.launch import NodeJoiner, Segment, split_streams
from logscope.model import Drift, Event, LogLine
from logscope.packs import Packs
from logscope.reading import Reading
from logscope.scan import ReadState
from logscope.serving.learn import learn, read_unknown
from logscope.serving.template import CLOCK_FRACTION, PADDING, Template, Walk, scaled, tag_codes, tag_of, walk
from logscope.serving.types import KIND_OF, Batch, Unread, Vocabulary
from logscope.source import Source, find_sources, read_blocks
from logscope.units import Quantity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_BYTES = 4 << 20  # of 1 MiB each line costs a fifth more: numpy is called as often for fewer lines
DRIFT_KEPT = 5
_MOST_ATTEMPTS = 500
_DIGITS = re.compile(rb"\d+")


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one launch and one file. ``node`` is the node's rank where the arguments tell it."""

    launch: int
    node: int | None
    file: str
    batch: Batch


@dataclass(slots=True)
class Serving:
    """What is known of the logs besides their rows, while they are read. ``segments``: (launch, file, first line, last line)."""

    words: Vocabulary = field(default_factory=Vocabulary)
    unread: Unread = field(default_factory=Unread)
    segments: list[tuple[int, Segment]] = field(default_factory=list)
    drift: list[Drift] = field(default_factory=list)
    drifted: int = 0


def read_parts(paths: Sequence[str], reading: Reading, serving: Serving) -> Iterator[Part]:
    """Yield the rows of the logs, block by block.

    Args:
        paths: files, directories, globs, ``-``.
        reading: how to read; takes what goes wrong.
        serving: takes what is learnt besides.

    Raises:
        SourceError: a log cannot be found.
    """
    recogniser = _Recogniser(reading.packs, serving.unread)
    joiner = NodeJoiner()
    for source in find_sources(paths):
        yield from _File(source, reading, recogniser, joiner, serving).parts()


class _Recogniser(Recogniser):
    """Takes note of values that are no numbers, too: the event does not have them."""

    def __init__(self, packs: Packs, unread: Unread) -> None:
        super().__init__(packs, dense=True)
        self._unread = unread

    def recognise(self, line: LogLine) -> Event | Drift | None:
        found = super().recognise(line)
        if isinstance(found, Event) and found.pattern.id in KIND_OF:
            for name, printed in (printed_values(line, found.pattern, found.form) or {}).items():
                field = found.pattern.fields.get(name)
                if field is not None and field.result not in found.values and printed:
                    self._unread.add(field.result, printed, found.pos)
        return found


class _File:
    """One log that is read."""

    def __init__(
        self, source: Source, reading: Reading, recogniser: Recogniser, joiner: NodeJoiner, serving: Serving
    ) -> None:
        self._source, self._reading, self._recogniser = source, reading, recogniser
        self._joiner, self._serving = joiner, serving
        self._templates = Templates(recogniser, serving.words)
        self._rows = _Rows(serving)
        self._segments: list[Segment] = []
        self._numbers: dict[int, int] = {}
        self._read: list[Batch] = []  # of the block at hand
        self._done: list[Batch] = []  # of blocks whose launches are known

    def parts(self) -> Iterator[Part]:
        for segment, is_closed in split_streams(self._reading.packs, self._source.name, self._items()):
            if all(segment is not known for known in self._segments):
                self._segments.append(segment)
            yield from self._given_out()
            if is_closed and segment.events:
                self._number(segment)
        self._block_ends()
        yield from self._given_out()

    def _items(self) -> Iterator[Event | Drift]:
        try:
            for item in self._recogniser.read(self._source.name, self._rest(), ReadState()):
                if isinstance(item, Drift):
                    self._note_drift(item)
                elif item.pattern.id in KIND_OF:
                    self._rows.add(item)
                yield item
        except SourceError as error:
            self._reading.problems.append(error)

    def _note_drift(self, drift: Drift) -> None:
        if self._reading.packs.phases[drift.patterns[0].partition(".")[0]].dense:
            self._serving.drifted += 1
            if len(self._serving.drift) < DRIFT_KEPT:
                self._serving.drift.append(drift)

    def _rest(self) -> Iterator[bytes]:
        """Yield the blocks of the log without the lines that fit a template."""
        line = 0
        for block in _whole_lines(read_blocks(self._source, self._reading.on_read)):
            rest, count = self._templates.take_out(block, line, self._read)
            line += count
            yield rest
            self._block_ends()

    def _block_ends(self) -> None:
        self._done += [*self._read, *self._rows.batches()]
        self._read.clear()

    def _given_out(self) -> Iterator[Part]:
        for batch in self._done:
            for segment, part in self._by_segment(batch):
                yield Part(self._number(segment), segment.node, self._source.name, part)
        self._done.clear()

    def _by_segment(self, batch: Batch) -> Iterator[tuple[Segment, Batch]]:
        import numpy as np

        codes = np.unique(batch.origin)
        for code in codes:
            own = batch if len(codes) == 1 else batch.chosen(batch.origin == code)
            origin = self._serving.words.words[code]
            candidates = [segment for segment in self._segments if segment.origin == origin] or self._segments
            candidates = sorted(candidates, key=lambda segment: segment.first_line)
            begins = np.array([segment.first_line for segment in candidates[1:]], np.int64)
            places = np.searchsorted(begins, own.line, side="right")
            for place in np.unique(places):
                yield candidates[place], own if len(candidates) == 1 else own.chosen(places == place)

    def _number(self, segment: Segment) -> int:
        if id(segment) not in self._numbers:
            self._numbers[id(segment)] = number = self._joiner.place(segment)
            self._serving.segments.append((number, segment))
        return self._numbers[id(segment)]


def _whole_lines(blocks: Iterator[bytes | bytearray]) -> Iterator[bytearray]:
    """Yield larger blocks that end with a line end, but for the last one, and ``PADDING`` more bytes."""
    held = bytearray()
    for block in blocks:
        held += block
        if len(held) >= BLOCK_BYTES and (cut := held.rfind(b"\n") + 1):
            yield held[:cut] + bytes(PADDING)
            del held[:cut]
    if held:
        yield held + bytes(PADDING)


class Templates:
    """The templates of a log; they are learnt while it is read."""

    def __init__(self, recogniser: Recogniser, words: Vocabulary) -> None:
        self._recogniser, self._words = recogniser, words
        self._templates: list[Template] = []
        self._seen: set[bytes] = set()
        self._literals = [
            literal.encode()
            for pattern in recogniser.patterns
            if pattern.id in KIND_OF
            for literal in pattern.literals
        ]

    def take_out(self, block: bytearray, line: int, into: list[Batch]) -> tuple[bytes, int]:
        """Read the lines that fit a template.

        Args:
            block: whole lines and ``PADDING`` bytes; the last line may have no end.
            line: how many lines come before it.
            into: takes the rows.

        Returns:
            (the block without these lines, how many line ends are in it).
        """
        import numpy as np

        size = len(block) - PADDING
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data[:size] == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        taken = np.zeros(len(starts), bool)
        self._templates.sort(key=lambda template: -template.hits)
        known = list(self._templates)
        while True:
            for template in known:
                self._read(template, data, starts, taken, line, into)
            rest = _without(block, size, starts, taken)
            template = self._learn_from(rest)
            if template is None:
                return rest, len(ends)
            self._templates.append(template)
            known = [template]

    def _read(
        self,
        template: Template,
        data: NDArray[np.uint8],
        starts: NDArray[np.intp],
        taken: NDArray[np.bool_],
        line: int,
        into: list[Batch],
    ) -> None:
        """Read the lines of one template, all but the first, and take them out."""
        import numpy as np

        found = walk(template, data, starts, np.flatnonzero(~taken))
        codes = tag_codes(found, len(template.tag) - 1)
        template.hits += len(found.index)
        if len(found.index) > 1:
            first = np.arange(len(found.index)) > 0
            taken[found.index[1:]] = True
            into.append(self._batch(template, found, codes, line).chosen(first))

    def _batch(self, template: Template, found: Walk, codes: NDArray[np.uint64] | None, line: int) -> Batch:
        import numpy as np

        count = len(found.index)
        seconds = np.full(count, np.nan) if found.seconds is None else found.seconds
        if CLOCK_FRACTION in found.numbers:
            seconds = seconds + found.numbers[CLOCK_FRACTION].astype(np.float64) / template.clock_divisor
        return Batch(
            template.kind,
            found.index.astype(np.int64) + (line + 1),
            seconds,
            self._ranks(template, codes, count),
            np.full(count, self._words.code(template.origin), np.int64),
            {value.name: scaled(found, value) for value in template.values},
            {name: np.full(count, self._words.code(text), np.int64) for name, text in template.texts.items()},
        )

    def _ranks(self, template: Template, codes: NDArray[np.uint64] | None, count: int) -> NDArray[np.int64]:
        import numpy as np

        if codes is None:
            return np.full(count, self._words.code(template.tag[0]), np.int64)
        if (codes == codes[0]).all():
            return np.full(count, self._words.code(tag_of(template, int(codes[0]))), np.int64)
        several, which = np.unique(codes, return_inverse=True)
        ranks = np.array([self._words.code(tag_of(template, int(code))) for code in several], np.int64)
        return ranks[which]

    def _learn_from(self, rest: bytes) -> Template | None:
        """Return the template of the first line with a literal of serving that is of none yet."""
        for literal in self._literals:
            at = rest.find(literal)
            while at >= 0 and len(self._seen) < _MOST_ATTEMPTS:
                begin, end = rest.rfind(b"\n", 0, at) + 1, rest.find(b"\n", at)
                if end < 0:
                    break
                raw = rest[begin:end]
                shape = _DIGITS.sub(b"0", raw)
                if shape not in self._seen:
                    self._seen.add(shape)
                    template = learn(raw, self._recogniser)
                    if template is not None:
                        return template
                at = rest.find(literal, end)
        return None


def _without(block: bytearray, size: int, starts: NDArray[np.intp], taken: NDArray[np.bool_]) -> bytes:
    """Return a block without what stands in some of its lines; their line ends stay."""
    import numpy as np

    edges = np.flatnonzero(np.diff(taken, prepend=False, append=False)).reshape(-1, 2).tolist()
    begins = [*starts.tolist(), None] if edges else []
    parts: list[bytes | memoryview] = []
    at = 0
    with memoryview(block) as view:
        for first, behind in edges:
            parts += [view[at : begins[first]], b"\n" * (behind - first)]
            at = begins[behind] if behind < len(starts) else block.rfind(b"\n", 0, size) + 1
        parts.append(view[at:size])
        return b"".join(parts)


class _Rows:
    """Rows of lines that the pattern files have read, one by one."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._events: dict[str, list[Event]] = {}
        self._last_undated: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """Take a line of serving."""
        self._events.setdefault(KIND_OF[event.pattern.id], []).append(event)

    def batches(self) -> list[Batch]:
        """Return the rows taken since the last time."""
        batches = [self._batch(kind, events) for kind, events in self._events.items()]
        self._events.clear()
        return batches

    def _batch(self, kind: str, events: Sequence[Event]) -> Batch:
        import numpy as np

        words = self._serving.words
        numbers: dict[str, NDArray[np.float64]] = {}
        texts: dict[str, NDArray[np.int64]] = {}
        for place, event in enumerate(events):
            for name, value in self._values(event).items():
                if isinstance(value, float):
                    numbers.setdefault(name, np.full(len(events), np.nan))[place] = value
                else:
                    texts.setdefault(name, np.full(len(events), -1, np.int64))[place] = words.code(value)
        return Batch(
            kind,
            np.array([event.pos.line for event in events], np.int64),
            np.array([self._seconds(event) for event in events]),
            np.array([words.code(event.rank.tag) for event in events], np.int64),
            np.array([words.code(event.origin) for event in events], np.int64),
            numbers,
            texts,
        )

    def _values(self, event: Event) -> dict[str, float | str]:
        """Return the values of a line; of keys that no pattern file names numbers are told by how they look."""
        found: dict[str, float | str] = {}
        named = {item.result: item for item in event.pattern.fields.values()}
        for name, value in event.values.items():
            if isinstance(value, Quantity):
                found[name] = float(value.value)
            elif isinstance(value, str):
                unknown = read_unknown(value) if name not in named else None
                found[name] = value if unknown is None else unknown
        return found

    def _seconds(self, event: Event) -> float:
        printed = event.time or event.outer_time
        clock = read_clock(printed) if printed is not None else None
        if clock is None:
            return float("nan")
        seconds, is_dated = clock
        if not is_dated:  # midnight may pass
            last = self._last_undated.get(event.origin, seconds)
            seconds += DAY_S * round((last - seconds) / DAY_S)
            self._last_undated[event.origin] = seconds
        return seconds
