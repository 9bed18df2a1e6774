"""logscope: what happened in an SGLang launch, and where each GiB of each rank went.

    import logscope
    launches = logscope.read("run.log")
    launches[0].frames.timeline
    logscope.explain("run.log"), logscope.diff("good.log", "run.log"), logscope.check("run.log", "logscope.toml")

Importing this package imports neither pandas nor the pattern files; what is asked for is loaded then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logscope.api.checking import CheckedView, check
    from logscope.api.diffing import DifferenceView, diff
    from logscope.api.explaining import ExplanationView, explain
    from logscope.api.launches import Launches, LaunchView, read, read_serving
    from logscope.errors import LogscopeError
    from logscope.serving import ServingFrames

__version__ = "0.1.0"
__all__ = [
    "CheckedView",
    "DifferenceView",
    "ExplanationView",
    "LaunchView",
    "Launches",
    "LogscopeError",
    "ServingFrames",
    "__version__",
    "check",
    "diff",
    "explain",
    "read",
    "read_serving",
]

_HOME = {
    "read": "logscope.api.launches",
    "read_serving": "logscope.api.launches",
    "ServingFrames": "logscope.serving",
    "Launches": "logscope.api.launches",
    "LaunchView": "logscope.api.launches",
    "explain": "logscope.api.explaining",
    "ExplanationView": "logscope.api.explaining",
    "diff": "logscope.api.diffing",
    "DifferenceView": "logscope.api.diffing",
    "check": "logscope.api.checking",
    "CheckedView": "logscope.api.checking",
    "LogscopeError": "logscope.errors",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'logscope' has no attribute {name!r}")
    value: object = vars(import_module(_HOME[name]))[name]
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
