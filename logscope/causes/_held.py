"""Who holds the memory of a device that is full: other processes, or torch itself in pieces that are too small."""

from __future__ import annotations

import re

from msgspec import Struct

from logscope.causes._types import Case
from logscope.causes._words import argument, uncapped
from logscope.model import Finding
from logscope.units import GIB, Quantity, gib, parse_number

_FOREIGN = GIB  # what a driver keeps for itself is less
_OUTSIDE = 4 * GIB  # what CUDA contexts, NCCL and kernels take beside torch's allocator is less
_FRAGMENTS = GIB // 2
_PROCESS = re.compile(r"\bProcess (\d+) has ([\d.]+) ([KMG]iB|bytes) memory in use")
_ALLOCATOR = re.compile(r"PYTORCH_(?:[A-Z]+_)?ALLOC_CONF")
_ALLOCATORS = {"CUDA": "PYTORCH_CUDA_ALLOC_CONF", "HIP": "PYTORCH_HIP_ALLOC_CONF", "NPU": "PYTORCH_NPU_ALLOC_CONF"}


class Others(Struct, frozen=True):
    """Memory, bytes, that is not of this process's allocator; surely another process's, or only outside of torch."""

    amount: float
    pid: int | None
    is_surely_foreign: bool


def _value(case: Case, name: str) -> float | None:
    amount: Quantity | None = case.said.quantity(name)
    return amount.value if amount is not None else None


def own_bytes(case: Case) -> float | None:
    """Return what this process holds of the device by the line, None where it does not say."""
    return _value(case, "this_process_bytes") or _by_torch(case) or None


def _by_torch(case: Case) -> float:
    held = (_value(case, "allocated_bytes") or 0.0) + (_value(case, "unallocated_bytes") or 0.0)
    return max(held, _value(case, "reserved_bytes") or 0.0)


def others_of(case: Case) -> Others | None:
    """Return what others hold. Torch lists this process, too, as "Process N" where it does not know its own number (in containers)."""
    free, total = _value(case, "free_bytes"), _value(case, "total_bytes")
    if free is None or total is None:
        return None
    own, held, listed = _value(case, "this_process_bytes"), _by_torch(case), _listed(case)
    large = [pid for pid, amount in listed.items() if amount >= held > 0]
    if own is None and large:  # nobody else can be this large
        own = listed.pop(min(large, key=lambda pid: listed[pid]))
    named = sum(listed.values())
    pid = max(listed, key=lambda pid: listed[pid], default=None)
    if own is not None:
        rest = total - free - own  # with what the driver keeps for itself
        amount = named if named and rest - named < _FOREIGN else rest
        return Others(amount, pid, True) if amount > _FOREIGN else None
    if listed:
        return Others(named, pid, True) if named > _FOREIGN else None
    outside = total - free - held
    return Others(outside, None, False) if held and outside > _OUTSIDE else None


def _listed(case: Case) -> dict[int | None, float]:
    """Return what each process holds that the line lists by its number, or by no number where the line has none."""
    found: dict[int | None, float] = {}
    for pid, amount, unit in _PROCESS.findall(case.message):
        parsed = parse_number(amount, unit)
        if parsed is not None:
            found[int(pid)] = parsed.value
    other = _value(case, "other_process_bytes")
    return found if found or other is None else {None: other}


def after_free_memory(case: Case, remedy: str) -> str:
    """Put first, before what this server can do with less, what gives it memory for nothing.

    That is to free the device where another process surely holds memory of it, and the allocator's setting where what torch has
    reserved but not allocated would have held the request.
    """
    others, setting = others_of(case), _defragment(case) if _would_hold(case) else ""
    if setting.startswith("Set "):
        apart = f"{gib(unused(case))} GiB that torch has reserved but not allocated"
        held = f"{setting.rstrip('.')}: {apart} would have held the request."
        remedy = _if_not_enough(held, remedy)
    if others is not None and others.is_surely_foreign:
        first = f"Free the device of other processes first: they hold {gib(others.amount)} GiB."
        remedy = _if_not_enough(first, remedy)
    return remedy


def _if_not_enough(first: str, remedy: str) -> str:
    if remedy.startswith(("Lower", "Set", "Try", "The weights do not fit")):
        return f"{first} If that is not enough, {uncapped(remedy)}"
    return f"{first} {remedy}"


def _foreign_process(case: Case) -> Finding | None:
    others = others_of(case)
    if others is None:
        return None
    device = case.said.quantity("device")
    where = f"GPU {int(device.value)}" if device else "the device"
    if not others.is_surely_foreign:
        return Finding(
            "foreign_process", "note",
            f"{gib(others.amount)} GiB of {where} are held outside of torch's allocator: by another process, or by libraries of this one.",
            (case.root.pos,), "Look with `nvidia-smi` who holds memory there.",
        )  # fmt: skip
    who = f" (one of them is process {others.pid})" if others.pid is not None else ""
    return Finding(
        "foreign_process", "warning", f"{gib(others.amount)} GiB of {where} belong to other processes{who}.", (case.root.pos,),
        "End them, or let them release their memory first. Behind a container the number of a process is that of the host.",
    )  # fmt: skip


def unused(case: Case) -> float:
    """Return what torch has reserved but not allocated, bytes; 0 where the line does not say."""
    unused = _value(case, "unallocated_bytes")
    if unused is not None:
        return unused
    reserved, allocated = _value(case, "reserved_bytes"), _value(case, "allocated_bytes")
    return reserved - allocated if reserved is not None and allocated is not None else 0.0


def _would_hold(case: Case) -> bool:
    """Return whether the request would have fitted into what is free and what torch holds unused, were that one piece."""
    asked, free = _value(case, "asked_bytes"), _value(case, "free_bytes")
    if asked is None or free is None or case.said.quantity("allowed_bytes") is not None:
        return False
    return unused(case) > _FRAGMENTS and unused(case) >= asked - free


def _fragmentation(case: Case) -> Finding | None:
    asked, free = _value(case, "asked_bytes"), _value(case, "free_bytes")
    if asked is None or free is None or case.said.quantity("allowed_bytes") is not None:
        return None
    if not free > asked and not _would_hold(case):
        return None
    sentence = f"{gib(asked)} GiB were asked for, {gib(free)} GiB free"
    if unused(case) > _FRAGMENTS:
        sentence += f", and {gib(unused(case))} GiB are reserved by torch but unused"
    return Finding(
        "fragmentation", "warning", f"{sentence}: there is enough, but not in one piece.", (case.root.pos,), _defragment(case)
    )  # fmt: skip


def _defragment(case: Case) -> str:
    if argument(case, "enable_memory_saver") is True:
        return "Release what else is on the device first; expandable segments do not go with --enable-memory-saver."
    found = _ALLOCATOR.search(case.message)
    name = found[0] if found else _ALLOCATORS.get(case.said.string("device_type") or "CUDA")
    if name is None:
        return ""
    command = case.launch.command
    if command and any("expandable_segments:True" in value for value in command.env.values()):
        return ""
    return f"Set {name}=expandable_segments:True."


def memory_findings(case: Case) -> tuple[Finding, ...]:
    """Return what else the numbers of the line show: other processes, fragments."""
    return tuple(found for found in (_foreign_process(case), _fragmentation(case)) if found is not None)
