"""Sum up the rows of serving over time, per launch and rank, in constant memory.

Times are cut into buckets. There are never more than ``MOST_BUCKETS`` of a launch: if there were, neighbours are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from logscope.rank import Rank, parse_rank
from logscope.serving.read import Part
from logscope.serving.types import DECODE, PREFILL, RETRACT, Batch, Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_BUCKETS = 2000
USAGES = ("token_usage", "full_token_usage", "swa_token_usage", "mamba_usage")
How = Literal["count", "sum", "most", "least"]
Axis = Literal["time", "line"]

# each divides the next one, so that buckets can be joined
_WIDTHS: Mapping[Axis, Sequence[int]] = {
    "time": (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400),
    "line": (1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000),
}
_SHOWN: Mapping[Axis, Sequence[int]] = {
    "time": (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400),
    "line": tuple(digit * 10**power for power in range(9) for digit in (1, 2, 5)),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a bucket: what is done to which column of which lines.

    ``kinds``: of lines. ``column`` None: the lines themselves. ``beside``: only of lines that have this column, too.
    """

    name: str
    how: How
    kinds: tuple[str, ...]
    column: str | None = None
    beside: str | None = None


_BATCHES = (PREFILL, DECODE)
MEASURES = (
    Measure("decode_lines", "count", (DECODE,)),
    Measure("prefill_lines", "count", (PREFILL,)),
    Measure("gen_count", "count", (DECODE,), "gen_throughput"),
    Measure("gen_sum", "sum", (DECODE,), "gen_throughput"),
    Measure("gen_least", "least", (DECODE,), "gen_throughput"),
    Measure("gen_most", "most", (DECODE,), "gen_throughput"),
    Measure("running_most", "most", _BATCHES, "running_reqs"),
    Measure("queue_most", "most", _BATCHES, "queue_reqs"),
    *(Measure(f"{name}_most", "most", _BATCHES, name) for name in USAGES),
    Measure("accept_count", "count", (DECODE,), "accept_len"),
    Measure("accept_sum", "sum", (DECODE,), "accept_len"),
    Measure("new_tokens", "sum", (PREFILL,), "new_tokens"),
    Measure("new_beside_cached", "sum", (PREFILL,), "new_tokens", beside="cached_tokens"),
    Measure("cached_tokens", "sum", (PREFILL,), "cached_tokens"),
    Measure("input_most", "most", (PREFILL,), "input_throughput"),
    Measure("retractions", "count", (RETRACT,)),
    Measure("retracted_reqs", "sum", (RETRACT,), "retracted_reqs"),
)
_PLACE = {measure.name: place for place, measure in enumerate(MEASURES)}


@dataclass(slots=True)
class Cell:
    """The figures of one rank in one bucket; None where no line has the value."""

    figures: list[float | None] = field(default_factory=lambda: [None] * len(MEASURES))

    def __getitem__(self, name: str) -> float | None:
        return self.figures[_PLACE[name]]

    def count(self, name: str) -> int:
        """Return how many lines there are, 0 where there is none."""
        return int(self[name] or 0)

    def add(self, place: int, value: float) -> None:
        """Take one more value of a measure."""
        own, how = self.figures[place], MEASURES[place].how
        if own is not None:
            value = max(own, value) if how == "most" else min(own, value) if how == "least" else own + value
        self.figures[place] = value

    def join(self, other: Cell) -> None:
        """Take all that another one has."""
        for place, value in enumerate(other.figures):
            if value is not None:
                self.add(place, value)

    @property
    def gen_mean(self) -> float | None:
        """The mean of the generation throughput over the lines, token/s."""
        return _ratio(self["gen_sum"], self["gen_count"])

    @property
    def accept_mean(self) -> float | None:
        """The mean of the accept length over the lines, tokens a step."""
        return _ratio(self["accept_sum"], self["accept_count"])

    @property
    def cache_hit_rate(self) -> float | None:
        """The share of prompt tokens that were cached: over all tokens, not the mean of the lines."""
        new, cached = self["new_beside_cached"], self["cached_tokens"]
        return None if new is None or cached is None else _ratio(cached, new + cached)

    @property
    def usage(self) -> tuple[float, str] | None:
        """The largest usage of a pool, a share, and whose it is."""
        printed = [(value, name) for name in USAGES if (value := self[f"{name}_most"]) is not None]
        return max(printed, key=lambda pair: pair[0], default=None)


def _ratio(amount: float | None, whole: float | None) -> float | None:
    return None if amount is None or not whole else amount / whole


@dataclass(frozen=True, slots=True)
class Moment:
    """A value, and the line that prints it."""

    value: float
    file: str
    line: int
    seconds: float | None


@dataclass(slots=True)
class RankSum:
    """All of a rank. ``peaks``: by column, the first line with the largest value; ``histogram`` tells the median."""

    rank: Rank
    total: Cell = field(default_factory=Cell)
    peaks: dict[str, Moment] = field(default_factory=dict)
    histogram: Histogram = field(default_factory=lambda: Histogram())
    first_retraction: Moment | None = None


class Histogram:
    """Tells the median of millions of numbers in constant memory: exactly of a few, else in steps of half a percent."""

    _FEW = 10_000
    _STEP = 0.005
    _LEAST = 0.01
    _BINS = 6000  # to 1e11

    def __init__(self) -> None:
        self._few: list[NDArray[np.float64]] = []
        self._counts: NDArray[np.int64] | None = None

    def add(self, values: NDArray[np.float64]) -> None:
        """Count some numbers; NaN is none."""
        import numpy as np

        values = values[~np.isnan(values)]
        if self._counts is not None:
            self._counts += self._counted(values)
            return
        self._few.append(values)
        if sum(map(len, self._few)) > self._FEW:
            self._counts = self._counted(np.concatenate(self._few))
            self._few.clear()

    def _counted(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        import numpy as np

        steps = np.log(np.maximum(values, self._LEAST) / self._LEAST) / self._STEP
        bins = np.where(values < self._LEAST, 0, 1 + np.minimum(steps, self._BINS - 2)).astype(np.int64)
        return np.bincount(bins, minlength=self._BINS)

    def median(self) -> float | None:
        """Return the median, None of no numbers; it is known to a quarter of a percent."""
        import numpy as np

        if self._counts is None:
            few = np.concatenate(self._few) if self._few else np.empty(0)
            return float(np.median(few)) if len(few) else None
        place = int(np.searchsorted(np.cumsum(self._counts), (int(self._counts.sum()) + 1) // 2))
        return 0.0 if place == 0 else float(self._LEAST * np.exp((place - 0.5) * self._STEP))


Key = tuple[int, int]  # bucket, rank


@dataclass(slots=True)
class LaunchSum:
    """The lines of serving of one launch, summed up.

    ``axis``: buckets are of seconds, or of lines where no clock is printed. ``width``: of a bucket, in seconds or lines.
    ``cells``: by (bucket, place in ``ranks``). ``unplaced``: lines without a clock in a launch that has one. ``lines``: per file, the
    first and last line of serving.
    """

    number: int
    axis: Axis
    width: float
    is_fixed: bool = False
    ranks: list[RankSum] = field(default_factory=list)
    cells: dict[Key, Cell] = field(default_factory=dict)
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)
    first_s: float | None = None
    last_s: float | None = None
    unplaced: int = 0
    extra: set[str] = field(default_factory=set)

    @property
    def buckets(self) -> list[int]:
        """The buckets that hold a line, in order."""
        return sorted({bucket for bucket, _ in self.cells})

    def joined(self, width: float) -> LaunchSum:
        """Return the launch in wider buckets; ``width`` is a multiple of its own."""
        step = round(width / self.width)
        wider = LaunchSum(
            self.number, self.axis, width, self.is_fixed, self.ranks, {}, self.lines, self.first_s, self.last_s,
            self.unplaced, self.extra,
        )  # fmt: skip
        for (bucket, rank), cell in self.cells.items():
            wider.cells.setdefault((bucket // step, rank), Cell()).join(cell)
        return wider

    def for_show(self, most: int) -> LaunchSum:
        """Return the launch in at most that many buckets, of a width that people like."""
        if self.is_fixed:
            return self
        fitting = [width for width in _SHOWN[self.axis] if width >= self.width and width % self.width == 0]
        widths = [*fitting, *(max(fitting) * 2**power for power in range(1, 30))]
        buckets = self.buckets
        for width in widths:
            if len({bucket * self.width // width for bucket in buckets}) <= most:
                return self.joined(width)
        return self.joined(widths[-1])

    def speakers(self) -> list[int]:
        """Return the ranks whose figures may be added: one of each data-parallel group.

        With --enable-metrics-for-all-schedulers every rank prints what its group does, and so does every stage of a pipeline: of a group
        the first of the ranks with the most lines speaks.
        """
        groups: dict[int | None, list[int]] = {}
        for place, own in enumerate(self.ranks):
            groups.setdefault(own.rank.dp, []).append(place)
        return sorted(max(places, key=lambda place: (self._printed(place), -place)) for places in groups.values())

    def _printed(self, place: int) -> int:
        total = self.ranks[place].total
        return total.count("decode_lines") + total.count("prefill_lines")

    def shown_ranks(self) -> list[int]:
        """Return the ranks with lines of batches, or the only ones that speak of their group; others repeat its retractions."""
        speakers = self.speakers()
        return [place for place in range(len(self.ranks)) if self._printed(place) or place in speakers]


class Summing:
    """Takes parts as they are read."""

    def __init__(self, words: Vocabulary, every: float | None = None) -> None:
        """Take the vocabulary of the reading; ``every``: how wide buckets are, None: as many as fit."""
        self._words, self._every = words, every
        self._launches: dict[int, LaunchSum] = {}
        self._ranks: dict[int, dict[tuple[int | None, str], int]] = {}

    def take(self, part: Part) -> None:
        """Add the rows of a part."""
        import numpy as np

        batch = part.batch
        launch = self._launches.get(part.launch)
        if launch is None:
            launch = self._launches[part.launch] = self._new(part)
        first, last = launch.lines.get(part.file, (int(batch.line.min()), 0))
        launch.lines[part.file] = (min(first, int(batch.line.min())), max(last, int(batch.line.max())))
        for code in np.unique(batch.rank):
            own = batch.chosen(batch.rank == code)
            place = self._place(launch, part.node, self._words.words[code])
            _add_to_rank(launch.ranks[place], own, part.file)
            self._add_to_cells(launch, place, own)
        while not launch.is_fixed and len({bucket for bucket, _ in launch.cells}) > MOST_BUCKETS:
            launch = self._launches[part.launch] = launch.joined(_next_width(launch))

    def launches(self) -> list[LaunchSum]:
        """Return what has been taken; ranks in order."""
        return [_in_order(launch) for _, launch in sorted(self._launches.items())]

    def _new(self, part: Part) -> LaunchSum:
        import numpy as np

        axis: Axis = "line" if bool(np.isnan(part.batch.seconds).all()) else "time"
        return LaunchSum(part.launch, axis, self._every or _WIDTHS[axis][0], self._every is not None)

    def _place(self, launch: LaunchSum, node: int | None, tag: str) -> int:
        places = self._ranks.setdefault(launch.number, {})
        if (node, tag) not in places:
            places[node, tag] = len(launch.ranks)
            launch.ranks.append(RankSum(parse_rank(tag, node)))
        return places[node, tag]

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
    if measure.how == "count":
        figures = counts.astype(np.float64)
    elif measure.how == "sum":
        figures = np.bincount(which, column, count)
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


def summed(cells: Sequence[Cell]) -> Cell:
    """Return several cells as one."""

    def join(into: Cell, cell: Cell) -> Cell:
        into.join(cell)
        return into

    return reduce(join, cells, Cell())
