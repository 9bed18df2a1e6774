"""Root causes of failed launches: one module per cause, tried in the order below; the first that applies is the cause.

A module has ``ID`` and ``diagnose(case) -> Diagnosis | None``. What a line alone tells stands in the pattern files (``cause``);
a module adds what the phase, the figures and the other lines tell.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from msgspec.structs import replace

from logscope.causes._case import build_case, failed_at
from logscope.causes._types import Case, Diagnosis, Direction
from logscope.causes._words import NONE_WORKS
from logscope.model import Launch, Pos
from logscope.packs import Packs
from logscope.sizing import Sizing

ORDER = (
    "not_enough_memory",
    "weights_leave_no_memory",
    "hybrid_state_no_memory",
    "oom_weight_load",
    "oom_kv_pool",
    "oom_graph_capture",
    "oom_backend_init",
    "oom_runtime",
    "memory_unbalanced",
    "host_memory",
    "cuda_error",
    "kernel_unsupported",
    "collective_failed",
    "rank_missing",
    "weight_mismatch",
    "weights_missing",
    "weights_io",
    "port_in_use",
    "bad_argument",
    "environment",
    "model_unsupported",
    "watchdog",
    "warmup_failed",
    "capture_failed",
    "stopped",
    "cause_not_in_log",
)
LAST = "python_exception"


def diagnose(launch: Launch, packs: Packs, sizing: Sizing) -> Diagnosis | None:
    """Return the root cause of a launch that failed, None for one that did not."""
    case = build_case(launch, packs, sizing)
    return None if case is None else diagnose_case(case)


def diagnose_case(case: Case) -> Diagnosis:
    """Return the first cause that applies."""
    for name in (*ORDER, LAST):
        judge: Callable[[Case], Diagnosis | None] = import_module(f"{__name__}.{name}").diagnose
        found = judge(case)
        if found is not None:
            return replace(found, evidence=_with_said(case, found.evidence))
    raise AssertionError("the last cause applies to everything")


def _with_said(case: Case, evidence: tuple[Pos, ...]) -> tuple[Pos, ...]:
    """Add the line that was judged where it is another one than the first that says why."""
    is_line = case.said is not case.root and any(case.said.pos == event.pos for event in case.launch.events)
    return evidence if not is_line or case.said.pos in evidence else (case.said.pos, *evidence)


__all__ = [
    "LAST",
    "NONE_WORKS",
    "ORDER",
    "Case",
    "Diagnosis",
    "Direction",
    "build_case",
    "diagnose",
    "diagnose_case",
    "failed_at",
]
