"""What ``logscope diff`` gives to programs: its JSON contract, and one flat row per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logscope.differ import Attribution, Change, Difference

JSON_SCHEMA = 1
RECORDS: Mapping[str, tuple[str, str]] = {
    "worker": ("string", "'target' or 'draft'; missing where a line is not about a model worker"),
    "phase": ("string", "phase id"),
    "event": ("string", "event id; PHASE.phase for what no line prints"),
    "role": ("string", "which of several lines of the event: 'decode', 'SWA', '#2'"),
    "field": ("string", "name with the base unit"),
    "rank": ("string", "tag; 'least' or 'most' over the ranks where topologies differ"),
    "before": ("string", "value before"),
    "after": ("string", "value after"),
    "delta": ("Float64", "after - before; missing for texts"),
    "unit": ("string", "of before, after and delta: 'bytes', 's' or 'tokens'; missing for texts and counts"),
    "verdict": ("string", "'same', 'changed' or 'unknown'"),
    "reason": ("string", "why"),
}


def diff_data(difference: Difference, chosen: Sequence[Change]) -> dict[str, object]:
    """Return a comparison for JSON; see docs/json.md. What is not known is null."""
    budget, first = difference.budget, difference.first
    return {
        "schema": JSON_SCHEMA,
        "command": "diff",
        "verdict": " ".join(difference.lines),
        "changed": difference.is_changed,
        "baselines": difference.baselines,
        "causes": [
            {
                "kind": cause.kind,
                "name": cause.name,
                "before": cause.before,
                "after": cause.after,
                "explains_bytes": _whole(cause.explains_bytes),
                "explains_tokens": _whole(cause.explains_tokens),
                "together_with": list(cause.together_with),
                "sentence": cause.sentence,
            }
            for cause in difference.causes
        ],
        "ruled_out": [
            {"name": each.name, "bytes": _whole(each.bytes), "reason": each.reason} for each in difference.ruled_out
        ],
        "outcome": {"before": difference.before.launch.outcome.kind, "after": difference.after.launch.outcome.kind},
        "args": [
            {"name": arg.name, "before": arg.before, "after": arg.after, "origin": arg.origin, "noise": arg.noise}
            for arg in difference.args
        ],
        "budget": _budget_data(budget),
        "times": [{"phase": each.phase, "before_s": each.before, "after_s": each.after} for each in difference.times],
        "changes": [_change_data(change) for change in chosen],
        "first_divergence": None
        if first is None
        else {
            "worker": first.worker,
            "phase": first.phase,
            "event": first.event,
            "role": first.role or None,
            "field": first.field,
            "rank": first.rank,
            "ranks": list(first.ranks),
            "before": first.before,
            "after": first.after,
            "unit": first.unit or None,
            "reason": first.reason,
        },
        "notes": list(difference.notes),
    }


def _budget_data(budget: Attribution) -> dict[str, object]:
    """Return the terms in whole bytes and tokens; the residual takes the rounding, so that the sum stays exact."""
    before, after = _whole(budget.before), _whole(budget.after)
    terms = [{"term": t.term, "bytes": round(t.bytes), "tokens": _whole(t.tokens)} for t in budget.terms]
    residual = None
    if before is not None and after is not None:
        residual = after - before - sum(round(term.bytes) for term in budget.terms)
    return {
        "before_bytes": before,
        "after_bytes": after,
        "terms": terms,
        "residual_bytes": residual,
        "tokens_before": _whole(budget.tokens_before),
        "tokens_after": _whole(budget.tokens_after),
        "residual_tokens": _whole(budget.residual_tokens),
    }


def _whole(amount: float | None) -> int | None:
    return None if amount is None else round(amount)


def _change_data(change: Change) -> dict[str, str | float | None]:
    return {
        "worker": change.worker,
        "phase": change.phase,
        "event": change.event,
        "role": change.role or None,
        "field": change.field,
        "rank": change.rank,
        "before": change.before,
        "after": change.after,
        "delta": change.delta,
        "unit": change.unit or None,
        "verdict": change.verdict,
        "reason": change.reason,
        "before_at": str(change.before_at) if change.before_at else None,
        "after_at": str(change.after_at) if change.after_at else None,
    }


def change_row(change: Change) -> dict[str, str | int | float | bool | None]:
    """Return a step as a flat row: what JSON has of it, values as texts."""
    data = _change_data(change)
    return {name: _text(data[name]) if name in ("before", "after") else data[name] for name in RECORDS}


def _text(value: str | float | None) -> str | None:
    return None if value is None else str(value)
