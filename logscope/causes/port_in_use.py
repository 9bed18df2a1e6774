"""A port that the server listens on, or one for its own processes, is taken."""

from __future__ import annotations

import re

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import number, quoted

ID = "port_in_use"
_OWNER = re.compile(r"process\.name\(\)='(?P<name>[^']*)'.*\bpid=(?P<pid>\d+)")
_FLAGS = {"nccl_port": "--nccl-port", "dist_init_port": "--dist-init-addr"}


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: which port, what it is for, and who has it."""
    if not case.tells(ID):
        return None
    port, owner = case.said.quantity("port"), _OWNER.search(case.message)
    which = (
        f"port {port.value:g}{_purpose(case, int(port.value))} is in use"
        if port
        else f"a port is in use: {quoted(case)}"
    )
    by = f", by {owner['name']} (pid {owner['pid']})" if owner else ""
    return Diagnosis(ID, which + by, None, _remedy(case, int(port.value) if port else None))


def _purpose(case: Case, port: int) -> str:
    """Say what the port is for: as the line names it, as an argument has it, or as so many above --port."""
    name = case.said.string("port_name")
    if name:
        return f" ({name})"
    base = number(case, "port")
    if base is None:
        return ""
    if port == base:
        return " (--port)"
    return f" (--port {base:g} + {port - int(base)})" if 0 < port - base < 2000 else ""


def _remedy(case: Case, port: int | None) -> str:
    name = case.said.string("port_name") or ""
    find = f"`ss -ltnp | grep :{port}` shows who has it. " if port else ""
    flag = _FLAGS.get(name, "--port")
    return f"{find}End that process, often an earlier server, or choose another {flag}. This process may live on: end it first."
