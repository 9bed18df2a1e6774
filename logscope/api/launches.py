"""``logscope.read``: launches as views with frames, at home in a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import overload

from logscope.errors import UsageError
from logscope.events import Recogniser
from logscope.frames import Frames
from logscope.model import Ended, Launch, OutcomeKind
from logscope.packcheck import load_checked_packs
from logscope.packs import Packs, load_packs
from logscope.rank import Rank
from logscope.reading import Reading, read_launches
from logscope.render._shared import table_html
from logscope.report import Table
from logscope.report.timeline import Selection, timeline_report
from logscope.serving import ServingFrames, read_frames
from logscope.words import headline

AnyPath = str | os.PathLike[str]


def read(
    paths: AnyPath | Sequence[AnyPath],
    *,
    patterns: AnyPath | Sequence[AnyPath] = (),
    silence_s: float | None = None,
    serving: bool = False,
) -> Launches:
    """Read all launches of one or several logs.

    Args:
        paths: files (also .gz and .zst), directories, globs, or "-" for standard input.
        patterns: folders of pattern files to use besides the built-in ones.
        silence_s: seconds of silence from which on a launch that is neither ready nor failed counts as hung; None: never.
        serving: keep the lines of serving (batches), too. There may be millions of them; each pattern keeps 20,000.

    Raises:
        logscope.LogscopeError: a log is missing or unreadable, holds no launch, or a pattern file is refused.
    """
    packs = _packs_with(patterns)
    reading = Reading(packs, silence_s=silence_s)
    found = read_launches(_names(paths), reading, Recogniser(packs, dense=serving))
    return Launches(found, packs, tuple(str(problem) for problem in reading.problems))


def read_serving(paths: AnyPath | Sequence[AnyPath], *, patterns: AnyPath | Sequence[AnyPath] = ()) -> ServingFrames:
    """Read the lines of serving (batches, retractions) of one or several logs into typed pandas frames, one row per line.

    Args:
        paths: files (also .gz and .zst), directories, globs, or "-" for standard input.
        patterns: folders of pattern files to use besides the built-in ones.

    Returns:
        the frames ``decode``, ``prefill`` and ``retract``; ``ServingFrames`` says what their columns are. They take about 200 bytes a
        line; ``logscope serving`` sums up logs of any size in constant memory.

    Raises:
        logscope.LogscopeError: a log is missing or unreadable, holds no line of serving, or a pattern file is refused.
    """
    return read_frames(_names(paths), Reading(_packs_with(patterns)))


def _packs_with(patterns: AnyPath | Sequence[AnyPath]) -> Packs:
    folders = [Path(path) for path in _several(patterns)]
    return load_checked_packs(folders)[0] if folders else load_packs()


def _names(paths: AnyPath | Sequence[AnyPath]) -> list[str]:
    if isinstance(paths, Sequence) and not paths:
        raise UsageError("no log to read\n  do: name at least one file")
    return [os.fspath(path) for path in _several(paths)]


def _several(paths: AnyPath | Sequence[AnyPath]) -> Sequence[AnyPath]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else paths


class LaunchView:
    """One launch: what it was, and its frames."""

    def __init__(self, launch: Launch, packs: Packs) -> None:
        self.launch = launch
        self.packs = packs
        self.frames = Frames([launch], packs)

    @property
    def number(self) -> int:
        """Its number among the launches read, from 1."""
        return self.launch.number

    @property
    def outcome(self) -> OutcomeKind:
        """How it went: "ready", "failed", "hung", "cut" or "running"."""
        return self.launch.outcome.kind

    @property
    def ended(self) -> Ended | None:
        """How it ended after it was ready: "stopped", "failed", or None if the log does not show it."""
        return self.launch.ended.kind if self.launch.ended else None

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Its ranks, in numeric order."""
        return self.launch.ranks

    @property
    def headline(self) -> str:
        """The sentence that says how it went."""
        return headline(self.launch, self.packs)

    def __repr__(self) -> str:
        return f"<launch {self.number}: {self.headline}>"

    def _repr_html_(self) -> str:
        report = timeline_report([self.launch], self.packs, Selection())
        tables = [table_html(section) for section in report.sections if isinstance(section, Table)]
        return "".join([f"<p><b>{escape(self.headline)}</b></p>", *tables])


class Launches(Sequence[LaunchView]):
    """The launches of one reading, in order. ``frames`` holds all of them, with a column ``launch``."""

    def __init__(self, launches: Sequence[Launch], packs: Packs, problems: tuple[str, ...] = ()) -> None:
        self._views = [LaunchView(launch, packs) for launch in launches]
        self.frames = Frames(launches, packs)
        self.problems = problems

    @overload
    def __getitem__(self, index: int) -> LaunchView: ...

    @overload
    def __getitem__(self, index: slice) -> list[LaunchView]: ...

    def __getitem__(self, index: int | slice) -> LaunchView | list[LaunchView]:
        return self._views[index]

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[LaunchView]:
        return iter(self._views)

    def __repr__(self) -> str:
        return f"<{len(self)} launch{'es' if len(self) != 1 else ''}: {', '.join(view.outcome for view in self)}>"

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self)


Log = AnyPath | Sequence[AnyPath] | LaunchView | Launches


def views_of(log: Log) -> Sequence[LaunchView]:
    """Return the launches of a log, or those that have been read; there is at least one.

    Raises:
        LogscopeError: a log is missing or unreadable, or holds no launch.
    """
    if isinstance(log, LaunchView):
        return (log,)
    return log if isinstance(log, Launches) else read(log)


def view_of(log: Log) -> LaunchView:
    """Return the last launch of a log; see ``views_of``."""
    return views_of(log)[-1]
