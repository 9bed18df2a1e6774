"""Make the environment that one SGLang release is started in.

    python -m tests.real_launch.setup 0.5.23

torch and what all releases need go into one environment, which is made once; each release has a small one that sees it. What is there is
kept: after an interruption, run it again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from .places import cache_dir, environment_of, models_of, python_of, stamp_of

WANTED = tomllib.loads(Path(__file__).with_name("environments.toml").read_text(encoding="utf-8"))
TORCH: list[str] = WANTED["torch"]
COMMON: list[str] = WANTED["common"]
PINS: Mapping[str, list[str]] = WANTED["releases"]
RELEASES = tuple(PINS)
MODELS = Path(__file__).with_name("make_models.py")


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real_launch.setup",
        description=(__doc__ or "").partition("\n")[0],
        epilog=f"the cache is {cache_dir()}; LOGSCOPE_REAL_LAUNCH_CACHE chooses another",
    )
    parser.add_argument("releases", nargs="+", metavar="RELEASE", choices=RELEASES, help=", ".join(RELEASES))
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environments, best 3.11")
    options = parser.parse_args(argv)
    try:
        make_base(options.python)
        for release in options.releases:
            make_environment(options.python, release)
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        sys.stderr.write(
            f"a step of the set-up failed: {command[:300]}\n"
            "  do: see the message above; run the same command again to go on where it stopped\n"
        )
        return 1
    return 0


def make_base(python: str) -> None:
    """Make the environment with torch, if it is not there."""
    if _is_complete("base", [*TORCH, *COMMON]):
        return
    _make_venv(python, "base")
    _install("base", TORCH)
    _install("base", [TORCH[0], *COMMON])  # named again, so that nothing changes it
    _complete("base", [*TORCH, *COMMON])


def make_environment(python: str, release: str) -> None:
    """Make the environment of a release and its models, if they are not there."""
    name, wanted = environment_of(release), [*PINS[release], f"sglang=={release}"]
    if not _is_complete(name, wanted):
        _make_venv(python, name)
        packages = Path(_packages_dir(name))
        (packages / "base.pth").write_text(_packages_dir("base") + "\n", encoding="utf-8")
        _install(name, [TORCH[0], *PINS[release]])
        _install(name, ["--no-deps", f"sglang=={release}"])  # its dependencies are CUDA kernels
        _complete(name, wanted)
    models = models_of(release)
    if not (models / "whole").is_dir():
        _say(f"making models in {models}")
        subprocess.run([python_of(name), MODELS, models], check=True)
    _say(f"SGLang {release} is ready in {cache_dir() / name}")


def _make_venv(python: str, name: str) -> None:
    if not python_of(name).is_file():
        _say(f"making {cache_dir() / name}")
        cache_dir().mkdir(parents=True, exist_ok=True)
        subprocess.run([python, "-m", "venv", cache_dir() / name], check=True)


def _install(name: str, wanted: Sequence[str]) -> None:
    _say(f"installing {len(wanted)} packages into {name}: {' '.join(wanted)[:60]} ...")
    command = [str(python_of(name)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, *wanted], check=True)


def _packages_dir(name: str) -> str:
    command = [str(python_of(name)), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _is_complete(name: str, wanted: Sequence[str]) -> bool:
    return stamp_of(name).is_file() and stamp_of(name).read_text(encoding="utf-8").split("\n") == list(wanted)


def _complete(name: str, wanted: Sequence[str]) -> None:
    stamp_of(name).write_text("\n".join(wanted), encoding="utf-8")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
