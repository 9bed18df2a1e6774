"""The budget itself, solved in every direction: rest = A - T * (1 - f), and tokens = rest / cell size.

A is the free memory when the pool is sized, T the free memory before the model was loaded, each the least over the ranks; f is
mem_fraction_static. The reserve T * (1 - f) is a share of T, not of the card's capacity. A and T are in bytes here, GiB in SGLang:
the factor is a power of two, so that the floating-point results are the same to the last bit. Over several ranks SGLang takes the minimum
in single precision, which rounds 94 GiB to 8 KiB: a token count can differ by one from what exact inputs give.
"""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from logscope.budget.interval import Interval, exact, over_corners
from logscope.budget.releases import since

HINT_SINCE = "0.5.14"
ROUND_BYTES_SINCE = "0.5.7"
NOTHING = exact(0)


class Reserve(Struct, frozen=True):
    """Bytes that the budget leaves free, and what sets them: the fraction, a floor, or either within the intervals."""

    amount: Interval
    bound_by: Literal["fraction", "floor", "either"]


def reserve(total: Interval, fraction: Interval, floor: Interval = NOTHING) -> Reserve:
    """Return the bytes that are left for activations and graphs.

    reserve = max(T * (1 - f), floor). Where the floor sets it, a higher fraction changes nothing.

    Args:
        total: T, bytes.
        fraction: mem_fraction_static.
        floor: bytes; not 0 only for Mamba models whose pool is sized after graphs are captured (0.5.16 on, off by default).

    Source: sglang/srt/managers/router/model_runner.py (0.1.13) to sglang/srt/mem_cache/kv_cache_configurator.py (0.5.23).
    """
    by_fraction = over_corners(lambda t, f: t * (1 - f), total, fraction)
    amount = over_corners(max, by_fraction, floor)
    if by_fraction.low >= floor.high:
        return Reserve(amount, "fraction")
    return Reserve(amount, "floor" if by_fraction.high < floor.low else "either")


def rest(
    avail: Interval, total: Interval, fraction: Interval, floor: Interval = NOTHING, multimodal: Interval = NOTHING
) -> Interval:
    """Return the bytes left for the KV cache on one rank.

    rest = A - max(T * (1 - f), floor) - multimodal

    Args:
        avail: A, bytes; least over ranks, after the weights are loaded. From 0.5.14 on after the draft's weights, too.
        total: T, bytes; least over ranks, after the distributed init and before the weights.
        fraction: mem_fraction_static.
        floor: see ``reserve``.
        multimodal: bytes kept for multimodal features (0.5.18 on, multimodal models only).

    Returns:
        Bytes; negative where the launch fails.

    Releases: 0.1.13 on. Source: see ``reserve``.
    """
    return avail - reserve(total, fraction, floor).amount - multimodal


def tokens(rest_bytes: Interval, cell_size: float, release: str) -> Interval:
    """Return the tokens that a budget holds, before caps, headroom and whole pages.

    To 0.5.6: floor(rest / cell); from 0.5.7: rest cut to whole bytes first. The results differ for negative budgets only, by one.

    Args:
        rest_bytes: bytes, may be negative.
        cell_size: bytes per token.

    Returns:
        Tokens, whole numbers, may be negative: negative values are not clamped.

    Raises:
        ValueError: the cell size is not positive.

    Source: sglang/srt/model_executor/model_runner.py (profile_max_num_token), model_runner_kv_cache_mixin.py, pool_configurator.py.
    """
    if cell_size <= 0:
        raise ValueError(f"a token needs memory: cell size {cell_size}")
    if since(release, ROUND_BYTES_SINCE):
        return over_corners(lambda b: int(int(b) // cell_size), rest_bytes)
    return over_corners(lambda b: int(b // cell_size), rest_bytes)


def rest_for_tokens(count: Interval, cell_size: float, page_size: int = 1) -> Interval:
    """Return the bytes of budget that give this many tokens after whole pages are taken.

    tokens * cell <= rest < (tokens + page_size) * cell. For what is wanted, not seen, only the low end matters.
    """
    return Interval(count.low * cell_size, (count.high + page_size) * cell_size)


def fraction_for_rest(avail: Interval, total: Interval, rest_bytes: Interval) -> Interval:
    """Return the fraction that leaves this rest: f = 1 - (A - rest) / T.

    Args:
        avail, total, rest_bytes: A, T, rest; bytes.

    Returns:
        May lie outside 0..1: then no fraction gives this.

    Raises:
        ValueError: T is not positive.

    Releases: 0.1.13 on, where no floor binds.
    """
    _require_positive(total)
    return over_corners(lambda taken, t: 1 - taken / t, avail - rest_bytes, total)


def total_for_rest(avail: Interval, fraction: Interval, rest_bytes: Interval) -> Interval:
    """Return T from the rest: T = (A - rest) / (1 - f). No release prints T; it is the free memory before the weights.

    Raises:
        ValueError: a fraction of 1 or more.
    """
    if fraction.high >= 1:
        raise ValueError(f"with a fraction of {fraction.high} nothing is reserved, and T cannot be told")
    return over_corners(lambda taken, f: taken / (1 - f), avail - rest_bytes, fraction)


def fraction_for_reserve(total: Interval, kept: Interval) -> Interval:
    """Return the fraction that leaves so many bytes free: f = 1 - kept / T.

    Raises:
        ValueError: T is not positive.

    Releases: 0.1.13 on, where no floor binds.
    """
    _require_positive(total)
    return over_corners(lambda k, t: 1 - k / t, kept, total)


def fraction_for_tokens(avail: Interval, total: Interval, count: float, cell_size: float) -> Interval:
    """Return the least fraction that gives this many tokens: f = 1 - (A - tokens * cell) / T.

    The high end is safe for all values that A and T may have; the low end suffices only for the most favourable ones.
    """
    return fraction_for_rest(avail, total, exact(count * cell_size))


def minimum_fraction(avail: Interval, total: Interval) -> Interval:
    """Return the fraction at which nothing is left for the KV cache: 1 - A / T. A launch needs more than this.

    Releases: the arithmetic 0.1.13 on; printed from 0.5.14 on. Source: as ``hint``.
    """
    return fraction_for_rest(avail, total, NOTHING)


def hint(avail: Interval, total: Interval) -> Interval:
    """Return the fraction that SGLang's error suggests from 0.5.14 on: the minimum, rounded up to three decimals.

    At exactly this fraction the rest may be next to 0, and the launch fails again. For Mamba models the state pool is not counted in it.

    Source: sglang/srt/model_executor/model_runner_kv_cache_mixin.py (0.5.14, 0.5.15), mem_cache/kv_cache_configurator.py (0.5.16 on).
    """
    return over_corners(lambda minimum: math.ceil(minimum * 1000) / 1000, minimum_fraction(avail, total))


def _require_positive(total: Interval) -> None:
    if total.low <= 0:
        raise ValueError(f"memory before the weights must be positive: {total.low}")
