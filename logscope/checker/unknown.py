"""Lines that look like memory and that no pattern file knows."""

from __future__ import annotations

from collections.abc import Iterable

from logscope.events import Recogniser
from logscope.gaps import find_gaps
from logscope.model import Pos
from logscope.packs import Packs


def find_unknown(logs: Iterable[tuple[str, Iterable[bytes]]], packs: Packs) -> tuple[int, tuple[Pos, ...]]:
    """Return how many lines of logs (name, blocks of bytes) they are, and where the first of each kind stands."""
    gaps = [gap for gap in find_gaps(logs, Recogniser(packs, dense=True)) if gap.is_memory and gap.prefixed]
    return sum(gap.count for gap in gaps), tuple(gap.pos for gap in gaps)
