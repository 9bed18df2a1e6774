"""What is read of the lines of serving: batches of rows as columns of numbers, and the words that stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from logscope.model import Pos

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_Number = TypeVar("_Number", bound="np.generic")
PREFILL, DECODE, RETRACT = "prefill", "decode", "retract"
KIND_OF: Mapping[str, str] = {
    "serving.prefill": PREFILL,
    "serving.prefill_mixed": PREFILL,
    "serving.decode": DECODE,
    "serving.retract": RETRACT,
}
MISSING = -1
DATED_FROM_S = 1e8  # seconds; a clock without a date counts from midnight


class Vocabulary(Struct):
    """Gives the words of a log (rank tags, origins, text values) small numbers."""

    words: list[str] = field(default_factory=list)
    _codes: dict[str, int] = field(default_factory=dict)

    def code(self, word: str | None) -> int:
        """Return the number of a word, ``MISSING`` for None."""
        if word is None:
            return MISSING
        if word not in self._codes:
            self._codes[word] = len(self.words)
            self.words.append(word)
        return self._codes[word]

    def word(self, code: int) -> str | None:
        """Return the word that a number stands for."""
        return None if code == MISSING else self.words[code]


class Batch(Struct, frozen=True):
    """Lines of one kind, in file order; all columns are equally long.

    ``line``: physical lines. ``seconds``: the clock as ``clock.read_clock`` reads it, NaN where none is printed. ``rank`` and ``origin``:
    codes of the vocabulary. ``numbers``: by result name, in base units, NaN where not printed. ``texts``: by result name, codes.
    """

    kind: str
    line: Ints
    seconds: Floats
    rank: Ints
    origin: Ints
    numbers: Mapping[str, Floats]
    texts: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(self.line)

    def chosen(self, mask: NDArray[np.bool_] | slice) -> Batch:
        """Return some of the rows."""
        return Batch(
            self.kind,
            self.line[mask],
            self.seconds[mask],
            self.rank[mask],
            self.origin[mask],
            {name: column[mask] for name, column in self.numbers.items()},
            {name: column[mask] for name, column in self.texts.items()},
        )


def joined(batches: Sequence[Batch]) -> Batch:
    """Return several batches of one kind as one, its rows in the order of their lines."""
    import numpy as np

    if len(batches) == 1:
        return batches[0]
    order = np.argsort(np.concatenate([batch.line for batch in batches]))
    numbers = dict.fromkeys(name for batch in batches for name in batch.numbers)
    texts = dict.fromkeys(name for batch in batches for name in batch.texts)

    def column(parts: Iterable[NDArray[_Number]]) -> NDArray[_Number]:
        return np.concatenate(list(parts))[order]

    return Batch(
        batches[0].kind,
        column(batch.line for batch in batches),
        column(batch.seconds for batch in batches),
        column(batch.rank for batch in batches),
        column(batch.origin for batch in batches),
        {name: column(batch.numbers.get(name, np.full(len(batch), np.nan)) for batch in batches) for name in numbers},
        {name: column(batch.texts.get(name, np.full(len(batch), MISSING)) for batch in batches) for name in texts},
    )


class Unread(Struct):
    """Values that should be numbers and are none (``nan``): how many of each name, and the first one as printed, with its line."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[str, Pos]] = field(default_factory=dict)

    def add(self, name: str, printed: str, pos: Pos) -> None:
        """Take note of one."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.first.setdefault(name, (printed, pos))
