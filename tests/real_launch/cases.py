"""What is started, what is done to it, and how it must end. Nothing here says how logscope reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.version import Version

READY = "The server is fired up and ready to roll!"


@dataclass(frozen=True, slots=True)
class Case:
    """One launch.

    Args:
        args: flags besides model, device, host and port.
        model: which of the models (``make_models``).
        until: a text of the log at which the launch is where it was meant to get; the end of the server counts, too.
        then: what is done next, in order: "generate", "terminate", "kill scheduler".
        busy_port: whether another program listens on the port.
        gpu: whether GPUs are pretended, so that SGLang takes its CUDA path.
        timeout_s: when a launch that does not get there is given up.
        outcome, ended: what logscope must say.
        unseen_end: releases that print nothing of how it ended.
        cause: regex of the line that says why it failed, of the last of them if there are several; None if it did not.
        begun, complete: phases that the log must show to begin, and to begin and end, besides those that all launches have.
    """

    name: str
    outcome: str
    args: tuple[str, ...] = ()
    model: str = "whole"
    until: str = READY
    then: tuple[str, ...] = ()
    busy_port: bool = False
    gpu: bool = False
    timeout_s: float = 240
    ended: str | None = None
    unseen_end: tuple[str, ...] = ()
    cause: str | None = None
    complete: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


LOADED = ("init_torch_distributed", "load_weights")
SIZED = (*LOADED, "kv_cache", "memory_pool")
KEY_BYTES_PER_TOKEN = 8 * 8 * 128 * 2  # layers, heads, their size, bfloat16 (``make_models``)
LIMIT = ("--max-total-tokens", "20000")

CASES = (
    Case(
        "ok",
        outcome="ready",
        ended="stopped",
        args=("--mem-fraction-static", "0.1"),
        then=("generate", "terminate"),
        complete=SIZED,
    ),
    Case(
        "max-total-tokens",
        outcome="ready",
        ended="stopped",
        args=LIMIT,
        then=("generate", "generate", "terminate"),
        complete=SIZED,
    ),
    Case(
        "no-memory",
        outcome="failed",
        args=("--mem-fraction-static", "0.0001"),
        cause=r"^\w+Error: (?:Not enough memory|Loaded weights leave no)",
        complete=LOADED,
    ),
    Case(
        "busy-port",
        outcome="failed",
        args=LIMIT,
        busy_port=True,
        until="address already in use",
        cause=r"address already in use",
        complete=SIZED,
    ),
    Case(
        "unknown-flag",
        outcome="failed",
        args=("--no-such-flag", "3"),
        cause=r"error: unrecognized arguments: --no-such-flag 3",
    ),
    Case(
        "truncated-weights",
        outcome="failed",
        args=LIMIT,
        model="truncated",
        cause=r"SafetensorError: ",
        complete=LOADED[:1],
        begun=LOADED[1:],
    ),
    Case(
        "no-weights",
        outcome="failed",
        args=LIMIT,
        model="weightless",
        cause=r"^RuntimeError: Cannot find any model weights with",
        complete=LOADED[:1],
        begun=LOADED[1:],
    ),
    Case(
        "killed-scheduler",
        outcome="ready",
        ended="failed",
        args=LIMIT,
        unseen_end=("0.4.10.post2",),
        then=("generate", "kill scheduler"),
        complete=SIZED,
    ),
    Case(
        "two-ranks",
        outcome="ready",
        ended="stopped",
        args=(*LIMIT, "--tp", "2"),
        then=("generate", "terminate"),
        complete=SIZED,
        environment={"SGLANG_CPU_OMP_THREADS_BIND": "0|1"},
    ),
    Case(
        "gpu-ok",
        outcome="ready",
        ended="stopped",
        gpu=True,
        then=("generate", "terminate"),
        complete=(*SIZED, "cuda_graph"),
    ),
    Case(
        "gpu-two-ranks",
        outcome="ready",
        ended="stopped",
        gpu=True,
        args=("--tp", "2"),
        then=("generate", "terminate"),
        complete=(*SIZED, "cuda_graph"),
    ),
    Case(
        "gpu-no-memory",
        outcome="failed",
        gpu=True,
        args=("--mem-fraction-static", "0.5"),
        environment={"PRETEND_WEIGHT_FACTOR": "250"},
        cause=r"^\w+Error: (?:Not enough memory|Loaded weights leave no)",
        complete=LOADED,
    ),
    Case(
        "gpu-graph-memory",
        outcome="failed",
        gpu=True,
        environment={"PRETEND_GRAPH_MIB": "5000"},
        cause=r"OutOfMemoryError: CUDA out of memory\.",
        complete=SIZED,
        begun=("cuda_graph",),
    ),
)


def gpu_args(release: str) -> tuple[str, ...]:
    """Return the flags with which SGLang keeps to what pretended GPUs can do, and captures a few graphs."""
    plain = ("--attention-backend", "fa3", "--sampling-backend", "pytorch", "--disable-custom-all-reduce")
    if Version(release) < Version("0.5.14"):
        return (*plain, "--cuda-graph-max-bs", "8")
    return (*plain, "--cuda-graph-max-bs-decode", "8", "--cuda-graph-max-bs-prefill", "64")
