"""Output formats, found by discovery: every module here that has ``NAME``, ``IS_BINARY`` and ``render(report)``.

``render`` is a pure function from a report to bytes. A format may also have ``show(report)``, which writes to the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from msgspec import Struct

from logscope.errors import UsageError
from logscope.report import Report


class Renderer(Struct, frozen=True):
    """One output format."""

    name: str
    is_binary: bool
    render: Callable[[Report], bytes]
    show: Callable[[Report], None]


@lru_cache(maxsize=1)
def renderer_names() -> tuple[str, ...]:
    """Return the formats that exist: the modules of this package."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_")))


def find_renderer(name: str) -> Renderer:
    """Return a format by name.

    Raises:
        UsageError: there is no such format.
    """
    if name not in renderer_names():
        raise UsageError(f"unknown format {name!r}\n  do: take one of {', '.join(renderer_names())}")
    module: ModuleType = import_module(f"{__name__}.{name}")
    render: Callable[[Report], bytes] = module.render

    def show(report: Report) -> None:
        sys.stdout.buffer.write(render(report))
        sys.stdout.buffer.flush()

    return Renderer(name, bool(module.IS_BINARY), render, getattr(module, "show", show))
