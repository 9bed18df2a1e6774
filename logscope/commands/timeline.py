"""``logscope timeline``: per-rank timeline of memory and time."""

from __future__ import annotations

from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.reading import Reading, read_launches
from logscope.render import find_renderer, renderer_names
from logscope.report.timeline import Selection, timeline_report


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="timeline")(timeline)


def timeline(
    logs: shared.Logs,
    ranks: Annotated[bool, typer.Option("--ranks", help="A row for every rank.")] = False,
    rank: Annotated[
        str | None, typer.Option("--rank", metavar="TAG", help="Only this rank, such as TP3 or 'DP0 TP1'.")
    ] = None,
    launch: shared.LaunchChoice = "all",
    silence: shared.Silence = None,
    format_name: shared.Format = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a known line has an unknown wording.")] = False,
    share: shared.Share = False,
    quiet: shared.Quiet = False,
) -> None:
    """Show how each launch went and what each phase took, per rank.

    Example: logscope timeline run.log
    """
    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), logs, force)
    with shared.ReadingBar(logs, quiet) as bar:
        reading = Reading(shared.packs_with(patterns), silence_s=silence, on_read=bar.advance)
        launches = read_launches(logs, reading)
    shared.warn_of_problems(reading, quiet)
    chosen = [launches[index] for index in shared.choose(len(launches), launch)]
    report = timeline_report(chosen, reading.packs, Selection(rank, ranks))
    shared.write_report(shared.for_sharing(report, chosen, share=share), format_name, targets)
    if strict and any(item.drift for item in chosen):
        raise typer.Exit(1)
