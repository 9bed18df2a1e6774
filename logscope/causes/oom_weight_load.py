"""The device is full before the weights are loaded, or while they are: mem_fraction_static plays no part yet."""

from __future__ import annotations

from msgspec.structs import replace

from logscope.causes._held import after_free_memory, memory_findings
from logscope.causes._oom import Lower, lower_fraction, missing, shortage, stage_of
from logscope.causes._place import has_pools, is_loading, last_free
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, number, on_rank

ID = "oom_weight_load"
_STILL_TO_COME = "what the rest of the draft's weights, its KV cache and the graphs need"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a lack of memory up to the end of the weights."""
    if stage_of(case) != ID:
        return None
    what = "while loading the weights"
    lower = Lower("")
    if not is_loading(case):
        what = "before the weights, when nothing of this server was on the device but its libraries"
        lower = Lower("Free the device: something else holds its memory. See `nvidia-smi`, and CUDA_VISIBLE_DEVICES.")
    elif has_pools(case):
        what = "while loading the draft model's weights, after the KV cache had taken its share"
        lower = lower_fraction(case, missing(case), unknown=_STILL_TO_COME)
        lower = replace(lower, remedy=after_free_memory(case, lower.remedy))
    else:
        lower = Lower(after_free_memory(case, _more_room(case)))
    free = last_free(case)
    return Diagnosis(
        ID, f"out of memory{on_rank(case)} {what}{shortage(case)}", lower.direction, lower.remedy,
        evidence=(free[1],) if free else (), findings=memory_findings(case), fraction=lower.fraction,
    )  # fmt: skip


def _more_room(case: Case) -> str:
    """Say what gives the weights room. How much is missing is in no line: how many devices would do is not known."""
    ranks = number(case, "tp_size")
    more = f"--tp-size {2 * int(ranks)} (now {int(ranks)}) or more" if ranks else "a larger --tp-size"
    smaller = "a quantized checkpoint" if argument(case, "quantization") is None else "a smaller model"
    return f"The weights do not fit: use {more}, or {smaller}. --mem-fraction-static does not matter while weights are loaded."
