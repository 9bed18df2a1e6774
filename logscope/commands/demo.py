"""``logscope demo``: two launches that come with logscope, one that works and one that dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from logscope.commands import _shared as shared
from logscope.frames import arg_text
from logscope.model import Launch
from logscope.packs import load_packs
from logscope.reading import Reading, read_sources
from logscope.render import find_renderer, renderer_names
from logscope.report import Report, Text
from logscope.report.timeline import Selection, timeline_report
from logscope.source import Source
from logscope.timeline import phase_rows
from logscope.words import per_rank_text

STORY = ("baseline.log", "car.log")


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="demo")(demo)


def demo(format_name: shared.Format = None, out: shared.Outs = None, force: shared.Force = False) -> None:
    """Show the timelines of two launches that come with logscope: one that works, one that dies.

    Example: logscope demo
    """
    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), (), force)
    reading = Reading(load_packs())
    launches = read_sources(story_logs(), reading)
    report = timeline_report(launches, reading.packs, Selection())
    intro = Text(
        (
            "Two launches of one server on 8 GPUs. The first works. For the second, custom all-reduce was switched on, "
            "and it dies for lack of memory: is custom all-reduce to blame?",
        )
    )
    outro = Text(tuple(_differences(launches[0], launches[1])))
    shared.write_report(
        Report("demo", (intro, *report.sections, outro), {**report.data, "command": "demo"}, report.records),
        format_name,
        targets,
    )


def story_logs() -> list[Source]:
    """Return the two logs: inside the package, or in a checkout among the test fixtures."""
    inside = Path(__file__).parent.parent / "_demo"
    fixtures = Path(__file__).parent.parent.parent / "tests" / "fixtures"
    if inside.is_dir():
        return [Source(name, inside / name) for name in STORY]
    return [Source(name, fixtures / Path(name).stem / "launch.log") for name in STORY]


def _differences(good: Launch, bad: Launch) -> Iterator[str]:
    """Say which arguments and environment variables differ, and what the ranks of both took before the KV cache."""
    yield ""
    yield "What was launched differently:"
    for name, value in good.args.values.items():
        other = bad.args.values.get(name)
        if other != value:
            yield f"  {name}: {arg_text(value)} -> {arg_text(other)}"
    before, after = (launch.command.env if launch.command else {} for launch in (good, bad))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"  {name}: {before.get(name, 'not set')} -> {after.get(name, 'not set')}"
    yield "What the ranks took until the KV cache was due:"
    for phase in ("init_torch_distributed", "load_weights"):
        yield f"  {phase}: {_taken(good, phase)} -> {_taken(bad, phase)}"
    yield (
        "So custom all-reduce, a part of init_torch_distributed, took no more than that; but under mem_fraction_static "
        f"{arg_text(bad.args.values.get('mem_fraction_static'))} the weights alone are more than SGLang may use."
    )


def _taken(launch: Launch, phase: str) -> str:
    """Write what a phase took on each rank."""
    used = [row.used for row in phase_rows(launch) if row.phase == phase and row.used is not None]
    return per_rank_text(used)
