"""Which way an argument moves things, and how far: one that moved the other way, or not as far, cannot have made a change."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase

from logscope.differ.types import ArgChange

# (argument, effect, 1 where more of the argument is more of the effect, else -1). Effects on the budget are more where they give to it,
# graphs where they take more. The reserve that SGLang derives mem_fraction_static from grows with graphs, chunks and ranks: server_args.py,
# 0.4.6.post5 to 0.5.23.
_SIGNS = (
    ("mem_fraction_static", "fraction", 1),
    ("cuda_graph*bs*", "fraction", -1),
    ("chunked_prefill_size", "fraction", -1),
    ("tp_size", "weights", 1),
    ("tp_size", "free_at_init", -1),
    ("tp_size", "distributed_init", -1),
    ("tp_size", "distributed_init_beside", 1),
    ("pp_size", "weights", 1),
    ("cpu_offload_gb", "weights", 1),
    ("max_total_tokens", "limits", 1),
    ("cuda_graph*bs*", "graphs", 1),
    ("cuda_graph*bs*", "graph_time", 1),
    ("max_running_requests", "graphs", 1),
    ("max_running_requests", "graph_time", 1),
    ("disable*_cuda_graph", "graphs", -1),
    ("disable*_cuda_graph", "graph_time", -1),
    ("enable_lora", "between", -1),
    ("max_lora*", "between", -1),
)
_SHARES = ("tp_size", "pp_size")
_UNEVEN = 0.25  # layers and vocabularies are cut unevenly, some parts not at all: of the logarithm of the ratio
_NO_CAP = ("max_total_tokens",)  # None is more than any number


def could_make(arg: ArgChange, term: str, *, is_up: bool | None) -> bool:
    """Return whether an argument's change can have moved an effect up or down; True where nothing is known of it."""
    sign = next((sign for name, own, sign in _SIGNS if own == term and fnmatchcase(arg.name, name)), None)
    is_more = _is_more(arg)
    if sign is None or is_up is None or is_more is None:
        return True
    return (is_more == (sign > 0)) == is_up


def _is_more(arg: ArgChange) -> bool | None:
    """Return whether the value after is the larger one; None where that is not known: of a list both its length and its largest count."""
    before, after = _numbers(arg.name, arg.before), _numbers(arg.name, arg.after)
    if before is None or after is None:
        return None
    moves = {second > first for first, second in zip(before, after, strict=True) if first != second}
    return moves.pop() if len(moves) == 1 else None


def _numbers(name: str, text: str | None) -> tuple[float, float] | None:
    """Return a value as two numbers: how many there are in a list, and the largest."""
    listed = re.fullmatch(r"\[(\d+(?:, *\d+)*)\]", text or "")
    if listed:
        numbers = [float(number) for number in listed[1].split(",")]
        return len(numbers), max(numbers)
    number = _number(name, text)
    return None if number is None else (1, number)


def could_make_alone(arg: ArgChange, figures: tuple[float | None, float | None]) -> bool:
    """Return whether an argument's change can have made all of an effect: other shares of a model are no other model.

    Args:
        figures: what the effect is about in both launches, bytes: the weights of a rank.
    """
    parts = _number(arg.name, arg.before), _number(arg.name, arg.after)
    if arg.name not in _SHARES or not all(figures) or not all(parts):
        return True
    moved, given = (abs(math.log((pair[0] or 1) / (pair[1] or 1))) for pair in (figures, parts))
    return moved <= given + _UNEVEN


def _number(name: str, text: str | None) -> float | None:
    if text in (None, "None"):
        return float("inf") if name in _NO_CAP else None
    if text in ("True", "False"):
        return float(text == "True")
    try:
        return float(text or "")
    except ValueError:
        return None
