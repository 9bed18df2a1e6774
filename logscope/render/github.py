"""Annotations of GitHub Actions: workflow commands that point at the rules that are broken, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logscope.checker import Result
from logscope.model import Level
from logscope.render._check import checked_of, summary_of, worst_first
from logscope.report import Report
from logscope.safe import clean

NAME = "github"
IS_BINARY = False

MOST = 10  # GitHub shows no more of one step
MOST_CHARACTERS = 2000  # of one message
_COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report) -> bytes:
    """Return one workflow command per rule that is broken or could not be judged, worst first, at most ten.

    ``file`` and ``line`` are those of the rule, since the log is hardly ever in the repository; the message names its line.

    Raises:
        UsageError: the report is not that of a check.
    """
    told = worst_first(checked_of(report, NAME))
    shown = told if len(told) <= MOST else told[: MOST - 1]
    lines = [_command(result) for result in shown]
    if len(told) > len(shown):
        rest = told[len(shown) :]
        text = f"and {len(rest)} more: {', '.join(dict.fromkeys(clean(result.rule.id) for result in rest))}"
        lines.append(f"::{_COMMANDS[rest[0].rule.level]} title=logscope::{_data(text)}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _command(result: Result) -> str:
    rule = result.rule
    properties = {"title": f"logscope: {rule.id}"}
    if result.rule.is_in_file:
        properties |= {"file": rule.place.file, "line": str(max(rule.place.line, 1))}
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join(_message(result))
    return f"::{_COMMANDS[rule.level]} {shown}::{_data(message)}"


def _message(result: Result) -> Iterator[str]:
    yield summary_of(result)
    if result.evidence:
        yield f"evidence: {', '.join(clean(str(pos)) for pos in result.evidence[:3])}"
    if result.cause:
        yield f"cause: {clean(result.cause)}"
    yield f"why: {clean(result.rule.why)}"


def _data(text: str) -> str:
    """Escape a message, in which a line end would end the command."""
    capped = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."
    return capped.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")
