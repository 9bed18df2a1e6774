"""Check launches against rules: what CI asserts, with the evidence and the likely cause of each rule that is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from logscope.checker.baseline import Baseline, last_of_each, named_baseline, read_baseline, write_baseline
from logscope.checker.judge import judge_rule, lane_fits
from logscope.checker.learn import learn_rules
from logscope.checker.quick import quick_rules
from logscope.checker.rules import load_rules, read_rules
from logscope.checker.selftest import SelfTest, run_tests
from logscope.checker.subject import Subject
from logscope.checker.types import LEVELS, Checked, Result, Rule, RuleFile, Status, Value
from logscope.errors import UsageError
from logscope.model import Launch, Level
from logscope.packs.values import suggestion
from logscope.reading import shown_name


def check(
    subjects: Sequence[Subject],
    rules: RuleFile,
    *,
    fail_on: Level | None = "error",
    lenient: bool = False,
    require_lane: bool = False,
    unread: Sequence[str] = (),
) -> Checked:
    """Judge every rule on every launch.

    Args:
        fail_on: the least severe level whose broken rules fail the check; None: none does.
        lenient: rules that could not be judged do not fail it either.
        require_lane: rules of lanes could not be judged, and are not skipped, where no lane of the file fits a launch.
        unread: logs that hold no launch, and why; no rule could be judged on these.

    Returns:
        With exit code 0 (all hold), 1 (a rule is broken) or 3 (a rule could not be judged, or none was on one of the logs).

    Raises:
        UsageError: a lane is required of rules that have none, or lanes ask for other labels than are given.
    """
    _refuse_labels(dict(pair for subject in subjects for pair in subject.labels.items()), rules)
    if require_lane and not rules.lanes:
        raise UsageError(
            f"{rules.name} has no lane to require\n  do: add [when.NAME] to it, or leave out --require-lane"
        )
    judged = [_judge_launch(subject, rules, require_lane=require_lane) for subject in subjects]
    results = [result for found, _ in judged for result in found]
    limit = -1 if fail_on is None else LEVELS[fail_on]
    failing = {result.status for result in results if LEVELS[result.rule.level] <= limit}
    is_open = "inconclusive" in failing or bool(unread) or any(is_unchecked for _, is_unchecked in judged)
    code = 1 if "fail" in failing else 3 if is_open and fail_on is not None and not lenient else 0
    source = ", ".join(dict.fromkeys(subject.launch.source for subject in subjects))
    counted = failing if fail_on is not None else {result.status for result in results}
    verdict = _verdict(results, shown_name(source), code, unread, let_pass=not counted.isdisjoint(_COUNTED))
    properties = _properties([subject.launch for subject in subjects])
    return Checked(source, rules.name, tuple(results), verdict, code, properties)


def _refuse_labels(labels: Mapping[str, str], rules: RuleFile) -> None:
    """Refuse a label that would skip rules silently: one that no lane asks for where lanes ask for others, or in another case.

    Raises:
        UsageError: it is one.
    """
    known = sorted({label for lane in rules.lanes.values() for label in lane.labels})
    for name, value in labels.items():
        if known and name not in known:
            what = f"no lane of {rules.name} asks for the label '{name}'"
            raise UsageError(f"{what}\n  do: {suggestion(name, known)}")
        wanted = [lane.labels[name] for lane in rules.lanes.values() if name in lane.labels]
        near = [each for each in wanted if value not in wanted and each.casefold() == value.casefold()]
        if near:
            raise UsageError(f"no lane of {rules.name} asks for {name}={value}\n  do: did you mean {name}={near[0]}?")


def _judge_launch(subject: Subject, rules: RuleFile, *, require_lane: bool) -> tuple[list[Result], bool]:
    """Return what became of each rule, and whether nothing was checked: no rule was judged, or a lane that is required is missing."""
    found = [judge_rule(rule, subject, rules.lanes) for rule in rules.rules]
    if require_lane and not any(lane_fits(lane, subject)[0] for lane in rules.lanes.values()):
        return [_without_lane(result) for result in found], True
    return found, all(result.status in ("inconclusive", "skipped") for result in found)


def _without_lane(result: Result) -> Result:
    """Return what a rule of a lane comes to where the launch is in no lane, and should be in one."""
    if not result.rule.when or result.status != "skipped":
        return result
    return replace(result, status="inconclusive", reason=f"no lane fits: {result.reason}")


_COUNTED = ("fail", "inconclusive")
_WORDS: Mapping[Status, str] = {
    "pass": "hold",
    "fail": "broken",
    "inconclusive": "not judged",
    "skipped": "skipped",
}


def _verdict(results: Sequence[Result], source: str, code: int, unread: Sequence[str], *, let_pass: bool) -> str:
    """Return how many rules came to what, and the worst that did not hold; ``let_pass``: flags keep some of it from counting."""
    by_level = sorted(results, key=lambda result: LEVELS[result.rule.level])
    of_status = {status: [result for result in by_level if result.status == status] for status in _WORDS}
    counts = ", ".join(_count(len(of_status[status]), status, code) for status in _WORDS if of_status[status])
    word = {0: "reported only" if let_pass else "passed", 1: "failed", 3: "could not be judged"}[code]
    if code == 0 and not of_status["pass"] and not of_status["fail"]:
        word = "nothing judged"
    text = f"{source}: {word}: of {len(results)} rule{'s' if len(results) != 1 else ''} {counts}."
    if of_status["fail"]:
        first = of_status["fail"][0]
        cause = f" Likely cause: {first.cause}." if first.cause else ""
        return f"{text} {first.rule.id}: expected {first.expected}, found {first.found}.{cause}"
    if code == 3 and unread:
        return f"{text} {unread[0][0].upper()}{unread[0][1:]}."
    if code == 3:
        first = (of_status["inconclusive"] or of_status["skipped"])[0]
        return f"{text} {first.rule.id}: {first.reason}."
    return text


def _count(count: int, status: Status, code: int) -> str:
    """Write how many rules came to something; what fails no check is said to."""
    word = f"{_WORDS[status]}s" if status == "pass" and count == 1 else _WORDS[status]
    return f"{count} {word}{' (not counted)' if code == 0 and status in _COUNTED else ''}"


def _properties(launches: Sequence[Launch]) -> dict[str, str]:
    """Return facts of the (last) launch that reports carry: the model, the sizes, the release."""
    if not launches:
        return {}
    launch = launches[-1]
    values = launch.args.values
    names = (
        "model_path",
        "tp_size",
        "pp_size",
        "dp_size",
        "mem_fraction_static",
        "kv_cache_dtype",
        "attention_backend",
    )
    found = {name: str(values[name]) for name in names if values.get(name) is not None}
    if "model_path" in found:  # its last part: the rest is a path of a machine
        found["model_path"] = found["model_path"].rstrip("/").rpartition("/")[2]
    return {**found, "sglang": str(launch.releases), "outcome": launch.outcome.kind}


__all__ = [
    "Baseline",
    "Checked",
    "Result",
    "Rule",
    "RuleFile",
    "SelfTest",
    "Subject",
    "Value",
    "check",
    "last_of_each",
    "learn_rules",
    "load_rules",
    "named_baseline",
    "quick_rules",
    "read_baseline",
    "read_rules",
    "run_tests",
    "write_baseline",
]
