"""Small logs by hand, and the way to read them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

from logscope.differ import Difference, Tolerance, diff_launches
from logscope.events import Recogniser
from logscope.model import Launch
from logscope.packs import Packs, load_packs
from logscope.reading import Reading, read_launches
from logscope.units import GIB
from made import Made, log_text

# how fast the machine is decides no test: not a run's time, nor how long inputs take to draw while character tables are built
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

Diff = Callable[..., Difference]

FIXTURES = Path(__file__).parent / "fixtures"
LOGS = sorted(FIXTURES.glob("*/launch.log"))
CASES = [log.parent.name for log in LOGS]

FIRED_UP = "[2026-01-05 10:05:00] The server is fired up and ready to roll!"
BANNER = "[2026-01-05 10:09:40 TP0] Scheduler hit an exception: Traceback (most recent call last):"
FRAME = '  File "/opt/venv/lib/python3.11/site-packages/sglang/srt/managers/scheduler.py", line 100, in run_scheduler_process'
NO_MEMORY = (
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
    "Current value: self.server_args.mem_fraction_static=0.55"
)
SIGQUIT = "[2026-01-05 10:09:41] Received sigquit from a child process. It usually means the child failed."


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden outputs from the program")


class ReadText(Protocol):
    """Write one log and return its launches; ``age_s`` is how long ago the file was last written to."""

    def __call__(
        self, text: str | bytes, name: str = "run.log", silence_s: float | None = None, age_s: float = 0.0
    ) -> list[Launch]: ...


class ReadFiles(Protocol):
    """Write several logs (name -> text) and return the launches of all of them."""

    def __call__(self, texts: Mapping[str, str]) -> list[Launch]: ...


@pytest.fixture(scope="session")
def packs() -> Packs:
    return load_packs()


@pytest.fixture(scope="session")
def recogniser(packs: Packs) -> Recogniser:
    return Recogniser(packs)


@pytest.fixture(scope="session")
def read_text(tmp_path_factory: pytest.TempPathFactory, packs: Packs, recogniser: Recogniser) -> ReadText:
    folder = tmp_path_factory.mktemp("logs")

    def read(
        text: str | bytes, name: str = "run.log", silence_s: float | None = None, age_s: float = 0.0
    ) -> list[Launch]:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if age_s:
            then = time.time() - age_s
            os.utime(path, (then, then))
        return read_launches([str(path)], Reading(packs, silence_s), recogniser)

    return read


@pytest.fixture(scope="session")
def read_files(tmp_path_factory: pytest.TempPathFactory, packs: Packs, recogniser: Recogniser) -> ReadFiles:
    def read(texts: Mapping[str, str]) -> list[Launch]:
        folder = tmp_path_factory.mktemp("nodes")
        for name, text in texts.items():
            (folder / name).write_text(text)
        return read_launches([str(folder / name) for name in texts], Reading(packs), recogniser)

    return read


@pytest.fixture(scope="session")
def fixture_launches(packs: Packs, recogniser: Recogniser) -> dict[str, Launch]:
    """The launch of every fixture, by its case."""
    return {log.parent.name: read_launches([str(log)], Reading(packs), recogniser)[-1] for log in LOGS}


def log(*lines: str) -> str:
    """Join lines to a log that ends whole."""
    return "".join(f"{line}\n" for line in lines)


def at(clock: str, tag: str, message: str) -> str:
    """Write a message as SGLang does: at("10:00:05", "TP0", "..")."""
    return f"[2026-01-05 {' '.join(part for part in (clock, tag) if part)}] {message}"


def printed_args(**values: object) -> str:
    """Write a ``server_args`` line of the releases to 0.5.18."""
    shown = ", ".join(f"{name}={value!r}" for name, value in {"model_path": "/models/m", **values}.items())
    return at("10:00:00", "", f"server_args=ServerArgs({shown})")


def init_lines(tag: str = "TP0", minute: str = "10:00") -> list[str]:
    """Write what a rank of 0.5.9 says of its initialisation."""
    return [
        at(f"{minute}:01", tag, "Init torch distributed begin."),
        at(f"{minute}:05", tag, "Init torch distributed ends. elapsed=4.02 s, mem usage=0.64 GB"),
    ]


def load_lines(
    before: str = "94.04", after: str = "21.71", used: str = "72.33", tag: str = "TP0", minute: str = "10:00",
    model_type: str = "LlamaForCausalLM",
) -> list[str]:  # fmt: skip
    """Write what a rank of 0.5.9 says of its weights."""
    return [
        at(f"{minute}:06", tag, f"Load weight begin. avail mem={before} GB"),
        at(
            f"{minute}:20",
            tag,
            f"Load weight end. elapsed=13.50 s, type={model_type}, dtype=torch.bfloat16, "
            f"avail mem={after} GB, mem usage={used} GB.",
        ),
    ]


def pool_lines(kv: str = "10.42", after: str = "11.26", tag: str = "TP0", minute: str = "10:00") -> list[str]:
    """Write what a rank of 0.5.9 says of its pools."""
    return [
        at(f"{minute}:21", tag, f"KV Cache is allocated. #tokens: 159269, KV size: {kv} GB"),
        at(f"{minute}:22", tag, f"Memory pool end. avail mem={after} GB"),
    ]


def graph_lines(
    before: str = "11.26", after: str = "9.85", used: str = "1.41", tag: str = "TP0", minute: str = "10:00", kind: str = ""
) -> list[str]:  # fmt: skip
    """Write what a rank of 0.5.9 says of its graphs."""
    what = f"Capture {kind}{' ' if kind else ''}cuda graph"
    return [
        at(f"{minute}:23", tag, f"{what} begin. This can take up to several minutes. avail mem={before} GB"),
        at(f"{minute}:50", tag, f"{what} end. Time elapsed: 26.73 s. mem usage={used} GB. avail mem={after} GB."),
    ]


def rank_lines(tag: str = "TP0", minute: str = "10:00") -> list[str]:
    """Write all that a rank of 0.5.9 says of a launch that works."""
    return [
        *init_lines(tag, minute),
        *load_lines(tag=tag, minute=minute),
        *pool_lines(tag=tag, minute=minute),
        *graph_lines(tag=tag, minute=minute),
    ]


def gb(printed: str) -> int:
    """Return the bytes of a printed "GB", rounded as logscope rounds them."""
    return round(float(printed) * GIB)


@pytest.fixture(scope="session")
def read(read_text: ReadText) -> Callable[[Made, str], Launch]:
    known: dict[str, Launch] = {}

    def read_made(made: Made, name: str) -> Launch:
        key = f"{name} {made!r}"
        if key not in known:
            (known[key],) = read_text(log_text(made), f"{name}.log")
        return known[key]

    return read_made


@pytest.fixture(scope="session")
def diff(read: Callable[[Made, str], Launch], packs: Packs) -> Diff:
    def diff_made(before: Made, after: Made, *earlier: Made, tolerance: Tolerance | None = None) -> Difference:
        baselines = [read(made, f"earlier{number}") for number, made in enumerate(earlier)]
        launches = [*baselines, read(before, "before")]
        return diff_launches(
            launches, read(after, "after"), packs, tolerance or Tolerance(), ("before.log", "after.log")
        )

    return diff_made


@pytest.fixture(scope="session")
def compare(read_text: ReadText, packs: Packs) -> Diff:
    """Compare made launches, read anew: hypothesis shows what it calls, and a function is short to show."""

    def compare_made(before: Made, after: Made) -> Difference:
        launches = [read_text(log_text(made), f"{name}.log")[-1] for made, name in ((before, "a"), (after, "b"))]
        return diff_launches([launches[0]], launches[1], packs, Tolerance(), ("a.log", "b.log"))

    return compare_made
