"""CPU seconds and memory of commands that run one after the other, round by round."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The least CPU time of a command in seconds, and the most memory in MiB."""

    cpu_s: float
    memory_mib: float


def measure(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Cost]:
    """Run every command once in each round: what else the machine does then meets all of them."""
    runs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(_run(command))
    return {
        name: Cost(min(run.cpu_s for run in done), max(run.memory_mib for run in done)) for name, done in runs.items()
    }


def _run(command: Sequence[str]) -> Cost:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 16):  # grep stops at its first match if nobody reads
            pass
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
