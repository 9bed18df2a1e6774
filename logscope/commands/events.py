"""``logscope events``: every recognised line, for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO, Annotated

import typer

from logscope.commands import _shared as shared
from logscope.errors import UsageError
from logscope.event_stream import FORMATS, write_events
from logscope.reading import Reading, Spoken, no_launch, stream_events
from logscope.report.share import Scrubber

EventFormat = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.", show_default="text"),
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="events")(events)


def events(
    logs: shared.Logs,
    format_name: EventFormat = None,
    launch: shared.LaunchChoice = "all",
    rank: Annotated[
        str | None, typer.Option("--rank", metavar="TAG", help="Only this rank, such as TP3 or 'DP0 TP1'.")
    ] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", metavar="ID", help="Only this phase, such as load_weights.")
    ] = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    everything: Annotated[
        bool, typer.Option("--all", help="The lines of serving, too: many a second (see `logscope serving`).")
    ] = False,
    patterns: shared.PatternDirs = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a known line has an unknown wording.")] = False,
    share: shared.Share = False,
    quiet: shared.Quiet = False,
) -> None:
    """Print every recognised line of a launch with its values in base units.

    Example: logscope events run.log -f jsonl
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(f"unknown format {format_name!r}\n  do: take one of {', '.join(FORMATS)}")
    packs = shared.packs_with(patterns)
    if phase is not None and phase not in packs.phases:
        raise UsageError(f"unknown phase {phase!r}\n  do: take one of {', '.join(packs.phases)}")
    targets = shared.find_targets(out, FORMATS, logs, force)
    with shared.ReadingBar(logs, quiet) as bar, ExitStack() as stack:
        reading = Reading(packs, on_read=bar.advance)
        sinks: list[tuple[str, IO[str]]] = [
            (name, stack.enter_context(path.open("w", encoding="utf-8"))) for name, path in targets
        ]
        if format_name is not None or not targets:
            sinks.append((format_name or "text", _stdout()))
        dense = everything or (phase is not None and packs.phases[phase].dense)
        counter = _Counter(stream_events(logs, reading, dense))
        stack.enter_context(shared.open_pipe())
        scrubber = Scrubber() if share else None
        chosen = _Counter(_filtered(_of_launch(_learning(counter, scrubber), launch), rank, phase))
        write_events(chosen, sinks, scrubber.scrub if scrubber else None)
    if not counter.events:
        raise no_launch(logs, reading)
    shared.warn_of_problems(reading, quiet)
    if not (chosen.events or chosen.drift or quiet):
        sys.stderr.write(f"logscope: none of {counter.events} events is of this rank, phase and launch\n")
    if launch.isdigit():
        shared.choose(counter.launches, launch)
    if strict and counter.drift:
        raise typer.Exit(1)


def _stdout() -> IO[str]:
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr] # it is a text file
    return sys.stdout


def _learning(stream: Iterable[Spoken], scrubber: Scrubber | None) -> Iterator[Spoken]:
    """Pass events on; the scrubber learns the names that files and arguments give."""
    file = None
    for spoken in stream:
        if scrubber is not None:
            if spoken.item.pos.file != file:
                file = spoken.item.pos.file
                scrubber.learn_file(file)
            scrubber.learn_event(spoken.item)
        yield spoken


class _Counter:
    """Counts what passes."""

    def __init__(self, stream: Iterator[Spoken]) -> None:
        self._stream = stream
        self.events = self.drift = self.launches = 0

    def __iter__(self) -> Iterator[Spoken]:
        for spoken in self._stream:
            self.launches = max(self.launches, spoken.launch)
            if spoken.is_drift:
                self.drift += 1
            else:
                self.events += 1
            yield spoken


def _of_launch(stream: Iterable[Spoken], choice: str) -> Iterator[Spoken]:
    if choice == "all":
        yield from stream
    elif choice.isdigit():
        yield from (spoken for spoken in stream if spoken.launch == int(choice))
    elif choice == "last":
        held: list[Spoken] = []
        for spoken in stream:
            if held and spoken.launch > held[0].launch:
                held.clear()
            if not held or spoken.launch == held[0].launch:
                held.append(spoken)
        yield from held
    else:
        raise UsageError(f"no launch {choice!r}\n  do: --launch takes a number from 1, last or all")


def _filtered(stream: Iterable[Spoken], rank: str | None, phase: str | None) -> Iterator[Spoken]:
    for spoken in stream:
        if rank is not None and not spoken.item.rank.answers_to(rank):
            continue
        if phase is None or spoken.phase == phase:
            yield spoken
