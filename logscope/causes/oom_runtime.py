"""The device is full while requests are computed, those of the warm-up included; or a pool ran out of tokens, slots or states."""

from __future__ import annotations

from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import alternatives, cheaper, lower_fraction, missing_bytes, shortage, stage_of
from logscope.causes._place import last_free
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import because, on_rank

ID = "oom_runtime"
_ACTIVATIONS = ("chunked_prefill_size", "max_prefill_tokens", "max_running_requests")


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory while serving."""
    if case.tells(ID):
        return _pool_ran_out(case)
    if stage_of(case) != ID:
        return None
    lower = lower_fraction(case, missing_bytes(case))
    free = last_free(case)
    when = "while serving" if case.was_ready else "while the first requests were computed"
    choices = cheaper(case, *_ACTIVATIONS)[:2]
    evidence = (free[1],) if free else ()
    sentence = f"out of memory{on_rank(case)} {when}{shortage(case)}"
    return Diagnosis(
        ID, sentence, lower.direction,
        after_free_memory(case, alternatives(case, choices, lower.remedy)),
        evidence=evidence, findings=memory_findings(case), fraction=lower.fraction,
    )  # fmt: skip


def _pool_ran_out(case: Case) -> Diagnosis:
    if case.said.pattern.id == "failure.mamba_slots":
        remedy = "Raise --max-mamba-cache-size, or lower --max-running-requests."
    else:
        choices = cheaper(case, "max_running_requests")
        remedy = f"Set {choices[0]}." if choices else "Lower --max-running-requests."
    return Diagnosis(ID, because(case), None, f"{remedy} The device itself is not full: it is the pool that ran out.")
