"""``logscope demo``: two launches, one that works and one that dies."""

from __future__ import annotations

from pathlib import Path

import typer

from logscope.commands import _shared as shared
from logscope.differ import Tolerance, diff_launches
from logscope.explainer import OtherLog, Question, explain_launches
from logscope.packs import load_packs
from logscope.reading import Reading, read_sources
from logscope.render import find_renderer, renderer_names
from logscope.report import Report, Text
from logscope.report.diff import Shown, diff_report
from logscope.report.explain import explain_report
from logscope.sizing import size_up
from logscope.source import Source

STORY = ("baseline.log", "car.log")
_INTRO = (
    "Two launches of one server on 8 GPUs. The first works. For the second, custom all-reduce was switched on, "
    "and it dies for lack of memory: is custom all-reduce to blame?"
)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="demo")(demo)


def demo(format_name: shared.Format = None, out: shared.Outs = None, force: shared.Force = False) -> None:
    """Compare two launches that come with logscope, one that works and one that dies, and explain the second.

    Example: logscope demo
    """
    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), (), force)
    reading = Reading(load_packs())
    good, bad = read_sources(story_logs(), reading)
    difference = diff_report(diff_launches([good], bad, reading.packs, Tolerance()), reading.packs, Shown())
    source = OtherLog("--like baseline.log", good, size_up(good))
    explanation = explain_report(explain_launches([bad], reading.packs, Question(source=source)))
    sections = (
        Text((_INTRO, "", "$ logscope diff baseline.log car.log")),
        *difference.sections,
        Text(("", "$ logscope explain car.log --like baseline.log")),
        *explanation.sections,
    )
    data = {"schema": 1, "command": "demo", "diff": difference.data, "explain": explanation.data}
    shared.write_report(Report("demo", sections, data, difference.records), format_name, targets)


def story_logs() -> list[Source]:
    """Return the two logs: inside the package, or in a checkout among the test fixtures."""
    inside = Path(__file__).parent.parent / "_demo"
    fixtures = Path(__file__).parent.parent.parent / "tests" / "fixtures"
    if inside.is_dir():
        return [Source(name, inside / name) for name in STORY]
    return [Source(name, fixtures / Path(name).stem / "launch.log") for name in STORY]
