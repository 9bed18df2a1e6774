"""Ranks of a comparison in words; a rank is its tag there, or "least" and "most" where the topologies differ."""

from __future__ import annotations

import re
from collections.abc import Iterable

OVER_RANKS = ("least", "most")
_MOST_NAMED = 3
_WIDEST_CELL = 6  # "7 of 8"


def in_order(ranks: Iterable[str]) -> list[str]:
    """Return rank tags once each, TP2 before TP10; a line of no rank ("") is none."""
    return sorted({rank for rank in ranks if rank}, key=_order)


def _order(rank: str) -> list[tuple[bool, int, str]]:
    parts = re.split(r"(\d+)", rank)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def ranks_phrase(ranks: Iterable[str], of: int) -> str:
    """Say which ranks it is of how many: "all 8 ranks", "TP3 only", "5 of 8 ranks"; empty for the one rank there is."""
    own = in_order(ranks)
    if not own:
        return ""
    if set(own) <= set(OVER_RANKS):
        return "all ranks" if len(own) == len(OVER_RANKS) else f"the rank with the {own[0]}"
    if len(own) == of:
        return own[0] if of == 1 else "both ranks" if of == 2 else f"all {of} ranks"
    if len(own) > _MOST_NAMED:
        return f"{len(own)} of {of} ranks"
    return f"{', '.join(own)} only"


def ranks_cell(ranks: Iterable[str], of: int) -> str:
    """Write the same for a column of a table: "all 8", "TP3", "5 of 8"; "all" where least and most are one."""
    own = in_order(ranks)
    if own == list(OVER_RANKS):
        return "all"
    if len(own) == of and of > 1:
        return "both" if of == 2 else f"all {of}"
    named = ", ".join(own)
    return named if len(own) == 1 or len(named) <= _WIDEST_CELL else f"{len(own)} of {of}"
