"""The device is full while requests are computed, those of the warm-up included; or a pool ran out of tokens, slots or states."""

from __future__ import annotations

from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import alternatives, cheaper, lower_fraction, missing, pinned, shortage, stage_of
from logscope.causes._place import last_free
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import because, on_rank, uncapped

ID = "oom_runtime"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory while serving."""
    if case.tells(ID):
        return _pool_ran_out(case)
    if stage_of(case) != ID:
        return None
    lower = lower_fraction(case, missing(case))
    free = last_free(case)
    when = "while serving" if case.was_ready else "while the first requests were computed"
    evidence = (free[1],) if free else ()
    sentence = f"out of memory{on_rank(case)} {when}{shortage(case)}"
    return Diagnosis(
        ID, sentence, lower.direction,
        after_free_memory(case, _smaller_batches(case, lower.remedy)),
        evidence=evidence, findings=memory_findings(case), fraction=lower.fraction,
    )  # fmt: skip


def _smaller_batches(case: Case, remedy: str) -> str:
    """Say first what makes batches smaller. Of which kind the batch was, only the traceback tells, once it serves."""
    prompts = cheaper(case, "chunked_prefill_size", "max_prefill_tokens")
    decoding = cheaper(case, "max_running_requests")
    if not case.was_ready or not prompts:
        return alternatives(case, [*prompts, *decoding][:2], remedy)
    fewer = decoding[0] if decoding else "a lower --max-running-requests"
    first = (
        f"Try first what takes nothing from the KV cache: {' or '.join(prompts)} if it was a batch of prompts (forward_extend in "
        f"the traceback), {fewer} if it was decoding (forward_decode){pinned(case)}."
    )
    return f"{first} Or {uncapped(remedy)}" if remedy.startswith("Lower") else f"{first} {remedy}"


def _pool_ran_out(case: Case) -> Diagnosis:
    if case.said.pattern.id == "failure.mamba_slots":
        remedy = "Raise --max-mamba-cache-size, or lower --max-running-requests."
    else:
        choices = cheaper(case, "max_running_requests")
        remedy = f"Set {choices[0]}." if choices else "Lower --max-running-requests."
    return Diagnosis(ID, because(case), None, f"{remedy} The device itself is not full: it is the pool that ran out.")
