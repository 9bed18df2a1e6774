"""``logscope serving``: throughput, requests and cache over time, per rank."""

from __future__ import annotations

from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.errors import LogscopeError, NoLaunchError
from logscope.reading import Reading, shown_name
from logscope.render import find_renderer, renderer_names
from logscope.report.serving import serving_report
from logscope.report.serving_view import Shown
from logscope.serving import Serving, read_parts
from logscope.serving.summary import LaunchSum
from logscope.serving.summing import Summing


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="serving")(serving)


def serving(
    logs: shared.Logs,
    every: Annotated[
        float | None,
        typer.Option("--every", metavar="SECONDS", min=1, help="Width of a row (lines, where no clock is printed)."),
    ] = None,
    ranks: Annotated[bool, typer.Option("--ranks", help="A row for every rank, however many there are.")] = False,
    rank: Annotated[
        str | None, typer.Option("--rank", metavar="TAG", help="Only this rank, such as DP3 or 'DP0 TP1'.")
    ] = None,
    launch: shared.LaunchChoice = "all",
    format_name: shared.Format = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a known line has an unknown wording.")] = False,
    quiet: shared.Quiet = False,
) -> None:
    """Show throughput, requests, cache use and retractions of each launch over time, per rank.

    Example: logscope serving run.log
    """
    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), logs, force)
    found = Serving()
    with shared.ReadingBar(logs, quiet) as bar:
        reading = Reading(shared.packs_with(patterns), on_read=bar.advance)
        summing = Summing(found.words, every)
        for part in read_parts(logs, reading, found):
            summing.take(part)
    launches = summing.launches()
    if not launches:
        raise _nothing(logs, reading)
    shared.warn_of_problems(reading, quiet)
    report = serving_report(_chosen(launches, found.launches, launch), found, Shown(rank, ranks))
    shared.write_report(report, format_name, targets)
    if strict and found.drifted:
        raise typer.Exit(1)


def _chosen(launches: list[LaunchSum], count: int, choice: str) -> list[LaunchSum]:
    """Return the launches that ``--launch`` names; what was served before the first of them has no number."""
    if choice == "all":
        return launches
    numbers = [index + 1 for index in shared.choose(count, choice)]
    chosen = [launch for launch in launches if launch.number in numbers]
    if not chosen:
        has = ", ".join(str(launch.number) for launch in launches)
        raise NoLaunchError(f"launch {numbers[0]} has no Prefill or Decode line\n  do: --launch with one of {has}")
    return chosen


def _nothing(logs: list[str], reading: Reading) -> LogscopeError:
    """Return the error for logs without a line of serving."""
    if reading.problems:
        return reading.problems[-1]
    more = f" (and {len(logs) - 1} more)" if len(logs) > 1 else ""
    return NoLaunchError(
        f"no Prefill or Decode line in {shown_name(logs[0])}{more}\n"
        "  do: give the log of a server that has served requests; `logscope timeline` shows how it started"
    )
