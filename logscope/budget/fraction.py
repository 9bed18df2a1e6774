"""The fraction that SGLang chooses where none is given, by release, card and flags."""

from __future__ import annotations

from logscope.budget.flags import DefaultFraction, LaunchFlags
from logscope.budget.fraction_reserve import by_reserve
from logscope.budget.fraction_tables import by_table
from logscope.budget.interval import NotModelled
from logscope.budget.releases import since

TOWER_SINCE = "0.4.9.post3"
FIXED_FACTOR_SINCE = "0.4.9"
AITER_PRINTED_SINCE = "0.5.4.post1"


def default_fraction(flags: LaunchFlags, release: str) -> DefaultFraction | NotModelled:
    """Return the fraction that SGLang chooses, by the rule of the release.

    To 0.4.5.post2 a table by tp; to 0.4.7 one by tp * pp and, for large cards, a formula; to 0.5.2 round((card - R) / card, 3) with
    R by class of card; from 0.5.3 on the same with R from chunk and graph sizes. Multimodal models get less.

    Source: sglang/srt/server_args.py (to 0.5.18), arg_groups/memory_hook.py (0.5.19 on); model_executor/model_runner.py for factors.
    """
    if flags.dsa and since(release, "0.5.3") and not since(release, "0.5.3.post1"):
        return DefaultFraction(0.8, 0.8)
    chosen = by_reserve(flags, release) if since(release, "0.5.3") else by_table(flags, release)
    if isinstance(chosen, NotModelled):
        return chosen
    printed = chosen.printed
    if flags.vision is not None and not (flags.post_capture and since(release, "0.5.20")):
        printed *= multimodal_factor(flags, release)
    elif flags.vision is not None and flags.card_mib is not None and flags.disaggregation != "decode":
        printed -= 8 * 1024 / flags.card_mib
    if flags.long_aiter and since(release, AITER_PRINTED_SINCE):
        printed *= aiter_factor(release)
    in_force = fraction_in_force(printed, flags, release)
    return DefaultFraction(
        printed, in_force, chosen.reserved_mib, chosen.chunked_prefill_size, chosen.graph_max_bs, chosen.terms
    )


def multimodal_factor(flags: LaunchFlags, release: str) -> float:
    """Return the factor on a chosen fraction for a multimodal model (0.4.9 on): .90, from 0.4.9.post3 on by the tower's size.

    .95 * clamp(1 - .1 * (layers * hidden^2 / (24 * 1024^2) - 1), .8, 1.05), not rounded: a fraction with many decimals in the
    server arguments comes from this. A decode worker of a disaggregated server is not reduced from 0.5.17 on.
    """
    vision = flags.vision
    if vision is None or not since(release, FIXED_FACTOR_SINCE):
        return 1.0
    if not since(release, TOWER_SINCE):
        return 0.90
    if not vision.configured or (since(release, "0.5.17") and flags.disaggregation == "decode"):
        return 1.0
    complexity = vision.layers * vision.hidden**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (complexity - 1.0)))


def aiter_factor(release: str) -> float:
    """Return the factor for AITER attention with a context above 8192 (0.4.7 on): .85, but .90 in 0.5.4.post1."""
    if not since(release, "0.4.7"):
        return 1.0
    return 0.90 if since(release, AITER_PRINTED_SINCE) and not since(release, "0.5.4.post2") else 0.85


def fraction_in_force(fraction: float, flags: LaunchFlags, release: str) -> float:
    """Return the fraction that the budget uses, from the printed one. A given fraction is reduced just like a chosen one.

    Multimodal models: * .95 from 0.2.14.post2 to 0.4.4.post3, * .90 to 0.4.8.post1. AITER with a context above 8192: * .85 from
    0.4.7 to 0.5.4; later the printed one has it already.

    Source: sglang/srt/model_executor/model_runner.py.
    """
    if flags.vision is not None and since(release, "0.2.14.post2") and not since(release, FIXED_FACTOR_SINCE):
        fraction *= 0.90 if since(release, "0.4.4.post4") else 0.95
    if flags.long_aiter and since(release, "0.4.7") and not since(release, AITER_PRINTED_SINCE):
        fraction *= aiter_factor(release)
    return fraction
