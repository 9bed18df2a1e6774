"""Out of device memory: in which stage of the launch, what was free, who holds the rest, how much lower the fraction has to be."""

from __future__ import annotations

import math

from msgspec import Struct

from logscope.amounts import gib_text, tokens_text
from logscope.budget import Interval, exact, interval_of
from logscope.causes._held import others_of, own_bytes
from logscope.causes._place import has_ended, has_pools, is_capturing, is_loading, is_serving
from logscope.causes._types import Case, Direction
from logscope.causes._words import argument, bytes_text, is_from, none_works, per_rank, quoted, uncapped
from logscope.sizing import Grant, WhatIf, fraction_used, grant_for
from logscope.units import GIB, Quantity, count_text, gib

_LIBRARIES = 4 * GIB  # what contexts, NCCL and workspaces take on a device before the weights is less

_NEXT_TO_NOTHING = GIB // 2


def stage_of(case: Case) -> str | None:
    """Return the cause that a lack of device memory is, by the stage of the launch; None where it is none, or the log has no stage."""
    if not case.is_out_of_device_memory:
        return None
    if case.was_ready:
        return "oom_runtime"
    if is_capturing(case):
        return "oom_graph_capture"
    if case.phase is None:
        return None
    if is_loading(case):
        return "oom_weight_load"
    if is_serving(case):
        return "oom_runtime"
    if has_pools(case):
        return "oom_backend_init"
    if has_ended(case, "load_weights"):
        return "oom_kv_pool"
    own = own_bytes(case)
    is_filled_by_itself = own is not None and own > _LIBRARIES  # the weights are there, if no line says so
    return None if is_filled_by_itself else "oom_weight_load"


def shortage(case: Case) -> str:
    """Return ": 2.54 GiB asked, 2.44 GiB free of 95.58", of what the line states; empty where it states nothing."""
    asked, free, total = (case.said.quantity(f"{name}_bytes") for name in ("asked", "free", "total"))
    parts = [f"{bytes_text(asked)} asked"] if asked else []
    if free:
        parts.append(f"{bytes_text(free)} free{f' of {gib(total.value)}' if total else ''}")
    elif total:
        parts.append(f"the device has {bytes_text(total)}")
    others = others_of(case)
    if others is not None and others.is_surely_foreign:
        parts.append(f"{gib(others.amount)} GiB held by other processes")
    if case.said.pattern.id == "failure.driver_out_of_memory" and case.root.pattern.cause == "collective_failed":
        parts.append(f"NCCL's last error is {quoted(case)}")
    return f": {', '.join(parts)}" if parts else ""


def missing(case: Case) -> Interval:
    """Return what was asked for beyond what was free, in bytes; 0 where the line does not say."""
    return beyond(case.said.quantity("asked_bytes"), case.said.quantity("free_bytes"))


def beyond(asked: Quantity | None, free: Quantity | None) -> Interval:
    """Return how much more an amount is than another, at least 0; 0 where one of them is not known."""
    if asked is None or free is None:
        return exact(0)
    lack = interval_of(asked) - interval_of(free)
    return Interval(max(0.0, lack.low), max(0.0, lack.high))


# ---- lower the fraction ------------------------------------------------------------------------------------------------------


class Lower(Struct, frozen=True):
    """What to lower, in words; ``direction`` is "lower" where it is the fraction, ``fraction`` the value to set."""

    remedy: str
    direction: Direction | None = None
    fraction: float | None = None
    is_possible: bool = True


def lower_fraction(case: Case, need: Interval, unknown: str = "") -> Lower:
    """Return what to lower so that a number of bytes becomes free, whether that is the fraction, and to which value.

    Args:
        case: the failure.
        need: bytes that have to become free.
        unknown: what else needs memory, in words, where the log does not tell how much: no value is named then.
    """
    fraction, total = fraction_used(case.sizing), case.sizing.total
    if case.sizing.bound_by == "max_total_tokens":
        if unknown:
            return Lower(f"Lower --max-total-tokens, which sets the KV cache here{_beside(need, unknown)}.")
        return Lower(_lower_cap(case, need))
    if fraction is None:
        return Lower("Lower --mem-fraction-static; the value in force is not in this log.", "lower")
    if total is None:
        return Lower(f"Lower --mem-fraction-static below {fraction:.4g}.", "lower")
    minimum, target = case.sizing.fraction.minimum, _step_down(fraction - need.high / total.amount.low)
    if minimum is not None and target <= minimum.high:
        why = f"at {minimum.high:.3f} nothing is left for the KV cache, and {gib_text(need)} GiB more are needed than {fraction:.4g} leaves"
        return Lower(none_works(why), is_possible=False)
    if unknown:
        return Lower(f"Lower --mem-fraction-static (now {fraction:.4g}){_beside(need, unknown)}.", "lower")
    return Lower(_lowered(case, fraction, target), "lower", target)


def _beside(need: Interval, unknown: str) -> str:
    lacked = f"{gib_text(need)} GiB were missing, and " if need.high else ""
    return f": {lacked}{unknown} is not in this log"


def _step_down(fraction: float) -> float:
    """Return the next hundredth below."""
    return round((math.ceil(fraction * 100 - 1e-6) - 1) / 100, 2)


def _lowered(case: Case, fraction: float, target: float) -> str:
    total = case.sizing.total
    assert total is not None
    freed = exact((fraction - target) * (total.amount.low + total.amount.high) / 2)
    grant = grant_for(case.launch, case.sizing, WhatIf(fraction=target))
    return (
        f"Lower --mem-fraction-static from {fraction:.4g} to {target:.2f}: that frees {per_rank(freed, case)}"
        f"{_left(case, grant)}."
    )


def _left(case: Case, grant: Grant | None) -> str:
    """Say what is left for the KV cache: tokens, or bytes where the log has no cell size."""
    if grant is None:
        return ""
    if grant.tokens is None:
        hardly = ", next to nothing" if grant.rest.high < _NEXT_TO_NOTHING else ""
        return f" and leaves {per_rank(grant.rest, case)} for the KV cache{hardly}" if grant.rest.low > 0 else ""
    if grant.tokens.low <= 0:
        return ""
    now = case.sizing.tokens
    if now is not None and grant.tokens.high >= now.amount.low:
        return ""  # the fraction in force is not what set the pool
    was = f" of {count_text(now.amount.low)}" if now is not None else ""
    return f" and leaves {tokens_text(grant.tokens)}{was} tokens"


def _lower_cap(case: Case, need: Interval) -> str:
    """The pool is as large as --max-total-tokens says: a lower fraction would not change it."""
    tokens, cell = case.sizing.tokens, case.sizing.cell
    if tokens is None or cell is None or cell.charged.low <= 0:
        return "Lower --max-total-tokens, which sets the size of the KV cache here."
    count = (tokens.amount.low - math.ceil(need.high / cell.charged.low)) // 1000 * 1000
    if count <= 0:
        return "Lower --max-total-tokens, which sets the size of the KV cache here; it alone does not free enough."
    return (
        f"Lower --max-total-tokens from {count_text(tokens.amount.low)} to {count_text(int(count))}: it sets the size of the KV "
        "cache here, not the fraction."
    )


def cheaper(case: Case, *names: str) -> list[str]:
    """Return "--chunked-prefill-size 4096 (now 8192)" for each argument that is a number and can be halved."""
    found = []
    for name in names:
        value = argument(case, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            found.append(f"--{name.replace('_', '-')} {value // 2} (now {value})")
    return found


def alternatives(case: Case, choices: list[str], remedy: str) -> str:
    """Write "Try first --a 1 (now 2), which takes nothing from the KV cache. Or lower ..."; the remedy alone without choices."""
    if not choices:
        return remedy
    fixed = pinned(case) if choices[0].startswith("--chunked-prefill-size") else ""
    takes = "take" if len(choices) > 1 else "takes"
    first = f"Try first {' or '.join(choices)}, which {takes} nothing from the KV cache{fixed}."
    return f"{first} Or {uncapped(remedy)}" if remedy.startswith("Lower") else f"{first} {remedy}"


def pinned(case: Case) -> str:
    """Say that the fraction has to be given, too: from 0.5.3 on the default follows the sizes of chunks and graphs."""
    ran = fraction_used(case.sizing)
    if ran is None or case.sizing.fraction.typed is not None or not is_from(case, "0.5.3"):
        return ""
    return f", with --mem-fraction-static {round(ran, 3):g}, as the default follows these sizes"
