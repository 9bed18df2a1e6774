"""Findings about the token capacity: what set it, what it is enough for, and what costs how many tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from logscope.amounts import flag_text, gib_text, tokens_text
from logscope.budget import Interval, exact, requests_that_fit
from logscope.explainer._subject import Subject
from logscope.ledger import LedgerRow
from logscope.model import Finding, Pos
from logscope.server_args import arg_count, arg_number
from logscope.sizing import KV_CACHE, STATES, Sizing, WhatIf, fraction_used, grant_for, worth
from logscope.units import GIB, Quantity, count_text, gib

ORDINARY_SKEW = 0.3 * GIB  # ranks differ by this much for contexts and communicators alone
MUCH_IDLE = 0.1  # of what was free before the weights
TYPICAL_REQUEST = 8192


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the findings about the capacity."""
    yield from _limiting_rank(subject)
    yield from _bound(subject)
    yield from _context(subject)
    yield from _idle(subject)
    yield from _speculation(subject)
    yield from _host_memory(subject)
    for note in subject.sizing.notes:
        yield Finding("not_judged", "note", f"{note[0].upper()}{note[1:]}.")


def _limiting_rank(subject: Subject) -> Iterator[Finding]:
    sizing = subject.sizing
    replica = _replica_of(subject)
    known = [each for each in sizing.ranks if each.avail is not None and (replica is None or each.rank.dp == replica)]
    others = [each.avail for each in known if each.rank not in sizing.limiting and each.avail is not None]
    own = subject.limiting
    if not others or own is None or own.avail is None:
        return
    following = min(others, key=lambda each: each.amount.low)
    apart = following.amount - own.avail.amount
    if apart.low <= 0:
        return
    cost = worth(subject.launch, sizing, exact((apart.low + apart.high) / 2))
    whose = " of its replica" if replica is not None else ""
    price = f": that costs every rank{whose} about {count_text(round(cost.low, -3) or cost.low)} tokens" if cost else ""
    verb = "has" if len(sizing.limiting) == 1 else "have"
    sentence = (
        f"{subject.names(sizing.limiting)} {verb} the least memory for the KV cache, {gib_text(own.avail.amount)} GiB, "
        f"{gib_text(apart)} GiB less than the next{price}. {_why_less(subject)}"
    )
    ordinary = apart.high <= ORDINARY_SKEW
    yield Finding("limiting_rank", "note" if ordinary else "warning", sentence.strip(), (own.avail.pos, following.pos))


def _replica_of(subject: Subject) -> int | None:
    """Return the replica of the limiting rank, where DP is replicas of the model: each sizes its pool by its own ranks alone."""
    values = subject.launch.args.values
    if arg_count(values, "dp_size") < 2 or values.get("enable_dp_attention") is True or not subject.sizing.limiting:
        return None
    return subject.sizing.limiting[0].dp


def _why_less(subject: Subject) -> str:
    """Say in which step the limiting rank fell behind."""
    own = subject.limiting
    totals = [each.total.amount for each in subject.sizing.ranks if each.total is not None]
    if own is None or own.total is None or not totals:
        return ""
    behind = max(totals, key=lambda total: total.low) - own.total.amount
    if behind.low > ORDINARY_SKEW:
        less = gib_text(behind)
        return f"It had {less} GiB less before the weights already: another process on its GPU, or a smaller card."
    if len({each.rank.pp for each in subject.sizing.ranks}) > 1:
        return "It was level before the weights: its pipeline stage holds more of them."
    return "It was level before the weights: its share of the weights is larger (embeddings, replicated modules)."


def _bound(subject: Subject) -> Iterator[Finding]:
    sizing, own = subject.sizing, subject.limiting
    if sizing.bound_by == "max_total_tokens" and sizing.tokens is not None:
        grant = grant_for(subject.launch, sizing, WhatIf(max_total_tokens=1 << 62))
        would = (
            f", which would hold {tokens_text(grant.tokens)}" if grant and grant.tokens and grant.tokens.low > 0 else ""
        )
        sentence = f"max_total_tokens {count_text(sizing.tokens.amount.low)} sets the capacity, not the memory{would}."
        yield Finding("bound_by_max_total_tokens", "note", sentence, (sizing.tokens.pos,))
    states = [pool for pool in own.pools if pool.item in STATES] if own else []
    if sizing.bound_by == "mamba" and own is not None:
        taken = sum((pool.size for pool in states[1:]), states[0].size)
        cached = sum((pool.size for pool in own.pools if pool.item == KV_CACHE), exact(0))
        sentence = f"States of Mamba or linear layers take {gib_text(taken)} GiB{subject.per_rank}, the KV cache {gib_text(cached)}."
        remedy = "A lower --max-mamba-cache-size or --mamba-full-memory-ratio gives the KV cache more."
        yield Finding("bound_by_mamba", "warning", sentence, (states[0].pos,), remedy)


def _context(subject: Subject) -> Iterator[Finding]:
    tokens = subject.sizing.tokens
    said = next((e for e in subject.launch.events if e.quantity("context_len_tokens") is not None), None)
    printed = said.quantity("context_len_tokens") if said else None
    context = printed.value if printed else arg_number(subject.launch.args.values, "context_length")
    if tokens is None or not context or tokens.amount.low <= 0:
        return
    count = int(tokens.amount.low)
    places = (tokens.pos, said.pos) if said and said.pos != tokens.pos else (tokens.pos,)
    if count < context:
        typical = min(TYPICAL_REQUEST, count)
        sentence = (
            f"{count_text(count)} tokens are less than the context length of {count_text(int(context))}: a request of full length is "
            f"refused; of {count_text(typical)} tokens each about {requests_that_fit(count, typical)} fit at once."
        )
        yield Finding(
            "context_exceeds_capacity",
            "warning",
            sentence,
            places,
            f"Set --context-length {count} or less, or give the KV cache more memory.",
        )
        return
    fit, most = requests_that_fit(count, int(context)), _most_running(subject)
    what = "request of the full context length fits" if fit == 1 else "requests of the full context length fit"
    bound = f"; max_running_requests lets {count_text(most)} run" if most is not None and most < fit else ""
    each = " on each replica" if arg_count(subject.launch.args.values, "dp_size") > 1 else ""
    sentence = f"{count_text(fit)} {what} at once{each} ({count_text(int(context))} tokens each){bound}."
    yield Finding("requests_that_fit", "note", sentence, places)


def _most_running(subject: Subject) -> int | None:
    """Return how many requests may run at once, as a line prints it, else as the arguments say."""
    said = [q.value for event in subject.launch.events if (q := event.quantity("max_running_requests")) is not None]
    most = min(said) if said else arg_number(subject.launch.args.values, "max_running_requests")
    return int(most) if most is not None and most > 0 else None


def _idle(subject: Subject) -> Iterator[Finding]:
    sizing, launch = subject.sizing, subject.launch
    last = [each.last for each in sizing.ranks if each.last is not None]
    if launch.outcome.kind != "ready" or sizing.total is None or sizing.tokens is None or not last:
        return
    least = min(last, key=lambda each: each.amount.low)
    if sizing.bound_by != "fraction" or least.amount.low < MUCH_IDLE * sizing.total.amount.low:
        return
    step = exact(sizing.total.amount.low / 100)
    more = worth(launch, sizing, step)
    buys = f" = {tokens_text(more)} tokens" if more else ""
    now = fraction_used(sizing)
    lead = "" if all(each.amount.meets(least.amount) for each in last) else "At least "
    sentence = (
        f"{lead}{gib_text(least.amount)} GiB{subject.per_rank} are still free when the server is ready; what requests take of it is not in "
        f"this log. Each 0.01 of mem_fraction_static (now {flag_text(now or 0)}) is {gib_text(step)} GiB{buys}."
    )
    yield Finding("idle_memory", "note", sentence, (least.pos,))


def _speculation(subject: Subject) -> Iterator[Finding]:
    """Say what the draft takes on the limiting rank, and how much of it the KV cache would have without it."""
    own = subject.limiting
    rank = own.rank if own else (subject.ledger[0].rank if subject.ledger else None)
    rows = [
        row for row in subject.ledger
        if row.rank == rank and row.kind != "unexplained" and row.bytes
        and (row.worker == "draft" or row.item == STATES[1] or "draft" in row.item)
    ]  # fmt: skip
    if not rows:
        return
    total = gib_text(_summed(rows))
    parts = ", ".join(f"{row.item} {gib(row.bytes)}" for row in rows)
    if subject.launch.outcome.kind in ("ready", "cut"):
        sentence = f"Speculation costs {total} GiB{subject.per_rank}{_price(subject, rows)} ({parts})."
    else:
        sentence = f"Speculation had taken {total} GiB{subject.per_rank} when this log ends, and was not all there yet ({parts})."
    yield Finding("speculation_cost", "note", sentence, tuple(dict.fromkeys(row.end for row in rows)))


def _price(subject: Subject, rows: Sequence[LedgerRow]) -> str:
    """Say what of the draft's memory the budget of the KV cache pays for, and what that is in tokens of the target alone.

    What is taken beside the pools (graphs, and to 0.5.13 all of the draft) costs no token at the same fraction.
    """
    sizing, own = subject.sizing, subject.limiting
    if own is None or own.avail is None or sizing.bound_by == "max_total_tokens":
        return ""
    avail = own.avail.pos
    paid = [row for row in rows if _is_paid(row, avail, sizing)]
    if not paid and sizing.notes:
        return ""  # what the draft changes in the pools is not modelled
    if not paid:
        return ", all of it out of what the fraction keeps free: it takes no tokens from the KV cache"
    alone = replace(sizing, cell=replace(sizing.cell, charged=sizing.cell.size)) if sizing.cell else sizing
    fewer = worth(subject.launch, alone, _summed(paid))
    price = f" = {tokens_text(fewer)} tokens" if fewer and fewer.low > 0 else ""
    if len(paid) == len(rows):
        return price
    return f", {gib_text(_summed(paid))} of it out of the KV cache's budget{price}"


def _is_paid(row: LedgerRow, avail: Pos, sizing: Sizing) -> bool:
    """Return whether the budget pays for what a row took: taken before it was sized, or a pool that counts."""
    is_before = row.end.file == avail.file and row.end.line <= avail.line
    is_pool = row.item == STATES[1] or (row.phase == "kv_cache" and sizing.is_draft_paid)
    return is_before or is_pool


def _summed(rows: Sequence[LedgerRow]) -> Interval:
    total = Quantity(sum(row.bytes for row in rows), sum(row.resolution for row in rows))
    return Interval(max(0.0, total.low), max(0.0, total.high))


def _host_memory(subject: Subject) -> Iterator[Finding]:
    lines = [
        (event, size)
        for event in subject.launch.events
        if event.pattern.id in ("memory_pool.host", "memory_pool.host_state")
        and (size := event.quantity("host_size_bytes")) is not None
    ]
    if not lines:
        return
    total = sum(size.value for _, size in lines)
    ranks = len({event.rank for event, _ in lines})
    sentence = (
        f"HiCache takes {total / 1e9:,.1f} GB of host memory in all: {len(lines)} pool{'s' if len(lines) > 1 else ''} "
        f"of {ranks} rank{'s' if ranks > 1 else ''}."
    )
    yield Finding("host_memory_total", "note", sentence, tuple(event.pos for event, _ in lines[:8]))
