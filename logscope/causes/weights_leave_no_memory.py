"""The weights, a draft model's included, take more than mem_fraction_static grants (said so from 0.5.14 on)."""

from __future__ import annotations

from logscope.amounts import fraction_text, gib_text
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import floor_of, raise_fraction
from logscope.model import Finding
from logscope.sizing import WhatIf, grant_for
from logscope.units import GIB

ID = "weights_leave_no_memory"
_NEXT_TO_NOTHING = GIB // 2


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: SGLang's minimum beside the one that this log gives."""
    if not case.tells(ID):
        return None
    fraction, stated = (case.said.quantity(name) for name in ("mem_fraction_static", "minimum"))
    sentence = "the weights leave nothing for the KV cache"
    if fraction:
        sentence += f" under mem_fraction_static {fraction.value:g}"
    if stated:
        sentence += f": SGLang's minimum is {stated.value:g}"
    own = case.sizing.fraction.minimum
    if stated and own is not None:
        agrees = own.low <= stated.high and stated.low <= own.high
        sentence += f", and this log's numbers give {'the same, ' if agrees else ''}{fraction_text(own)}"
    remedy = raise_fraction(case, stated.high if stated else None)
    return Diagnosis(ID, sentence, "raise", remedy, evidence=floor_of(case), findings=_hint(case))


def _hint(case: Case) -> tuple[Finding, ...]:
    """Say that the suggested value, the minimum rounded up, fails again or leaves next to nothing."""
    suggested = case.said.quantity("suggested")
    grant = grant_for(case.launch, case.sizing, WhatIf(fraction=suggested.value)) if suggested else None
    if suggested is None or grant is None or grant.rest.high > _NEXT_TO_NOTHING:
        return ()
    return (
        Finding(
            "sglang_hint", "note",
            f"SGLang suggests a value above {suggested.value:g}, which leaves only {gib_text(grant.rest)} GiB for the KV cache.",
            (case.root.pos,),
        ),
    )  # fmt: skip
