"""The default fraction before 0.5.3: tables by parallel size, then classes of cards."""

from __future__ import annotations

from logscope.budget.flags import DefaultFraction, LaunchFlags
from logscope.budget.interval import NotModelled
from logscope.budget.releases import since

# From which release on, and (parallel size from, fraction), largest first.
TABLES: tuple[tuple[str, tuple[tuple[int, float], ...]], ...] = (
    ("0.4.0", ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))),
    ("0.3.6", ((16, 0.79), (8, 0.82), (4, 0.85), (2, 0.87), (1, 0.88))),
    ("0.2.7", ((16, 0.79), (8, 0.83), (4, 0.85), (2, 0.87), (1, 0.88))),
    ("0.1.24", ((16, 0.80), (8, 0.84), (4, 0.86), (2, 0.88), (1, 0.89))),
    ("0.1.21", ((16, 0.74), (8, 0.78), (4, 0.82), (2, 0.85), (1, 0.88))),
    ("0.1.20", ((8, 0.78), (4, 0.80), (2, 0.85), (1, 0.88))),
    ("0.1.13", ((8, 0.80), (4, 0.82), (2, 0.85), (1, 0.90))),
)
CARD_SINCE, STEPS_SINCE, CLASSES_SINCE = "0.4.5.post3", "0.4.6.post2", "0.4.7.post1"


def by_table(flags: LaunchFlags, release: str) -> DefaultFraction | NotModelled:
    """Return the default fraction before 0.5.3, without factors for multimodal models.

    Source: sglang/srt/server_args.py (__post_init__).
    """
    if since(release, CLASSES_SINCE):
        return _by_class(flags, release)
    if since(release, STEPS_SINCE):
        return _by_steps(flags, release)
    if since(release, CARD_SINCE):
        if flags.card_mib is None:
            return NotModelled(f"an unknown card in SGLang {release}, which needs to know it")
        if flags.card_mib > 81920:
            return _plain((flags.card_mib - 1024 * 13) / flags.card_mib)
    return _plain(_from_table(flags.tp, release))


def _plain(fraction: float) -> DefaultFraction:
    return DefaultFraction(fraction, fraction)


def _from_table(parallel: int, release: str) -> float:
    table = next(rows for first, rows in TABLES if since(release, first))
    return next(fraction for size, fraction in table if parallel >= size)


def _by_steps(flags: LaunchFlags, release: str) -> DefaultFraction | NotModelled:
    """0.4.6.post2 to 0.4.7: .88 above 80 GiB; above 96 GiB the smaller of two formulas, and in 0.4.7 terms for speculation."""
    card, late = flags.card_mib, since(release, "0.4.7")
    if card is None and not since(release, "0.4.6.post5"):
        return NotModelled(f"an unknown card in SGLang {release}, which needs to know it")
    fraction = _from_table(flags.tp * flags.pp, release) if card is not None and card <= 81920 else 0.88
    if late and card is not None and card > 180 * 1000 and flags.cuda:
        return _plain(0.79)
    if card is not None and card > 96 * 1024:
        kept = 1024 * (20 if late and flags.speculative else 18)
        return _plain(min(fraction + 48 * 1024 * (1 - fraction) / card, (card - kept) / card))
    return _plain(fraction * 0.95 if late and flags.speculative else fraction)


def _by_class(flags: LaunchFlags, release: str) -> DefaultFraction:
    """0.4.7.post1 to 0.5.2: a reserve by class of card and tp * pp; more for speculation and DP attention."""
    card, parallel = flags.card_mib, flags.tp * flags.pp
    if card is None:
        return _plain(0.88)
    if card < 35 * 1024:
        reserved = (2.8 + parallel / 10) * 1024
    elif card < 90 * 1024:
        reserved = (9.5 + parallel / 2) * 1024
    elif card < 160 * 1024:
        reserved = (12 + parallel / 2) * 1024
    else:
        reserved = 32.0 * 1024
    if flags.speculative:
        reserved += (6 if flags.speculative == "STANDALONE" and since(release, "0.5.2") else 2) * 1024
    if flags.dp_attention:
        reserved += 4 * 1024
    fraction = round((card - reserved) / card, 3)
    return DefaultFraction(fraction, fraction, reserved)
