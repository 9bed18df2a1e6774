"""Where the environments, models and logs of real launches are kept: outside the checkout."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return $LOGSCOPE_REAL_LAUNCH_CACHE, else ~/.cache/logscope-real-launch."""
    return Path(os.environ.get("LOGSCOPE_REAL_LAUNCH_CACHE") or Path.home() / ".cache" / "logscope-real-launch")


def python_of(name: str) -> Path:
    """Return the interpreter of an environment."""
    return cache_dir() / name / "bin" / "python"


def environment_of(release: str) -> str:
    """Return the name of the environment that holds a release."""
    return f"venv-{release}"


def stamp_of(name: str) -> Path:
    """Return the file that says that an environment is complete, and what is in it."""
    return cache_dir() / name / "complete"


def models_of(release: str) -> Path:
    """Return the folder of the models, made by the libraries of that release."""
    return cache_dir() / "models" / release


def log_place(release: str, case: str) -> Path:
    """Return where the log of a case is written."""
    return cache_dir() / "logs" / release / f"{case}.log"


def kept_place(release: str, case: str) -> Path:
    """Return where it is kept what happened besides the log."""
    return log_place(release, case).with_suffix(".json")


def is_set_up(release: str) -> bool:
    """Return whether a release can be started."""
    return stamp_of(environment_of(release)).is_file() and (models_of(release) / "whole").is_dir()
