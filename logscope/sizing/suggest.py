"""Which fraction to set."""

from __future__ import annotations

import math

from logscope import budget
from logscope.budget import Interval, exact
from logscope.model import Launch
from logscope.server_args import arg_number
from logscope.sizing.types import Sizing
from logscope.units import MIB

HIGHEST_FRACTION = 0.95  # above it hardly anything is left for graphs and activations, on any card
NARROW = 0.01  # of a window: less is no pool that serves
USUAL_FRACTION = 0.88  # what SGLang takes where it does not know the card (0.4.6.post5 to 0.5.19)


def least_viable(minimum: float) -> float:
    """Return the least fraction, in steps of 0.001, that leaves something for every value that the printed numbers allow."""
    return round(math.floor(minimum * 1000 + 1) / 1000, 3)


def suggested_fraction(launch: Launch, sizing: Sizing) -> float | None:
    """Return the fraction to raise to: half way from the least that starts to what leaves as much free as SGLang itself would.

    The reserve that SGLang chooses is not known exactly where the card is not; see ``default_reserve``. Always below what ran out of
    memory in an earlier launch. None: no fraction works.
    """
    minimum, total = sizing.fraction.minimum, sizing.total
    if minimum is None or total is None:
        return None
    least = least_viable(minimum.high)
    highest = HIGHEST_FRACTION if sizing.run_out is None else min(HIGHEST_FRACTION, sizing.run_out.fraction)
    if least >= highest or (sizing.run_out is not None and highest - least < NARROW):
        return None
    kept = default_reserve(launch, total.amount.low)
    usual = _leaving(kept, total.amount) if kept is not None else USUAL_FRACTION
    middle = math.floor((least + min(highest, usual)) / 2 * 100) / 100
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

    def number(name: str) -> int | None:
        return int(arg_number(values, name) or 0) or None

    flags = budget.LaunchFlags(
        card_mib=total / MIB,
        tp=number("tp_size") or 1,
        pp=number("pp_size") or 1,
        dp=number("dp_size") or 1,
        dp_attention=values.get("enable_dp_attention") is True,
        speculative=str(values["speculative_algorithm"]) if values.get("speculative_algorithm") else None,
        chunked_prefill_size=number("chunked_prefill_size"),
        graph_max_bs=number("cuda_graph_max_bs") or number("cuda_graph_max_bs_decode"),
    )
    chosen = budget.default_fraction(flags, release)
    if isinstance(chosen, budget.NotModelled):
        return None
    return budget.reserve(exact(total), exact(chosen.in_force)).amount.low
