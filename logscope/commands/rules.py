"""``logscope rules``: write a rules file from launches that worked, and run the tests that rules carry."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from logscope.checker import Subject, last_of_each, learn_rules, load_rules, run_tests
from logscope.commands import _shared as shared
from logscope.errors import UsageError
from logscope.reading import Reading, read_launches

rules_app = typer.Typer(help="Write and test rules files.", no_args_is_help=True, pretty_exceptions_enable=False)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(rules_app, name="rules")


@rules_app.command()
def learn(
    logs: shared.Logs,
    date: Annotated[str, typer.Option("--date", metavar="TEXT", help="Noted in the file.")] = "",
    patterns: shared.PatternDirs = None,
) -> None:
    """Write a rules file that holds for launches that worked, each log's last one.

    Example: logscope rules learn good1.log good2.log > logscope.toml
    """
    packs = shared.packs_with(patterns)
    reading = Reading(packs)
    launches = last_of_each(read_launches(logs, reading))
    shared.warn_of_problems(reading, quiet=False)
    failed = [launch.source for launch in launches if launch.outcome.kind != "ready"]
    if failed:
        raise UsageError(
            f"{', '.join(failed)} did not become ready: nothing is to be learned from it\n  do: give logs of launches that worked"
        )
    subjects = [Subject(launch, packs) for launch in launches]
    text = learn_rules(subjects, packs, date)
    with shared.open_pipe():
        sys.stdout.write(text)


@rules_app.command(name="test")
def run_rule_tests(
    rules: Annotated[Path, typer.Argument(metavar="FILE", help="The rules file.")],
    patterns: shared.PatternDirs = None,
) -> None:
    """Run the tests that rules carry: exit 1 if one does not come out as it says.

    Example: logscope rules test logscope.toml
    """
    packs = shared.packs_with(patterns)
    file = load_rules(rules, packs)
    outcomes = list(run_tests(file, packs))
    with shared.open_pipe():
        for each in outcomes:
            if not each.is_good:
                sys.stdout.write(
                    f"{each.test.place}: {each.rule.id}: expected {each.test.expect}, came out {each.status or 'nothing'}: {each.found}\n"
                )
        good = sum(each.is_good for each in outcomes)
        untested = sum(not rule.tests for rule in file.rules)
        sys.stdout.write(
            f"{rules}: {good} of {len(outcomes)} tests are good; {untested} of {len(file.rules)} rules have none\n"
        )
    if good < len(outcomes):
        raise typer.Exit(1)
