"""The values that a rule looks at, with whose they are and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from logscope.budget import Interval
from logscope.checker.types import Select, Value
from logscope.checker.vocabulary import LAUNCH_FIELDS, PHASE_FIELDS
from logscope.explainer import Explanation
from logscope.frames import arg_text
from logscope.ledger import ledger_of
from logscope.model import Launch, Pos
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.sizing.figures import KV_CACHE
from logscope.timeline import phase_rows
from logscope.units import Quantity
from logscope.words import elapsed_until, rank_label


def select_values(select: Select, launch: Launch, packs: Packs, explanation: Explanation) -> list[Value]:
    """Return what a selection finds in a launch, in file order; nothing where the log does not have it."""
    if select.source == "event":
        return list(_of_events(select, launch))
    if select.source == "phase":
        return list(_of_phases(select, launch))
    if select.source == "ledger":
        return list(_of_ledger(select, launch, packs))
    if select.source == "arg":
        return list(_of_args(select, launch))
    return list(_of_launch(select, launch, explanation))


def _is_wanted(select: Select, rank: Rank, worker: str | None) -> bool:
    return (select.rank is None or rank.answers_to(select.rank)) and (select.worker is None or select.worker == worker)


def _who(rank: Rank, launch: Launch) -> str:
    """Name a rank: by its tag, with its node where two nodes have the same tag; empty where a launch has one and prints none."""
    return rank_label(rank, launch.ranks) if rank.tag else ""


def _exact(number: Quantity | None, dimension: str) -> Quantity | None:
    """Return a number; counts and tokens that are printed without decimals are not rounded."""
    is_whole = number is not None and number.resolution == 1 and dimension in ("", "tokens")
    return Quantity(number.value, 0) if number is not None and is_whole else number


def _of_events(select: Select, launch: Launch) -> Iterator[Value]:
    for event, worker in zip(launch.events, launch.workers, strict=True):
        if event.pattern.id != select.name or not _is_wanted(select, event.rank, worker):
            continue
        if select.role is not None and select.role not in (event.string("kind"), event.string("label")):
            continue
        if not select.field:
            yield Value(_who(event.rank, launch), None, event.pattern.id, "", event.pos)
            continue
        number, text = event.quantity(select.field), event.string(select.field)
        if number is not None or text is not None:
            dimension = _dimension(select.field)
            yield Value(_who(event.rank, launch), _exact(number, dimension), text or "", dimension, event.pos)


def _dimension(field: str) -> str:
    for suffix, dimension in (("bytes", "bytes"), ("_s", "s"), ("tokens", "tokens")):
        if field.endswith(suffix):
            return dimension
    return ""


def _of_phases(select: Select, launch: Launch) -> Iterator[Value]:
    for row in phase_rows(launch):
        if row.phase != select.name or not _is_wanted(select, row.rank, row.worker):
            continue
        if select.role is not None and select.role != row.kind:
            continue
        amount = {"duration": row.duration, "used": row.used, "before": row.before, "after": row.after}[select.field]
        last = row.end or row.begin
        if amount is not None:
            yield Value(_who(row.rank, launch), amount, "", PHASE_FIELDS[select.field], last.pos if last else None)


def _of_ledger(select: Select, launch: Launch, packs: Packs) -> Iterator[Value]:
    """Yield what an item takes on each rank, all its rows together."""
    taken: dict[Rank, tuple[Quantity, Pos]] = {}
    for row in ledger_of(launch, packs):
        if fnmatchcase(row.item, select.name) and _is_wanted(select, row.rank, row.worker):
            amount, pos = taken.get(row.rank, (Quantity(0, 0), row.end))
            taken[row.rank] = (amount + Quantity(row.bytes, row.resolution), pos)
    for rank, (amount, pos) in taken.items():
        yield Value(_who(rank, launch), amount, "", "bytes", pos)


def _of_args(select: Select, launch: Launch) -> Iterator[Value]:
    place = next((event.pos for event in launch.events if event.pattern.id == "server_args.printed"), None)
    values = launch.args.values or (launch.command.flags if launch.command else {})
    if select.name in values:
        value = values[select.name]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        number = Quantity(float(str(value)), 0.0) if is_number else None
        yield Value("", number, arg_text(value), "", place)


def _of_launch(select: Select, launch: Launch, explanation: Explanation) -> Iterator[Value]:
    name, dimension = select.name, LAUNCH_FIELDS[select.name]
    where = launch.outcome.evidence[0] if launch.outcome.evidence else None
    texts = {
        "outcome": launch.outcome.kind,
        "ended": launch.ended.kind if launch.ended else "",
        "cause": explanation.diagnosis.cause if explanation.diagnosis else "",
    }
    if name in texts:
        if not _is_told(name, launch, texts[name]):
            return
        yield Value("", None, texts[name], dimension, where)
        return
    if name == "left_free":
        if launch.outcome.kind != "ready":  # what is free while it comes up is not left
            return
        for each in explanation.sizing.ranks:
            if each.last is not None:
                yield Value(_who(each.rank, launch), _quantity(each.last.amount), "", dimension, each.last.pos)
        return
    amount, pos = _figure(name, launch, explanation, where)
    if amount is not None:
        yield Value("", _exact(amount, dimension), "", dimension, pos)
    if amount is not None and name == "tokens":
        yield from _smaller_pools(amount, launch, explanation)


def _smaller_pools(stated: Quantity, launch: Launch, explanation: Explanation) -> Iterator[Value]:
    """Yield the pools of ranks that hold less than the capacity that the server states: of a rank, its largest one counts."""
    for each in explanation.sizing.ranks:
        own = [pool for pool in each.pools if pool.item == KV_CACHE and pool.worker != "draft" and pool.tokens]
        largest = max(own, key=lambda pool: pool.tokens or 0, default=None)
        if largest is not None and largest.tokens is not None and largest.tokens < stated.low:
            yield Value(_who(each.rank, launch), Quantity(largest.tokens, 0), "", "tokens", largest.pos)


def _is_told(name: str, launch: Launch, text: str) -> bool:
    """Return whether a launch tells a text: how it ended once it was ready, and for what reason it failed once it is over."""
    if name == "ended":
        return bool(text) or launch.outcome.kind == "ready"
    return name != "cause" or bool(text) or launch.outcome.kind in ("ready", "failed")


def _figure(
    name: str, launch: Launch, explanation: Explanation, where: Pos | None
) -> tuple[Quantity | None, Pos | None]:
    """Return a figure of the whole launch, and the line that states it."""
    sizing = explanation.sizing
    if name == "tokens":
        return (_quantity(sizing.tokens.amount), sizing.tokens.pos) if sizing.tokens else (None, None)
    if name == "kv_size":
        return (_quantity(sizing.size) if sizing.size else None), where
    if name == "budget":
        return (_quantity(sizing.rest) if sizing.rest else None), sizing.avail.pos if sizing.avail else where
    if name == "ranks":
        return Quantity(len(launch.ranks), 0), where
    if name == "drift":
        return Quantity(len(launch.drift), 0), launch.drift[0].pos if launch.drift else where
    seconds = elapsed_until(launch, where) if where is not None and launch.has_start else None
    return (Quantity(seconds, 2.0), where) if seconds is not None else (None, None)


def _quantity(amount: Interval) -> Quantity:
    return Quantity((amount.low + amount.high) / 2, amount.high - amount.low)
