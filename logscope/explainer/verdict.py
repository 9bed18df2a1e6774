"""The sentence that comes first: what happened, why, with numbers; then what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.amounts import cell_text, fraction_text, gib_text
from logscope.causes import Diagnosis, failed_at
from logscope.explainer import no_fraction
from logscope.explainer._subject import Subject
from logscope.model import Finding, Launch
from logscope.sizing import Sizing
from logscope.units import count_text
from logscope.words import (
    after_text,
    cut_sentence,
    fate,
    name_of,
    ready_sentence,
    ready_text,
    unfinished_sentence,
    where_of,
)

_FIRST = (
    "lines_contradict", "claim_refuted", "claim_confirmed", "claim_open", "fraction_not_in_force", "fraction_contradicted",
)  # fmt: skip

IN_VERDICT = (*_FIRST, no_fraction.ID, "runs_out_above")


def verdict_of(subject: Subject, findings: Sequence[Finding]) -> str:
    """Return the verdict: contradictions and answers to claims first, then how the launch went and what to do."""
    parts = [_with_place(finding, subject.launch) for finding in findings if finding.id in _FIRST]
    none_works = next((finding for finding in findings if finding.id == no_fraction.ID), None)
    outcome = " ".join(_outcome(subject, none_works))
    parts.append(outcome[:1].upper() + outcome[1:] if parts else outcome)
    parts.extend(finding.sentence for finding in findings if finding.id == "runs_out_above")
    return f"{name_of(subject.launch)}: {' '.join(parts)}"


def _with_place(finding: Finding, launch: Launch) -> str:
    if not finding.evidence:
        return finding.sentence
    if finding.id == "lines_contradict":
        what, _, rest = finding.sentence.partition(". ")
        return f"{what} ({' and '.join(where_of(launch, pos) for pos in finding.evidence)}). {rest}"
    return f"{finding.sentence.removesuffix('.')} ({where_of(launch, finding.evidence[0])})."


def _outcome(subject: Subject, none_works: Finding | None) -> Iterator[str]:
    launch, diagnosis = subject.launch, subject.diagnosis
    kind = launch.outcome.kind
    if diagnosis is not None:
        yield from _failed(subject, diagnosis, none_works)
    elif kind == "ready":
        ready = ready_text(launch, subject.packs)
        yield ready + _bound(subject.sizing) + ready_sentence(launch, subject.packs).removeprefix(ready)
    elif kind == "cut":
        figures = _figures(subject.sizing)
        yield figures or cut_sentence(launch, subject.packs)
    else:
        yield unfinished_sentence(launch, subject.packs)


def _failed(subject: Subject, diagnosis: Diagnosis, none_works: Finding | None) -> Iterator[str]:
    launch, place = subject.launch, failed_at(subject.launch)
    where = f" ({where_of(launch, place)})" if place else ""
    if launch.outcome.kind == "ready":
        yield ready_text(launch, subject.packs)
        yield f"It {fate(launch)} later: {diagnosis.sentence}{where}."
    elif launch.outcome.kind == "cut":
        yield f"the end of a server that had been ready: {diagnosis.sentence}{where}."
    else:
        after = after_text(launch, place, subject.packs) if place else ""
        went = "stopped" if diagnosis.cause == "stopped" else "failed"
        yield f"{went}{after}: {diagnosis.sentence}{where}."
    if none_works is None or no_fraction.is_said(diagnosis):
        yield from [diagnosis.remedy] if diagnosis.remedy else []
    else:
        yield from (
            text
            for text in (no_fraction.without_fraction(diagnosis.remedy), none_works.sentence, none_works.remedy)
            if text
        )


def _bound(sizing: Sizing) -> str:
    """Say what set the capacity, where that is not just the fraction in force."""
    if sizing.bound_by == "max_total_tokens":
        return " max_total_tokens sets the capacity."
    if sizing.bound_by == "fraction" and sizing.fraction.in_force is not None:
        return f" mem_fraction_static {sizing.fraction.in_force:.4g} sets the capacity."
    return ""


def _figures(sizing: Sizing) -> str:
    """Say what a part of a log tells about the KV cache; empty where it tells nothing."""
    if sizing.size is None or sizing.tokens is None:
        return ""
    halves = " (keys and values together)" if any(pool.tokens for each in sizing.ranks for pool in each.pools) else ""
    cell = f", {cell_text(sizing.cell.size)} bytes per token" if sizing.cell else ""
    implied = sizing.fraction.implied
    if implied is not None and sizing.fraction.in_force is None and not sizing.fraction.is_floor:
        cell += f", so mem_fraction_static was {fraction_text(implied)}"
    return (
        f"{gib_text(sizing.size)} GiB of KV cache{halves} for {count_text(sizing.tokens.amount.low)} tokens{cell}; "
        "the log shows only this part of the launch."
    )
