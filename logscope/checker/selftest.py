"""The tests that rules carry: a rule has to be able to fail."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from logscope.checker.baseline import launches_of
from logscope.checker.judge import judge_rule
from logscope.checker.subject import Subject
from logscope.checker.types import Rule, RuleFile, RuleTest, Status
from logscope.packs import Packs


class SelfTest(Struct, frozen=True):
    """One test of a rule, and what came out; ``status`` is None where its lines hold no launch."""

    rule: Rule
    test: RuleTest
    status: Status | None
    found: str

    @property
    def is_good(self) -> bool:
        """Whether what came out is what the test expects."""
        return self.status == self.test.expect


def run_tests(rules: RuleFile, packs: Packs) -> Iterator[SelfTest]:
    """Run the tests of all rules, in file order."""
    for rule in rules.rules:
        for test in rule.tests:
            yield _run(rule, test, rules, packs)


def _run(rule: Rule, test: RuleTest, rules: RuleFile, packs: Packs) -> SelfTest:
    launches = launches_of({str(test.place): test.given}, packs)
    if not launches:
        return SelfTest(rule, test, None, "its lines hold no launch")
    baselines = launches_of({f"{test.place} baseline": test.baseline}, packs) if test.baseline is not None else []
    subject = Subject(launches[-1], packs, baselines, test.labels, test.given)
    result = judge_rule(rule, subject, rules.lanes)
    return SelfTest(rule, test, result.status, ": ".join(part for part in (result.found, result.reason) if part))
