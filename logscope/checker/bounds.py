"""Rules over selected values: bounds with quantifiers, and equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from logscope.checker.amounts import holds, limit_of
from logscope.checker.reduce import PER_VALUE, middle, places_of, reduced, same_values
from logscope.checker.select import select_values
from logscope.checker.silent import unseen_ranks
from logscope.checker.subject import Subject
from logscope.checker.types import Bound, Judgement, Quantifier, Rule, Status, Value
from logscope.checker.vocabulary import COUNTS
from logscope.checker.wording import number_text, range_text, seconds_text, values_text
from logscope.explainer import Question, explain_launch
from logscope.model import Launch
from logscope.rank import parse_rank
from logscope.units import Quantity
from logscope.words import rank_runs

UNFINISHED = ("cut", "running")
_NOT_OVER = "the log does not show the launch become ready or fail"
_Baselines = Sequence[Sequence[Value]]


class _Asked(Struct, frozen=True):
    """One number that a bound is about: the values behind it, its limit, and what the baselines have in its place."""

    number: Quantity
    values: tuple[Value, ...]
    limit: Quantity
    base: Sequence[Quantity]


def _values(rule: Rule, subject: Subject) -> list[Value]:
    assert rule.select is not None, "the rules file is refused without it"
    return select_values(rule.select, subject.launch, subject.packs, subject.explanation)


def judge_bounds(rule: Rule, subject: Subject) -> Judgement:
    """Judge bounds over the selected values."""
    values = _values(rule, subject)
    needs_baseline = any(bound.from_baseline for bound in rule.expect.bounds.values())
    base: _Baselines = []
    if needs_baseline:
        base = [own for launch in subject.baselines if (own := _baseline_values(rule, launch, subject))]
    open_ = _why_open(rule, subject, values, base if needs_baseline else None)
    unit = values[0].dimension if values else ""
    asked = {key: list(_asked(key, bound, values, base)) for key, bound in rule.expect.bounds.items()}
    open_ = open_ or _why_unmatched(asked, values)
    if open_:
        return Judgement("inconclusive", values_text(values), open_, tuple(values), places_of(values), needs_baseline)
    broken: list[tuple[str, tuple[Value, ...]]] = []
    limits: dict[Quantifier, str] = {}
    reasons: list[str] = []
    for key, bound in rule.expect.bounds.items():
        own_unit = "" if key == "count" else unit
        if bound.from_baseline:
            limits[key] = f"{bound.text} = {_limit_text(asked[key], own_unit, len(base))}"
            reasons.extend(_within_spread(key, bound, asked[key], own_unit))
        broken.extend(_broken(key, bound, asked[key], own_unit))
    undecided = "" if broken else _why_undecided(rule, subject, values) or _why_fewer(rule, values, base)
    status: Status = "fail" if broken else "inconclusive" if undecided else "pass"
    found = "; ".join(text for text, _ in broken) or (values_text(values) if values else "none")
    evidence = places_of([value for _, culprits in broken for value in culprits] or values)
    reason = undecided or "; ".join(reasons)
    return Judgement(status, found, reason, tuple(values), evidence, needs_baseline, limits)


def _why_unmatched(asked: Mapping[Quantifier, Sequence[_Asked]], values: Sequence[Value]) -> str:
    """Return which values the baseline has nothing to compare with; empty if there are none."""
    for quantifier, found in asked.items():
        if len(found) < (len(values) if quantifier in PER_VALUE else 1):
            told = {id(value) for each in found for value in each.values}
            missing = dict.fromkeys(value.rank or "the launch" for value in values if id(value) not in told)
            return f"the baseline has no such value of {', '.join(missing)}"
    return ""


def _why_fewer(rule: Rule, values: Sequence[Value], base: _Baselines) -> str:
    """Return which ranks have a value in a baseline and none here, where each is compared with itself; empty if there are none."""
    if not any(key == "each" and bound.from_baseline for key, bound in rule.expect.bounds.items()):
        return ""
    own = {value.rank for value in values}
    missing = sorted({parse_rank(value.rank) for each in base for value in each if value.rank not in own})
    return f"no such value of {', '.join(rank_runs(missing, missing))}, which the baseline has" if missing else ""


def _why_open(rule: Rule, subject: Subject, values: Sequence[Value], base: _Baselines | None) -> str:
    """Return why bounds cannot be judged; empty if they can."""
    launch, bounds = subject.launch, rule.expect.bounds
    counts_only = set(bounds) == {"count"}
    if not values and not (counts_only and launch.outcome.kind not in UNFINISHED):
        return why_nothing(launch)
    texts = [value.text for value in values if value.number is None]
    if texts and not counts_only:
        return f"{texts[0] or 'an empty text'} is no number"
    if base is not None and not subject.baselines:
        return "the rule compares with a baseline, and there is none"
    if base is not None and not base:
        return "the baseline has no such value"
    if launch.outcome.kind in UNFINISHED and any(_may_grow_past(rule, key, values) for key in bounds):
        return "the log ends before all of them can be there"
    return ""


def _may_grow_past(rule: Rule, quantifier: Quantifier, values: Sequence[Value]) -> bool:
    """Return whether a bound is about how many there are, and more lines can turn what became of it so far."""
    bound, select = rule.expect.bounds[quantifier], rule.select
    if quantifier == "count":
        return _may_change(bound, len(values))
    if select is None or select.source != "launch" or select.name not in COUNTS:
        return False
    return any(_may_change(bound, value.number.value) for value in values if value.number is not None)


def _may_change(bound: Bound, count: float) -> bool:
    """Return whether more lines can turn what a count came to so far."""
    limit = limit_of(bound)
    if limit is None:
        return True
    is_settled = count >= limit.value if bound.operator in (">=", "<") else count > limit.value
    return not is_settled


def _why_undecided(rule: Rule, subject: Subject, values: Sequence[Value]) -> str:
    """Return why bounds that hold so far may not hold: some ranks do not say theirs. Empty if they do."""
    launch = subject.launch
    if launch.outcome.kind == "failed" and not values:
        return why_nothing(launch)
    if launch.outcome.kind not in UNFINISHED:
        return _why_unseen(rule, subject, values)
    if not _is_of_every_rank(rule, launch):
        return ""
    silent = len(launch.ranks) - len({value.rank for value in values})
    return f"the log ends before {silent} of {len(launch.ranks)} ranks say it" if silent > 0 else ""


def _why_unseen(rule: Rule, subject: Subject, values: Sequence[Value]) -> str:
    """Return which ranks the arguments ask for and no line shows, where each rank is to have a value; empty if there are none."""
    select = rule.select
    settled = set(rule.expect.bounds) and set(rule.expect.bounds) <= {"any", "count"}
    if select is None or select.rank is not None or settled or not any(value.rank for value in values):
        return ""
    pattern = next((each for each in subject.packs.patterns if each.id == select.name), None)
    if select.source == "event" and (pattern is None or pattern.said_by != "every rank"):
        return ""
    unseen = unseen_ranks(subject.launch)
    return f"{', '.join(rank_runs(unseen, [*subject.launch.ranks, *unseen]))}: no line in this log" if unseen else ""


def _is_of_every_rank(rule: Rule, launch: Launch) -> bool:
    """Return whether each rank is to say what a rule looks at."""
    select = rule.select
    if select is None or select.rank is not None or select.source not in ("event", "phase"):
        return False
    said = [event.pattern for event in launch.events if select.name in (event.pattern.id, event.pattern.phase)]
    return any(pattern.said_by == "every rank" for pattern in said)


def _baseline_values(rule: Rule, launch: Launch, subject: Subject) -> list[Value]:
    assert rule.select is not None, "asked for a rule with a selection"
    return select_values(rule.select, launch, subject.packs, explain_launch(launch, subject.packs, Question()))


def _asked(quantifier: Quantifier, bound: Bound, values: Sequence[Value], base: _Baselines) -> Iterator[_Asked]:
    """Yield the numbers to compare: of every value, or one for all; none where the baseline lacks what they need."""
    if quantifier in PER_VALUE:
        for value, own in same_values(values, base):
            limit = limit_of(bound, middle(own))
            if limit is not None and value.number is not None:
                yield _Asked(value.number, (value,), limit, own)
        return
    number, behind = reduced(quantifier, values)
    own = [found for each in base if (found := reduced(quantifier, each)[0]) is not None]
    limit = limit_of(bound, middle(own))
    if number is not None and limit is not None:
        yield _Asked(number, behind, limit, own)


def _broken(
    quantifier: Quantifier, bound: Bound, asked: Sequence[_Asked], unit: str
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield what breaks a bound: a text for people, and the values."""
    wrong = [each for each in asked if not holds(bound, each.number, each.limit)]
    if not wrong or (quantifier == "any" and len(wrong) < len(asked)):
        return
    in_seconds = unit == "s" and not bound.from_baseline and not bound.text.rstrip().endswith(("min", "m", "h"))
    culprits = tuple(value for each in wrong for value in each.values)
    if quantifier in PER_VALUE:
        yield values_text(culprits, in_seconds=in_seconds), culprits
        return
    who = f" ({values_text(culprits)})" if quantifier == "spread" else ""
    if quantifier in ("min", "max") and any(value.rank for value in culprits):
        yield f"{quantifier} {values_text(culprits, in_seconds=in_seconds)}", culprits
    else:
        number = wrong[0].number.value
        yield f"{quantifier} {seconds_text(number) if in_seconds else number_text(number, unit)}{who}", culprits


def _limit_text(asked: Sequence[_Asked], unit: str, baselines: int) -> str:
    """Write the limit, and beside it what several baselines have themselves."""
    text = range_text([each.limit for each in asked], unit)
    if baselines < 2:
        return text
    return f"{text}; {baselines} baselines: {range_text([number for each in asked for number in each.base], unit)}"


def _within_spread(quantifier: Quantifier, bound: Bound, asked: Sequence[_Asked], unit: str) -> Iterator[str]:
    """Yield a warning where a baseline itself breaks the limit: it is within what differs from run to run."""
    if any(len(each.base) > 1 and not all(holds(bound, own, each.limit) for own in each.base) for each in asked):
        spread = range_text([number for each in asked for number in each.base], unit)
        yield f"the limit of {quantifier} is within the spread of the baselines, {spread}: it may break by chance"


def judge_equals(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether all selected values are one text or number."""
    values = _values(rule, subject)
    if not values:
        return Judgement("inconclusive", "nothing", _why_untold(rule, subject.launch))
    wrong = [value for value in values if not _is_equal(value, rule.expect.equals or "")]
    undecided = _why_too_early(rule, wrong) if wrong else _why_undecided(rule, subject, values)
    if undecided:
        return Judgement("inconclusive", values_text(values), undecided, tuple(values), places_of(values))
    return Judgement(
        "fail" if wrong else "pass", values_text(wrong or values), "", tuple(values), places_of(wrong or values)
    )


def _why_untold(rule: Rule, launch: Launch) -> str:
    """Say why a log has none of the values: only what was ready can end, and only what is over has a cause."""
    name = rule.select.name if rule.select is not None and rule.select.source == "launch" else ""
    if name == "ended" and launch.outcome.kind in ("failed", "hung"):
        return "the launch did not become ready"
    return _NOT_OVER if name in ("ended", "cause") else why_nothing(launch)


def _why_too_early(rule: Rule, wrong: Sequence[Value]) -> str:
    """Return why an outcome that is another than wanted may still be the one: the log does not show it. Empty for all else."""
    is_outcome = rule.select is not None and (rule.select.source, rule.select.name) == ("launch", "outcome")
    return _NOT_OVER if is_outcome and wrong[0].text in UNFINISHED else ""


def _is_equal(value: Value, wanted: str) -> bool:
    if value.text == wanted:
        return True
    try:
        return value.number is not None and value.number.low <= float(wanted) <= value.number.high
    except ValueError:
        return False


def why_nothing(launch: Launch) -> str:
    """Say why a log has nothing of what a rule looks at."""
    if launch.outcome.kind == "failed":
        return "no line says it: the launch failed before, or its release does not print it"
    return (
        "no line of this log says it"
        if launch.outcome.kind == "ready"
        else "no line says it: the log ends before, or begins after"
    )
