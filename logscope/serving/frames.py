"""The lines of serving as typed pandas frames, one row per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from logscope.errors import NoLaunchError
from logscope.packs import Packs
from logscope.reading import Reading, shown_name
from logscope.serving.read import Part, Serving, read_parts
from logscope.serving.types import DATED_FROM_S, DECODE, KIND_OF, MISSING, PREFILL, RETRACT, Vocabulary
from logscope.units import counted

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray

_TEXT = "_text"
_WHOLE_UNITS = ("count", "tokens")


class ServingFrames(Struct, frozen=True):
    """The lines of serving of some logs, one frame for each kind of line, rows in the order of the logs.

    All frames begin with

    ============ ================= ==============================================================================
    column       dtype             what it is
    ============ ================= ==============================================================================
    launch       int64             number of the launch, from 1
    node         Int64             node rank, where server_args tell it
    rank         category          tag as printed, 'DP0 TP3'; empty for the single rank that prints none
    time         datetime64[ms]    clock as printed (UTC where it prints a zone); NaT where it prints no date
    elapsed_s    Float64           seconds since the first line of serving of the launch, by that clock
    file         category          file as given
    line         int64             physical line, from 1
    ============ ================= ==============================================================================

    and go on with the values, in base units: counts and tokens ``Int64``, shares (0..1), rates per second and means ``Float64``,
    texts ``category``. What a line does not print is missing, never 0. All values that the pattern files name are there, in every
    frame; then come those that they do not name, with names made of their keys.

    ``prefill``: new_tokens, cached_tokens, cache_hit_rate, running_reqs, queue_reqs, input_throughput (token/s), ...
    ``decode``: running_reqs, used_tokens, token_usage, accept_len (tokens per step), gen_throughput (token/s), ...
    ``retract``: the KV cache is full, and retracted_reqs requests are put back. ``problems``: what could not be read.
    """

    prefill: pandas.DataFrame
    decode: pandas.DataFrame
    retract: pandas.DataFrame
    problems: tuple[str, ...] = ()


def read_frames(paths: Sequence[str], reading: Reading) -> ServingFrames:
    """Read the lines of serving of some logs; all of them are held in memory, about 200 bytes a line.

    Raises:
        SourceError: a log cannot be found, or none can be read.
        NoLaunchError: no log holds a line of serving.
    """
    serving = Serving()
    parts = list(read_parts(paths, reading, serving))
    if not parts:
        if reading.problems:
            raise reading.problems[-1]
        raise NoLaunchError(f"no Prefill or Decode line in {', '.join(map(shown_name, paths))}")
    begins = _begins(parts)
    frames = {
        kind: _frame([part for part in parts if part.batch.kind == kind], kind, begins, serving.words, reading.packs)
        for kind in (PREFILL, DECODE, RETRACT)
    }
    problems = [str(problem) for problem in reading.problems]
    for name, count in serving.unread.counts.items():
        printed, pos = serving.unread.first[name]
        problems.append(f"{name} is no number in {counted(count, 'line')}, first {printed!r} ({pos})")
    if serving.drifted:
        problems.append(f"{counted(serving.drifted, 'line')} in an unknown wording, first {serving.drift[0].pos}")
    return ServingFrames(**frames, problems=tuple(problems))


def _begins(parts: Sequence[Part]) -> Mapping[int, float]:
    """Return the clock of the first line of serving of each launch."""
    import numpy as np

    begins: dict[int, float] = {}
    for part in parts:
        begins[part.launch] = float(np.fmin(begins.get(part.launch, np.nan), np.fmin.reduce(part.batch.seconds)))
    return begins


def _frame(
    parts: Sequence[Part], kind: str, begins: Mapping[int, float], words: Vocabulary, packs: Packs
) -> pandas.DataFrame:
    import numpy as np
    import pandas

    table = _Table(parts, words)
    columns: dict[str, object] = {
        "launch": table.ints(lambda part: part.launch),
        "node": _whole(table.floats(lambda part: np.nan if part.node is None else part.node)),
        "rank": table.category(lambda part: part.batch.rank),
        "time": _times(table.floats(lambda part: part.batch.seconds)),
        "elapsed_s": _float(table.floats(lambda part: part.batch.seconds - begins[part.launch])),
        "file": table.files(),
        "line": table.ints(lambda part: part.batch.line),
    }
    for name, unit in _values(parts, kind, packs).items():
        if unit == "text":
            columns[name] = table.category(lambda part, name=name: _texts(part, name))  # type: ignore[misc] # bound here
            continue
        if all(name not in part.batch.numbers for part in parts):
            columns[name] = _missing(len(table), unit in _WHOLE_UNITS)
            continue
        numbers = table.floats(lambda part, name=name: part.batch.numbers.get(name, np.nan))  # type: ignore[misc] # bound here
        columns[name] = _whole(numbers) if unit in _WHOLE_UNITS else _float(numbers)
    return pandas.DataFrame(columns, copy=False)


def _values(parts: Sequence[Part], kind: str, packs: Packs) -> Mapping[str, str]:
    """Return the units of the values of a frame: those of the pattern files, then what else the lines print."""
    units = {
        field.result: field.unit
        for pattern in packs.patterns
        if KIND_OF.get(pattern.id) == kind
        for field in pattern.fields.values()
    }
    numbers = sorted({name for part in parts for name in part.batch.numbers} - set(units))
    texts = sorted({name for part in parts for name in part.batch.texts} - set(units))
    of_both = {name: f"{name}{_TEXT}" if name in numbers else name for name in texts}
    return {**units, **dict.fromkeys(numbers, "ratio"), **dict.fromkeys(of_both.values(), "text")}


def _texts(part: Part, name: str) -> NDArray[np.int64] | int:
    """Return the texts of a key; one that has numbers, too, has them in a column of its own."""
    return part.batch.texts.get(name, part.batch.texts.get(name.removesuffix(_TEXT), MISSING))


class _Table:
    """Puts the columns of parts together, rows by file and line. A part may have one value for all of its rows."""

    def __init__(self, parts: Sequence[Part], words: Vocabulary) -> None:
        import numpy as np

        self._parts, self._words = parts, words
        self._names = list(dict.fromkeys(part.file for part in parts))
        self._size = sum(len(part.batch) for part in parts)
        self._order: NDArray[np.intp] | None = None
        self._file = self.ints(lambda part: self._names.index(part.file))
        line = self.ints(lambda part: part.batch.line)
        is_sorted = (np.diff(self._file) >= 0).all() and ((np.diff(line) > 0) | (np.diff(self._file) > 0)).all()
        self._order = None if is_sorted else np.lexsort((line, self._file))

    def __len__(self) -> int:
        return self._size

    def ints(self, column: Callable[[Part], NDArray[np.int64] | int]) -> NDArray[np.int64]:
        """Return a column of whole numbers."""
        import numpy as np

        joined = np.empty(self._size, np.int64)
        for begin, part in self._places():
            joined[begin : begin + len(part.batch)] = column(part)
        return joined if self._order is None else joined[self._order]

    def floats(self, column: Callable[[Part], NDArray[np.float64] | float]) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where there is none."""
        import numpy as np

        joined = np.empty(self._size, np.float64)
        for begin, part in self._places():
            joined[begin : begin + len(part.batch)] = column(part)
        return joined if self._order is None else joined[self._order]

    def _places(self) -> Iterator[tuple[int, Part]]:
        begin = 0
        for part in self._parts:
            yield begin, part
            begin += len(part.batch)

    def category(self, column: Callable[[Part], NDArray[np.int64] | int]) -> object:
        """Return a column of words."""
        import numpy as np
        import pandas

        codes = self.ints(column)
        used = np.unique(codes)
        used = used[used != MISSING]
        own = np.full(len(self._words.words) + 1, MISSING)  # the last one for what is missing
        own[used] = np.arange(len(used))
        return pandas.Categorical.from_codes(own[codes], pandas.Index([self._words.words[code] for code in used]))

    def files(self) -> object:
        """Return the column of files."""
        import pandas

        codes = self._file if self._order is None else self._file[self._order]
        return pandas.Categorical.from_codes(codes, pandas.Index(self._names))


def _missing(count: int, is_whole: bool) -> object:
    """Return a column without a value: a third of the time of looking for them in every part."""
    import numpy as np
    import pandas

    if is_whole:
        return pandas.arrays.IntegerArray(np.zeros(count, np.int64), np.ones(count, bool))
    return pandas.arrays.FloatingArray(np.zeros(count), np.ones(count, bool))


def _whole(values: NDArray[np.float64]) -> object:
    """Return whole numbers, missing where NaN."""
    import numpy as np
    import pandas

    missing = np.isnan(values)
    known = np.where(missing, 0, values) if missing.any() else values
    return pandas.arrays.IntegerArray(known.astype(np.int64), missing)


def _float(values: NDArray[np.float64]) -> object:
    """Return numbers, missing where NaN."""
    import numpy as np
    import pandas

    return pandas.arrays.FloatingArray(values, np.isnan(values))


def _times(seconds: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Return dates and times; of a clock that prints no date none."""
    import numpy as np

    known = seconds >= DATED_FROM_S  # NaN is not
    stamps = np.where(known, seconds * 1000, 0).round().astype("int64").astype("datetime64[ms]")
    stamps[~known] = np.datetime64("NaT")
    return stamps
