"""The serving report: throughput, requests, cache and retractions of each launch over time, per rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.reading import shown_name
from logscope.report.serving_data import RECORDS, serving_data, serving_rows
from logscope.report.serving_table import serving_bars, serving_table
from logscope.report.serving_view import Shown, View, duration_text, view_of
from logscope.report.serving_words import headline
from logscope.report.types import Records, Report, Section, Text
from logscope.serving import Serving
from logscope.serving.summary import LaunchSum
from logscope.units import counted
from logscope.words import clip


def serving_report(launches: Sequence[LaunchSum], serving: Serving, shown: Shown) -> Report:
    """Return the report of ``logscope serving``.

    Args:
        launches: those chosen that have lines of serving.
        serving: what was learnt of the logs besides.
        shown: which ranks.

    Raises:
        UsageError: the selection names a rank that no launch has.
    """
    sections: list[Section] = []
    views = [view_of(launch, shown) for launch in launches]
    for view in views:
        sections += _sections(view, len(launches) > 1 or serving.launches > 1)
    sections += _notes(serving)
    rows = [row for view in views for row in serving_rows(view.launch, view.ranks)]
    data = serving_data([(view.launch, view.ranks, headline(view)) for view in views], serving)
    return Report("serving", tuple(sections), data, Records("serving", RECORDS, rows))


def _sections(view: View, is_one_of_several: bool) -> Iterator[Section]:
    launch = view.launch
    where = ", ".join(f"{shown_name(file)}:{first}..{last}" for file, (first, last) in launch.lines.items())
    number = str(launch.number) if launch.number else "before the first launch of the log"
    prefix = f"[{number}] " if is_one_of_several else ""
    has_retracted = any(own.total.count("retractions") for own in launch.ranks)
    yield Text((f"{prefix}{where}: {headline(view)}",), "bad" if has_retracted else "good")
    table = serving_table(view)
    if table is not None:
        yield table
    bars = serving_bars(view)
    if bars is not None:
        yield bars
    facts = tuple(_facts(view))
    if facts:
        yield Text(facts, "aside")


def _facts(view: View) -> Iterator[str]:
    launch = view.launch
    if launch.axis == "line":
        yield "The log prints no clock: the lines of the file stand in for time."
    if launch.unplaced:
        yield f"In the totals, but not in the table: {counted(launch.unplaced, 'line')} without a clock."
    for place in view.speakers:
        silent = _silent_s(launch, place)
        if silent is not None:
            rank = launch.ranks[place].rank.label
            yield f"{rank} says nothing in the last {duration_text(silent)}, in which others serve."


def _silent_s(launch: LaunchSum, place: int) -> float | None:
    """Return how long a rank has been silent at the end while others speak; None for less than two buckets."""
    own = [bucket for bucket, rank in launch.cells if rank == place]
    if launch.axis == "line" or not own or not launch.buckets:
        return None
    buckets = launch.buckets[-1] - max(own)
    return buckets * launch.width if buckets >= 2 else None


def _notes(serving: Serving) -> Iterator[Section]:
    lines = [
        f"not read: {name} in {counted(count, 'line')} is no number, first {clip(repr(printed), 40)} ({pos})"
        for name, count in serving.unread.counts.items()
        for printed, pos in [serving.unread.first[name]]
    ]
    lines += [
        f"not recognised: {drift.pos}: {clip(drift.text, 160)} (like {', '.join(drift.patterns)})"
        for drift in serving.drift
    ]
    more = serving.drifted - len(serving.drift)
    if more > 0:
        lines.append(f"not recognised: {counted(more, 'more line')}")
    if lines:
        yield Text(tuple(lines), "warning")
