"""Check the envelope: prefixes, noise, suffixes, blocks and secrets, on their own samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from logscope.lines import peel_outer, redact, split_at_prefixes
from logscope.model import LogLine, Pos
from logscope.packcheck.forms import release_problem
from logscope.packcheck.slowness import plain_runaway_text
from logscope.packs import Envelope, Place, Prefix, Sample, Secret
from logscope.packs.problems import Problem

_MEND_SAMPLE = "mend the regex or the sample"
_MEND_WANT = "mend the regex or 'want'"
_STRICTER = "make the regex stricter"


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


def envelope_regex_problems(envelope: Envelope) -> Iterator[Problem]:
    """Yield the regexes that run away: no line can be read with them."""
    for compiled, place, samples in _regexes(envelope):
        text = plain_runaway_text(compiled, tuple(sample.line for sample in samples[:1]) or ("",))
        if text is not None:
            what = f"the regex takes too long on long input of {text!r}"
            yield Problem(place, what, "avoid nested repeats such as (a+)+ and .* beside .*")


def _regexes(envelope: Envelope) -> Iterator[tuple[re.Pattern[str], Place, tuple[Sample, ...]]]:
    for prefix in (*envelope.noise, *envelope.outer, *envelope.sglang, *envelope.suffix):
        yield prefix.regex, prefix.place, prefix.samples
    for block in envelope.blocks:
        yield block.continues, block.place, ()
        yield block.closes, block.place, ()
    for secret in envelope.secrets:
        yield secret.regex, secret.place, secret.samples


def envelope_problems(envelope: Envelope) -> Iterator[Problem]:
    """Yield what is wrong with the entries of the envelope, tried on their samples and rejects."""
    for prefix in (*envelope.outer, *envelope.sglang):
        yield from _entry_problems(prefix)
        if prefix.regex.search(""):
            yield Problem(prefix.place, f"prefix '{prefix.id}' fits an empty text", _STRICTER)
        for sample in prefix.samples:
            if prefix.regex.search(sample.line):
                yield from _want_problems(sample, _parts(sample.line, envelope, prefix in envelope.outer))
    for entry in (*envelope.noise, *envelope.suffix):
        yield from _entry_problems(entry)
        for sample in entry.samples:
            yield from _want_problems(sample, {"rest": entry.regex.sub("", sample.line)})
    for secret in envelope.secrets:
        yield from _entry_problems(secret)
        for sample in secret.samples:
            yield from _want_problems(sample, {"rest": redact(sample.line, envelope.secrets)})


def _entry_problems(entry: Prefix | Secret) -> Iterator[Problem]:
    """Yield what is wrong with an entry by itself."""
    if isinstance(entry, Prefix) and (problem := release_problem(entry.since, entry.until, entry.place)):
        yield problem
    if not entry.samples:
        yield Problem(entry.place, f"'{entry.id}' has no sample", "add one, with line and want")
    for sample in entry.samples:
        if not entry.regex.search(sample.line):
            yield Problem(sample.place, f"the sample does not hold '{entry.id}'", _MEND_SAMPLE)
    for text in entry.rejects:
        fits = redact(text, (entry,)) != text if isinstance(entry, Secret) else bool(entry.regex.search(text))
        if fits:
            yield Problem(entry.place, f"'{entry.id}' fits what it must reject: {text!r}", _STRICTER)


def _parts(text: str, envelope: Envelope, is_outer: bool) -> dict[str, str | None]:
    """Return what the prefixes of a line say, and the rest of it."""
    line = message_of(text, envelope)
    if not is_outer:
        return {"time": line.time or line.outer_time, "origin": line.origin, "tags": line.tags, "rest": line.text}
    outer, is_partial = peel_outer(LogLine(Pos("sample", 1), text), envelope)
    return {
        "time": outer.outer_time,
        "origin": line.origin,
        "stream": outer.stream,
        "tags": line.tags,
        "rest": outer.text,
        "partial": "yes" if is_partial else None,
    }


def _want_problems(sample: Sample, got: Mapping[str, str | None]) -> Iterator[Problem]:
    for name, wanted in sample.want.items():
        if name == "partial":
            if bool(wanted) != bool(got.get(name)):
                yield Problem(sample.place, f"the sample is {'not ' if wanted else ''}partial", _MEND_WANT)
        elif (got.get(name) or "") != wanted:
            what = f"the sample gives {got.get(name)!r} for '{name}', wanted {wanted!r}"
            yield Problem(sample.place, what, _MEND_WANT)
