"""Compare logscope's arithmetic of the budget with SGLang's own functions, number by number.

    python -m tests.conformance.budget_check                          the releases in which a formula changed
    python -m tests.conformance.budget_check --releases 0.5.9,0.5.23  some
    python -m tests.conformance.budget_check --releases all           all of the package index

Exit code 1 if a number differs. Releases are kept where the other conformance check keeps them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from logscope.budget.releases import CHANGES, FIRST

from .budget_cases import Difference, Tally, compare_budgets, compare_fractions
from .releases import cache_dir, fetch, list_releases

SMALL = (
    *("0.3.6", "0.4.3", "0.4.6.post5", "0.4.8", "0.5.2", "0.5.3", "0.5.6", "0.5.7", "0.5.9", "0.5.10", "0.5.13"),
    *("0.5.14", "0.5.18", "0.5.23"),
)
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """What one release gave, by group."""

    release: str
    tallies: dict[str, Tally]
    differences: list[Difference]


def check_release(release: str) -> Checked:
    """Compare everything for one release."""
    root = fetch(release, cache_dir())
    tallies, differences = compare_budgets(root, release)
    fractions, more = compare_fractions(root, release)
    return Checked(
        release, tallies | {f"fraction: {name}": tally for name, tally in fractions.items()}, differences + more
    )


def check_releases(releases: Iterable[str], jobs: int = 1) -> list[Checked]:
    """Compare everything for releases, in their order."""
    names = list(releases)
    if jobs == 1:
        return [check_release(name) for name in names]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(check_release, names))


def report_lines(results: list[Checked]) -> list[str]:
    """Return a table by release, a table by group, and every kind of difference with its first cases.

    "equal" counts numbers, "both fail" launches that fail in both before there is one.
    """
    lines = [f"{'release':14}{'equal':>8}{'both fail':>11}{'not modelled':>14}{'different':>11}"]
    groups: dict[str, Tally] = {}
    for each in results:
        for name, tally in each.tallies.items():
            total = groups.setdefault(name, Tally())
            total.equal += tally.equal
            total.failing += tally.failing
            total.refused += tally.refused
            total.different += tally.different
        lines.append(f"{each.release:14}{_columns(each.tallies.values())}")
    lines += ["", f"{'group':36}{'equal':>8}{'both fail':>11}{'not modelled':>14}{'different':>11}"]
    lines += [f"{name:36}{_columns([tally])}" for name, tally in groups.items()]
    lines += [f"{'all':36}{_columns(groups.values())}"]
    return lines + _difference_lines(results)


def _columns(tallies: Iterable[Tally]) -> str:
    parts = [(each.equal - each.failing, each.failing, each.refused, each.different) for each in tallies]
    equal, failing, refused, different = (sum(column) for column in zip(*parts, strict=True))
    return f"{equal:8}{failing:11}{refused:14}{different:11}"


def _difference_lines(results: list[Checked]) -> list[str]:
    lines: list[str] = []
    for each in results:
        seen: dict[str, int] = {}
        for found in each.differences:
            seen[found.group] = seen.get(found.group, 0) + 1
            if seen[found.group] <= SHOWN:
                lines.append(f"{found.release} {found.group}: logscope {found.ours}, SGLang {found.theirs}")
                lines.append(f"  {found.case}")
        lines += [f"{each.release} {name}: {count - SHOWN} more" for name, count in seen.items() if count > SHOWN]
    return ["", *lines] if lines else []


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.budget_check", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--releases", default="changes", help="releases with commas between, changes (default), small or all"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(argv)
    named = {"changes": (FIRST, *CHANGES), "small": SMALL}
    releases = (
        list_releases() if options.releases == "all" else named.get(options.releases) or options.releases.split(",")
    )
    cache_dir().mkdir(parents=True, exist_ok=True)
    results = check_releases(releases, options.jobs)
    sys.stdout.write("\n".join(report_lines(results)) + "\n")
    return 1 if any(each.differences for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
