"""What-ifs: the arguments that may be changed, and what each change would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from logscope.amounts import gib_text
from logscope.causes import failed_at
from logscope.errors import UsageError
from logscope.explainer import no_fraction
from logscope.explainer._subject import Subject
from logscope.explainer._types import Offer, Question
from logscope.explainer.likeness import ELEMENT_BYTES, printed_dtype
from logscope.frames import arg_text
from logscope.model import Finding, Pos
from logscope.server_args import ArgValue
from logscope.sizing import Grant, WhatIf, fraction_used, grant_for, taken_beside
from logscope.sizing.fraction import FLAG

KEYS = (FLAG, "max_total_tokens", "page_size", "kv_cache_dtype")


def check_question(question: Question) -> None:
    """Refuse what cannot be answered before any log is read.

    Raises:
        UsageError: an argument that has no what-if, or a value that it cannot have.
    """
    if FLAG in question.claims:
        _check_fraction(question.claims[FLAG])
    for name, value in question.what_if.items():
        if name not in KEYS:
            raise UsageError(
                f"no what-if for {name!r}: its effect is not modelled\n  do: take one of {', '.join(KEYS)}"
            )
        if name == FLAG:
            _check_fraction(value)
        elif name == "kv_cache_dtype":
            if str(value) not in ELEMENT_BYTES:
                raise UsageError(f"no what-if for kv_cache_dtype={value}\n  do: take one of {', '.join(ELEMENT_BYTES)}")
        elif isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise UsageError(
                f"{name}={arg_text(value)} is no whole number above 0\n  do: give one, such as {name}=65536"
            )


def _check_fraction(value: ArgValue) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and 0 < float(str(value)) < 1):
        raise UsageError(f"{FLAG}={arg_text(value)} is no fraction\n  do: give a number between 0 and 1")


def answers_to(subject: Subject) -> Iterator[Offer]:
    """Yield what each change alone gives, and all of them together where there are several."""
    asked = subject.question.what_if
    for name, value in asked.items():
        yield from _answer(subject, {name: value})
    if len(asked) > 1:
        yield from (replace(offer, is_together=True) for offer in _answer(subject, asked))


def find(subject: Subject) -> Iterator[Finding]:
    """Yield that a what-if runs out of memory beside its pools; that it has no answer, where the log lacks what that rests on."""
    known = [(offer, short) for offer in answers_to(subject) if (short := _short(subject, offer.grant)) is not None]
    for offer, (sentence, place) in known:
        if not offer.is_together:
            yield Finding("what_if_runs_out", "warning", f"{offer.flags} {sentence}.", (place,))
        elif len(known) == 1:
            yield Finding("what_if_runs_out", "warning", f"All of it together {sentence}.", (place,))
    if subject.question.what_if and not any(answers_to(subject)):
        names = " and ".join(subject.question.what_if)
        sentence = (
            f"What another {names} would give cannot be told: it rests on free memory before and after the weights, and on "
            f"{FLAG}, and not all of them are in this log."
        )
        yield Finding("what_if_open", "warning", sentence)


def _answer(subject: Subject, change: Mapping[str, ArgValue]) -> Iterator[Offer]:
    what = WhatIf(
        fraction=_number(change.get(FLAG)),
        max_total_tokens=_whole(change.get("max_total_tokens")),
        page_size=_whole(change.get("page_size")),
        cell_factor=_factor(subject, change.get("kv_cache_dtype")),
    )
    grant = grant_for(subject.launch, subject.sizing, what)
    if grant is None:
        return
    flags = " ".join(f"{name}={arg_text(value)}" for name, value in change.items())
    yield Offer(flags, grant, _remark(subject, grant, is_capped="max_total_tokens" in change))


def _short(subject: Subject, grant: Grant) -> tuple[str, Pos] | None:
    """Say why the memory that is kept free is surely too little: less than was taken beside the pools, or than what ran out already."""
    launch, sizing, diagnosis = subject.launch, subject.sizing, subject.diagnosis
    if grant.fails or grant.capped:
        return None
    beside, failed, now = taken_beside(launch, sizing), failed_at(launch), fraction_used(sizing)
    if beside is not None and grant.reserve.high < beside.amount.low:
        needs = f"{gib_text(beside.amount)} GiB{subject.per_rank} went beside the pools in this launch"
        return f"runs out of memory: it keeps {gib_text(grant.reserve)} GiB free, and {needs}", beside.pos
    has_run_out = diagnosis is not None and no_fraction.is_for_want_of_memory(diagnosis, sizing)
    if has_run_out and failed is not None and now is not None and grant.fraction >= now:
        return f"runs out of memory, as {now:.4g} did in this launch", failed
    tried = sizing.run_out
    if tried is not None and grant.fraction >= tried.fraction:
        return f"runs out of memory: {tried.fraction:.4g} did in launch {tried.launch} of this log", tried.pos
    return None


def _remark(subject: Subject, grant: Grant, *, is_capped: bool) -> str:
    """Say that a launch fails or runs out of memory, that a cap binds, or that the cap that is asked for does not."""
    if grant.fails:
        return "fails"
    if _short(subject, grant) is not None:
        return "runs out"
    if grant.capped:
        return "capped"
    return "more than fits" if is_capped and grant.tokens is not None else ""


def _number(value: ArgValue) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _whole(value: ArgValue) -> int | None:
    return value if isinstance(value, int) else None


def _factor(subject: Subject, wanted: ArgValue) -> float:
    """Return bytes per token of another dtype of the cache, as a factor on what the log shows."""
    if wanted is None:
        return 1.0
    now = printed_dtype(subject.launch) or str(subject.launch.args.values.get("kv_cache_dtype", "auto"))
    return ELEMENT_BYTES[str(wanted)] / ELEMENT_BYTES.get(now, 2)
