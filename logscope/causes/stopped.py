"""Somebody stopped it before it was ready, and the log says who: by hand, or Slurm."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis

ID = "stopped"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a launch that did not fail of itself."""
    if not case.tells(ID):
        return None
    if case.said.pattern.id == "failure.cancelled":
        reason = (case.said.string("reason") or "").lower()
        what = f"Slurm cancelled the job before the server was ready{f': {reason}' if reason else ''}"
        remedy = "Ask for more time (--time)." if reason == "time limit" else ""
        return Diagnosis(ID, what, None, remedy)
    return Diagnosis(ID, "by an interrupt (Ctrl-C), before it was ready")
