"""Start one server on 127.0.0.1, do to it what the case says, end everything it started, return what it printed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .cases import Case, gpu_args
from .places import cache_dir, environment_of, log_place, python_of

HERE = Path(__file__).parent
HOST = "127.0.0.1"
KERNELS = {"flashinfer-python": "0.6.3", "sgl-kernel": "0.3.21", "sglang-kernel": "0.4.10"}
STEP_S = 0.25
LAST_WORDS_S = 30.0
GENERATE_S = 120.0
PROMPT = {"text": "The capital city of France is", "sampling_params": {"max_new_tokens": 45, "temperature": 0}}


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a launch, as seen from outside.

    ``seconds`` is the time until it was where it was meant to get, ``code`` its exit code, None if it had to be ended.
    """

    log: Path
    command: tuple[str, ...]
    reached: bool
    seconds: float
    code: int | None
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """One process; its start time tells it from a later one with the same id."""

    pid: int
    started: str

    def stat(self) -> list[str]:
        """Return the fields of its state after its name; none if it is gone."""
        fields = _stat(self.pid)
        return fields if fields and fields[19] == self.started else []

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return bool(self.stat()) and self.stat()[0] != "Z"

    def kill(self) -> None:
        """End it at once."""
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)


def run(release: str, case: Case) -> Ran:
    """Run one case with one release."""
    log = log_place(release, case.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with _port(case.busy_port) as port, log.open("wb", buffering=0) as out:
        command = _command(release, case, port)
        began = time.monotonic()
        server = subprocess.Popen(
            command,
            cwd=cache_dir(),
            env=_environment(release, case),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        family: set[Process] = set()
        try:
            reached = _wait(server, family, log, case)
            seconds = time.monotonic() - began
            done = list(_act_all(case, server, family, port)) if reached else []
            if case.outcome == "failed":
                _outlast(server, family, 5.0)
            code = server.poll()
        finally:
            _end(server, family)
    return Ran(log, tuple(command), reached, seconds, code, tuple(done))


def _command(release: str, case: Case, port: int) -> list[str]:
    device = ["cuda", *gpu_args(release)] if case.gpu else ["cpu"]
    fixed = ["--model-path", f"models/{release}/{case.model}", "--host", HOST, "--port", str(port), "--device", *device]
    return [str(python_of(environment_of(release))), "-m", "sglang.launch_server", *fixed, *case.args]


def _environment(release: str, case: Case) -> Mapping[str, str]:
    shims = [HERE / "shim"]
    programs = [python_of(environment_of(release)).parent, python_of("base").parent]
    if case.gpu:
        host = _make_gpu_host(cache_dir() / "gpu-host")
        shims += [HERE / "shim_gpu", host]
        programs.insert(0, host)
        device = {"TORCHDYNAMO_DISABLE": "1", "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND": "python"}
    else:
        device = {"SGLANG_USE_CPU_ENGINE": "1"}
    if release.startswith("0.4."):
        shims.append(HERE / "shim_0_4")
    home = cache_dir() / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    return {
        **kept,
        **device,
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(map(str, shims)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": HOST,
        **case.environment,
    }


def _make_gpu_host(place: Path) -> Path:
    """Write what SGLang asks the host for where GPUs are: nvidia-smi, and the versions of its kernels."""
    place.mkdir(exist_ok=True)
    program = place / "nvidia-smi"
    program.write_text("#!/bin/sh\nfor gpu in 0 1 2 3 4 5 6 7; do echo 97871; done\n", encoding="utf-8")
    program.chmod(0o755)
    for name, version in KERNELS.items():
        info = place / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
    return place


@contextmanager
def _port(busy: bool) -> Iterator[int]:
    """Yield a port that is free, or that this process listens on."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        if busy:
            listener.listen()
            yield port
            return
    yield port


def _wait(server: subprocess.Popen[bytes], family: set[Process], log: Path, case: Case) -> bool:
    """Wait until the log shows the text waited for, or the server ends; return whether either came in time."""
    give_up = time.monotonic() + case.timeout_s
    wanted = case.until.encode()
    while time.monotonic() < give_up:
        family.update(_descendants(server.pid))
        ended = server.poll() is not None
        if wanted in log.read_bytes():
            return True
        if ended:
            return case.outcome == "failed"
        time.sleep(STEP_S)
    return False


def _act_all(case: Case, server: subprocess.Popen[bytes], family: set[Process], port: int) -> Iterator[str]:
    """Do one thing after the other; the first that fails is the last."""
    for action in case.then:
        try:
            yield _act(action, server, family, port)
        except OSError as error:
            yield f"{action}: {error!r}"
            return


def _act(action: str, server: subprocess.Popen[bytes], family: set[Process], port: int) -> str:
    """Do one thing and return what it was."""
    family.update(_descendants(server.pid))
    if action == "generate":
        asked = urllib.request.Request(
            f"http://{HOST}:{port}/generate", json.dumps(PROMPT).encode(), {"Content-Type": "application/json"}
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(asked, timeout=GENERATE_S) as answer:
            return f"generate: {answer.status}"
    if action == "terminate":
        server.terminate()
    elif action == "kill scheduler":
        schedulers = [process for process in family if _is_scheduler(process)]
        if not schedulers:
            raise ProcessLookupError("no scheduler is seen")
        schedulers[0].kill()
    else:
        raise ValueError(f"no such action: {action!r}")
    _outlast(server, family, LAST_WORDS_S)
    return action


def _is_scheduler(process: Process) -> bool:
    return process.is_alive and b"scheduler" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def _outlast(server: subprocess.Popen[bytes], family: set[Process], seconds: float) -> None:
    """Let the server end by itself, for some time."""
    give_up = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < give_up:
        family.update(_descendants(server.pid))
        time.sleep(STEP_S)


def _end(server: subprocess.Popen[bytes], family: set[Process]) -> None:
    """End the server and every process that it was seen to start."""
    family.update(_descendants(server.pid))
    if server.poll() is None:
        server.kill()
    server.wait()
    for process in family:
        process.kill()
    give_up = time.monotonic() + LAST_WORDS_S
    while any(process.is_alive for process in family) and time.monotonic() < give_up:
        time.sleep(STEP_S)


def _descendants(pid: int) -> Iterator[Process]:
    """Yield the processes below one."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = " ".join((task / "children").read_text() for task in tasks).split()
    except OSError:
        return
    for child in map(int, children):
        if fields := _stat(child):
            yield Process(child, fields[19])
        yield from _descendants(child)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name: state first, start time at 19."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
