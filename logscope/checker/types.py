"""Rules over launches, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from logscope.model import Level, Pos
from logscope.packs import Place
from logscope.units import Quantity

Status = Literal["pass", "fail", "inconclusive", "skipped"]
Quantifier = Literal["each", "any", "min", "max", "spread", "sum", "count"]
Operator = Literal["<=", ">=", "<", ">", "==", "!="]
Source = Literal["event", "phase", "ledger", "arg", "launch"]

FLAGS = "command line"  # where rules from flags stand, in place of a file
LEVELS: Mapping[Level, int] = {"error": 0, "warning": 1, "note": 2}  # worst first


class Amount(Struct, frozen=True):
    """A number in base units and its dimension: "bytes", "s", "tokens", "percent" or "" for plain numbers."""

    value: float
    dimension: str
    text: str


class Bound(Struct, frozen=True):
    """A comparison: with an amount, or with the baseline's value plus or minus an amount (or a share of it)."""

    operator: Operator
    amount: Amount | None
    from_baseline: bool = False
    sign: int = 0
    text: str = ""


class Select(Struct, frozen=True):
    """Which values a rule looks at: of one source, of these ranks and this worker."""

    source: Source
    name: str
    field: str = ""
    worker: str | None = None
    rank: str | None = None
    role: str | None = None


class Expect(Struct, frozen=True):
    """What a rule asks for; exactly one kind of it.

    ``bounds``: quantifier -> bound, over selected values. ``equals``: a text or number. ``reach`` with ``ranks`` and
    ``within_s``; ``present``, ``absent`` (event, finding and cause ids, with stars) with ``until``; ``sequence`` per rank;
    ``identity``; ``coverage`` and ``unknown_lines``; ``unchanged``: what a comparison with the baseline must not change.
    """

    bounds: Mapping[Quantifier, Bound] = field(default_factory=dict)
    equals: str | None = None
    reach: str | None = None
    all_ranks: bool = False
    within_s: float | None = None
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    until: str | None = None
    sequence: tuple[str, ...] = ()
    identity: str | None = None
    coverage: Bound | None = None
    unknown_lines: Bound | None = None
    unchanged: tuple[str, ...] = ()


class Lane(Struct, frozen=True):
    """When rules apply: labels from the command line, arguments in force, a range of releases."""

    name: str
    labels: Mapping[str, str]
    args: Mapping[str, str]
    since: str | None
    until: str | None


class RuleTest(Struct, frozen=True):
    """A test that a rule carries: lines of a log, lines of a baseline, labels, and the status that must come out."""

    given: str
    baseline: str | None
    labels: Mapping[str, str]
    expect: Status
    place: Place


class Rule(Struct, frozen=True):
    """One sentence that must hold of a launch."""

    id: str
    why: str
    level: Level
    place: Place
    select: Select | None
    expect: Expect
    when: tuple[str, ...] = ()
    optional: bool = False
    tests: tuple[RuleTest, ...] = ()
    expect_at: Place | None = None

    @property
    def is_in_file(self) -> bool:
        """Whether it stands in a file; those of flags stand on the command line."""
        return self.place.file != FLAGS

    @property
    def where(self) -> str:
        """Where it stands, for people."""
        return str(self.place) if self.is_in_file else FLAGS


class RuleFile(Struct, frozen=True):
    """A rules file: its rules, lanes, and the baseline that it names, with where it does."""

    name: str
    rules: tuple[Rule, ...]
    lanes: Mapping[str, Lane]
    baseline: str | None = None
    baseline_at: Place | None = None


class Value(Struct, frozen=True):
    """One selected value: whose, how much, and the line that says so. Texts have no number."""

    rank: str
    number: Quantity | None
    text: str
    dimension: str
    pos: Pos | None


class Result(Struct, frozen=True):
    """What became of one rule on one launch.

    ``expected`` and ``found`` are for people; ``values`` all that was looked at; ``evidence`` the first lines; ``cause`` the likely
    cause by explain or diff; ``accept`` how a person accepts a new value, ``remedy`` what to do; both empty where that makes no sense.
    """

    rule: Rule
    launch: int
    status: Status
    expected: str
    found: str
    reason: str = ""
    values: tuple[Value, ...] = ()
    evidence: tuple[Pos, ...] = ()
    cause: str = ""
    accept: str = ""
    remedy: str = ""


class Judgement(Struct, frozen=True):
    """What one expectation came to, before it is a result."""

    status: Status
    found: str
    reason: str = ""
    values: tuple[Value, ...] = ()
    evidence: tuple[Pos, ...] = ()
    uses_baseline: bool = False
    limits: Mapping[Quantifier, str] = field(default_factory=dict)


class Checked(Struct, frozen=True):
    """All results of a check: the one type that every output format is made from.

    ``properties`` are facts of the launch (model, tp, release) for reports; ``source`` the logs; ``rules`` the rules file.
    """

    source: str
    rules: str
    results: tuple[Result, ...]
    verdict: str
    exit_code: int
    properties: Mapping[str, str] = field(default_factory=dict)

    def of(self, status: Status) -> tuple[Result, ...]:
        """Return the results of one status, errors first."""
        found = [result for result in self.results if result.status == status]
        return tuple(sorted(found, key=lambda result: LEVELS[result.rule.level]))
