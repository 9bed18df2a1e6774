"""Lines that cannot all be true of one launch: what they say of memory is no ground for a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.budget import Interval, exact, interval_of
from logscope.model import Launch
from logscope.sizing.figures import POOLS
from logscope.sizing.types import Contradiction, RankSizing
from logscope.timeline import item_quantities, phase_rows
from logscope.units import GIB, count_text, gib

# between the two looks at free memory that a line and its neighbour print, another process may take or give
_DRIFT = GIB // 2


def contradictions_of(launch: Launch, ranks: Sequence[RankSizing], *, add_up: bool) -> tuple[Contradiction, ...]:
    """Return where lines of a rank contradict each other; one of a kind, that of the first rank.

    ``add_up``: whether the pools' lines tell of separate memory, as they do where the model's pools are modelled.
    Not for memory that other processes take and give at any time (CPU): there a contradiction is no surprise.
    """
    found = [*_negative(launch), *_loads(launch), *(each for rank in ranks for each in _of_rank(rank, add_up=add_up))]
    return tuple({each.kind: each for each in reversed(found)}.values())[::-1]


def _negative(launch: Launch) -> Iterator[Contradiction]:
    """Yield pools of less than nothing."""
    for event in launch.events:
        for item, amount in item_quantities(event):
            if item in POOLS and amount.high < 0:
                yield Contradiction("negative", f"a {item} of {gib(amount.value)} GiB cannot be", (event.pos,))
        tokens = event.quantity("tokens")
        if event.pattern.phase == "kv_cache" and tokens is not None and tokens.value < 0:
            yield Contradiction("negative", f"a pool of {count_text(tokens.value)} tokens cannot be", (event.pos,))


def _loads(launch: Launch) -> Iterator[Contradiction]:
    """Yield weights that took another amount than lies between free memory before and after them."""
    for row in phase_rows(launch):
        if row.phase != "load_weights" or row.begin is None or row.end is None:
            continue
        before, after, used = (
            row.begin.quantity("avail_mem_bytes"),
            row.end.quantity("avail_mem_bytes"),
            row.end.quantity("mem_usage_bytes"),
        )
        if before is None or after is None or used is None:
            continue
        apart = interval_of(before) - interval_of(after) - interval_of(used)
        if apart.low > _DRIFT or apart.high < -_DRIFT:
            yield Contradiction(
                "load",
                f"{gib(before.value)} GiB free before the weights and {gib(after.value)} after them are not the "
                f"{gib(used.value)} GiB that they are said to take",
                (row.begin.pos, row.end.pos),
            )


def _of_rank(rank: RankSizing, *, add_up: bool) -> Iterator[Contradiction]:
    total, avail = rank.total, rank.avail
    for free in (total, avail):  # of no other line: what no figure rests on makes none wrong
        if free is not None and free.amount.high < 0:
            yield Contradiction("negative", f"free memory of {_printed(free.amount)} GiB cannot be", (free.pos,))
    if total is not None and avail is not None and avail.amount.low > total.amount.high:
        yield Contradiction(
            "rise",
            f"free memory rises while the weights load, from {_printed(total.amount)} GiB to {_printed(avail.amount)}",
            (total.pos, avail.pos),
        )
    if avail is None or not add_up:
        return
    pools = [pool for pool in rank.pools if pool.worker != "draft" and pool.pos.line > avail.pos.line]
    taken = sum((pool.size for pool in pools), start=exact(0.0))
    if pools and taken.low > avail.amount.high + _DRIFT:
        yield Contradiction(
            "pool",
            f"pools of {_printed(taken)} GiB do not fit into the {_printed(avail.amount)} GiB that are free before them",
            (pools[0].pos, avail.pos),
        )


def _printed(amount: Interval) -> str:
    """Return the number as the log has it: the middle of what it may be."""
    return gib((amount.low + amount.high) / 2)
