"""What the formats of a check share. Not beside the rest: other commands need not import the checker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.checker import Checked, Result
from logscope.checker.types import LEVELS
from logscope.errors import UsageError
from logscope.report import Report
from logscope.safe import clean


def checked_of(report: Report, name: str) -> Checked:
    """Return the results that a format of CI systems is made from.

    Raises:
        UsageError: the report is not that of a check.
    """
    if report.checked is None:
        raise UsageError(
            f"{name} needs a check, and this is {report.command}\n  do: logscope check LOG --rules FILE -f {name}"
        )
    return report.checked


def worst_first(checked: Checked) -> list[Result]:
    """Return what is broken or could not be judged: errors first, and of one level what is broken first."""
    return sorted((*checked.of("fail"), *checked.of("inconclusive")), key=lambda result: LEVELS[result.rule.level])


def named_results(results: Sequence[Result]) -> Iterator[tuple[str, Result]]:
    """Yield (name, result): the rule, its launch where there are several, and a number where that still is not unique."""
    several = len({result.launch for result in results}) > 1
    seen: set[str] = set()
    for result in results:
        base = clean(result.rule.id) + (f" [launch {result.launch}]" if several else "")
        number, name = 1, base
        while name in seen:
            number += 1
            name = f"{base} #{number}"
        seen.add(name)
        yield name, result


def summary_of(result: Result) -> str:
    """Return one line: what was expected, and what was found."""
    reason = f" ({result.reason})" if result.reason else ""
    word = "expected" if result.status == "fail" else "could not be judged: expected"
    return clean(f"{word} {result.expected}, found {result.found or 'nothing'}{reason}")
