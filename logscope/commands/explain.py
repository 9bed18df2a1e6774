"""``logscope explain``: the verdict, the ledger, the KV budget, and what to set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from logscope.commands import _hints as hints
from logscope.commands import _shared as shared
from logscope.explainer import Question, check_question, explain_launches
from logscope.reading import Reading, read_launches
from logscope.render import find_renderer, renderer_names
from logscope.report import Report
from logscope.report.explain import explain_report
from logscope.report.timeline import Selection, timeline_report

WhatIfs = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if", metavar="NAME=VALUE", help="What another value would give, such as mem_fraction_static=0.85. Repeatable.",
        show_default=False,
    ),
]  # fmt: skip
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claim", metavar="NAME=VALUE", help="Check whether this value ran, such as mem_fraction_static=0.55. Repeatable.",
        show_default=False,
    ),
]  # fmt: skip

CellBytes = Annotated[
    float | None,
    typer.Option(
        "--cell-bytes", metavar="BYTES", help="Bytes of KV cache per token and rank, where the log has none.", min=1
    ),
]
Like = Annotated[
    str | None, typer.Option("--like", metavar="LOG", help="Take bytes per token from this log of the same model.")
]
ModelConfig = Annotated[
    Path | None,
    typer.Option("--model-config", metavar="JSON", help="Take bytes per token from the model's config.json."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="explain")(explain)


def explain(
    logs: shared.Logs,
    what_if: WhatIfs = None,
    claim: Claims = None,
    cell_bytes: CellBytes = None,
    like: Like = None,
    model_config: ModelConfig = None,
    timeline: Annotated[bool, typer.Option("--timeline", help="Show the timeline, too.")] = False,
    launch: shared.LaunchChoice = "all",
    silence: shared.Silence = None,
    format_name: shared.Format = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
    share: shared.Share = False,
    quiet: shared.Quiet = False,
) -> None:
    """Say why a launch failed or what limits it, where its memory went, and what to set.

    Example: logscope explain run.log
    """
    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), logs, force)
    question = Question(hints.pairs(what_if, "--what-if"), hints.pairs(claim, "--claim"))
    check_question(question)
    hints.check_one_source(cell_bytes, like, model_config)
    with shared.ReadingBar(logs, quiet) as bar:
        reading = Reading(shared.packs_with(patterns), silence_s=silence, on_read=bar.advance)
        launches = read_launches(logs, reading)
    shared.warn_of_problems(reading, quiet)
    wanted = shared.choose(len(launches), launch)
    chosen = [launches[index] for index in wanted]
    source = hints.find_source(cell_bytes, like, model_config, reading.packs)
    every = explain_launches(
        launches, reading.packs, replace(question, source=source)
    )  # earlier ones tell of later ones
    explanations = [every[index] for index in wanted]
    report = explain_report(explanations, has_ledger=not timeline)
    if timeline:
        report = _with_timeline(
            report, timeline_report(chosen, reading.packs, Selection(), has_headline=len(chosen) > 1)
        )
    shared.write_report(shared.for_sharing(report, chosen, share=share), format_name, targets)
    if not any(each.judged for each in explanations):
        raise typer.Exit(3)


def _with_timeline(report: Report, timeline: Report) -> Report:
    data = {**report.data, "timeline": timeline.data["launches"]}
    return Report(report.command, (*report.sections, *timeline.sections), data, report.records)
