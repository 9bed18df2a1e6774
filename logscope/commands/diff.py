"""``logscope diff``: which step diverged, on which ranks, and why."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.commands._sides import SideSpec, read_side, read_spec, refuse_same
from logscope.differ import Tolerance, diff_launches
from logscope.errors import SameLaunchError, UsageError
from logscope.launch import are_nodes
from logscope.model import Launch
from logscope.reading import Reading
from logscope.render import find_renderer, renderer_names
from logscope.report.diff import Shown, diff_report
from logscope.units import GIB

Sides = Annotated[
    list[str],
    typer.Argument(
        metavar="BASELINE... LOG",
        help="A launch that worked, and the other; run.log#2 is the second launch in it, node0.log,node1.log are one launch.",
        show_default=False,
    ),
]
_TOLERANCE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|Gi?B|Mi?B|s|)", re.IGNORECASE)
_BYTES = {"g": GIB, "m": GIB / 1024}  # GB is what SGLang calls a GiB


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="diff")(diff)


def diff(
    sides: Sides,
    vs: Annotated[
        str | None, typer.Option("--vs", metavar="LOG", help="Compare this log with all the others as baselines.")
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option("--tolerance", metavar="AMOUNT", help="Differences up to this are none: 0.5GiB, 100MiB, 30s, 1%."),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Show every step, also those that are the same.")] = False,
    rank: Annotated[
        str | None, typer.Option("--rank", metavar="TAG", help="Only steps of this rank, such as TP3.")
    ] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", metavar="PHASE", help="Only steps of this phase, such as kv_cache.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 1 if anything changed beyond the tolerance.")
    ] = False,
    format_name: shared.Format = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
    share: shared.Share = False,
    quiet: shared.Quiet = False,
) -> None:
    """Say what differs between two launches, in which step, on which ranks, and why.

    Example: logscope diff baseline.log car.log
    """
    find_renderer(format_name or "text")
    baselines, after = _split(sides, vs)
    paths = [path for spec in (*baselines, after) for path in spec.paths]
    targets = shared.find_targets(out, renderer_names(), paths, force)
    allowed = read_tolerance(tolerance)
    reading = Reading(shared.packs_with(patterns))
    with shared.ReadingBar(paths, quiet) as bar:
        reading.on_read = bar.advance
        sides_read = [read_side(spec, reading) for spec in (*baselines, after)]
    shared.warn_of_problems(reading, quiet)
    launches, names = [launch for launch, _ in sides_read], [name for _, name in sides_read]
    refuse_same((*baselines, after), launches)
    _refuse_nodes(launches, baselines, after)
    difference = diff_launches(launches[:-1], launches[-1], reading.packs, allowed, (names[-2], names[-1]))
    report = diff_report(difference, reading.packs, Shown(all_rows, rank, phase))
    shared.write_report(shared.for_sharing(report, launches, share=share), format_name, targets)
    if exit_code and difference.is_changed:
        raise typer.Exit(1)


def _split(sides: list[str], vs: str | None) -> tuple[list[SideSpec], SideSpec]:
    """Return the baselines and the log that is compared with them.

    Raises:
        UsageError: not two logs.
    """
    words = [*sides, vs] if vs is not None else sides
    if len(words) < 2:
        raise UsageError("one log is nothing to compare\n  do: logscope diff BASELINE.log LOG, or LOG#1 LOG#2")
    if vs is None and len(words) > 2:
        raise UsageError(f"{len(words)} logs: which of them is compared?\n  do: logscope diff GOOD1 GOOD2 --vs LOG")
    specs = [read_spec(word) for word in words]
    if sum(path == "-" for spec in specs for path in spec.paths) > 1:
        raise UsageError("standard input can be read once\n  do: give one of the logs as a file")
    return specs[:-1], specs[-1]


def read_tolerance(text: str | None) -> Tolerance:
    """Read "0.5GiB", "100MiB", "30s" or "1%"; "0" is none.

    Raises:
        UsageError: something else.
    """
    if text is None:
        return Tolerance()
    match = _TOLERANCE.fullmatch(text.strip())
    number, unit = (float(match["number"]), match["unit"].lower()) if match else (1.0, "")
    if unit == "" and number:
        raise UsageError(f"--tolerance {text}: no amount\n  do: --tolerance 0.5GiB, 100MiB, 30s or 1%")
    if unit == "%":
        return Tolerance(share=number / 100)
    if unit == "s":
        return Tolerance(seconds=number)
    return Tolerance(bytes=number * _BYTES.get(unit[:1], 0.0))


def _refuse_nodes(launches: list[Launch], baselines: list[SideSpec], after: SideSpec) -> None:
    """Refuse to compare two nodes of one launch.

    Raises:
        SameLaunchError: the two logs are nodes of one launch, by their server_args.
    """
    if len(launches) == 2 and are_nodes(launches[0].args, launches[1].args):
        files = f"{baselines[0].text} {after.text}"
        raise SameLaunchError(f"{files} are nodes of one launch, by their server_args\n  do: logscope explain {files}")
