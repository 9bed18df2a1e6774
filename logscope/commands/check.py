"""``logscope check``: assert on a launch, for CI.

The checker is imported when a check runs: ``--help`` shows every command, and has no need of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec.structs import replace

from logscope.commands import _shared as shared
from logscope.commands._actions import write_for_actions
from logscope.errors import UsageError
from logscope.model import Launch, Level
from logscope.packs import Packs
from logscope.reading import Reading, read_launches
from logscope.render import find_renderer, renderer_names

if TYPE_CHECKING:
    from logscope.checker import RuleFile

FailOn = Literal["error", "warning", "never"]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command(name="check")(check)


def check(
    logs: shared.Logs,
    rules: Annotated[Path | None, typer.Option("--rules", metavar="FILE", help="The rules file.")] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", metavar="FILE", help="A log that worked, or a stored baseline (.json). Repeatable."),
    ] = None,
    ready_within: Annotated[
        str | None, typer.Option("--ready-within", metavar="TIME", help="Ready in so long: 12m.")
    ] = None,
    min_kv_tokens: Annotated[
        str | None, typer.Option("--min-kv-tokens", metavar="N", help="At least so many tokens of KV cache: 150k.")
    ] = None,
    no_oom: Annotated[bool, typer.Option("--no-oom", help="No failure for want of memory.")] = False,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="For lanes: gpu=H200. Repeatable.")
    ] = None,
    require_lane: Annotated[
        bool, typer.Option("--require-lane", help="A launch that is in no lane could not be judged.")
    ] = False,
    fail_on: Annotated[str, typer.Option("--fail-on", metavar="LEVEL", help="error, warning or never.")] = "error",
    inconclusive: Annotated[
        str,
        typer.Option("--inconclusive", metavar="HOW", help="fail or pass: what a rule does that could not be judged."),
    ] = "fail",
    launch: Annotated[
        str, typer.Option("--launch", metavar="N|last|all", help="Which launch; last: the last one of each log.")
    ] = "last",
    format_name: shared.Format = None,
    out: shared.Outs = None,
    force: shared.Force = False,
    patterns: shared.PatternDirs = None,
    share: shared.Share = False,
    quiet: shared.Quiet = False,
) -> None:
    """Check a launch against rules: exit 0 if all hold, 1 if one is broken, 3 if one could not be judged.

    Example: logscope check run.log --rules logscope.toml
    """
    from logscope import checker
    from logscope.report.check import check_report

    find_renderer(format_name or "text")
    targets = shared.find_targets(out, renderer_names(), logs, force)
    _check_words(fail_on, inconclusive)
    _check_logs(logs)
    labels = _labels(label)
    packs = shared.packs_with(patterns)
    file = _rules(rules, checker.quick_rules(ready_within, min_kv_tokens, no_oom=no_oom), packs)
    base = _baselines(baseline, file, packs)
    reading = Reading(packs)
    launches = read_launches(logs, reading)
    shared.warn_of_problems(reading, quiet)
    last = checker.last_of_each(launches) if launch == "last" else None
    chosen = last or [launches[index] for index in shared.choose(len(launches), launch)]
    subjects = [checker.Subject(each, packs, base, labels) for each in chosen]
    level: Level | None = None if fail_on == "never" else "warning" if fail_on == "warning" else "error"
    checked = checker.check(
        subjects, file, fail_on=level, lenient=inconclusive == "pass", require_lane=require_lane, unread=reading.foreign
    )
    report = shared.for_sharing(check_report(checked), [*chosen, *base], share=share)
    shared.write_report(report, format_name, targets)
    write_for_actions(report, [format_name or "", *(name for name, _ in targets)])
    if report.checked is not None and not quiet and (format_name or targets):
        shared.say(report.checked.verdict)
    if checked.exit_code:
        raise typer.Exit(checked.exit_code)


def _check_words(fail_on: str, inconclusive: str) -> None:
    if fail_on not in ("error", "warning", "never"):
        raise UsageError(f"--fail-on {fail_on}: no level\n  do: take one of error, warning, never")
    if inconclusive not in ("fail", "pass"):
        raise UsageError(f"--inconclusive {inconclusive}: no such way\n  do: take fail or pass")


def _check_logs(logs: list[str]) -> None:
    """Refuse the unit of an amount that stands apart from its number: --ready-within 12 m."""
    from logscope.checker.amounts import read_amount

    for word in logs:
        if word.isalpha() and read_amount(f"1 {word}") is not None and not Path(word).exists():
            raise UsageError(
                f"{word} is a unit, and no log\n  do: write the amount in quotes, or as one word: 12{word}"
            )


def _labels(words: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words or []:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise UsageError(f"--label {word}: no NAME=VALUE\n  do: --label gpu=H200")
        found[name] = value
    return found


def _rules(path: Path | None, quick: RuleFile, packs: Packs) -> RuleFile:
    """Return the rules of the file and of the flags together.

    Raises:
        UsageError: there are none.
    """
    if path is None:
        if not quick.rules:
            raise UsageError(
                "nothing to check\n  do: --rules logscope.toml, or --ready-within 12m, --min-kv-tokens 150k, --no-oom"
            )
        return quick
    from logscope.checker import load_rules

    file = load_rules(path, packs)
    taken = {rule.id for rule in file.rules}  # two of one name would be one in reports
    added = [replace(rule, id=f"{rule.id}-flag") if rule.id in taken else rule for rule in quick.rules]
    return replace(file, rules=(*file.rules, *added))


def _baselines(given: list[str] | None, file: RuleFile, packs: Packs) -> list[Launch]:
    """Return the baselines of the command line, else that of the rules file, which is found beside it."""
    from logscope.checker import named_baseline, read_baseline

    if not given:
        return named_baseline(file, packs)
    return [launch for path in given for launch in read_baseline(path, packs).launches]
