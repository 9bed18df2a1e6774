"""Rows of lines of serving that the pattern files read, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logscope.clock import DAY_S, read_clock
from logscope.model import Event
from logscope.serving.learn import read_unknown
from logscope.serving.types import KIND_OF, Batch, Vocabulary
from logscope.units import Quantity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Rows:
    """Rows of lines that the pattern files have read, one by one."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._events: dict[str, list[Event]] = {}
        self._last_undated: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """Take a line of serving."""
        self._events.setdefault(KIND_OF[event.pattern.id], []).append(event)

    def __len__(self) -> int:
        return sum(map(len, self._events.values()))

    def batches(self) -> list[Batch]:
        """Return the rows taken since the last time."""
        batches = [self._batch(kind, events) for kind, events in self._events.items()]
        self._events.clear()
        return batches

    def _batch(self, kind: str, events: Sequence[Event]) -> Batch:
        import numpy as np

        words = self._words
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
