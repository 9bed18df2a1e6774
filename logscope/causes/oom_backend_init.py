"""The device is full after the pools, before graphs are captured: attention backends, workspaces and the like take what is left."""

from __future__ import annotations

from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import lower_fraction, missing, shortage, stage_of
from logscope.causes._place import last_free, own_events
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, on_rank

ID = "oom_backend_init"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory between the pools and the graphs."""
    if stage_of(case) != ID:
        return None
    lower = lower_fraction(case, missing(case))
    remedy = lower.remedy
    if lower.fraction is not None and argument(case, "disable_cuda_graph") is not True:
        remedy += " The graphs were still to come: it may have to be lower than that."
    free = last_free(case)
    return Diagnosis(
        ID, f"out of memory{on_rank(case)} after the pools, while {_what(case)} set up{shortage(case)}", lower.direction,
        after_free_memory(case, remedy),
        evidence=(free[1],) if free else (), findings=memory_findings(case), fraction=lower.fraction,
    )  # fmt: skip


def _what(case: Case) -> str:
    has_draft = any(worker == "draft" and event.pattern.phase == "load_weights" for event, worker in own_events(case))
    return "the draft model was" if has_draft else "the backends were"
