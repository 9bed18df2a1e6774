"""Put the figures of a launch together: A, T, the fraction, the cell size, the capacity, and what set it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from logscope.budget import Interval, NotModelled, by_release, exact, least, measured_cell_size, rest, union
from logscope.model import Event, Launch
from logscope.rank import Rank
from logscope.server_args import arg_count, arg_number
from logscope.sizing.contradictions import contradictions_of
from logscope.sizing.figures import DRAFT_COUNTED_SINCE, KV_CACHE, STATES, rank_sizings
from logscope.sizing.fraction import Clues, fraction_of, profile_events, value_used
from logscope.sizing.modelled import not_modelled
from logscope.sizing.profile import check_profile
from logscope.sizing.types import BoundBy, Cell, Fraction, Pool, RankSizing, Sizing, Stated
from logscope.timeline import token_capacity


class _Paid(Struct, frozen=True):
    """The pools that the budget pays for, of one rank."""

    pools: tuple[Pool, ...]
    page_size: int

    def rest(self) -> Interval:
        """Return the budget that gives these pools: their tokens, less padding, and up to a page (for states two states) more."""
        total = exact(0)
        for pool in self.pools:
            if pool.tokens is None or pool.tokens <= 0:
                total = total + pool.size
                continue
            spare = 2 if pool.item in STATES else self.page_size
            count = pool.tokens
            low = pool.size.low * count / (count + spare)
            total = total + Interval(
                low, pool.size.high * (count + spare) / (count + (0 if pool.item in STATES else 1))
            )
        return total


def size_up(launch: Launch) -> Sizing:
    """Return the figures of a launch."""
    ranks, (page_size, page_known) = rank_sizings(launch), page_size_of(launch)
    profiles = [(event, check_profile(event, launch)) for event in profile_events(launch.events)]
    sound = [event for event, checked in profiles if not checked.faults]
    is_device = str(launch.args.values.get("device", "cuda")) not in ("cpu", "mps")
    notes = not_modelled(launch)
    contradictions = contradictions_of(launch, ranks, add_up=not notes) if is_device else ()
    avail, total = _least_of(ranks, sound) if not contradictions else (None, None)
    limiting = _limiting(ranks) if not contradictions else ()
    own = next((each for each in ranks if each.rank in limiting[:1]), ranks[0] if ranks else None)
    counted = _draft_counts(launch, ranks)
    tokens = tokens_of(launch)
    cap = _bound_by_cap(launch, tokens, page_size)
    paid = _paid_for(own, page_size, counted=counted) if not notes else None
    certain = is_device and _all_ranks_seen(launch) and _is_modern(launch)
    clues = Clues(avail, total, paid, cap or _may_be_capped(launch, tokens), own.unexplained if own else None, certain)
    fraction = fraction_of(launch, clues)
    is_pool_wrong = any(each.kind in ("pool", "negative") for each in contradictions)
    cell = _cell(own, launch, counted, page_size, sound) if not is_pool_wrong else None
    return Sizing(
        ranks=ranks,
        total=total,
        avail=avail,
        limiting=limiting,
        fraction=fraction,
        rest=_rest(launch, avail, total, fraction),
        paid=paid,
        tokens=tokens,
        size=_size(own),
        cell=cell,
        page_size=page_size,
        page_known=page_known,
        bound_by=_bound_by(launch, own, fraction, cap, tokens),
        profiles=tuple(checked for _, checked in profiles),
        notes=tuple([*notes, _SHARED] if not is_device and ranks else notes),
        contradictions=contradictions,
        is_draft_paid=counted,
    )  # fmt: skip


def _least_of(ranks: Sequence[RankSizing], profiles: Sequence[Event]) -> tuple[Stated | None, Stated | None]:
    """Return A and T, the least over the ranks; from DEBUG lines where they tell."""
    avail, total = _least([each.avail for each in ranks]), _least([each.total for each in ranks])
    return _profiled(profiles, "profile_avail_bytes", avail), _profiled(profiles, "total_bytes", total)


_SHARED = "the device shares memory with the host, where other processes take and give at any time: these figures are estimates"


def _least(stated: Sequence[Stated | None]) -> Stated | None:
    known = [each for each in stated if each is not None]
    if not known:
        return None
    lowest = min(known, key=lambda each: each.amount.low)
    return Stated(least([each.amount for each in known]), lowest.pos, lowest.derived)


def _profiled(profiles: Sequence[Event], name: str, otherwise: Stated | None) -> Stated | None:
    """Return a figure of a DEBUG line, which is the budget's own and has more digits, where one is there."""
    for event in profiles:
        quantity = event.quantity(name)
        if quantity is not None:
            return Stated(Interval(quantity.low, quantity.high), event.pos)
    return otherwise


def _limiting(ranks: Sequence[RankSizing]) -> tuple[Rank, ...]:
    known = [(each.avail.amount.low, each.rank) for each in ranks if each.avail is not None]
    lowest = min((low for low, _ in known), default=None)
    return tuple(rank for low, rank in known if low == lowest)


def _draft_counts(launch: Launch, ranks: Sequence[RankSizing]) -> bool:
    """Return whether the budget pays for the draft's pools: told by the release, else by the draft being loaded first."""
    if not launch.releases.overlaps(None, DRAFT_COUNTED_SINCE):
        return True
    if not launch.releases.overlaps(DRAFT_COUNTED_SINCE, None):
        return False
    pairs = list(zip(launch.events, launch.workers, strict=True))
    loaded = [e.pos.line for e, worker in pairs if worker == "draft" and e.pattern.id == "load_weights.end"]
    pools = [pool.pos.line for each in ranks for pool in each.pools if pool.worker != "draft"]
    return bool(loaded and pools) and min(loaded) < min(pools)


def _is_modern(launch: Launch) -> bool:
    """Return whether the fraction in the arguments is surely the one in force: to 0.5.4 AITER and vision models reduce it unseen."""
    return not launch.releases.overlaps(None, "0.5.4.post1") or launch.args.values.get("attention_backend") != "aiter"


def _paid_for(own: RankSizing | None, page_size: int, *, counted: bool) -> Interval | None:
    """Return the budget that the pools as allocated need, those of the draft only where they count."""
    pools = tuple(pool for pool in own.pools if pool.worker != "draft" or counted) if own else ()
    return _Paid(pools, page_size).rest() if pools else None


def page_size_of(launch: Launch) -> tuple[int, bool]:
    """Return the page size in force, and whether the log tells it; 1 where it does not."""
    for event in reversed(launch.events):
        size = event.quantity("page_size_tokens")
        if size is not None and event.pattern.id == "server_args.adjusted_page_size":
            return max(1, int(size.value)), True
    size_arg = arg_number(launch.args.values, "page_size")
    return (max(1, int(size_arg)), True) if size_arg else (1, False)


def tokens_of(launch: Launch) -> Stated | None:
    """Return the token capacity of one model replica, and the line that states it."""
    found = token_capacity(launch)
    return Stated(exact(found[0].value), found[1]) if found else None


def _size(own: RankSizing | None) -> Interval | None:
    sizes = [pool.size for pool in own.pools if pool.item == KV_CACHE and pool.worker != "draft"] if own else []
    return sum(sizes[1:], sizes[0]) if sizes else None


def _cell(
    own: RankSizing | None, launch: Launch, counted: bool, page_size: int, profiles: Sequence[Event]
) -> Cell | None:
    """Return the cell size by the DEBUG line, else by the pool lines; None where there is neither."""
    for event in profiles:
        printed = event.quantity("cell_size_bytes")
        if printed is not None and printed.value > 0:
            return Cell(exact(printed.value), exact(printed.value), "DEBUG line")
    pools = [pool for pool in own.pools if pool.item == KV_CACHE and (pool.tokens or 0) > 0] if own else []
    target = [pool for pool in pools if pool.worker != "draft"]
    cells = [_measured(pool, page_size, launch) for pool in pools]
    if not target or any(cell.low <= 0 for cell in cells):
        return None
    count = max(pool.tokens or 0 for pool in target)  # of the full-attention pool, which the server reports
    charged = exact(0)
    for pool, cell in zip(pools, cells, strict=True):
        if pool.worker != "draft" or counted:
            share = (pool.tokens or 0) / count
            charged = charged + Interval(cell.low * share, cell.high * share)
    size = cells[pools.index(target[0])] if len(target) == 1 else charged
    return Cell(size, charged, "pool line")


def _measured(pool: Pool, page_size: int, launch: Launch) -> Interval:
    """Return the cell size by a pool line; what is padding depends on the release."""

    def measured(release: str) -> Interval | NotModelled:
        return measured_cell_size(pool.size, pool.tokens or 0, page_size, release)

    found = union(by_release(measured, launch.releases.since, launch.releases.until))
    assert isinstance(found, Interval), "padding is known for every release"
    return found


def _bound_by_cap(launch: Launch, tokens: Stated | None, page_size: int) -> bool:
    """Return whether max_total_tokens set the capacity, and not the budget."""
    typed = launch.command.flags if launch.command else {}
    cap = arg_number(launch.args.values, "max_total_tokens") or arg_number(typed, "max_total_tokens")
    profiled = any(event.pattern.id == "kv_cache.profiled_limit" for event in launch.events)
    return bool(cap and tokens and not profiled and tokens.amount.low == cap // page_size * page_size)


def _may_be_capped(launch: Launch, tokens: Stated | None) -> bool:
    """Return whether a cap that the log does not show may have set the capacity: it has no arguments, and the number is round."""
    is_told = bool(launch.args.values) or launch.command is not None
    return not is_told and tokens is not None and tokens.amount.low % 1000 == 0


def _rest(launch: Launch, avail: Stated | None, total: Stated | None, fraction: Fraction) -> Interval | None:
    """Return what the fraction that ran leaves for the pools: where the pools refute what is in force, they tell it."""
    ran = value_used(fraction)
    if avail is None or total is None or fraction.in_force is None or ran is None:
        return None
    kept = next(
        (
            q
            for e in launch.events
            if (q := e.quantity("reserve_bytes")) and e.pattern.id == "kv_cache.multimodal_reserve"
        ),
        None,
    )
    is_refuted = ran != fraction.in_force  # what the pools imply has such a reserve in it already
    multimodal = Interval(kept.low, kept.high) if kept and not is_refuted else exact(0)
    return rest(avail.amount, total.amount, exact(ran), multimodal=multimodal)


def _bound_by(
    launch: Launch, own: RankSizing | None, fraction: Fraction, cap: bool, tokens: Stated | None
) -> BoundBy | None:
    if cap:
        return "max_total_tokens"
    pools = own.pools if own else ()
    target = [pool for pool in pools if pool.item == KV_CACHE and pool.worker != "draft"]
    cached = sum(pool.size.low for pool in target)
    if sum(pool.size.low for pool in pools if pool.item in STATES) > cached > 0:
        return "mamba"
    if cached and sum(p.size.low for p in pools if p.item == KV_CACHE and p.worker == "draft") > cached:
        return "draft"
    windows = [pool.size.low for pool in target if "swa" in pool.label.lower()]
    if len(target) > 1 and sum(windows) > cached / 2:
        return "swa"
    if not target or tokens is None:
        return None
    return "fraction" if fraction.verdict == "meets" or (not launch.args.values and fraction.implied) else None


def _all_ranks_seen(launch: Launch) -> bool:
    values = launch.args.values
    return len(launch.ranks) >= arg_count(values, "tp_size") * arg_count(values, "pp_size")
