"""Only consequences are in the log: a process was killed, a connection closed, a child died; or a banner whose reason is cut off."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._unsaid import REST, is_last_of_log, with_shortage
from logscope.causes._words import on_rank
from logscope.launch import is_bare_banner
from logscope.model import Event

ID = "cause_not_in_log"
_PEER = "failure.peer_closed"
_SIGNALS = {
    3: "SIGQUIT, by which SGLang's processes stop each other",
    6: "SIGABRT",
    7: "SIGBUS",
    9: "SIGKILL",
    11: "a segmentation fault",
    15: "SIGTERM",
}
_NAMED = {
    "SIGKILL": 9,
    "Killed": 9,
    "SIGABRT": 6,
    "Aborted": 6,
    "SIGSEGV": 11,
    "Segmentation fault": 11,
    "SIGBUS": 7,
    "Bus error": 7,
}


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis where no line says why."""
    if case.root.pattern.ends == "stopped":
        return Diagnosis(ID, "it was stopped before it was ready; who stopped it is not in this log")
    if case.said.pattern.blame != "consequence" and not _is_bare_banner(case):
        return None
    told = next((event for event in case.launch.events if _exit_code(event) is not None), None)
    code = _exit_code(told) if told is not None else None
    if told is None or code is None:
        if _is_bare_banner(case) and is_last_of_log(case):
            what = f"the log ends inside the traceback{on_rank(case)}, before the line that says why"
            return with_shortage(case, Diagnosis(ID, what, None, REST))
        remedy = _KILLED if case.root.pattern.id == "failure.killed" else _ELSEWHERE
        return with_shortage(case, Diagnosis(ID, f"{_what(case)}; why is not in this log", remedy=remedy))
    signal = -code if code < 0 else code - 128 if code > 128 else None
    by = f": killed by signal {signal} ({_SIGNALS[signal]})" if signal in _SIGNALS else ""
    remedy = _KILLED if signal == 9 else _ELSEWHERE
    evidence = (told.pos,) if told.pos != case.root.pos else ()
    what = f"{_what(case)}, exit code {code}{by}; why is not in this log"
    return with_shortage(case, Diagnosis(ID, what, remedy=remedy, evidence=evidence))


_KILLED = "SIGKILL comes from outside: most often the host ran out of memory. Look at `dmesg` and at the container's memory limit."
_ELSEWHERE = "Look for the first exception of another rank or node, in its own log."


def _is_bare_banner(case: Case) -> bool:
    """Return whether the line says that something failed, and the reason that should follow it is not there."""
    return case.said is case.root and is_bare_banner(case.root)


def _what(case: Case) -> str:
    if case.said.pattern.id == _PEER or (_is_bare_banner(case) and _has_lost_peer(case)):
        return "another rank closed its connection, so it failed first"
    process = next((p for e in case.launch.events if _exit_code(e) is not None and (p := _process(e))), None) or next(
        (p for e in case.launch.events if e.pattern.blame == "consequence" and (p := _process(e))), None
    )
    if process:
        return f"process {process} died"
    if _is_bare_banner(case):
        return "a process died of an exception whose last line is missing"
    if case.root.pattern.id == "failure.killed":
        return "the shell says that the server was killed"
    pid = next(
        (pid for e in case.launch.events if e.pattern.blame == "consequence" and (pid := e.quantity("pid"))), None
    )
    if pid is not None:
        return f"a process (pid {pid.value:.0f}) died"
    if any(_exit_code(event) is not None for event in case.launch.events):
        return "a process died"
    return "a process died, and the lines are only what followed"


def _has_lost_peer(case: Case) -> bool:
    lines = [event.pos for event in case.launch.events if event.pattern.id == _PEER]
    return any(pos.file == case.root.pos.file and pos.line > case.root.pos.line for pos in lines)


def _process(event: Event) -> str | None:
    name, count = event.string("process"), event.quantity("process")
    return name or (f"{count.value:g}" if count is not None else None)


def _exit_code(event: Event) -> int | None:
    """Return the exit code of a process that an event states; that of a signal is negative."""
    code, status, signal = event.quantity("exit_code"), event.quantity("wait_status"), event.string("signal")
    if code is not None:
        return int(code.value)
    if status is not None:  # of waitpid: the signal in the low 7 bits, the exit code above the low byte
        number = int(status.value)
        return -(number & 0x7F) if number > 0 and number & 0x7F else number >> 8
    is_consequence = event.pattern.blame == "consequence"  # else it says why itself
    return -_NAMED[signal] if is_consequence and signal in _NAMED else None
