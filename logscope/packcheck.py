"""Check pattern files against their own samples: what ``logscope patterns check`` does, and what users' packs must pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import regex
from packaging.version import InvalidVersion, Version

from logscope.errors import PackError
from logscope.events import Recogniser, printed_values
from logscope.lines import peel_outer, redact, split_at_prefixes
from logscope.model import LogLine, Pos
from logscope.packs import Envelope, Form, Packs, Pattern, Place, Prefix, Sample
from logscope.units import NUMBER_UNITS, parse_number

SHORTEST_LITERAL = 4
ADVERSARIAL_TIMEOUT_S = 0.2
_TORTURE = (" ", "a", "0", "a ", "0.", "=,", "0, ", "[", "(", "x=1, ")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check looked at."""

    events: int
    forms: int
    samples: int


def check_packs(packs: Packs) -> Checked:
    """Try every form on every sample.

    Raises:
        PackError: with all problems, each with file:line and what to do.
    """
    recogniser = Recogniser(packs, dense=True)
    problems = list(_envelope_problems(packs.envelope))
    for pattern in packs.patterns:
        problems.extend(_range_problems(pattern))
        for form in pattern.forms:
            problems.extend(_form_problems(pattern, form))
            problems.extend(_sample_problems(pattern, form, recogniser))
    if problems:
        raise PackError(problems)
    forms = [form for pattern in packs.patterns for form in pattern.forms]
    return Checked(len(packs.patterns), len(forms), sum(len(form.samples) for form in forms))


def _problem(place: Place, what: str, do: str) -> str:
    return f"{place}: {what}\n  do: {do}"


def _range_problems(pattern: Pattern) -> Iterator[str]:
    ranges: list[tuple[Version | None, Version | None, Form]] = []
    for form in pattern.forms:
        try:
            since = Version(form.since) if form.since else None
            until = Version(form.until) if form.until else None
        except InvalidVersion as error:
            yield _problem(form.place, f"not a release: {error}", 'write  since = "0.4.6.post5"')
            continue
        if since is not None and until is not None and since >= until:
            yield _problem(
                form.place,
                f"the range {form.since}..{form.until} is empty",
                "'until' is the first release without the wording",
            )
        for other_since, other_until, other in ranges:
            begins_before_other_ends = other_until is None or since is None or since < other_until
            if begins_before_other_ends and (until is None or other_since is None or other_since < until):
                yield _problem(
                    form.place,
                    f"releases of this form of '{pattern.id}' overlap with those of {other.place}",
                    "close the older one with 'until', or put the alternatives into one regex",
                )
        ranges.append((since, until, form))


def _form_problems(pattern: Pattern, form: Form) -> Iterator[str]:
    for literal in form.contains:
        if len(literal) < SHORTEST_LITERAL:
            yield _problem(
                form.place,
                f"literal {literal!r} of '{pattern.id}' is too short to be rare",
                "take a longer part of the line",
            )
    if not form.samples:
        yield _problem(
            form.place, f"a form of '{pattern.id}' has no sample", "add  [[event.form.sample]]  with line and want"
        )
    if form.regex is None:
        return
    try:
        groups = form.compiled().groupindex
    except regex.error as error:
        yield _problem(form.place, f"not a regex: {error}", "mend the regex")
        return
    for group in groups:
        known = group in pattern.fields or (group.endswith("_unit") and group.removesuffix("_unit") in pattern.fields)
        if not known:
            yield _problem(
                form.place,
                f"group '{group}' has no field",
                f"add  fields.{group} = {{ unit = \"...\" }}  to event '{pattern.id}'",
            )
    for field in pattern.fields.values():
        if not field.optional and field.name not in groups and field.name not in form.set:
            yield _problem(
                form.place,
                f"field '{field.name}' of '{pattern.id}' has no group in this form",
                f"name it  (?P<{field.name}>...)  or write  optional = true",
            )
    yield from _slowness(pattern, form)


def _slowness(pattern: Pattern, form: Form) -> Iterator[str]:
    """Try a form on text made to let bad regexes run away: its own samples with long runs put in, and left unfinished."""
    seeds = [sample.line for sample in form.samples[:1]] or list(form.contains[:1])
    for seed in seeds:
        for text in _TORTURE:
            try:
                form.compiled().search(
                    f"{seed[: len(seed) // 2]}{text * (3000 // len(text))}\0", timeout=ADVERSARIAL_TIMEOUT_S
                )
                form.compiled().search(f"{seed}{text * (3000 // len(text))}\0", timeout=ADVERSARIAL_TIMEOUT_S)
            except TimeoutError:
                yield _problem(
                    form.place,
                    f"the regex of '{pattern.id}' does not finish in {ADVERSARIAL_TIMEOUT_S} s on long input of {text!r}",
                    "avoid nested repeats such as (a+)+ and .* beside .*",
                )
                return


def _sample_problems(pattern: Pattern, form: Form, recogniser: Recogniser) -> Iterator[str]:
    for sample in form.samples:
        line = message_of(sample.line, recogniser.packs.envelope, closes=pattern.closes if not form.contains else None)
        if form.contains and not any(literal in line.text for literal in form.contains):
            yield _problem(
                sample.place,
                f"the sample holds none of its form's literals {list(form.contains)}",
                "mend 'contains' or the sample",
            )
            continue
        fits = list(recogniser.fitting(line, recogniser.candidates(line)))
        if not pattern.fallback:
            fits = [fit for fit in fits if not fit[0].fallback]
        if not any(fit[1] is form for fit in fits):
            others = ", ".join(fit[0].id for fit in fits)
            yield _problem(
                sample.place,
                f"the sample does not fit its form of '{pattern.id}'" + (f", but {others}" if others else ""),
                "mend the regex or the sample",
            )
            continue
        if len(fits) > 1:
            ids = ", ".join(f"{fit[0].id} ({fit[1].place})" for fit in fits)
            yield _problem(
                sample.place, f"the sample fits {len(fits)} forms: {ids}", "make the regexes exclude each other"
            )
        yield from _value_problems(pattern, form, sample, line)
    for text in form.rejects:
        line = message_of(text, recogniser.packs.envelope, closes=pattern.closes if not form.contains else None)
        has_literal = not form.contains or any(literal in line.text for literal in form.contains)
        if has_literal and printed_values(line, pattern, form) is not None:
            yield _problem(
                form.place, f"the form of '{pattern.id}' fits what it must reject: {text!r}", "make the regex stricter"
            )


def _value_problems(pattern: Pattern, form: Form, sample: Sample, line: LogLine) -> Iterator[str]:
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
            yield _problem(
                sample.place, f"the sample gives {got} for '{name}', wanted {wanted!r}", "mend the regex or 'want'"
            )


def _same(text: str, wanted: object, unit: str) -> bool:
    """Compare a value as printed with what a sample wants of it."""
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)):
        shown = wanted if isinstance(wanted, str) else repr(wanted)
        return text == shown or text.replace(" ", "") == shown.replace(" ", "")
    number = parse_number(text.split()[0].rstrip("%").removesuffix(".") if text.split() else "", "count")
    if unit in NUMBER_UNITS and unit != "clock" and number is not None:
        return number.value == wanted
    return text == str(wanted)


# -- the envelope --------------------------------------------------------------------------------------------------------------


def message_of(text: str, envelope: Envelope, closes: str | None = None) -> LogLine:
    """Return the last message of a sample line, without its prefixes."""
    for noise in envelope.noise:
        text = noise.regex.sub("", text)
    line, _ = peel_outer(LogLine(Pos("sample", 1), text), envelope)
    tags, time, message, prefixed = split_at_prefixes(line.text.split("\r")[-1], envelope)[-1]
    for suffix in envelope.suffix:
        message = suffix.regex.sub("", message)
    message = redact(message.rstrip(), envelope.secrets)
    return LogLine(line.pos, message, tags, time, line.outer_time, line.origin, prefixed, closes=closes)


def _envelope_problems(envelope: Envelope) -> Iterator[str]:
    for group in (envelope.outer, envelope.sglang):
        for prefix in group:
            yield from _prefix_problems(prefix, envelope, is_outer=group is envelope.outer)
    for noise in (*envelope.noise, *envelope.suffix):
        for sample in noise.samples:
            yield from _want_problems(sample, {"rest": noise.regex.sub("", sample.line)})
    for secret in envelope.secrets:
        for sample in secret.samples:
            yield from _want_problems(sample, {"rest": redact(sample.line, envelope.secrets)})
        for text in secret.rejects:
            if redact(text, (secret,)) != text:
                yield _problem(
                    secret.place, f"'{secret.id}' redacts what is no secret: {text!r}", "make the regex stricter"
                )


def _prefix_problems(prefix: Prefix, envelope: Envelope, is_outer: bool) -> Iterator[str]:
    if not prefix.samples:
        yield _problem(prefix.place, f"prefix '{prefix.id}' has no sample", "add one, with line and want")
    for sample in prefix.samples:
        if not prefix.regex.search(sample.line):
            yield _problem(
                sample.place, f"the sample does not hold the prefix '{prefix.id}'", "mend the regex or the sample"
            )
            continue
        line = message_of(sample.line, envelope)
        got = {"time": line.time or line.outer_time, "origin": line.origin, "tags": line.tags, "rest": line.text}
        if is_outer:
            outer, is_partial = peel_outer(LogLine(Pos("sample", 1), sample.line), envelope)
            got |= {"time": outer.outer_time, "rest": outer.text, "partial": "yes" if is_partial else None}
        yield from _want_problems(sample, got)
    for text in prefix.rejects:
        if prefix.regex.search(text):
            yield _problem(
                prefix.place, f"prefix '{prefix.id}' fits what it must reject: {text!r}", "make the regex stricter"
            )


def _want_problems(sample: Sample, got: Mapping[str, str | None]) -> Iterator[str]:
    for name, wanted in sample.want.items():
        if name == "partial":
            if bool(wanted) != bool(got.get(name)):
                yield _problem(
                    sample.place, f"the sample is {'not ' if wanted else ''}partial", "mend the regex or 'want'"
                )
        elif (got.get(name) or "") != wanted:
            yield _problem(
                sample.place,
                f"the sample gives {got.get(name)!r} for '{name}', wanted {wanted!r}",
                "mend the regex or 'want'",
            )


def problems_of(packs: Packs) -> Sequence[str]:
    """Return the problems of pattern files, none if they are fine."""
    try:
        check_packs(packs)
    except PackError as error:
        return error.problems
    return ()
