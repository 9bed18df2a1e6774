"""Read a log in the simplest way there is, without logscope and without its pattern files: to compare with."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GIB, MIB = 1 << 30, 1 << 20
SCALES = {"GB": GIB, "GiB": GIB, "MB": MIB, "MiB": MIB, "s": 1, "": 1}  # SGLang prints GB and means GiB
PREFIX = re.compile(r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (?P<tag>[A-Z\d ]+))?\] ")
NUMBER = re.compile(r"(?<![\w.:/<-])(?P<number>-?\d+(?:\.\d+)?)(?!\.?\d)(?:\s?(?P<unit>GB|GiB|MB|MiB|s)\b)?(?![\w:/%])")
STATES_MEMORY = re.compile(
    r"\d ?(?:GB|GiB|MB|MiB)\b|#tokens: |#token: |#new-token: |max_total_num_tokens=|elapsed=|startup timings|avail mem|mem usage"
)
NOT_STATED = re.compile(r"server_args=|Ignore import error|  File ")  # arguments are compared by themselves

# what a name of the log is called by logscope
FIELDS = {
    "avail mem": "avail_mem_bytes",
    "avail_mem": "avail_mem_bytes",
    "mem usage": "mem_usage_bytes",
    "elapsed": "elapsed_s",
    "#tokens": "tokens",
    "K size": "k_size_bytes",
    "V size": "v_size_bytes",
    "max_total_num_tokens": "max_total_num_tokens",
    "chunked_prefill_size": "chunked_prefill_size_tokens",
    "max_prefill_tokens": "max_prefill_tokens",
    "max_running_requests": "max_running_requests",
    "context_len": "context_len_tokens",
    "available_gpu_mem": "available_mem_bytes",
    "available_cpu_mem": "available_mem_bytes",
    "load_weight": "load_weight_s",
    "kv_cache_allocation": "kv_cache_allocation_s",
    "scheduler_e2e": "scheduler_e2e_s",
    "#new-seq": "new_seqs",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "#running-req": "running_reqs",
    "#queue-req": "queue_reqs",
}
NAMED = re.compile(
    rf"(?<![\w-])(?P<name>{'|'.join(FIELDS)})(?:=|: )(?P<number>-?\d+(?:\.\d+)?)(?:\s?(?P<unit>GB|s)\b)?(?=[,.):}}]*(?:\s|$))"
)
RENAMED = {("Memory baseline taken", "mem_usage_bytes"): "drop_bytes", ("SWAKVPool", "mem_usage_bytes"): "total_bytes"}

EDGES = (
    ("init_torch_distributed", "begin", r"Init (?:torch distributed|parallel) begin\."),
    ("init_torch_distributed", "end", r"Init (?:torch distributed|parallel) ends\."),
    ("load_weights", "begin", r"Load weight begin\."),
    ("load_weights", "end", r"Load weight end\."),
    ("kv_cache", "end", r"KV Cache is allocated\.|SWAKVPool mem usage: "),
    ("memory_pool", "end", r"Memory pool end\."),
    ("cuda_graph", "begin", r"Capture .*(?i:cuda graph) begin\."),
    ("cuda_graph", "end", r"Capture .*(?i:cuda graph) end\."),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A message, without its prefix, and its physical line, counted from 1."""

    number: int
    text: str
    time: str | None = None
    tag: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """The line at which a phase of a rank begins or ends."""

    phase: str
    edge: str
    line: int
    tag: str
    time: str | None


def lines_of(log: bytes) -> list[Line]:
    """Return the messages of all physical lines; a progress bar and what another process prints into it are several of one line."""
    return [line for number, text in enumerate(physical_lines(log), 1) for line in _messages(number, text)]


def physical_lines(log: bytes) -> list[str]:
    """Return the lines as an editor counts them."""
    return log.decode("utf-8", errors="replace").removesuffix("\n").split("\n")


def _messages(number: int, text: str) -> Iterator[Line]:
    for part in text.split("\r"):
        prefixes = list(PREFIX.finditer(part))
        yield Line(number, part[: prefixes[0].start() if prefixes else None])
        ends = [*(prefix.start() for prefix in prefixes), len(part)][1:]
        for prefix, end in zip(prefixes, ends, strict=False):
            yield Line(number, part[prefix.end() : end], prefix["time"], prefix["tag"] or "")


def numbers_of(lines: Sequence[Line]) -> dict[int, list[float]]:
    """Return, by line, every number of the messages that state memory, tokens or durations, in bytes, tokens, seconds."""
    found: dict[int, list[float]] = {}
    for line in lines:
        if STATES_MEMORY.search(line.text) and not NOT_STATED.match(line.text):
            found.setdefault(line.number, []).extend(numbers_in(line.text))
    return found


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text that stand by themselves, in base units."""
    return [float(found["number"]) * SCALES[found["unit"] or ""] for found in NUMBER.finditer(text)]


def named_numbers_of(lines: Sequence[Line]) -> Counter[tuple[int, str, float]]:
    """Return (line, field, value) of the numbers that stand behind a name of ``FIELDS``; bytes are whole."""
    found: Counter[tuple[int, str, float]] = Counter()
    for line in lines:
        if NOT_STATED.match(line.text):
            continue
        for match in NAMED.finditer(line.text):
            field = FIELDS[match["name"]]
            field = next((new for (start, old), new in RENAMED.items() if old == field and start in line.text), field)
            value = float(match["number"]) * (GIB if match["unit"] == "GB" else 1)
            found[line.number, field, round(value) if field.endswith("_bytes") else value] += 1
    return found


def edges_of(lines: Sequence[Line]) -> list[Edge]:
    """Return where phases begin and end, in order. Of several KV pools of a rank in a row the last one is the end."""
    found: list[Edge] = []
    last: dict[str, Edge] = {}
    for line in lines:
        for phase, edge, regex in EDGES:
            if re.match(regex, line.text):
                before, now = last.get(line.tag), Edge(phase, edge, line.number, line.tag, line.time)
                if before and (before.phase, before.edge) == (phase, edge) == ("kv_cache", "end"):
                    found.remove(before)
                found.append(now)
                last[line.tag] = now
    return sorted(found)


def arguments_of(lines: Sequence[Line]) -> dict[str, object]:
    """Return the server arguments that are printed as plain literals; a call and a dict are both seen."""
    printed = next(
        (line.text.removeprefix("server_args=") for line in lines if line.text.startswith("server_args=")), None
    )
    if printed is None:
        return {}
    return dict(_literals(printed))


def _literals(printed: str) -> Iterator[tuple[str, object]]:
    tree = ast.parse(printed, mode="eval").body
    if isinstance(tree, ast.Call):
        pairs = [(word.arg, word.value) for word in tree.keywords]
    elif isinstance(tree, ast.Dict):
        pairs = [(ast.literal_eval(key), value) for key, value in zip(tree.keys, tree.values, strict=True) if key]
    else:
        raise TypeError(f"neither a call nor a dict: {ast.unparse(tree)[:60]}")
    for name, value in pairs:
        try:
            literal = ast.literal_eval(value)
        except ValueError:
            continue
        yield str(name), ast.get_source_segment(printed, value) if isinstance(value, ast.Dict) else _frozen(literal)


def _frozen(value: object) -> object:
    """Return lists as tuples, as logscope has them."""
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
