"""Judge one rule on one launch: pass, fail, inconclusive (there was nothing to judge), or skipped (it is not for this launch)."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from logscope.checker.absence import judge_absent
from logscope.checker.baseline import stored_file
from logscope.checker.bounds import UNFINISHED, judge_bounds, judge_equals
from logscope.checker.presence import judge_present, judge_reach, judge_sequence
from logscope.checker.subject import Subject
from logscope.checker.types import Judgement, Lane, Result, Rule, Select, Status
from logscope.checker.whole import judge_coverage, judge_identity, judge_unchanged
from logscope.checker.wording import expected_text
from logscope.frames import arg_text
from logscope.model import ReleaseRange

MOST_EVIDENCE = 5
_POOLS = ("kv_cache", "memory_pool")  # phases whose figures the budget decides


def judge_rule(rule: Rule, subject: Subject, lanes: Mapping[str, Lane]) -> Result:
    """Return what became of a rule."""
    status, why_not = _not_for(rule, subject, lanes)
    if status is not None:
        return Result(rule, subject.launch.number, status, expected_text(rule), "", why_not)
    found = _judge(rule, subject)
    status, reason = found.status, found.reason
    if status == "inconclusive" and rule.optional:
        status, reason = "skipped", f"optional: {reason}"
    is_broken = status == "fail"
    return Result(
        rule=rule,
        launch=subject.launch.number,
        status=status,
        expected=expected_text(rule, found.limits),
        found=found.found,
        reason=reason,
        values=found.values,
        evidence=tuple(dict.fromkeys(found.evidence))[:MOST_EVIDENCE],
        cause=_likely_cause(rule, subject) if is_broken else "",
        accept=_how_to_accept(rule, subject, found) if is_broken else "",
        remedy=_what_to_do(rule, subject, found) if status in ("fail", "inconclusive") else "",
    )


def _not_for(rule: Rule, subject: Subject, lanes: Mapping[str, Lane]) -> tuple[Status | None, str]:
    """Return "skipped" where none of a rule's lanes fits a launch, "inconclusive" where the log does not tell, and why."""
    found = [lane_fits(lanes[name], subject) for name in rule.when if name in lanes]
    if not found or any(fits for fits, _ in found):
        return None, ""
    status: Status = "skipped" if all(fits is False for fits, _ in found) else "inconclusive"
    return status, "; ".join(why for _, why in found)


def lane_fits(lane: Lane, subject: Subject) -> tuple[bool | None, str]:
    """Return whether rules of a lane are for a launch, None where its log does not tell, and why not.

    A range of releases fits unless the wordings rule it out.
    """
    for name, wanted in lane.labels.items():
        if subject.labels.get(name) != wanted:
            return False, f"{lane.name} wants --label {name}={wanted}"
    releases = subject.launch.releases
    if not releases.overlaps(lane.since, lane.until):
        return False, f"{lane.name} wants SGLang {ReleaseRange(lane.since, lane.until)}, this is {releases}"
    if lane.args and not subject.launch.args.values:
        return None, f"{lane.name} asks for arguments, and the log does not show them"
    for name, wanted in lane.args.items():
        values = subject.launch.args.values
        if name not in values or arg_text(values[name]) != wanted:
            has = arg_text(values[name]) if name in values else "no such argument"
            return False, f"{lane.name} wants {name}={wanted}, this has {has}"
    return True, ""


def _likely_cause(rule: Rule, subject: Subject) -> str:
    """Return the root cause where the launch failed, and the cause of what differs from the baseline, if there is one.

    Both say why a launch came to what it came to. An argument, or what a phase took, is as it is whatever became of the launch: of these
    neither is the cause.
    """
    select, causes = rule.select, []
    is_of_launch = _is_of_outcome(select) if select is not None else _asks_for_outcome(rule)
    is_of_pool = select is not None and select.name.partition(".")[0] in _POOLS
    diagnosis = subject.explanation.diagnosis if is_of_launch else None
    if diagnosis is not None:
        causes.append(f"{diagnosis.cause}: {diagnosis.sentence}")
    is_end = select is not None and select.name == "ended"  # how it ended after it was ready no argument tells
    difference = subject.difference if (is_of_launch and not is_end) or is_of_pool else None
    if difference is not None and difference.causes and difference.causes[0].kind != "failure":
        causes.append(difference.causes[0].sentence)
    return "; ".join(cause.strip() if cause.endswith("...") else cause.strip().rstrip(".") for cause in causes)


def _what_to_do(rule: Rule, subject: Subject, found: Judgement) -> str:
    """Return what to do about a failure that broke a rule, or to have a rule judged; empty where nobody knows."""
    if found.status == "inconclusive" and found.uses_baseline and not subject.baselines:
        return "Give a launch that worked: --baseline LOG."
    outcome = subject.launch.outcome.kind
    if found.status == "inconclusive" and outcome in UNFINISHED:
        return "Give the whole log, from the begin of the launch to the line that says ready, or why it failed."
    diagnosis = subject.explanation.diagnosis
    is_of_launch = _is_of_outcome(rule.select) if rule.select is not None else _asks_for_outcome(rule)
    return diagnosis.remedy if diagnosis is not None and is_of_launch else ""


def _is_of_outcome(select: Select) -> bool:
    """Return whether a value of the launch depends on what it came to: its ranks, its time and its drift do not."""
    return select.source == "launch" and select.name not in ("ranks", "elapsed", "drift")


def _asks_for_outcome(rule: Rule) -> bool:
    expect = rule.expect
    is_of_text = bool(expect.identity or expect.coverage or expect.unknown_lines)
    return not is_of_text and (not expect.unchanged or bool({"outcome", "capacity"} & {*expect.unchanged}))


def _how_to_accept(rule: Rule, subject: Subject, found: Judgement) -> str:
    """Return how a person accepts what was found; empty where no value was, and for flags, whose value is in the command."""
    if not found.uses_baseline:
        has_value = found.values or rule.expect.coverage or rule.expect.unknown_lines
        return f"edit {rule.expect_at or rule.place}" if has_value and rule.is_in_file else ""
    logs = " ".join(dict.fromkeys(quote(node.file) for node in subject.launch.nodes))
    stored = stored_file(subject.baselines[-1].source)
    if stored is None:
        return f"compare with it from now on: --baseline {logs}"
    return f"logscope baseline accept {quote(stored)} {logs}"


def _judge(rule: Rule, subject: Subject) -> Judgement:
    expect = rule.expect
    if expect.bounds:
        return judge_bounds(rule, subject)
    if expect.equals is not None:
        return judge_equals(rule, subject)
    if expect.reach is not None:
        return judge_reach(rule, subject)
    if expect.present:
        return judge_present(rule, subject)
    if expect.absent:
        return judge_absent(rule, subject)
    if expect.sequence:
        return judge_sequence(rule, subject)
    if expect.identity is not None:
        return judge_identity(subject)
    if expect.unchanged:
        return judge_unchanged(rule, subject)
    return judge_coverage(rule, subject)
