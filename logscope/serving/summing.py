"""Sum up the rows of serving while they are read, in constant memory.

There are never more than ``MOST_BUCKETS`` buckets of a launch: if there were, neighbours are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from logscope.rank import parse_rank
from logscope.serving.read import Part
from logscope.serving.summary import MEASURES, USAGES, Axis, Cell, LaunchSum, Measure, Moment, RankSum
from logscope.serving.types import DECODE, RETRACT, Batch, Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_BUCKETS = 2000
# each divides the next one, so that buckets can be joined
_WIDTHS: Mapping[Axis, Sequence[int]] = {
    "time": (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400),
    "line": (1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000),
}


class Summing:
    """Takes parts as they are read."""

    def __init__(self, words: Vocabulary, every: float | None = None) -> None:
        """Take the vocabulary of the reading; ``every``: how wide buckets are, None: as many as fit."""
        self._words, self._every = words, every
        self._launches: dict[tuple[int, str], LaunchSum] = {}
        self._places: dict[tuple[int, str], dict[tuple[int | None, str], int]] = {}

    def take(self, part: Part) -> None:
        """Add the rows of a part."""
        import numpy as np

        batch = part.batch
        key = (part.launch, part.stream)
        if key not in self._launches:
            self._launches[key], self._places[key] = self._new(part), {}
        launch = self._launches[key]
        first, last = launch.lines.get(part.file, (int(batch.line.min()), 0))
        launch.lines[part.file] = (min(first, int(batch.line.min())), max(last, int(batch.line.max())))
        for code in np.unique(batch.rank):
            own = batch.chosen(batch.rank == code)
            place = _place(launch, self._places[key], part.node, self._words.words[code])
            _add_to_rank(launch.ranks[place], own, part.file)
            self._add_to_cells(launch, place, own)
        while not launch.is_fixed and len({bucket for bucket, _ in launch.cells}) > MOST_BUCKETS:
            launch = self._launches[key] = launch.joined(_next_width(launch))

    def launches(self) -> list[LaunchSum]:
        """Return what has been taken; ranks in order."""
        return [_in_order(launch) for _, launch in sorted(self._launches.items())]

    def _new(self, part: Part) -> LaunchSum:
        import numpy as np

        axis: Axis = "line" if bool(np.isnan(part.batch.seconds).all()) else "time"
        return LaunchSum(part.launch, axis, self._every or _WIDTHS[axis][0], self._every is not None)

    def _add_to_cells(self, launch: LaunchSum, place: int, batch: Batch) -> None:
        import numpy as np

        along = batch.line.astype(np.float64) if launch.axis == "line" else batch.seconds
        known = ~np.isnan(along)
        if not known.all():
            launch.unplaced += int((~known).sum())
            batch, along = batch.chosen(known), along[known]
        if not len(batch):
            return
        if launch.axis == "time":
            least, most = float(along.min()), float(along.max())
            launch.first_s = least if launch.first_s is None else min(least, launch.first_s)
            launch.last_s = most if launch.last_s is None else max(most, launch.last_s)
        buckets, which = np.unique(np.floor(along / launch.width).astype(np.int64), return_inverse=True)
        for index, measure in enumerate(MEASURES):
            for bucket, value in _figures(batch, measure, which, len(buckets)):
                launch.cells.setdefault((int(buckets[bucket]), place), Cell()).add(index, value)


def _place(launch: LaunchSum, places: dict[tuple[int | None, str], int], node: int | None, tag: str) -> int:
    """Return the place of a rank in a launch."""
    if (node, tag) not in places:
        places[node, tag] = len(launch.ranks)
        launch.ranks.append(RankSum(parse_rank(tag, node)))
    return places[node, tag]


def _figures(batch: Batch, measure: Measure, which: NDArray[np.intp], count: int) -> Iterator[tuple[int, float]]:
    """Yield (bucket, figure) of one measure; buckets without a value are left out."""
    import numpy as np

    if batch.kind not in measure.kinds or (measure.beside is not None and measure.beside not in batch.numbers):
        return
    column = np.ones(len(batch)) if measure.column is None else batch.numbers.get(measure.column)
    if column is None:
        return
    known = ~np.isnan(column)
    if measure.beside is not None:
        known &= ~np.isnan(batch.numbers[measure.beside])
    column, which = column[known], which[known]
    counts = np.bincount(which, minlength=count)
    figures: NDArray[np.float64]
    if measure.how == "count":
        figures = counts.astype(np.float64)
    elif measure.how == "sum":
        figures = np.bincount(which, column, count).astype(np.float64)
    else:
        figures = np.full(count, -np.inf if measure.how == "most" else np.inf)
        (np.maximum if measure.how == "most" else np.minimum).at(figures, which, column)
    for bucket in np.flatnonzero(counts):
        yield int(bucket), float(figures[bucket])


def _add_to_rank(own: RankSum, batch: Batch, file: str) -> None:
    import numpy as np

    which = np.zeros(len(batch), np.intp)
    for index, measure in enumerate(MEASURES):
        for _, value in _figures(batch, measure, which, 1):
            own.total.add(index, value)
    for name in ("gen_throughput", "running_reqs", "queue_reqs", "input_throughput", *USAGES):
        column = batch.numbers.get(name)
        if column is None or batch.kind == RETRACT or np.isnan(column).all():
            continue
        place = int(np.nanargmax(column))
        peak = _moment(batch, place, float(column[place]), file)
        if name not in own.peaks or _comes_first(peak, own.peaks[name]):
            own.peaks[name] = peak
    if batch.kind == DECODE and "gen_throughput" in batch.numbers:
        own.histogram.add(batch.numbers["gen_throughput"])
    if batch.kind == RETRACT:
        first = _moment(batch, int(batch.line.argmin()), 1.0, file)
        if own.first_retraction is None or _comes_first(first, own.first_retraction):
            own.first_retraction = first


def _comes_first(moment: Moment, other: Moment) -> bool:
    """Tell whether a moment has more, or as much on an earlier line: the rows of a block do not come in order."""
    if moment.value != other.value:
        return moment.value > other.value
    return moment.file == other.file and moment.line < other.line


def _moment(batch: Batch, place: int, value: float, file: str) -> Moment:
    seconds = float(batch.seconds[place])
    return Moment(value, file, int(batch.line[place]), None if seconds != seconds else seconds)


def _next_width(launch: LaunchSum) -> float:
    widths = _WIDTHS[launch.axis]
    return next((wider for narrow, wider in pairwise(widths) if narrow == launch.width), launch.width * 2)


def _in_order(launch: LaunchSum) -> LaunchSum:
    order = sorted(range(len(launch.ranks)), key=lambda place: launch.ranks[place].rank)
    new = {old: place for place, old in enumerate(order)}
    launch.ranks = [launch.ranks[place] for place in order]
    launch.cells = {(bucket, new[rank]): cell for (bucket, rank), cell in launch.cells.items()}
    return launch
