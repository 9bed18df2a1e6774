"""Large logs: launches of the fixtures, hidden in lines of serving."""

from __future__ import annotations

import random
from pathlib import Path

LAUNCH = (Path(__file__).parent.parent / "tests" / "fixtures" / "baseline" / "launch.log").read_bytes()
BLOCK_LINES = 20_000
FAILED_REQUEST = """[{clock} TP3] TokenizerManager hit an exception: Traceback (most recent call last):
  File "/app/sglang/srt/managers/tokenizer_manager.py", line {line}, in handle_request
    obj = self._dispatch(recv_req)
ValueError: Input length {length} exceeds the maximum allowed length 131072
"""


def write_log(path: Path, size: int, launches: int = 3, density: float = 0.0, seed: int = 1) -> int:
    """Write a log and return how many errors of requests it holds.

    Args:
        path: the file.
        size: bytes, about.
        launches: hidden in it at equal distances, the first at its begin.
        density: share of the lines between them that are the error of a request.
        seed: of what is random in the lines.
    """
    chance = random.Random(seed)  # noqa: S311 # noise for a log
    errors = 0
    with path.open("wb") as file:
        for number in range(launches):
            file.write(LAUNCH)
            while file.tell() < size * (number + 1) // launches:
                block = "".join(_serving(chance, density / 4) for _ in range(BLOCK_LINES)).encode()
                file.write(block)
                errors += block.count(b"ValueError")
    return errors


def _serving(chance: random.Random, failing: float) -> str:
    clock = f"2026-02-27 {chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
    if chance.random() < failing:
        return FAILED_REQUEST.format(clock=clock, line=chance.randrange(3000), length=chance.randrange(131072, 200000))
    kind = chance.random()
    if kind < 0.6:
        return (
            f"[{clock} TP0] Decode batch, #running-req: {chance.randrange(200)}, #token: {chance.randrange(150_000)}, "
            f"token usage: {chance.random():.2f}, cuda graph: True, gen throughput (token/s): {chance.random() * 4000:.2f}, "
            f"#queue-req: {chance.randrange(20)}\n"
        )
    if kind < 0.75:
        return (
            f"[{clock} TP0] Prefill batch, #new-seq: {chance.randrange(9)}, #new-token: {chance.randrange(8192)}, "
            f"#cached-token: {chance.randrange(8192)}, token usage: {chance.random():.2f}, "
            f"#running-req: {chance.randrange(200)}, #queue-req: {chance.randrange(20)}\n"
        )
    return f'[{clock}] INFO:     127.0.0.1:{chance.randrange(30000, 60000)} - "POST /generate HTTP/1.1" 200 OK\n'
