"""``logscope patterns``: look at pattern files, check them, try lines."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.errors import NoLaunchError, UsageError
from logscope.events import Recogniser
from logscope.gaps import find_gaps, gap_pack
from logscope.packcheck import load_checked_packs, message_of
from logscope.packs import Form, Pattern
from logscope.safe import clean_lines
from logscope.source import find_sources, read_blocks
from logscope.value_text import values_text

DirArgument = Annotated[
    Path | None, typer.Argument(metavar="[DIR]", help="A folder of pattern files.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the program."""
    group = typer.Typer(no_args_is_help=True, help="Look at the pattern files, check them, try lines on them.")
    for name, function in (
        ("check", check),
        ("list", list_patterns),
        ("show", show),
        ("try", try_line),
        ("gaps", gaps),
    ):
        group.command(name)(function)
    app.add_typer(group, name="patterns")


def check(directory: DirArgument = None) -> None:
    """Try every pattern on its own samples, together with the built-in ones.

    Example: logscope patterns check my-patterns/
    """
    packs, checked = load_checked_packs([directory] if directory else [])
    typer.echo(
        f"{len(packs.files)} pattern files are fine: {checked.events} events, {checked.forms} forms, {checked.samples} samples"
    )


def list_patterns(patterns: shared.PatternDirs = None) -> None:
    """List all events by phase.

    Example: logscope patterns list
    """
    packs = shared.packs_with(patterns)
    for phase in packs.phases.values():
        typer.echo(f"{phase.id}: {phase.title}")
        for pattern in packs.patterns:
            if pattern.phase == phase.id:
                typer.echo(
                    f"  {pattern.id:<42} {len(pattern.forms)} form{'s' if len(pattern.forms) > 1 else ' '}  {pattern.means}"
                )


def show(
    event_id: Annotated[str, typer.Argument(metavar="ID", help="An event, such as load_weights.end.")],
    patterns: shared.PatternDirs = None,
) -> None:
    """Show one event: what it means, its wordings by release, its values.

    Example: logscope patterns show load_weights.end
    """
    packs = shared.packs_with(patterns)
    pattern = next((pattern for pattern in packs.patterns if pattern.id == event_id), None)
    if pattern is None:
        ids = [pattern.id for pattern in packs.patterns]
        holding = [known for known in ids if len(event_id) > 2 and event_id in known]
        near = list(dict.fromkeys([*get_close_matches(event_id, ids, 3), *holding]))[:5]
        hint = f"did you mean {', '.join(near)}?" if near else "logscope patterns list shows all"
        raise UsageError(f"no event {event_id!r}\n  do: {hint}")
    typer.echo(f"{pattern.id}  ({pattern.place})")
    typer.echo(f"  means     {pattern.means}")
    typer.echo(f"  said by   {pattern.said_by}")
    typer.echo(f"  contains  {' | '.join(pattern.literals)}")
    for field in pattern.fields.values():
        typer.echo(f"  value     {field.result} ({field.unit}{', optional' if field.optional else ''})")
    for form in pattern.forms:
        typer.echo(f"  form      {_range_text(form)}  ({form.place})")
        for sample in form.samples:
            typer.echo(f"            {sample.line}")


def _range_text(form: Form) -> str:
    return f"{form.since or 'first'} .. before {form.until}" if form.until else f"{form.since or 'first'} .. now"


def try_line(
    line: Annotated[str, typer.Argument(metavar="LINE", help="A line of a log, with or without its prefix.")],
    patterns: shared.PatternDirs = None,
) -> None:
    """Say what one line is, and if nothing fits, how far it came. Exits 1 if it is not recognised.

    Example: logscope patterns try '[2026-01-05 10:00:00 TP3] Memory pool end. avail mem=11.26 GB'
    """
    packs = shared.packs_with(patterns)
    recogniser = Recogniser(packs, dense=True)
    line = line.encode("utf-8", errors="replace").decode()
    message = message_of(line, packs.envelope)
    if message.prefixed or message.text != line:
        _echo(
            f"prefix: time {message.time or message.outer_time or 'none'}, rank {message.tags or 'none'}, origin {message.origin or 'none'}"
        )
        _echo(f"message: {message.text}")
    candidates = recogniser.candidates(message)
    fits = list(recogniser.fitting(message, candidates))
    specific = [fit for fit in fits if not fit[0].fallback] or fits
    for pattern, form, values in specific:
        _echo(
            f"{pattern.id}: {pattern.means}\n  {form.place}, SGLang {_range_text(form)}\n  {values_text(values) or 'no values'}"
        )
    if len(specific) > 1:
        _echo(f"{len(specific)} forms fit: the pattern files are ambiguous")
    if specific:
        return
    _explain_miss(candidates)
    raise typer.Exit(1)


def _explain_miss(candidates: list[tuple[Pattern, Form]]) -> None:
    if not candidates:
        _echo("not recognised: no literal of any event stands in it")
        return
    _echo("not recognised: it holds the literal of these events, but none of their forms fits")
    for pattern, form in candidates:
        _echo(f"  {pattern.id} ({form.place}): {form.regex or 'pairs'}")


def gaps(
    logs: shared.Logs,
    everything: Annotated[bool, typer.Option("--all", help="Lines that do not look like memory, too.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many groups.")] = 20,
    patterns: shared.PatternDirs = None,
) -> None:
    """Print what the pattern files do not know of a log, as a pattern file to start from.

    Example: logscope patterns gaps run.log > my-patterns/mine.toml
    """
    packs = shared.packs_with(patterns)
    recogniser = Recogniser(packs, dense=True)
    found = find_gaps(((source.name, read_blocks(source)) for source in find_sources(logs)), recogniser)
    if not found:
        raise NoLaunchError(
            f"no unrecognised line in {', '.join(logs)}: it is empty, or every line is known but for the inside of "
            "tracebacks\n  do: nothing"
        )
    chosen = [gap for gap in found if everything or gap.is_memory]
    shown = chosen[:limit]
    if shown:
        _echo(gap_pack(shown, packs, lambda line: message_of(line, packs.envelope).text))
    drifted = sum(1 for gap in shown if gap.near)
    note = (
        f"{len(shown)} of {len(chosen)} groups shown, {len(found) - len(chosen)} more do not look like memory (--all)"
    )
    sys.stderr.write(f"logscope: {note}{f'; {drifted} in an unknown wording of a known event' if drifted else ''}\n")


def _echo(text: str) -> None:
    """Write what holds lines of a log."""
    typer.echo(clean_lines(text))
