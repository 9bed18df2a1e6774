"""Ranks did not meet: some process never came to the address of rank 0, or not in time."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, listed, number, quoted
from logscope.server_args import arg_count
from logscope.units import seconds_text

ID = "rank_missing"
_INIT = "init_torch_distributed"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: who waited for whom, which ranks are absent from this log, and which have not come through."""
    if not case.tells(ID):
        return None
    sentence = f"{_waiting(case)}{_absent(case)}{_stuck(case)}"
    return Diagnosis(ID, sentence, None, _remedy(case))


def _waiting(case: Case) -> str:
    waited = case.said.quantity("waited_s")
    joined, expected = case.said.quantity("joined"), case.said.quantity("expected")
    address = (case.said.string("address") or "").replace(", ", ":")
    time = f" within {seconds_text(waited.value)} s" if waited else ""
    if joined and expected:
        return f"only {joined.value:g} of {expected.value:g} processes joined the group{time}"
    if address:
        who = case.root.rank.label if case.root.rank.tag else "a rank"
        return f"{who} did not reach rank 0 at {address}{time}"
    return f"the ranks did not meet{time}: {quoted(case)}"


def _absent(case: Case) -> str:
    """Name the ranks that are expected and say nothing; on a launch of several nodes, the nodes that are not in the log."""
    launch = case.launch
    nodes = number(case, "nnodes")
    here = {node.number for node in launch.nodes if node.number is not None}
    text = ""
    if nodes and nodes > 1 and here and len(here) < nodes:
        text = f"; this log is of node {listed(str(node) for node in sorted(here))} of {nodes:g} only"
    seen = {rank.tp for rank in launch.ranks if rank.tp is not None}
    size = argument(case, "tp_size")
    missing = [tp for tp in range(arg_count({"tp_size": size}, "tp_size")) if tp not in seen] if size else []
    if seen and missing and (number(case, "pp_size") or 1) == 1:
        text += f"; no line of {_ranges(missing)}"
    return text


def _ranges(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"TP{numbers[0]} to TP{numbers[-1]}"
    return listed(f"TP{each}" for each in numbers)


def _stuck(case: Case) -> str:
    spans = [span for span in case.launch.spans if span.phase == _INIT and span.rank.tag]
    stuck = sorted({span.rank for span in spans if span.begin is not None and span.end is None})
    if not stuck:
        return ""
    numbers = [rank.tp for rank in stuck if rank.tp is not None]
    is_plain = len(numbers) == len(stuck) and not any(rank.dp or rank.pp for rank in stuck)
    names = _ranges(numbers) if is_plain else listed(rank.label for rank in stuck)
    return f"; {names} began to initialise and did not end"


def _remedy(case: Case) -> str:
    nodes = number(case, "nnodes")
    if not nodes or nodes == 1:
        return "Look for what the absent ranks said last: they died or hang."
    node, address = argument(case, "node_rank"), argument(case, "dist_init_addr")
    other = "the other nodes'" if not isinstance(node, int) or nodes > 2 else f"node {0 if node else 1}'s"
    where = f" ({address})" if isinstance(address, str) else ""
    return (
        f"Look at {other} log. All nodes need the same --dist-init-addr{where}, reachable from each of them; with several networks "
        "set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME."
    )
