"""``digest.json``: which message (as a hash) fits which form in which releases. Facts about releases, no text of theirs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from logscope.packs import Form, Packs

from .exceptions import unseen
from .run import ReleaseResult

FILE = Path(__file__).with_name("digest.json")
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Digest:
    """The releases that were read, oldest first, and per form and message hash the releases that print it."""

    releases: tuple[str, ...]
    forms: Mapping[str, Mapping[str, tuple[str, ...]]]

    def used_in(self, form: str) -> list[str]:
        """Return the releases in which a message fits the form, oldest first."""
        used = {release for releases in self.forms.get(form, {}).values() for release in releases}
        return [release for release in self.releases if release in used]

    def counts(self, release: str) -> dict[str, int]:
        """Return how many messages of a release fit each event."""
        found: dict[str, int] = {}
        for form, messages in self.forms.items():
            count = sum(release in releases for releases in messages.values())
            if count:
                event = form.partition("#")[0]
                found[event] = found.get(event, 0) + count
        return found


def make_digest(results: Sequence[ReleaseResult]) -> Digest:
    """Return the digest of results of all releases, oldest first."""
    forms: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for form, message in sorted({(form, f.hash) for f in result.findings for form in f.forms}):
            forms.setdefault(form, {}).setdefault(message, []).append(result.release)
    return Digest(
        tuple(result.release for result in results),
        {form: {name: tuple(used) for name, used in sorted(forms[form].items())} for form in sorted(forms)},
    )


def read_digest(path: Path = FILE) -> Digest:
    """Read the digest that is checked in."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    releases = tuple(stored["releases"])
    forms = {
        form: {name: tuple(_unfold(runs, releases)) for name, runs in messages.items()}
        for form, messages in stored["forms"].items()
    }
    return Digest(releases, forms)


def write_digest(digest: Digest, path: Path = FILE) -> None:
    """Write the digest, one form a line."""
    lines = [
        f"  {json.dumps(form)}: {json.dumps({name: _fold(used, digest.releases) for name, used in messages.items()})}"
        for form, messages in digest.forms.items()
    ]
    head = f'{{\n"schema": {_SCHEMA},\n"releases": {json.dumps(digest.releases)},\n"forms": {{\n'
    path.write_text(head + ",\n".join(lines) + "\n}\n}\n", encoding="utf-8")


def _fold(used: Iterable[str], releases: Sequence[str]) -> str:
    """Write releases as runs: "0.5.6..0.5.8 0.5.10"."""
    runs: list[list[int]] = []
    for index in sorted(releases.index(release) for release in used):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return " ".join(releases[a] if a == b else f"{releases[a]}..{releases[b]}" for a, b in runs)


def _unfold(runs: str, releases: Sequence[str]) -> Iterator[str]:
    for run in runs.split():
        first, _, last = run.partition("..")
        yield from releases[releases.index(first) : releases.index(last or first) + 1]


def form_ids(packs: Packs) -> Iterator[tuple[str, Form]]:
    """Yield every form that is no fallback with its place-independent id."""
    for pattern in packs.patterns:
        if not pattern.fallback:
            yield from ((f"{pattern.id}#{index}", form) for index, form in enumerate(pattern.forms))


def exact_range(digest: Digest, form: str) -> tuple[str | None, str | None] | None:
    """Return the range that a form must state: the first release that uses it, the first after the last; None if none does."""
    used = digest.used_in(form)
    if not used:
        return None
    after = digest.releases.index(used[-1]) + 1
    since = None if used[0] == digest.releases[0] else used[0]
    return since, digest.releases[after] if after < len(digest.releases) else None


def range_problems(digest: Digest, packs: Packs) -> Iterator[str]:
    """Yield the forms whose range is not exact, and those that no release shows and no exception names."""
    known = dict(form_ids(packs))
    for name in digest.forms:
        if name not in known:
            yield f"{name}: in the digest, but not in the pattern files\n  do: python -m tests.conformance --update-digest"
    for name, form in known.items():
        if any(name.startswith(entry.form) for entry in unseen()):
            continue
        wanted = exact_range(digest, name)
        if wanted is None and (form.since or form.until):
            yield f"{form.place}: no release prints a message that fits {name}\n  do: mend the regex, or name it in exceptions.toml"
        elif wanted is not None and wanted != (form.since, form.until):
            yield (
                f"{form.place}: {name} has since={form.since}, until={form.until}; the releases that use it say since={wanted[0]}, "
                f"until={wanted[1]}"
            )
