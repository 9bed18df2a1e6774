"""The comparison of logscope's budget with SGLang's functions, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import fields

from logscope.budget import (
    Capacity,
    Interval,
    NotModelled,
    capacity,
    default_fraction,
    draft_pool_tokens,
    exact,
    request_slots,
    split_window,
)
from logscope.units import GIB

from .budget_fraction import sglang_fraction
from .budget_grid import Case, budget_cases, fraction_cases
from .budget_sglang import Answer, sglang_tokens


@dataclass(frozen=True, slots=True)
class Difference:
    """A case for which both do not agree."""

    release: str
    group: str
    ours: str
    theirs: str
    case: str


@dataclass(slots=True)
class Tally:
    """Cases of one group in one release: of those that are equal, ``failing`` have no number, as the launch fails in both."""

    equal: int = 0
    failing: int = 0
    refused: int = 0
    different: int = 0


def brief(thing: object) -> str:
    """Return a record as text without the fields that have their defaults."""
    if isinstance(thing, Interval):
        return f"{thing.low:.10g}"
    if not isinstance(thing, Struct):
        return repr(thing)
    shown = [each for each in fields(thing) if getattr(thing, each.name) != each.default]
    return f"{type(thing).__name__}({', '.join(f'{each.name}={brief(getattr(thing, each.name))}' for each in shown)})"


def compare_budgets(root: Path, release: str) -> tuple[dict[str, Tally], list[Difference]]:
    """Run both on the grid of a release."""
    tallies: dict[str, Tally] = {}
    differences: list[Difference] = []
    for case in budget_cases(release):
        tally = tallies.setdefault(case.group, Tally())
        ours = capacity(case.launch, exact(case.flags.fraction), release)
        if isinstance(ours, NotModelled):
            tally.refused += 1
            continue
        theirs = sglang_tokens(root, release, case.launch, case.flags)
        problem = _disagreement(case, ours, theirs, release)
        if problem is None:
            tally.equal += 1
            tally.failing += theirs.raised is not None
        else:
            tally.different += 1
            differences.append(Difference(release, case.group, *problem, brief(case)))
    return tallies, differences


def _disagreement(case: Case, ours: Capacity, theirs: Answer, release: str) -> tuple[str, str] | None:
    if theirs.raised is not None:
        failed = (
            ours.tokens.high <= 0
            or ours.rest.high <= 0
            or (ours.state_requests is not None and ours.state_requests.high <= 0)
        )
        window = ours.window_tokens is not None and ours.window_tokens.high <= 128 + case.launch.page_size
        return None if failed or window else (_text(ours), theirs.raised)
    pairs: list[tuple[float | None, float | None]] = [(ours.tokens.low, theirs.tokens)]
    if ours.window_tokens is not None:
        pairs.append((ours.window_tokens.low, theirs.window))
        pairs.append((_full(case, ours, release), theirs.full))
    if ours.states is not None:
        pairs.append((ours.states.low, theirs.states))
    pairs += _drafts(case, ours, theirs, release)
    if theirs.requests is not None and case.launch.states is None:
        slots = request_slots(
            int(ours.tokens.low),
            case.flags.context_length,
            release,
            case.launch.max_running_requests,
            case.launch.dp_size,
        )
        pairs.append((slots, theirs.requests))
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    return (str([mine for mine, _ in wrong]), str([its for _, its in wrong])) if wrong else None


def _full(case: Case, ours: Capacity, release: str) -> int | None:
    assert case.launch.model is not None, "a grid has models"
    launch = case.launch
    split = split_window(
        ours.rest.low, case.launch.model, launch.window_ratio, release, launch.page_size, launch.max_total_tokens
    )
    return None if isinstance(split, NotModelled) else split.full


def _drafts(case: Case, ours: Capacity, theirs: Answer, release: str) -> list[tuple[float | None, float | None]]:
    """Compare the draft's pool where its size is handed on before caps and pages."""
    launch = case.launch
    if launch.speculation is None or theirs.draft is None or launch.page_size > 1 or launch.max_total_tokens:
        return []
    profiled = int(ours.tokens.low)
    requests = launch.max_running_requests or request_slots(profiled, case.flags.context_length, release)
    return [(draft_pool_tokens(profiled, profiled, launch.speculation, requests, release), theirs.draft)]


def _text(ours: Capacity) -> str:
    return f"tokens {ours.tokens.low:.0f}, rest {ours.rest.low / GIB:.3f} GiB"


def compare_fractions(root: Path, release: str) -> tuple[dict[str, Tally], list[Difference]]:
    """Run both on the flags."""
    tallies: dict[str, Tally] = {}
    differences: list[Difference] = []
    for group, flags in fraction_cases():
        tally = tallies.setdefault(group, Tally())
        ours = default_fraction(flags, release)
        if isinstance(ours, NotModelled):
            tally.refused += 1
            continue
        theirs = sglang_fraction(root, release, flags)
        if ours.printed == theirs:
            tally.equal += 1
        else:
            tally.different += 1
            differences.append(Difference(release, group, str(ours.printed), str(theirs), brief(flags)))
    return tallies, differences
