"""Communication between ranks failed or timed out: NCCL, RCCL, HCCL, Gloo."""

from __future__ import annotations

import re

from logscope.causes._place import beside_capture, hint_of_capture
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, listed, on_rank, quoted
from logscope.units import seconds_text

ID = "collective_failed"
_KIND = re.compile(
    r"(unhandled \w+ error|internal error|invalid usage|invalid argument|remote process exited or there was a network error)"
)
_TORCH_RANK = re.compile(r"\[[Rr]ank ?(\d+)\]|\bRank (\d+)\]")

_NETWORK = (
    "See that the address is reachable from each rank, and that NCCL_SOCKET_IFNAME names an interface that all of them share "
    "(NCCL_IB_HCA for InfiniBand, NCCL_IB_DISABLE=1 to do without it)."
)


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: which library, which operation, how long it waited, and which ranks are silent about it."""
    if not case.tells(ID):
        return None
    waited, operation = case.said.quantity("waited_s"), case.said.string("operation")
    if operation:
        what = f"the collective {operation} did not finish"
        what += f"{on_rank(case)} within {seconds_text(waited.value)} s" if waited else on_rank(case)
    elif waited:
        what = (
            f"Gloo{on_rank(case)} waited {seconds_text(waited.value)} s for another rank ({case.said.string('error')})"
        )
    elif case.said is not case.root and case.root.pattern.cause == ID:
        what = f"{_library(case)}{on_rank(case)}: {_kind(case)}last error: {quoted(case)}"
    else:
        what = f"{_library(case)}{on_rank(case)}: {quoted(case)}"
    free, evidence = beside_capture(case)
    sentence = f"{what}{free}{_silent(case)}"
    return Diagnosis(ID, sentence, None, _remedy(case), evidence=evidence, findings=hint_of_capture(case))


def _kind(case: Case) -> str:
    """Return "unhandled system error, ", the kind of error that the exception names above the last error."""
    found = _KIND.search(case.root.text)
    return f"{found[1]}, " if found else ""


def _library(case: Case) -> str:
    if case.said.pattern.id == "failure.gloo_error":
        return "Gloo failed"
    return f"{case.said.string('library') or 'NCCL'} failed"


def _number(text: str) -> int | None:
    found = _TORCH_RANK.search(text)
    return int(found[1] or found[2]) if found else None


def _silent(case: Case) -> str:
    """Name the ranks that do not say it, where others do: they are late, hung or dead."""
    said = [event for event in case.launch.events if event.pattern.id == case.root.pattern.id]
    complainers = {event.rank.tp for event in said if event.rank.tag} | {_number(event.text) for event in said}
    silent = [rank for rank in case.launch.ranks if rank.tp is not None and rank.tp not in complainers]
    is_plain = not any(rank.dp or rank.pp for rank in case.launch.ranks)  # torch numbers over all groups
    if not is_plain or complainers <= {None} or not silent or len(silent) == len(case.launch.ranks):
        return ""
    return f"; {listed(rank.label for rank in silent)} did not say so"


def _remedy(case: Case) -> str:
    if case.said.pattern.id == "failure.collective_timeout" or case.said.quantity("waited_s"):
        return "Look at what the silent ranks did last: one of them is late, hung or dead."
    kind = case.said.pattern.id
    if kind == "failure.nccl_network":
        return _NETWORK
    if kind in ("failure.nccl_remote", "failure.nccl_peer_closed"):
        return "Look at what the other ranks said last: the process of one of them ended, or the network between them failed."
    command = case.launch.command
    parts = []
    if "NVLink SHARP" in case.message:
        parts.append("Start with NCCL_NVLS_ENABLE=0, or see to the Fabric Manager of the host.")
    elif case.said.string("library") == "HCCL":
        parts.append("The logs of CANN (~/ascend/log) name the reason.")
    elif kind == "failure.gloo_error":
        parts.append(
            "See that the name of the host resolves to an address that all ranks reach (GLOO_SOCKET_IFNAME names the interface)."
        )
    elif (
        kind != "failure.nccl_last_error"
        and case.said.string("library") != "DeepEP"
        and (command is None or "NCCL_DEBUG" not in command.env)
    ):
        parts.append("Start once with NCCL_DEBUG=INFO, which names the reason.")
    if (number_of_nodes := argument(case, "nnodes")) and number_of_nodes != 1:
        parts.append(
            "Between nodes, see that NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name the right interface on each."
        )
    return " ".join(parts)
