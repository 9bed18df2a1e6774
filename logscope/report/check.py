"""The report of ``logscope check``: the verdict, what is broken with evidence and likely cause, and all results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from logscope.checker import Checked, Result, Value
from logscope.checker.wording import values_text
from logscope.report.types import Column, Records, Report, Section, Style, Table, TableRow, Text
from logscope.words import clip

JSON_SCHEMA = 1
MOST_GROUPS = 16
_RECORDS: Mapping[str, tuple[str, str]] = {
    "rule": ("string", "rule id"),
    "level": ("string", "'error', 'warning' or 'note'"),
    "status": ("string", "'pass', 'fail', 'inconclusive' or 'skipped'"),
    "launch": ("Int64", "number of the launch, from 1"),
    "expected": ("string", "what the rule asks for"),
    "found": ("string", "what was found"),
    "reason": ("string", "why it could not be judged, or is not for this launch"),
    "cause": ("string", "likely cause of a broken rule"),
    "file": ("string", "file of the first line that shows it"),
    "line": ("Int64", "that line, from 1"),
}


def check_report(checked: Checked) -> Report:
    """Return the report of a check."""
    style: Style = "good" if checked.exit_code == 0 else "bad" if checked.exit_code == 1 else "warning"
    sections: list[Section] = [Text((checked.verdict,), style)]
    told = (*checked.of("fail"), *checked.of("inconclusive"))
    sections.extend(Text(("", *failure_lines(shown)), hang=13) for shown in _without_repeats(told))
    warned = [result for result in checked.of("pass") if result.reason]
    if warned:
        sections.append(
            Text(("", *(f"{result.rule.where}: {result.rule.id}: {result.reason}" for result in warned)), "warning")
        )
    sections.append(_table(checked))
    records = Records("check", _RECORDS, [_row(result) for result in checked.results])
    return Report("check", tuple(sections), check_data(checked), records, checked)


def _without_repeats(results: Sequence[Result]) -> Iterator[Result]:
    """Yield results; a cause that was told is referred to, and what to do is told once."""
    causes: dict[str, str] = {}
    remedies: set[str] = set()
    for result in results:
        is_told = bool(result.cause) and result.cause in causes
        cause = f"the same as of {causes[result.cause]}" if is_told else result.cause
        causes.setdefault(result.cause, result.rule.id)
        yield replace(result, cause=cause, remedy="" if result.remedy in remedies else result.remedy)
        remedies.add(result.remedy)


def failure_lines(result: Result) -> Iterator[str]:
    """Yield what is to be said of a rule that is broken or could not be judged."""
    rule = result.rule
    word = "broken" if result.status == "fail" else "not judged"
    yield f"{rule.where}: {rule.level}: {rule.id} {word}"
    yield f"  why:       {rule.why}"
    yield f"  expected:  {result.expected}"
    reason = f"({result.reason})" if result.reason else ""
    yield f"  found:     {' '.join(part for part in (result.found, reason) if part) or 'nothing'}"
    shown = values_text(result.values, MOST_GROUPS)
    if len(result.values) > 1 and shown not in result.found:
        yield f"  values:    {shown}"
    if result.evidence:
        yield f"  evidence:  {', '.join(str(pos) for pos in result.evidence[:3])}"
    if result.cause:
        yield f"  cause:     {clip(result.cause, 300)}"
    if result.remedy:
        yield f"  to do:     {result.remedy}"
    if result.accept:
        yield f"  to accept: {result.accept}"


def _table(checked: Checked) -> Table:
    columns = (Column("Rule"), Column("Level"), Column("Status"), Column("Found"))
    order = {"fail": 0, "inconclusive": 1, "pass": 2, "skipped": 3}
    several = len({result.launch for result in checked.results}) > 1
    rows = [
        TableRow(
            (
                f"{result.rule.id}{f' [{result.launch}]' if several else ''}",
                result.rule.level,
                result.status,
                clip(result.found or result.reason, 60),
            ),
            mark=result.status == "fail",
        )
        for result in sorted(checked.results, key=lambda each: order[each.status])
    ]
    return Table("", columns, tuple(rows))


def check_data(checked: Checked) -> dict[str, object]:
    """Return a check for JSON; see docs/json.md."""
    return {
        "schema": JSON_SCHEMA,
        "command": "check",
        "source": checked.source,
        "rules_file": checked.rules,
        "verdict": checked.verdict,
        "exit_code": checked.exit_code,
        "properties": dict(checked.properties),
        "results": [_result_data(result) for result in checked.results],
    }


def _result_data(result: Result) -> dict[str, object]:
    return {
        "rule": result.rule.id,
        "level": result.rule.level,
        "status": result.status,
        "launch": result.launch,
        "why": result.rule.why,
        "expected": result.expected,
        "found": result.found,
        "reason": result.reason or None,
        "values": [_value_data(value) for value in result.values],
        "evidence": [{"file": pos.file, "line": pos.line} for pos in result.evidence],
        "cause": result.cause or None,
        "accept": result.accept or None,
        "remedy": result.remedy or None,
        "place": {"file": result.rule.place.file, "line": result.rule.place.line},
    }


def _value_data(value: Value) -> dict[str, object]:
    return {
        "rank": value.rank or None,
        "value": value.number.value if value.number is not None else value.text,
        "resolution": value.number.resolution if value.number is not None else None,
        "unit": value.dimension or None,
        "file": value.pos.file if value.pos else None,
        "line": value.pos.line if value.pos else None,
    }


def _row(result: Result) -> dict[str, str | int | float | bool | None]:
    first = result.evidence[0] if result.evidence else None
    return {
        "rule": result.rule.id,
        "level": result.rule.level,
        "status": result.status,
        "launch": result.launch,
        "expected": result.expected,
        "found": result.found,
        "reason": result.reason or None,
        "cause": result.cause or None,
        "file": first.file if first else None,
        "line": first.line if first else None,
    }


def rule_lines(results: Sequence[Result]) -> list[str]:
    """Return the text of all broken rules, as assertions print it."""
    return [line for result in _without_repeats(results) for line in ("", *failure_lines(result))]
