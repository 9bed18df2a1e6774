"""A port that the server listens on, or one for its own processes, is taken."""

from __future__ import annotations

import re

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, is_before, is_from, number, quoted

ID = "port_in_use"
_OWNER = re.compile(r"process\.name\(\)='(?P<name>[^']*)'.*\bpid=(?P<pid>\d+)")
_FLAG = re.compile(r"--[a-z-]+-port\b")
_ADDRESS_PORT = re.compile(r":(\d+)$")
_DERIVED = (
    8  # ports above that of --dist-init-addr are for the processes of DP attention: PortArgs.init_new, 0.4.1 to 0.5.23
)


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: which port, what it is for, and who has it."""
    if not case.tells(ID):
        return None
    said, owner = case.said.quantity("port"), _OWNER.search(case.message)
    port = int(said.value) if said else None
    flag, shift = _flag_of(case, port)
    which = (
        f"a port is in use: {quoted(case)}" if port is None else f"port {port}{_purpose(case, flag, shift)} is in use"
    )
    by = f", by {owner['name']} (pid {owner['pid']})" if owner else ""
    return Diagnosis(ID, f"{which}{by}{_unset(case, port, flag)}", None, _remedy(case, port, flag))


def _flag_of(case: Case, port: int | None) -> tuple[str, int]:
    """Return the flag that sets a port and how far above the flag's own port it is; an empty flag where the log does not tell."""
    init = _init_flag(case)
    named = {"nccl_port": "--nccl-port", "dist_init_port": init}.get(case.said.string("port_name") or "")
    if named:
        return named, 0
    if port is None:
        return "", 0
    if said := _FLAG.search(case.message):
        return said[0], 0
    found = _ADDRESS_PORT.search(str(argument(case, "dist_init_addr") or ""))
    if found and 0 <= port - int(found[1]) < _DERIVED:
        return init, port - int(found[1])
    for name in sorted(case.launch.args.values, key=lambda name: (name == "port", name)):
        if name.endswith("port") and number(case, name) == port:
            return f"--{name.replace('_', '-')}", 0
    base = number(case, "port")
    if base is None:
        return "", 0
    if _is_store(case):
        return ("--port", 0) if port == base else ("", 0)
    return ("--port", port - int(base)) if 0 <= port - base < 2000 else ("", 0)


def _is_store(case: Case) -> bool:
    """Return whether it is the port at which torch's ranks meet. SGLang picks a free one where no argument sets it."""
    return "The server socket has failed" in case.message


def _init_flag(case: Case) -> str:
    return "--nccl-init-addr" if is_before(case, "0.3.3") else "--dist-init-addr"


def _purpose(case: Case, flag: str, shift: int) -> str:
    """Say what the port is for, as the line or an argument tells; empty where neither does."""
    name = case.said.string("port_name")
    if name or not flag:
        return f" ({name})" if name else ""
    base = number(case, "port") if flag == "--port" and shift else None
    return f" ({flag}{f' {base:g}' if base else ''}{f' + {shift}' if shift else ''})"


def _unset(case: Case, port: int | None, flag: str) -> str:
    """Say that no argument sets the port, where none does."""
    if flag or port is None or case.said.string("port_name"):
        return ""
    what = ", at which the ranks meet" if _is_store(case) else ""
    return f"{what}; what sets it is not in this log"


def _remedy(case: Case, port: int | None, flag: str) -> str:
    find = f"`ss -ltnp | grep :{port}` shows who has it. " if port else ""
    if flag:
        other = f"choose another {flag}"
    elif port is None:
        other = "choose other ports: which of them it is (--port, or one of its own processes) the line does not tell"
    else:
        own = "--nccl-port" if is_from(case, "0.4.9") else _init_flag(case)
        other = (
            f"start again: where no argument sets it, SGLang takes a free one; {own} sets it"
            if _is_store(case)
            else (f"look which argument or variable sets it; {own} and --port are the usual ones")
        )
    lives = " This process may live on: end it first." if "attempting to bind on address" in case.message else ""
    return f"{find}End that process, often an earlier server, or {other}.{lives}"
