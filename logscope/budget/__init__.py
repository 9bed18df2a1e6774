"""The arithmetic of SGLang's memory budget, by release: what a fraction gives, and what a number says about the fraction.

Pure functions over intervals, in bytes and tokens. What is not modelled gives a ``NotModelled`` note, never a number. Nobody else
writes ``1 - f``. docs/budget.md has the formulas.
"""

from logscope.budget.cells import (
    Heads,
    KvModel,
    Latent,
    Window,
    cell_size,
    measured_cell_size,
    padding,
    pool_bytes,
    rank_heads,
    stored_cell_size,
)
from logscope.budget.flags import DefaultFraction, LaunchFlags, Vision
from logscope.budget.formula import (
    Reserve,
    fraction_for_reserve,
    fraction_for_rest,
    fraction_for_tokens,
    hint,
    minimum_fraction,
    reserve,
    rest,
    rest_for_tokens,
    tokens,
    total_for_rest,
)
from logscope.budget.fraction import aiter_factor, default_fraction, fraction_in_force, multimodal_factor
from logscope.budget.interval import Interval, NotModelled, exact, interval_of, least
from logscope.budget.mamba import States, StateSplit, split_states
from logscope.budget.model_config import ModelFacts, kv_model, read_model_config
from logscope.budget.pools import (
    Limit,
    Speculation,
    TokenCount,
    draft_pool_tokens,
    final_tokens,
    headroom,
    request_slots,
    whole_pages,
)
from logscope.budget.releases import ByRelease, by_release, since, union
from logscope.budget.solve import (
    Capacity,
    Launch,
    capacity,
    least_fraction,
    longest_context,
    requests_that_fit,
)
from logscope.budget.window import WindowPools, split_window

__all__ = [
    "ByRelease",
    "Capacity",
    "DefaultFraction",
    "Heads",
    "Interval",
    "KvModel",
    "Latent",
    "Launch",
    "LaunchFlags",
    "Limit",
    "ModelFacts",
    "NotModelled",
    "Reserve",
    "Speculation",
    "StateSplit",
    "States",
    "TokenCount",
    "Vision",
    "Window",
    "WindowPools",
    "aiter_factor",
    "by_release",
    "capacity",
    "cell_size",
    "default_fraction",
    "draft_pool_tokens",
    "exact",
    "final_tokens",
    "fraction_for_reserve",
    "fraction_for_rest",
    "fraction_for_tokens",
    "fraction_in_force",
    "headroom",
    "hint",
    "interval_of",
    "kv_model",
    "least",
    "least_fraction",
    "longest_context",
    "measured_cell_size",
    "minimum_fraction",
    "multimodal_factor",
    "padding",
    "pool_bytes",
    "rank_heads",
    "read_model_config",
    "request_slots",
    "requests_that_fit",
    "reserve",
    "rest",
    "rest_for_tokens",
    "since",
    "split_states",
    "split_window",
    "stored_cell_size",
    "tokens",
    "total_for_rest",
    "union",
    "whole_pages",
]
