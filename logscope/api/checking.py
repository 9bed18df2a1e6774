"""``logscope.check``: rules over a launch, as ``logscope check`` judges them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from logscope.api._html import report_html
from logscope.api.launches import AnyPath, LaunchView, Log, views_of
from logscope.checker import Checked, Result, RuleFile, Subject, load_rules, named_baseline, read_baseline
from logscope.checker import check as check_rules
from logscope.checker.baseline import last_of_each
from logscope.frames import frame_of
from logscope.model import Launch
from logscope.packs import Packs
from logscope.report.check import check_report, rule_lines
from logscope.safe import clean, clean_lines

if TYPE_CHECKING:
    import pandas

OneBaseline = AnyPath | LaunchView


class CheckedView:
    """What became of the rules on one launch. ``checked`` holds all results."""

    def __init__(self, checked: Checked) -> None:
        self.checked = checked

    @property
    def verdict(self) -> str:
        """The sentence that comes first: how many rules hold, and the worst that does not."""
        return self.checked.verdict

    @property
    def is_good(self) -> bool:
        """Whether every rule of level error holds, or is not for this launch; False also where one could not be judged."""
        return self.checked.exit_code == 0

    @property
    def exit_code(self) -> int:
        """What the command would exit with: 0, 1 if a rule is broken, 3 if one could not be judged."""
        return self.checked.exit_code

    @property
    def results(self) -> tuple[Result, ...]:
        """All results, in the order of the rules file."""
        return self.checked.results

    @property
    def frame(self) -> pandas.DataFrame:
        """The results, one a row."""
        records = check_report(self.checked).records
        assert records is not None, "this report has rows"
        return frame_of(records.rows, records.schema)

    def __str__(self) -> str:
        """Return the verdict, and what is to be said of each rule that is broken or could not be judged."""
        told = [*self.checked.of("fail"), *self.checked.of("inconclusive")]
        return clean_lines("\n".join([self.verdict, *rule_lines(told)]))

    def __repr__(self) -> str:
        return clean(f"<check: {self.verdict}>")

    def _repr_html_(self) -> str:
        return report_html(check_report(self.checked))


def check(
    log: Log,
    rules: AnyPath,
    *,
    baseline: OneBaseline | Sequence[OneBaseline] | None = None,
    labels: Mapping[str, str] | None = None,
) -> CheckedView:
    """Judge the rules of a file on a launch, the last one of a log.

    Args:
        log: a log, or what ``read`` gives. Several logs are nodes of one launch; else the last launch of each is judged.
        rules: the rules file.
        baseline: a launch that worked, its log, or a stored baseline (.json), or several; None: the one that the rules file names,
            beside it.
        labels: what no log tells and lanes ask for, such as ``{"gpu": "H200"}``.

    Raises:
        logscope.LogscopeError: a log or baseline is missing, unreadable, or holds no launch; the rules file is refused.
    """
    views = views_of(log)
    packs = views[-1].packs
    file = load_rules(Path(rules), packs)
    launches = last_of_each([view.launch for view in views])
    before = _baselines(baseline, file, packs)
    subjects = [Subject(launch, packs, before, dict(labels or {})) for launch in launches]
    return CheckedView(check_rules(subjects, file))


def _baselines(given: OneBaseline | Sequence[OneBaseline] | None, file: RuleFile, packs: Packs) -> list[Launch]:
    if given is None:
        return named_baseline(file, packs)
    several = [given] if isinstance(given, (str, os.PathLike, LaunchView)) else given
    return [launch for each in several for launch in _launches_of(each, packs)]


def _launches_of(baseline: OneBaseline, packs: Packs) -> Sequence[Launch]:
    if isinstance(baseline, LaunchView):
        return (baseline.launch,)
    return read_baseline(os.fspath(baseline), packs).launches
