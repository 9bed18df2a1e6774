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


PEERS = {"per_line_re": per_line_re, "gate": gate, "gate_40": lambda log: gate(log, 40)}

if __name__ == "__main__":
    print(PEERS[sys.argv[1]](sys.argv[2]))
