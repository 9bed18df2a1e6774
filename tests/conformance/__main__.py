"""Check the pattern files against the source of SGLang releases.

    python -m tests.conformance                           all releases of the package index: the full run
    python -m tests.conformance --releases 0.5.9,0.5.23   some
    python -m tests.conformance --update-digest           all, and write digest.json

Exit code 1 if a message that bears on a launch is not recognised, or a form's range is not exact.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from logscope.packs import load_packs

from .digest import make_digest, range_problems, read_digest, write_digest
from .releases import cache_dir, fetch, list_releases
from .report import fault_lines, inference_lines, table_lines
from .run import ReleaseResult, judge_releases


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    options = _parser().parse_args(argv)
    cache_dir().mkdir(parents=True, exist_ok=True)
    releases = list_releases() if options.releases == "all" else options.releases.split(",")
    for release in releases:
        fetch(release, cache_dir())
    results = []
    for result in judge_releases(releases, options.jobs):
        results.append(result)
        sys.stderr.write(f"{result.release}: {result.messages} messages\n")
    problems = _range_problems(results, options)
    faults = fault_lines(results)
    report = "\n".join([*table_lines(results), "", *inference_lines(results), "", *faults, *problems]) + "\n"
    sys.stdout.write(report)
    if options.report:
        options.report.write_text(report, encoding="utf-8")
    return 1 if faults or problems else 0


def _range_problems(results: list[ReleaseResult], options: argparse.Namespace) -> list[str]:
    if options.releases != "all":
        return []
    digest = make_digest(results)
    if options.update_digest:
        write_digest(digest)
    stale = [] if digest == read_digest() else ["digest.json is not what the releases say\n  do: --update-digest"]
    return [*stale, *range_problems(digest, load_packs())]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--releases", default="all", help="releases with commas between, or all (default)")
    parser.add_argument("--report", type=Path, help="also write what is printed to this file")
    parser.add_argument("--update-digest", action="store_true", help="write digest.json (with --releases all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
