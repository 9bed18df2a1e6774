"""What a plain CPU host lacks and SGLang asks for. Every Python with this folder on PYTHONPATH loads it; no logging is touched.

A module named in ``AFTER`` is changed right after its import.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def fill_torch(torch: ModuleType) -> None:
    """Give back two private functions that releases before 0.5 ask for and newer torch no longer has."""
    for name in ("_is_amx_tile_supported", "_init_amx"):
        if not hasattr(torch._C._cpu, name):
            setattr(torch._C._cpu, name, lambda: False)


def switch_off_pynccl(module: ModuleType) -> None:
    """Keep CPU ranks from NCCL: a torch built for CUDA brings its library along."""

    def __init__(self: object, *_: object, **__: object) -> None:  # noqa: N807 - it replaces a constructor
        vars(self).update(available=False, disabled=True, world_size=1)

    @contextlib.contextmanager
    def change_state(self: object, *_: object, **__: object) -> Iterator[None]:  # noqa: ARG001 - it replaces a method
        yield

    module.PyNcclCommunicator.__init__ = __init__
    module.PyNcclCommunicator.change_state = change_state


AFTER: dict[str, list[Callable[[ModuleType], None]]] = {
    "torch": [fill_torch],
    "sglang.srt.distributed.device_communicators.pynccl": [switch_off_pynccl],
}
for extra in ("release_0_4", "pretend_gpu"):  # there if its folder is on the path
    if importlib.util.find_spec(extra):
        for changed, change in importlib.import_module(extra).AFTER.items():
            AFTER.setdefault(changed, []).append(change)


class AfterImport(importlib.abc.MetaPathFinder):
    """Find a module as usual, and have it changed after its code has run."""

    def __init__(self) -> None:
        self.searching: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own spec with a loader that changes it."""
        del path, target
        if name not in AFTER or name in self.searching:
            return None
        self.searching.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching.discard(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            for change in AFTER[name]:
                change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, AfterImport())
