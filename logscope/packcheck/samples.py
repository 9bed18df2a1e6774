"""Try the forms of the pattern files on their samples and rejects."""

from __future__ import annotations

from collections.abc import Iterator

from logscope.events import Recogniser, match_form, printed_values
from logscope.model import LogLine
from logscope.packcheck.envelope import message_of
from logscope.packs import Form, Pattern, Sample
from logscope.packs.problems import Problem
from logscope.units import NUMBER_UNITS, parse_number


def sample_problems(pattern: Pattern, form: Form, recogniser: Recogniser) -> Iterator[Problem]:
    """Yield the samples of a form that do not fit it alone, or give other values, and the rejects that fit."""
    for sample in form.samples:
        line = _message(sample.line, pattern, form, recogniser)
        problem = _fit_problem(pattern, form, sample, line, recogniser)
        if problem is not None:
            yield problem
        if match_form(line, pattern, form, recogniser.packs.aliases) is not None:
            yield from _value_problems(pattern, form, sample, line)
    for text in form.rejects:
        line = _message(text, pattern, form, recogniser)
        if _has_literal(line, form) and printed_values(line, pattern, form) is not None:
            what = f"the form of '{pattern.id}' fits what it must reject: {text!r}"
            yield Problem(form.place, what, "make the regex stricter")


def _message(text: str, pattern: Pattern, form: Form, recogniser: Recogniser) -> LogLine:
    return message_of(text, recogniser.packs.envelope, closes=None if form.contains else pattern.closes)


def _has_literal(line: LogLine, form: Form) -> bool:
    return not form.contains or any(literal in line.text for literal in form.contains)


def _fit_problem(pattern: Pattern, form: Form, sample: Sample, line: LogLine, recogniser: Recogniser) -> Problem | None:
    if not _has_literal(line, form):
        what = f"the sample holds none of its form's literals {list(form.contains)}"
        return Problem(sample.place, what, "mend 'contains' or the sample")
    fits = list(recogniser.fitting(line, recogniser.candidates(line)))
    if not pattern.fallback:
        fits = [fit for fit in fits if not fit[0].fallback]
    if not any(fit[1] is form for fit in fits):
        others = "".join(f", but {fit[0].id} ({fit[1].place})" for fit in fits[:1])
        what = f"the sample does not fit its form of '{pattern.id}'{others}"
        if printed_values(line, pattern, form) is not None:
            return Problem(sample.place, f"{what}: a value is no number", "mend the regex or the field's unit")
        return Problem(sample.place, what, "mend the regex or the sample; it is matched without its prefix, to its end")
    if len(fits) > 1:
        ids = ", ".join(f"{fit[0].id} ({fit[1].place})" for fit in fits)
        return Problem(sample.place, f"the sample fits {len(fits)} forms: {ids}", "make the regexes exclude each other")
    return None


def _value_problems(pattern: Pattern, form: Form, sample: Sample, line: LogLine) -> Iterator[Problem]:
    printed = printed_values(line, pattern, form)
    assert printed is not None
    for name, wanted in sample.want.items():
        field = pattern.fields.get(name)
        text = printed.get(name, form.set.get(name))
        if field is not None and field.map and text is not None:
            text = field.map.get(text, text)
        if text is None and field is not None:
            text = field.default
        if text is None or not _same(text, wanted, field.unit if field else "text"):
            got = "nothing" if text is None else repr(text)
            what = f"the sample gives {got} for '{name}', wanted {wanted!r}"
            yield Problem(sample.place, what, "mend the regex or 'want'")


def _same(text: str, wanted: object, unit: str) -> bool:
    """Compare a value as printed with what a sample wants of it."""
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)):
        shown = wanted if isinstance(wanted, str) else repr(wanted)
        return text == shown or text.replace(" ", "") == shown.replace(" ", "")
    number = parse_number(text.split()[0].rstrip("%").removesuffix(".") if text.split() else "", "count")
    if unit in NUMBER_UNITS and unit != "clock" and number is not None:
        return number.value == wanted
    return text == str(wanted)
