"""Fixtures for tests of launches: ``logscope_launch`` and ``logscope_check``; pytest loads this module by its entry point.

pytest imports it at every start, so of logscope it imports what is small, and the public names when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

import logscope
from logscope.errors import UsageError
from logscope.safe import clean_lines

if TYPE_CHECKING:
    from logscope.checker import Checked

AnyPath = str | PathLike[str]
OPTION = "--logscope-rules"


class ReadLaunch(Protocol):
    """What ``logscope_launch`` is."""

    def __call__(self, path: AnyPath) -> logscope.LaunchView:
        """Read a log and return its last launch.

        Raises:
            logscope.LogscopeError: the log is missing, unreadable, or holds no launch.
        """


class CheckLaunch(Protocol):
    """What ``logscope_check`` is."""

    def __call__(
        self,
        path: AnyPath | logscope.LaunchView,
        rules: AnyPath | None = None,
        baseline: AnyPath | Sequence[AnyPath] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Checked:
        """Check a launch, or the last one of a log; the rules are those of ``--logscope-rules`` where none are given.

        Raises:
            AssertionError: a rule is broken or could not be judged; the text is that of ``logscope check``.
            logscope.LogscopeError: a log, baseline or rules file cannot be used, or there are no rules.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the rules file."""
    group = parser.getgroup("logscope", "logscope")
    group.addoption(
        OPTION, metavar="FILE", default=None, help="rules file of the fixture logscope_check, where a test names none"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a rules file that is not there before any test runs."""
    rules = _default_rules(config)
    if rules is not None and not rules.is_file():
        raise pytest.UsageError(f"{OPTION} {rules}: no such file")


@pytest.fixture(scope="session")
def logscope_launch() -> ReadLaunch:
    """Return a function that reads a log (path) and gives its last launch, a ``logscope.LaunchView``."""

    def read_launch(path: AnyPath) -> logscope.LaunchView:
        __tracebackhide__ = True
        try:
            return logscope.read(path)[-1]
        except logscope.LogscopeError as error:
            raise _bare(error) from None

    return read_launch


@pytest.fixture(scope="session")
def logscope_check(pytestconfig: pytest.Config) -> CheckLaunch:
    """Return a function that checks a log (path, rules=, baseline=, labels=) and fails the test where a rule is broken."""
    default = _default_rules(pytestconfig)

    def check_launch(
        path: AnyPath | logscope.LaunchView,
        rules: AnyPath | None = None,
        baseline: AnyPath | Sequence[AnyPath] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Checked:
        __tracebackhide__ = True
        view = _checked(path, rules or default, baseline, labels)
        if not view.is_good:
            raise AssertionError(str(view))
        return view.checked

    return check_launch


def _checked(
    path: AnyPath | logscope.LaunchView,
    rules: AnyPath | None,
    baseline: AnyPath | Sequence[AnyPath] | None,
    labels: Mapping[str, str] | None,
) -> logscope.CheckedView:
    """Check; an error comes without the way to it."""
    __tracebackhide__ = True
    if rules is None:
        raise UsageError(f"no rules to check\n  do: logscope_check(path, rules=FILE), or pytest {OPTION} FILE")
    try:
        return logscope.check(path, rules, baseline=baseline, labels=labels)
    except logscope.LogscopeError as error:
        raise _bare(error) from None


def _bare(error: logscope.LogscopeError) -> logscope.LogscopeError:
    """Return an error that pytest shows as what it says: safe to show, and without the way to it inside logscope."""
    error.args = (clean_lines(str(error)),)
    return error.with_traceback(None)


def _default_rules(config: pytest.Config) -> Path | None:
    """Return the file of the option, which is relative to where pytest was started, also in the workers of pytest-xdist."""
    given: str | None = config.getoption(OPTION)
    return None if given is None else Path(normpath(config.invocation_params.dir / given))
