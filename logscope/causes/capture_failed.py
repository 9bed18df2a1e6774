"""A graph capture has failed, for another reason than memory that no other cause knows."""

from __future__ import annotations

from logscope.causes._place import beside_capture, capture_banner, graphs_named, hint_of_capture, is_capturing
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import is_from, on_rank, quoted

ID = "capture_failed"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: what failed the capture, and how much was free when it began."""
    own = case.said.pattern.cause in (None, ID)
    is_failure = (case.said.pattern.ends or "").startswith("failed") and case.said.pattern.blame != "consequence"
    if not own or not is_failure or case.was_ready or case.is_out_of_device_memory or not is_capturing(case):
        return None
    if case.root.pattern.blame == "banner" and case.root is not capture_banner(case):
        return None
    message = case.said.string("message") if case.said.pattern.id == "failure.capture_failed" else None
    free, evidence = beside_capture(case)
    sentence = f"graph capture failed{on_rank(case)}: {(message or quoted(case)).rstrip('. ')}{free}"
    return Diagnosis(ID, sentence, None, _remedy(case), evidence=evidence, findings=hint_of_capture(case))


def _remedy(case: Case) -> str:
    kind = graphs_named(case)
    if is_from(case, "0.5.14"):
        flag = f"--cuda-graph-backend-{'prefill' if 'prefill' in kind else 'decode'}=disabled"
    elif "piecewise" in kind and is_from(case, "0.5.10"):
        flag = "--disable-piecewise-cuda-graph"
    else:
        flag = "--disable-cuda-graph"
    return f"Start once with {flag}: if it still fails, it is not the capture but the kernel that the traceback names."
