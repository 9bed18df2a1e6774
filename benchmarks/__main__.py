"""Print how logscope compares with its peers: ``python -m benchmarks [--megabytes 1000] [--rounds 5]``.

All commands of a comparison run one after the other, round by round; the least CPU time of each counts. Ratios mean more than seconds.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.logs import LAUNCH, write_log
from benchmarks.measure import measure
from logscope.events import Recogniser
from logscope.packs import load_packs

LOGSCOPE = [sys.executable, "-m", "logscope"]
PEER = [sys.executable, "-m", "benchmarks.peers"]
FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
Row = tuple[str, str, str]


def main() -> None:
    """Write the logs, run the commands, print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the large log")
    parser.add_argument("--rounds", type=int, default=5, help="how often each command runs")
    parser.add_argument("--only", choices=COMPARISONS, help="one of the comparisons")
    given = parser.parse_args()
    print(f"{'':<58}{'reached':>12}{'goal':>12}")
    for name, compare in COMPARISONS.items():
        if given.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for what, reached, goal in compare(Path(folder), given.megabytes * 1_000_000, given.rounds):
                print(f"{what:<58}{reached:>12}{goal:>12}", flush=True)


def sparse(folder: Path, size: int, rounds: int) -> Iterator[Row]:
    """All events of a large log with their line numbers, beside tools that find the same literals."""
    log, part, literals = folder / "large.log", folder / "part.log", folder / "literals"
    write_log(log, size)
    write_log(part, size // 20)
    known = Recogniser(load_packs()).gate.literals
    literals.write_text("\n".join(known) + "\n")
    commands = {
        "events": [*LOGSCOPE, "events", "-q", str(log)],
        "grep": ["env", "LC_ALL=C", "grep", "-c", "-F", "-f", str(literals), str(log)],
        "gate": [*PEER, "gate", str(log)],
        "gate_40": [*PEER, "gate_40", str(log)],
    }
    if shutil.which("rg"):
        commands["rg"] = ["rg", "-n", "-F", "-f", str(literals), str(log)]
    cost = measure(commands, rounds)
    events, few = cost["events"], cost["gate_40"].cpu_s
    if "rg" in cost:
        rg = _ratio(events.cpu_s, cost["rg"].cpu_s)
        yield f"events of {size // 10**6} MB / rg -n -F -f ({len(known)} literals)", rg, "<= 2.5"
    yield "  the same / grep -c -F -f", _ratio(events.cpu_s, cost["grep"].cpu_s), "<= 0.8"
    yield f"  the gate: {len(known)} literals / 40", _ratio(cost["gate"].cpu_s, few), "<= 4"
    small = measure(
        {"events": [*LOGSCOPE, "events", "-q", str(part)], "re": [*PEER, "per_line_re", str(part)]}, min(rounds, 2)
    )
    times = small["re"].cpu_s / part.stat().st_size / (events.cpu_s / log.stat().st_size)
    yield "  one re per form on every line / the same, per MB", f"{times:.0f}x", ">= 30x"
    yield "  peak memory", f"{events.memory_mib:.0f} MiB", "<= 64 MiB"
    yield f"  peak memory of {size // 20_000_000} MB", f"{small['events'].memory_mib:.0f} MiB", "the same"


def density(folder: Path, size: int, rounds: int) -> Iterator[Row]:
    """What an event costs, however many there are."""
    shares = (0.0, 0.001, 0.01, 0.1)
    logs = {share: folder / f"{share}.log" for share in shares}
    errors = {share: write_log(log, size // 10, density=share) for share, log in logs.items()}
    cost = measure({str(share): [*LOGSCOPE, "events", "-q", str(log)] for share, log in logs.items()}, rounds)
    for share in shares[1:]:
        each = (cost[str(share)].cpu_s - cost["0.0"].cpu_s) / errors[share]
        yield f"a traceback of 4 lines, where {share:.1%} of lines are of such", f"{each * 1e6:.0f} us", "flat"


def start_up(folder: Path, _size: int, rounds: int) -> Iterator[Row]:
    """Whole processes on a launch of about 100 lines."""
    log = folder / "small.log"
    log.write_bytes(LAUNCH)
    cost = measure(
        {
            "pandas": [sys.executable, "-c", "import pandas"],
            "--help": [*LOGSCOPE, "--help"],
            "explain": [*LOGSCOPE, "explain", str(log)],
            "events": [*LOGSCOPE, "events", str(log)],
            "check": [*LOGSCOPE, "check", str(log), "--no-oom", "--min-kv-tokens", "100k"],
            "timeline": [*LOGSCOPE, "timeline", str(log)],
            "diff": [*LOGSCOPE, "diff", str(log), str(FIXTURES / "car" / "launch.log")],
        },
        max(rounds, 7),
    )
    goals = {"--help": 0.4, "explain": 0.6, "events": 0.6, "check": 0.6, "timeline": 0.8, "diff": 1.6}
    for name, goal in goals.items():
        yield f"{name}, a small log / import pandas", _ratio(cost[name].cpu_s, cost["pandas"].cpu_s), f"<= {goal}"


def packed(folder: Path, size: int, rounds: int) -> Iterator[Row]:
    """A compressed log, beside unpacking it only."""
    log = folder / "packed.log"
    write_log(log, size // 5)
    with log.open("rb") as plain, gzip.open(f"{log}.gz", "wb", compresslevel=6) as small:
        shutil.copyfileobj(plain, small)
    cost = measure({"events": [*LOGSCOPE, "events", "-q", f"{log}.gz"], "gzip": ["gzip", "-dc", f"{log}.gz"]}, rounds)
    yield "events of a .gz / gzip -dc", _ratio(cost["events"].cpu_s, cost["gzip"].cpu_s), "<= 1.5"


def dense(folder: Path, size: int, rounds: int) -> Iterator[Row]:
    """Every Prefill and Decode line as typed frames, beside a regex with named groups on each line.

    What each of them takes for a log of a few lines (imports, patterns) is taken off for the first row.
    """
    log, few = folder / "dense.log", folder / "few.log"
    write_log(log, size // 5)
    write_log(few, 1)
    runs = {
        (name, path.name): [*PEER, name, str(path)] for name in ("dense_re", "dense_logscope") for path in (log, few)
    }
    cost = {key: found.cpu_s for key, found in measure(runs, rounds).items()}
    with log.open("rb") as file:  # all of it in memory would count as that of the commands, which are forked from here
        lines = sum(b" batch, #" in line for line in file)
    theirs, ours = (cost[name, log.name] - cost[name, few.name] for name in ("dense_re", "dense_logscope"))
    yield f"frames of {lines / 1e6:.1f} M lines of serving: one re a line / ours", f"{theirs / ours:.1f}x", ">= 6x"
    yield "  whole processes", f"{cost['dense_re', log.name] / cost['dense_logscope', log.name]:.1f}x", ""
    small, large = folder / "small.log", folder / "large.log"
    write_log(small, size // 20)
    write_log(large, size)
    memory = measure({path.name: [*LOGSCOPE, "serving", "-q", str(path)] for path in (small, large)}, 1)
    yield f"  peak memory of `serving` of {size // 10**6} MB", f"{memory[large.name].memory_mib:.0f} MiB", ""
    yield f"  peak memory of {size // 20_000_000} MB", f"{memory[small.name].memory_mib:.0f} MiB", "the same"


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}x"


COMPARISONS = {"sparse": sparse, "density": density, "start_up": start_up, "packed": packed, "dense": dense}

if __name__ == "__main__":
    main()
