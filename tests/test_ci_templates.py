"""The GitHub Action, the GitLab template and the pre-commit hook: their shell steps run here as the platforms run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from made_ci import RULES, write_job

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
DOCUMENT = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
INSTALL, CHECK = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # what "shell: bash" means


@dataclass(frozen=True, slots=True)
class Ran:
    """A step that ran: its exit code, what it printed, and what it wrote for the runner."""

    code: int
    stdout: str
    outputs: Mapping[str, str]
    summary: str

    @property
    def report(self) -> Path:
        return Path(self.outputs["report"])


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A work space with logs and rules; beside it what the platform has: a temporary folder, and programs on the PATH."""
    space = tmp_path / "work space"
    (tmp_path / "temp").mkdir()
    space.mkdir()
    write_job(space)
    write_program(tmp_path / "bin/logscope", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m logscope "$@"\n')
    write_program(tmp_path / "bin/python3", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    return space


def environment(job: Path, **more: str) -> dict[str, str]:
    """Return a bare environment: nothing of this run's own CI leaks in."""
    kept = {name: os.environ[name] for name in ("PYTHONDONTWRITEBYTECODE", "SYSTEMROOT") if name in os.environ}
    return {"PATH": f"{job.parent / 'bin'}:/usr/bin:/bin", "HOME": str(job.parent), "CI": "true", **kept, **more}


def evaluated(text: str, inputs: Mapping[str, str]) -> str:
    """Evaluate the expressions that action.yml uses: an input, or an output of the install step, which was left out."""

    def value(match: re.Match[str]) -> str:
        if match[1].startswith("inputs."):
            return inputs[match[1].removeprefix("inputs.")]
        assert match[1] == "steps.install.outputs.program || 'logscope'", match[0]
        return "logscope"

    return EXPRESSION.sub(value, text)


def run_step(step: Mapping[str, object], job: Path, **given: str) -> Ran:
    """Run a step of the action as a runner does; inputs with a dash have an underscore here."""
    inputs = {name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    temp = job.parent / "temp"
    files = {name: temp / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(job),
        "GITHUB_ACTION_PATH": str(ROOT),
        "RUNNER_TEMP": str(temp),
        **{name: str(file) for name, file in files.items()},
    }
    own = step["env"]
    assert isinstance(own, dict)
    variables |= {name: evaluated(value, inputs) for name, value in own.items()}
    (temp / "step.sh").write_text(str(step["run"]), encoding="utf-8")
    done = subprocess.run(
        [*SHELL, str(temp / "step.sh")],
        cwd=job,
        env=environment(job, **variables),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "" == done.stderr, done.stderr
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    assert len(lines) == len(outputs)
    return Ran(done.returncode, done.stdout, outputs, files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8"))


def commands_of(stdout: str) -> list[str]:
    """Return the workflow commands that a runner takes from an output; while commands are stopped it takes none."""
    taken: list[str] = []
    token: str | None = None
    for line in stdout.splitlines():
        text = line.strip()
        if token is not None:
            token = None if text == f"::{token}::" else token
        elif text.startswith("::stop-commands::"):
            token = text.removeprefix("::stop-commands::")
        elif text.startswith("::") or "##[" in text:
            taken.append(text)
    assert token is None, "commands stay stopped"
    return taken


# -- form ------------------------------------------------------------------------------------------------------------------------


def check_schema(schema: str, path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("schema", "file"), [("github-actions", "action.yml"), ("gitlab-ci", "ci/gitlab.yml")])
def test_templates_are_what_the_platforms_read(schema: str, file: str) -> None:
    check_schema(schema, ROOT / file)


def test_no_expression_stands_in_a_script() -> None:
    """GitHub pastes expressions into scripts before bash reads them; so inputs come through the environment only."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert step["run"].startswith("set -euo pipefail\n")
        assert "bash" == step["shell"]


def test_every_input_is_used() -> None:
    text = json.dumps(ACTION["runs"])
    assert [] == [name for name in ACTION["inputs"] if f"inputs.{name}" not in text]


def scripts() -> Iterator[tuple[str, str]]:
    yield from (("action.yml", step["run"]) for step in ACTION["runs"]["steps"])
    yield from (("ci/gitlab.yml", text) for part in ("before_script", "script") for text in GITLAB[JOB][part])


JOB = ".logscope-check"


@pytest.mark.parametrize(("file", "script"), list(scripts()))
def test_scripts_are_good_bash(file: str, script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert "" == done.stderr, file
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-s", "bash", "-"], input=script, capture_output=True, text=True, check=False)
    assert "" == done.stdout, file


# -- GitHub: check ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "code", "verdict", "failed"),
    [("good.log", 0, "passed", ""), ("bad.log", 1, "failed", "ready"), ("cut.log", 3, "inconclusive", "")],
)
def test_action_gives_code_outputs_summary_and_reports(
    job: Path, log: str, code: int, verdict: str, failed: str
) -> None:
    ran = run_step(CHECK, job, log=log, rules="logscope.toml")
    assert code == ran.code
    assert {"verdict": verdict, "failed": failed, "report": str(ran.report)} == ran.outputs
    assert job.parent / "temp" == ran.report.parent, "reports are not written into the work space"
    cases = list(ElementTree.parse(ran.report / "junit.xml").iter("testcase"))  # noqa: S314 # logscope's own file
    assert ["kv-floor", "ready"] == sorted(str(case.get("name")) for case in cases)
    assert (code != 0) == any(len(case) for case in cases)
    assert f"{log}: " in (ran.report / "summary.md").read_text(encoding="utf-8")
    assert f"{log}: " in ran.summary
    assert code == json.loads((ran.report / "check.json").read_text(encoding="utf-8"))["exit_code"]
    assert f"{log}: " in ran.stdout
    errors = [command for command in commands_of(ran.stdout) if command.startswith("::error ")]
    assert (code != 0) == bool(errors)
    assert all("file=logscope.toml," in error for error in errors)


@pytest.mark.parametrize(
    ("given", "code", "word"),
    [
        ({"log": "nothing.log", "rules": "logscope.toml"}, 3, "nothing.log"),
        ({"log": "logscope.toml", "rules": "logscope.toml"}, 3, "no SGLang launch"),
        ({"log": "good.log", "rules": "nothing.toml"}, 2, "nothing.toml"),
        ({"log": "good.log"}, 2, "nothing to check"),
        ({"log": "good.log", "rules": "logscope.toml", "fail_on": "sometimes"}, 2, "sometimes"),
        ({"log": "", "rules": "logscope.toml"}, 2, "LOG"),
    ],
)
def test_action_says_why_nothing_could_be_checked(job: Path, given: Mapping[str, str], code: int, word: str) -> None:
    ran = run_step(CHECK, job, **given)
    assert code == ran.code
    assert ("error", "") == (ran.outputs["verdict"], ran.outputs["failed"])
    (error,) = commands_of(ran.stdout)
    assert error.startswith("::error title=logscope could not check the log::")
    assert word in error


def test_action_passes_all_inputs_on(job: Path) -> None:
    write_program(job.parent / "bin/logscope", "#!/bin/bash\nprintf '%s\\n' \"$@\" >> words\n")
    run_step(
        CHECK,
        job,
        log="node 0.log\nnode*.log\n\n",
        rules="my rules.toml",
        baseline="-odd.json\ngood 2.log",
        labels="gpu=H200\nsite=north east\n",
        fail_on="warning",
        args="--ready-within 12m\n  --no-oom *\n",
    )
    words = [word for word in (job / "words").read_text().splitlines() if "/temp/" not in word and word != "--out"]
    options = [
        "--rules",
        "my rules.toml",
        "--baseline",
        "-odd.json",
        "--baseline",
        "good 2.log",
        "--label",
        "gpu=H200",
        "--label",
        "site=north east",
    ]
    more = ["--ready-within", "12m", "--no-oom", "*"]
    assert ["check", "--fail-on", "warning", *options, *more, "--", "node 0.log", "node*.log"] == words


@pytest.mark.parametrize(
    "text", ["$(touch owned)", "`touch owned`", '"; touch owned; "', "a\n$(touch owned)", "; touch owned #"]
)
def test_inputs_are_no_code(job: Path, text: str) -> None:
    names = [name.replace("-", "_") for name in ACTION["inputs"] if name not in ("install", "spec")]
    assert 0 != run_step(CHECK, job, **dict.fromkeys(names, text)).code
    assert not list(job.parent.rglob("owned"))


def test_more_arguments_and_labels_reach_the_check(job: Path) -> None:
    lane = '\n[when.h200]\nlabels = { gpu = "H200" }\n'
    (job / "lanes.toml").write_text(RULES.replace('id = "kv-floor"', 'id = "kv-floor"\nwhen = "h200"') + lane)
    assert 3 == run_step(CHECK, job, log="cut.log", rules="lanes.toml").code
    assert 0 == run_step(CHECK, job, log="cut.log", rules="lanes.toml", args="--inconclusive pass").code
    assert 0 == run_step(CHECK, job, log="bad.log", rules="lanes.toml", fail_on="never").code
    skipped = run_step(CHECK, job, log="good.log", rules="lanes.toml")
    judged = run_step(CHECK, job, log="good.log", rules="lanes.toml", labels="gpu=H200")
    assert [1, 0] == [(ran.report / "check.json").read_text().count('"skipped"') for ran in (skipped, judged)]


def test_never_failing_step_still_says_what_is_broken(job: Path) -> None:
    ran = run_step(CHECK, job, log="bad.log", rules="logscope.toml", fail_on="never")
    assert (0, "passed", "ready") == (ran.code, ran.outputs["verdict"], ran.outputs["failed"])


HOSTILE = "\n".join(
    [
        "::add-mask::owned",
        "  ::set-output name=verdict::owned",
        "##[set-env name=PATH;]owned",
        "::stop-commands::owned",
        "RuntimeError: Not enough memory. ::error::owned ##[add-mask]owned Please try to increase --mem-fraction-static.",
    ]
)


def test_runner_takes_no_command_from_a_log(job: Path) -> None:
    text = (job / "bad.log").read_text(encoding="utf-8")
    (job / "evil.log").write_text(text.replace("RuntimeError: Not enough memory.", HOSTILE), encoding="utf-8")
    ran = run_step(CHECK, job, log="evil.log", rules="logscope.toml")
    assert 1 == ran.code
    commands = commands_of(ran.stdout)
    assert commands
    assert all(re.match(r"::(error|warning|notice) [^:]*file=logscope\.toml,", command) for command in commands)
    assert "failed" == ran.outputs["verdict"]


def test_modules_in_the_work_space_are_not_run(job: Path) -> None:
    (job / "json.py").write_text("open('owned', 'w')\n")
    assert "ready" == run_step(CHECK, job, log="bad.log", rules="logscope.toml").outputs["failed"]
    assert not (job / "owned").exists()


# -- GitHub: install -------------------------------------------------------------------------------------------------------------

FAKE_PYTHON = """#!/bin/bash
[[ "$1 $2" == "-m venv" ]] || exit 1
mkdir -p "$3/bin"
printf '#!/bin/bash\\nprintf "%%s\\\\n" "$@" > words\\n' > "$3/bin/pip"
chmod +x "$3/bin/pip"
"""


@pytest.mark.parametrize(
    ("spec", "installed"),
    [("", str(ROOT)), ("sglang-logscope==0.1.0", "sglang-logscope==0.1.0"), ("$(id) x", "$(id) x")],
)
def test_install_step_takes_the_action_itself_or_what_is_named(job: Path, spec: str, installed: str) -> None:
    write_program(job.parent / "bin/python3", FAKE_PYTHON)
    ran = run_step(INSTALL, job, spec=spec)
    assert 0 == ran.code
    assert ["install", "--quiet", "--disable-pip-version-check", "--", installed] == (
        job / "words"
    ).read_text().splitlines()
    program = Path(ran.outputs["program"])
    assert ("bin/logscope", True) == ("/".join(program.parts[-2:]), job.parent / "temp" in program.parents)


def test_install_step_can_be_left_out() -> None:
    assert "inputs.install != 'false'" == INSTALL["if"]
    assert "true" == ACTION["inputs"]["install"]["default"]


# -- GitLab ----------------------------------------------------------------------------------------------------------------------


def run_job(job: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the job as a GitLab runner does: its scripts in one shell."""
    template = GITLAB[JOB]
    script = "\n".join([*template["before_script"], *template["script"]])
    values = {
        **template["variables"],
        "LOGSCOPE_SPEC": "",
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(job),
        **variables,
    }
    return subprocess.run(
        [*SHELL, "-c", script],
        cwd=job,
        env=environment(job, **values),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(("log", "code"), [("good.log", 0), ("bad.log", 1), ("cut.log", 3)])
def test_gitlab_job_gives_code_and_reports(job: Path, log: str, code: int) -> None:
    done = run_job(job, LOGSCOPE_LOG=log, LOGSCOPE_RULES="logscope.toml")
    assert code == done.returncode, done.stderr
    assert f"{log}: " in done.stdout
    artifacts = GITLAB[JOB]["artifacts"]
    assert "always" == artifacts["when"]
    cases = list(ElementTree.parse(job / artifacts["reports"]["junit"]).iter("testcase"))  # noqa: S314
    assert ["kv-floor", "ready"] == sorted(str(case.get("name")) for case in cases)
    metrics = (job / artifacts["reports"]["metrics"]).read_text(encoding="utf-8")
    assert metrics.endswith("# EOF\n")
    assert all((job / path).is_dir() for path in artifacts["paths"])
    assert code == run_job(job, LOGSCOPE_LOG=log, LOGSCOPE_RULES="logscope.toml").returncode, "a second time"


def test_gitlab_job_passes_all_variables_on(job: Path) -> None:
    write_program(job.parent / "bin/logscope", "#!/bin/bash\nprintf '%s\\n' \"$@\" >> words\n")
    run_job(
        job,
        LOGSCOPE_LOG="node 0.log\nnode1.log",
        LOGSCOPE_RULES="my rules.toml",
        LOGSCOPE_BASELINE="good.json",
        LOGSCOPE_LABELS="gpu=H200\nsite=north east",
        LOGSCOPE_FAIL_ON="warning",
        LOGSCOPE_ARGS="--no-oom *",
    )
    words = (job / "words").read_text().splitlines()
    assert ["check", "--format", "text", "--force", "--fail-on", "warning"] == words[:6]
    options = [
        "--rules",
        "my rules.toml",
        "--baseline",
        "good.json",
        "--label",
        "gpu=H200",
        "--label",
        "site=north east",
    ]
    assert [*options, "--no-oom", "*", "--", "node 0.log", "node1.log"] == words[words.index("--rules") :]


def test_gitlab_job_installs_what_is_named(job: Path) -> None:
    write_program(job.parent / "bin/python3", "#!/bin/bash\nprintf '%s\\n' \"$@\" > words\n")
    run_job(job, LOGSCOPE_LOG="good.log", LOGSCOPE_RULES="logscope.toml", LOGSCOPE_SPEC="sglang-logscope==0.1.0")
    assert ["-m", "pip", "install"] == (job / "words").read_text().splitlines()[:3]
    assert "sglang-logscope==0.1.0" == (job / "words").read_text().splitlines()[-1]


# -- pre-commit ------------------------------------------------------------------------------------------------------------------


def run_hook(job: Path, *files: str) -> subprocess.CompletedProcess[str]:
    (hook,) = HOOKS
    return subprocess.run(
        [*shlex.split(hook["entry"]), *files],
        cwd=job,
        env=environment(job),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_hook_tests_each_rules_file(job: Path) -> None:
    (job / "logscope-2.toml").write_text(RULES.replace("#tokens: 100,", "#tokens: 200000,"), encoding="utf-8")
    (job / "logscope 3.toml").write_text(RULES.replace("ready.fired_up", "ready.nothing"), encoding="utf-8")
    assert 0 == run_hook(job, "logscope.toml").returncode
    assert 1 == run_hook(job, "logscope-2.toml").returncode
    done = run_hook(job, "logscope-2.toml", "logscope 3.toml", "logscope.toml")
    assert 2 == done.returncode
    assert "logscope-2.toml" in done.stdout
    assert "logscope 3.toml:6" in done.stderr
    assert "logscope.toml: 2 of 2 tests are good" in done.stdout, (
        "a bad file does not keep the others from being tested"
    )


@pytest.mark.parametrize(
    ("path", "is_rules"),
    [
        ("logscope.toml", True),
        ("ci/logscope.toml", True),
        ("ci/logscope-h200.toml", True),
        ("pyproject.toml", False),
        ("logscope/patterns.toml", False),
        ("logscope.toml.bak", False),
    ],
)
def test_hook_is_for_rules_files(path: str, is_rules: bool) -> None:
    assert is_rules == bool(re.search(HOOKS[0]["files"], path))


# -- docs/ci.md ------------------------------------------------------------------------------------------------------------------

SNIPPETS = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def snippet_with(key: str) -> tuple[str, dict[str, object]]:
    (text,) = [snippet for snippet in SNIPPETS if re.search(rf"^{key}:", snippet, re.MULTILINE)]
    return text, yaml.safe_load(text)


def test_document_has_three_snippets() -> None:
    assert 3 == len(SNIPPETS)


def test_github_workflow_of_the_document_uses_the_action(tmp_path: Path) -> None:
    text, workflow = snippet_with("jobs")
    (tmp_path / "workflow.yml").write_text(text, encoding="utf-8")
    check_schema("github-workflows", tmp_path / "workflow.yml")
    steps = workflow["jobs"]["launch"]["steps"]  # type: ignore[index] # by the schema
    (step,) = [step for step in steps if "/logscope@" in step.get("uses", "")]
    assert {"log", "rules"} <= set(step["with"]) <= set(ACTION["inputs"])
    assert set(re.findall(r"steps\.check\.outputs\.(\w+)", text)) <= set(ACTION["outputs"])
    assert "check" == step["id"]


def test_gitlab_job_of_the_document_extends_the_template(tmp_path: Path) -> None:
    text, pipeline = snippet_with("include")
    (tmp_path / "pipeline.yml").write_text(text, encoding="utf-8")
    check_schema("gitlab-ci", tmp_path / "pipeline.yml")
    used = pipeline["check launch"]
    assert isinstance(used, dict)
    assert JOB == used["extends"]
    assert set(used["variables"]) <= set(GITLAB[JOB]["variables"])
    assert [3] == used["allow_failure"]["exit_codes"]
    assert (ROOT / pipeline["include"][0]["file"]).exists()  # type: ignore[index]


def test_comment_in_the_template_is_a_job(tmp_path: Path) -> None:
    head = (ROOT / "ci/gitlab.yml").read_text(encoding="utf-8").partition(f"\n{JOB}:")[0]
    text = "\n".join(
        line.removeprefix("#").removeprefix("   ") for line in head.splitlines() if line.startswith("#   ")
    )
    (tmp_path / "pipeline.yml").write_text(text, encoding="utf-8")
    check_schema("gitlab-ci", tmp_path / "pipeline.yml")
    assert set(yaml.safe_load(text)["check launch"]["variables"]) <= set(GITLAB[JOB]["variables"])


def test_pre_commit_snippet_of_the_document_names_the_hook() -> None:
    _, config = snippet_with("repos")
    assert [hook["id"] for hook in HOOKS] == [hook["id"] for hook in config["repos"][0]["hooks"]]  # type: ignore[index]


def test_document_lists_inputs_outputs_and_verdicts() -> None:
    listed = set(re.findall(r"`([\w-]+)`", "\n".join(re.findall(r"^\| `[^|]*\|", DOCUMENT, re.MULTILINE))))
    assert {*ACTION["inputs"], *ACTION["outputs"]} == listed
    verdicts = set(re.findall(r"\bverdict=(\w+)", CHECK["run"]))
    assert verdicts == set(re.findall(r"\| `(\w+)` \|$", DOCUMENT, re.MULTILINE))
