"""Check what can be told of an event's forms without trying them on samples."""

from __future__ import annotations

from collections.abc import Iterator

import regex
from packaging.version import InvalidVersion, Version

from logscope.packcheck.slowness import ADVERSARIAL_TIMEOUT_S, plain_runaway_text, runaway_text
from logscope.packs import SHORTEST_LITERAL, Form, Packs, Pattern, Place
from logscope.packs.problems import Problem

_BAD_RELEASE = 'write  since = "0.4.6.post5"'


def range_problems(pattern: Pattern) -> Iterator[Problem]:
    """Yield releases that are none, and ranges of an event that are empty or overlap."""
    ranges: list[tuple[Version | None, Version | None, Form]] = []
    for form in pattern.forms:
        try:
            since, until = release_range(form.since, form.until)
        except InvalidVersion as error:
            yield Problem(form.place, f"not a release: {error}", _BAD_RELEASE)
            continue
        if since is not None and until is not None and since >= until:
            what = f"the range {form.since}..{form.until} is empty"
            yield Problem(form.place, what, "'until' is the first release without the wording")
        for other_since, other_until, other in ranges:
            begins_before_other_ends = other_until is None or since is None or since < other_until
            if begins_before_other_ends and (until is None or other_since is None or other_since < until):
                what = f"releases of this form of '{pattern.id}' overlap with those of {other.place}"
                do = "close the older one with 'until', or put the alternatives into one regex"
                yield Problem(form.place, what, do)
        ranges.append((since, until, form))


def release_range(since: str | None, until: str | None) -> tuple[Version | None, Version | None]:
    """Read a range of releases.

    Raises:
        InvalidVersion: one of them is not a release.
    """
    return Version(since) if since else None, Version(until) if until else None


def release_problem(since: str | None, until: str | None, place: Place) -> Problem | None:
    """Return what is wrong with a range of releases."""
    try:
        release_range(since, until)
    except InvalidVersion as error:
        return Problem(place, f"not a release: {error}", _BAD_RELEASE)
    return None


def regex_problem(pattern: Pattern, form: Form) -> Problem | None:
    """Return why a form must not be tried at all: its regex is none, or runs away, or its literal is empty."""
    if not all(form.contains):
        return Problem(form.place, f"a literal of '{pattern.id}' is empty", 'write  contains = "..."')
    if form.regex is None:
        return None
    try:
        compiled = form.compiled()
    except regex.error as error:
        return Problem(form.place, f"not a regex: {error}: {form.regex}", "mend the regex")
    seeds = tuple(sample.line for sample in form.samples[:1]) or form.contains[:1]
    text = runaway_text(compiled, seeds)
    plain = form.plain()
    if text is None and plain is not None:
        text = plain_runaway_text(plain, seeds)
    if text is None:
        return None
    what = f"the regex of '{pattern.id}' does not finish in {ADVERSARIAL_TIMEOUT_S} s on long input of {text!r}"
    return Problem(form.place, what, "avoid nested repeats such as (a+)+ and .* beside .*")


def frequency_problems(packs: Packs) -> Iterator[Problem]:
    """Yield literals that stand in lines which a log holds by the million.

    To read such a line takes about 200 times as long as to skip it: 28 us and 0.13 us (rows ``density`` and ``sparse`` of benchmarks).
    """
    for pattern in packs.patterns:
        for form in pattern.forms:
            for literal in form.contains:
                found = packs.frequent_line(literal, but_of=pattern.phase)
                if found is not None:
                    phase, line = found
                    what = f"literal {literal!r} of '{pattern.id}' stands in a line that a log holds by the million ({phase.place}: "
                    what += f"{line!r}): to read it takes 200 times as long as to skip it"
                    yield Problem(form.place, what, "take a part of the line that only this event has")


def form_problems(pattern: Pattern, form: Form) -> Iterator[Problem]:
    """Yield literals that are not rare, groups and fields that have no counterpart, and a want of samples."""
    for literal in form.contains:
        if len(literal) < SHORTEST_LITERAL:
            what = f"literal {literal!r} of '{pattern.id}' is too short to be rare"
            yield Problem(form.place, what, f"take a longer part of the line, {SHORTEST_LITERAL} characters at least")
    if not form.samples:
        what = f"a form of '{pattern.id}' has no sample"
        yield Problem(form.place, what, "add  [[event.form.sample]]  with line and want")
    if form.regex is None:
        return
    groups = form.compiled().groupindex
    for group in groups:
        if group not in pattern.fields and group.removesuffix("_unit") not in pattern.fields:
            do = f"add  fields.{group} = {{ unit = \"...\" }}  to event '{pattern.id}'"
            yield Problem(form.place, f"group '{group}' has no field", do)
    for field in pattern.fields.values():
        if not field.optional and field.name not in groups and field.name not in form.set:
            what = f"field '{field.name}' of '{pattern.id}' has no group in this form"
            yield Problem(form.place, what, f"name it  (?P<{field.name}>...)  or write  optional = true")
