"""The device is full while graphs are captured: what the pools left is too little for them."""

from __future__ import annotations

from msgspec.structs import replace

from logscope.budget import exact
from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import Lower, lower_fraction, missing, pinned, shortage, stage_of
from logscope.causes._place import Progress, graphs_named, last_free, progress_of
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import is_before, is_from, number, on_rank, uncapped
from logscope.units import gib

ID = "oom_graph_capture"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory during a capture."""
    if stage_of(case) != ID:
        return None
    progress, free = progress_of(case), last_free(case)
    lower = _lower(case, progress)
    remedy = lower.remedy
    fewer = _fewer_graphs(case, progress)
    if fewer:
        is_other = remedy.startswith("Lower")
        remedy = f"{fewer} Or, at the cost of KV cache, {uncapped(remedy)}" if is_other else f"{fewer} {remedy}"
    remedy = after_free_memory(case, remedy)
    evidence = (*((free[1],) if free else ()), *((progress.pos,) if progress else ()))
    sentence = f"out of memory{on_rank(case)} while capturing {graphs_named(case)}{_at(progress)}{shortage(case)}"
    found = memory_findings(case)
    return Diagnosis(ID, sentence, lower.direction, remedy, evidence=evidence, findings=found, fraction=lower.fraction)


def _lower(case: Case, progress: Progress | None) -> Lower:
    """Return what to lower; to a value only where the sizes that were captured tell what the others need."""
    lacked = missing(case)
    if progress is not None and progress.left == 0:
        return lower_fraction(case, lacked)
    if progress is not None and progress.is_measured:
        lower = lower_fraction(case, lacked + exact(progress.each_bytes * progress.left))
        if lower.is_possible:
            count = f"{progress.left} size{'s' if progress.left > 1 else ''}"
            basis = f"An estimate: {gib(progress.each_bytes)} GiB for each of the {count} still to come, as the latest took."
            return replace(lower, remedy=f"{lower.remedy} {basis}")
    return lower_fraction(case, lacked, unknown="what the other sizes need")


def _at(progress: Progress | None) -> str:
    if progress is None:
        return ""
    what = f"{progress.size} tokens" if progress.in_tokens else f"batch size {progress.size}"
    return f" for {what} ({progress.done} of {progress.total} sizes done)"


def _fewer_graphs(case: Case, progress: Progress | None) -> str:
    """Say which flag takes the largest sizes away; captures begin with them. Nothing where that is all there is to capture."""
    if is_before(case, "0.3.5"):
        return ""  # no such flag yet
    flag, name = _flag(case, progress)
    now = number(case, name)
    now = now or (max(progress.sizes) if progress is not None and progress.sizes else None)
    if progress is None or not progress.is_measured:
        return "" if now == 1 else f"Lower --{flag}{f' (now {now:g})' if now else ''}{pinned(case)}."
    largest = _largest_that_fits(progress)
    if largest is None or (now is not None and largest >= now):
        return ""
    return f"Set --{flag} {largest} (as many sizes as were captured, none larger){pinned(case)}."


def _flag(case: Case, progress: Progress | None) -> tuple[str, str]:
    """Return the flag and the argument that limit what is captured, as the release spells them."""
    values = case.launch.args.values
    is_new = "cuda_graph_max_bs_decode" in values or ("cuda_graph_max_bs" not in values and is_from(case, "0.5.14"))
    if "prefill" in graphs_named(case) and is_new:
        name = "cuda_graph_max_bs_prefill"
    elif progress is not None and progress.in_tokens and not is_new:
        name = "piecewise_cuda_graph_max_tokens"
    else:
        name = "cuda_graph_max_bs_decode" if is_new else "cuda_graph_max_bs"
    return name.replace("_", "-"), name


def _largest_that_fits(progress: Progress) -> int | None:
    """Return the largest size to ask for: larger ones take no less, so that as many of the smallest fit as were captured."""
    return progress.sizes[progress.done - 1] if len(progress.sizes) > progress.done > 0 else None
