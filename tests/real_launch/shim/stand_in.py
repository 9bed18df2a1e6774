"""Packages of CUDA kernels that can be imported name by name; whatever is called of them fails."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class Missing:
    """A kernel that is not there."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (object,)

    def __call__(self, *_: object, **__: object) -> None:
        raise NotImplementedError(f"no such kernel on this host: {self.__name__}")

    def __getattr__(self, name: str) -> object:
        return names_of(self.__name__)(name)


def names_of(owner: str) -> Callable[[str], object]:
    """Return a ``__getattr__`` under which ``owner`` has every public name."""

    def get(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return logging.getLogger(owner) if name == "logger" else Missing(f"{owner}.{name}")

    return get


class AnySubmodule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find every submodule of one package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for whatever is under the package."""
        del path, target
        is_ours = name.startswith(f"{self.package}.")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_ours else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return a module with every name."""
        module = ModuleType(spec.name)
        vars(module).update(__path__=[], __getattr__=names_of(spec.name))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""


def stand_in_for(package: str) -> Callable[[str], object]:
    """Make all submodules of a package importable, and return the package's ``__getattr__``."""
    sys.meta_path.insert(0, AnySubmodule(package))
    return names_of(package)
