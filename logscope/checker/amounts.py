"""Amounts and bounds of rules: "150k tokens", "9.5 GiB", "12 min", ">= baseline - 1 %"."""

from __future__ import annotations

import re

from logscope.checker.types import Amount, Bound, Operator
from logscope.units import GIB, KIB, MIB, Quantity

_AMOUNT = re.compile(
    r"\s*(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?)\s*(?P<unit>%|[A-Za-z]*(?:\s+[A-Za-z]+)?)\s*"
)
_BOUND = re.compile(r"\s*(?P<operator><=|>=|==|!=|<|>)\s*(?P<rest>.+?)\s*")
_BASELINE = re.compile(r"baseline\s*(?:(?P<sign>[+-])\s*(?P<amount>.+))?")
_UNITS: dict[str, tuple[float, str]] = {
    "gib": (GIB, "bytes"), "gb": (GIB, "bytes"), "mib": (MIB, "bytes"), "mb": (MIB, "bytes"), "kib": (KIB, "bytes"), "kb": (KIB, "bytes"),
    "bytes": (1, "bytes"), "b": (1, "bytes"),
    "s": (1, "s"), "sec": (1, "s"), "min": (60, "s"), "m": (60, "s"), "h": (3600, "s"), "ms": (0.001, "s"),
    "tokens": (1, "tokens"), "token": (1, "tokens"), "%": (0.01, "percent"), "": (1, ""),
}  # fmt: skip
_SCALES = {"k": 1_000, "M": 1_000_000}
UNIT_WORDS = "GiB, MiB, bytes, tokens (150k tokens), s, min, h, % or none"


def read_amount(text: str) -> Amount | None:
    """Read a number with its unit, None if it is none. "GB" is GiB, as SGLang prints it; k and M are thousands and millions."""
    match = _AMOUNT.fullmatch(text)
    unit = _unit(match["unit"]) if match else None
    if match is None or unit is None:
        return None
    factor, dimension = unit
    number = float(match["number"].replace(",", "").replace("_", ""))
    return Amount(number * factor, dimension, text.strip())


def _unit(word: str) -> tuple[float, str] | None:
    """Return the factor and the dimension of a unit: "M" is a million, "m" are minutes."""
    scale = _SCALES.get(word[:1])
    if scale is not None and word[1:].strip().lower() in ("", "token", "tokens"):
        return scale, "tokens" if word[1:] else ""
    return _UNITS.get(word.lower())


def read_bound(text: str, *, of_share: bool = False) -> Bound | None:
    """Read a comparison, None if it is none: ">= 150k tokens", "<= baseline + 0.30 GiB", ">= baseline - 1 %", "== 8".

    Args:
        of_share: the value is a share, which is compared with percent.
    """
    match = _BOUND.fullmatch(text)
    if match is None:
        return None
    operator: Operator = match["operator"]  # type: ignore[assignment] # one of them, by the regex
    baseline = None if of_share else _BASELINE.fullmatch(match["rest"])
    if baseline is None:
        amount = read_amount(match["rest"])
        is_share = amount is not None and amount.dimension == "percent"
        return None if amount is None or is_share != of_share else Bound(operator, amount, text=text.strip())
    if baseline["amount"] is None:
        return Bound(operator, None, from_baseline=True, text=text.strip())
    amount = read_amount(baseline["amount"])
    if amount is None or amount.value < 0:
        return None
    return Bound(operator, amount, from_baseline=True, sign=1 if baseline["sign"] == "+" else -1, text=text.strip())


def limit_of(bound: Bound, baseline: Quantity | None = None) -> Quantity | None:
    """Return what to compare with; None where it needs a baseline and there is none. A baseline keeps its print resolution."""
    if not bound.from_baseline:
        return Quantity(bound.amount.value, 0) if bound.amount else None
    if baseline is None or bound.amount is None:
        return baseline
    is_share = bound.amount.dimension == "percent"
    step = abs(baseline.value) * bound.amount.value if is_share else bound.amount.value
    return Quantity(baseline.value + bound.sign * step, baseline.resolution)


def holds(bound: Bound, value: Quantity, limit: Quantity) -> bool:
    """Return whether a value may satisfy a bound: a difference below print resolution breaks nothing."""
    return {
        "<=": value.low <= limit.high,
        "<": value.low < limit.high,
        ">=": value.high >= limit.low,
        ">": value.high > limit.low,
        "==": value.meets(limit),
        "!=": not value.low == value.high == limit.low == limit.high,
    }[bound.operator]
