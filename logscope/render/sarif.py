"""SARIF 2.1.0, for code scanning: a result for each rule that is broken or could not be judged, at the line of the rule."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from logscope import __version__
from logscope.checker import Checked, Result, Rule
from logscope.render._check import checked_of, summary_of, worst_first
from logscope.report import Report
from logscope.report.check import failure_lines
from logscope.safe import clean, json_text

NAME = "sarif"
IS_BINARY = False

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_RELATED = 100  # GitHub shows no more locations of a result
MOST_CHARACTERS = 4096  # of one message


def render(report: Report) -> bytes:
    """Return the results of a check as a SARIF log with one run.

    Rules that could not be judged are results of their own level, too: what has no data has not passed.

    Raises:
        UsageError: the report is not that of a check.
    """
    checked = checked_of(report, NAME)
    rules = list({result.rule.id: result.rule for result in checked.results}.values())
    indices = {rule.id: index for index, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "logscope", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "automationDetails": {"id": f"logscope/{_lanes(checked)}/"},
        "invocations": [{"executionSuccessful": True, "exitCode": checked.exit_code}],
        "columnKind": "utf16CodeUnits",
        "results": [_result(result, indices[result.rule.id]) for result in worst_first(checked)],
    }
    return (json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n").encode("utf-8")


def _rule(rule: Rule) -> dict[str, object]:
    text = clean(rule.why) or rule.id
    return {
        "id": _id(rule),
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(result: Result, index: int) -> dict[str, object]:
    lines = [summary_of(result), *(clean(line) for line in failure_lines(result))]
    found: dict[str, object] = {
        "ruleId": _id(result.rule),
        "ruleIndex": index,
        "level": result.rule.level,
        "message": {"text": "\n".join(lines)[:MOST_CHARACTERS]},
        "partialFingerprints": {"logscopeRule/v1": _fingerprint(result.rule)},
        "properties": {"status": result.status, "launch": result.launch},
    }
    place = result.rule.place if result.rule.is_in_file else next(iter(result.evidence), None)
    if place is not None:
        found["locations"] = [{"physicalLocation": _place(place.file, place.line)}]
    related = [
        {"id": number, "physicalLocation": _place(pos.file, pos.line), "message": {"text": "evidence in the log"}}
        for number, pos in enumerate(result.evidence[:MOST_RELATED], 1)
    ]
    if related:
        found["relatedLocations"] = related
    return found


def _id(rule: Rule) -> str:
    return clean(rule.id) or "rule"


def _place(file: str, line: int) -> dict[str, object]:
    return {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": max(line, 1)}}


def _uri(file: str) -> str:
    """Return a relative reference where the file is given so, else a file URI."""
    name = clean(file) or "unknown"
    path = PurePath(name)
    if path.is_absolute():
        return path.as_uri()
    return quote(path.as_posix(), safe="/")


def _fingerprint(rule: Rule) -> str:
    """Return what stays the same while a finding is the same: the rule, what it looks at, where; no value that was found."""
    select = rule.select
    what: Sequence[str | None] = (
        (select.source, select.name, select.field, select.rank, select.worker) if select else ()
    )
    parts = [rule.id, *(part or "" for part in what), *rule.when]
    return hashlib.sha256("\0".join(parts).encode("utf-8", errors="replace")).hexdigest()


def _lanes(checked: Checked) -> str:
    lanes = {lane for result in checked.results if result.status != "skipped" for lane in result.rule.when}
    return "+".join(sorted(map(clean, lanes))) or "all"
