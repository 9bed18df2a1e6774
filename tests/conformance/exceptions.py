"""Messages that need not be recognised, and forms whose wording no source shows: ``exceptions.toml``, each with its reason."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet

FILE = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True, slots=True)
class Waiver:
    """Messages (by regexes of file and template, in some releases) that are passed over, and why."""

    file: re.Pattern[str]
    template: re.Pattern[str]
    releases: SpecifierSet
    reason: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """Forms, by the start of their id, whose range the digest cannot tell, and why."""

    form: str
    reason: str


@cache
def waivers() -> tuple[Waiver, ...]:
    """Return the excepted messages."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8")).get("message", [])
    return tuple(
        Waiver(
            re.compile(entry.get("file", "")),
            re.compile(entry.get("template", "")),
            SpecifierSet(entry.get("releases", "")),
            entry["reason"],
        )
        for entry in entries
    )


@cache
def unseen() -> tuple[Unseen, ...]:
    """Return the forms that no harvested message has to show."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8")).get("form", [])
    return tuple(Unseen(e["form"], e["reason"]) for e in entries)


def excepted_by(file: str, template: str, release: str) -> Waiver | None:
    """Return the entry that excepts a message of a release, None if there is none."""
    for waiver in waivers():
        if waiver.file.search(file) and waiver.template.search(template) and release in waiver.releases:
            return waiver
    return None
