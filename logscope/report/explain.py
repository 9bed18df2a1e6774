"""The report of ``logscope explain``: verdict, evidence, budget, what to set, findings, ledger; and its JSON contract."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from logscope.amounts import cell_text, fraction_text, gib_text, tokens_text
from logscope.budget import Interval
from logscope.causes import failed_at
from logscope.explainer import IN_VERDICT, Explanation, Offer, Term
from logscope.frames import frame_rows
from logscope.model import Finding, Launch, Level, Pos
from logscope.report.memory import ledger_table
from logscope.report.positions import positions
from logscope.report.types import Column, Records, Report, Section, Style, Table, TableRow, Text
from logscope.sizing import Sizing
from logscope.words import clip, where_of

JSON_SCHEMA = 1
MOST_PLACES = 3
_LEDGER_KEYS = ("rank", "worker", "phase", "item", "bytes", "resolution_bytes", "kind", "from", "to")
_MARKS: Mapping[Level, str] = {"error": "!! ", "warning": "!  ", "note": "-  "}
_NO_CELL = (
    "Tokens: no bytes per token in this log; --cell-bytes N, --like OTHER.log or --model-config config.json give them."
)
_RECORDS: Mapping[str, tuple[str, str]] = {
    "launch": ("Int64", "number of the launch, from 1"),
    "id": ("string", "finding id"),
    "level": ("string", "'error', 'warning' or 'note'"),
    "sentence": ("string", "what was found"),
    "remedy": ("string", "what to do"),
    "file": ("string", "file of the first line that shows it"),
    "line": ("Int64", "that line, from 1"),
}


def explain_report(explanations: Sequence[Explanation], *, has_ledger: bool = True) -> Report:
    """Return the report: one part per launch. ``has_ledger``: with the ledger, which a timeline that follows has, too."""
    sections: list[Section] = []
    for each in explanations:
        sections.extend(_sections(each, f"[{each.launch.number}] " if len(explanations) > 1 else ""))
        ledger = ledger_table(each.ledger, each.launch) if has_ledger else None
        sections.extend([ledger] if ledger is not None else [])
    data = {"schema": JSON_SCHEMA, "command": "explain", "launches": [explanation_data(each) for each in explanations]}
    rows = [row for each in explanations for row in _record_rows(each)]
    return Report("explain", tuple(sections), data, Records("findings", _RECORDS, rows))


def _sections(each: Explanation, prefix: str) -> Iterator[Section]:
    yield Text((prefix + each.verdict,), _style(each))
    evidence = tuple(_evidence(each))
    if evidence:
        yield Text(("", *evidence), "aside", hang=2)
    if each.budget:
        yield _budget_table(each)
    if each.answers:
        yield _offer_table("What if", each.answers)
    if each.offers:
        yield _offer_table("Fraction", each.offers)
    if (each.offers or each.answers) and each.sizing.cell is None:
        yield Text((_NO_CELL,), "aside")
    findings = tuple(_finding_lines(each))
    if findings:
        yield Text(("", "Findings", *findings), hang=3)


def _style(each: Explanation) -> Style:
    if each.diagnosis is not None or each.launch.outcome.kind in ("failed", "hung"):
        return "bad"
    return "good" if each.launch.outcome.kind == "ready" else "warning"


def _evidence(each: Explanation) -> Iterator[str]:
    """Yield the lines that the verdict rests on: where, and what stands there, to be found again by grep."""
    place = failed_at(each.launch)
    if each.diagnosis is None or place is None:
        return
    texts = {event.pos: event for event in each.launch.events}
    in_budget = {pos for term in each.budget for pos in term.evidence}  # that table has the line already
    for pos in dict.fromkeys((place, *each.diagnosis.evidence)):
        event = texts.get(pos)
        if event is not None and pos not in in_budget:
            rank = f" {event.rank.tag}" if event.rank.tag else ""
            yield f"{where_of(each.launch, pos)}{rank}: {clip(event.text, 160)}"


def _budget_table(each: Explanation) -> Table:
    columns = (Column("KV cache budget per rank"), Column("Value", "count"), Column("How"), Column("Line"))
    rows = [
        TableRow((term.name, _amount(term), term.formula, _places(term.evidence, each.launch)), mark=_is_negative(term))
        for term in each.budget
    ]
    fraction = each.sizing.fraction
    for name, value in (("typed", fraction.typed), ("in force", fraction.in_force)):
        if value is not None:
            place = fraction.typed_at if name == "typed" else fraction.in_force_at
            where = _places((place,) if place else (), each.launch)
            rows.append(TableRow((f"f {name}", f"{value:.6g}", "as printed", where)))
    if fraction.implied is not None and fraction.implied.low > 0:
        capped = "a cap set the pool" if each.sizing.bound_by == "max_total_tokens" else "a cap may have set the pool"
        how = f"at least: {capped}" if fraction.is_floor else "1 - (A - pools) / T"
        shown = f"{fraction.implied.low:.4f}" if fraction.is_floor else fraction_text(fraction.implied)
        rows.append(TableRow(("f implied", shown, how, "")))
    if fraction.minimum is not None and fraction.minimum.low > 0:
        rows.append(TableRow(("f at which nothing is left", fraction_text(fraction.minimum), "1 - A / T", "")))
    return Table("", columns, tuple(rows))


def _is_negative(term: Term) -> bool:
    return term.amount.high < 0


def _amount(term: Term) -> str:
    if term.unit == "bytes":
        return f"{gib_text(term.amount)} GiB"
    return cell_text(term.amount)


def _places(places: Sequence[Pos], launch: Launch) -> str:
    return ", ".join(where_of(launch, pos).removeprefix("line ") for pos in places[:MOST_PLACES])


def _offer_table(title: str, offers: Sequence[Offer]) -> Table:
    has_tokens = any(offer.grant.tokens is not None for offer in offers)
    columns = [
        Column(title),
        Column("Budget", "count"),
        Column("Tokens", "count"),
        Column("Kept free", "count"),
        Column(""),
    ]
    rows = []
    for offer in offers:
        grant = offer.grant
        tokens = _tokens(grant.tokens)
        why = ", ".join(word for word in (offer.why, "fails" if grant.fails and offer.why != "fails" else "") if word)
        cells = (
            "all together" if offer.is_together else offer.flags,
            f"{gib_text(grant.rest)} GiB",
            tokens,
            f"{gib_text(grant.reserve)} GiB",
            why,
        )
        rows.append(TableRow(cells if has_tokens else (*cells[:2], *cells[3:])))
    return Table("", tuple(columns if has_tokens else (*columns[:2], *columns[3:])), tuple(rows))


def _tokens(tokens: Interval | None) -> str:
    """Write how many tokens a pool holds: "none" where the budget is negative."""
    if tokens is None:
        return "?"
    return "none" if tokens.high <= 0 else tokens_text(Interval(max(0.0, tokens.low), tokens.high))


def _finding_lines(each: Explanation) -> Iterator[str]:
    for finding in each.findings:
        if finding.id in IN_VERDICT:
            continue  # the verdict says it
        where = _places(finding.evidence, each.launch)
        more = ", ..." if len(finding.evidence) > MOST_PLACES else ""
        lines = "lines" if len(finding.evidence) > 1 else "line"
        place = f" ({lines} {where}{more})" if where and ":" not in where else f" ({where}{more})" if where else ""
        remedy = f" {finding.remedy}" if finding.remedy else ""
        yield f"{_MARKS[finding.level]}{finding.sentence}{place}{remedy}"


def explanation_data(each: Explanation) -> dict[str, object]:
    """Return an explanation for JSON; see docs/json.md. What is not known is null."""
    ledger = frame_rows("ledger", each.launch, each.packs)
    return {
        "launch": each.launch.number,
        "source": each.launch.source,
        "outcome": each.launch.outcome.kind,
        "ended": each.launch.ended.kind if each.launch.ended else None,
        "cause": each.diagnosis.cause if each.diagnosis else None,
        "verdict": each.verdict,
        "direction": each.direction,
        "evidence": positions(_evidence_places(each)),
        "mem_fraction_static": _fraction_data(each),
        "kv": _kv_data(each.sizing),
        "budget": [
            {
                "term": term.name, "amount": _bounds(term.amount, 0), "unit": term.unit, "formula": term.formula,
                "evidence": positions(term.evidence),
            }
            for term in each.budget
        ],
        "what_to_set": [_offer_data(offer) for offer in each.offers],
        "what_if": [_offer_data(offer) for offer in each.answers],
        "ledger": [{key: row[key] for key in _LEDGER_KEYS} for row in ledger],
        "findings": [_finding_data(finding) for finding in each.findings],
        "releases": {"since": each.launch.releases.since, "until": each.launch.releases.until, "empty": each.launch.releases.empty},
    }  # fmt: skip


def _fraction_data(each: Explanation) -> dict[str, object]:
    fraction = each.sizing.fraction
    return {
        "typed": fraction.typed,
        "in_force": fraction.in_force,
        "implied": _bounds(fraction.implied, 6) if not fraction.is_floor else None,
        "minimum": _bounds(fraction.minimum, 6),
        "suggested": each.suggested,
        "verdict": fraction.verdict,
    }


def _kv_data(sizing: Sizing) -> dict[str, object]:
    return {
        "tokens": int(sizing.tokens.amount.low) if sizing.tokens else None,
        "bytes": round((sizing.size.low + sizing.size.high) / 2) if sizing.size else None,
        "cell_bytes": _bounds(sizing.cell.size, 0) if sizing.cell else None,
        "limiting_rank": sizing.limiting[0].tag if sizing.limiting else None,
        "bound_by": sizing.bound_by,
        "budget_bytes": _bounds(sizing.rest, 0),
    }


def _evidence_places(each: Explanation) -> tuple[Pos, ...]:
    place = failed_at(each.launch)
    if place is None:
        return each.launch.outcome.evidence
    return tuple(dict.fromkeys((place, *(each.diagnosis.evidence if each.diagnosis else ()))))


def _bounds(amount: Interval | None, digits: int) -> list[float] | None:
    """Return both bounds, rounded outwards; whole numbers for 0 digits."""
    if amount is None:
        return None
    scale = 10**digits
    low, high = math.floor(amount.low * scale) / scale, math.ceil(amount.high * scale) / scale
    return [int(low), int(high)] if digits == 0 else [low, high]


def _offer_data(offer: Offer) -> dict[str, object]:
    grant = offer.grant
    return {
        "flags": offer.flags,
        "mem_fraction_static": grant.fraction,
        "budget_bytes": _bounds(grant.rest, 0),
        "kept_free_bytes": _bounds(grant.reserve, 0),
        "tokens": _bounds(grant.tokens, 0),
        "fails": grant.fails,
        "in_force": offer.is_now,
    }


def _finding_data(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.id,
        "level": finding.level,
        "sentence": finding.sentence,
        "evidence": positions(finding.evidence),
        "remedy": finding.remedy or None,
    }


def _record_rows(each: Explanation) -> Iterator[dict[str, str | int | float | bool | None]]:
    for finding in each.findings:
        first = finding.evidence[0] if finding.evidence else None
        yield {
            "launch": each.launch.number,
            "id": finding.id,
            "level": finding.level,
            "sentence": finding.sentence,
            "remedy": finding.remedy or None,
            "file": first.file if first else None,
            "line": first.line if first else None,
        }
