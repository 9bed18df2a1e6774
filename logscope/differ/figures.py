"""The figures of one launch that the terms of its KV budget are made of, all of the rank with the least free memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from logscope import budget
from logscope.budget import Interval, exact
from logscope.differ.align import rank_name
from logscope.differ.types import Side
from logscope.model import Event, Launch, ReleaseRange
from logscope.server_args import arg_count, arg_number
from logscope.sizing import POOLS, STATES, Sizing, Stated, fraction_used
from logscope.timeline import item_quantities

_WEIGHTS = "weights"
_INIT = "init_torch_distributed.end"


class Figures(Struct, frozen=True):
    """The figures of one launch: bytes, and the steps that they are printed in.

    ``total`` is T, the least over the ranks; ``own_total`` that of the rank whose ``avail`` is the least. ``rank`` is its name, ``inits``
    what distributed init took on each rank, where lines say so. ``weights`` and ``draft`` are what they took, ``between`` what else went
    until the pool
    was sized; ``named`` are the parts of it that lines name. ``budget`` is what was granted, ``formula`` what free memory and fraction
    give; ``slack`` is how far both may be apart for print resolution. ``states`` is what Mamba states take of the budget, None where no
    pools are known; ``has_fixed_states``: an argument says how many there are. ``cap`` is max_total_tokens, infinite where there is none.
    """

    total: float
    own_total: float
    avail: float
    rank: str
    inits: Mapping[str, float]
    weights: float
    draft: float
    between: float
    named: dict[str, float]
    fraction: float
    budget: float
    formula: float
    slack: float
    step: float
    fraction_step: float
    charged: Interval | None
    own: Interval | None
    tokens: float | None
    cap: float
    capped: bool
    page_size: int
    states: float | None
    has_fixed_states: bool
    releases: ReleaseRange
    cell: float | None = None
    own_cell: float | None = None

    @property
    def net(self) -> float:
        """What of the budget is left for tokens."""
        return self.budget - (self.states or 0.0)

    @property
    def rate(self) -> float:
        """The share of the budget that is left for tokens."""
        return self.net / self.budget if self.budget else 1.0


def figures_of(side: Side) -> Figures | None:
    """Return the figures of a launch, None where it does not tell its free memory or fraction."""
    sizing, fraction = side.sizing, _fraction(side.sizing)
    if sizing.total is None or sizing.avail is None or fraction is None or _is_partial(side):
        return None
    total, avail = sizing.total.amount, sizing.avail.amount
    own_total, draft, taken = _own_total(sizing, total), counted_draft(side.launch, sizing), _taken(side.launch, sizing)
    gone = own_total - middle(avail) - draft
    weights = taken.pop(_WEIGHTS, gone - sum(taken.values()))
    capped = sizing.bound_by == "max_total_tokens"
    formula = budget.rest(exact(middle(avail)), exact(middle(total)), exact(fraction)).low
    paid = None if capped else sizing.paid
    steps = total.high - total.low + avail.high - avail.low
    return Figures(
        total=middle(total),
        own_total=own_total,
        avail=middle(avail),
        rank=rank_name(sizing.limiting[0]) if sizing.limiting else "",
        inits=_inits(side.launch),
        weights=weights,
        draft=draft,
        between=gone - weights,
        named=taken,
        fraction=fraction,
        budget=formula if paid is None else middle(paid),
        formula=formula,
        slack=0.0 if paid is None else (steps + paid.high - paid.low) / 2,
        step=steps,
        fraction_step=_fraction_step(sizing),
        charged=sizing.cell.charged if sizing.cell else None,
        own=sizing.cell.size if sizing.cell else None,
        tokens=tokens_of(sizing),
        cap=_cap(side.launch, sizing, capped=capped),
        capped=capped,
        page_size=sizing.page_size,
        states=_states(sizing),
        has_fixed_states=arg_number(side.launch.args.values, "max_mamba_cache_size") is not None,
        releases=side.launch.releases,
    )


def middle(amount: Interval) -> float:
    """Return the middle of an interval."""
    return (amount.low + amount.high) / 2


def tokens_of(sizing: Sizing) -> float | None:
    """Return the token capacity, None where none was reached."""
    return sizing.tokens.amount.low if sizing.tokens else None


def is_refuted(sizing: Sizing) -> bool:
    """Return whether the pools are larger than the fraction that the log states can give: it is not what ran."""
    return sizing.fraction.verdict == "below"


def stated_fraction(sizing: Sizing) -> float | None:
    """Return the fraction that a log states, unless its pools refute that."""
    return None if is_refuted(sizing) else sizing.fraction.in_force


def _fraction(sizing: Sizing) -> float | None:
    """Return the fraction in force, also where the pools are smaller than it gives: that difference is shown, and not explained away."""
    stated = stated_fraction(sizing)
    if is_refuted(sizing) and sizing.fraction.implied is not None:
        return middle(sizing.fraction.implied)
    return stated if stated is not None else fraction_used(sizing)


def _fraction_step(sizing: Sizing) -> float:
    """Return how far a fraction that is inferred from the pool may be off."""
    implied = sizing.fraction.implied
    return 0.0 if stated_fraction(sizing) is not None or implied is None else implied.high - implied.low


def _is_partial(side: Side) -> bool:
    """Return whether some rank has not said yet what is free after its weights: the least over the ranks is not known then."""
    sizing = side.sizing
    if sizing.tokens is not None:
        return False
    due = due_ranks(side.launch) // arg_count(side.launch.args.values, "nnodes")
    return sum(each.avail is not None for each in sizing.ranks) < max(len(side.launch.ranks), due)


def due_ranks(launch: Launch) -> int:
    """Return how many ranks share a model by the arguments, on all nodes; 1 where they do not say."""
    return arg_count(launch.args.values, "tp_size") * arg_count(launch.args.values, "pp_size")


def _states(sizing: Sizing) -> float | None:
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    if own is None or not own.pools:
        return None
    return sum(middle(pool.size) for pool in own.pools if pool.item in STATES and pool.worker != "draft")


def _own_total(sizing: Sizing, total: Interval) -> float:
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    if own is None or own.total is None or own.total.amount.meets(total):
        return middle(total)
    return middle(own.total.amount)


def _cap(launch: Launch, sizing: Sizing, *, capped: bool) -> float:
    tokens = tokens_of(sizing)
    if capped and tokens is not None:
        return tokens
    typed = launch.command.flags if launch.command else {}
    cap = arg_number(launch.args.values, "max_total_tokens") or arg_number(typed, "max_total_tokens")
    return cap or float("inf")


def _own_lines(launch: Launch, sizing: Sizing) -> Iterator[tuple[Event, str | None]]:
    """Yield the lines of the rank with the least free memory."""
    pairs = zip(launch.events, launch.workers, strict=True)
    yield from ((event, worker) for event, worker in pairs if event.rank in sizing.limiting[:1])


def _inits(launch: Launch) -> dict[str, float]:
    """Return what distributed init of the target took on each rank, by its name."""
    found: dict[str, float] = {}
    for event, worker in zip(launch.events, launch.workers, strict=True):
        used = event.quantity("mem_usage_bytes") if worker != "draft" and event.pattern.id == _INIT else None
        if used is not None:
            found.setdefault(rank_name(event.rank), used.value)
    return found


def init_of(first: Figures, second: Figures) -> tuple[float | None, float | None]:
    """Return what distributed init took in both launches, on one rank: the one with least memory of both, if both tell it."""
    rank = min((first.avail, first.rank), (second.avail, second.rank))[1]
    if rank in first.inits and rank in second.inits:
        return first.inits[rank], second.inits[rank]
    return first.inits.get(first.rank), second.inits.get(second.rank)


def _taken(launch: Launch, sizing: Sizing) -> dict[str, float]:
    """Return what lines say was taken from the beginning of the weights until the target's pools were sized, by name."""
    due, begin = _due_line(sizing), _begin_line(sizing)
    found: dict[str, float] = {}
    for event, worker in _own_lines(launch, sizing):
        if worker != "draft" and begin <= event.pos.line <= due:
            for item, amount in item_quantities(event):
                if item not in POOLS:
                    found[item] = found.get(item, 0.0) + amount.value
    return found


def counted_draft(launch: Launch, sizing: Sizing) -> float:
    """Return what the draft's weights took before the target's pools were sized; 0 where they came later, or there are none."""
    if sizing.avail is None or not sizing.limiting:
        return 0.0
    taken = [
        used.value
        for event, worker in _own_lines(launch, sizing)
        if worker == "draft"
        and event.pattern.id == "load_weights.end"
        and event.pos.line <= _due_line(sizing)
        and (used := event.quantity("mem_usage_bytes")) is not None
    ]
    return sum(taken)


def _begin_line(sizing: Sizing) -> float:
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    return own.total.pos.line if own is not None and own.total is not None else 0


def _due_line(sizing: Sizing) -> float:
    own = sizing.of(sizing.limiting[0]) if sizing.limiting else None
    lines = [pool.pos.line for pool in own.pools if pool.worker != "draft"] if own else []
    if lines:
        return min(lines)
    return own.avail.pos.line if own is not None and own.avail is not None else float("inf")


def stated_avail(side: Side) -> Stated | None:
    """Return what was free when the pool was due, on the rank with the least, with the line that states it."""
    own = side.sizing.of(side.sizing.limiting[0]) if side.sizing.limiting else None
    return own.avail if own is not None else None


def with_states(figures: tuple[Figures, Figures]) -> tuple[Figures, Figures]:
    """Return figures where a launch that failed before any pool has the states of the other: their number, or their share of the budget."""
    first, second = figures
    return _like(first, second), _like(second, first)


def _like(own: Figures, other: Figures) -> Figures:
    if own.states is not None or not other.states or not other.budget:
        return own
    return replace(own, states=other.states if other.has_fixed_states else other.states / other.budget * own.budget)


def cells_of(figures: Sequence[Figures], *, same_cell: bool) -> list[tuple[float | None, float | None]]:
    """Return what a token is charged and what its own bytes are, for both launches.

    Args:
        same_cell: whether a launch that failed before any pool may be taken to have the other's bytes per token.
    """
    charged = _agreed(figures[0].charged, figures[1].charged, same_cell)
    own = _agreed(figures[0].own, figures[1].own, same_cell)
    return list(zip(charged, own, strict=True))


def _agreed(first: Interval | None, second: Interval | None, same_cell: bool) -> tuple[float | None, float | None]:
    """Return the bytes per token of both launches: one figure where what they print allows one, or only one prints any."""
    known = first or second
    if known is None:
        return None, None
    if first is None or second is None:
        if same_cell:
            return middle(known), middle(known)
        return (middle(first) if first else None), (middle(second) if second else None)
    if first.meets(second):
        both = (max(first.low, second.low) + min(first.high, second.high)) / 2
        return both, both
    return middle(first), middle(second)
