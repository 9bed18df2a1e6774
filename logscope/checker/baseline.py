"""Stored baselines: the lines of launches that pattern files know, with where they come from.

Lines and not values are stored: a rule or a pattern that is added later finds what it needs, and a comparison is the same as with the
log itself. Secrets are redacted, and what no pattern knows is left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from logscope.checker.types import RuleFile
from logscope.errors import LogscopeError, RulesError, UsageError
from logscope.events import Recogniser
from logscope.launch import NodeLog, build_launches, split_streams
from logscope.lines import redact
from logscope.model import Launch
from logscope.packs import Packs
from logscope.reading import Reading, read_sources
from logscope.scan import ReadState
from logscope.source import Source, find_sources, read_blocks

SCHEMA = 1
_FROM_STORED = re.compile(r"(?P<file>.+\.json)#\d")


class Baseline(Struct, frozen=True):
    """Launches that worked, and where they come from (``provenance``: n, date, releases, pack hash, logs)."""

    launches: tuple[Launch, ...]
    provenance: Mapping[str, object]


def read_baseline(path: str, packs: Packs) -> Baseline:
    """Read a stored baseline, or the last launch of a log.

    Raises:
        UsageError: a stored baseline that is damaged, of another schema, or without a launch.
        LogscopeError: a log that cannot be read or holds no launch.
    """
    stored = _stored(Path(path))
    if stored is None:
        launches = last_of_each(read_sources(find_sources([path]), Reading(packs)))
        return Baseline(tuple(launches), {"n": len(launches), "from": [path]})
    launches = []
    for index, texts in enumerate(_texts(stored, path), 1):
        name = f"{path}#{index}"
        names = [name] if len(texts) == 1 else [f"{name}.{number}" for number in range(1, len(texts) + 1)]
        found = launches_of(dict(zip(names, texts, strict=True)), packs)
        if len(found) != 1:
            raise _damaged(path, f"launch {index} is read as {len(found)}")
        launches.extend(found)
    provenance = stored["provenance"]
    return Baseline(tuple(launches), provenance if isinstance(provenance, dict) else {})


def named_baseline(file: RuleFile, packs: Packs) -> list[Launch]:
    """Return the launches of the baseline that a rules file names, which is found beside it; none where it names none.

    Raises:
        RulesError: it cannot be used.
    """
    if file.baseline is None:
        return []
    path = str(Path(file.name).parent / file.baseline)
    try:
        return list(read_baseline(path, packs).launches)
    except LogscopeError as error:
        what, _, do = str(error).partition("\n")
        do = do or f"  do: logscope baseline write GOOD.log -o {path}, or give --baseline FILE"
        raise RulesError([f"{file.baseline_at}: the baseline that it names: {what}\n{do}"]) from error


def stored_file(source: str) -> str | None:
    """Return the file of the stored baseline that a launch was read from, None for a log."""
    match = _FROM_STORED.match(source)
    return match["file"] if match else None


def last_of_each(launches: Sequence[Launch]) -> list[Launch]:
    """Return the last launch of each log: the earlier ones were followed by another."""
    return list({launch.nodes[0].file: launch for launch in launches}.values())


def _damaged(path: str, why: str) -> UsageError:
    return UsageError(f"{path}: no stored baseline: {why}\n  do: logscope baseline write LOG... -o {path} --force")


def _stored(path: Path) -> dict[str, object] | None:
    """Return the content of a stored baseline, None for any other file.

    Raises:
        UsageError: it is called like one and is none.
    """
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise _damaged(str(path), str(error)) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise _damaged(str(path), f"its schema is not {SCHEMA}")
    if not isinstance(found.get("launches"), list) or not found["launches"]:
        raise _damaged(str(path), "it has no launches")
    if not isinstance(found.get("provenance"), dict):
        raise _damaged(str(path), "it does not say where it comes from")
    return found


def _texts(stored: Mapping[str, object], path: str) -> Iterator[list[str]]:
    """Yield the logs of each launch."""
    launches = stored["launches"]
    assert isinstance(launches, list), "asked before"
    for index, launch in enumerate(launches, 1):
        logs = launch.get("logs") if isinstance(launch, dict) else None
        if not isinstance(logs, list) or not logs or not all(_is_log(log) for log in logs):
            raise _damaged(path, f"launch {index} has no lines")
        yield ["\n".join(log) + "\n" for log in logs]


def _is_log(log: object) -> bool:
    return isinstance(log, list) and all(isinstance(line, str) for line in log)


def launches_of(texts: Mapping[str, str], packs: Packs) -> list[Launch]:
    """Return the launches of texts (name -> text), which are read like files; none if they have none."""
    recogniser = Recogniser(packs)
    logs = [
        NodeLog(segment)
        for name, text in texts.items()
        for segment, is_closed in split_streams(packs, name, recogniser.read(name, [text.encode()], ReadState()))
        if is_closed
    ]
    return build_launches(logs, packs, None)


def write_baseline(launches: Sequence[Launch], packs: Packs, date: str, kept: Path | None = None) -> str:
    """Return the text of a stored baseline.

    Args:
        launches: at least one.
        date: as given by whoever writes it; logscope does not look at a clock.
        kept: a stored baseline whose launches stay.

    Raises:
        SourceError: a log cannot be read again.
    """
    stored: list[object] = []
    names: list[object] = []
    releases: list[object] = []
    if kept is not None:
        old = _stored(kept) or {}
        stored.extend(_list(old.get("launches")))
        provenance = old.get("provenance")
        names.extend(_list(provenance.get("from")) if isinstance(provenance, dict) else [])
        releases.extend(_list(provenance.get("releases")) if isinstance(provenance, dict) else [])
    stored.extend({"from": launch.source, "logs": known_lines(launch, packs)} for launch in launches)
    about = {
        "n": len(stored),
        "date": date,
        "releases": list(dict.fromkeys([*releases, *(str(launch.releases) for launch in launches)])),
        "pack_hash": pack_hash(packs),
        "from": [*names, *(launch.source for launch in launches)],
    }
    return json.dumps({"schema": SCHEMA, "provenance": about, "launches": stored}, indent=1, ensure_ascii=False) + "\n"


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def known_lines(launch: Launch, packs: Packs) -> list[list[str]]:
    """Return the physical lines of a launch that pattern files know, secrets redacted: of each of its files, in file order."""
    wanted: dict[str, set[int]] = {}
    for event in launch.events:
        wanted.setdefault(event.pos.file, set()).add(event.pos.line)
    return [
        [_shown(line, packs) for source in find_sources([file]) for line in _lines(source, numbers)]
        for file, numbers in wanted.items()
    ]


def _lines(source: Source, numbers: set[int]) -> Iterator[bytes]:
    rest, number = b"", 0
    for block in read_blocks(source, None):
        pieces = (rest + block).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            number += 1
            if number in numbers:
                yield piece
    if rest and number + 1 in numbers:
        yield rest


def _shown(line: bytes, packs: Packs) -> str:
    return redact(line.decode("utf-8", errors="replace").rstrip("\r"), packs.envelope.secrets)


def pack_hash(packs: Packs) -> str:
    """Return a short name for what the pattern files know: it changes when a wording is added."""
    words = [
        f"{pattern.id} {form.since} {form.until} {form.regex}" for pattern in packs.patterns for form in pattern.forms
    ]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
