"""Findings about claims: whether a value that somebody says is in force is what ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logscope import budget
from logscope.amounts import fraction_text, gib_text
from logscope.budget import exact
from logscope.explainer._places import pool_places, some
from logscope.explainer._subject import Subject
from logscope.frames import arg_text
from logscope.model import Event, Finding, Pos
from logscope.server_args import ArgValue
from logscope.sizing.fraction import EXACT, FLAG
from logscope.units import Quantity

# what SGLang settles after it has printed the arguments (model_runner.py, model_config.py, scheduler.py): None is no answer there
_SETTLED_LATER = (
    *(
        "attention_backend",
        "chat_template",
        "context_length",
        "cuda_graph_bs",
        "cuda_graph_max_bs",
        "decode_attention_backend",
    ),
    *(
        "mamba_ssm_dtype",
        "max_mamba_cache_size",
        "max_micro_batch_size",
        "max_running_requests",
        "mm_attention_backend",
    ),
    *("nccl_port", "pp_max_micro_batch_size", "prefill_attention_backend", "quantization"),
)
# argument -> the lines that print what it became, and the field there, the surest first
_PRINTED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "kv_cache_dtype": (("kv_cache.dtype", "dtype"), ("kv_cache.allocated", "dtype")),
    "dtype": (("load_weights.end", "dtype"),),
    "context_length": (("ready.", "context_len"),),
    "max_running_requests": (("ready.", "max_running_requests"),),
    "chunked_prefill_size": (("ready.", "chunked_prefill_size"),),
    "max_prefill_tokens": (("ready.", "max_prefill_tokens"),),
}
_STORED = ("torch.uint8", "uint8")  # how FP8 and FP4 are stored: no dtype that one asks for
_DTYPES: Mapping[str, str] = {
    "half": "float16", "float": "float32", "bf16": "bfloat16", "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2",
    "fp4_e2m1": "float4_e2m1fn_x2",
}  # fmt: skip


def find(subject: Subject) -> Iterator[Finding]:
    """Yield an answer to each claim."""
    for name, value in subject.question.claims.items():
        is_fraction = name == FLAG and isinstance(value, (int, float))
        yield _fraction(subject, float(str(value))) if is_fraction else _argument(subject, name, value)


def _argument(subject: Subject, name: str, value: ArgValue) -> Finding:
    """Judge any argument but the fraction: by a line that says what it became, else by the arguments."""
    known, claim = subject.launch.args.values, f"{name}={arg_text(value)}"
    if name not in known:
        return Finding("claim_open", "note", f"{claim} is claimed; what is in force is not in this log.")
    place = some(next((event.pos for event in subject.events("server_args.printed")), None))
    asked = known[name]
    is_left = asked is None or asked == "auto"
    if value == asked and is_left:
        return Finding("claim_confirmed", "note", f"{claim} is in force, as claimed.", place)
    left = "it was not set" if asked is None else f"it was {arg_text(asked)}"
    became = _adjusted(subject, name, place, is_left=is_left) or (_became(subject, name) if is_left else None)
    if became is not None:
        said, where = f"{left}, and became {arg_text(became[0])}", (became[1], *place)
        if _is_same(value, became[0]):
            return Finding("claim_confirmed", "note", f"{claim} is in force: {said}.", where)
        return Finding("claim_refuted", "error", f"{claim} is not what ran: {said}.", where)
    if value == asked:
        return Finding("claim_confirmed", "note", f"{claim} is in force, as claimed.", place)
    if asked == "auto" or (asked is None and name in _SETTLED_LATER):
        return Finding(
            "claim_open", "note", f"{claim} is claimed; {left}, and what that became is not in this log.", place
        )
    return Finding("claim_refuted", "error", f"{claim} is not what ran: it was {arg_text(asked)}.", place)


def _adjusted(subject: Subject, name: str, printed: tuple[Pos, ...], *, is_left: bool) -> tuple[ArgValue, Pos] | None:
    """Return what a line after the arguments says that SGLang changed an argument to, the last such line.

    Of a backend the first, and only where it was left to SGLang: a later line may be about the draft's.
    """
    is_backend = name.endswith("_backend")
    if is_backend and not is_left:
        return None
    found = [
        (value, event.pos)
        for event in subject.events("server_args.")
        if event.pattern.id.startswith("server_args.adjusted_")
        and (not printed or event.pos.file != printed[0].file or event.pos.line > printed[0].line)
        and (value := _value(event, name)) not in (None, "auto")
    ]
    return (found[0] if is_backend else found[-1]) if found else None


def _became(subject: Subject, name: str) -> tuple[ArgValue, Pos] | None:
    """Return what an argument that was left to SGLang became, and the line that prints it."""
    for where, field in _PRINTED.get(name, ()):
        for event, worker in zip(subject.launch.events, subject.launch.workers, strict=True):
            is_there = event.pattern.id.startswith(where) and worker != "draft"
            if is_there and (value := _value(event, field)) is not None and value not in _STORED:
                return value, event.pos
    return None


def _value(event: Event, name: str) -> ArgValue:
    for field in (name, f"{name}_tokens"):
        value = event.values.get(field)
        if isinstance(value, Quantity):
            return int(value.value) if value.value == int(value.value) else value.value
        if isinstance(value, str):
            return value
    return None


def _is_same(claimed: ArgValue, printed: ArgValue) -> bool:
    if isinstance(claimed, str) and isinstance(printed, str):
        return _dtype(claimed) == _dtype(printed)
    return claimed == printed


def _dtype(name: str) -> str:
    """Return the one name of a data type; of anything else what it is."""
    plain = name.removeprefix("torch.")
    return _DTYPES.get(plain, plain)


def _fraction(subject: Subject, claimed: float) -> Finding:
    """Judge a claimed fraction: by what the log prints, unless the pools refute that, and by what they imply."""
    fraction = subject.sizing.fraction
    implied, verdict, in_force = fraction.implied, fraction.verdict, fraction.in_force
    is_sound = in_force is not None and verdict in ("meets", "unknown")
    if in_force is not None and is_sound and abs(in_force - claimed) < EXACT:
        return _printed(subject, claimed)
    reach = None if implied is None or fraction.is_floor else implied.high + EXACT
    most = None if reach is None or fraction.slack is None else reach + fraction.slack
    if implied is not None and (claimed < implied.low - EXACT or (most is not None and claimed > most)):
        return _refuted(subject, claimed)
    is_inside = reach is not None and claimed <= reach
    if in_force is not None and is_sound and not (is_inside and verdict == "unknown"):
        sentence = f"{FLAG} {claimed:g} is not what ran: it was {in_force:g}."
        return Finding("claim_refuted", "error", sentence, some(fraction.in_force_at))
    if implied is None or fraction.is_floor:
        return Finding("claim_open", "note", f"Whether {FLAG} {claimed:g} ran cannot be told from this log.")
    if not is_inside:
        sentence = (
            f"{FLAG} {claimed:g} lies above what the pool implies, {fraction_text(implied)}. Memory taken before the pool was sized "
            "may explain that: whether it ran cannot be told from this log."
        )
        return Finding("claim_open", "note", sentence, pool_places(subject))
    agrees = f"{FLAG} {claimed:g} agrees with the pool, which implies {fraction_text(implied)}"
    if is_sound:
        sentence = f"{agrees}; the log prints {in_force:g}: which of them ran cannot be told from it."
        return Finding("claim_open", "note", sentence, pool_places(subject))
    return Finding("claim_confirmed", "note", f"{agrees}.", pool_places(subject))


def _printed(subject: Subject, claimed: float) -> Finding:
    """Say that a claimed fraction is what the log prints, and how that lies against what the pools imply."""
    fraction = subject.sizing.fraction
    place, implied = some(fraction.in_force_at), fraction.implied
    if implied is None or fraction.is_floor:
        return Finding("claim_confirmed", "note", f"{FLAG} {claimed:g} is in force.", place)
    bounds = fraction_text(implied)
    if implied.low - EXACT <= claimed <= implied.high + EXACT:
        sentence = f"{FLAG} {claimed:g} agrees with the pool, which implies {bounds}."
        return Finding("claim_confirmed", "note", sentence, pool_places(subject))
    is_explained = fraction.verdict == "meets"
    rest = (
        ", and memory taken before it was sized explains the rest"
        if is_explained
        else ": which of them ran cannot be told"
    )
    sentence = f"{FLAG} {claimed:g} is what the log prints; the pool implies {bounds}{rest}."
    name = "claim_confirmed" if is_explained else "claim_open"
    return Finding(name, "note", sentence, (*place, *pool_places(subject)))


def _refuted(subject: Subject, claimed: float) -> Finding:
    fraction, sizing = subject.sizing.fraction, subject.sizing
    assert fraction.implied is not None and sizing.avail is not None and sizing.total is not None, (
        "asked with an implied fraction"
    )
    left = budget.rest(sizing.avail.amount, sizing.total.amount, exact(claimed))
    bounds = f"at least {fraction.implied.low:.4f}" if fraction.is_floor else fraction_text(fraction.implied)
    sentence = (
        f"{FLAG} {claimed:g} is not what ran: the pool implies {bounds}; with {claimed:g} the budget would be "
        f"{gib_text(left)} GiB{subject.per_rank}."
    )
    return Finding("claim_refuted", "error", sentence, pool_places(subject))
