"""Target or draft: who loads, whose pool it is, who captures."""

from __future__ import annotations

import itertools

import pytest

from conftest import ReadText, at, graph_lines, init_lines, load_lines, log, pool_lines, rank_lines
from logscope.model import Launch, Worker

NEW_LOAD_END = "Load weight end. elapsed=0.10 s, type={}, avail mem={} GB, mem usage={} GB."


def told(launch: Launch, tag: str = "TP0") -> list[tuple[str, Worker | None]]:
    """Return (event, worker) of the events of one rank."""
    pairs = zip(launch.events, launch.workers, strict=True)
    return [(event.pattern.id, worker) for event, worker in pairs if event.rank.tag == tag]


def workers(launch: Launch, tag: str = "TP0") -> list[Worker | None]:
    return [worker for _, worker in told(launch, tag)]


def old_draft(tag: str = "TP0", model_type: str = "LlamaForCausalLMEagle") -> list[str]:
    """Write what a draft says to 0.5.13, after its target's graphs: nine lines less one."""
    return [
        *init_lines(tag, "10:01"),
        *load_lines("9.85", "9.72", "0.13", tag, "10:01", model_type),
        *pool_lines("1.20", "8.51", tag, "10:01"),
        *graph_lines("8.51", "8.01", "0.50", tag, "10:01", "draft"),
    ]


def new_lines(tag: str = "TP0", draft_type: str = "LlamaForCausalLMEagle") -> list[str]:
    """Write what a rank says from 0.5.14 on: both load, then both pools, then all graphs."""
    kv = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1251575, K size: {0} GB, V size: {0} GB"
    return [
        at("10:00:01", tag, "Init torch distributed begin."),
        at("10:00:02", tag, "Init torch distributed ends. elapsed=0.32 s, mem usage=0.00 GB"),
        at("10:00:02", tag, "Load weight begin. avail mem=94.98 GB"),
        at("10:00:03", tag, NEW_LOAD_END.format("LlamaForCausalLM", "91.63", "3.34")),
        at("10:00:03", tag, "Init torch distributed begin."),
        at("10:00:03", tag, "Init torch distributed ends. elapsed=0.01 s, mem usage=0.00 GB"),
        at("10:00:03", tag, "Load weight begin. avail mem=91.63 GB"),
        at("10:00:03", tag, NEW_LOAD_END.format(draft_type, "91.50", "0.13")),
        at("10:00:04", tag, kv.format("38.20")),
        at("10:00:04", tag, "Memory pool end. avail mem=15.11 GB"),
        at("10:00:04", tag, kv.format("1.19")),
        at("10:00:04", tag, "Memory pool end. avail mem=12.73 GB"),
        at("10:00:05", tag, "Capture target verify CUDA graph begin. backend=full, bs=[1, 2], avail mem=12.73 GB"),
        at(
            "10:00:09",
            tag,
            "Capture target verify CUDA graph end. elapsed=4.04 s, mem usage=0.16 GB, avail mem=12.57 GB.",
        ),
        at("10:00:09", tag, "Capture draft decode CUDA graph begin. backend=full, bs=[1, 2], avail mem=12.57 GB"),
        at(
            "10:00:11",
            tag,
            "Capture draft decode CUDA graph end. elapsed=1.71 s, mem usage=0.16 GB, avail mem=12.41 GB.",
        ),
    ]


NEW_WORKERS = ["target"] * 4 + ["draft"] * 4 + ["target"] * 2 + ["draft"] * 2 + ["target"] * 2 + ["draft"] * 2


def test_a_launch_without_a_draft_has_only_a_target(read_text: ReadText) -> None:
    assert ["target"] * 8 == workers(*read_text(log(*rank_lines())))


def test_to_0_5_13_the_draft_follows_the_targets_graphs(read_text: ReadText) -> None:
    assert ["target"] * 8 + ["draft"] * 8 == workers(*read_text(log(*rank_lines(), *old_draft())))


def test_from_0_5_14_the_draft_loads_before_the_targets_pools(read_text: ReadText) -> None:
    assert NEW_WORKERS == workers(*read_text(log(*new_lines())))


def test_a_draft_of_the_targets_class_is_told_by_its_place(read_text: ReadText) -> None:
    assert NEW_WORKERS == workers(*read_text(log(*new_lines(draft_type="LlamaForCausalLM"))))
    old = log(*rank_lines(), *old_draft(model_type="LlamaForCausalLM"))
    assert ["target"] * 8 + ["draft"] * 8 == workers(*read_text(old))


@pytest.mark.parametrize("model_type", ["DeepseekV3ForCausalLMNextN", "LlamaForCausalLMEagle3", "MiMoMTP"])
def test_a_draft_is_told_by_its_model_type_alone(read_text: ReadText, model_type: str) -> None:
    (launch,) = read_text(log(*load_lines("14.08", "13.95", "0.13", model_type=model_type)))
    assert ["draft", "draft"] == workers(launch)


def test_two_pools_before_one_end_are_no_draft(read_text: ReadText) -> None:
    pools = [*pool_lines(kv="5.00")[:1], *pool_lines(kv="5.42")]
    (launch,) = read_text(log(*init_lines(), *load_lines(), *pools, *graph_lines()))
    assert ["target"] * 9 == workers(launch)


def test_a_wording_that_names_its_worker_decides(read_text: ReadText) -> None:
    lines = new_lines()
    (launch,) = read_text(log(*lines[12:]))
    assert [
        ("cuda_graph.begin", "target"),
        ("cuda_graph.end", "target"),
        ("cuda_graph.begin", "draft"),
        ("cuda_graph.end", "draft"),
    ] == told(launch)


def test_an_old_wording_that_names_no_worker_is_the_targets(read_text: ReadText) -> None:
    assert ["target", "target"] == workers(*read_text(log(*graph_lines())))
    assert ["draft", "draft"] == workers(*read_text(log(*graph_lines(kind="draft extend"))))


def test_what_is_not_about_a_model_has_no_worker(read_text: ReadText) -> None:
    ready = at("10:02:00", "", "The server is fired up and ready to roll!")
    bar = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:03<00:03,  1.60s/it]"
    (launch,) = read_text(log(*load_lines(tag=""), bar, ready))
    assert ["target", "target", None, None] == workers(launch, "")


@pytest.mark.parametrize("missing", range(16))
def test_a_missing_line_does_not_change_the_other_workers_to_0_5_13(read_text: ReadText, missing: int) -> None:
    lines = [*rank_lines(), *old_draft()]
    expected = ["target"] * 8 + ["draft"] * 8
    del lines[missing], expected[missing]
    assert expected == workers(*read_text(log(*lines)))


# without the end of the target's pools the next ones look like more of its own, as those of a sliding window do
AMBIGUOUS_FROM_0_5_14 = {9}


@pytest.mark.parametrize("missing", [n for n in range(16) if n not in AMBIGUOUS_FROM_0_5_14])
def test_a_missing_line_does_not_change_the_other_workers_from_0_5_14(read_text: ReadText, missing: int) -> None:
    lines, expected = new_lines(), list(NEW_WORKERS)
    del lines[missing], expected[missing]
    assert expected == workers(*read_text(log(*lines)))


def test_a_draft_is_seen_although_its_begin_is_missing(read_text: ReadText) -> None:
    draft_end = load_lines("9.85", "9.72", "0.13", minute="10:01", model_type="LlamaForCausalLMEagle")[1]
    assert ["target", "target", "draft"] == workers(*read_text(log(*load_lines(), draft_end)))


def test_a_draft_is_seen_although_all_pools_of_the_target_are_missing(read_text: ReadText) -> None:
    lines = [*init_lines(), *load_lines(), *graph_lines(), *old_draft()]
    assert ["target"] * 6 + ["draft"] * 8 == workers(*read_text(log(*lines)))


def test_interleaved_ranks_do_not_mix(read_text: ReadText) -> None:
    one, other = new_lines("TP0"), new_lines("TP1")
    shifted = itertools.zip_longest(["noise"] * 5 + one, other)  # TP1 is five lines ahead
    (launch,) = read_text(log(*(line for pair in shifted for line in pair if line)))
    assert NEW_WORKERS == workers(launch, "TP0")
    assert NEW_WORKERS == workers(launch, "TP1")
