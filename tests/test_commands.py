"""The program as a user runs it: output, exit codes, errors."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from running import logscope

FIXTURES = Path(__file__).parent / "fixtures"
BASELINE = str(FIXTURES / "baseline" / "launch.log")
CAR = str(FIXTURES / "car" / "launch.log")
EAGLE = str(FIXTURES / "0.5.14-new-eagle-tp2" / "launch.log")
DRIFTED = "[2026-01-05 10:00:00 TP0] Load weight begin. avail mem=94.04 GB\n[2026-01-05 10:00:09 TP0] Load weight end. all is well\n"


def test_the_first_words_of_a_timeline_are_the_answer() -> None:
    done = logscope("timeline", "launch.log", cwd=FIXTURES / "baseline")
    assert (
        "launch.log: ready after 10 min 12 s: 8 ranks, 159,269 tokens of KV cache (10.42" == done.stdout.splitlines()[0]
    )
    assert "GiB per rank), 9.82 GiB left free per rank." == done.stdout.splitlines()[1]
    assert (0, "") == (done.returncode, done.stderr)


def test_baseline_goes_from_94_04_to_9_82_on_eight_ranks() -> None:
    rows = json.loads(logscope("timeline", BASELINE, "-f", "json").stdout)["launches"][0]["timeline"]
    free = {f"TP{tp}": [] for tp in range(8)}
    for row in rows:
        if row["event"] in ("load_weights.begin", "load_weights.end", "memory_pool.end", "cuda_graph.end"):
            free[row["rank"]].append(round(row["avail_mem_bytes"] / 2**30, 2))
    assert {f"TP{tp}": [94.04, 21.71, 11.26, 9.82] for tp in range(8)} == free


def test_a_log_alone_is_explained_with_its_timeline() -> None:
    assert logscope("explain", "--timeline", CAR).stdout == logscope(CAR).stdout
    assert logscope("explain", "--timeline", CAR, "-f", "json").stdout == logscope(CAR, "-f", "json").stdout


def test_bare_logscope_shows_help() -> None:
    done = logscope()
    assert 0 == done.returncode
    assert "Example: logscope run.log" in done.stdout


def test_version_is_shown() -> None:
    assert "logscope 0.1.0\n" == logscope("--version").stdout


@pytest.mark.parametrize("command", ["timeline", "explain", "events"])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"hello\nworld\n", "no line is one that a launching server prints"),
        (bytes(range(256)) * 64, "no line is one that a launching server prints"),
    ],
    ids=["empty", "something else", "binary"],
)
def test_a_log_without_a_launch_is_refused_in_one_message(
    tmp_path: Path, command: str, content: bytes, why: str
) -> None:
    (tmp_path / "x.log").write_bytes(content)
    done = logscope(command, "x.log", cwd=tmp_path)
    assert (3, "") == (done.returncode, done.stdout)
    assert f"logscope: no SGLang launch in x.log: {why}" == done.stderr.splitlines()[0]
    assert 2 == len(done.stderr.splitlines())


def test_a_missing_file_names_what_is_near(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("x\n")
    done = logscope("timeline", "rum.log", cwd=tmp_path)
    assert 3 == done.returncode
    assert "logscope: no such file: rum.log\n  do: check the path; . has run.log\n" == done.stderr


def test_a_directory_without_logs_is_refused(tmp_path: Path) -> None:
    done = logscope("timeline", str(tmp_path))
    assert 3 == done.returncode
    assert done.stderr.startswith(f"logscope: no log in directory {tmp_path}\n  do: ")


@pytest.mark.parametrize(
    "words",
    [
        ("timeline",),
        ("timeline", BASELINE, "--nope"),
        ("timeline", BASELINE, "-f", "xml"),
        ("timeline", BASELINE, "--launch", "2"),
        ("timeline", BASELINE, "--launch", "first"),
        ("timeline", BASELINE, "--rank", "TP8"),
        ("timeline", BASELINE, "--patterns", "/nonexistent"),
        ("timeline", BASELINE, "-o", "json=/nonexistent/x.json"),
        ("timeline", BASELINE, "-o", "out.xyz"),
        ("events", BASELINE, "-f", "xml"),
        ("events", BASELINE, "--phase", "lunch"),
        ("events", BASELINE, "--launch", "7"),
        ("frobnicate", BASELINE),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_without_a_traceback(words: tuple[str, ...], tmp_path: Path) -> None:
    done = logscope(*words, cwd=tmp_path)
    assert 2 == done.returncode
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_a_good_and_a_foreign_log_together_show_the_good_one_and_name_the_other(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("hello\n")
    done = logscope("timeline", BASELINE, "x.log", cwd=tmp_path)
    assert 0 == done.returncode
    assert "logscope: no SGLang launch in x.log: no line is one that a launching server prints\n" == done.stderr
    assert "ready after 10 min 12 s" in done.stdout


def test_standard_input_is_a_log() -> None:
    done = logscope("timeline", "-", stdin=Path(CAR).read_bytes())
    assert 0 == done.returncode
    assert done.stdout.startswith("standard input: failed after 9 min 42 s on all 8 ranks: ")


def test_two_launches_are_numbered_and_one_can_be_chosen(tmp_path: Path) -> None:
    log = Path(BASELINE).read_bytes() + Path(CAR).read_bytes()
    (tmp_path / "both.log").write_bytes(log)
    lines = logscope("timeline", "both.log", cwd=tmp_path).stdout.splitlines()
    assert "2 launches in 1 file." == lines[0]
    assert "[1] both.log: ready after 10 min 12 s: 8 ranks, 159,269 tokens of KV cache" in lines
    assert any(line.startswith("[2] both.log: failed after 9 min 42 s on all 8 ranks:") for line in lines)
    last = json.loads(logscope("timeline", "both.log", "--launch", "last", "-f", "json", cwd=tmp_path).stdout)
    assert [2] == [launch["launch"] for launch in last["launches"]]
    assert last == json.loads(logscope("timeline", "both.log", "--launch", "2", "-f", "json", cwd=tmp_path).stdout)


def test_one_rank_can_be_chosen_and_all_can_be_unfolded() -> None:
    rows = list(csv.DictReader(io.StringIO(logscope("timeline", BASELINE, "--rank", "tp3", "-f", "csv").stdout)))
    assert {"TP3"} == {row["rank"] for row in rows}
    unfolded = logscope("timeline", BASELINE, "--ranks").stdout
    assert 7 == sum(1 for line in unfolded.splitlines() if line.startswith("  TP7"))


def test_csv_has_the_columns_of_the_schema_and_base_units() -> None:
    rows = list(csv.DictReader(io.StringIO(logscope("timeline", BASELINE, "-f", "csv").stdout)))
    end = next(row for row in rows if row["event"] == "load_weights.end" and row["rank"] == "TP0")
    assert ("564.42", str(round(21.71 * 2**30)), str(round(72.33 * 2**30))) == (
        end["elapsed_s"],
        end["avail_mem_bytes"],
        end["mem_usage_bytes"],
    )
    assert "42" == end["line"]


def test_files_are_written_and_not_overwritten_without_force(tmp_path: Path) -> None:
    first = logscope("timeline", BASELINE, "-o", "a.json", "-o", "markdown=b.txt", cwd=tmp_path)
    assert (0, "") == (first.returncode, first.stdout)
    assert 1 == json.loads((tmp_path / "a.json").read_text())["schema"]
    assert (tmp_path / "b.txt").read_text().startswith("**")
    again = logscope("timeline", BASELINE, "-o", "a.json", cwd=tmp_path)
    assert (2, "logscope: a.json exists\n  do: add --force to overwrite it\n") == (again.returncode, again.stderr)
    assert 0 == logscope("timeline", BASELINE, "-o", "a.json", "--force", cwd=tmp_path).returncode


def test_parquet_holds_the_same_rows_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pandas

    assert 0 == logscope("timeline", BASELINE, "-o", "t.parquet", cwd=tmp_path).returncode
    frame = pandas.read_parquet(tmp_path / "t.parquet")
    rows = list(csv.DictReader(io.StringIO(logscope("timeline", BASELINE, "-f", "csv").stdout)))
    assert [int(row["line"]) for row in rows] == list(frame["line"])
    assert "Int64" == str(frame["avail_mem_bytes"].dtype)


def test_strict_exits_1_when_a_wording_is_unknown_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(DRIFTED)
    done = logscope("timeline", "run.log", "--strict", cwd=tmp_path)
    assert 1 == done.returncode
    assert "not recognised: run.log:2: Load weight end. all is well (like load_weights.end)" in done.stdout
    assert 0 == logscope("timeline", "run.log", cwd=tmp_path).returncode
    assert 1 == logscope("events", "run.log", "--strict", cwd=tmp_path).returncode


def test_jsonl_events_follow_the_contract() -> None:
    rows = [json.loads(line) for line in logscope("events", EAGLE, "-f", "jsonl").stdout.splitlines()]
    keys = ["launch", "file", "line", "time", "node", "rank", "worker", "phase", "event", "values", "resolution"]
    assert {tuple(keys)} == {tuple(row) for row in rows}
    draft = next(row for row in rows if row["line"] == 116)
    assert {
        "launch": 1,
        "file": EAGLE,
        "line": 116,
        "time": "2026-11-29 17:53:55",
        "node": None,
        "rank": "TP0",
        "worker": "draft",
        "phase": "load_weights",
        "event": "load_weights.end",
        "values": {
            "elapsed_s": 0.01,
            "model_type": "LlamaForCausalLMEagle",
            "avail_mem_bytes": round(91.50 * 2**30),
            "mem_usage_bytes": round(0.13 * 2**30),
        },
        "resolution": {"elapsed_s": 0.01, "avail_mem_bytes": 10737419, "mem_usage_bytes": 10737419},
    } == draft
    assert [row["line"] for row in rows] == sorted(row["line"] for row in rows)
    assert "serving" not in {row["phase"] for row in rows}


def test_events_say_where_none_is_of_the_rank() -> None:
    done = logscope("events", CAR, "--rank", "TP9")
    assert (0, "") == (done.returncode, done.stdout)
    assert re.fullmatch(r"logscope: none of \d\d events is of this rank, phase and launch\n", done.stderr)
    assert "" == logscope("events", CAR, "--rank", "TP9", "--quiet").stderr


@pytest.mark.parametrize("flags", [("--all",), ("--phase", "serving")])
def test_events_of_serving_are_given_where_they_are_asked_for(flags: tuple[str, ...]) -> None:
    done = logscope("events", EAGLE, "-f", "jsonl", *flags)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    serving = [row for row in rows if row["event"] == "serving.decode"]
    assert {("TP0", None)} == {(row["rank"], row["worker"]) for row in serving}
    assert ("--all" in flags) == ("ready" in {row["phase"] for row in rows})
    assert [row["line"] for row in rows] == sorted(row["line"] for row in rows)


def test_a_drift_row_has_no_event_and_names_its_patterns(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(DRIFTED)
    rows = [json.loads(line) for line in logscope("events", "run.log", "-f", "jsonl", cwd=tmp_path).stdout.splitlines()]
    assert (None, ["load_weights.end"], 2) == (rows[1]["event"], rows[1]["drift"], rows[1]["line"])


def test_events_of_several_launches_carry_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "two.log").write_bytes(Path(CAR).read_bytes() * 2)
    rows = [json.loads(line) for line in logscope("events", "two.log", "-f", "jsonl", cwd=tmp_path).stdout.splitlines()]
    lines = Path(CAR).read_bytes().count(b"\n")
    first = [(row["line"], row["event"], row["values"]) for row in rows if row["launch"] == 1]
    second = [(row["line"] - lines, row["event"], row["values"]) for row in rows if row["launch"] == 2]
    assert first == second
    assert len(first) > 50


def test_secrets_never_leave_the_program(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef0123"  # noqa: S105 # made up
    log = (
        f"+ HF_TOKEN={secret} python3 -m sglang.launch_server --model-path m --api-key {secret}\n"
        f"[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', api_key='{secret}', tp_size=1)\n"
        f"[2026-01-05 10:00:01] Load weight end. key {secret}\n"
        f"[2026-01-05 10:00:02] some new pool: 3.00 GB, url=https://user:{secret}@host.example/x\n"
    )
    (tmp_path / "run.log").write_text(log)
    for words in (
        ("timeline", "run.log", "-f", "json"),
        ("timeline", "run.log"),
        ("run.log", "-f", "json"),
        ("run.log",),
        ("events", "run.log", "-f", "jsonl"),
        ("events", "run.log"),
        ("patterns", "gaps", "run.log", "--all"),
    ):
        done = logscope(*words, cwd=tmp_path)
        assert (3 if words[0] == "run.log" else 0) == done.returncode  # neither ready nor failed
        assert secret not in done.stdout + done.stderr


def test_no_progress_bar_or_colour_where_no_terminal_is() -> None:
    done = logscope("timeline", BASELINE)
    assert "\x1b" not in done.stdout + done.stderr


def test_one_rank_is_chosen_in_json_too() -> None:
    launch = json.loads(logscope("timeline", BASELINE, "--rank", "TP3", "-f", "json").stdout)["launches"][0]
    for name in ("ranks", "phases", "timeline", "ledger"):
        assert {"TP3"} == {row["rank"] for row in launch[name]}, name


def test_a_file_whose_name_tells_no_format_of_the_command_is_refused(tmp_path: Path) -> None:
    for words in (("timeline", BASELINE, "-o", "t.jsonl"), ("events", BASELINE, "-o", "e.parquet")):
        done = logscope(*words, cwd=tmp_path)
        assert 2 == done.returncode
        assert f"logscope: cannot tell the format of {words[-1]}" == done.stderr.splitlines()[0]
    assert [] == list(tmp_path.iterdir())


def test_events_are_written_to_files_and_with_a_format_to_stdout_too(tmp_path: Path) -> None:
    silent = logscope("events", CAR, "-o", "e.jsonl", cwd=tmp_path)
    assert (0, "") == (silent.returncode, silent.stdout)
    both = logscope("events", CAR, "-o", "e.csv", "-f", "jsonl", cwd=tmp_path)
    assert (tmp_path / "e.jsonl").read_text() == both.stdout
    columns = (tmp_path / "e.csv").read_text().splitlines()[0]
    assert "launch,file,line,time,node,rank,worker,phase,event,values,resolution,drift,text" == columns


def test_durations_are_by_one_clock_though_a_container_has_another() -> None:
    lines = Path(BASELINE).read_bytes().split(b"\n")
    utc = b"\n".join(
        b"2026-02-27T06:%02d:%02d.000000000Z " % (10 + n // 60, n % 60) + line for n, line in enumerate(lines)
    )
    first = logscope("timeline", "-", stdin=utc).stdout.splitlines()[0]
    assert "standard input: ready after 10 min 12 s: 8 ranks, 159,269 tokens of KV cache" == first


def test_standard_input_is_named_with_its_origin() -> None:
    lines = Path(BASELINE).read_bytes().splitlines(keepends=True)
    done = logscope("timeline", "-", stdin=b"".join(b"sglang-1  | " + line for line in lines))
    assert done.stdout.startswith("standard input (sglang-1): ready after 10 min 12 s")


BAD_PHASE = """[phase]
id = "a"
order = 901
colour = "red"
"""
BAD_SAMPLE = """[phase]
id = "b"
order = 902
[[event]]
id = "b.x"
means = "x"
contains = "hello b"
  [[event.form]]
  regex = "^hello b$"
    [[event.form.sample]]
    line = "hello c"
"""


def test_problems_of_loading_and_of_samples_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(BAD_PHASE)
    (tmp_path / "b.toml").write_text(BAD_SAMPLE)
    done = logscope("timeline", BASELINE, "--patterns", str(tmp_path))
    assert (2, "") == (done.returncode, done.stdout)
    assert "a.toml:4: unknown key 'colour'" in done.stderr
    assert "b.toml:10: " in done.stderr


def test_a_file_name_that_is_no_utf_8_is_read_and_shown(tmp_path: Path) -> None:
    name = b"run\xff.log"
    (tmp_path / os.fsdecode(name)).write_bytes(Path(CAR).read_bytes())
    for words in (
        ("timeline",),
        ("timeline", "-f", "json"),
        ("explain",),
        ("explain", "-f", "json"),
        ("events", "-f", "jsonl"),
    ):
        done = logscope(words[0], os.fsdecode(name), *words[1:], cwd=tmp_path)
        assert (0, "") == (done.returncode, done.stderr)
        assert "run\ufffd.log" in done.stdout


@pytest.mark.parametrize("command", ["timeline", "explain", "events", "demo"])
def test_a_closed_stdout_is_said_in_one_line(command: str) -> None:
    log = [] if command == "demo" else [CAR]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "logscope", command, *log]
    done = subprocess.run(shell, capture_output=True, check=False, text=True)
    assert (3, "logscope: cannot write: stdout is closed\n") == (done.returncode, done.stderr)


def test_the_demo_tells_the_story_of_two_launches() -> None:
    done = logscope("demo")
    assert (0, "") == (done.returncode, done.stderr)
    text = " ".join(done.stdout.split())
    assert (
        "Cause: mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB from the KV budget of every rank (10.42 -> -20.61 GiB)."
        in text
    )
    assert "Not the cause: custom all-reduce (forced by environment in car.log): 0.01 GiB per rank" in text
    assert "car.log: failed after 9 min 42 s: not enough memory for the KV cache" in text
