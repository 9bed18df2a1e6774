"""``logscope diff`` as a user runs it: what it says first, formats, sides, exit codes, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from running import logscope

FIXTURES = Path(__file__).parent / "fixtures"
STORY = ("baseline", "car", "car_050", "car_debug", "baseline_debug_nocar", "baseline_grep")
LAST_FREE = 'mem_fraction_static=0.55, nnodes=2, node_rank=%d, dist_init_addr="a:1"'


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of the story in one folder, named like their cases."""
    folder = tmp_path_factory.mktemp("story")
    for name in STORY:
        (folder / f"{name}.log").write_bytes((FIXTURES / name / "launch.log").read_bytes())
    return folder


def test_the_cause_comes_first(story: Path) -> None:
    done = logscope("diff", "baseline.log", "car.log", cwd=story)
    first = " ".join(done.stdout.split("\n\n")[0].split())
    assert (
        "baseline.log is ready with 159,269 tokens of KV cache; car.log failed: not enough memory for the KV cache. "
        "Cause: mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB from the KV budget of every rank (10.42 -> -20.61 GiB). "
        "Not the cause: custom all-reduce (forced by environment in car.log): 0.01 GiB per rank, within print resolution. "
        "First divergence: KV cache, size (kv_cache.allocated), all 8 ranks: 10.42 GiB -> not reached."
    ) == first
    assert (0, "") == (done.returncode, done.stderr)


def test_two_logs_without_a_command_are_a_diff(story: Path) -> None:
    assert (
        logscope("diff", "baseline.log", "car.log", cwd=story).stdout
        == logscope("baseline.log", "car.log", cwd=story).stdout
    )


def test_two_nodes_of_one_launch_are_no_diff(tmp_path: Path) -> None:
    for rank in range(2):
        text = f"[2026-01-05 10:00:0{rank}] server_args=ServerArgs({LAST_FREE % rank}, tp_size=2)\n"
        line = f"[2026-01-05 10:00:09 TP{rank}] Load weight begin. avail mem=94.04 GB\n"
        (tmp_path / f"node{rank}.log").write_text(text + line, encoding="utf-8")
    done = logscope("diff", "node0.log", "node1.log", cwd=tmp_path)
    assert (2, "") == (done.returncode, done.stdout)
    assert "node0.log node1.log are nodes of one launch, by their server_args" in done.stderr
    assert "do: logscope explain node0.log node1.log" in done.stderr
    bare = logscope("node0.log", "node1.log", cwd=tmp_path)
    assert "node0.log, node1.log: neither ready nor failed" in bare.stdout


def test_json_adds_up(story: Path) -> None:
    data = json.loads(logscope("diff", "baseline.log", "car.log", "-f", "json", cwd=story).stdout)
    budget = data["budget"]
    assert 1 == data["schema"]
    assert {"before": "ready", "after": "failed"} == data["outcome"]
    assert (
        budget["after_bytes"] - budget["before_bytes"]
        == sum(t["bytes"] for t in budget["terms"]) + budget["residual_bytes"]
    )
    assert ("argument", "mem_fraction_static", "0.88", "0.55") == tuple(
        data["causes"][0][key] for key in ("kind", "name", "before", "after")
    )
    assert -31.03 == round(data["causes"][0]["explains_bytes"] / 2**30, 2)
    assert [0.01] == [round(each["bytes"] / 2**30, 2) for each in data["ruled_out"]]
    assert ["mem_fraction_static"] == [
        arg["name"] for arg in data["args"] if arg["origin"] == "typed" and not arg["noise"]
    ]
    assert {"nccl_port", "random_seed"} == {arg["name"] for arg in data["args"] if arg["noise"]}
    unreached = [change for change in data["changes"] if change["reason"] == "not reached after"]
    assert unreached and all(change["after"] is None and change["verdict"] == "unknown" for change in unreached)
    assert {"phase": "kv_cache", "event": "kv_cache.allocated", "rank": "TP0", "after": None} == {
        key: data["first_divergence"][key] for key in ("phase", "event", "rank", "after")
    }


def test_a_log_against_itself_is_empty(story: Path) -> None:
    done = logscope("diff", "baseline.log", "baseline.log", "-f", "json", "--exit-code", cwd=story)
    data = json.loads(done.stdout)
    assert 0 == done.returncode
    assert ([], [], [], None, False) == (
        data["causes"],
        data["ruled_out"],
        data["args"],
        data["first_divergence"],
        data["changed"],
    )
    assert {"same"} == {change["verdict"] for change in data["changes"]}


def test_exit_code_like_git_diff(story: Path) -> None:
    assert 1 == logscope("diff", "baseline.log", "car.log", "--exit-code", cwd=story).returncode
    assert 0 == logscope("diff", "baseline.log", "car.log", cwd=story).returncode


@pytest.mark.parametrize(
    ("text", "why"), [("", "it is empty"), ("hello\nworld\n", "no line is one that a launching server prints")]
)
@pytest.mark.parametrize("first", [True, False])
def test_nothing_to_compare_is_one_line_and_exit_3(
    story: Path, tmp_path: Path, text: str, why: str, first: bool
) -> None:
    other = tmp_path / "other.log"
    other.write_text(text, encoding="utf-8")
    sides = [str(other), "baseline.log"] if first else ["baseline.log", str(other)]
    done = logscope("diff", *sides, cwd=story)
    assert (3, "") == (done.returncode, done.stdout)
    assert f"logscope: no SGLang launch in {other}: {why}" == done.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["baseline.log"], "one log is nothing to compare"),
        (["baseline.log", "car.log", "car_050.log"], "3 logs: which of them is compared?"),
        (["baseline.log", "car.log", "--tolerance", "much"], "--tolerance much: no amount"),
        (["baseline.log", "car.log", "--rank", "TP9"], "no rank 'TP9' in these launches"),
        (["baseline.log", "car.log", "--phase", "nosuch"], "no step of phase 'nosuch'"),
        (["baseline.log", "car.log#7"], "no launch '7': there is 1 launch"),
        (["-", "-"], "standard input can be read once"),
    ],
)
def test_wrong_words_are_refused_with_advice(story: Path, words: list[str], message: str) -> None:
    done = logscope("diff", *words, cwd=story)
    assert (2, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert "\n  do: " in done.stderr


def test_a_side_may_be_one_launch_of_a_log(story: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.log"
    both.write_bytes((story / "car.log").read_bytes() + (story / "baseline.log").read_bytes())
    first = logscope("diff", f"{both}#2", f"{both}#1", cwd=story).stdout
    assert "Cause: mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB" in " ".join(first.split())
    last = logscope("diff", "baseline.log", str(both), cwd=story).stdout  # the last launch of it is the baseline
    assert last.startswith("No change beyond print resolution")
    assert "both.log#2 are both ready" in " ".join(last.split())


def test_a_phase_without_a_difference_is_said_to_be_one(story: Path) -> None:
    done = logscope("diff", "baseline.log", "car.log", "--phase", "load_weights", cwd=story)
    assert "No step of load_weights differs: --all shows them." in done.stdout
    one_rank = logscope("diff", "baseline.log", "car.log", "--phase", "load_weights", "--rank", "TP3", cwd=story)
    assert "No step of load_weights on TP3 differs: --all shows them." in one_rank.stdout


def test_what_changed_is_marked_at_the_beginning_of_its_row(story: Path) -> None:
    text = logscope("diff", "baseline.log", "car.log", cwd=story).stdout
    marked = [line for line in text.splitlines() if "!" in line]
    assert ["! mem_fraction_static      -31.03   -474,318", "! mem_fraction_static"] == [marked[0], marked[1][:21]]
    assert 2 == len(marked)


def test_json_tells_what_the_first_divergence_is_about(story: Path) -> None:
    data = json.loads(logscope("diff", "baseline.log", "car.log", "-f", "json", cwd=story).stdout)
    first = data["first_divergence"]
    assert ("kv_size_bytes", "bytes", [f"TP{rank}" for rank in range(8)]) == (
        first["field"],
        first["unit"],
        first["ranks"],
    )
    units = {change["unit"] for change in data["changes"]}
    assert {"bytes", "s", "tokens", None} == units


def test_standard_input_may_be_a_side(story: Path) -> None:
    done = logscope("diff", "baseline.log", "-", cwd=story, stdin=(story / "car.log").read_bytes())
    assert "Cause: mem_fraction_static 0.88 -> 0.55" in done.stdout


def test_several_baselines_against_one(story: Path) -> None:
    data = json.loads(
        logscope("diff", "baseline.log", "baseline.log", "--vs", "car.log", "-f", "json", cwd=story).stdout
    )
    assert (2, "mem_fraction_static") == (data["baselines"], data["causes"][0]["name"])


def test_a_tolerance_hides_what_is_below_it(story: Path) -> None:
    wide = logscope("diff", "car.log", "car_050.log", "--tolerance", "5GiB", "-f", "json", cwd=story)
    narrow = logscope("diff", "car.log", "car_050.log", "--tolerance", "4GiB", "-f", "json", cwd=story)
    assert [] == json.loads(wide.stdout)["causes"]
    assert ["mem_fraction_static"] == [cause["name"] for cause in json.loads(narrow.stdout)["causes"]]  # 4.70 GiB


@pytest.mark.parametrize("after", ["car", "car_050", "car_debug", "baseline_debug_nocar"])
@pytest.mark.parametrize("words", [[], ["--all"], ["--rank", "TP3"], ["--phase", "load_weights"]])
def test_text_fits_eighty_columns(story: Path, after: str, words: list[str]) -> None:
    text = logscope("diff", "baseline.log", f"{after}.log", *words, cwd=story).stdout
    assert [] == [line for line in text.splitlines() if len(line) > 80 or line != line.rstrip()]


def test_the_answer_fits_one_screen(story: Path) -> None:
    assert len(logscope("diff", "baseline.log", "car.log", cwd=story).stdout.splitlines()) <= 40


def test_csv_and_markdown(story: Path) -> None:
    lines = logscope("diff", "baseline.log", "car.log", "-f", "csv", cwd=story).stdout.splitlines()
    assert "worker,phase,event,role,field,rank,before,after,delta,unit,verdict,reason" == lines[0]
    markdown = logscope("diff", "baseline.log", "car.log", "-f", "markdown", cwd=story).stdout
    assert "mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB" in markdown
    assert len(markdown) < 65_536  # a comment on a pull request


def test_a_side_of_two_launches_is_no_launch_of_two_nodes(story: Path) -> None:
    done = logscope("diff", "baseline.log,car.log", "car.log", cwd=story)
    assert (2, "") == (done.returncode, done.stdout)
    assert "baseline.log,car.log: 2 launches, not the nodes of one, by their server_args" in done.stderr


def test_plain_replicas_do_not_hide_what_tensor_parallelism_does() -> None:
    sides = [str(FIXTURES / case / "launch.log") for case in ("0.5.9-fakecuda-tp8", "0.5.9-fakecuda-tp2-dp2")]
    causes = json.loads(logscope("diff", *sides, "-f", "json").stdout)["causes"]
    assert ("tp_size", "8", "2") == tuple(causes[0][key] for key in ("name", "before", "after"))


def test_a_launch_is_not_compared_with_itself_under_another_name(story: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.log"
    both.write_bytes((story / "car.log").read_bytes() + (story / "baseline.log").read_bytes())
    done = logscope("diff", str(both), f"{both}#2")
    assert (2, "") == (done.returncode, done.stdout)
    assert f"{both} and {both}#2 are one launch: {both} is the last in it" in done.stderr
    assert f"do: logscope diff {both}#1 {both}#2" in done.stderr
    wrong = logscope("diff", f"{both}#3", str(both))
    assert f"no launch '3': there are 2 launches\n  do: name one of them, such as {both}#2" in wrong.stderr


def test_the_launch_of_a_folder_is_called_by_its_file(story: Path) -> None:
    done = logscope("diff", "baseline.log", ".", cwd=story)
    assert re.search(r"\.#6 \((./)?car_debug\.log\)", " ".join(done.stdout.split()))


def test_a_phase_without_a_difference_does_not_hide_the_exit_code(story: Path) -> None:
    done = logscope("diff", "baseline.log", "car.log", "--phase", "load_weights", "--exit-code", cwd=story)
    assert 1 == done.returncode
    assert "The verdict and the exit code are of all steps." in done.stdout
