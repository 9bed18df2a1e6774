"""``logscope check``, ``rules`` and ``baseline`` as a user runs them: exit codes, flags, what is said, stored baselines."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import FIXTURES
from made import Made, log_text

STORY = ("baseline", "car", "car_050", "car_debug", "baseline_debug_nocar")
RULES = """\
version = 1

[[rule]]
id = "ready"
why = "it has to come up"
expect = { reach = "ready" }

[[rule]]
id = "kv-floor"
why = "two requests of 64k tokens have to fit"
select = { event = "kv_cache.allocated", field = "tokens" }
expect = { min = ">= 150k tokens" }
"""
AGAINST = """\
version = 1
baseline = "base.json"

[[rule]]
id = "kv-floor"
why = "two requests of 64k tokens have to fit"
select = { event = "kv_cache.allocated", field = "tokens" }
expect = { min = ">= baseline - 1 %" }
"""


def logscope(*words: str, cwd: Path, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
    environment = {**own, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", "NO_COLOR": "1", **env}
    command = [sys.executable, "-m", "logscope", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False, env=environment, input=stdin)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The logs of the story, named like their cases, cut and foreign ones, and rules."""
    for name in STORY:
        (tmp_path / f"{name}.log").write_bytes((FIXTURES / name / "launch.log").read_bytes())
    lines = (tmp_path / "baseline.log").read_text().splitlines(keepends=True)
    (tmp_path / "cut.log").write_text("".join(lines[:40]))
    (tmp_path / "late.log").write_text("".join(lines[60:]))
    (tmp_path / "other.log").write_text("make: *** [all] Error 2\n")
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "small.log").write_text("".join(lines).replace("159269", "149269"))
    (tmp_path / "damaged.log.gz").write_bytes(gzip.compress("".join(lines).encode())[:900])
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "against.toml").write_text(AGAINST)
    (tmp_path / "warning.toml").write_text(RULES.replace("why =", 'level = "warning"\nwhy ='))
    (tmp_path / "optional.toml").write_text(RULES.replace("why =", "optional = true\nwhy ="))
    (tmp_path / "optional-floor.toml").write_text(
        "version = 1\n" + RULES.replace('why = "two', 'optional = true\nwhy = "two').partition('"ready" }\n')[2]
    )
    lane = '\n[when.h200]\nlabels = { gpu = "H200" }\n'
    (tmp_path / "lanes.toml").write_text(RULES.replace('why = "two', 'when = "h200"\nwhy = "two') + lane)
    (tmp_path / "only-lanes.toml").write_text(RULES.replace("why =", 'when = "h200"\nwhy =') + lane)
    (tmp_path / "bad.toml").write_text(
        RULES.replace("kv_cache.allocated", "kv_cache.alocated").replace('ready" }', 'redy" }')
    )
    return tmp_path


# -- the story -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORY)
def test_the_story(name: str) -> None:
    """Its rules hold for the launch that worked; each of the others breaks those that say why, and none about all-reduce."""
    done = logscope(
        "check", f"tests/fixtures/{name}/launch.log", "--rules", "tests/rules/story.toml", "-f", "json", cwd=FIXTURES.parent.parent
    )  # fmt: skip
    found = json.loads(done.stdout)
    status = {result["rule"]: result["status"] for result in found["results"]}
    if name == "baseline":
        assert (0, {"pass"}) == (done.returncode, set(status.values()))
        return
    assert 1 == done.returncode == found["exit_code"]
    assert ["ready", "fraction", "no-oom"] == [rule for rule, each in status.items() if each == "fail"]
    assert ["kv-floor"] == [rule for rule, each in status.items() if each == "inconclusive"]
    assert "pass" == status["distributed-init"] == status["weights"]
    fraction = "0.50" if name == "car_050" else "0.55"
    causes = {result["rule"]: result["cause"] for result in found["results"] if result["status"] == "fail"}
    assert causes.pop("fraction") is None, "that the fraction is another one is not caused by the failure"
    for cause in causes.values():
        assert cause.startswith("not_enough_memory: not enough memory for the KV cache: under mem_fraction_static 0.5")
        assert f"mem_fraction_static 0.88 -> {fraction} takes 3" in cause


# -- exit codes ------------------------------------------------------------------------------------------------------------------

CODES = {
    0: [
        ("baseline.log", "--rules", "rules.toml"),
        ("baseline.log", "--ready-within", "12m", "--min-kv-tokens", "150k", "--no-oom"),
        ("baseline.log", "--rules", "against.toml", "--baseline", "baseline.log"),
        ("car.log", "--rules", "warning.toml"),
        ("car.log", "--rules", "rules.toml", "--fail-on", "never"),
        ("baseline.log", "--rules", "optional.toml"),
        ("baseline.log", "--rules", "rules.toml", "--label", "gpu=H200"),
        ("cut.log", "--rules", "rules.toml", "--inconclusive", "pass"),
        ("baseline.log", "--rules", "lanes.toml", "--require-lane", "--label", "gpu=H200"),
        ("late.log", "--rules", "rules.toml", "--inconclusive", "pass"),
    ],
    1: [
        ("car.log", "--rules", "rules.toml"),
        ("small.log", "--rules", "rules.toml"),
        ("small.log", "--rules", "against.toml", "--baseline", "baseline.log"),
        ("car.log", "--rules", "warning.toml", "--fail-on", "warning"),
        ("baseline.log", "--ready-within", "10m"),
        ("baseline.log", "--min-kv-tokens", "160k"),
        ("car.log", "--no-oom"),
        ("car.log", "--rules", "rules.toml", "--inconclusive", "pass"),
        ("car.log", "baseline.log", "--rules", "rules.toml"),
    ],
    2: [
        ("baseline.log",),
        ("baseline.log", "--rules", "bad.toml"),
        ("baseline.log", "--rules", "against.toml"),
        ("baseline.log", "--ready-within", "12", "m"),
        ("baseline.log", "--rules", "lanes.toml", "--label", "gup=H200"),
        ("baseline.log", "--rules", "lanes.toml", "--label", "gpu=h200"),
        ("baseline.log", "--rules", "missing.toml"),
        ("baseline.log", "--ready-within", "12 GiB"),
        ("baseline.log", "--min-kv-tokens", "many"),
        ("baseline.log", "--min-kv-tokens", "-5"),
        ("baseline.log", "--rules", "rules.toml", "--fail-on", "everything"),
        ("baseline.log", "--rules", "rules.toml", "--inconclusive", "maybe"),
        ("baseline.log", "--rules", "rules.toml", "--label", "H200"),
        ("baseline.log", "--rules", "rules.toml", "--launch", "7"),
        ("baseline.log", "--rules", "rules.toml", "--require-lane"),
        ("baseline.log", "--rules", "rules.toml", "--format", "excel"),
    ],
    3: [
        ("cut.log", "--rules", "rules.toml"),
        ("late.log", "--ready-within", "12m"),
        ("other.log", "--rules", "rules.toml"),
        ("empty.log", "--rules", "rules.toml"),
        ("missing.log", "--rules", "rules.toml"),
        ("damaged.log.gz", "--rules", "rules.toml"),
        ("baseline.log", "--rules", "against.toml", "--baseline", "other.log"),
        ("cut.log", "--no-oom"),
        ("cut.log", "--rules", "optional.toml"),
        ("baseline.log", "other.log", "--no-oom"),
        ("", "--no-oom"),
        ("cut.log", "--rules", "warning.toml"),
        ("car.log", "cut.log", "--rules", "optional-floor.toml"),
        ("baseline.log", "--rules", "lanes.toml", "--require-lane"),
        ("baseline.log", "--rules", "only-lanes.toml"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("code", "words"), [(code, words) for code, each in CODES.items() for words in each])
def test_exit_codes(code: int, words: tuple[str, ...], job: Path) -> None:
    done = logscope("check", *words, cwd=job)
    assert code == done.returncode, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if code == 2:
        assert "do:" in done.stderr or "Usage" in done.stderr


def test_refused_rules_file_is_told_with_all_its_problems(job: Path) -> None:
    done = logscope("check", "baseline.log", "--rules", "bad.toml", cwd=job)
    assert "bad.toml:6: 'redy' is no event\n" in done.stderr
    assert "bad.toml:11: there is no event 'kv_cache.alocated'\n  do: did you mean 'kv_cache.allocated'?" in done.stderr
    assert "2 problems in the rules file" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rules", "lanes.toml", "--label", "gup=H200"), "no lane of lanes.toml asks for the label 'gup' do: did you mean 'gpu'?"),
        (("--rules", "lanes.toml", "--label", "gpu=h200"), "no lane of lanes.toml asks for gpu=h200 do: did you mean gpu=H200?"),
        (("--rules", "against.toml"), "against.toml:2: the baseline that it names: no such file: base.json do:"),
        (("--ready-within", "12", "m"), "m is a unit, and no log do: write the amount in quotes, or as one word: 12m"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(words: tuple[str, ...], said: str, job: Path) -> None:
    done = logscope("check", "baseline.log", *words, cwd=job)
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (("car.log", "--no-oom", "--fail-on", "never"), "car.log: reported only: of 1 rule 1 broken (not counted)."),
        (("cut.log", "--no-oom", "--inconclusive", "pass"), "cut.log: nothing judged: of 1 rule 1 not judged (not counted)."),
        (("car.log", "--rules", "warning.toml"), "car.log: passed: of 2 rules 1 broken (not counted), 1 not judged (not counted)."),
        (("baseline.log", "--no-oom", "--fail-on", "never"), "baseline.log: passed: of 1 rule 1 holds."),
    ],
)  # fmt: skip
def test_what_is_not_counted_is_said(words: tuple[str, ...], verdict: str, job: Path) -> None:
    done = logscope("check", *words, "-f", "json", cwd=job)
    assert 0 == done.returncode
    assert json.loads(done.stdout)["verdict"].startswith(verdict)


def test_log_from_standard_input(job: Path) -> None:
    whole = (job / "baseline.log").read_bytes()
    done = logscope("check", "-", "--rules", "rules.toml", cwd=job, stdin=whole)
    assert (0, "standard input: passed: of 2 rules 2 hold.") == (done.returncode, done.stdout.splitlines()[0])
    assert 3 == logscope("check", "-", "--rules", "rules.toml", cwd=job, stdin=whole[:4000]).returncode


def test_flags_go_with_a_rules_file(job: Path) -> None:
    (job / "own.toml").write_text(RULES.replace("kv-floor", "no-oom"))
    done = logscope(
        "check", "car.log", "--rules", "own.toml", "--no-oom", "--ready-within", "12 min", "-f", "json", cwd=job
    )
    status = {result["rule"]: result["status"] for result in json.loads(done.stdout)["results"]}
    assert {"ready": "fail", "no-oom": "inconclusive", "ready-within": "fail", "no-oom-flag": "fail"} == status


def test_launches_of_one_log(job: Path) -> None:
    """The last one by default: a launch that failed and was started again is fine."""
    (job / "twice.log").write_text((job / "car.log").read_text() + (job / "baseline.log").read_text())
    words = ("check", "twice.log", "--rules", "rules.toml")
    codes = {choice: logscope(*words, "--launch", choice, cwd=job).returncode for choice in ("last", "1", "2", "all")}
    assert {"last": 0, "1": 1, "2": 0, "all": 1} == codes
    assert 0 == logscope(*words, cwd=job).returncode


def test_labels_and_lanes(job: Path) -> None:
    words = ("check", "small.log", "--rules", "lanes.toml")
    assert 1 == logscope(*words, "--label", "gpu=H200", cwd=job).returncode
    done = logscope(*words, "--label", "gpu=A100", cwd=job)
    assert 0 == done.returncode
    assert "small.log: passed: of 2 rules 1 holds, 1 skipped.\n" in done.stdout
    assert "h200 wants --label gpu=H200" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (
            ("small.log", "--rules", "lanes.toml", "--require-lane"),
            "small.log: could not be judged: of 2 rules 1 holds, 1 not judged. kv-floor: no lane fits: h200 wants --label gpu=H200.",
        ),
        (
            ("small.log", "--rules", "only-lanes.toml"),
            "small.log: could not be judged: of 2 rules 2 skipped. ready: h200 wants --label gpu=H200.",
        ),
        (
            ("baseline.log", "empty.log", "--no-oom"),
            "baseline.log: could not be judged: of 1 rule 1 holds. No SGLang launch in empty.log: it is empty.",
        ),
        (
            ("cut.log", "--rules", "optional.toml"),
            "cut.log: could not be judged: of 2 rules 2 skipped. "
            "ready: optional: no line says it: the log ends before, or begins after.",
        ),
        (
            ("cut.log", "--rules", "warning.toml"),
            "cut.log: could not be judged: of 2 rules 2 not judged. ready: no line says it: the log ends before, or begins after.",
        ),
    ],
)
def test_launch_of_which_nothing_was_checked_could_not_be_judged(
    words: tuple[str, ...], verdict: str, job: Path
) -> None:
    done = logscope("check", *words, "-f", "json", cwd=job)
    assert (3, verdict) == (done.returncode, json.loads(done.stdout)["verdict"])
    assert 0 == logscope("check", *words, "--inconclusive", "pass", cwd=job).returncode
    assert 0 == logscope("check", *words, "--fail-on", "never", cwd=job).returncode


def test_the_baseline_of_a_rules_file_is_beside_it(job: Path) -> None:
    (job / "ci").mkdir()
    (job / "ci" / "against.toml").write_text(AGAINST.replace("base.json", "../baseline.log"))
    assert 1 == logscope("check", "small.log", "--rules", "ci/against.toml", cwd=job).returncode
    assert (
        0 == logscope("check", "small.log", "--rules", "ci/against.toml", "--baseline", "small.log", cwd=job).returncode
    )


def test_several_baselines_on_the_command_line(job: Path) -> None:
    words = ("check", "small.log", "--rules", "against.toml", "--baseline", "baseline.log")
    assert 0 == logscope(*words, "--baseline", "small.log", "--baseline", "small.log", cwd=job).returncode
    done = logscope(*words, "--baseline", "small.log", cwd=job)
    assert 1 == done.returncode
    assert "2 baselines: 149,269..159,269 tokens" in " ".join(done.stdout.split())


# -- what is said ----------------------------------------------------------------------------------------------------------------


def test_text_of_a_broken_rule_over_ranks(job: Path) -> None:
    text = (
        (job / "baseline.log")
        .read_text()
        .replace("TP7] KV Cache is allocated. #tokens: 159269", "TP7] KV Cache is allocated. #tokens: 149269")
    )
    (job / "run.log").write_text(text)
    done = logscope("check", "run.log", "--rules", "rules.toml", cwd=job)
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "149269" in each)
    assert done.stdout.startswith(
        f"""\
run.log: failed: of 2 rules 1 holds, 1 broken. kv-floor: expected
kv_cache.allocated tokens: min >= 150k tokens, found min TP7 149,269 tokens.

rules.toml:9: error: kv-floor broken
  why:       two requests of 64k tokens have to fit
  expected:  kv_cache.allocated tokens: min >= 150k tokens
  found:     min TP7 149,269 tokens
  values:    TP0..TP6 159,269 tokens; TP7 149,269 tokens
  evidence:  run.log:{line}
  to accept: edit rules.toml:12

"""
    )
    assert max(len(each) for each in done.stdout.splitlines()) <= 80


def test_text_of_a_launch_that_failed(job: Path) -> None:
    done = logscope("check", "car.log", "--no-oom", "--rules", "rules.toml", "--baseline", "baseline.log", cwd=job)
    assert (
        """\
rules.toml:4: error: ready broken
  why:       it has to come up
  expected:  ready reached
  found:     not reached: the launch failed
  evidence:  car.log:49, car.log:58, car.log:67
  cause:     not_enough_memory: not enough memory for the KV cache: under
             mem_fraction_static 0.55 the budget is -20.61 GiB per rank;
             mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB from the KV budget
             of every rank (10.42 -> -20.61 GiB)
  to do:     Raise --mem-fraction-static to 0.81, which leaves 3.83 GiB per rank
             for the KV cache; 0.770 is the least that starts.

command line: error: no-oom broken
"""
        in done.stdout
    )
    assert "found:     there: not_enough_memory\n" in done.stdout
    assert max(len(each) for each in done.stdout.splitlines()) <= 80


def test_accepting_names_the_stored_baseline(job: Path) -> None:
    assert 0 == logscope("baseline", "write", "baseline.log", "-o", "base.json", cwd=job).returncode
    done = logscope("check", "small.log", "--rules", "against.toml", cwd=job)
    assert "to accept: logscope baseline accept base.json small.log" in done.stdout
    assert "min >= baseline - 1 % = 157,676 tokens" in " ".join(done.stdout.split())
    assert 0 == logscope("baseline", "accept", "base.json", "small.log", cwd=job).returncode
    assert 0 == logscope("check", "small.log", "--rules", "against.toml", cwd=job).returncode


def test_json_has_all_values(job: Path) -> None:
    done = logscope("check", "small.log", "--rules", "rules.toml", "-f", "json", cwd=job)
    found = json.loads(done.stdout)
    result = found["results"][1]
    assert (1, "check", 1) == (found["schema"], found["command"], found["exit_code"])
    assert ("kv-floor", "fail", "min TP0..TP7 149,269 tokens") == (result["rule"], result["status"], result["found"])
    assert [f"TP{n}" for n in range(8)] == sorted(value["rank"] for value in result["values"])
    assert {149_269} == {value["value"] for value in result["values"]}
    assert {"file": "rules.toml", "line": 9} == result["place"]


def test_json_document_lists_the_fields_of_check(job: Path) -> None:
    data = json.loads(logscope("check", "small.log", "--rules", "rules.toml", "-f", "json", cwd=job).stdout)
    result = data["results"][1]
    text = (FIXTURES.parent.parent / "docs" / "json.md").read_text(encoding="utf-8")
    for heading, value in {"check": data, "check: results[]": result, "check: values[]": result["values"][0]}.items():
        body = re.split(r"^#+ ", text.partition(f"# `{heading}`\n")[2], flags=re.MULTILINE)[0]
        assert list(value) == re.findall(r"^\| `(\w+)` \|", body, flags=re.MULTILINE), heading
    assert ["file", "line"] == list(result["place"]) == list(result["evidence"][0])


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (("--help",), "logscope.checker"),
        (("timeline", "baseline.log"), "logscope.checker"),
        (("check", "baseline.log", "--no-oom"), "pandas"),
        (("check", "baseline.log", "--no-oom"), "logscope.differ"),
        (("check", "baseline.log", "--rules", "rules.toml"), "pandas"),
    ],
)
def test_command_imports_what_it_needs(words: tuple[str, ...], module: str, job: Path) -> None:
    script = "import atexit, sys; atexit.register(lambda: sys.stderr.write(f'loaded {sys.argv[1] in sys.modules}'))\n"
    script += "from logscope.cli import run; run(sys.argv[2:])"
    done = subprocess.run([sys.executable, "-c", script, module, *words], cwd=job, capture_output=True, check=False)
    assert (0, True) == (done.returncode, done.stderr.endswith(b"loaded False")), done.stderr


# -- rules -----------------------------------------------------------------------------------------------------------------------


def test_learned_rules_are_read_pass_and_have_no_tests(job: Path) -> None:
    done = logscope("rules", "learn", "baseline.log", "--date", "2026-03-01", cwd=job)
    assert (0, "") == (done.returncode, done.stderr)
    (job / "learned.toml").write_text(done.stdout)
    assert 0 == logscope("check", "baseline.log", "--rules", "learned.toml", cwd=job).returncode
    assert 1 == logscope("check", "car.log", "--rules", "learned.toml", cwd=job).returncode
    tested = logscope("rules", "test", "learned.toml", cwd=job)
    assert 0 == tested.returncode
    assert tested.stdout.startswith("learned.toml: no test was run: none of its ")


@pytest.mark.parametrize(("log", "code"), [("car.log", 2), ("other.log", 3), ("cut.log", 2)])
def test_nothing_is_learned_from_a_launch_that_did_not_work(log: str, code: int, job: Path) -> None:
    assert code == logscope("rules", "learn", "baseline.log" if code == 2 else log, log, cwd=job).returncode


def test_learning_from_a_server_that_died_later_says_so(job: Path) -> None:
    died = "[2026-02-27 10:00:00] Subprocess scheduler_0 (pid=31150) crashed with exit code -9. Triggering SIGQUIT for cleanup..."
    text = (job / "baseline.log").read_text()
    (job / "died.log").write_text(f"{text}{died}\n")
    done = logscope("rules", "learn", "died.log", cwd=job)
    line = len(text.splitlines()) + 1
    assert 0 == done.returncode
    assert f"died.log:{line}: it became ready, and failed later; take a launch that did not if you can" in done.stderr


def test_tests_of_rules_are_run(job: Path) -> None:
    line = "[2026-01-05 10:00:21 TP0] KV Cache is allocated. #tokens: {}, KV size: 0.01 GB"
    given = f'  [[rule.test]]\n  given = ["{line}"]\n  expect = "fail"\n'
    (job / "own.toml").write_text(RULES + given.format(100))
    assert 0 == logscope("rules", "test", "own.toml", cwd=job).returncode
    (job / "own.toml").write_text(RULES + given.format(160_000))
    done = logscope("rules", "test", "own.toml", cwd=job)
    assert 1 == done.returncode
    assert done.stdout.startswith("own.toml:13: kv-floor: expected fail, came out pass: TP0 160,000 tokens\n")
    assert 2 == logscope("rules", "test", "bad.toml", cwd=job).returncode


def test_several_rules_files_are_tested_and_the_worst_counts(job: Path) -> None:
    done = logscope("rules", "test", "rules.toml", "bad.toml", "warning.toml", cwd=job)
    assert 2 == done.returncode
    assert ["rules.toml", "warning.toml"] == [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert "bad.toml:6: 'redy' is no event\n" in done.stderr
    assert 0 == logscope("rules", "test", "rules.toml", "warning.toml", cwd=job).returncode


def test_what_a_test_quotes_is_safe_to_show(job: Path) -> None:
    given = "[2026-01-05 10:00:09 TP0] RuntimeError: Not enough memory. \\u001b[31m##[error]::stop-commands::x"
    test = f'  [[rule.test]]\n  given = ["{given}"]\n  expect = "fail"\n'
    name = "::error::own.toml"
    (job / name).write_text(RULES.partition('\n[[rule]]\nid = "kv')[0] + test.replace('"fail"', '"pass"') + test)
    done = logscope("rules", "test", f"./{name}", cwd=job)
    assert 1 == done.returncode
    assert [] == [mark for mark in ("\x1b", "##[", "\n::") if mark in f"\n{done.stdout}"]
    learned = logscope("rules", "learn", "baseline.log", "--date", "\x1b[31m::error::##[error]", cwd=job).stdout
    assert [] == [mark for mark in ("\x1b", "##[", "\n::") if mark in learned]


# -- baselines -------------------------------------------------------------------------------------------------------------------


def test_stored_baseline_says_where_it_comes_from(job: Path) -> None:
    words = ("baseline", "write", "baseline.log", "small.log", "-o", "base.json", "--date", "2026-03-01")
    assert 0 == logscope(*words, cwd=job).returncode
    stored = json.loads((job / "base.json").read_text())
    about = stored["provenance"]
    assert 12 == len(about.pop("pack_hash"))
    assert {
        "n": 2,
        "date": "2026-03-01",
        "releases": [">=0.5.9, <0.5.10"],
        "from": ["baseline.log", "small.log"],
    } == about
    assert (1, 2) == (stored["schema"], len(stored["launches"]))
    assert 2 == logscope(*words, cwd=job).returncode, "it is there already"
    assert 0 == logscope(*words, "--force", cwd=job).returncode


@pytest.mark.parametrize(
    "name", ["baseline", "0.5.23-ok", "0.5.9-new-eagle-tp2", "0.5.9-fakecuda-tp2-dp2", "0.5.23-new-mamba-tp1"]
)
def test_stored_baseline_is_as_good_as_the_log(name: str, job: Path) -> None:
    """A log is what its stored baseline is: rules over everything hold, and so says the JSON of another launch."""
    log = FIXTURES / name / "launch.log"
    (job / "good.log").write_bytes(log.read_bytes())
    (job / "same.toml").write_text(
        'version = 1\n[[rule]]\nid = "same"\nwhy = "y"\nexpect = { unchanged = ["args", "steps", "capacity", "outcome"] }\n'
    )
    assert 0 == logscope("baseline", "write", "good.log", "-o", "base.json", cwd=job).returncode
    assert 0 == logscope("check", "good.log", "--rules", "same.toml", "--baseline", "base.json", cwd=job).returncode
    learned = logscope("rules", "learn", "good.log", cwd=job).stdout
    (job / "learned.toml").write_text(learned.partition('\n[[rule]]\nid = "known"')[0])
    texts = []
    for baseline in ("good.log", "base.json"):
        done = logscope("check", "car.log", "--rules", "same.toml", "--baseline", baseline, "-f", "json", cwd=job)
        results = json.loads(done.stdout)["results"]
        texts.append([{key: value for key, value in each.items() if key != "accept"} for each in results])
    assert texts[0] == texts[1]


def test_nodes_of_one_launch_are_one_baseline(job: Path) -> None:
    for node in (0, 1):
        text = log_text(Made(tp=2, model_gib=80.0, shows_command=False)).replace(
            "tp_size=2", f"tp_size=4, nnodes=2, node_rank={node}, dist_init_addr='a:1'"
        )
        text = text.replace(" TP0]", f" TP{2 * node}]").replace(" TP1]", f" TP{2 * node + 1}]")
        (job / f"node{node}.log").write_text(text)
    assert 0 == logscope("baseline", "write", "node0.log", "node1.log", "-o", "base.json", cwd=job).returncode
    assert 1 == json.loads((job / "base.json").read_text())["provenance"]["n"]
    (job / "each.toml").write_text(AGAINST.replace("min =", "each =").replace(" - 1 %", "").replace(">=", "=="))
    done = logscope("check", "node0.log", "node1.log", "--rules", "each.toml", "-f", "json", cwd=job)
    assert 0 == done.returncode
    assert 4 == len(json.loads(done.stdout)["results"][0]["values"])


def test_no_secret_is_stored(job: Path) -> None:
    text = (job / "baseline.log").read_text()
    text = text.replace("ServerArgs(", "ServerArgs(api_key='sk-very-secret', ").replace(
        "--tp 8", "--tp 8 --api-key sk-very-secret"
    )
    (job / "secret.log").write_text(text)
    assert 0 == logscope("baseline", "write", "secret.log", "-o", "base.json", cwd=job).returncode
    stored = (job / "base.json").read_text()
    assert "<redacted>" in stored
    assert "very-secret" not in stored


def test_launches_are_added_to_a_baseline(job: Path) -> None:
    assert 0 == logscope("baseline", "write", "baseline.log", "-o", "base.json", cwd=job).returncode
    assert 0 == logscope("baseline", "accept", "base.json", "small.log", "--add", cwd=job).returncode
    about = json.loads((job / "base.json").read_text())["provenance"]
    assert (2, ["baseline.log", "small.log"], [">=0.5.9, <0.5.10"]) == (about["n"], about["from"], about["releases"])
    done = logscope("check", "small.log", "--rules", "against.toml", cwd=job)
    assert "2 baselines: 149,269..159,269 tokens" in " ".join(done.stdout.split())
    assert 0 == logscope("baseline", "accept", "base.json", "small.log", cwd=job).returncode
    assert 1 == json.loads((job / "base.json").read_text())["provenance"]["n"]


@pytest.mark.parametrize("words", [("write", "baseline.log", "-o", "new.json"), ("accept", "base.json", "small.log")])
def test_ci_writes_no_baseline(words: tuple[str, ...], job: Path) -> None:
    assert 0 == logscope("baseline", "write", "baseline.log", "-o", "base.json", cwd=job).returncode
    before = (job / "base.json").read_bytes()
    done = logscope("baseline", *words, cwd=job, CI="true")
    assert (2, True) == (done.returncode, "not by CI" in done.stderr)
    assert before == (job / "base.json").read_bytes()
    assert not (job / "new.json").exists()


@pytest.mark.parametrize("log", ["car.log", "cut.log", "late.log"])
def test_launch_that_did_not_become_ready_is_no_baseline(log: str, job: Path) -> None:
    expected = 0 if log == "late.log" else 2  # its last lines say that it is ready
    assert expected == logscope("baseline", "write", log, "-o", "new.json", cwd=job).returncode
    assert (expected == 0) == (job / "new.json").exists()


def test_a_log_is_never_overwritten_by_accept(job: Path) -> None:
    before = (job / "baseline.log").read_bytes()
    assert 2 == logscope("baseline", "accept", "baseline.log", "small.log", cwd=job).returncode
    assert before == (job / "baseline.log").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"schema": 9, "launches": [], "provenance": {}}', '{"schema": 1, "launches": [], "provenance": {}}',
        '{"schema": 1, "launches": [{"lines": []}], "provenance": {}}', '{"schema": 1, "launches": [{"logs": [[1]]}], "provenance": {}}',
        '{"schema": 1, "launches": [{"logs": [["make: Error 2"]]}], "provenance": {}}', '{"schema": 1, "launches": [{"logs": [["x"]]}]}',
        "\x00\xff",
    ],
)  # fmt: skip
def test_damaged_baseline_is_refused(text: str, job: Path) -> None:
    (job / "base.json").write_bytes(text.encode("latin-1"))
    for words in (("check", "small.log", "--rules", "against.toml"), ("baseline", "accept", "base.json", "small.log")):
        done = logscope(*words, cwd=job)
        assert 2 == done.returncode, done.stderr
        assert "base.json: no stored baseline: " in done.stderr
        assert "do: logscope baseline write" in done.stderr


@pytest.mark.parametrize("out", ["base.txt", "nowhere/base.json"])
def test_baseline_goes_to_a_json_file_in_a_folder(out: str, job: Path) -> None:
    done = logscope("baseline", "write", "baseline.log", "-o", out, cwd=job)
    assert (2, True) == (done.returncode, "do:" in done.stderr)
