"""What a script would do instead, as programs of their own: ``python -m benchmarks.peers NAME LOG``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from logscope.events import Recogniser
from logscope.packs import load_packs
from logscope.scan import open_gate
from logscope.source import Source, read_blocks


def per_line_re(log: str) -> int:
    """Search every line for each form of the pattern files, by the literals of the form: the obvious script."""
    forms = [form for pattern in Recogniser(load_packs()).patterns for form in pattern.forms if form.contains]
    regexes = [re.compile("|".join(map(re.escape, form.contains))) for form in forms]
    with Path(log).open(encoding="utf-8", errors="replace") as file:
        return sum(1 for line in file for regex in regexes if regex.search(line))


def gate(log: str, count: int | None = None) -> int:
    """Find the literals of the pattern files, or ``count`` of them, in a log."""
    literals = Recogniser(load_packs()).gate.literals
    found = open_gate(literals if count is None else literals[:: len(literals) // count])
    return sum(len(found.find(block)) for block in read_blocks(Source(log, Path(log))))


DECODE = re.compile(
    r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (?P<rank>[^\]]+))?\] Decode batch, #running-req: (?P<running_reqs>\d+), "
    r"#token: (?P<used_tokens>\d+), token usage: (?P<token_usage>[\d.]+), cuda graph: (?P<cuda_graph>\w+), "
    r"gen throughput \(token/s\): (?P<gen_throughput>[\d.]+), #queue-req: (?P<queue_reqs>\d+)"
)
PREFILL = re.compile(
    r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (?P<rank>[^\]]+))?\] Prefill batch, #new-seq: (?P<new_seqs>\d+), "
    r"#new-token: (?P<new_tokens>\d+), #cached-token: (?P<cached_tokens>\d+), token usage: (?P<token_usage>[\d.]+), "
    r"#running-req: (?P<running_reqs>\d+), #queue-req: (?P<queue_reqs>\d+)"
)


def dense_re(log: str) -> int:
    """Read every line of serving by a regex with named groups into typed frames: tuples of groups, columns converted by pandas."""
    import pandas

    rows: dict[re.Pattern[str], list[tuple[int, tuple[str, ...]]]] = {DECODE: [], PREFILL: []}
    with Path(log).open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            regex = DECODE if "Decode batch" in line else PREFILL if "Prefill batch" in line else None
            match = regex.match(line) if regex is not None else None
            if match is not None and regex is not None:
                rows[regex].append((number, match.groups()))
    count = 0
    for regex, found in rows.items():
        frame = pandas.DataFrame([row for _, row in found], columns=list(regex.groupindex))
        frame["line"] = [number for number, _ in found]
        for name in frame.columns.difference(["time", "rank", "cuda_graph", "line"]):
            frame[name] = pandas.to_numeric(frame[name])
        frame["time"] = pandas.to_datetime(frame["time"], format="%Y-%m-%d %H:%M:%S")
        frame = frame.astype({name: "category" for name in ("rank", "cuda_graph") if name in frame})
        count += len(frame)
    return count


def dense_logscope(log: str) -> int:
    """Read the same with logscope."""
    import logscope

    frames = logscope.read_serving(log)
    return len(frames.decode) + len(frames.prefill)


PEERS = {
    "per_line_re": per_line_re,
    "gate": gate,
    "gate_40": lambda log: gate(log, 40),
    "dense_re": dense_re,
    "dense_logscope": dense_logscope,
}

if __name__ == "__main__":
    print(PEERS[sys.argv[1]](sys.argv[2]))
