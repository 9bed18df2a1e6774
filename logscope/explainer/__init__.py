"""Explain a launch: the verdict, the evidence, the budget with numbers, the ledger, what to set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from logscope.causes import Diagnosis, diagnose
from logscope.explainer import capacity, fractions, hints, memory, ranks, times
from logscope.explainer._subject import Subject
from logscope.explainer._types import FINDING_IDS, Explanation, Offer, Question, Term
from logscope.explainer.budget_terms import budget_terms, offers
from logscope.explainer.cell_source import GivenCell, ModelConfig, OtherLog, Source, hint_for, with_hint
from logscope.explainer.verdict import IN_VERDICT, verdict_of
from logscope.explainer.what_if import answers_to, check_question
from logscope.ledger import ledger_of
from logscope.model import Finding, Launch
from logscope.packs import Packs
from logscope.sizing import Sizing, size_up, suggested_fraction

_LEVELS = {"error": 0, "warning": 1, "note": 2}


def explain_launches(launches: Sequence[Launch], packs: Packs, question: Question) -> list[Explanation]:
    """Explain each launch; what only several launches of one log tell is said in the last of them."""
    found = [explain_launch(launch, packs, question) for launch in launches]
    return found if len(found) < 2 else [*found[:-1], _with_window(found)]


def explain_launch(launch: Launch, packs: Packs, question: Question) -> Explanation:
    """Explain one launch."""
    own = size_up(launch)
    hint = hint_for(question.source, launch, own) if question.source else None
    sizing = with_hint(own, hint)
    diagnosis = diagnose(launch, packs, sizing)
    subject = Subject(launch, packs, sizing, diagnosis, ledger_of(launch, packs), question, hint)
    findings = tuple(sorted(_findings(subject), key=lambda finding: _LEVELS[finding.level]))
    suggested = _suggested(launch, sizing, diagnosis)
    verdict = verdict_of(subject, findings)
    return Explanation(
        launch=launch,
        packs=packs,
        sizing=sizing,
        diagnosis=diagnosis,
        verdict=verdict,
        direction=diagnosis.direction if diagnosis else None,
        suggested=suggested,
        budget=tuple(budget_terms(sizing)),
        offers=_offers(launch, sizing, suggested, diagnosis),
        answers=tuple(answers_to(subject)),
        findings=findings,
        ledger=tuple(subject.ledger),
        judged=_is_judged(launch, sizing, diagnosis),
    )


def _suggested(launch: Launch, sizing: Sizing, diagnosis: Diagnosis | None) -> float | None:
    """Return the fraction to set, None where it is not the flag to turn, or no value is known."""
    if diagnosis is None or diagnosis.direction is None:
        return None
    return suggested_fraction(launch, sizing) if diagnosis.direction == "raise" else diagnosis.fraction


def _offers(launch: Launch, sizing: Sizing, suggested: float | None, diagnosis: Diagnosis | None) -> tuple[Offer, ...]:
    """Return other fractions with what they give; none where the fraction is not what decides."""
    direction = diagnosis.direction if diagnosis else None
    is_other = diagnosis is not None and diagnosis.cause not in fractions.OUT_OF_MEMORY_AFTER_POOL
    if direction is None and (is_other or sizing.bound_by == "max_total_tokens"):
        return ()
    return tuple(offers(launch, sizing, suggested, direction))


def _findings(subject: Subject) -> Iterator[Finding]:
    if subject.diagnosis is not None:
        yield from subject.diagnosis.findings
    for part in (fractions, hints, capacity, ranks, times, memory):
        yield from part.find(subject)


def _is_judged(launch: Launch, sizing: Sizing, diagnosis: Diagnosis | None) -> bool:
    """Return whether the log was enough: an outcome, or at least a figure of the KV cache."""
    return launch.outcome.kind in ("ready", "failed", "hung") or diagnosis is not None or sizing.tokens is not None


def _is_too_high(each: Explanation) -> bool:
    is_oom = each.diagnosis is not None and each.diagnosis.cause in fractions.OUT_OF_MEMORY_AFTER_POOL
    return each.direction == "lower" or is_oom


def _with_window(found: Sequence[Explanation]) -> Explanation:
    """Add to the last launch that no fraction works, where one launch had too little for the weights and another ran out after."""
    needed = [e.sizing.fraction.minimum.low for e in found if e.direction == "raise" and e.sizing.fraction.minimum]
    too_much = [value for e in found if _is_too_high(e) and (value := e.sizing.fraction.in_force)]
    last = found[-1]
    if not needed or not too_much or max(needed) < min(too_much) - 0.01:
        return last
    if any(finding.id == "no_workable_fraction" for finding in last.findings):
        return last
    sentence = (
        f"No workable mem_fraction_static: {min(too_much):.4g} runs out of memory after the pool, and more than "
        f"{max(needed):.3f} is needed for the weights."
    )
    remedy = "More tensor parallelism, a smaller or quantized model, an fp8 KV cache, or no draft model."
    finding = Finding("no_workable_fraction", "error", sentence, (), remedy)
    verdict = last.verdict.removesuffix(last.diagnosis.remedy).rstrip() if last.diagnosis else last.verdict
    return replace(
        last,
        findings=(finding, *last.findings),
        verdict=f"{verdict} {sentence} {remedy}",
        suggested=None,
        offers=tuple(offer for offer in last.offers if offer.why != "suggested"),
    )


__all__ = [
    "FINDING_IDS",
    "IN_VERDICT",
    "Explanation",
    "GivenCell",
    "ModelConfig",
    "Offer",
    "OtherLog",
    "Question",
    "Source",
    "Term",
    "check_question",
    "explain_launch",
    "explain_launches",
]
