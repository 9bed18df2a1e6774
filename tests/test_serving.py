"""Lines of serving: every wording, fast and slowly read alike; launches, ranks and time; what is said of it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

import logscope
from conftest import at, graph_lines, init_lines, load_lines, pool_lines, printed_args
from logscope.errors import NoLaunchError, SourceError
from logscope.packs import Packs, load_packs
from logscope.reading import Reading
from logscope.serving import Serving, ServingFrames, blocks, read_frames, read_parts
from logscope.serving.rows import Rows
from logscope.serving.summary import LaunchSum
from logscope.serving.summing import MOST_BUCKETS, Summing
from logscope.serving.types import KIND_OF
from running import logscope as run

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = [
    (pattern.id, sample.line)
    for pattern in load_packs().patterns
    if pattern.id in KIND_OF
    for form in pattern.forms
    for sample in form.samples
]
# as FORMATS of the releases has them, beyond the samples of the pattern files
PREFIXES = {
    "docker": "2026-01-05T10:00:0{n}.123456789Z ",
    "kubernetes": "2026-01-05T10:00:0{n}.1234567+01:00 stderr F ",
    "compose": "sglang-1  | ",
    "kubectl": "[pod/sglang-0/server] ",
}
Write = Callable[[Sequence[str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(lines: Sequence[str]) -> Path:
        path = tmp_path / "run.log"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def decode(
    clock: str = "10:00:00", tag: str = "TP0", throughput: str = "100.00", running: int = 3, usage: str = "0.50"
) -> str:
    return at(
        clock,
        tag,
        f"Decode batch, #running-req: {running}, #token: 40, token usage: {usage}, cuda graph: True, "
        f"gen throughput (token/s): {throughput}, #queue-req: 2",
    )


def prefill(clock: str = "10:00:00", tag: str = "TP0", new: int = 60, cached: int = 20) -> str:
    return at(
        clock,
        tag,
        f"Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, token usage: 0.10, #running-req: 0, #queue-req: 4",
    )


def retract(clock: str = "10:00:00", tag: str = "TP0", count: int = 2) -> str:
    message = f"KV cache pool is full. Retract requests. #retracted_reqs: {count}, #new_token_ratio: 0.4000 -> 0.7000"
    return at(clock, tag, message)


def launch_lines(minute: str = "09:50") -> list[str]:
    return [
        printed_args(port=30000).replace("10:00:00", f"{minute}:00"),
        *init_lines(minute=minute),
        *load_lines(minute=minute),
        *pool_lines(minute=minute),
        *graph_lines(minute=minute),
        f"[2026-01-05 {minute}:55] The server is fired up and ready to roll!",
    ]


def frames_of(path: Path) -> ServingFrames:
    return logscope.read_serving(path)


def slowly(path: Path, monkeypatch: pytest.MonkeyPatch) -> ServingFrames:
    """Read by the pattern files alone."""
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "_MOST_ATTEMPTS", 0)
        return frames_of(path)


def same_frames(fast: ServingFrames, slow: ServingFrames) -> None:
    for kind in ("prefill", "decode", "retract"):
        pd.testing.assert_frame_equal(
            getattr(slow, kind), getattr(fast, kind), check_categorical=False, check_like=True
        )
    assert slow.problems == fast.problems


def sums_of(path: Path, packs: Packs, every: float | None = None) -> list[LaunchSum]:
    serving = Serving()
    summing = Summing(serving.words, every)
    for part in read_parts([str(path)], Reading(packs), serving):
        summing.take(part)
    return summing.launches()


def varied(line: str, seed: int) -> str:
    """Return a line with other digits in its values; clocks, tags and signs stay."""
    chance = random.Random(seed)  # noqa: S311 # digits of a test
    head, mark, rest = re.match(r"((?:\[[^\]]*\] )?)(.*?[.,:(] ?)(.*)$", line).groups()  # type: ignore[union-attr]
    return head + mark + re.sub(r"(?<![\w.])\d+", lambda _: str(chance.randrange(10 ** chance.randrange(1, 8))), rest)


def test_samples_are_found() -> None:
    assert len(SAMPLES) >= 18
    assert set(KIND_OF) == {event for event, _ in SAMPLES}


@pytest.mark.parametrize(("event", "line"), SAMPLES, ids=[f"{event}-{n}" for n, (event, _) in enumerate(SAMPLES)])
@pytest.mark.parametrize("prefix", ["", *PREFIXES.values()], ids=["plain", *PREFIXES])
def test_numpy_reads_what_the_pattern_files_read(
    event: str, line: str, prefix: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wording of every release, with other numbers in it, behind what containers put in front."""
    path = write([prefix.format(n=seed) + varied(line, seed) for seed in range(10)])
    fast = frames_of(path)
    assert 10 == len(getattr(fast, KIND_OF[event]))
    same_frames(fast, slowly(path, monkeypatch))


@pytest.mark.parametrize("line", [line for _, line in SAMPLES])
def test_no_wording_is_left_to_the_slow_way(line: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for lines whose clock has no date: of those midnight is to be seen. One line of each block always goes it."""
    slow: list[int] = []
    add = Rows.add
    monkeypatch.setattr(Rows, "add", lambda rows, event: (slow.append(event.pos.line), add(rows, event)))
    frames = frames_of(write([line] * 100))
    assert 100 == len(frames.prefill) + len(frames.decode) + len(frames.retract)
    assert (100 if line.startswith("[10:00:00") else 1) == len(slow)


def test_values_of_a_decode_line_are_typed(write: Write) -> None:
    frame = frames_of(write([decode(throughput="212.50")] * 3)).decode
    assert [1, 2, 3] == frame["line"].tolist()
    assert [212.5] * 3 == frame["gen_throughput"].tolist()
    assert [3] * 3 == frame["running_reqs"].tolist()
    assert ["TP0"] * 3 == frame["rank"].tolist()
    assert ["True"] * 3 == frame["cuda_graph"].tolist()
    assert [pd.Timestamp("2026-01-05 10:00:00")] * 3 == frame["time"].tolist()
    dtypes = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert ("int64", "Int64", "category", "datetime64[ms]", "Float64") == tuple(
        dtypes[name] for name in ("launch", "running_reqs", "rank", "time", "gen_throughput")
    )
    assert frame["accept_len"].isna().all()


def test_shares_are_shares(write: Write) -> None:
    line = at(
        "10:00:00",
        "TP0",
        "Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, cache hit rate: 12.34%, #queue-req: 0",
    )
    assert [0.1234] * 4 == frames_of(write([line] * 4)).prefill["cache_hit_rate"].tolist()


def test_the_order_of_keys_does_not_matter(write: Write) -> None:
    keys = ["gen throughput (token/s): 7.25", "#queue-req: 5", "#running-req: 3", "token usage: 0.50", "#token: 40"]
    frame = frames_of(write([at("10:00:00", "TP0", "Decode batch, " + ", ".join(keys))] * 3)).decode
    assert [(7.25, 5, 3)] * 3 == list(
        zip(frame["gen_throughput"], frame["queue_reqs"], frame["running_reqs"], strict=True)
    )


def test_unknown_keys_are_kept_as_numbers_or_texts(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write([f"{decode()}, new share: {n}.50%, #new-thing: {n}, npu graph: False" for n in range(4)])
    frame = frames_of(path).decode
    assert [0.005, 0.015, 0.025, 0.035] == frame["new_share"].tolist()
    assert [0, 1, 2, 3] == frame["new_thing"].tolist()
    assert ["False"] * 4 == frame["npu_graph"].tolist()
    same_frames(frames_of(path), slowly(path, monkeypatch))


def test_a_key_with_numbers_and_texts_loses_neither(write: Write) -> None:
    frame = frames_of(write([f"{decode()}, new: 3", f"{decode()}, new: 4", f"{decode()}, new: auto"])).decode
    assert [3, 4] == frame["new"].dropna().tolist()
    assert ["auto"] == frame["new_text"].dropna().tolist()


@pytest.mark.parametrize("printed", ["nan", "inf", "-inf", "?", "1e400"])
def test_what_is_no_number_is_missing_and_said(printed: str, write: Write) -> None:
    path = write([decode(throughput="5.00"), decode(throughput=printed), decode(throughput="7.00")])
    frames = frames_of(path)
    assert [5.0, 7.0] == frames.decode["gen_throughput"].dropna().tolist()
    assert (f"gen_throughput is no number in 1 line, first {printed!r} ({path}:2)",) == frames.problems
    text = run("serving", str(path)).stdout
    assert f"not read: gen_throughput in 1 line is no number, first {printed!r}" in " ".join(text.split())


def test_numbers_of_any_size_are_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["1.00", "12345678.25", "123456789.25", "1234567890123.50", "0.01"]
    path = write([decode(throughput=value) for value in values for _ in range(3)])
    assert [float(value) for value in values for _ in range(3)] == frames_of(path).decode["gen_throughput"].tolist()
    same_frames(frames_of(path), slowly(path, monkeypatch))


def test_negative_numbers_are_read(write: Write) -> None:
    path = write([decode(running=running) for running in (1, -2, 3, -4)])
    assert [1, -2, 3, -4] == frames_of(path).decode["running_reqs"].tolist()


@pytest.mark.parametrize(
    "clock", ["2026-13-05 10:00:00", "2026-01-05 25:00:00", "2026-02-30 10:00:00", "2026-01-05 10:61:00"]
)
def test_a_clock_that_cannot_be_is_missing(clock: str, write: Write) -> None:
    path = write([decode(), decode(), decode().replace("2026-01-05 10:00:00", clock), decode()])
    assert [False, False, True, False] == frames_of(path).decode["time"].isna().tolist()


@pytest.mark.parametrize("end", ["", "\r"])
def test_a_cut_last_line_gives_no_half_numbers(end: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(
        f"{end}\n".join([decode(), decode(), decode().removesuffix("queue-req: 2") + "queue-req: 1"]).encode()
    )
    frame = frames_of(path).decode
    assert [2, 2] == frame["queue_reqs"].dropna().tolist()
    assert 3 == len(frame)


def test_garbage_between_the_lines_does_no_harm(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 # noise of a test
    path = tmp_path / "run.log"
    noise = [bytes(chance.randrange(256) for _ in range(80)).replace(b"\n", b"") for _ in range(50)]
    path.write_bytes(
        b"".join(line + b"\n" for pair in zip([decode().encode()] * 50, noise, strict=True) for line in pair)
    )
    assert list(range(1, 100, 2)) == frames_of(path).decode["line"].tolist()


@pytest.mark.parametrize("block", [1 << 10, 1 << 12, 1 << 14])
def test_blocks_may_end_anywhere(block: int, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for n in range(300) for line in (decode(running=n), prefill(new=n), "noise", retract(count=n))]
    path = write([*launch_lines(), *lines])
    whole = frames_of(path)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    same_frames(frames_of(path), whole)
    assert list(range(300)) == whole.decode["running_reqs"].tolist()


def test_new_wordings_in_a_long_log_are_learnt(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(blocks, "SAMPLE_BYTES", 1 << 8)
    path = write([*[decode(running=n) for n in range(1000)], *[prefill(new=n) for n in range(1000)]])
    frames = frames_of(path)
    assert list(range(1000)) == frames.decode["running_reqs"].tolist()
    assert list(range(1000)) == frames.prefill["new_tokens"].tolist()


def test_a_block_of_a_traceback_around_a_line_is_no_matter(write: Write) -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        decode(),
        "    g()",
        "ValueError: text",
    ]
    assert [1, 4, 7, 8] == frames_of(write([decode(), *trace, decode(), decode()])).decode["line"].tolist()


# -- launches and time ------------------------------------------------------------------------------------------------------------------


def test_each_launch_has_its_own_lines(write: Write, packs: Packs) -> None:
    first, second = launch_lines("09:50"), launch_lines("10:50")
    path = write([*first, decode(), decode("10:00:09"), *second, decode("11:00:00", throughput="9.00")])
    frame = frames_of(path).decode
    assert [1, 1, 2] == frame["launch"].tolist()
    assert [0, 9, 0] == frame["elapsed_s"].tolist()
    assert [1, 2] == [launch.number for launch in sums_of(path, packs)]


def test_what_was_served_before_the_first_launch_of_a_log_is_not_of_it(write: Write) -> None:
    path = write([decode("09:00:00"), decode("09:00:01"), *launch_lines("09:50"), decode("10:00:00")])
    assert [0, 0, 1] == frames_of(path).decode["launch"].tolist()
    words = " ".join(run("serving", str(path)).stdout.split())
    assert f"[before the first launch of the log] {path}:1..2:" in words
    assert 1 == json.loads(run("serving", str(path), "--launch", "1", "-f", "json").stdout)["launches"][0]["launch"]


def test_a_clock_that_is_set_back_is_no_launch(write: Write) -> None:
    path = write([*launch_lines(), *[decode(f"10:00:{second}") for second in ("30", "31", "01", "02")]])
    assert [1] * 4 == frames_of(path).decode["launch"].tolist()


def test_logs_without_a_start_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(f"{decode()}\n{decode()}\n")
    done = run("serving", str(tmp_path / "a.log"), str(tmp_path / "b.log"), "-f", "json")
    assert [["a.log"], ["b.log"]] == [
        [Path(file["file"]).name for file in launch["files"]] for launch in json.loads(done.stdout)["launches"]
    ]


def test_a_clock_without_a_date_may_pass_midnight(write: Write, packs: Packs) -> None:
    path = write([decode().replace("2026-01-05 10:00:00", clock) for clock in ("23:59:58", "23:59:59", "00:00:01")])
    frame = frames_of(path).decode
    assert frame["time"].isna().all()
    assert [0, 1, 3] == frame["elapsed_s"].tolist()
    assert 3 == len(sums_of(path, packs)[0].buckets)


def test_a_log_without_a_clock_goes_by_its_lines(write: Write) -> None:
    path = write(
        [
            "[gpu_id=0] Decode batch. #running-req: 1, #token: 40, token usage: 0.01, gen throughput (token/s): 5.00, #queue-req: 0"
        ]
        * 40
    )
    done = run("serving", str(path))
    assert "The log prints no clock: the lines of the file stand in for time." in done.stdout
    assert "from line" in done.stdout
    rows = json.loads(run("serving", str(path), "-f", "json").stdout)["launches"][0]["buckets"]
    assert {None} == {row["begin"] for row in rows}
    assert 40 == sum(row["decode_lines"] for row in rows)


def test_a_gap_is_shown_and_not_filled(write: Write) -> None:
    path = write([*[decode(f"10:00:{n:02}") for n in range(60)], *[decode(f"12:00:{n:02}") for n in range(60)]])
    done = run("serving", str(path), "--every", "60")
    assert ["10:00", "(119 min)", "12:00"] == re.findall(
        r"^ *([\d:]{5}|\(.*?\))(?= +100|$)", done.stdout, re.MULTILINE
    )[:3]


def test_there_are_never_too_many_buckets(write: Write, packs: Packs) -> None:
    clocks = [
        f"{hour:02}:{minute:02}:{second:02}"
        for hour in range(10, 13)
        for minute in range(60)
        for second in (0, 20, 40, 50)
    ]
    many = [decode(clock) for clock in clocks] * 1
    path = write([line.replace("2026-01-05", f"2026-01-{day:02}") for day in range(1, 9) for line in many])
    launch = sums_of(path, packs)[0]
    assert len(launch.buckets) <= MOST_BUCKETS < len(clocks) * 8
    assert (
        len(clocks) * 8
        == launch.ranks[0].total.count("decode_lines")
        == sum(c.count("decode_lines") for c in launch.cells.values())
    )


# -- ranks --------------------------------------------------------------------------------------------------------------------------------


def dp_lines() -> list[str]:
    return [
        decode(f"10:00:{second:02}", f"DP{dp} TP{dp} EP{dp}", throughput=f"{100 * (dp + 1)}.00")
        for second in range(4)
        for dp in range(2)
        if not (dp == 1 and second > 1)
    ]


def test_throughputs_of_data_parallel_ranks_are_added_where_both_speak(write: Write) -> None:
    done = run("serving", str(write(dp_lines())), "--every", "1")
    assert ["sum of 2     300", "sum of 2     300", "sum of 1     100", "sum of 1     100"] == re.findall(
        r"sum of \d +\d+", done.stdout
    )
    assert "DP1 TP1 EP1 says nothing in the last 2 s, in which others serve." in done.stdout
    words = " ".join(done.stdout.split())
    assert "Each of 2 ranks generated about 100..200 token/s (medians; 6 lines in all), together 300 at most" in words


def test_what_every_rank_of_a_group_prints_is_not_added(write: Write) -> None:
    """As with --enable-metrics-for-all-schedulers, and by the stages of a pipeline."""
    path = write([decode(f"10:00:{n:02}", tag) for n in range(3) for tag in ("TP0", "TP1", "PP1 TP0")])
    done = run("serving", str(path))
    assert "About 100 token/s were generated (median of 3 lines)" in " ".join(done.stdout.split())
    assert "sum of" not in done.stdout


def test_retractions_that_every_rank_repeats_count_once(write: Write) -> None:
    lines = [decode(), *[retract("10:00:01", f"TP{tp}") for tp in range(4)], decode("10:00:02")]
    path = write(lines)
    words = " ".join(run("serving", str(path)).stdout.split())
    assert f"The KV cache was full once, first at 10:00:01, {path}:2: 2 requests put back." in words
    assert "TP3" not in words
    assert 4 == len(frames_of(path).retract)


def test_a_retraction_for_a_test_is_none(write: Write) -> None:
    path = write([decode(), at("10:00:01", "TP0", "Testing retraction. #retracted_reqs: 2, #new_tokens_gained: 4096")])
    assert "No request was retracted." in " ".join(run("serving", str(path)).stdout.split())


def test_a_prefill_server_is_told_by_its_prompts(write: Write) -> None:
    """Of disaggregated prefill and decode each log has one kind of line."""
    path = write([prefill(f"10:00:{n:02}") for n in range(4)])
    words = " ".join(run("serving", str(path)).stdout.split())
    assert (
        "No line tells of generated tokens; 4 Prefill lines: 240 prompt tokens computed; 25% of the prompt tokens were cached."
        in words
    )
    assert "Prompt tokens computed, each 1 s" in words


def test_many_ranks_are_folded_to_their_least_and_most(write: Write) -> None:
    path = write([decode(tag=f"DP{dp} TP{dp}", throughput=f"{100 + dp}.00") for dp in range(12)])
    assert re.search(r"each of 12 +100\.\.111 ", run("serving", str(path)).stdout)
    assert re.search(r"DP11 +111 ", run("serving", str(path), "--ranks").stdout)


def test_one_rank_is_chosen(write: Write) -> None:
    path = write(dp_lines())
    assert ["DP1 TP1 EP1"] == [
        rank["rank"]
        for rank in json.loads(run("serving", str(path), "--rank", "dp1", "-f", "json").stdout)["launches"][0]["ranks"]
    ]
    done = run("serving", str(path), "--rank", "DP7")
    assert (2, True) == (done.returncode, "do: take one of DP0 TP0 EP0, DP1 TP1 EP1" in done.stderr)


def test_the_cache_hit_rate_is_that_of_tokens_not_of_lines(write: Write, packs: Packs) -> None:
    path = write([prefill(new=100, cached=0), prefill(new=0, cached=300)])
    assert 0.75 == sums_of(path, packs)[0].ranks[0].total.cache_hit_rate


def test_peaks_name_the_first_line_that_has_them(write: Write, packs: Packs) -> None:
    path = write([decode(throughput=value) for value in ("5.00", "9.00", "9.00", "1.00")])
    peak = sums_of(path, packs)[0].ranks[0].peaks["gen_throughput"]
    assert (9.0, 2) == (peak.value, peak.line)


def test_the_median_of_many_is_known_to_a_quarter_of_a_percent(write: Write, packs: Packs) -> None:
    chance = random.Random(2)  # noqa: S311 # rates of a test
    values = [chance.lognormvariate(5, 2) for _ in range(12_001)]
    launch = sums_of(write([decode(throughput=f"{value:.2f}") for value in values]), packs)[0]
    exact = sorted(values)[6000]
    assert exact == pytest.approx(launch.ranks[0].histogram.median(), rel=0.0026)


# -- the command ------------------------------------------------------------------------------------------------------------------------


def test_the_first_words_are_the_answer() -> None:
    done = run("serving", "launch.log", cwd=FIXTURES / "0.5.23-ok")
    assert 0 == done.returncode
    assert re.match(r"launch\.log:\d+\.\.\d+: About \d", done.stdout)


def test_standard_input_is_read_and_named() -> None:
    done = run("serving", "-", stdin=(decode() + "\n").encode())
    assert "standard input:1..1: About 100 token/s were generated (median of 1 line)" in " ".join(done.stdout.split())


@pytest.mark.parametrize("format_name", ["text", "markdown"])
def test_lines_are_at_most_80_columns(format_name: str, write: Write) -> None:
    lines = [
        decode(f"1{hour}:{minute:02}:00", f"DP{dp} TP{dp} EP{dp}", throughput=f"{10**7 + minute}.00").replace(
            "cuda", "accept len: 2.50, cuda"
        )
        for hour in range(9)
        for minute in range(60)
        for dp in range(4)
    ]
    path = write([*lines, *[prefill("18:00:01", "DP0 TP0 EP0", new=10**8), retract("18:00:02", "DP0 TP0 EP0")]])
    printed = run("serving", str(path), "-f", format_name).stdout.splitlines()
    table = [line for line in printed if "launch" not in line and path.name not in line]  # a path may be long
    if format_name == "text":
        assert 80 >= max(map(len, table))
    assert not any("…" in line for line in table)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00\xff\n" * 3])
def test_a_log_without_lines_of_serving_cannot_be_judged(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(content)
    done = run("serving", str(path))
    assert (3, "") == (done.returncode, done.stdout)
    assert f"logscope: no Prefill or Decode line in {path}" == done.stderr.splitlines()[0]
    with pytest.raises(NoLaunchError):
        frames_of(path)


def test_a_log_that_is_not_there_is_said() -> None:
    assert 3 == run("serving", "no.log").returncode
    with pytest.raises(SourceError):
        logscope.read_serving("no.log")


@pytest.mark.parametrize(
    "words", [("--every", "0"), ("--every", "x"), ("--launch", "7"), ("-f", "xml"), ("--no-such-flag",)]
)
def test_wrong_flags_are_a_usage_error(words: tuple[str, ...], write: Write) -> None:
    done = run("serving", str(write([*launch_lines(), decode()])), *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert "Traceback" not in done.stderr


def test_csv_has_a_row_for_each_bucket_and_rank(write: Write) -> None:
    rows = run("serving", str(write(dp_lines())), "--every", "2", "-f", "csv").stdout.splitlines()
    assert rows[0].startswith("launch,node,rank,begin,begin_line,width,decode_lines,")
    assert [
        "0,,DP0 TP0 EP0,2026-01-05 10:00:00,,2.0,2",
        "0,,DP1 TP1 EP1,2026-01-05 10:00:00,,2.0,2",
        "0,,DP0 TP0 EP0,2026-01-05 10:00:02,,2.0,2",
    ] == [",".join(row.split(",")[:7]) for row in rows[1:]]


def test_parquet_holds_the_same_rows(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, out = write(dp_lines()), tmp_path / "serving.parquet"
    assert 0 == run("serving", str(path), "--every", "2", "-o", str(out)).returncode
    frame = pd.read_parquet(out)
    assert [2, 2, 2] == frame["decode_lines"].tolist()
    assert [100.0, 200.0, 100.0] == frame["gen_throughput_mean"].tolist()


def test_an_unknown_wording_is_counted_and_strict_exits_1(write: Write) -> None:
    path = write([decode(), decode(), at("10:00:01", "TP0", "Decode batch, all is well")])
    done = run("serving", str(path), "--strict")
    assert (1, True) == (done.returncode, f"not recognised: {path}:3" in " ".join(done.stdout.split()))
    assert frames_of(path).problems == (f"1 line in an unknown wording, first {path}:3",)


def test_a_truncated_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress("".join(f"{decode(running=n)}\n" for n in range(5000)).encode())[:-2000])
    done = run("serving", str(path))
    assert 0 == done.returncode
    assert "its compressed data end too early" in done.stderr
    assert 0 < len(logscope.read_serving(path).decode) < 5000


def test_frames_hold_every_column_of_the_pattern_files(write: Write, packs: Packs) -> None:
    frames = read_frames([str(write([decode()]))], Reading(packs))
    for kind in ("prefill", "decode", "retract"):
        named = {f.result for p in packs.patterns if KIND_OF.get(p.id) == kind for f in p.fields.values()}
        assert named
        assert named <= set(getattr(frames, kind).columns)
    assert 0 == len(frames.prefill)
