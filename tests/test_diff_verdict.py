"""What a verdict must not say: figures of one launch for two, print resolution where it is the tolerance, causes that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Diff, ReadText
from logscope.commands.diff import read_tolerance
from logscope.differ import Difference, Tolerance, diff_launches
from logscope.errors import UsageError
from logscope.model import Launch
from logscope.packs import Packs
from made import GIB, Made, log_text

GOOD = Made()
FIXTURES = Path(__file__).parent / "fixtures"
BASELINE = (FIXTURES / "baseline/launch.log").read_text(encoding="utf-8")
CAR = (FIXTURES / "car/launch.log").read_text(encoding="utf-8")
Texts = Callable[..., Difference]


@pytest.fixture
def texts(read_text: ReadText, packs: Packs) -> Texts:
    def compare(*sides: str, tolerance: Tolerance | None = None) -> Difference:
        launches = [read_text(text, f"{'abcd'[index]}.log")[-1] for index, text in enumerate(sides)]
        names = "abcd"[len(sides) - 2], "abcd"[len(sides) - 1]
        called = f"{names[0]}.log", f"{names[1]}.log"
        return diff_launches(launches[:-1], launches[-1], packs, tolerance or Tolerance(), called)

    return compare


# Figures and tolerance


@pytest.mark.parametrize("tolerance", [Tolerance(bytes=10 * GIB), Tolerance(share=0.8)])
def test_a_tolerance_hides_no_tokens(tolerance: Tolerance, diff: Diff) -> None:
    """0.88 -> 0.80 of 94.5 GiB is 7.56 GiB: allowed, and still said as what it is."""
    difference = diff(GOOD, replace(GOOD, fraction=0.8), tolerance=tolerance)
    assert not difference.is_changed
    assert (
        "No change beyond the tolerance: before.log and after.log are both ready with 1,131,413 and 933,232 tokens of KV cache (-17.5%)."
        == difference.lines[0]
    )
    capacity = next(change for change in difference.changes if change.field == "max_total_num_tokens")
    assert ("same", "within the tolerance") == (capacity.verdict, capacity.reason)


def test_one_number_is_not_said_of_two(texts: Texts) -> None:
    difference = texts(BASELINE, BASELINE.replace("159269", "159347"))
    assert (
        "No change beyond print resolution: a.log and b.log are both ready with 159,269 and 159,347 tokens of KV cache."
        == difference.lines[0]
    )


def test_what_the_tolerance_decides_is_not_print_resolution(diff: Diff) -> None:
    """1.5 GiB more of graphs by another backend."""
    other = replace(GOOD, attention_backend="triton", graph_gib=2.9)
    difference = diff(GOOD, other, tolerance=Tolerance(bytes=2 * GIB))
    (ruled_out,) = difference.ruled_out
    assert "within the tolerance" == ruled_out.reason
    assert 1.5 == pytest.approx((ruled_out.bytes or 0) / GIB, abs=0.01)


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("0", Tolerance()),
        ("1GB", Tolerance(bytes=GIB)),
        ("100 MiB", Tolerance(bytes=GIB * 100 / 1024)),
        ("30s", Tolerance(seconds=30)),
        ("1%", Tolerance(share=0.01)),
    ],
)
def test_amounts_of_tolerance(text: str, tolerance: Tolerance) -> None:
    assert tolerance == read_tolerance(text)


def test_a_number_without_a_unit_is_no_tolerance() -> None:
    with pytest.raises(UsageError):
        read_tolerance("5")


def test_seconds_are_tolerated(diff: Diff) -> None:
    slow = replace(GOOD, load_s=400.0)
    assert not diff(GOOD, slow, tolerance=Tolerance(seconds=340)).is_changed
    assert diff(GOOD, slow, tolerance=Tolerance(seconds=339)).is_changed


# Failures


def test_a_shorter_list_of_graphs_runs_out_of_no_memory(diff: Diff) -> None:
    """Fewer sizes, and a larger fraction that leaves 3 GiB less to graphs: the fraction is what made the capture fail."""
    lists = [{"cuda_graph_bs": sizes} for sizes in ([1, 2, 4, 8, 12, 16], [1, 2, 4, 8])]
    first = replace(GOOD, extra_args=lists[0], graph_gib=10.0)
    difference = diff(first, replace(first, extra_args=lists[1], fraction=0.93))
    (cause,) = difference.causes
    assert "mem_fraction_static" == cause.name
    assert cause.sentence.endswith("and leaves that much less beside it.")


def test_a_longer_list_of_graphs_may_run_out_of_memory(diff: Diff) -> None:
    lists = [{"cuda_graph_bs": sizes} for sizes in ([1, 2, 4, 8], [1, 2, 4, 8, 12, 16])]
    first = replace(GOOD, extra_args=lists[0])
    difference = diff(first, replace(first, extra_args=lists[1], graph_gib=14.0))
    assert difference.causes[0].sentence.startswith(
        "cuda_graph_bs 4 sizes up to 8 -> 6 sizes up to 16: after.log failed, out of memory"
    )


def test_of_several_that_may_have_made_a_failure_none_is_blamed(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    """Another model on other ranks with another backend: no figure tells which of them ran out of memory for graphs."""
    launches = fixture_launches["car"], fixture_launches["0.5.9-fakecuda-graph-oom"]
    cause = diff_launches([launches[0]], launches[1], packs, Tolerance()).causes[0]
    assert ("failure", "oom_graph_capture") == (cause.kind, cause.name)
    doubt = cause.sentence.partition("; it may be due to any of ")[2]
    for name in ("attention_backend", "model_path", "tp_size", "mem_fraction_static"):
        assert name in doubt


def test_the_failure_of_the_second_launch_comes_first(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """The first ran out of memory for graphs; the second has 70.57 GiB more of weights and a lower fraction."""
    launches = [fixture_launches[f"0.5.9-fakecuda-{name}"] for name in ("graph-oom", "notenough")]
    causes = diff_launches([launches[0]], launches[1], packs, Tolerance()).causes
    assert [-70.57, -34.86] == [round((cause.explains_bytes or 0) / GIB, 2) for cause in causes[:2]]
    assert "mem_fraction_static" == causes[1].name
    assert not any(cause.name.startswith("cuda_graph") for cause in causes)


def test_a_failure_whose_message_is_cut_is_told_by_the_budget(texts: Texts) -> None:
    cut = CAR[: CAR.index("Not enough memory") + len("Not en")]
    difference = texts(BASELINE, cut)
    assert difference.lines[0].endswith("b.log failed: the log ends inside the line that says why on TP0.")
    assert difference.lines[1].startswith("Cause: mem_fraction_static 0.88 -> 0.55 takes 31.03 GiB")
    assert ["mem_fraction_static"] == [cause.name for cause in difference.causes]


def test_a_death_after_ready_is_a_consequence(texts: Texts) -> None:
    text = log_text(GOOD)
    crash = (
        "[2026-01-05 10:09:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        "ValueError: no such thing\n"
        "[2026-01-05 10:09:41] Received sigquit from a child process. It usually means the child failed.\n"
    )
    difference = texts(text, text + crash)
    assert difference.lines[1].startswith("Cause: b.log failed: ")


# Settings, times, baselines


def test_a_setting_that_a_line_repeats_is_no_cause_to_be_found(texts: Texts) -> None:
    text = log_text(GOOD)
    difference = texts(text, text.replace("chunked_prefill_size=8192", "chunked_prefill_size=4096"))
    assert (
        "No difference in memory or time beyond print resolution; the lines differ in chunked_prefill_size 8,192 -> 4,096."
        == (difference.lines[1])
    )
    assert difference.first is None
    assert not any("Not the cause" in line for line in difference.lines)
    requests = texts(text, text.replace("max_running_requests=256", "max_running_requests=128"))
    assert requests.lines[1].endswith("; the lines differ in max_running_requests 256 -> 128.")


def test_a_fraction_that_the_pools_refute_moves_nothing(texts: Texts) -> None:
    """The command and the pool have 0.88; only server_args say 0.7."""
    difference = texts(BASELINE, BASELINE.replace("mem_fraction_static=0.88", "mem_fraction_static=0.7"))
    assert () == difference.causes
    assert "In b.log mem_fraction_static 0.70 is not what ran: the pool implies 0.8798..0.8801." == difference.lines[1]
    (arg,) = [arg for arg in difference.args if arg.name == "mem_fraction_static"]
    assert "derived" == arg.origin


def test_a_value_that_was_typed_otherwise_is_not_typed(texts: Texts) -> None:
    first = log_text(replace(GOOD, graph_bs=64))
    difference = texts(first, first.replace("cuda_graph_max_bs=64", "cuda_graph_max_bs=256"))
    assert ["derived"] == [arg.origin for arg in difference.args if arg.name == "cuda_graph_max_bs"]


def test_a_phase_beside_others_makes_the_launch_no_slower(texts: Texts) -> None:
    text = log_text(GOOD)
    slow = re.sub(r"( TP5\] Load weight end\. elapsed=)60\.00", r"\g<1>360.00", text)
    assert slow != text
    difference = texts(text, slow)
    assert difference.causes[0].sentence.startswith(
        "time to load the weights 60 s -> 6 min 00 s on TP5: 5 min 00 s longer; the whole"
    )
    assert not any("slower" in line for line in difference.lines)


def test_an_argument_that_baselines_vary_in_is_no_difference(texts: Texts) -> None:
    first, second = log_text(GOOD), log_text(replace(GOOD, attention_backend="triton", graph_gib=2.1))
    difference = texts(first, second, first)
    assert not difference.is_changed
    assert () == difference.ruled_out == difference.args
    assert "No change beyond the spread of the baselines" in difference.lines[0]
    assert (
        "what stands under Before is that of b.log, the last of 2 baselines",
        "attention_backend: as in one of the baselines, which differ in that; left out",
    ) == difference.notes


# What several things may have made


def test_graphs_are_put_down_to_all_that_may_have_made_them(diff: Diff) -> None:
    """Fewer sizes and another model: nothing tells which of them took 0.8 GiB less."""
    other = {"model_path": "/models/made-8b"}
    difference = diff(GOOD, replace(GOOD, graph_bs=32, graph_gib=0.6, extra_args=other))
    (cause,) = (cause for cause in difference.causes if cause.name == "cuda_graph_max_bs")
    assert ("model_path",) == cause.together_with
    assert "together with model_path /models/made-70b -> /models/made-8b, takes 0.80 GiB less" in cause.sentence


def test_the_graphs_of_two_releases_are_compared_as_a_whole(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """TP0 took three times 0.55 GiB in 0.5.9, and 0.16 twice in 0.5.14, where TP1 does not print those of the draft."""
    launches = fixture_launches["0.5.9-new-eagle-tp2"], fixture_launches["0.5.14-new-eagle-tp2"]
    sentence = diff_launches([launches[0]], launches[1], packs, Tolerance()).causes[0].sentence
    assert "1.33 GiB less of TP0's memory beside the KV cache" in sentence


def test_a_draft_takes_graphs_more_and_not_less(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """0.27 GiB without a draft; 0.16 of the target and 0.16 of the draft with it, and with another release."""
    launches = fixture_launches["0.5.13-new-fakecuda-tp2"], fixture_launches["0.5.14-new-eagle-tp2"]
    (cause,) = (
        each
        for each in diff_launches([launches[0]], launches[1], packs, Tolerance()).causes
        if "memory beside the KV cache" in each.sentence
    )
    assert "SGLang release" in cause.together_with
    assert "takes 0.05 GiB more of TP0's memory beside the KV cache" in cause.sentence


def test_fewer_requests_make_graphs_smaller(diff: Diff) -> None:
    requests = [{"max_running_requests": count} for count in (64, 32)]
    difference = diff(replace(GOOD, extra_args=requests[0]), replace(GOOD, extra_args=requests[1], graph_gib=0.9))
    (cause,) = difference.causes
    assert ("max_running_requests", "64", "32") == (cause.name, cause.before, cause.after)
    assert difference.lines[1].startswith("Difference: ")  # the capacity is the same


def test_graphs_that_nothing_explains_are_said_to_be(diff: Diff) -> None:
    difference = diff(GOOD, replace(GOOD, graph_gib=2.4, extra_args={"chunked_prefill_size": 4096}))
    (cause,) = difference.causes
    assert cause.sentence.endswith("; no argument that is known to act on it differs.")
    assert () == difference.ruled_out, "what nothing explains may be due to what differs"


def test_a_part_of_the_change_is_not_given_its_whole(texts: Texts) -> None:
    """FP8 gives 20 GiB; the fraction is within what the baselines vary by, and the budget grew by 24.73 GiB."""
    baselines = [log_text(replace(GOOD, fraction=fraction)) for fraction in (0.88, 0.8)]
    (cause,) = texts(*baselines, log_text(replace(GOOD, fraction=0.85, quantization="fp8"))).causes
    assert "gives 20.00 GiB to the KV budget of every rank (+" in cause.sentence
    assert "->" not in cause.sentence.partition("gives")[2]


def test_capacities_of_other_numbers_of_pools_are_given_no_ratio(texts: Texts) -> None:
    one, two = (
        (FIXTURES / f"{case}/launch.log").read_text(encoding="utf-8")
        for case in ("0.5.9-fakecuda-tp8", "0.5.9-fakecuda-tp2-dp2")
    )
    sentence = texts(one, two).lines[0]
    assert "1,292,787 tokens of KV cache (each of one pool; dp_size makes 1 and 2 of them)" in sentence
    assert "%" not in sentence
    assert "(each of one pool; dp_size makes 2 and 1 of them)" in texts(two, one).lines[0]
