"""Read the lines of serving: batches of rows by launch, in constant memory.

Lines that fit a template are read by numpy, and spoilt in the bytes: no literal stands in them any more. Then all goes the ordinary way,
which finds what is left (launches, rare wordings), and one line of each template in each block: what has been read is given out then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from logscope.errors import SourceError
from logscope.launch import NodeJoiner, Segment, split_streams
from logscope.model import Drift, Event
from logscope.reading import Reading
from logscope.scan import ReadState
from logscope.serving.blocks import Templates, whole_lines
from logscope.serving.recogniser import ServingRecogniser
from logscope.serving.rows import Rows
from logscope.serving.types import KIND_OF, Batch, Unread, Vocabulary, joined
from logscope.source import Source, find_sources, read_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRIFT_KEPT = 5
SEARCHED_FROM = 100  # lines of a block that fit no template: there may be new ones


class Part(Struct, frozen=True):
    """Rows of one launch and one file. ``node`` is the node's rank where the arguments tell it.

    ``launch`` is 0 for what was served before the first launch that the log shows; ``stream`` then tells logs and origins apart.
    """

    launch: int
    stream: str
    node: int | None
    file: str
    batch: Batch


class Serving(Struct):
    """What is known of the logs besides their rows. ``launches``: how many they show. ``drift``: the first lines in an unknown wording."""

    words: Vocabulary = field(default_factory=Vocabulary)
    unread: Unread = field(default_factory=Unread)
    launches: int = 0
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
    recogniser = ServingRecogniser(reading.packs, serving.unread)
    joiner = NodeJoiner()
    for source in find_sources(paths):
        yield from _File(source, reading, recogniser, joiner, serving).parts()


class _File:
    """One log that is read."""

    def __init__(
        self, source: Source, reading: Reading, recogniser: ServingRecogniser, joiner: NodeJoiner, serving: Serving
    ) -> None:
        self._source, self._reading, self._recogniser = source, reading, recogniser
        self._joiner, self._serving = joiner, serving
        self._templates = Templates(recogniser, serving.words)
        self._rows = Rows(serving.words)
        self._segments: list[Segment] = []
        self._begins: dict[int, int] = {}  # the first line of each segment, if it shows a launch
        self._numbers: dict[int, int] = {}
        self._last: Event | Drift | None = None
        self._read: list[Batch] = []  # of the block at hand
        self._done: list[Batch] = []  # of blocks whose launches are known

    def parts(self) -> Iterator[Part]:
        """Yield the rows of the log."""
        for segment, is_closed in split_streams(self._reading.packs, self._source.name, self._items()):
            if all(segment is not known for known in self._segments):
                self._segments.append(segment)
            if is_closed:
                if id(segment) in self._begins:
                    self._number(segment)
            elif isinstance(self._last, Event) and id(segment) not in self._begins:
                self._note_begin(segment, self._last)
            yield from self._given_out()
        self._block_ends()
        yield from self._given_out()

    def _note_begin(self, segment: Segment, event: Event) -> None:
        """Note where a segment shows a launch. A new segment does from its first line on; a log may serve before its first launch."""
        is_first = all(other is segment or other.origin != segment.origin for other in self._segments)
        if not is_first:
            self._begins[id(segment)] = segment.first_line
        elif event.pattern.opens_launch or self._reading.packs.phase_of(event.pattern).once:
            self._begins[id(segment)] = event.pos.line

    def _items(self) -> Iterator[Event | Drift]:
        """Yield what tells launches apart. Lines of serving do not: their clocks may be set back. They only give out what has been read."""
        try:
            for item in self._recogniser.read(self._source.name, self._rest(), ReadState()):
                self._last = item
                if isinstance(item, Drift):
                    if self._is_dense(item.patterns[0].partition(".")[0]):
                        self._note_drift(item)
                        continue
                elif item.pattern.id in KIND_OF:
                    self._rows.add(item)
                    item = replace(item, time=None, outer_time=None)
                yield item
        except SourceError as error:
            self._reading.problems.append(error)

    def _is_dense(self, phase: str) -> bool:
        return self._reading.packs.phases[phase].dense

    def _note_drift(self, drift: Drift) -> None:
        self._serving.drifted += 1
        if len(self._serving.drift) < DRIFT_KEPT:
            self._serving.drift.append(drift)

    def _rest(self) -> Iterator[bytearray]:
        """Yield the blocks of the log, with the lines spoilt that fit a template."""
        line = 0
        for block in whole_lines(read_blocks(self._source, self._reading.on_read)):
            line += self._templates.take_out(block, line, self._read)
            yield block
            self._block_ends()

    def _block_ends(self) -> None:
        self._templates.search_all = len(self._rows) > SEARCHED_FROM
        by_kind: dict[str, list[Batch]] = {}
        for batch in (*self._read, *self._rows.batches()):
            by_kind.setdefault(batch.kind, []).append(batch)
        self._done += map(joined, by_kind.values())
        self._read.clear()

    def _given_out(self) -> Iterator[Part]:
        for batch in self._done:
            for segment, rows in self._by_segment(batch):
                begin = self._begins.get(id(segment))
                if begin is not None and begin <= int(rows.line[0]):
                    yield Part(self._number(segment), "", segment.node, self._source.name, rows)
                elif begin is None or begin > int(rows.line[-1]):
                    yield self._before(segment, rows)
                else:
                    is_before = rows.line < begin
                    yield self._before(segment, rows.chosen(is_before))
                    yield Part(self._number(segment), "", segment.node, self._source.name, rows.chosen(~is_before))
        self._done.clear()

    def _before(self, segment: Segment, rows: Batch) -> Part:
        return Part(0, f"{self._source.name} {segment.origin}", None, self._source.name, rows)

    def _by_segment(self, batch: Batch) -> Iterator[tuple[Segment, Batch]]:
        """Tell rows apart by the segment that they are in; nearly always all are in one."""
        import numpy as np

        for code in _different(batch.origin):
            own = batch.chosen(batch.origin == code) if code is not None else batch
            origin = self._serving.words.words[int(own.origin[0])]
            candidates = [segment for segment in self._segments if segment.origin == origin] or self._segments
            candidates = sorted(candidates, key=lambda segment: segment.first_line)
            begins = np.array([segment.first_line for segment in candidates[1:]], np.int64)
            places = np.searchsorted(begins, own.line, side="right")
            for place in _different(places):
                yield (
                    candidates[int(places[0]) if place is None else place],
                    own if place is None else own.chosen(places == place),
                )

    def _number(self, segment: Segment) -> int:
        if id(segment) not in self._numbers:
            self._numbers[id(segment)] = self._joiner.place(segment)
            self._serving.launches = max(self._serving.launches, self._numbers[id(segment)])
        return self._numbers[id(segment)]


def _different(values: NDArray[np.int64] | NDArray[np.intp]) -> list[int] | list[None]:
    """Return the different values; ``[None]`` where all are the same, for which nothing need be sorted."""
    import numpy as np

    if (values == values[0]).all():
        return [None]
    different: list[int] = np.unique(values).tolist()
    return different
