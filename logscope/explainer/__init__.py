"""Explain a launch: the verdict, the evidence, the budget with numbers, the ledger, what to set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from logscope.causes import Diagnosis, diagnose
from logscope.explainer import capacity, claims, fractions, hints, memory, no_fraction, ranks, times, what_if
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
    """Explain each launch; what earlier launches of the same log tell of it is used."""
    found: list[Explanation] = []
    for launch in launches:
        tried = [each for each in found if no_fraction.is_again(each.launch, launch, packs)]
        found.append(explain_launch(launch, packs, question, tried))
    return found


def explain_launch(launch: Launch, packs: Packs, question: Question, tried: Sequence[Explanation] = ()) -> Explanation:
    """Explain one launch; ``tried`` are earlier ones of the same arguments, but for the fraction."""
    own = _with_tried(size_up(launch), tried, is_told=question.source is not None)
    hint = hint_for(question.source, launch, own) if question.source else None
    sizing = with_hint(own, hint)
    diagnosis = diagnose(launch, packs, sizing)
    subject = Subject(launch, packs, sizing, diagnosis, ledger_of(launch, packs), question, hint)
    findings = tuple(sorted(_findings(subject), key=lambda finding: _LEVELS[finding.level]))
    none_works = any(finding.id == no_fraction.ID for finding in findings)
    direction = diagnosis.direction if diagnosis and not none_works else None
    suggested = _suggested(launch, sizing, diagnosis) if direction else None
    verdict = verdict_of(subject, findings)
    return Explanation(
        launch=launch,
        packs=packs,
        sizing=sizing,
        diagnosis=diagnosis,
        verdict=verdict,
        direction=direction,
        suggested=suggested,
        budget=tuple(budget_terms(sizing)),
        offers=_offers(launch, sizing, suggested, diagnosis, none_works=none_works),
        answers=tuple(answers_to(subject)),
        findings=findings,
        ledger=tuple(subject.ledger),
        judged=_is_judged(launch, sizing, diagnosis),
    )


def _with_tried(own: Sizing, tried: Sequence[Explanation], *, is_told: bool) -> Sizing:
    """Add what earlier tries tell: a fraction that is too high, and bytes per token unless somebody else is to tell them."""
    own = replace(own, run_out=no_fraction.run_out_of(tried))
    cells = [each.sizing.cell for each in tried if each.sizing.cell is not None]
    if own.cell is not None or is_told or not cells or own.contradictions:
        return own
    return replace(own, cell=replace(cells[-1], source="other launch"))


def _suggested(launch: Launch, sizing: Sizing, diagnosis: Diagnosis | None) -> float | None:
    """Return the fraction to set, None where it is not the flag to turn, or no value is known."""
    if diagnosis is None or diagnosis.direction is None:
        return None
    return suggested_fraction(launch, sizing) if diagnosis.direction == "raise" else diagnosis.fraction


def _offers(
    launch: Launch, sizing: Sizing, suggested: float | None, diagnosis: Diagnosis | None, *, none_works: bool
) -> tuple[Offer, ...]:
    """Return other fractions with what they give; none where the fraction is not what decides, or no other one helps."""
    direction = diagnosis.direction if diagnosis else None
    is_other = diagnosis is not None and diagnosis.cause not in no_fraction.OUT_OF_MEMORY_AFTER_POOL
    if none_works or (direction is None and (is_other or sizing.bound_by == "max_total_tokens")):
        return ()
    return tuple(offers(launch, sizing, suggested, direction))


def _findings(subject: Subject) -> Iterator[Finding]:
    if subject.diagnosis is not None:
        yield from subject.diagnosis.findings
    for part in (claims, fractions, no_fraction, hints, what_if, capacity, ranks, times, memory):
        yield from part.find(subject)


def _is_judged(launch: Launch, sizing: Sizing, diagnosis: Diagnosis | None) -> bool:
    """Return whether the log was enough: an outcome, or at least a figure of the KV cache."""
    return launch.outcome.kind in ("ready", "failed", "hung") or diagnosis is not None or sizing.tokens is not None


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
