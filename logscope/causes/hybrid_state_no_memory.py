"""The states of linear attention (Mamba) layers do not fit into what mem_fraction_static grants, or not for a single request."""

from __future__ import annotations

from logscope.causes._oom import beyond, lower_fraction
from logscope.causes._types import Case, Diagnosis, Direction
from logscope.causes._words import (
    NONE_WORKS,
    argument,
    bytes_text,
    floor_of,
    no_fraction_works,
    number,
    raise_by,
    uncapped,
)

ID = "hybrid_state_no_memory"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis, by which of the three pools of states it is."""
    if not case.tells(ID):
        return None
    if case.said.pattern.id == "failure.mamba_checkpoint_pool":
        return _checkpoints(case)
    sentence, remedy = _too_few(case) if case.said.quantity("max_num_reqs") else _no_room(case)
    direction: Direction | None = None if no_fraction_works(case) or NONE_WORKS in remedy else "raise"
    return Diagnosis(ID, sentence, direction, remedy, evidence=floor_of(case))


def _no_room(case: Case) -> tuple[str, str]:
    states, rest, each = (
        case.said.quantity(name) for name in ("max_mamba_cache_size", "total_rest_bytes", "cache_per_request_bytes")
    )
    sentence = "not enough memory for the states of the linear attention layers"
    parts = [f"{bytes_text(rest)} are left for them and the KV cache"] if rest else []
    parts += [f"a state takes {bytes_text(each)}"] if each else []
    parts += [f"max_mamba_cache_size comes to {states.value:g}"] if states else []
    sentence += f": {', '.join(parts)}" if parts else ""
    missing = each.high - rest.low if each and rest else 0.0
    return sentence, f"{_fewer_states(case)} {raise_by(case, max(0.0, missing))}"


def _fewer_states(case: Case) -> str:
    choices = []
    for name in ("max_mamba_cache_size", "max_running_requests"):
        now = number(case, name)
        choices.append(f"--{name.replace('_', '-')}{f' (now {now:g})' if now else ''}")
    if argument(case, "max_mamba_cache_size") is None:
        choices = choices[1:]  # SGLang chose it: it is what is left, not what was asked for
    if argument(case, "speculative_num_draft_tokens"):
        choices.append("--speculative-num-draft-tokens, each of which keeps states of its own")
    return f"Lower {' or '.join(choices)}, or give the states more memory."


def _too_few(case: Case) -> tuple[str, str]:
    states, ratio = case.said.quantity("max_mamba_cache_size"), case.said.quantity("mamba_ratio")
    sentence = "the states of the linear attention layers are too few to serve a single request"
    now = case.sizing.fraction.in_force
    more = f"Raise --mem-fraction-static{f' above {now:g}' if now else ''}, or lower --max-running-requests."
    if not states or not ratio:
        return sentence, more
    sentence += f": max_mamba_cache_size is {states.value:g}, and a request takes {ratio.value:g}"
    if argument(case, "max_mamba_cache_size") is not None:
        return sentence, f"Set --max-mamba-cache-size to {ratio.value:g} at least. {more}"
    return sentence, more


def _checkpoints(case: Case) -> Diagnosis:
    """The int8 checkpoints are taken from what the fraction leaves free: here the fraction is too high."""
    needed, free = case.said.quantity("needed_bytes"), case.said.quantity("free_bytes")
    sentence = "the pool of int8 Mamba checkpoints does not fit into what mem_fraction_static leaves free"
    if needed and free:
        sentence += f": it needs {bytes_text(needed)}, {bytes_text(free)} are free"
    lower = lower_fraction(case, beyond(needed, free))
    remedy = f"Lower --int8-mamba-ckpt-size. Or {uncapped(lower.remedy)}"
    return Diagnosis(ID, sentence, lower.direction, remedy, fraction=lower.fraction)
