"""One device has much less free memory than another before the weights; the ranks that have enough say so, the short one does not."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import is_before, is_from, listed
from logscope.model import Event
from logscope.units import gib

ID = "memory_unbalanced"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: how far apart the devices are, and which rank's is the short one."""
    if not case.tells(ID):
        return None
    said = [event for event in case.launch.events if event.pattern.id == case.said.pattern.id]
    sentence = f"the free memory of the devices is unbalanced{_gap(case)}"
    complainers = sorted({event.rank for event in said if event.rank.tag})
    silent = [rank for rank in case.launch.ranks if rank.tag and rank not in complainers]
    if complainers and len(silent) == 1:
        sentence += f"; {silent[0].label}, which says nothing of it, has the short one"
    elif complainers and silent:
        sentence += f"; the short one is among {listed(rank.label for rank in silent)}, which did not complain"
    evidence = tuple(event.pos for event in said if event.pos != case.root.pos)
    return Diagnosis(ID, sentence, None, _remedy(case), evidence=evidence)


def _poorest(event: Event) -> float | None:
    for name in ("min_per_gpu_memory_bytes", "pre_model_load_memory_bytes"):
        amount = event.quantity(name)
        if amount is not None:
            return amount.value
    return None


def _gap(case: Case) -> str:
    poorest, local = _poorest(case.said), case.said.quantity("local_gpu_memory_bytes")
    if poorest is None or local is None:
        return ""
    own = f"{case.root.rank.label} has" if case.root.rank.tag else "another has"
    gap = gib(local.value - poorest)
    return f": one has {gib(poorest)} GiB free, {own} {gib(local.value)} GiB, {gap} GiB more"


def _remedy(case: Case) -> str:
    remedy = "Look with `nvidia-smi` for another process on the device with the least, or choose others with CUDA_VISIBLE_DEVICES."
    if is_from(case, "0.5.7"):
        off = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0"
    elif is_from(case, "0.4.5.post2") and is_before(case, "0.5.7"):
        off = "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK=1"
    else:
        return remedy
    return f"{remedy} {off} turns the check off; every rank then gets no larger a KV cache than the poorest."
