"""Which way an argument moves things, and how far: one that moved the other way, or not as far, cannot have made a change."""

from __future__ import annotations

import math
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
    before, after = _number(arg.name, arg.before), _number(arg.name, arg.after)
    sign = next((sign for name, own, sign in _SIGNS if own == term and fnmatchcase(arg.name, name)), None)
    if sign is None or is_up is None or before is None or after is None or before == after:
        return True
    return ((after - before) * sign > 0) == is_up


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
