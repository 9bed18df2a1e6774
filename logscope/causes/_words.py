"""Numbers and phrases that several causes share."""

from __future__ import annotations

from collections.abc import Iterable

from logscope.amounts import gib_text, tokens_text
from logscope.budget import Interval
from logscope.causes._types import Case
from logscope.model import Pos
from logscope.server_args import ArgValue, arg_number
from logscope.sizing import HIGHEST_FRACTION, WhatIf, grant_for, least_viable, suggested_fraction
from logscope.units import MIB, Quantity, gib
from logscope.words import clip

_SMALL = 256 * MIB


def quoted(case: Case, limit: int = 240) -> str:
    """Return the line that says why, on one line of bounded length."""
    return clip(case.message, limit).rstrip(".: ")


def because(case: Case) -> str:
    """Return what kind of failure the line is, by its pattern, and the line."""
    means = case.said.pattern.means.partition(";")[0].partition(": ")[0]
    return f"{means}{on_rank(case)}: {quoted(case)}" if means else quoted(case)


def bytes_text(amount: Quantity) -> str:
    """Write a printed number of bytes as GiB, or MiB where it is small."""
    return f"{gib(amount.value)} GiB" if abs(amount.value) >= _SMALL else f"{amount.value / MIB:,.0f} MiB"


def decimal_gb(amount: Quantity) -> str:
    """Write bytes as decimal GB, as SGLang's lines about the host do."""
    return f"{amount.value / 1e9:,.2f} GB"


def per_rank(amount: Interval, case: Case) -> str:
    """Write an amount that each rank has."""
    return f"{gib_text(amount)} GiB{' per rank' if len(case.launch.ranks) > 1 else ''}"


def on_rank(case: Case) -> str:
    """Return " on TP1" where there are several ranks and the one that failed is known."""
    return f" on {case.root.rank.label}" if case.root.rank.tag and len(case.launch.ranks) > 1 else ""


def uncapped(sentence: str) -> str:
    """Return a sentence to be put behind a comma."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def listed(names: Iterable[str]) -> str:
    """Write names as "a", "a and b", "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def divisors_text(size: int, below: int) -> str:
    """Write the divisors of a size that are less than another number, the largest first: "4, 2 or 1"."""
    *most, last = [str(each) for each in range(min(size, below - 1), 0, -1) if size % each == 0]
    return f"{', '.join(most)} or {last}" if most else last


# ---- arguments ---------------------------------------------------------------------------------------------------------------


def argument(case: Case, name: str) -> ArgValue:
    """Return an argument in force, else as it was typed; None where the log has neither."""
    launch = case.launch
    if name in launch.args.values:
        return launch.args.values[name]
    return launch.command.flags.get(name) if launch.command else None


def number(case: Case, name: str) -> float | None:
    """Return an argument that is a number."""
    return arg_number({name: argument(case, name)}, name)


def is_from(case: Case, release: str) -> bool:
    """Return whether the launch is surely of a release or a later one."""
    return not case.launch.releases.overlaps(None, release)


def is_before(case: Case, release: str) -> bool:
    """Return whether the launch is surely of an earlier release."""
    return not case.launch.releases.overlaps(release, None)


def settings(case: Case, *names: str) -> str:
    """Write the arguments in force that are set: "quantization=fp8, load_format=auto"; empty where the log has none."""
    shown = ((name, argument(case, name)) for name in names if name in case.launch.args.values)
    return ", ".join(f"{name}={value}" for name, value in shown)


# ---- the fraction ------------------------------------------------------------------------------------------------------------


def floor_of(case: Case) -> tuple[Pos, ...]:
    """Return the lines that the least viable fraction comes from."""
    stated = (case.sizing.avail, case.sizing.total)
    return tuple(dict.fromkeys(each.pos for each in stated if each is not None))


def no_fraction_works(case: Case) -> bool:
    """Return whether even the highest fraction that makes sense leaves nothing."""
    minimum = case.sizing.fraction.minimum
    return minimum is not None and minimum.high >= HIGHEST_FRACTION


NONE_WORKS = "No workable fraction"


def none_works(why: str) -> str:
    """Say that no fraction works, why, and what is left to do: an FP8 cache is none of it, for there is no room for any cache."""
    return f"{NONE_WORKS}: {why}. Use more tensor parallelism, a smaller or quantized model, or no draft model."


def raise_fraction(case: Case, stated: float | None = None) -> str:
    """Say which fraction starts, or that none does; ``stated`` is the least by SGLang itself, where it says so."""
    minimum, now = case.sizing.fraction.minimum, case.sizing.fraction.in_force
    if minimum is None and stated is None:
        why = "" if case.sizing.contradictions else " (no free memory before and after the weights)"
        return f"Raise --mem-fraction-static; by how much is not in this log{why}."
    floor = max(minimum.high if minimum is not None else 0.0, stated or 0.0)
    if floor >= HIGHEST_FRACTION:
        return none_works(f"the weights alone need {floor:.3f}")
    least, wanted = least_viable(floor), suggested_fraction(case.launch, case.sizing)
    wanted = max(least, wanted or 0.0)
    if now is not None and wanted <= now:
        if now >= HIGHEST_FRACTION:
            return none_works(f"even {now:g} is too little")
        return f"Raise --mem-fraction-static above {now:g}; by how much is not in this log."
    if wanted == least:
        return f"Raise --mem-fraction-static to {least:.3f} at least{_leaves(case, least)}."
    too_little = f"{least:.3f} is the least that starts" if now is None or now < least else f"{now:g} is too little"
    return f"Raise --mem-fraction-static to {wanted:g}{_leaves(case, wanted)}; {too_little}."


def raise_by(case: Case, need: float) -> str:
    """Say which fraction gives a number of bytes more than the one in force; the one that is needed, where the numbers are not known."""
    now, total = case.sizing.fraction.in_force, case.sizing.total
    if now is None:
        return "Raise --mem-fraction-static."
    if total is None:
        return f"Raise --mem-fraction-static above {now:g}."
    least = least_viable(now + need / total.amount.low)
    if least > HIGHEST_FRACTION:
        return none_works(f"it would have to be {least:.3f}")
    return f"Raise --mem-fraction-static from {now:g} to {least:.3f} at least."


def _leaves(case: Case, fraction: float) -> str:
    """Say what a fraction leaves for the KV cache, in bytes and tokens."""
    grant = grant_for(case.launch, case.sizing, WhatIf(fraction=fraction))
    if grant is None or grant.rest.low <= 0:
        return ""
    tokens = f", {tokens_text(grant.tokens)} tokens" if grant.tokens is not None and grant.tokens.low > 0 else ""
    return f", which leaves {per_rank(grant.rest, case)} for the KV cache{tokens}"
