"""JUnit XML for CI systems: a suite per launch, a test case per rule; the subset that GitLab, Jenkins and readers for GitHub agree on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from xml.etree import ElementTree as ET  # only writes

from logscope import __version__
from logscope.checker import Checked, Result
from logscope.render._check import checked_of, named_results, summary_of
from logscope.report import Report
from logscope.report.check import failure_lines
from logscope.safe import clean

NAME = "junit"
IS_BINARY = False

MOST_LINES = 20
MOST_CHARACTERS = 4096  # of one excerpt


def render(report: Report) -> bytes:
    """Return the results of a check as JUnit XML.

    A broken error is a failure, a rule that could not be judged an error; a broken warning passes and says so in ``system-out``.
    Names are the same in every run, since GitLab compares them with those of the target branch.

    Raises:
        UsageError: the report is not that of a check.
    """
    checked = checked_of(report, NAME)
    named = list(named_results(checked.results))
    root = ET.Element("testsuites", {"name": "logscope", **_counts(checked.results), "time": "0"})
    for launch in sorted({result.launch for result in checked.results}):
        _add_suite(root, checked, launch, [(name, result) for name, result in named if result.launch == launch])
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_suite(root: ET.Element, checked: Checked, launch: int, named: Sequence[tuple[str, Result]]) -> None:
    several = len({result.launch for result in checked.results}) > 1
    name = f"logscope launch {launch}" if several else "logscope"
    counts = _counts([result for _, result in named])
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "time": "0"})
    properties = ET.SubElement(suite, "properties")
    facts = {**checked.properties, "source": checked.source, "rules": checked.rules, "logscope": __version__}
    for key, value in facts.items():
        ET.SubElement(properties, "property", name=clean(key), value=clean(value))
    for case_name, result in named:
        _add_case(suite, case_name, class_name(checked), result)


def class_name(checked: Checked) -> str:
    """Return what GitLab shows as the suite: logscope.<rules file without its ending>; dots would make further levels."""
    stem = re.sub(r"[^\w-]+", "_", clean(PurePath(checked.rules).stem)).strip("_")
    return f"logscope.{stem or 'rules'}"


def _add_case(suite: ET.Element, name: str, class_: str, result: Result) -> None:
    case = ET.SubElement(suite, "testcase", classname=class_, name=name, time="0")
    if result.rule.is_in_file:
        case.set("file", clean(result.rule.place.file))
        case.set("line", str(max(result.rule.place.line, 1)))
    outcome = _outcome(result)
    if outcome == "skipped":
        ET.SubElement(case, "skipped", message=clean(result.reason)).text = _excerpt([result.reason])
    elif outcome is not None:
        found = ET.SubElement(case, outcome, message=_capped(summary_of(result)), type=f"logscope.{result.rule.level}")
        found.text = _excerpt(failure_lines(result))
    elif result.status == "fail":
        ET.SubElement(case, "system-out").text = _excerpt(failure_lines(result))


def _outcome(result: Result) -> str | None:
    if result.status == "inconclusive":
        return "error"
    if result.status == "skipped":
        return "skipped"
    return "failure" if result.status == "fail" and result.rule.level == "error" else None


def _counts(results: Sequence[Result]) -> dict[str, str]:
    outcomes = [_outcome(result) for result in results]
    counts = {"failures": outcomes.count("failure"), "errors": outcomes.count("error")}
    return {
        "tests": str(len(results)),
        **{name: str(count) for name, count in counts.items()},
        "skipped": str(outcomes.count("skipped")),
    }


def _excerpt(lines: Iterator[str] | Sequence[str]) -> str:
    kept = [clean(line) for line in lines][:MOST_LINES]
    return _capped("\n".join(kept))


def _capped(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."
