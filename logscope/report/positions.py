"""Positions for JSON."""

from __future__ import annotations

from collections.abc import Iterable

from logscope.model import Pos


def positions(places: Iterable[Pos]) -> list[dict[str, object]]:
    """Return positions as objects of JSON."""
    return [{"file": pos.file, "line": pos.line} for pos in places]
