"""The command line: finds the subcommands, turns errors into one message and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import typer

from logscope import __version__, commands
from logscope.errors import LogscopeError, SameLaunchError
from logscope.safe import clean_lines

HELP = "Say from an SGLang server's launch log what happened and where each GiB of each rank went."
EPILOG = "Example: logscope run.log"
_EXPLAIN = ("explain", "--timeline")


def build_app(names: Sequence[str], listed: Sequence[str] = ()) -> typer.Typer:
    """Return the program with some of its subcommands: what the others import takes longer than reading most logs.

    ``listed``: subcommands that only the list in the help names. Plain help, without rich, takes half of the time.
    """
    app = typer.Typer(
        name="logscope",
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        import_module(f"logscope.commands.{name}").register(app)
    for name in listed:
        app.command(name=name, help=_summary(name))(lambda: None)
    return app


def _summary(name: str) -> str:
    """Return what a subcommand does: the first line of its module says so."""
    with Path(commands.__path__[0], f"{name}.py").open(encoding="utf-8") as file:
        what = file.readline().partition(": ")[2].strip().strip('"')
    return what[:1].upper() + what[1:]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"logscope {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hold what all subcommands share."""


def command_names() -> list[str]:
    """Return the subcommands: one module of ``commands`` each."""
    return sorted(module.name for module in iter_modules(commands.__path__) if not module.name.startswith("_"))


def _with_default_command(arguments: Sequence[str]) -> list[str]:
    """Put a command in front of logs, so that no word is needed for a first use: two are ``diff``, else ``explain --timeline``."""
    first = next(iter(arguments), "")
    if first in command_names() or first.startswith("--") or first in ("", "-h"):
        return list(arguments)
    logs = list(takewhile(_looks_like_log, arguments))
    if not logs:
        return list(arguments)
    return ["diff", *arguments] if len(logs) == 2 else [*_EXPLAIN, *arguments]


def _looks_like_log(word: str) -> bool:
    if word.startswith("-") and word != "-":
        return False
    return word == "-" or os.sep in word or "." in word or os.path.exists(word)  # noqa: PTH110 # any text may come


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 fine, 1 condition not met, 2 usage or bad patterns, 3 could not judge.

    typer itself exits for what it finds wrong in the words (2) and for a closed pipe.
    """
    gc.set_threshold(100_000)  # most of what a run makes lives to its end: the search for cycles took 7 % of ``diff``
    asked = sys.argv[1:] if arguments is None else arguments
    words = _with_default_command(asked)
    if sys.stdout is None:  # closed by whoever started the program
        _complain("cannot write: stdout is closed")
        sys.exit(3)
    try:
        try:
            _start(words)
        except SameLaunchError:
            if words == list(asked):
                raise
            _start([*_EXPLAIN, *asked])  # two logs without a command that are nodes of one launch
    except LogscopeError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # a full disk, a closed stdout
        _complain(f"cannot write: {error.strerror or error}")
        sys.exit(3)


def _start(words: Sequence[str]) -> None:
    names = command_names()
    asked = next((word for word in words if not word.startswith("-")), "")  # the program's own options take no value
    app = build_app([asked]) if asked in names else build_app([], listed=names)
    app(words or ["--help"])


def _complain(text: str) -> None:
    sys.stderr.write(clean_lines(f"logscope: {text}\n"))
