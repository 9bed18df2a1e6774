"""The rows of serving summed up over time, per launch and rank: figures of buckets, and of whole ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

from msgspec import Struct, field

from logscope.rank import Rank
from logscope.serving.median import Histogram
from logscope.serving.types import DECODE, PREFILL, RETRACT

USAGES = ("token_usage", "full_token_usage", "swa_token_usage", "mamba_usage")
How = Literal["count", "sum", "most", "least"]
Axis = Literal["time", "line"]

_SHOWN: Mapping[Axis, Sequence[int]] = {
    "time": (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400),
    "line": tuple(digit * 10**power for power in range(9) for digit in (1, 2, 5)),
}


class Measure(Struct, frozen=True):
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


class Cell(Struct):
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


class Moment(Struct, frozen=True):
    """A value, and the line that prints it."""

    value: float
    file: str
    line: int
    seconds: float | None


class RankSum(Struct):
    """All of a rank. ``peaks``: by column, the first line with the largest value; ``histogram`` tells the median."""

    rank: Rank
    total: Cell = field(default_factory=Cell)
    peaks: dict[str, Moment] = field(default_factory=dict)
    histogram: Histogram = field(default_factory=Histogram)
    first_retraction: Moment | None = None


Key = tuple[int, int]  # bucket, rank


class LaunchSum(Struct):
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


def summed(cells: Sequence[Cell]) -> Cell:
    """Return several cells as one."""

    def join(into: Cell, cell: Cell) -> Cell:
        into.join(cell)
        return into

    return reduce(join, cells, Cell())
