"""The Python interface beside ``read``: explain, diff and check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import iter_modules

import pytest

import logscope
from conftest import FIXTURES
from logscope.checker import Checked
from logscope.differ import Difference, Tolerance
from logscope.explainer import Explanation
from made_ci import write_job

GOOD = FIXTURES / "baseline" / "launch.log"
BAD = FIXTURES / "car" / "launch.log"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    write_job(tmp_path)
    return tmp_path


# -- names -----------------------------------------------------------------------------------------------------------------------


def test_no_public_name_is_that_of_a_submodule() -> None:
    modules = {module.name for module in iter_modules(logscope.__path__)}
    assert len(modules) > 20
    assert set() == modules & set(logscope.__all__)


def test_every_public_name_is_loaded_when_it_is_used() -> None:
    assert {"read", "explain", "diff", "check"} <= set(dir(logscope))
    assert all(getattr(logscope, name) is not None for name in logscope.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        logscope.nothing  # noqa: B018 # asking is the test


def test_type_checkers_see_the_names_that_are_loaded() -> None:
    """What stands under TYPE_CHECKING is what is loaded, from the same modules."""
    tree = ast.parse(Path(logscope.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    homes = {name: module for name, module in seen.items() if str(module).startswith("logscope.")}
    assert homes == logscope._HOME
    assert {*homes, "__version__"} == set(logscope.__all__)


@pytest.mark.parametrize(
    "call", ["explain(log)", "check(log, rules)", "check(log, rules, baseline=log, labels={'gpu': 'H200'})"]
)
def test_explain_and_check_do_without_pandas(call: str, job: Path) -> None:
    script = f"import sys, logscope; log, rules = sys.argv[1:]; logscope.{call}; print('pandas' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script, str(GOOD), str(job / "logscope.toml")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "False" == result.stdout.strip()


# -- explain ---------------------------------------------------------------------------------------------------------------------


def test_explain_gives_the_verdict_on_the_last_launch() -> None:
    view = logscope.explain(BAD)
    assert isinstance(view.explanation, Explanation)
    assert view.explanation.diagnosis is not None
    assert "not_enough_memory" == view.explanation.diagnosis.cause
    assert view.verdict == str(view) == view.explanation.verdict
    assert view.findings == view.explanation.findings
    assert view.verdict in repr(view)


def test_explain_takes_claims_what_ifs_and_bytes_per_token() -> None:
    view = logscope.explain(
        BAD, claims={"mem_fraction_static": 0.88}, what_if={"mem_fraction_static": 0.88}, cell_bytes=70272
    )
    assert "claim_refuted" in {finding.id for finding in view.findings}
    (answer,) = view.explanation.answers
    assert answer.grant.tokens is not None
    assert list(view.frame["id"]) == [finding.id for finding in view.findings]


def test_explain_refuses_what_it_does_not_model() -> None:
    with pytest.raises(logscope.LogscopeError, match="do: "):
        logscope.explain(GOOD, what_if={"attention_backend": "triton"})


# -- diff ------------------------------------------------------------------------------------------------------------------------


def test_diff_names_the_cause() -> None:
    view = logscope.diff(GOOD, BAD)
    assert isinstance(view.difference, Difference)
    assert view.is_changed
    assert view.causes == view.difference.causes
    assert "mem_fraction_static" in view.causes[0].name
    assert view.verdict == str(view) == "\n".join(view.difference.lines)
    assert {"same", "changed"} <= set(view.frame["verdict"])
    assert len(view.difference.changes) == len(view.frame)


def test_diff_of_a_launch_with_itself_is_none() -> None:
    assert not logscope.diff(GOOD, GOOD).is_changed


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        (None, Tolerance()),
        ("0.5 GiB", Tolerance(bytes=0.5 * 2**30)),
        ("100MiB", Tolerance(bytes=100 * 2**20)),
        ("1 %", Tolerance(share=0.01)),
        ("1%", Tolerance(share=0.01)),
        (Tolerance(share=0.02), Tolerance(share=0.02)),
    ],
)
def test_tolerance_is_an_amount(
    given: str | Tolerance | None, allowed: Tolerance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logscope.api import diffing

    seen: list[Tolerance] = []
    real = diffing.diff_launches
    monkeypatch.setattr(diffing, "diff_launches", lambda *args: (seen.append(args[3]), real(*args))[1])
    logscope.diff(GOOD, GOOD, tolerance=given)
    assert [allowed] == seen


@pytest.mark.parametrize("given", ["much", "5 tokens", "-1 GiB", "3 min", ""])
def test_tolerance_that_is_no_amount_is_refused(given: str) -> None:
    with pytest.raises(logscope.LogscopeError, match="do: tolerance="):
        logscope.diff(GOOD, BAD, tolerance=given)


def test_diff_takes_more_baselines() -> None:
    view = logscope.diff(GOOD, BAD, baselines=[GOOD])
    assert 2 == view.difference.baselines
    assert str(GOOD) in view.difference.before.launch.source


# -- check -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "code", "statuses"),
    [
        ("good.log", 0, ["pass", "pass"]),
        ("bad.log", 1, ["fail", "inconclusive"]),
        ("cut.log", 3, ["inconclusive", "inconclusive"]),
    ],
)
def test_check_gives_what_became_of_each_rule(job: Path, log: str, code: int, statuses: list[str]) -> None:
    view = logscope.check(job / log, job / "logscope.toml")
    assert isinstance(view.checked, Checked)
    assert (code, code == 0) == (view.exit_code, view.is_good)
    assert statuses == [result.status for result in view.results] == list(view.frame["status"])
    told = str(view)
    assert told.startswith(view.verdict)
    assert (code == 0) == ("why:" not in told)


def test_check_judges_the_last_launch_of_each_log(job: Path) -> None:
    view = logscope.check([job / "good.log", job / "bad.log"], job / "logscope.toml")
    assert ["pass", "pass", "fail", "inconclusive"] == [result.status for result in view.results]


def check_with(job: Path, rules: str, **given: object) -> list[str]:
    (job / "own.toml").write_text(f"version = 1\n{rules}", encoding="utf-8")
    view = logscope.check(job / "good.log", job / "own.toml", **given)  # type: ignore[arg-type] # what tests give
    return [result.status for result in view.results]


SHRINKS = """
[[rule]]
id = "shrinks"
why = "the KV cache does not shrink"
select = { event = "kv_cache.allocated", field = "tokens" }
expect = { min = ">= baseline" }
"""


def test_check_compares_with_a_baseline(job: Path) -> None:
    """A log, a launch that was read, or the baseline that the rules file names, beside it."""
    assert ["inconclusive"] == check_with(job, SHRINKS)
    assert ["pass"] == check_with(job, SHRINKS, baseline=job / "good.log")
    assert ["pass"] == check_with(job, SHRINKS, baseline=logscope.read(GOOD)[0])
    assert ["pass"] == check_with(job, SHRINKS, baseline=[job / "good.log", logscope.read(GOOD)[0]])
    assert ["pass"] == check_with(job, f'baseline = "good.log"\n{SHRINKS}')


def test_check_knows_labels(job: Path) -> None:
    lane = f'[when.h200]\nlabels = {{ gpu = "H200" }}\n{SHRINKS}when = "h200"\n'
    assert ["skipped"] == check_with(job, lane)
    assert ["pass"] == check_with(job, lane, labels={"gpu": "H200"}, baseline=GOOD)


def test_check_counts_unknown_lines_as_the_command_does(job: Path) -> None:
    rule = """
[[rule]]
id = "seen"
why = "a new line about memory has to be looked at"
expect = { unknown_memory_lines = "== 0" }
"""
    assert ["pass"] == check_with(job, rule)
    with (job / "good.log").open("a") as log:
        log.write("[2026-01-05 10:20:00 TP0] Tentacle buffers took 3.21 GB of memory\n")
    assert ["fail"] == check_with(job, rule)
    command = subprocess.run(
        [sys.executable, "-m", "logscope", "check", "good.log", "--rules", "own.toml"],
        cwd=job,
        capture_output=True,
        check=False,
    )
    assert 1 == command.returncode


def test_check_refuses_a_rules_file_with_all_its_problems(job: Path) -> None:
    (job / "own.toml").write_text("version = 2\n", encoding="utf-8")
    with pytest.raises(logscope.LogscopeError, match="2 problems in the rules file"):
        logscope.check(GOOD, job / "own.toml")


# -- all -------------------------------------------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[object, Path], object]] = {
    "explain": lambda log, _: logscope.explain(log),  # type: ignore[arg-type] # several kinds
    "diff": lambda log, _: logscope.diff(GOOD, log),  # type: ignore[arg-type]
    "check": lambda log, job: logscope.check(log, job / "logscope.toml"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_log_may_be_a_path_or_what_was_read(name: str, job: Path) -> None:
    """A text, a path, a list of paths, launches, or one launch give the same."""
    launches = logscope.read(BAD)
    said = {str(VIEWS[name](log, job)) for log in (str(BAD), BAD, [BAD], launches, launches[-1])}
    assert 1 == len(said)


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_html_in_a_notebook(name: str, job: Path) -> None:
    view = VIEWS[name](BAD, job)
    shown = view._repr_html_()  # type: ignore[attr-defined] # asked of all views
    assert shown.startswith("<p><b>")
    assert "<table>" in shown
    assert repr(view).startswith("<")


@pytest.mark.parametrize("name", VIEWS)
def test_html_of_a_hostile_log_is_escaped(name: str, job: Path) -> None:
    text = BAD.read_text(encoding="utf-8").replace("Not enough memory.", "Not enough memory. <script>alert(1)</script>")
    (job / "<b>evil.log").write_text(text, encoding="utf-8")
    shown = VIEWS[name](job / "<b>evil.log", job)._repr_html_()  # type: ignore[attr-defined]
    assert "<script" not in shown
    assert "<b>evil" not in shown


@pytest.mark.parametrize("name", VIEWS)
def test_text_of_a_hostile_log_is_safe_to_show(name: str, job: Path) -> None:
    (job / "##[error]\x1b[31mevil.log").write_bytes(BAD.read_bytes())
    view = VIEWS[name](job / "##[error]\x1b[31mevil.log", job)
    shown = f"{view} {view!r} {view._repr_html_()}"  # type: ignore[attr-defined]
    assert "\x1b" not in shown
    assert "##[" not in shown


@pytest.mark.parametrize("name", VIEWS)
def test_a_log_that_is_not_there_is_an_error_with_advice(name: str, job: Path) -> None:
    with pytest.raises(logscope.LogscopeError, match="nothing"):
        VIEWS[name](job / "nothing.log", job)
