"""What a maintainer runs on the day a release appears: what it says anew, otherwise, or no longer.

    python -m tests.conformance.new_release 0.5.24                    beside the release before it
    python -m tests.conformance.new_release 0.5.24 --before 0.5.22

Only messages that bear on a launch count. Standard output is a pattern file: a comment for each new, changed and vanished message, and a
block to paste for each that the pattern files do not know yet, and the names of new arguments. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from logscope.events import Recogniser
from logscope.gaps import find_gaps, gap_pack
from logscope.packcheck import message_of
from logscope.packs import load_packs

from .arguments import argument_names
from .releases import cache_dir, fetch, list_releases, sorted_releases
from .run import Finding, judge_releases

_ALIKE = 0.6  # of a wording's characters, from which on it is the same message said otherwise
_LONGEST = 150


@dataclass(frozen=True, slots=True)
class Difference:
    """Bearing messages of two releases: those only in the later one, those only in the earlier one, and pairs of both."""

    new: tuple[Finding, ...]
    vanished: tuple[Finding, ...]
    changed: tuple[tuple[Finding, Finding], ...]


def compare(before: Sequence[Finding], after: Sequence[Finding]) -> Difference:
    """Return how the messages of two releases differ, each message once."""
    old, fresh = _by_template(before), _by_template(after)
    vanished = {key: finding for key, finding in old.items() if key not in fresh}
    new: list[Finding] = []
    changed: list[tuple[Finding, Finding]] = []
    for key, finding in fresh.items():
        if key in old:
            continue
        twin = difflib.get_close_matches(key[1], [other for _, other in vanished], 1, _ALIKE)
        earlier = next((other for other in vanished if twin and other[1] == twin[0]), None)
        if earlier is None:
            new.append(finding)
        else:
            changed.append((vanished.pop(earlier), finding))
    return Difference(tuple(new), tuple(vanished.values()), tuple(changed))


def _by_template(findings: Sequence[Finding]) -> dict[tuple[str, str], Finding]:
    """Return one finding per bearing template; one that tells of a fault, if there is one."""
    ordered = sorted((finding for finding in findings if finding.bears), key=lambda finding: finding.fault is not None)
    return {(finding.kind, finding.template): finding for finding in ordered}


def unknown(findings: Sequence[Finding]) -> list[Finding]:
    """Return the bearing messages that the pattern files do not read right, each template once."""
    return [finding for finding in _by_template(findings).values() if finding.fault]


def report_lines(difference: Difference, release: str, still_used: Mapping[str, bool]) -> Iterator[str]:
    """Yield the comments: what is new, changed and gone, and what logscope makes of it."""
    yield f"# {release}: {len(difference.new)} new, {len(difference.changed)} changed, {len(difference.vanished)} vanished messages"
    for finding in difference.new:
        yield f"# new       {_told(finding)}"
    for earlier, later in difference.changed:
        yield f"# changed   {_told(later)}"
        yield f"#   before  {_clip(earlier.template)}"
    for finding in difference.vanished:
        yield f"# vanished  {_told(finding)}"
        ended = [form for form in finding.forms if not still_used.get(form)]
        if ended:
            yield f'#   do      until = "{release}" on {", ".join(ended)}, if it has none'


def _told(finding: Finding) -> str:
    known = finding.fault or ", ".join(finding.forms) or "read as an exception"
    return f"[{finding.bears}; {known}] {finding.place}: {_clip(finding.template)}"


def _clip(template: str) -> str:
    text = " ".join(template.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def blocks(findings: Sequence[Finding], release: str) -> str:
    """Return a pattern file for messages that are not known, with the release as ``since``; empty if there are none."""
    if not findings:
        return ""
    packs = load_packs()
    recogniser = Recogniser(packs, dense=True)
    logs = [(finding.place, [finding.line.encode()]) for finding in findings]
    gaps = find_gaps(logs, recogniser)
    pack = gap_pack(gaps, packs, lambda line: message_of(line, packs.envelope).text)
    return pack.replace("  [[event.form]]\n", f'  [[event.form]]\n  since = "{release}"\n')


def unknown_arguments(root: Path) -> list[str]:
    """Return a comment on the arguments of an unpacked release that the pattern files do not list; none if they list all."""
    names = [name for name in argument_names(root) if name not in load_packs().arguments]
    return [f"# arguments, to be listed in patterns/server_args.toml: {' '.join(names)}"] if names else []


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.new_release", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("release")
    parser.add_argument("--before", help="the release to compare with (default: the one before it)")
    options = parser.parse_args(argv)
    cache_dir().mkdir(parents=True, exist_ok=True)
    before = options.before or _release_before(options.release)
    fetch(before, cache_dir())
    arguments = unknown_arguments(fetch(options.release, cache_dir()))
    earlier, later = judge_releases([before, options.release], jobs=1)
    used = {form: True for finding in later.findings for form in finding.forms}
    difference = compare(earlier.findings, later.findings)
    missing = unknown(later.findings)
    sys.stdout.write(
        "\n".join([*report_lines(difference, options.release, used), *arguments, "", blocks(missing, options.release)])
        + "\n"
    )
    sys.stderr.write(f"{len(missing)} messages of {options.release} are not known; compared with {before}\n")
    return 1 if missing or arguments else 0


def _release_before(release: str) -> str:
    ordered = sorted_releases([*list_releases(), release])
    return ordered[ordered.index(release) - 1]


if __name__ == "__main__":
    sys.exit(main())
