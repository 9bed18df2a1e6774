"""What came of the differences between launches: terms of the budget, memory beside it, time; what is noise is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.differ.attribution import budget_step, counted_draft
from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.steps import Tolerance
from logscope.differ.times import WHOLE
from logscope.differ.types import Change
from logscope.units import GIB, gib
from logscope.words import duration_text

_TOKEN_SHARE = 0.001  # of the tokens: less is rounding of pages and printed sizes
_LEAST_BESIDE = 0.01 * GIB  # the step of a printed figure
_LEAST_TIME_S = 5.0  # and
_LEAST_TIME = 0.2  # of it
_TIMES = {"load_weights": "load_time", "cuda_graph": "graph_time"}
_TAKEN = ("mem_usage_bytes", "k_size_bytes", "v_size_bytes", "kv_size_bytes", "used_bytes")
_MOST_RANKS = 3


def find_effects(evidence: Evidence, others: Sequence[Evidence], tolerance: Tolerance) -> list[Effect]:
    """Return the effects on the budget, on memory beside it and on time.

    Args:
        others: the same launch compared with further baselines. An effect that one of them does not show is their spread.
    """
    found = [*_budget_effects(evidence, tolerance), *_time_effects(evidence, tolerance)]
    for other in others:
        seen = {(each.term, each.is_up) for each in _budget_effects(other, tolerance)}
        seen |= {(each.term, each.is_up) for each in _time_effects(other, tolerance)}
        found = [effect for effect in found if (effect.term, effect.is_up) in seen]
    return [*found, *_effects_beside(evidence)]


def _budget_effects(evidence: Evidence, tolerance: Tolerance) -> Iterator[Effect]:
    budget = evidence.budget
    largest = max(abs(budget.tokens_before or 0), abs(budget.tokens_after or 0))
    for term in budget.terms:
        step = term.step if term.term == "fraction" else budget_step(budget)
        if term.bytes:
            if abs(term.bytes) > step + 1 and not tolerance.allows(term.bytes, budget.before or 0.0, "bytes"):
                figures = _own_figures(evidence, term.term)
                yield Effect(term.term, term.bytes, term.tokens, None, *figures)
        elif (
            term.tokens
            and _is_real(evidence, term.term, abs(term.tokens), largest)
            and not tolerance.allows(term.tokens, budget.tokens_before or 0.0, "tokens")
        ):
            yield Effect(term.term, None, term.tokens)


def _is_real(evidence: Evidence, term: str, tokens: float, largest: float) -> bool:
    """Return whether a term that is tokens only is more than the print resolution of the pools."""
    if term == "page":
        return tokens > 1
    if tokens <= max(_TOKEN_SHARE * largest, 1):
        return False
    cells = [side.sizing.cell for side in (evidence.before, evidence.after)]
    if term == "limits" or cells[0] is None or cells[1] is None:
        return term == "limits"
    if term == "cell":
        return not cells[0].size.meets(cells[1].size)
    return not cells[0].charged.meets(cells[1].charged)


def _own_figures(evidence: Evidence, term: str) -> tuple[str | None, str | None, str]:
    """Return what ranks print of a term, of the rank on which it changed most, and which ranks it changed on."""
    event, name = {
        "free_at_init": ("load_weights.begin", "avail_mem_bytes"),
        "weights": ("load_weights.end", "mem_usage_bytes"),
    }.get(term, ("", ""))
    rows = [c for c in evidence.changes if c.event == event and c.field == name and c.worker != "draft"]
    changed = [change for change in rows if change.delta is not None and change.verdict == "changed"]
    if not changed:
        return None, None, ""
    worst = max(changed, key=lambda change: abs(change.delta or 0.0))
    shown = [f"{gib(each)} GiB" if isinstance(each, (int, float)) else None for each in (worst.before, worst.after)]
    return shown[0], shown[1], _where({change.rank for change in changed}, rows)


def _where(ranks: set[str], rows: Sequence[Change]) -> str:
    """Name ranks where they are a few of several."""
    everyone = list(dict.fromkeys(row.rank for row in rows))
    if len(ranks) == len(everyone) or len(ranks) > _MOST_RANKS or ranks & {"least", "most"}:
        return ""
    return ", ".join(sorted(ranks))


def _effects_beside(evidence: Evidence) -> Iterator[Effect]:
    """Yield memory beside the budget, of the rank on which it changed most: graphs, the draft, distributed init."""
    for term in BESIDE:
        rows = rows_beside(evidence, term)
        by_rank: dict[str, float] = {}
        for change in rows:
            if change.verdict == "changed":
                by_rank[change.rank] = by_rank.get(change.rank, 0.0) + amount_of(change)
        by_rank = {rank: amount for rank, amount in by_rank.items() if abs(amount) > _LEAST_BESIDE}
        if by_rank:
            yield Effect(term, max(by_rank.values(), key=abs), where=_where(set(by_rank), rows))


def rows_beside(evidence: Evidence, term: str) -> list[Change]:
    """Return the steps that tell of memory beside the budget; none of the draft where the budget pays for it."""
    if term == "graphs":
        return [c for c in evidence.changes if c.phase == "cuda_graph" and c.field == "mem_usage_bytes"]
    if term == "distributed_init":
        return [c for c in evidence.changes if c.event == "init_torch_distributed.end" and c.unit == "bytes"]
    if any(counted_draft(side.launch, side.sizing) for side in (evidence.before, evidence.after)):
        return []
    phases = ("kv_cache", "load_weights")
    return [c for c in evidence.changes if c.worker == "draft" and c.phase in phases and c.field in _TAKEN]


def amount_of(change: Change) -> float:
    """Return the change of an amount; all of it where only one launch has it."""
    if change.delta is not None:
        return change.delta
    after = change.after if isinstance(change.after, (int, float)) else 0.0
    before = change.before if isinstance(change.before, (int, float)) else 0.0
    return after - before


def _time_effects(evidence: Evidence, tolerance: Tolerance) -> list[Effect]:
    """Return the phases that took longer or shorter; one that a ready launch does not have took no time."""
    launches = [evidence.before.launch, evidence.after.launch]
    is_whole = all(launch.outcome.kind == "ready" and launch.has_start for launch in launches)
    otherwise = 0.0 if is_whole and evidence.may_be_one_release else None
    found = []
    for each in evidence.times:
        before = each.before if each.before is not None else otherwise
        after = each.after if each.after is not None else otherwise
        if each.phase == WHOLE or before is None or after is None:
            continue
        seconds = after - before
        if abs(seconds) > max(_LEAST_TIME_S, _LEAST_TIME * max(before, after)) and not tolerance.allows(
            seconds, before, "s"
        ):
            name = _TIMES.get(each.phase, f"time of {each.phase}")
            found.append(Effect(name, None, None, seconds, duration_text(before), duration_text(after)))
    return found
