"""Read the lines of a block of bytes that fit a template, and learn templates from those that do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logscope.errors import SourceError
from logscope.scan import open_gate
from logscope.serving.learn import learn
from logscope.serving.recogniser import ServingRecogniser
from logscope.serving.template import CLOCK_FRACTION, PADDING, Template, Walk, scaled, tag_codes, tag_of, walk
from logscope.serving.types import KIND_OF, Batch, Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_BYTES = 2 << 20  # of 1 MiB each line costs a fifth more, of 4 MiB as much but 20 MiB of memory more
SAMPLE_BYTES = 1 << 18
_SPOILT = ord("~")
_MOST_ATTEMPTS = 500
_DIGITS = re.compile(rb"\d+")


def whole_lines(blocks: Iterator[bytes | bytearray]) -> Iterator[bytearray]:
    """Yield larger blocks that end with a line end, but for the last one, and ``PADDING`` more bytes.

    Raises:
        SourceError: the log is damaged; what could be read until then has been yielded.
    """
    held = bytearray()
    damage: SourceError | None = None
    try:
        for block in blocks:
            held += block
            if len(held) >= BLOCK_BYTES and (cut := held.rfind(b"\n") + 1):
                whole, held = held, held[cut:]
                whole[cut:] = bytes(PADDING)
                yield whole
    except SourceError as error:
        damage = error
    if held:
        yield held + bytes(PADDING)
    if damage is not None:
        raise damage


class Templates:
    """The templates of a log; they are learnt while it is read.

    ``search_all``: look for new ones in the whole block, not in its begin only: that takes as long as a tenth of all the rest.
    """

    def __init__(self, recogniser: ServingRecogniser, words: Vocabulary) -> None:
        self._recogniser, self._words = recogniser, words
        self._templates: list[Template] = []
        self._seen: set[bytes] = set()
        self.search_all = True
        self._gate = open_gate(
            literal for pattern in recogniser.patterns if pattern.id in KIND_OF for literal in pattern.literals
        )

    def take_out(self, block: bytearray, line: int, into: list[Batch]) -> int:
        """Read the lines that fit a template, and spoil them: no literal of the pattern files stands in them any more.

        Args:
            block: whole lines and ``PADDING`` bytes, which are taken off; the last line may have no end.
            line: how many lines come before it.
            into: takes the rows.

        Returns:
            how many line ends are in the block. To cut the lines out instead of spoiling them takes five times as long.
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
            learnt = self._learn_from(block, size if self.search_all else min(size, SAMPLE_BYTES))
            if learnt is None:
                break
            self._templates.append(learnt)
            known = [learnt]
        del data  # nobody looks into the block any more: it may shrink
        del block[size:]
        return len(ends)

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
            taken[found.index[1:]] = True
            for places in found.marks:
                data[places[1:]] = _SPOILT
            into.append(self._batch(template, found, codes, line).chosen(slice(1, None)))

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

    def _learn_from(self, block: bytearray, size: int) -> Template | None:
        """Return the template of the first line with a literal of serving that is of none yet."""
        with memoryview(block) as view, view[:size] as lines:
            hits = self._gate.find(lines)
        behind = 0
        for hit in hits:
            if hit < behind or len(self._seen) >= _MOST_ATTEMPTS:
                continue
            begin, behind = block.rfind(b"\n", 0, hit) + 1, block.find(b"\n", hit, size)
            if behind < 0:
                break
            raw = bytes(block[begin:behind])
            shape = _DIGITS.sub(b"0", raw)
            if shape not in self._seen:
                self._seen.add(shape)
                template = learn(raw, self._recogniser)
                if template is not None:
                    return template
        return None
