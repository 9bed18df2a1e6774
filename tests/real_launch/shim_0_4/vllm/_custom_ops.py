"""Operators that are imported and never called here."""

from __future__ import annotations

from collections.abc import Callable


def __getattr__(name: str) -> Callable[..., None]:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_: object, **__: object) -> None:
        raise NotImplementedError(f"no such operator on this host: {name}")

    return missing
