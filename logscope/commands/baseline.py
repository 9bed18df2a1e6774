"""``logscope baseline``: store launches that worked, to compare with.

The checker is imported when a command runs: see ``commands.check``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.commands._worked import launches_that_worked
from logscope.errors import UsageError
from logscope.model import Launch
from logscope.packs import Packs

baseline_app = typer.Typer(help="Store launches that worked.", no_args_is_help=True, pretty_exceptions_enable=False)
Date = Annotated[str, typer.Option("--date", metavar="TEXT", help="Noted in the file; logscope looks at no clock.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(baseline_app, name="baseline")


@baseline_app.command()
def write(
    logs: shared.Logs,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.json", help="The file to write.")],
    date: Date = "",
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
) -> None:
    """Store the lines of launches that patterns know, each log's last launch.

    Example: logscope baseline write good1.log good2.log -o baseline.json
    """
    _refuse_in_ci()
    packs = shared.packs_with(patterns)
    _check_target(out, force=force)
    _store(launches_that_worked(logs, packs, "no baseline"), packs, out, date)


@baseline_app.command()
def accept(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE.json", help="The stored baseline.")],
    logs: shared.Logs,
    date: Date = "",
    add: Annotated[bool, typer.Option("--add", help="Keep the launches that are there, too.")] = False,
    patterns: shared.PatternDirs = None,
) -> None:
    """Replace a stored baseline by launches that a person accepts; refused in CI.

    Example: logscope baseline accept baseline.json run.log
    """
    from logscope.checker import read_baseline

    _refuse_in_ci()
    if baseline.suffix != ".json":
        raise UsageError(f"{baseline} is no stored baseline\n  do: logscope baseline accept BASELINE.json {baseline}")
    packs = shared.packs_with(patterns)
    read_baseline(str(baseline), packs)  # refuse what is no baseline before anything is written
    _store(launches_that_worked(logs, packs, "no baseline"), packs, baseline, date, baseline if add else None)


def _refuse_in_ci() -> None:
    """Refuse to write where CI runs.

    Raises:
        UsageError: this is CI.
    """
    if os.environ.get("CI", "").lower() not in ("", "0", "false", "no"):
        what = "a baseline is written and accepted by a person, not by CI"
        raise UsageError(f"{what}\n  do: run it on your own machine, and commit the file")


def _check_target(path: Path, *, force: bool) -> None:
    if path.suffix != ".json":
        raise UsageError(f"{path} is no .json file\n  do: -o baseline.json")
    if path.exists() and not force:
        raise UsageError(f"{path} exists\n  do: logscope baseline accept {path} LOG, or --force")
    if not path.parent.is_dir():
        raise UsageError(f"no directory {path.parent}\n  do: create it first")


def _store(launches: list[Launch], packs: Packs, path: Path, date: str, kept: Path | None = None) -> None:
    from logscope.checker import write_baseline

    text = write_baseline(launches, packs, date, kept)
    path.write_text(text, encoding="utf-8")
    sys.stderr.write(f"logscope: wrote {path}: {len(launches)} launch{'es' if len(launches) != 1 else ''}\n")
