"""Collect the figures of each rank that the budget depends on: free memory before and after the weights, and the pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.budget import Interval, interval_of
from logscope.model import Event, Launch, Pos, Worker
from logscope.rank import Rank
from logscope.sizing.types import Pool, RankSizing, Stated
from logscope.timeline import item_quantities
from logscope.units import Quantity

KV_CACHE = "KV cache"
STATES = ("Mamba state", "Mamba intermediate state")
POOLS = (KV_CACHE, *STATES, "unified memory pool")  # the items that the budget pays for
DRAFT_COUNTED_SINCE = "0.5.14"
_LATE_PHASES = ("cuda_graph", "warmup", "ready", "serving")  # their free memory is what the pools left

Said = tuple[Event, Worker | None]


def rank_sizings(launch: Launch) -> tuple[RankSizing, ...]:
    """Return the figures of every rank that states any, ranks in order."""
    lines: dict[Rank, list[Said]] = {}
    for event, worker in zip(launch.events, launch.workers, strict=True):
        if event.pattern.is_of_a_rank:
            lines.setdefault(event.rank, []).append((event, worker))
    found = (_rank_sizing(rank, lines[rank]) for rank in sorted(lines))
    return tuple(each for each in found if each.total or each.avail or each.pools)


def _rank_sizing(rank: Rank, lines: Sequence[Said]) -> RankSizing:
    pools = _in_force(tuple(_pools(lines)), lines)
    due = _due(pools, lines)
    before = [said for said in lines if said[0].pos.line < due.line] if due else list(lines)
    avail = _avail(before, has_pools=due is not None)
    after, unexplained = _after(lines, avail, pools)
    stated = [event for event, _ in lines if event.quantity("avail_mem_bytes") is not None]
    return RankSizing(
        rank=rank,
        total=_total(lines),
        avail=avail,
        pools=pools,
        after=after,
        last=_stated(stated[-1]) if stated else None,
        unexplained=unexplained,
    )


def _stated(event: Event, name: str = "avail_mem_bytes") -> Stated:
    amount = event.quantity(name)
    assert amount is not None, "asked for what the line states"
    return Stated(interval_of(amount), event.pos)


def _total(lines: Sequence[Said]) -> Stated | None:
    """Return T: what is free when the target's weights begin to load; else what is left after them and what they took."""
    for event, worker in lines:
        if worker == "draft" or event.pattern.phase != "load_weights" or event.pattern.edge == "point":
            continue
        free, taken = event.quantity("avail_mem_bytes"), event.quantity("mem_usage_bytes")
        if free is not None and event.pattern.edge == "begin":
            return _stated(event)
        if free is not None and taken is not None:
            return Stated(interval_of(free + taken), event.pos, derived=True)
    return None


def _pools(lines: Sequence[Said]) -> Iterator[Pool]:
    for event, worker in lines:
        amounts: dict[str, Quantity] = {}
        for item, amount in item_quantities(event):
            if item in POOLS:
                amounts[item] = amounts[item] + amount if item in amounts else amount
        count = event.quantity("tokens") or event.quantity("max_mamba_cache_size")
        for item, amount in amounts.items():
            label = event.string("label") or ""
            size = interval_of(amount)
            if size.high < 0:
                continue  # told as a contradiction
            size = Interval(max(0.0, size.low), size.high)
            yield Pool(worker, item, label, count.value if count else None, size, event.pos)


def _in_force(pools: tuple[Pool, ...], lines: Sequence[Said]) -> tuple[Pool, ...]:
    """Return the pools that count: lines after graph capture supersede what a worker's lines before it said of the KV cache."""
    late = {event.pos: worker for event, worker in lines if event.pattern.id.startswith("kv_cache.post_capture")}
    resized = {pool.worker for pool in pools if pool.pos in late}
    return tuple(pool for pool in pools if pool.pos in late or pool.item != KV_CACHE or pool.worker not in resized)


def _due(pools: Sequence[Pool], lines: Sequence[Said]) -> Pos | None:
    """Return the line by which the pools have been sized: the first of them, or that they all stand; None where no line shows one."""
    first = min((pool.pos for pool in pools), key=lambda pos: pos.line, default=None)
    late = next((event.pos for event, _ in lines if event.pattern.id.endswith("post_capture")), None)
    stand = next(
        (event.pos for event, worker in lines if event.pattern.id == "memory_pool.end" and worker != "draft"), None
    )
    return late or min((pos for pos in (first, stand) if pos is not None), key=lambda pos: pos.line, default=None)


def _avail(before: Sequence[Said], *, has_pools: bool) -> Stated | None:
    """Return A: what the rank states last before its pools, less what lines in between say was taken."""
    stated: Event | None = None
    taken: list[Quantity] = []
    for event, worker in before:
        if not has_pools and worker == "draft" and event.pattern.phase != "load_weights":
            continue
        if not has_pools and (event.pattern.phase in _LATE_PHASES or event.pattern.id == "memory_pool.end"):
            continue
        if event.quantity("avail_mem_bytes") is not None and event.pattern.edge != "begin":
            stated, taken = event, []
        else:
            taken.extend(amount for item, amount in item_quantities(event) if item not in POOLS)
    if stated is None:
        return None
    amount = _stated(stated).amount
    for each in taken:
        amount = amount - interval_of(each)
    return Stated(amount, stated.pos, derived=bool(taken))


def _after(lines: Sequence[Said], avail: Stated | None, pools: Sequence[Pool]) -> tuple[Stated | None, float | None]:
    """Return what is free when the target's pools stand, and how much of the memory in between no line explains, at most."""
    if not pools:
        return None, None
    targets = [pool for pool in pools if pool.worker != "draft"] or pools
    stands = max(pool.pos.line for pool in targets)
    after = next((e for e, _ in lines if e.pos.line >= stands and e.quantity("avail_mem_bytes") is not None), None)
    if after is None or avail is None:
        return None, None
    stated = _stated(after)
    taken = Interval(0, 0)
    for event, _ in lines:
        if avail.pos.line < event.pos.line <= after.pos.line:
            for item, amount in item_quantities(event):
                if item in POOLS:
                    taken = taken + interval_of(amount)
    unexplained = avail.amount - stated.amount - taken
    return stated, max(0.0, unexplained.high)
