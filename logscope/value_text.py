"""Values of events in words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from logscope.frames import plain
from logscope.model import Value
from logscope.units import Quantity, count_text, gib, seconds_text


def values_text(values: Mapping[str, Value]) -> str:
    """Write values for people: memory in GiB, short names."""
    return "  ".join(f"{_short_name(name)}={_value_text(name, value)}" for name, value in values.items())


def _short_name(name: str) -> str:
    return name.removesuffix("_bytes").removesuffix("_s") if name != "bytes" else name


def _value_text(name: str, value: Value) -> str:
    if isinstance(value, Quantity):
        if name.endswith("_bytes"):
            return f"{gib(value.value, value.resolution)}GiB" if value.resolution > 1 else f"{count_text(value.value)}B"
        if name.endswith("_s"):
            return f"{seconds_text(value.value, value.resolution)}s"
        return f"{value.value:.0f}" if value.value == int(value.value) else f"{value.value:g}"
    shown = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
