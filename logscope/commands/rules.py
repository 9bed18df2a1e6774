"""``logscope rules``: write a rules file from launches that worked, and run the tests that rules carry.

The checker is imported when a command runs: see ``commands.check``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from logscope.commands import _shared as shared
from logscope.commands._worked import launches_that_worked
from logscope.errors import RulesError
from logscope.packs import Packs
from logscope.safe import clean_lines

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
    from logscope.checker import Subject, learn_rules

    packs = shared.packs_with(patterns)
    launches = launches_that_worked(logs, packs, "nothing is to be learned from it")
    subjects = [Subject(launch, packs) for launch in launches]
    text = learn_rules(subjects, packs, date)
    with shared.open_pipe():
        sys.stdout.write(clean_lines(text))


@rules_app.command(name="test")
def run_rule_tests(
    rules: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Rules files.")],
    patterns: shared.PatternDirs = None,
) -> None:
    """Run the tests that rules carry: exit 1 if one does not come out as it says, 2 if a file is refused.

    Example: logscope rules test logscope.toml
    """
    packs = shared.packs_with(patterns)
    codes = [_test_file(path, packs) for path in rules]
    if any(codes):
        raise typer.Exit(max(codes))


def _test_file(path: Path, packs: Packs) -> int:
    """Run the tests of one file, say what came out, and return its exit code; a refused file does not keep others from being tested."""
    from logscope.checker import load_rules, run_tests

    try:
        file = load_rules(path, packs)
    except RulesError as error:
        shared.say(str(error))
        return error.exit_code
    outcomes = list(run_tests(file, packs))
    bad = [each for each in outcomes if not each.is_good]
    lines = [
        f"{each.test.place}: {each.rule.id}: expected {each.test.expect}, came out {each.status or 'nothing'}: {each.found}"
        for each in bad
    ]
    untested = sum(not rule.tests for rule in file.rules)
    good = (
        f"{len(outcomes) - len(bad)} of {len(outcomes)} tests are good; {untested} of {len(file.rules)} rules have none"
    )
    none = f"no test was run: none of its {len(file.rules)} rules has one; add [[rule.test]]"
    lines.append(f"{path}: {good if outcomes else none}")
    with shared.open_pipe():
        sys.stdout.write(clean_lines("\n".join(lines) + "\n"))
    return 1 if bad else 0
