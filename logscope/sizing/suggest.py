"""Which fraction to set."""

from __future__ import annotations

import math

from logscope import budget
from logscope.budget import Interval, exact
from logscope.model import Launch
from logscope.sizing.types import Sizing

HIGHEST_FRACTION = 0.95  # above it hardly anything is left for graphs and activations, on any card


def least_viable(minimum: float) -> float:
    """Return the least fraction, in steps of 0.001, that leaves something for every value that the printed numbers allow."""
    return round(math.floor(minimum * 1000 + 1) / 1000, 3)


def suggested_fraction(launch: Launch, sizing: Sizing) -> float | None:
    """Return the fraction to raise to: half way from the least that starts to what leaves as much free as SGLang itself would.

    The reserve that SGLang chooses is not known exactly where the card is not; see ``default_reserve``. None: no fraction works.
    """
    minimum, total = sizing.fraction.minimum, sizing.total
    if minimum is None or total is None:
        return None
    least = least_viable(minimum.high)
    if least >= HIGHEST_FRACTION:
        return None
    kept = default_reserve(launch, total.amount.low)
    highest = min(HIGHEST_FRACTION, _leaving(kept, total.amount)) if kept is not None else min(HIGHEST_FRACTION, 0.88)
    middle = math.floor((least + highest) / 2 * 100) / 100
    return max(least, round(middle, 2))


def _leaving(kept: float, total: Interval) -> float:
    return budget.fraction_for_reserve(total, exact(kept)).low


def default_reserve(launch: Launch, total: float) -> float | None:
    """Return the bytes that SGLang would keep free by its own default for these flags; None where that is not modelled.

    The card is taken to be as large as what is free before the weights: its true size is in no line, and the reserve depends on its
    class only.
    """
    release = launch.releases.since
    if release is None:
        return None
    values = launch.args.values
    card_mib = total / (1 << 20)

    def number(name: str, otherwise: int) -> int:
        value = values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else otherwise

    flags = budget.LaunchFlags(
        card_mib=card_mib,
        tp=number("tp_size", 1),
        pp=number("pp_size", 1),
        dp=number("dp_size", 1),
        dp_attention=values.get("enable_dp_attention") is True,
        speculative=str(values["speculative_algorithm"]) if values.get("speculative_algorithm") else None,
        chunked_prefill_size=number("chunked_prefill_size", 0) or None,
        graph_max_bs=number("cuda_graph_max_bs", 0) or number("cuda_graph_max_bs_decode", 0) or None,
    )
    chosen = budget.default_fraction(flags, release)
    return (
        None
        if isinstance(chosen, budget.NotModelled)
        else budget.reserve(exact(total), exact(chosen.in_force)).amount.low
    )
