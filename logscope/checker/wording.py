"""Rules and values in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logscope.checker.types import Quantifier, Rule, Select, Value
from logscope.rank import Rank, parse_rank
from logscope.units import Quantity, count_text, gib
from logscope.words import clip, duration_text, rank_runs

MOST_GROUPS = 4


def number_text(number: float, dimension: str) -> str:
    """Write a number with the unit of its dimension."""
    if dimension == "bytes":
        return f"{gib(number)} GiB"
    if dimension == "s":
        return duration_text(number) if number >= 10 else f"{number:.3g} s"
    if dimension == "tokens":
        return f"{count_text(round(number))} tokens"
    return f"{number:g}"


def seconds_text(number: float) -> str:
    """Write a time as seconds, with the digits that clocks and logs print."""
    return f"{number:.2f}".rstrip("0").rstrip(".") + " s"


def range_text(numbers: Sequence[Quantity], dimension: str) -> str:
    """Write one number, or the least and the greatest where they differ."""
    low, high = min(number.value for number in numbers), max(number.value for number in numbers)
    first, last = number_text(low, dimension), number_text(high, dimension)
    return first if first == last else f"{first.removesuffix(_unit(last))}..{last}"


def _unit(text: str) -> str:
    return text[text.rindex(" ") :] if " " in text else ""


def amount_text(value: Value) -> str:
    """Write a value without its rank."""
    if value.number is not None:
        return number_text(value.number.value, value.dimension)
    return clip(value.text, 80) or "empty"


def values_text(values: Sequence[Value], most: int = MOST_GROUPS, *, in_seconds: bool = False) -> str:
    """Write values; ranks that have the same are named together: "TP0..TP6 10.42 GiB; TP7 9.42 GiB"; times in minutes, or in seconds."""
    groups: dict[str, list[Rank]] = {}
    for value in values:
        text = seconds_text(value.number.value) if in_seconds and value.number is not None else amount_text(value)
        groups.setdefault(text, []).append(parse_rank(value.rank))
    ordered = sorted(((sorted(set(ranks)), text) for text, ranks in groups.items()), key=lambda group: group[0][0])
    texts = [f"{', '.join(rank_runs(ranks, ranks))} {text}" if ranks[0].tag else text for ranks, text in ordered]
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more if texts else "nothing"


def select_text(select: Select) -> str:
    """Write what is looked at."""
    parts = [
        select.name,
        select.field.removesuffix("_bytes").removesuffix("_s") if select.source == "event" else select.field,
    ]
    text = " ".join(part for part in parts if part)
    extra = ", ".join(each for each in (select.worker, select.rank, select.role) if each)
    return f"{text} ({extra})" if extra else text


def expected_text(rule: Rule, limits: Mapping[Quantifier, str] | None = None) -> str:
    """Write what a rule asks for; ``limits`` are bounds with the baseline's value put in."""
    expect, what = rule.expect, select_text(rule.select) if rule.select else ""
    if expect.bounds:
        asked = [f"{name} {(limits or {}).get(name, bound.text)}" for name, bound in expect.bounds.items()]
        return f"{what}: {' and '.join(asked)}"
    if expect.equals is not None:
        return f"{what} is {expect.equals or 'empty'}"
    if expect.reach is not None:
        who = " on all ranks" if expect.all_ranks else ""
        within = duration_text(expect.within_s).removesuffix(" 00 s") if expect.within_s is not None else ""
        return f"{expect.reach} reached{who}{f' within {within}' if within else ''}"
    if expect.present:
        return f"{', '.join(expect.present)} there"
    if expect.absent:
        return f"{', '.join(expect.absent)} not there{f' before {expect.until}' if expect.until else ''}"
    if expect.sequence:
        return f"{' < '.join(expect.sequence)} on every rank"
    if expect.identity:
        return "the pool and mem_fraction_static agree"
    if expect.unchanged:
        return f"{', '.join(expect.unchanged)} as in the baseline"
    parts = [
        f"coverage {expect.coverage.text}" if expect.coverage else "",
        f"unknown memory lines {expect.unknown_lines.text}" if expect.unknown_lines else "",
    ]
    return ", ".join(part for part in parts if part)
