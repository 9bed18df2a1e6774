"""How a launch is shown: which ranks, in which buckets, and how moments, amounts and rates are written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from logscope.errors import UsageError
from logscope.serving import DATED_FROM_S
from logscope.serving.summary import LaunchSum
from logscope.units import count_text

MOST_ROWS = 24
LEAST_BUCKETS = 4
FOLDED_FROM = 9  # ranks: the table shows their least and most instead of a row for each
_DAY_S = 86_400


class Shown(Struct, frozen=True):
    """Which ranks to show: those whose tag is ``only`` (all if None), each in rows of its own if ``unfold``."""

    only: str | None = None
    unfold: bool = False

    def ranks(self, launch: LaunchSum) -> list[int]:
        """Return the places of the ranks chosen.

        Raises:
            UsageError: the launch has no such rank.
        """
        shown = launch.shown_ranks()
        if self.only is None:
            return shown
        chosen = [place for place in range(len(launch.ranks)) if launch.ranks[place].rank.answers_to(self.only)]
        if not chosen:
            has = ", ".join(launch.ranks[place].rank.label for place in shown)
            raise UsageError(f"no rank {self.only!r} in launch {launch.number}\n  do: take one of {has}")
        return chosen


class View(Struct, frozen=True):
    """A launch as it is shown: in few buckets, some of its ranks. ``speakers``: those whose figures may be added.

    ``label`` writes a moment of the launch, seconds or a line.
    """

    launch: LaunchSum
    ranks: list[int]
    speakers: list[int]
    is_folded: bool
    label: Callable[[float], str]

    def begin(self, bucket: int) -> str:
        """Write where a bucket begins: to the minute where it is that wide."""
        label = self.label(bucket * self.launch.width)
        return label[:-3] if self.launch.axis == "time" and self.launch.width % 60 == 0 else label


def view_of(launch: LaunchSum, shown: Shown) -> View:
    """Return how a launch is shown."""
    ranks = shown.ranks(launch)
    is_folded = len(ranks) >= FOLDED_FROM and not shown.unfold
    rows_of_bucket = 1 if is_folded or len(ranks) == 1 else len(ranks) + 1
    joined = launch.for_show(max(LEAST_BUCKETS, MOST_ROWS // rows_of_bucket))
    speakers = [place for place in launch.speakers() if place in ranks]
    return View(joined, ranks, speakers, is_folded, _labels(joined))


def _labels(launch: LaunchSum) -> Callable[[float], str]:
    """Return how moments of a launch are written: by the line, the time of day, or with the date where several days are meant."""
    if launch.axis == "line":
        return lambda line: f"line {count_text(int(line))}"
    first, last = launch.first_s or 0.0, launch.last_s or 0.0
    day = "%m-%d " if first >= DATED_FROM_S and int(first) // _DAY_S != int(last) // _DAY_S else ""
    return lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime(f"{day}%H:%M:%S")


def width_text(launch: LaunchSum) -> str:
    """Write how wide the buckets of a launch are."""
    if launch.axis == "line":
        return f"{count_text(int(launch.width))} lines"
    return duration_text(launch.width)


def duration_text(seconds: float) -> str:
    """Write a duration in the largest unit that it is a multiple of."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:g} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def together(view: View, bucket: int) -> float | None:
    """Return what the ranks that print in a bucket generate together, token/s: the sum of their means."""
    means = [
        mean
        for place in view.speakers
        if (cell := view.launch.cells.get((bucket, place))) is not None and (mean := cell.gen_mean) is not None
    ]
    return sum(means) if means else None


def rate_text(value: float) -> str:
    """Write a rate in three digits at least."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def about_text(value: float) -> str:
    """Write a number that is known to a quarter of a percent."""
    return rate_text(float(f"{value:.3g}"))
