"""How long logscope takes for a large log, beside grep: `python benchmarks/scan.py [MEGABYTES]`.

The log is a launch of the fixtures followed by lines of serving. Each command runs three times; the least CPU time counts, and the most
memory. Ratios to `grep -c -F` on the same machine mean more than seconds.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCH = Path(__file__).parent.parent / "tests" / "fixtures" / "baseline" / "launch.log"
RUNS = 3
BLOCK_LINES = 20_000


def write_log(path: Path, size: int, seed: int = 1) -> None:
    """Write a launch and then serving lines until the file has ``size`` bytes."""
    chance = random.Random(seed)  # noqa: S311 # noise for a log
    with path.open("wb") as file:
        file.write(LAUNCH.read_bytes())
        while file.tell() < size:
            file.write("".join(serving_line(chance) for _ in range(BLOCK_LINES)).encode())


def serving_line(chance: random.Random) -> str:
    """Return a line that a serving server prints: a batch, a request, and now and then something else."""
    clock = f"2026-02-27 {chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
    kind = chance.random()
    if kind < 0.5:
        return (
            f"[{clock} TP0] Decode batch, #running-req: {chance.randrange(200)}, #token: {chance.randrange(150_000)}, "
            f"token usage: {chance.random():.2f}, cuda graph: True, gen throughput (token/s): {chance.random() * 4000:.2f}, "
            f"#queue-req: {chance.randrange(20)}\n"
        )
    if kind < 0.999:
        return f'[{clock}] INFO:     127.0.0.1:{chance.randrange(30000, 60000)} - "POST /generate HTTP/1.1" 200 OK\n'
    return f"[{clock} TP3] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.6500 -> 0.7100\n"


def measure(command: list[str]) -> tuple[float, float]:
    """Return (CPU seconds, MiB of memory) of a command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 16):
            pass
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Write the log, run the commands, print a table."""
    size = int(sys.argv[1] if len(sys.argv) > 1 else 200) * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        write_log(log, size)
        logscope = [sys.executable, "-m", "logscope"]
        commands = {
            "grep -c -F (one literal)": ["grep", "-c", "-F", "avail mem=", str(log)],
            "timeline": [*logscope, "timeline", str(log)],
            "timeline -f json": [*logscope, "timeline", "-f", "json", str(log)],
            "events -f jsonl (every batch)": [*logscope, "events", "-f", "jsonl", str(log)],
        }
        print(f"{'':<32}{'CPU s':>8}{'MB per s':>10}{'MiB':>8}")
        for name, command in commands.items():
            runs = [measure(command) for _ in range(RUNS)]
            seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
            print(f"{name:<32}{seconds:>8.2f}{size / 1e6 / max(seconds, 0.01):>10.0f}{memory:>8.0f}")


if __name__ == "__main__":
    main()
