"""Options that mean the same in every command, and how a report leaves the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logscope.errors import UsageError
from logscope.model import Launch
from logscope.packs import Packs, load_packs
from logscope.reading import Reading
from logscope.render import find_renderer, renderer_names
from logscope.report import Report
from logscope.safe import clean_lines
from logscope.source import find_sources

if TYPE_CHECKING:
    from rich.progress import Progress

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        help="Log files (.gz and .zst, too), directories, globs; - is standard input.",
        show_default=False,
    ),
]
PatternDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--patterns", metavar="DIR", help="Use the pattern files of this folder, too. Repeatable.", show_default=False
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help=f"One of {', '.join(renderer_names())}.", show_default="text"
    ),
]
Outs = Annotated[
    list[str] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="[FORMAT=]PATH",
        help="Write to a file instead of stdout (with -f: besides it). Repeatable.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Share = Annotated[
    bool,
    typer.Option(
        "--share",
        help="Leave out host names, addresses, users, URLs, and of paths from the root all but the last part.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no warnings on stderr.")]
LaunchChoice = Annotated[
    str, typer.Option("--launch", metavar="N|last|all", help="Which launch of the logs.", show_default="all")
]

Silence = Annotated[
    float | None,
    typer.Option(
        "--silence", metavar="SECONDS", min=0, help="An unfinished launch that is silent this long counts as hung."
    ),
]


def packs_with(pattern_dirs: list[Path] | None) -> Packs:
    """Read the pattern files; check them if some are the user's."""
    if not pattern_dirs:
        return load_packs()
    from logscope.packcheck import load_checked_packs

    return load_checked_packs(pattern_dirs)[0]


class ReadingBar:
    """A progress bar on stderr while logs are read, if that is a terminal and the logs are large."""

    SHOWN_FROM_BYTES = 16_000_000

    def __init__(self, paths: list[str], quiet: bool) -> None:
        sizes = [source.size for source in find_sources(paths)]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        shown = not quiet and sys.stderr.isatty() and (self._total is None or self._total >= self.SHOWN_FROM_BYTES)
        self._bar = _progress_bar() if shown else None
        self._task = self._bar.add_task("reading", total=self._total) if self._bar else None

    def __enter__(self) -> ReadingBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int) -> None:
        """Take note of bytes read."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, count)


def _progress_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    return Progress(TextColumn("reading"), BarColumn(), DownloadColumn(), console=Console(stderr=True), transient=True)


def warn_of_problems(reading: Reading, quiet: bool) -> None:
    """Say on stderr which logs could be read only in part, or hold no launch."""
    if not quiet:
        for problem in reading.problems:
            say(f"{problem}\n  what could be read is shown")
        for why in reading.foreign:
            say(why)


def say(text: str) -> None:
    """Write lines to stderr, safe to show in a terminal and in CI."""
    sys.stderr.write(clean_lines(f"logscope: {text}\n"))


def choose(count: int, choice: str) -> list[int]:
    """Return the indices of the launches that ``--launch`` names.

    Raises:
        UsageError: there is no such launch.
    """
    if choice == "all":
        return list(range(count))
    if choice == "last":
        return [count - 1]
    if choice.isdigit() and 1 <= int(choice) <= count:
        return [int(choice) - 1]
    has = "is 1 launch" if count == 1 else f"are {count} launches"
    raise UsageError(f"no launch {choice!r}: there {has}\n  do: --launch takes a number from 1, last or all")


def for_sharing(report: Report, launches: Sequence[Launch], *, share: bool) -> Report:
    """Return the report as it may leave the house, if that is asked for."""
    if not share:
        return report
    from logscope.report.share import share_report

    return share_report(report, launches)


def write_report(report: Report, format_name: str | None, targets: list[tuple[str, Path]]) -> None:
    """Render a report to the files asked for, and to stdout unless it went to files and no format was asked for.

    Raises:
        UsageError: an unknown format, or a binary one on a terminal.
    """
    for name, path in targets:
        path.write_bytes(find_renderer(name).render(report))
        say(f"wrote {path}")
    if targets and format_name is None:
        return
    renderer = find_renderer(format_name or "text")
    if renderer.is_binary and sys.stdout.isatty():
        raise UsageError(f"{format_name} is binary\n  do: -o {format_name}=FILE")
    with open_pipe():
        renderer.show(report)


@contextmanager
def open_pipe() -> Iterator[None]:
    """Write to stdout as long as somebody reads it: ``head`` closing the pipe is no failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def find_targets(
    outs: list[str] | None, formats: Sequence[str], logs: Sequence[str], force: bool
) -> list[tuple[str, Path]]:
    """Return (format, path) of each ``-o``, before anything is read or written.

    Raises:
        UsageError: the format cannot be told, a file exists and ``--force`` is not given, two are the same, one is a log to read.
    """
    targets: list[tuple[str, Path]] = []
    for out in outs or []:
        name, path = _target(out, formats)
        _check_writable(path, force)
        if any(path.resolve() == other.resolve() for _, other in targets):
            raise UsageError(f"{path} is written twice\n  do: give each -o a file of its own")
        if any(path.resolve() == Path(log).resolve() for log in logs):
            raise UsageError(f"{path} is a log to read\n  do: write to another file")
        targets.append((name, path))
    return targets


def _target(out: str, formats: Sequence[str]) -> tuple[str, Path]:
    name, separator, rest = out.partition("=")
    if separator and name in formats:
        return name, Path(rest)
    suffix = Path(out).suffix.removeprefix(".")
    name = {"md": "markdown", "txt": "text", "xml": "junit"}.get(suffix, suffix)
    if separator or name not in formats:
        raise UsageError(f"cannot tell the format of {out}\n  do: -o FORMAT=PATH, with one of {', '.join(formats)}")
    return name, Path(out)


def _check_writable(path: Path, force: bool) -> None:
    if str(path) in ("-", ".") or path.is_dir():
        raise UsageError(f"{path} is no file\n  do: -o FORMAT=PATH; without -o the output goes to stdout")
    if path.exists() and not force:
        raise UsageError(f"{path} exists\n  do: add --force to overwrite it")
    if not path.parent.is_dir():
        raise UsageError(f"no directory {path.parent}\n  do: create it first")
