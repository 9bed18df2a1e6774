"""Check launches against rules: what CI asserts, with the evidence and the likely cause of each rule that is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logscope.checker.baseline import Baseline, last_of_each, read_baseline, write_baseline
from logscope.checker.judge import judge_rule
from logscope.checker.learn import learn_rules
from logscope.checker.quick import quick_rules
from logscope.checker.rules import load_rules, read_rules
from logscope.checker.selftest import SelfTest, run_tests
from logscope.checker.subject import Subject
from logscope.checker.types import Checked, Result, Rule, RuleFile, Value
from logscope.checker.unknown import find_unknown
from logscope.model import Launch, Level

_LEVELS: Mapping[Level, int] = {"error": 0, "warning": 1, "note": 2}


def check(
    subjects: Sequence[Subject], rules: RuleFile, *, fail_on: Level | None = "error", lenient: bool = False
) -> Checked:
    """Judge every rule on every launch.

    Args:
        fail_on: the least severe level whose broken rules fail the check; None: none does.
        lenient: rules that could not be judged do not fail it either.

    Returns:
        With exit code 0 (all hold), 1 (a rule is broken) or 3 (a rule could not be judged).
    """
    results = tuple(judge_rule(rule, subject, rules.lanes) for subject in subjects for rule in rules.rules)
    limit = -1 if fail_on is None else _LEVELS[fail_on]
    broken = [r for r in results if r.status == "fail" and _LEVELS[r.rule.level] <= limit]
    open_ = [r for r in results if r.status == "inconclusive" and _LEVELS[r.rule.level] <= limit]
    code = 1 if broken else 3 if open_ and not lenient else 0
    source = ", ".join(dict.fromkeys(subject.launch.source for subject in subjects))
    properties = _properties([subject.launch for subject in subjects])
    return Checked(source, rules.name, results, _verdict(results, source, code), code, properties)


def _verdict(results: Sequence[Result], source: str, code: int) -> str:
    counts = {
        status: sum(r.status == status for r in results) for status in ("pass", "fail", "inconclusive", "skipped")
    }
    broken = sorted((r for r in results if r.status == "fail"), key=lambda r: _LEVELS[r.rule.level])
    word = {0: "passed", 1: "failed", 3: "could not be judged"}[code]
    if code == 0 and counts["pass"] == 0 and results:
        word = "nothing judged"
    words = {"pass": "hold", "fail": "broken", "inconclusive": "not judged", "skipped": "skipped"}
    parts = [f"{counts[status]} {word}" for status, word in words.items()]
    text = f"{source}: {word}: of {len(results)} rules {', '.join(part for part in parts if not part.startswith('0 '))}"
    if not broken:
        return f"{text}."
    first = broken[0]
    cause = f" Likely cause: {first.cause}." if first.cause else ""
    return f"{text}. {first.rule.id}: expected {first.expected}, found {first.found}.{cause}"


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
    "find_unknown",
    "last_of_each",
    "learn_rules",
    "load_rules",
    "quick_rules",
    "read_baseline",
    "read_rules",
    "run_tests",
    "write_baseline",
]
