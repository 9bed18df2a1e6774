"""The memory of the host, not of a device, is not enough: for HiCache's pools, for pinned buffers, or for shared memory."""

from __future__ import annotations

import math

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import because, bytes_text, decimal_gb, is_before, is_from, number
from logscope.units import GIB, Quantity

ID = "host_memory"
_RESERVE = 10 * GIB  # HiCache leaves it to the host: memory_pool_host.py and pool_host/base.py, 0.4.1.post5 to 0.5.23
_SUBTRACTED_SINCE = "0.4.9.post3"  # before, the printed free memory still holds the reserve

_MORE = (
    "Give it more memory of the host (docker --memory, limits.memory of Kubernetes, --mem of Slurm), or take less: a smaller "
    "--hicache-size, no weights in /dev/shm."
)


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis; HiCache's request with the reserve that it leaves, and what all ranks ask for."""
    if not case.tells(ID):
        return None
    asked, free = case.said.quantity("requested_bytes"), case.said.quantity("available_bytes")
    if asked and free and case.said.pattern.id == "failure.host_memory":
        return _hicache(case, asked, free)
    if case.said.pattern.id in ("failure.host_kill", "failure.job_kill"):
        return Diagnosis(ID, _killed(case), None, _MORE)
    if "/dev/shm" in case.message:  # noqa: S108 # a text of the log
        remedy = "Give the container more shared memory (docker run --shm-size or --ipc=host)."
    elif asked:
        remedy = "Lower --hicache-size or --hicache-ratio."
    else:
        remedy = "Look at `free -g`, at the container's memory limit and at `ulimit -l`."
    return Diagnosis(ID, because(case), None, remedy)


def _killed(case: Case) -> str:
    process, pid, held = case.said.string("process"), case.said.quantity("pid"), case.said.quantity("held_bytes")
    if pid is None:
        return because(case)
    which = f"process {pid.value:.0f}{f' ({process})' if process else ''}"
    return f"the kernel killed {which} since the host or its container was out of memory{f'; it held {bytes_text(held)}' if held else ''}"


def _hicache(case: Case, asked: Quantity, free: Quantity) -> Diagnosis:
    pool = case.said.string("pool")
    sentence = f"not enough host memory for {pool or 'HiCache'}: {decimal_gb(asked)} asked, {decimal_gb(free)} free"
    reserve = Quantity(_RESERVE, 0)
    holds_reserve = asked.value <= free.value or is_before(case, _SUBTRACTED_SINCE)
    if holds_reserve:
        sentence += f", of which {decimal_gb(reserve)} (10 GiB) are left to the host"
        usable = max(0.0, free.low - _RESERVE)
    else:
        if is_from(case, _SUBTRACTED_SINCE):
            sentence += f" beyond {decimal_gb(reserve)} (10 GiB) that are left to the host"
        usable = max(0.0, free.low)
    sentence += _in_all(case, asked)
    taken = [event.pos for event in case.launch.events if event.quantity("host_size_bytes") is not None]
    return Diagnosis(ID, sentence, None, _smaller(case, asked, usable), evidence=tuple(taken[:8]))


def _in_all(case: Case, asked: Quantity) -> str:
    """Say what all ranks want, and what they have got already."""
    ranks = len([rank for rank in case.launch.ranks if rank.tag])
    text = f"; {ranks} ranks ask for {decimal_gb(Quantity(asked.value * ranks, 0))} in all" if ranks > 1 else ""
    sizes = [size for event in case.launch.events if (size := event.quantity("host_size_bytes")) is not None]
    if not sizes:
        return text
    taken = decimal_gb(Quantity(sum(size.value for size in sizes), 0))
    return f"{text}; {taken} had been taken by {len(sizes)} pool{'s' if len(sizes) > 1 else ''}"


def _smaller(case: Case, asked: Quantity, usable: float) -> str:
    size, ratio = number(case, "hicache_size"), number(case, "hicache_ratio")
    if size:
        remedy = (
            f"Lower --hicache-size, which is per rank, from {size:g} to {math.floor(size * usable / asked.value)} (GB)."
        )
    elif ratio:
        least = math.floor(ratio * usable / asked.value * 10) / 10
        remedy = f"Lower --hicache-ratio from {ratio:g} to {least:g}."
    else:
        remedy = "Lower --hicache-size (GB per rank) or --hicache-ratio."
    if not is_from(case, "0.5.15"):
        remedy += " To 0.5.14 a host pool has to be larger than the one on the device: below that, leave out --enable-hierarchical-cache."
    return remedy
