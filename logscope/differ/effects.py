"""What came of the differences between launches: terms of the budget, memory beside it, time; what is noise is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from logscope.differ.attribution import budget_step
from logscope.differ.evidence import BESIDE, Effect, Evidence
from logscope.differ.figures import counted_draft
from logscope.differ.ranks import OVER_RANKS, in_order
from logscope.differ.steps import Tolerance
from logscope.differ.times import WHOLE, is_gap
from logscope.differ.types import Change, Term
from logscope.differ.unexplained import capacity_effect, missing_effect
from logscope.units import GIB, gib
from logscope.words import duration_text

_TOKEN_SHARE = 0.001  # of the tokens: less is rounding of pages and printed sizes
_LEAST_BESIDE = 0.01 * GIB  # the step of a printed figure
_LEAST_TIME_S = 5.0  # and
_LEAST_TIME = 0.2  # of it
_TIMES = {"load_weights": "load_time", "cuda_graph": "graph_time"}
_POOL_SIZES = ("k_size_bytes", "v_size_bytes", "kv_size_bytes")
_TAKEN = ("mem_usage_bytes", *_POOL_SIZES, "used_bytes")
_INIT = "init_torch_distributed.end"
_LINES = {  # where a rank prints the figures of a term
    "free_at_init": ("load_weights.begin", "avail_mem_bytes"),
    "distributed_init": (_INIT, "mem_usage_bytes"),
    "weights": ("load_weights.end", "mem_usage_bytes"),
}
_MOST_RANKS = 3


def find_effects(evidence: Evidence, others: Sequence[Evidence], tolerance: Tolerance) -> list[Effect]:
    """Return the effects on the budget, on memory beside it and on time.

    Args:
        others: the same launch compared with further baselines. An effect that one of them does not show is their spread.
    """
    found = [*_without_pages(_budget_effects(evidence, tolerance)), *_time_effects(evidence, tolerance)]
    for other in others:
        seen = {(each.term, each.is_up) for each in _budget_effects(other, tolerance)}
        seen |= {(each.term, each.is_up) for each in _time_effects(other, tolerance)}
        found = [effect for effect in found if (effect.term, effect.is_up) in seen]
    beside = [effect for effect in _effects_beside(evidence) if not _is_counted(effect, found)]
    if not any(effect.is_of_budget for effect in found):
        beside.extend(capacity_effect(evidence))
    return [*found, *beside]


def _without_pages(effects: Iterable[Effect]) -> list[Effect]:
    """Return effects without that of whole pages, unless it is the only one: beside others it is within what they are known to."""
    found = list(effects)
    return found if len(found) == 1 else [effect for effect in found if effect.term != "page"]


def _is_counted(effect: Effect, found: Sequence[Effect]) -> bool:
    """Return whether memory beside the budget is an effect on the budget already."""
    return effect.term == "distributed_init_beside" and any(each.term == "distributed_init" for each in found)


def _budget_effects(evidence: Evidence, tolerance: Tolerance) -> Iterator[Effect]:
    budget = evidence.budget
    largest = max(abs(budget.tokens_before or 0), abs(budget.tokens_after or 0))
    for term in budget.terms:
        step = term.step if term.term == "fraction" else budget_step(budget)
        if term.bytes:
            if abs(term.bytes) > step + 1 and not tolerance.allows(term.bytes, budget.before or 0.0, "bytes"):
                yield Effect(term.term, term.bytes, term.tokens, None, *_own_figures(evidence, term))
        elif (
            term.tokens
            and _is_real(evidence, term.term, abs(term.tokens), largest)
            and not tolerance.allows(term.tokens, budget.tokens_before or 0.0, "tokens")
        ):
            yield Effect(term.term, None, term.tokens)
    yield from missing_effect(evidence, tolerance)


def _is_real(evidence: Evidence, term: str, tokens: float, largest: float) -> bool:
    """Return whether a term that is tokens only is more than the print resolution of the pools."""
    sizings = evidence.before.sizing, evidence.after.sizing
    if term == "page" or (term == "limits" and all(each.bound_by == "max_total_tokens" for each in sizings)):
        return tokens > 1
    if tokens <= max(_TOKEN_SHARE * largest, 1):
        return False
    cells = sizings[0].cell, sizings[1].cell
    if term == "states":
        return True
    if term == "limits" or cells[0] is None or cells[1] is None:
        return term == "limits"
    if term == "cell":
        return not cells[0].size.meets(cells[1].size)
    return not cells[0].charged.meets(cells[1].charged)


def _own_figures(evidence: Evidence, term: Term) -> tuple[str | None, str | None, str]:
    """Return what ranks print of a term, of the rank on which it changed most, and which ranks it changed on.

    Free memory that distributed init has a part in has no figure of its own: then only the ranks are told.
    """
    rows = _rows_of(term.term, evidence)
    changed = [change for change in rows if change.delta is not None and change.verdict == "changed"]
    init = {row.rank: row.delta or 0.0 for row in _rows_of("distributed_init", evidence) if _is_moved(row)}
    if term.term == "free_at_init" and init:
        step = _LEAST_BESIDE + 1  # of each of two printed figures
        apart = {
            change.rank for change in changed if abs((change.delta or 0.0) + init.get(change.rank, 0.0)) > 2 * step
        }
        return None, None, _where(apart, rows)
    if not changed:
        return _gib_or_none(term.before), _gib_or_none(term.after), ""
    by_rank = {change.rank: change for change in changed}
    worst = max((by_rank[rank] for rank in sorted(by_rank)), key=lambda change: abs(change.delta or 0.0))
    return _gib_or_none(worst.before), _gib_or_none(worst.after), _where({change.rank for change in changed}, rows)


def _is_moved(row: Change) -> bool:
    """Return whether a figure is another one, be it within what the user or other baselines allow."""
    return abs(row.delta or 0.0) > _LEAST_BESIDE + 1


def _rows_of(term: str, evidence: Evidence) -> list[Change]:
    event, name = _LINES.get(term, ("", ""))
    return [c for c in evidence.changes if c.event == event and c.field == name and c.worker != "draft"]


def _gib_or_none(amount: float | str | None) -> str | None:
    return f"{gib(amount)} GiB" if isinstance(amount, (int, float)) else None


def _where(ranks: set[str], rows: Sequence[Change]) -> str:
    """Name ranks where they are a few of several."""
    everyone = list(dict.fromkeys(row.rank for row in rows))
    if len(ranks) == len(everyone) or len(ranks) > _MOST_RANKS or ranks & set(OVER_RANKS):
        return ""
    return ", ".join(in_order(ranks))


def _effects_beside(evidence: Evidence) -> Iterator[Effect]:
    """Yield memory beside the budget, of the rank on which it changed most: graphs, the draft, distributed init, a capped pool."""
    for term in BESIDE:
        rows = rows_beside(evidence, term)
        by_rank: dict[str, float] = {}
        told = _whole_ranks(rows) if term == "graphs" else {row.rank for row in rows}
        for change in rows:
            if change.rank in told and (
                change.verdict == "changed" or (term == "graphs" and _is_renamed(change, evidence))
            ):
                by_rank[change.rank] = by_rank.get(change.rank, 0.0) + amount_of(change)
        if term == "distributed_init_beside":
            by_rank = {rank: _felt(amount, rank, evidence) for rank, amount in by_rank.items()}
        by_rank = {rank: amount for rank, amount in by_rank.items() if abs(amount) > _LEAST_BESIDE}
        if by_rank:
            most = max((by_rank[rank] for rank in sorted(by_rank)), key=abs)
            yield Effect(term, most, where=_where(set(by_rank), rows))


def _whole_ranks(rows: Sequence[Change]) -> set[str]:
    """Return the ranks that print all the steps of their launch: of the draft's graphs some releases print those of one rank only."""
    ranks = {row.rank for row in rows}
    for has in (
        [row.rank for row in rows if row.before is not None],
        [row.rank for row in rows if row.after is not None],
    ):
        counts = Counter(has)
        ranks = {rank for rank in ranks if counts[rank] == max(counts.values(), default=0)}
    return ranks


def _is_renamed(change: Change, evidence: Evidence) -> bool:
    """Return whether a graph of one release has another name, or no counterpart, in the other: it counts in the sum of all graphs."""
    is_one_sided = change.before is None or change.after is None
    return is_one_sided and evidence.both_ready and not evidence.may_be_one_release


def _felt(amount: float, rank: str, evidence: Evidence) -> float:
    """Return how much of what distributed init took more is missing after it; all of it where no line tells what is free then."""
    free = [row.delta for row in _rows_of("free_at_init", evidence) if row.rank == rank]
    if not free or free[0] is None:
        return amount
    lost = -free[0]
    return max(min(amount, lost), 0.0) if amount > 0 else min(max(amount, lost), 0.0)


def rows_beside(evidence: Evidence, term: str) -> list[Change]:
    """Return the steps that tell of memory beside the budget; none of the draft where the budget pays for it."""
    if term == "graphs":
        return [c for c in evidence.changes if c.phase == "cuda_graph" and c.field == "mem_usage_bytes"]
    if term == "distributed_init_beside":
        return [c for c in evidence.changes if c.event == _INIT and c.unit == "bytes"]
    if term == "pool":
        is_capped = all(side.sizing.bound_by == "max_total_tokens" for side in (evidence.before, evidence.after))
        own = [c for c in evidence.changes if c.worker != "draft" and c.field in _POOL_SIZES]
        return own if is_capped else []
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
    """Return the phases that took longer or shorter.

    A phase that a ready launch does not have took no time. If a launch is not ready, only phases that both went through compare, and
    what lies between phases does not.
    """
    launches = [evidence.before.launch, evidence.after.launch]
    is_whole = evidence.both_ready and all(launch.has_start for launch in launches)
    otherwise = 0.0 if is_whole and evidence.may_be_one_release else None
    found = []
    for each in evidence.times:
        before = each.before if each.before is not None else otherwise
        after = each.after if each.after is not None else otherwise
        if each.phase == WHOLE or before is None or after is None or (is_gap(each.phase) and not evidence.both_ready):
            continue
        seconds = after - before
        if abs(seconds) > max(_LEAST_TIME_S, _LEAST_TIME * max(before, after)) and not tolerance.allows(
            seconds, before, "s"
        ):
            name = _TIMES.get(each.phase, each.phase)
            shown = duration_text(before), duration_text(after)
            found.append(Effect(name, None, None, seconds, *shown, _slow_ranks(each.phase, evidence)))
    return found


def _slow_ranks(phase: str, evidence: Evidence) -> str:
    """Name the ranks on which the time of a phase changed, where they are a few of several."""
    rows = [row for row in evidence.changes if row.phase == phase and row.unit == "s" and row.rank]
    changed = {row.rank for row in rows if row.verdict == "changed"}
    return _where(changed, rows) if changed else ""
