"""The pytest plugin: its fixtures in a pytest of their own, as users have it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from made_ci import write_job

pytest_plugins = ["pytester"]

GOOD = """
def test_launch_works(logscope_launch, logscope_check):
    launch = logscope_launch("good.log")
    assert "ready" == launch.outcome
    assert ["pass", "pass"] == [result.status for result in logscope_check("good.log", rules="logscope.toml").results]
    assert logscope_check(launch, "logscope.toml").exit_code == 0
"""


@pytest.fixture
def job(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with logs and rules, in which pytest runs without the options of this run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    write_job(pytester.path)
    return pytester


def test_plugin_is_an_entry_point_of_pytest() -> None:
    assert ["logscope.pytest_plugin"] == [each.value for each in entry_points(group="pytest11", name="logscope")]


def test_plugin_imports_nothing_heavy() -> None:
    """Neither pandas nor the pattern files nor any other module of logscope but two small ones."""
    script = (
        "import sys, pytest; before = set(sys.modules); import logscope.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ["logscope", "logscope.errors", "logscope.pytest_plugin", "logscope.safe"] == result.stdout.split()


def test_fixtures_read_and_check_a_launch(job: pytest.Pytester) -> None:
    job.makepyfile(GOOD)
    job.runpytest_subprocess().assert_outcomes(passed=1)


def test_plugin_is_silent_where_no_test_uses_it(job: pytest.Pytester) -> None:
    job.makepyfile("def test_nothing():\n    pass\n")
    result = job.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=1)
    assert "logscope" not in "\n".join(line for line in result.outlines if not line.startswith("plugins:"))


@pytest.mark.parametrize(("log", "word"), [("bad.log", "failed"), ("cut.log", "could not be judged")])
def test_failure_is_the_text_of_the_command_and_no_traceback(job: pytest.Pytester, log: str, word: str) -> None:
    job.makepyfile(f"def test_it(logscope_check):\n    logscope_check({log!r}, 'logscope.toml')\n")
    result = job.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    assert_told_without_internals(result)
    said = [line.removeprefix("E").strip() for line in result.outlines if line.startswith("E")]
    assert said[0].startswith(f"AssertionError: {log}: {word}: of 2 rules")
    command = subprocess.run(
        [sys.executable, "-m", "logscope", "check", log, "--rules", "logscope.toml"],
        cwd=job.path,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = command.stdout.partition("\nRule ")[0]  # the table of all results follows; lines are wrapped
    assert ["AssertionError:", *shown.split()] == " ".join(said).split()


def assert_told_without_internals(result: pytest.RunResult) -> None:
    """The only code shown is that of the test."""
    text = result.stdout.str()
    assert "pytest_plugin.py" not in text
    assert "site-packages" not in text
    assert "raise " not in text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("logscope_check('nothing.log', 'logscope.toml')", "SourceError: *nothing.log*"),
        ("logscope_check('good.log')", "UsageError: no rules to check"),
        ("logscope_check('good.log', 'nothing.toml')", "RulesError: *nothing.toml*"),
        ("logscope_check('logscope.toml', 'logscope.toml')", "NoLaunchError: *"),
        ("logscope_launch('nothing.log')", "SourceError: *nothing.log*"),
    ],
)
def test_what_cannot_be_used_is_said_without_a_traceback(job: pytest.Pytester, call: str, text: str) -> None:
    job.makepyfile(f"def test_it(logscope_check, logscope_launch):\n    {call}\n")
    result = job.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *{text.removesuffix('*')}*", "E *do: *"])
    assert_told_without_internals(result)


def test_text_of_a_log_cannot_command_a_terminal_or_ci(job: pytest.Pytester) -> None:
    name = "##[error]\x1b[31mbad.log"
    (job.path / "bad.log").rename(job.path / name)
    job.makepyfile(f"def test_it(logscope_check):\n    logscope_check(NAME, 'logscope.toml')\n\nNAME = {name!r}\n")
    result = job.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    said = [line for line in result.outlines if line.startswith("E ")]
    assert any("# #[error]bad.log" in line for line in said)
    assert [] == [line for line in said if "\x1b" in line or "##[" in line]


def test_errors_keep_their_type(job: pytest.Pytester) -> None:
    job.makepyfile("""
        import logscope, pytest

        def test_it(logscope_check):
            with pytest.raises(logscope.LogscopeError):
                logscope_check("nothing.log", "logscope.toml")
            with pytest.raises(AssertionError, match="kv-floor not judged"):
                logscope_check("bad.log", "logscope.toml")
    """)
    job.runpytest_subprocess().assert_outcomes(passed=1)


def test_labels_choose_lanes_and_baselines_are_compared_with(job: pytest.Pytester) -> None:
    (job.path / "lanes.toml").write_text(
        """
version = 1
[when.h200]
labels = { gpu = "H200" }
[[rule]]
id = "ready"
why = "nothing below means anything if the server never came up"
expect = { reach = "ready.fired_up" }
[[rule]]
id = "like-before"
why = "the KV cache does not shrink"
when = "h200"
select = { event = "kv_cache.allocated", field = "tokens" }
expect = { min = ">= baseline" }
"""
    )
    job.makepyfile("""
        def status(checked):
            return [result.status for result in checked.results]

        def test_it(logscope_check):
            assert ["pass", "skipped"] == status(logscope_check("good.log", "lanes.toml"))
            labels = {"gpu": "H200"}
            assert ["pass", "pass"] == status(logscope_check("good.log", "lanes.toml", baseline="good.log", labels=labels))
    """)
    job.runpytest_subprocess().assert_outcomes(passed=1)


def test_example_of_the_document_runs(job: pytest.Pytester) -> None:
    text = (Path(__file__).parent.parent / "docs/ci.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (job.path / "good.log").rename(job.path / "run.log")
    shutil.copy(job.path / "run.log", job.path / "good.log")
    job.makepyfile(example)
    job.runpytest_subprocess().assert_outcomes(passed=1)


DEFAULTS = "".join(
    f"def test_{name}_{number}(logscope_check):\n    logscope_check('../{name}.log')\n"
    for name in ("good", "bad")
    for number in range(3)
)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "xdist"])
def test_option_gives_the_rules_and_workers_of_xdist_know_them(job: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """The file is relative to where pytest was started, not to the root of the tests."""
    if workers:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    folder = job.mkdir("below")
    (folder / "test_defaults.py").write_text(DEFAULTS)
    job.makeini("[pytest]")
    result = run_in(job, folder, "--logscope-rules", "../logscope.toml", *workers)
    result.assert_outcomes(passed=3, failed=3)
    assert_told_without_internals(result)
    result.stdout.fnmatch_lines(["E *AssertionError: *bad.log: failed: of 2 rules 1 broken, 1 not judged.*"])


def run_in(job: pytest.Pytester, folder: Path, *args: str) -> pytest.RunResult:
    job.chdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return job.runpytest_subprocess(*args)


def test_rules_that_are_not_there_stop_pytest_before_any_test(job: pytest.Pytester) -> None:
    job.makepyfile(GOOD)
    result = job.runpytest_subprocess("--logscope-rules", "nothing.toml")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["ERROR: --logscope-rules *nothing.toml: no such file"])
