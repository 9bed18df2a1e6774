"""Printed numbers and their units: the border where text becomes base units (bytes, seconds, tokens).

SGLang prints "GB" and means GiB (2**30) for everything on the device; its HiCache host lines are decimal GB. Which of the two a
number is stands in the pattern files; no other module knows what a GiB is.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from msgspec import Struct

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Quantity(Struct, frozen=True):
    """A printed number in base units, and the step of its last printed digit.

    21.71 GB is 21.705..21.715 GiB: ``value`` is 21.71 GiB in bytes, ``resolution`` 0.01 GiB in bytes. Bytes and counts are whole
    numbers; a resolution of bytes is rounded up, so that neighbours such as 21.70 and 21.71 still touch.
    """

    value: float
    resolution: float

    @property
    def low(self) -> float:
        """The smallest value that prints like this."""
        return self.value - self.resolution / 2

    @property
    def high(self) -> float:
        """The largest value that prints like this."""
        return self.value + self.resolution / 2

    def meets(self, other: Quantity) -> bool:
        """Return whether both can stand for one true value."""
        return self.low <= other.high and other.low <= self.high

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.value + other.value, self.resolution + other.resolution)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.value - other.value, self.resolution + other.resolution)


class Unit(Struct, frozen=True):
    """A unit of the pattern files: how to get to the base unit, and what the base unit adds to a field's name."""

    scale: Decimal
    suffix: str
    whole: bool = False


def _unit(scale: int | str, suffix: str, whole: bool = False) -> Unit:
    return Unit(Decimal(scale), suffix, whole)


NUMBER_UNITS: dict[str, Unit] = {
    "GiB": _unit(GIB, "bytes", whole=True),
    "MiB": _unit(MIB, "bytes", whole=True),
    "KiB": _unit(KIB, "bytes", whole=True),
    "GB": _unit(10**9, "bytes", whole=True),
    "MB": _unit(10**6, "bytes", whole=True),
    "kB": _unit(10**3, "bytes", whole=True),
    "bytes": _unit(1, "bytes"),
    "s": _unit(1, "s"),
    "ms": _unit("0.001", "s"),
    "clock": _unit(1, "s"),
    "tokens": _unit(1, "tokens"),
    "count": _unit(1, ""),
    "ratio": _unit(1, ""),
    "per_s": _unit(1, ""),
    "percent": _unit("0.01", ""),
}
TEXT_UNITS = ("text", "list", "args", "command")
UNIT_NAMES = (*NUMBER_UNITS, *TEXT_UNITS)
_LARGEST = 2**63  # frames hold whole numbers of 64 bits; nothing that a server prints comes near


def result_name(field: str, unit: str) -> str:
    """Return a field's name in results: with its base unit, unless it is that unit or ends in it already."""
    suffix = NUMBER_UNITS[unit].suffix if unit in NUMBER_UNITS else ""
    if not suffix or field == suffix or field.endswith(f"_{suffix}"):
        return field
    return f"{field}_{suffix}"


def parse_number(text: str, unit: str) -> Quantity | None:
    """Read a number as printed ("21.71", "-561981", "178,880", "03:27" for a clock) into base units.

    Returns:
        None when the text is no finite number: "None", "?", "nan".
    """
    if unit == "clock":
        return _parse_clock(text)
    try:
        printed = Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None
    exponent = printed.as_tuple().exponent
    known = NUMBER_UNITS[unit]
    if not isinstance(exponent, int) or printed.adjusted() > 30 or abs(printed * known.scale) >= _LARGEST:
        return None  # NaN, infinity, no number that a log prints
    step = Decimal(1).scaleb(min(exponent, 0)) * known.scale
    value = printed * known.scale
    if known.whole:
        return Quantity(int(value.to_integral_value()), math.ceil(step))
    return Quantity(_plain(value), _plain(step))


def _plain(number: Decimal) -> float:
    return int(number) if number == number.to_integral_value() else float(number)


def _parse_clock(text: str) -> Quantity | None:
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(part.isdecimal() for part in parts):
        return None
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return Quantity(seconds, 1)


def gib(byte_count: float, resolution: float = 0.0) -> str:
    """Write bytes as GiB with as many decimals as the resolution allows, two at most."""
    decimals = 2 if resolution <= GIB // 10 else 1
    text = f"{byte_count / GIB:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def to_gib(byte_count: float) -> float:
    """Return bytes as a number of GiB."""
    return byte_count / GIB


def seconds_text(seconds: float, resolution: float = 1.0) -> str:
    """Write a duration with no more decimals than its resolution has; "~" marks one by clocks with one-second steps."""
    return f"{seconds:,.2f}" if resolution < 1 else f"{'~' if resolution > 1 else ''}{seconds:,.0f}"


def count_text(count: float) -> str:
    """Write a whole number with thousands separated."""
    return f"{count:,}" if isinstance(count, int) else f"{count:,.0f}"


def counted(count: float, what: str) -> str:
    """Write a whole number of things, "1 line" or "2 lines"."""
    return f"{count_text(int(count))} {what}{'' if count == 1 else 's'}"
