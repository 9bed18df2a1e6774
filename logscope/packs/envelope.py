"""Read ``envelope.toml``: what stands before and around SGLang's message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from logscope.packs.types import Block, Envelope, Place, Prefix, Secret
from logscope.packs.values import FileValues, Table

T = TypeVar("T")


def read_envelope(document: Table, values: FileValues) -> Envelope:
    """Read one envelope file; entries with a problem are left out."""
    values.check_keys(document, "noise outer sglang suffix block secret", Place(values.name, 1), "the envelope")
    return Envelope(
        noise=_entries(document, "noise", _prefix, values),
        outer=_entries(document, "outer", _prefix, values),
        sglang=_entries(document, "sglang", _prefix, values),
        suffix=_entries(document, "suffix", _prefix, values),
        blocks=_entries(document, "block", _block, values),
        secrets=_entries(document, "secret", _secret, values),
    )


def joined(first: Envelope, second: Envelope) -> Envelope:
    """Return what both say; the first is tried first."""
    return Envelope(
        noise=first.noise + second.noise,
        outer=first.outer + second.outer,
        sglang=first.sglang + second.sglang,
        suffix=first.suffix + second.suffix,
        blocks=first.blocks + second.blocks,
        secrets=first.secrets + second.secrets,
    )


def _entries(
    document: Table, key: str, read: Callable[[Table, Place, FileValues, str], T], values: FileValues
) -> tuple[T, ...]:
    sound = []
    for table, place in values.tables(document, key, key):
        before = values.problem_count
        entry = read(table, place, values, key)
        if values.problem_count == before:
            sound.append(entry)
    return tuple(sound)


def _prefix(table: Table, place: Place, values: FileValues, header: str) -> Prefix:
    values.check_keys(table, "id regex gate since until sample rejects", place, f"[[{header}]]")
    return Prefix(
        id=values.text(table, "id", place, needed=True),
        pattern=values.regex(table, "regex", place, "tags" if header == "sglang" else None).pattern,
        place=place,
        gate=values.text(table, "gate", place) or None,
        samples=values.samples(table, header, place),
        rejects=values.texts(table, "rejects", place),
        since=values.text(table, "since", place) or None,
        until=values.text(table, "until", place) or None,
    )


def _block(table: Table, place: Place, values: FileValues, _header: str) -> Block:
    values.check_keys(table, "id begins continues closes", place, "[[block]]")
    with_closes = table if "closes" in table else {**table, "closes": r"\S"}
    return Block(
        id=values.text(table, "id", place, needed=True),
        begins=values.text(table, "begins", place, needed=True),
        continues=values.regex(table, "continues", place),
        closes=values.regex(with_closes, "closes", place),
        place=place,
    )


def _secret(table: Table, place: Place, values: FileValues, header: str) -> Secret:
    values.check_keys(table, "id regex keep contains sample rejects", place, "[[secret]]")
    return Secret(
        id=values.text(table, "id", place, needed=True),
        pattern=values.regex(table, "regex", place, "secret").pattern,
        keep_pattern=values.regex(table, "keep", place).pattern if "keep" in table else None,
        place=place,
        samples=values.samples(table, header, place),
        rejects=values.texts(table, "rejects", place),
        contains=tuple(word.lower() for word in values.texts(table, "contains", place)),
    )
