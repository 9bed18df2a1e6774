"""What a launch's lines say about the size of its KV cache, and about mem_fraction_static."""

from logscope.sizing.figures import DRAFT_COUNTED_SINCE, KV_CACHE, POOLS, STATES
from logscope.sizing.size_up import size_up
from logscope.sizing.suggest import HIGHEST_FRACTION, least_viable, suggested_fraction
from logscope.sizing.types import BoundBy, Cell, Fraction, Pool, Profile, RankSizing, RunOut, Sizing, Stated
from logscope.sizing.what_if import Grant, WhatIf, fraction_used, grant_for, taken_beside, worth

__all__ = [
    "DRAFT_COUNTED_SINCE",
    "HIGHEST_FRACTION",
    "KV_CACHE",
    "POOLS",
    "STATES",
    "BoundBy",
    "Cell",
    "Fraction",
    "Grant",
    "Pool",
    "Profile",
    "RankSizing",
    "RunOut",
    "Sizing",
    "Stated",
    "WhatIf",
    "fraction_used",
    "grant_for",
    "least_viable",
    "size_up",
    "suggested_fraction",
    "taken_beside",
    "worth",
]
