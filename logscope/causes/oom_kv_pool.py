"""The device is full while the KV cache and the other pools are taken from it: the fraction is too high for what is really free."""

from __future__ import annotations

from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import lower_fraction, missing_bytes, shortage, stage_of
from logscope.causes._place import last_free
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import on_rank

ID = "oom_kv_pool"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory between the weights and the end of the pools."""
    if stage_of(case) != ID:
        return None
    lower = lower_fraction(case, missing_bytes(case))
    remedy = lower.remedy
    if lower.direction:
        remedy += " Other layers' buffers may have been still to come: it may have to be lower than that."
    remedy = after_free_memory(case, remedy)
    free = last_free(case)
    sentence = f"out of memory{on_rank(case)} while the KV cache was allocated{shortage(case)}"
    evidence = (free[1],) if free else ()
    found = memory_findings(case)
    return Diagnosis(ID, sentence, lower.direction, remedy, evidence=evidence, findings=found, fraction=lower.fraction)
