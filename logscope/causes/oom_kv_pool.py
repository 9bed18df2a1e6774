"""The device is full while the KV cache and the other pools are taken from it: the fraction is too high for what is really free."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.amounts import gib_text
from logscope.budget import interval_of
from logscope.causes._held import after_free_memory, memory_findings, others_of, unused
from logscope.causes._oom import lower_fraction, missing, shortage, stage_of
from logscope.causes._place import is_before, last_free
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import on_rank
from logscope.model import Finding
from logscope.units import GIB, gib

ID = "oom_kv_pool"
_WORTH_SAYING = GIB


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory between the weights and the end of the pools."""
    if stage_of(case) != ID:
        return None
    lower = lower_fraction(case, missing(case))
    remedy, when = lower.remedy, "while the KV cache was allocated"
    if lower.direction:
        remedy += " Other layers' buffers may have been still to come: it may have to be lower than that."
    remedy = after_free_memory(case, remedy)
    if not _is_shown(case):
        when = "after the weights, where the KV cache is allocated"
        remedy += " No line shows the pools themselves: the fraction matters only if the traceback stands there."
    free = last_free(case)
    sentence = f"out of memory{on_rank(case)} {when}{shortage(case)}"
    evidence = (free[1],) if free else ()
    found = (*memory_findings(case), *_beside_the_pools(case))
    return Diagnosis(ID, sentence, lower.direction, remedy, evidence=evidence, findings=found, fraction=lower.fraction)


def _is_shown(case: Case) -> bool:
    """Return whether any rank speaks of its cache before the failure; no line says that the pools themselves begin."""
    return any(
        event.pattern.phase in ("kv_cache", "memory_pool")
        for event in case.launch.events
        if is_before(event, case.root)
    )


def _beside_the_pools(case: Case) -> Iterator[Finding]:
    """Say how much was taken since the weights beyond what the budget gives the pools: they alone cannot fill the device."""
    asked, free, rest = case.said.quantity("asked_bytes"), case.said.quantity("free_bytes"), case.sizing.rest
    own = case.sizing.of(case.root.rank)
    avail = own.avail if own is not None else case.sizing.avail
    others = others_of(case)
    if asked is None or free is None or rest is None or avail is None or (others and others.is_surely_foreign):
        return
    taken = avail.amount - interval_of(free)
    pools = max(0.0, rest.high - asked.low)  # all of the budget but what was asked for
    beside = taken.low - pools - unused(case)
    if beside > _WORTH_SAYING:
        yield Finding(
            "unexplained_memory", "warning",
            f"{gib_text(taken)} GiB were taken{on_rank(case)} since the weights; {gib(beside)} GiB of that or more are beyond what the "
            "budget gives the pools, and no line says what took them.",
            tuple(dict.fromkeys((avail.pos, case.root.pos))),
            "Find what took it before a lower fraction makes room for it.",
        )  # fmt: skip
