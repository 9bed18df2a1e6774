"""The serving report: throughput, requests, cache and retractions of each launch over time, per rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from logscope.errors import UsageError
from logscope.rank import Rank
from logscope.report.serving_data import RECORDS, serving_data, serving_rows
from logscope.report.types import Bars, Column, Records, Report, Section, Table, TableRow, Text
from logscope.serving import DATED_FROM_S, Serving
from logscope.serving.summary import Cell, LaunchSum, Moment, RankSum, summed
from logscope.units import Quantity, count_text
from logscope.words import clip

MOST_ROWS = 24
LEAST_BUCKETS = 4
FOLDED_FROM = 9  # ranks: the table shows their least and most instead of a row for each
LONGEST_ROW = 80
_BETWEEN = 3  # columns of a terminal between those of a table
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Shown:
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


def serving_report(launches: Sequence[LaunchSum], serving: Serving, shown: Shown, count: int) -> Report:
    """Return the report of ``logscope serving``.

    Args:
        launches: those chosen that have lines of serving.
        serving: what was learnt of the logs besides.
        shown: which ranks.
        count: how many launches the logs hold, with lines of serving or without.

    Raises:
        UsageError: the selection names a rank that no launch has.
    """
    sections: list[Section] = []
    views = [_view(launch, shown) for launch in launches]
    for view in views:
        sections += _sections(view, count > 1)
    sections += _notes(serving)
    rows = [row for view in views for row in serving_rows(view.launch, view.ranks)]
    data = serving_data([(view.launch, view.ranks, _headline(view)) for view in views], serving)
    return Report("serving", tuple(sections), data, Records("serving", RECORDS, rows))


@dataclass(frozen=True, slots=True)
class _View:
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


def _view(launch: LaunchSum, shown: Shown) -> _View:
    ranks = shown.ranks(launch)
    is_folded = len(ranks) >= FOLDED_FROM and not shown.unfold
    rows_of_bucket = 1 if is_folded or len(ranks) == 1 else len(ranks) + 1
    joined = launch.for_show(max(LEAST_BUCKETS, MOST_ROWS // rows_of_bucket))
    speakers = [place for place in launch.speakers() if place in ranks]
    return _View(joined, ranks, speakers, is_folded, _labels(joined))


def _labels(launch: LaunchSum) -> Callable[[float], str]:
    """Return how moments of a launch are written: by the line, the time of day, or with the date where several days are meant."""
    if launch.axis == "line":
        return lambda line: f"line {count_text(int(line))}"
    first, last = launch.first_s or 0.0, launch.last_s or 0.0
    day = "%m-%d " if first >= DATED_FROM_S and int(first) // _DAY_S != int(last) // _DAY_S else ""
    return lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime(f"{day}%H:%M:%S")


def _sections(view: _View, is_one_of_several: bool) -> Iterator[Section]:
    launch = view.launch
    where = ", ".join(f"{file}:{first}..{last}" for file, (first, last) in launch.lines.items())
    prefix = f"[{launch.number}] " if is_one_of_several else ""
    has_retracted = any(own.total.count("retractions") for own in launch.ranks)
    yield Text((f"{prefix}{where}: {_headline(view)}",), "bad" if has_retracted else "good")
    table = _table(view)
    if table is not None:
        yield table
    bars = _bars(view)
    if bars is not None:
        yield bars
    facts = tuple(_facts(view))
    if facts:
        yield Text(facts, "aside")


def _headline(view: _View) -> str:
    """Say in a sentence or two what was reached, and whether the cache was large enough."""
    speakers = [view.launch.ranks[place] for place in view.speakers] or view.launch.ranks[:1]
    parts = [_throughput(view, speakers), _requests(speakers), _pool(view, speakers), _retractions(view, speakers)]
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)


def _throughput(view: _View, speakers: Sequence[RankSum]) -> str:
    typical = [median for own in speakers if (median := own.histogram.median()) is not None]
    if not typical:
        return _prefill_only(speakers)
    lines = _counted(sum(own.total.count("gen_count") for own in speakers), "line")
    if len(typical) == 1:
        own = next(own for own in speakers if "gen_throughput" in own.peaks)
        peak = own.peaks["gen_throughput"]
        most = f"{_rate(peak.value)} at most ({_when(view, peak)})"
        return f"about {_about(typical[0])} token/s were generated (median of {lines}), {most}"
    each = f"{_about(min(typical))}..{_about(max(typical))}" if len(set(typical)) > 1 else _about(typical[0])
    sums = {bucket: total for bucket in view.launch.buckets if (total := _together(view, bucket)) is not None}
    best = max(sums, key=lambda bucket: sums[bucket])
    together = f"together {_rate(sums[best])} at most (mean of {_width(view.launch)} from {view.begin(best)} on)"
    return f"each of {len(typical)} ranks generated about {each} token/s (medians; {lines} in all), {together}"


def _prefill_only(speakers: Sequence[RankSum]) -> str:
    total = summed([own.total for own in speakers])
    new, rate = total["new_tokens"], total.cache_hit_rate
    if new is None:
        return "No line tells the throughput"
    cached = f"; {rate:.0%} of the prompt tokens were cached" if rate is not None else ""
    lines = _counted(total.count("prefill_lines"), "Prefill line")
    return f"no line tells of generated tokens; {lines}: {count_text(int(new))} prompt tokens computed{cached}"


def _requests(speakers: Sequence[RankSum]) -> str:
    running = [own.peaks["running_reqs"].value for own in speakers if "running_reqs" in own.peaks]
    queued = [own.peaks["queue_reqs"].value for own in speakers if "queue_reqs" in own.peaks]
    parts = []
    if running:
        parts.append(f"{_counted(max(running), 'request')} ran")
    if queued:
        parts.append(f"{count_text(int(max(queued)))} waited")
    on = " on one rank" if len(speakers) > 1 else ""
    return f"at most {' and '.join(parts)}{on}" if parts else ""


_POOLS = {
    "token_usage": "token usage",
    "full_token_usage": "full token usage",
    "swa_token_usage": "swa token usage",
    "mamba_usage": "mamba usage",
}


def _pool(view: _View, speakers: Sequence[RankSum]) -> str:
    peaks = [(own.peaks[name], name, own.rank) for own in speakers for name in _POOLS if name in own.peaks]
    if not peaks:
        return ""
    peak, name, rank = max(peaks, key=lambda found: found[0].value)
    who = f"{rank.label}, " if len(speakers) > 1 else ""
    return f"{_POOLS[name]} was {peak.value:.2f} at most ({who}{_when(view, peak)})"


def _retractions(view: _View, speakers: Sequence[RankSum]) -> str:
    total = summed([own.total for own in speakers])
    count, requests = total.count("retractions"), total["retracted_reqs"]
    if not count:
        return "no request was retracted"
    found = [(own.first_retraction, own.rank) for own in speakers if own.first_retraction is not None]
    first, rank = min(found, key=lambda pair: pair[0].line if pair[0].seconds is None else pair[0].seconds)
    who = f"{rank.label}, " if len(speakers) > 1 else ""
    times = "once" if count == 1 else f"{count_text(count)} times"
    if len(speakers) > 1:
        times += f", on {len(found)} of {len(speakers)} ranks"
    back = f": {_counted(requests, 'request')} put back" if requests is not None else ""
    return f"the KV cache was full {times}, first at {who}{_when(view, first)}, {first.file}:{first.line}{back}"


def _when(view: _View, moment: Moment) -> str:
    return f"line {moment.line}" if moment.seconds is None else view.label(moment.seconds)


def _width(launch: LaunchSum) -> str:
    if launch.axis == "line":
        return f"{count_text(int(launch.width))} lines"
    return _duration(launch.width)


def _duration(seconds: float) -> str:
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:g} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _together(view: _View, bucket: int) -> float | None:
    """Return what the ranks that print in a bucket generate together, token/s: the sum of their means."""
    means = [
        mean
        for place in view.speakers
        if (cell := view.launch.cells.get((bucket, place))) is not None and (mean := cell.gen_mean) is not None
    ]
    return sum(means) if means else None


def _counted(count: float, what: str) -> str:
    return f"{count_text(int(count))} {what}{'' if count == 1 else 's'}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _about(value: float) -> str:
    """Write a number that is known to a quarter of a percent."""
    return _rate(float(f"{value:.3g}"))


@dataclass(frozen=True, slots=True)
class _Figure:
    """A column of the table: its title, the value of a cell, and how it is written."""

    title: str
    of: Callable[[Cell], float | None]
    write: Callable[[float], str]


def _whole(value: float) -> str:
    return count_text(int(value))


def _short_count(value: float) -> str:
    """Write a count in six characters."""
    for step, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= 10 * step:
            return f"{value / step:.1f}{letter}"
    return count_text(int(value))


# the last ones are left out where a row would be too long
_FIGURES = (
    _Figure("tok/s", lambda cell: cell.gen_mean, _rate),
    _Figure("run", lambda cell: cell["running_most"], _whole),
    _Figure("queue", lambda cell: cell["queue_most"], _whole),
    _Figure("usage", lambda cell: cell.usage[0] if cell.usage else None, lambda value: f"{value:.2f}"),
    _Figure("retracted", lambda cell: cell["retracted_reqs"], _whole),
    _Figure("accept", lambda cell: cell.accept_mean, lambda value: f"{value:.2f}"),
    _Figure("prefilled", lambda cell: cell["new_tokens"], _short_count),
    _Figure("cached", lambda cell: cell.cache_hit_rate, lambda value: f"{value:.0%}"),
)


def _table(view: _View) -> Table | None:
    totals = [view.launch.ranks[place].total for place in view.ranks]
    figures = [figure for figure in _FIGURES if any(figure.of(total) is not None for total in totals)]
    if not figures or not view.launch.cells:
        return None
    table = _table_with(view, figures)
    while len(figures) > 1 and _length(table) > LONGEST_ROW:
        figures.pop()
        table = _table_with(view, figures)
    return table


def _length(table: Table) -> int:
    """Return how many columns of a terminal the longest row takes."""
    widths = [len(column.title) for column in table.columns]
    for row in table.rows:
        for place, cell in enumerate(row.cells):
            extra = 2 if (row.is_detail and not place) or (row.mark and place == len(widths) - 1) else 0
            widths[place] = max(widths[place], len(str(cell or "")) + extra)
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _table_with(view: _View, figures: Sequence[_Figure]) -> Table:
    launch = view.launch
    has_ranks = len(view.ranks) > 1
    columns = [Column("from" if launch.axis == "time" else "from line"), *([Column("rank")] if has_ranks else [])]
    columns += [Column(figure.title, "count") for figure in figures]
    rows: list[TableRow] = []
    for before, bucket in pairwise([None, *launch.buckets]):
        assert bucket is not None
        if before is not None and bucket - before > 1:
            silent = _width_of(launch, bucket - before - 1)
            rows.append(TableRow((f"({silent})", *[None] * (len(columns) - 1)), is_detail=True))
        rows += _rows_of(view, bucket, figures, has_ranks)
    title = f"Each {_width(launch)}{_day(launch)}"
    has_gap = any(row.is_detail for row in rows)
    return Table(f"{title}; (..) is a stretch without a line" if has_gap else title, tuple(columns), tuple(rows))


def _width_of(launch: LaunchSum, buckets: int) -> str:
    amount = buckets * launch.width
    return _duration(amount) if launch.axis == "time" else f"{count_text(int(amount))} lines"


def _day(launch: LaunchSum) -> str:
    first = launch.first_s
    if launch.axis == "line" or first is None or first < DATED_FROM_S:
        return ""
    return f" from {datetime.fromtimestamp(first, UTC):%Y-%m-%d} on"


def _rows_of(view: _View, bucket: int, figures: Sequence[_Figure], has_ranks: bool) -> Iterator[TableRow]:
    launch = view.launch
    label = view.begin(bucket).removeprefix("line ")
    cells = [launch.cells.get((bucket, place), Cell()) for place in view.ranks]
    has_retracted = any(cell.count("retractions") for cell in cells)
    if view.is_folded:
        printed = (_span(figure, cells) for figure in figures)
        yield TableRow((label, f"each of {len(cells)}", *printed), mark=has_retracted)
    else:
        for place, cell in zip(view.ranks, cells, strict=True):
            who = [_short(launch, launch.ranks[place].rank)] if has_ranks else []
            yield TableRow((label, *who, *(_written(figure, cell) for figure in figures)), mark=cell.count("retractions") > 0)
            label = ""
    together = _together(view, bucket)
    if len(view.speakers) > 1 and together is not None:
        speaking = sum(1 for place in view.speakers if launch.cells.get((bucket, place), Cell()).gen_mean is not None)
        yield TableRow(("", f"sum of {speaking}", _rate(together), *[None] * (len(figures) - 1)))


def _written(figure: _Figure, cell: Cell) -> str | None:
    value = figure.of(cell)
    return None if value is None else figure.write(value)


def _span(figure: _Figure, cells: Sequence[Cell]) -> str | None:
    """Write the least and the most of several ranks."""
    values = [value for cell in cells if (value := figure.of(cell)) is not None]
    if not values:
        return None
    low, high = figure.write(min(values)), figure.write(max(values))
    return low if low == high else f"{low}..{high}"


def _short(launch: LaunchSum, rank: Rank) -> str:
    """Return what tells a rank apart: its DP number where no other rank has it, else its tag."""
    same = [own for own in launch.ranks if own.rank.dp == rank.dp]
    return f"DP{rank.dp}" if rank.dp is not None and len(same) == 1 else rank.label


def _bars(view: _View) -> Bars | None:
    launch = view.launch
    rows = [(bucket, total) for bucket in launch.buckets if (total := _together(view, bucket)) is not None]
    title = "Generated token/s" + (f", sum of {len(view.speakers)} ranks" if len(view.speakers) > 1 else "")
    if not rows:
        title = "Prompt tokens computed" + (f", sum of {len(view.speakers)} ranks" if len(view.speakers) > 1 else "")
        rows = [(bucket, tokens) for bucket in launch.buckets if (tokens := _prefilled(view, bucket)) is not None]
    if len(rows) < 2:
        return None
    return Bars(
        f"{title}, each {_width(launch)}",
        "count",
        tuple((view.begin(bucket), Quantity(amount, 0.01)) for bucket, amount in rows),
    )


def _prefilled(view: _View, bucket: int) -> float | None:
    total = summed([view.launch.cells.get((bucket, place), Cell()) for place in view.speakers])
    return total["new_tokens"]


def _facts(view: _View) -> Iterator[str]:
    launch = view.launch
    if launch.axis == "line":
        yield "The log prints no clock: the lines of the file stand in for time."
    if launch.unplaced:
        yield f"{count_text(launch.unplaced)} lines without a clock are in the totals, but not in the table."
    for place in view.speakers:
        silent = _silent_s(launch, place)
        if silent is not None:
            rank = launch.ranks[place].rank.label
            yield f"{rank} says nothing in the last {_duration(silent)}, in which others serve."


def _silent_s(launch: LaunchSum, place: int) -> float | None:
    """Return how long a rank has been silent at the end while others speak; None for less than two buckets."""
    own = [bucket for bucket, rank in launch.cells if rank == place]
    if launch.axis == "line" or not own or not launch.buckets:
        return None
    buckets = launch.buckets[-1] - max(own)
    return buckets * launch.width if buckets >= 2 else None


def _notes(serving: Serving) -> Iterator[Section]:
    lines = [
        f"not read: {name} of {count_text(count)} lines, first {clip(repr(printed), 40)} ({pos})"
        for name, count in serving.unread.counts.items()
        for printed, pos in [serving.unread.first[name]]
    ]
    for drift in serving.drift:
        lines.append(f"not recognised: {drift.pos}: {clip(drift.text, 160)} (like {', '.join(drift.patterns)})")
    more = serving.drifted - len(serving.drift)
    if more > 0:
        lines.append(f"not recognised: {count_text(more)} more lines")
    if lines:
        yield Text(tuple(lines), "warning")
