"""What breaks naive parsers: one small log for each trap of formatting and meaning that public logs hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import (
    BANNER,
    FIRED_UP,
    FRAME,
    LOGS,
    NO_MEMORY,
    SIGQUIT,
    ReadText,
    at,
    gb,
    graph_lines,
    init_lines,
    load_lines,
    log,
    pool_lines,
    printed_args,
    rank_lines,
)
from logscope.errors import NoLaunchError
from logscope.events import Recogniser
from logscope.model import Drift, Event, Launch
from logscope.rank import Rank
from logscope.scan import ReadState
from logscope.units import GIB, MIB, Quantity

BEGIN = "Load weight begin. avail mem=94.04 GB"
END = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB."
TRACEBACK = "Traceback (most recent call last):"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.54 GiB. GPU 0 has a total capacity of 95.58 GiB of which "
    "12.50 MiB is free. Process 1188 has 93.13 GiB memory in use. Of the allocated memory 92.53 GiB is allocated by PyTorch, and "
    "12.34 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try something"
)


def said(recogniser: Recogniser, *text: str, end: str = "\n") -> list[Event]:
    """Return the events of a log; nothing in it may be a drift."""
    items = list(recogniser.read("run.log", [("\n".join(text) + end).encode()], ReadState()))
    assert [] == [item for item in items if isinstance(item, Drift)]
    return [item for item in items if isinstance(item, Event)]


def one(recogniser: Recogniser, *text: str) -> Event:
    (event,) = said(recogniser, *text)
    return event


def only(launches: list[Launch]) -> Launch:
    (launch,) = launches
    return launch


def ids(events: list[Event] | tuple[Event, ...]) -> list[str]:
    return [event.pattern.id for event in events]


def tags(launch: Launch) -> list[str]:
    return [rank.tag for rank in launch.ranks]


def value(event: Event, name: str) -> float | None:
    quantity = event.quantity(name)
    return None if quantity is None else quantity.value


def assert_is_load_begin(event: Event, tag: str, time: str | None, outer_time: str | None = None) -> None:
    """All prefixes lead to the same event with the same value."""
    assert ("load_weights.begin", gb("94.04")) == (event.pattern.id, value(event, "avail_mem_bytes"))
    assert (tag, time, outer_time) == (event.rank.tag, event.time, event.outer_time)


# ---- A. line prefix and identity ------------------------------------------------------------------------------------


def test_01_line_without_a_tag_belongs_to_the_single_rank(read_text: ReadText) -> None:
    launch = only(read_text(log("[2025-12-23 14:18:01] Load weight begin. avail mem=94.04 GB")))
    assert (Rank(),) == launch.ranks
    assert None is launch.ranks[0].tp


@pytest.mark.parametrize(
    ("tag", "rank"),
    [
        ("TP0", Rank("TP0", tp=0)),
        ("DP1 TP1", Rank("DP1 TP1", dp=1, tp=1)),
        ("DP0 TP0 EP0", Rank("DP0 TP0 EP0", dp=0, tp=0, ep=0)),
        ("TP0 EP0", Rank("TP0 EP0", tp=0, ep=0)),
        ("PP0 TP1", Rank("PP0 TP1", pp=0, tp=1)),
        ("ATTN_CP5 TP5", Rank("ATTN_CP5 TP5", attn_cp=5, tp=5)),
        (
            "DisaggregationMode.IGPUDECODE TP1",
            Rank("DisaggregationMode.IGPUDECODE TP1", tp=1, extra="DisaggregationMode.IGPUDECODE"),
        ),
    ],
)
def test_02_tag_is_read_whole(recogniser: Recogniser, tag: str, rank: Rank) -> None:
    assert rank == one(recogniser, at("10:00:05", tag, BEGIN)).rank


def test_02_ranks_are_told_apart_by_the_whole_tag(read_text: ReadText) -> None:
    launch = only(read_text(log(at("10:00:05", "DP0 TP0 EP0", BEGIN), at("10:00:05", "DP1 TP0 EP0", BEGIN))))
    assert ["DP0 TP0 EP0", "DP1 TP0 EP0"] == tags(launch)


@pytest.mark.parametrize(
    ("ranks", "kind"),
    [
        (("DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"), "replicas"),
        (("DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"), "attention"),
        (("DP0 TP0", "DP1 TP1"), "attention"),
        (("TP0", "TP1"), None),
    ],
)
def test_03_plain_dp_restarts_tp_at_zero_and_dp_attention_does_not(
    read_text: ReadText, ranks: tuple[str, ...], kind: str | None
) -> None:
    assert kind == only(read_text(log(*(at("10:00:05", tag, BEGIN) for tag in ranks)))).data_parallel


@pytest.mark.parametrize(
    ("line", "tag", "time"),
    [
        (f"[gpu_id=0] {BEGIN}", "gpu_id=0", None),
        (f"[23:17:01 TP7] {BEGIN}", "TP7", "23:17:01"),
        (f"[23:17:01] {BEGIN}", "", "23:17:01"),
    ],
)
def test_04_old_tags_are_read(recogniser: Recogniser, line: str, tag: str, time: str | None) -> None:
    assert_is_load_begin(one(recogniser, line), tag, time)


def test_04_oldest_lines_name_their_rank_in_words(recogniser: Recogniser) -> None:
    assert ["load_weights.begin"] == ids(said(recogniser, "Rank 0: load weight begin."))


def test_05_tag_without_a_clock(recogniser: Recogniser) -> None:
    assert_is_load_begin(one(recogniser, f"[TP0] {BEGIN}"), "TP0", None)


def test_05_neither_tag_nor_clock(recogniser: Recogniser) -> None:
    event = one(recogniser, "Load weight end. quant=fp8, fmt=e4m3, avail mem=12.40 GB, mem usage=65.31 GB.")
    assert ("load_weights.end", "", None) == (event.pattern.id, event.rank.tag, event.time)
    assert ("fp8", gb("65.31")) == (event.string("quant"), value(event, "mem_usage_bytes"))


def test_06_two_digit_ranks_are_ordered_by_number(read_text: ReadText) -> None:
    written = ["TP10", "TP2", "TP15", "TP0", "TP9"]
    launch = only(read_text(log(*(at("10:00:05", tag, BEGIN) for tag in written))))
    assert ["TP0", "TP2", "TP9", "TP10", "TP15"] == tags(launch)


BAR = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:03<00:03,  1.6s/it]"


def test_07_compose_prefix_is_missing_before_bars_of_the_same_launch(read_text: ReadText) -> None:
    launch = only(read_text(log(f"[sglang]     | {at('10:00:05', 'TP0', BEGIN)}", BAR, f"[sglang]     | {FIRED_UP}")))
    assert ["load_weights.begin", "load_weights.progress", "ready.fired_up"] == ids(launch.events)
    assert ("ready", ["TP0"]) == (launch.outcome.kind, tags(launch))


def test_08_container_clock_stands_before_every_line_of_a_traceback(read_text: ReadText) -> None:
    text = (BANNER, FRAME, "    scheduler = Scheduler(", NO_MEMORY)
    launch = only(read_text(log(*(f"2026-01-05T10:09:40.135226169Z {line}" for line in text))))
    assert ("failed", NO_MEMORY) == (launch.outcome.kind, launch.outcome.reason)
    assert ["TP0"] == [rank.tag for rank in launch.outcome.ranks]


def test_08_partial_lines_of_a_container_are_one_line(recogniser: Recogniser) -> None:
    line = at("17:47:33", "TP0", BEGIN)
    outer = "2026-01-05T18:47:33.123456789+01:00 stderr"
    event = one(recogniser, f"{outer} P {line[:40]}", f"{outer} F {line[40:]}")
    assert_is_load_begin(event, "TP0", "2026-01-05 17:47:33", "2026-01-05T18:47:33.123456789+01:00")


def test_09_two_clocks_that_disagree_by_a_zone_are_kept_apart(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(
                f"2026-01-05T18:47:33.1+01:00 stderr F {at('17:47:33', 'TP0', BEGIN)}",
                f"2026-01-05T18:47:43.9+01:00 stderr F {at('17:47:43', 'TP0', END)}",
                "2026-01-05T18:47:44.0+01:00 stderr F INFO:     Application startup complete.",
                f"2026-01-05T18:47:45.0+01:00 stderr F {at('17:47:44', '', 'The server is fired up and ready to roll!')}",
            )
        )
    )
    times = ["2026-01-05 17:47:33", "2026-01-05 17:47:43", None, "2026-01-05 17:47:44"]
    assert times == [event.time for event in launch.events]
    assert "2026-01-05T18:47:44.0+01:00" == launch.events[2].outer_time
    assert "ready" == launch.outcome.kind


def test_10_bracketed_iso_clock_is_no_tag(recogniser: Recogniser) -> None:
    event = one(recogniser, f"[2026-01-05T02:10:00.703Z] [2026-01-05 02:10:00] {BEGIN}")
    assert_is_load_begin(event, "", "2026-01-05 02:10:00", "2026-01-05T02:10:00.703Z")


def test_11_wrapper_logger_is_peeled_also_from_tracebacks(read_text: ReadText) -> None:
    text = (at("10:09:30", "TP0", BEGIN), "", BANNER, FRAME, NO_MEMORY)
    launch = only(read_text(log(*(f"2026-01-05 12:06:13,365 - __main__ - INFO - {line}" for line in text))))
    assert_is_load_begin(launch.events[0], "TP0", "2026-01-05 10:09:30", "2026-01-05 12:06:13,365")
    assert ("failed", NO_MEMORY) == (launch.outcome.kind, launch.outcome.reason)


def test_12_ray_engines_that_interleave_are_launches_of_their_own(read_text: ReadText) -> None:
    one_engine, other = "(SGLangEngine pid=11, ip=10.0.0.2) ", "(SGLangEngine pid=12, ip=10.0.0.3) "
    launches = read_text(
        log(
            one_engine + at("10:00:05", "TP0", BEGIN),
            other + at("10:00:05", "TP0", BEGIN),
            "\x1b[36m(raylet)\x1b[0m spilled objects",
            one_engine + at("10:00:20", "TP0", END),
            "\x1b[36m"
            + other.strip()
            + "\x1b[0m "
            + at("10:00:21", "TP0", END)
            + "\x1b[32m [repeated 7x across cluster]\x1b[0m",
            one_engine + FIRED_UP,
        )
    )
    assert ["ready", "cut"] == [launch.outcome.kind for launch in launches]  # the first lines are missing
    assert [1, 2] == [launch.number for launch in launches]
    assert [[1, 4, 6], [2, 5]] == [[event.pos.line for event in launch.events] for launch in launches]
    assert [["TP0"], ["TP0"]] == [tags(launch) for launch in launches]


def test_13_logging_configuration_with_the_clock_outside(recogniser: Recogniser) -> None:
    event = one(recogniser, f"2026-01-05 21:19:34 INFO 125765 [ DP10 TP10 EP10 model_runner.py:2655] {BEGIN}")
    assert_is_load_begin(event, "DP10 TP10 EP10", "2026-01-05 21:19:34")


def test_14_root_logger(recogniser: Recogniser) -> None:
    event = one(
        recogniser, "INFO:sglang.srt.mem_cache.memory_pool:KV Cache is allocated. #tokens: 159269, KV size: 10.42 GB"
    )
    assert Quantity(159_269, 1) == event.quantity("tokens")


def test_14_level_and_file(recogniser: Recogniser) -> None:
    event = one(recogniser, f"[2026-01-05 20:29:05] WARNING server_args.py:1183: {BEGIN}")
    assert_is_load_begin(event, "", "2026-01-05 20:29:05")


def test_15_indented_lines_with_blank_lines_between(read_text: ReadText) -> None:
    text = "\n\n".join(f"    {line}" for line in (at("10:00:05", "TP0", BEGIN), at("10:00:20", "TP0", END), FIRED_UP))
    launch = only(read_text(text + "\n"))
    assert [1, 3, 5] == [event.pos.line for event in launch.events]
    assert ("ready", ["TP0"]) == (launch.outcome.kind, tags(launch))


@pytest.mark.parametrize(
    ("prefix", "origin", "outer_time"),
    [
        ("Jan  5 10:00:05 node7 sglang[4711]: ", "node7 sglang[4711]", "Jan  5 10:00:05"),
        ("0: ", "0", None),
        ("sglang-7d9f8b6c5-x2x4z server ", "sglang-7d9f8b6c5-x2x4z server", None),
        ("[pod/sglang-0/server] ", "sglang-0/server", None),
        ('\ufeff"', "", None),
        ("> ", "", None),
    ],
)
def test_16_other_programs_prefixes(recogniser: Recogniser, prefix: str, origin: str, outer_time: str | None) -> None:
    event = one(recogniser, prefix + at("10:00:05", "TP3", BEGIN))
    assert_is_load_begin(event, "TP3", "2026-01-05 10:00:05", outer_time)
    assert origin == event.origin


def test_16_dynamo_loses_the_rank_tag(recogniser: Recogniser) -> None:
    event = one(recogniser, f"2026-01-05T09:50:25.135226Z  INFO model_runner.load_model: {BEGIN}")
    assert_is_load_begin(event, "", None, "2026-01-05T09:50:25.135226Z")


# ---- B. progress bars -----------------------------------------------------------------------------------------------


def test_17_event_glued_to_the_end_of_a_bar(recogniser: Recogniser) -> None:
    bars = (
        "Loading safetensors checkpoint shards:  94% Completed | 15/16 [00:04<00:00,  3.89it/s]",
        "  0%|          | 0/13 [00:00<?, ?it/s]",
        "2026-01-05 10:00:04,123 - INFO - flashinfer.jit: Loading JIT ops: norm",
    )
    for bar in bars:
        event = said(recogniser, bar + at("10:00:05", "DP1 TP1 EP1", BEGIN))[-1]
        assert (1, "DP1 TP1 EP1", "2026-01-05 10:00:05") == (event.pos.line, event.rank.tag, event.time)
        assert ("load_weights.begin", gb("94.04")) == (event.pattern.id, value(event, "avail_mem_bytes"))


def test_18_states_of_a_bar_in_one_line_are_all_read(recogniser: Recogniser) -> None:
    bar = "Loading safetensors checkpoint shards: {}% Completed | {}/4 [00:0{}<00:0{},  1.6s/it]"
    states = [bar.format(25 * done, done, done, 4 - done) for done in range(5)]
    events = said(recogniser, "\r".join(states))
    assert ([1] * 5, [0, 1, 2, 3, 4]) == ([e.pos.line for e in events], [value(e, "done") for e in events])


@pytest.mark.parametrize("pace", ["1.16it/s", "1.16s/it", "?it/s"])
@pytest.mark.parametrize(
    ("bar", "event"),
    [
        ("Loading safetensors checkpoint shards:  25% Completed | 1/4", "load_weights.progress"),
        ("Loading pt checkpoint shards:  25% Completed | 1/4", "load_weights.progress"),
        ("Multi-thread loading shards:  25% Completed | 1/4", "load_weights.progress"),
        ("Capturing batches (bs=1 avail_mem=11.18 GB):  25%|██▌       | 1/4", "cuda_graph.progress"),
        ("Capturing batches (avail_mem=9.72 GB):  25%|██▌       | 1/4", "cuda_graph.progress"),
        (" 25%|██▌       | 1/4", "cuda_graph.progress_bare"),
        ("DeepGEMM warmup:  25%|██▌       | 1/4", "warmup.deep_gemm_progress"),
    ],
)
def test_19_bars_are_known_by_all_their_names_and_paces(
    recogniser: Recogniser, bar: str, event: str, pace: str
) -> None:
    found = one(recogniser, f"{bar} [00:01<00:02,  {pace}]")
    assert (event, 1, 4) == (found.pattern.id, value(found, "done"), value(found, "total"))


def test_20_bar_that_is_printed_twice_or_starts_again_opens_no_launch(read_text: ReadText) -> None:
    bar = "Loading safetensors checkpoint shards: {}% Completed | {}/2 [00:0{}<00:00,  1.6s/it]"
    states = [bar.format(50 * done, done, done) for done in (0, 1, 2, 2, 0, 1, 2, 2)]
    launch = only(read_text(log(*load_lines()[:1], *states, *load_lines()[1:])))
    assert [0, 1, 2, 2, 0, 1, 2, 2] == [
        value(e, "done") for e in launch.events if e.pattern.id == "load_weights.progress"
    ]


def test_21_bar_has_no_rank_and_its_memory_is_no_phase(read_text: ReadText) -> None:
    bar = "Capturing batches (bs=8 avail_mem=10.62 GB):  50%|█████     | 2/4 [00:01<00:01,  1.18it/s]"
    launch = only(
        read_text(log(*(at("10:00:23", tag, "Load weight begin. avail mem=11.26 GB") for tag in ("TP0", "TP1")), bar))
    )
    event = launch.events[-1]
    assert (Rank(), Quantity(gb("10.62"), 10_737_419)) == (event.rank, event.quantity("avail_mem_bytes"))
    assert ["TP0", "TP1"] == tags(launch)
    assert [] == [span for span in launch.spans if span.phase == "cuda_graph" and (span.begin or span.end)]


# ---- D. meaning -----------------------------------------------------------------------------------------------------

DRAFT = "LlamaForCausalLMEagle"


def workers(launch: Launch, event: str) -> list[str | None]:
    return [worker for item, worker in zip(launch.events, launch.workers, strict=True) if item.pattern.id == event]


def test_30_draft_worker_repeats_every_phase_under_the_same_tag(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(
                *rank_lines(),
                *load_lines("9.85", "11.71", "-1.86", minute="10:01", model_type="DeepseekV3ForCausalLMNextN"),
                *pool_lines("0.17", "11.50", minute="10:01"),
                *graph_lines("11.50", "11.20", "0.30", minute="10:01", kind="draft"),
                "[2026-01-05 10:02:00] The server is fired up and ready to roll!",
            )
        )
    )
    both = ["target", "draft"]
    for event in ("load_weights.begin", "load_weights.end", "kv_cache.allocated", "memory_pool.end", "cuda_graph.end"):
        assert both == workers(launch, event), event
    assert [159_269, 159_269] == [value(e, "tokens") for e in launch.events if e.pattern.id == "kv_cache.allocated"]
    assert [gb("72.33"), gb("-1.86")] == [
        value(e, "mem_usage_bytes") for e in launch.events if e.pattern.id == "load_weights.end"
    ]


def test_30_draft_that_loads_before_any_pool(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(*init_lines(), *load_lines(), *load_lines("21.71", "21.51", "0.20", minute="10:01", model_type=DRAFT),
                *pool_lines(minute="10:02"), *pool_lines("0.17", "11.00", minute="10:03"))
        )
    )  # fmt: skip
    for event in ("load_weights.begin", "load_weights.end", "kv_cache.allocated", "memory_pool.end"):
        assert ["target", "draft"] == workers(launch, event), event


def test_31_sliding_window_and_full_pool_are_no_draft(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(
                *load_lines(),
                at(
                    "10:00:21", "TP0", "Use sliding window memory pool. full_layer_tokens=81920, swa_layer_tokens=65536"
                ),
                at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 65536, K size: 1.25 GB, V size: 1.25 GB"),
                at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 81920, K size: 1.56 GB, V size: 1.56 GB"),
                at("10:00:22", "TP0", "Memory pool end. avail mem=15.93 GB"),
            )
        )
    )
    assert ["target", "target"] == workers(launch, "kv_cache.allocated")
    assert [65_536, 81_920] == [value(e, "tokens") for e in launch.events if e.pattern.id == "kv_cache.allocated"]


def test_32_negative_numbers_are_data(recogniser: Recogniser) -> None:
    text = (
        "Load weight end. type=Eagle, dtype=torch.bfloat16, avail mem=9.34 GB, mem usage=-1.86 GB.",
        "max_total_tokens=1000000 is larger than the profiled value -561981. Use the profiled value instead.",
        "Use sliding window memory pool. full_layer_tokens=-40934, swa_layer_tokens=-32747",
    )
    usage, limit, pool = said(recogniser, *text)
    assert gb("-1.86") == value(usage, "mem_usage_bytes")
    assert -561_981 in [item.value for item in limit.values.values() if isinstance(item, Quantity)]
    assert (-40_934, -32_747) == (value(pool, "full_layer_tokens"), value(pool, "swa_layer_tokens"))


def test_33_debug_f_string_is_read(recogniser: Recogniser) -> None:
    text = NO_MEMORY.replace("=0.55", "=0.2")
    assert Quantity(0.2, 0.1) == one(recogniser, text).quantity("mem_fraction_static")


DIED = (
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: {}). If exit code is -9 (SIGKILL), a common cause is "
    "the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
)


@pytest.mark.parametrize("code", [1, -9])
def test_34_boilerplate_about_the_oom_killer_is_not_the_cause(read_text: ReadText, code: int) -> None:
    launch = only(read_text(log(BANNER, FRAME, NO_MEMORY, "", TRACEBACK, FRAME, DIED.format(code))))
    assert (NO_MEMORY, "failure.not_enough_memory") == (launch.outcome.reason, launch.outcome.event)


def test_34_killed_after_sigquit_is_not_the_cause(read_text: ReadText) -> None:
    launch = only(read_text(log(BANNER, FRAME, NO_MEMORY, SIGQUIT, "Killed")))
    assert (NO_MEMORY, "failure.not_enough_memory") == (launch.outcome.reason, launch.outcome.event)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (OOM, {"asked_bytes": 2.54 * GIB, "total_bytes": 95.58 * GIB, "free_bytes": 12.5 * MIB, "device": 0}),
        (
            OOM.replace("torch.", "torch.cuda."),
            {"free_bytes": 12.5 * MIB, "other_process_bytes": 93.13 * GIB, "other_pid": 1188},
        ),
        (
            OOM.replace("torch.OutOfMemoryError", "Exception"),
            {"allocated_bytes": 92.53 * GIB, "unallocated_bytes": 12.34 * MIB},
        ),
        (OOM.replace("CUDA", "HIP"), {"asked_bytes": 2.54 * GIB, "total_bytes": 95.58 * GIB}),
        (
            "RuntimeError: NPU out of memory. Tried to allocate 3.84 GiB (NPU 0; 61.27 GiB total capacity; 54.30 GiB already allocated; "
            "54.30 GiB current active; 2.33 GiB free; 58.44 GiB reserved in total by PyTorch) If reserved memory is >> allocated",
            {
                "total_bytes": 61.27 * GIB,
                "allocated_bytes": 54.3 * GIB,
                "free_bytes": 2.33 * GIB,
                "reserved_bytes": 58.44 * GIB,
            },
        ),
        (
            "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 47.98 GiB. Of the "
            "allocated memory 40.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated. Please use `x`",
            {"asked_bytes": 1.5 * GIB, "total_bytes": 47.98 * GIB, "free_bytes": None, "unallocated_bytes": 512 * MIB},
        ),
    ],
)
def test_35_out_of_memory_mixes_units_and_devices(
    recogniser: Recogniser, text: str, values: dict[str, float | None]
) -> None:
    event = said(recogniser, BANNER, FRAME, text)[-1]
    assert ("failure.out_of_memory", "TP0") == (event.pattern.id, event.rank.tag)
    rounded = {name: number if number is None else round(number) for name, number in values.items()}
    assert rounded == {name: value(event, name) for name in values}


def test_36_gb_of_sglang_is_gib(recogniser: Recogniser) -> None:
    event = one(recogniser, "Memory pool end. avail mem=2.00 GB")
    assert 2 * 2**30 == value(event, "avail_mem_bytes")


@pytest.mark.parametrize(
    "line",
    [
        "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0",
        "I0325 09:32:23.100996  7990 transfer_engine.cpp:76] Load weight manager",
        "host:270:270 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>",
        "[rank0]:[W928 14:06:22.123456 ProcessGroupNCCL.cpp:4115] [PG ID 0 Rank 0] using GPU 0",
        "INFO 03-07 12:29:02 __init__.py:190] Automatically detected platform cuda.",
        "# MTP:",
    ],
)
def test_37_foreign_lines_are_no_events_and_no_ranks(read_text: ReadText, line: str) -> None:
    launch = only(read_text(log(at("10:00:05", "TP0", BEGIN), line, at("10:00:20", "TP0", END))))
    assert [1, 3] == [event.pos.line for event in launch.events]
    assert (["TP0"], ()) == (tags(launch), launch.drift)


def test_37_shell_trace_holds_the_typed_flags(read_text: ReadText) -> None:
    launch = only(
        read_text(log("+ python3 -m sglang.launch_server --model-path m --tp 8", at("10:00:05", "TP0", BEGIN)))
    )
    assert launch.command is not None
    assert {"model_path": "m", "tp_size": 8} == launch.command.flags


@pytest.mark.parametrize(
    "text", ["Ignore import error when loading sglang.srt.models.x: No module named 'y'", "Error querying CC state: x"]
)
def test_39_benign_errors_are_no_failure(read_text: ReadText, text: str) -> None:
    launch = only(read_text(log(at("10:00:01", "TP0", text), at("10:00:05", "TP0", BEGIN), FIRED_UP)))
    assert ("ready", None) == (launch.outcome.kind, launch.ended)


# ---- E. paste damage ------------------------------------------------------------------------------------------------


NUMBERS = (
    at("10:00:05", "TP0", BEGIN),
    at("10:00:20", "TP0", END),
    at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 159269, K size: 5.21 GB, V size: 5.21 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=11.26 GB"),
    at("10:00:50", "TP0", "Capture cuda graph end. Time elapsed: 26.73 s. mem usage=1.41 GB. avail mem=9.85 GB."),
    at("10:00:23", "TP0", "Capture cuda graph bs [1, 2, 4, 8, 16]"),
)


@pytest.mark.parametrize("line", NUMBERS)
def test_40_number_at_the_cut_end_of_a_log_is_not_used(recogniser: Recogniser, line: str) -> None:
    """What comes before the cut may fit an older, shorter wording; its numbers are those of the whole line."""
    whole = one(recogniser, line)
    for end in range(1, len(line)):
        for item in recogniser.read("run.log", [line[:end].encode()], ReadState()):
            if isinstance(item, Event):
                assert whole.pattern.id == item.pattern.id
                assert item.values.items() <= whole.values.items(), line[:end]
            else:
                assert item.cut


@given(st.sampled_from(LOGS), st.floats(0, 1))
@settings(max_examples=60)
def test_40_any_log_cut_anywhere_is_read_and_every_line_counted(read_text: ReadText, path: Path, part: float) -> None:
    data = path.read_bytes()
    data = data[: int(len(data) * part)]
    try:
        launches = read_text(data)
    except NoLaunchError:
        return
    tallies = [launch.tally for launch in launches]
    assert [tally.lines for tally in tallies] == [tally.events + tally.drift + tally.rest for tally in tallies]
    assert data.count(b"\n") + (not data.endswith(b"\n")) == sum(tally.lines for tally in tallies)
    assert [] == [item for launch in launches for item in launch.drift]


def test_40_cut_line_says_nothing_of_the_release(read_text: ReadText) -> None:
    end = load_lines()[1]
    cut = end[: end.index(", mem usage")].replace("elapsed=13.50 s, ", "")
    whole = only(read_text(log(*init_lines())))
    assert whole.releases == only(read_text(log(*init_lines()) + cut)).releases


def test_40_arguments_at_the_cut_end_of_a_log_keep_what_is_whole(read_text: ReadText) -> None:
    line = "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, chunked_prefill_size=81"
    launch = only(read_text(line))
    assert ({"model_path": "m", "tp_size": 2}, False) == (launch.args.values, launch.args.complete)
    assert "cut" == launch.outcome.kind


def test_40_command_at_the_cut_end_of_a_log_keeps_what_is_whole(read_text: ReadText) -> None:
    launch = only(read_text("+ python3 -m sglang.launch_server --model-path m --tp 1"))
    assert launch.command is not None
    assert {"model_path": "m"} == launch.command.flags


def test_40_bar_at_the_cut_end_of_a_log_gives_no_number(read_text: ReadText) -> None:
    bar = "Loading safetensors checkpoint shards:  38% Completed | 3/8 [00"
    launch = only(read_text(log(at("10:00:05", "TP0", BEGIN)) + bar))
    assert (["load_weights.begin"], "cut") == (ids(launch.events), launch.outcome.kind)


def test_41_pager_cut_of_the_arguments_keeps_what_is_whole(read_text: ReadText) -> None:
    line = "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, quantiza>"
    launch = only(read_text(log(line, *init_lines())))
    assert ({"model_path": "m", "tp_size": 2}, False) == (launch.args.values, launch.args.complete)


@pytest.mark.parametrize("line", NUMBERS)
def test_42_hard_wrap_anywhere_gives_no_wrong_number(recogniser: Recogniser, line: str) -> None:
    """A wrapped line may be an unknown wording; it may not be an event with a number that was never printed."""
    whole = one(recogniser, line).values
    for cut in range(1, len(line)):
        text = f"{line[:cut]}\n{line[cut:]}\n".encode()
        for item in recogniser.read("run.log", [text], ReadState()):
            if isinstance(item, Event):
                assert item.values.items() <= whole.items(), text


SUMMARY = "max_total_num_tokens=159269, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=32768"


def test_40_number_that_ends_a_line_and_touches_the_cut_is_not_used(recogniser: Recogniser) -> None:
    whole = one(recogniser, at("10:00:24", "TP0", SUMMARY))
    assert {159_269, 8192, 16_384, 2048, 32_768} == {
        item.value for item in whole.values.values() if isinstance(item, Quantity)
    }
    for item in recogniser.read("run.log", [at("10:00:24", "TP0", SUMMARY)[:-3].encode()], ReadState()):
        values = item.values.items() if isinstance(item, Event) else ()
        assert [] == [value for value in values if value not in whole.values.items()]


@pytest.mark.xfail(
    strict=True, reason="a line that ends with a bare number does not tell that it is wrapped inside of it"
)
def test_42_hard_wrap_inside_the_number_that_ends_a_line_does_not_use_it(recogniser: Recogniser) -> None:
    wrapped = f"{at('10:00:24', 'TP0', SUMMARY)[:-3]}\n{SUMMARY[-3:]}\n"
    for item in recogniser.read("run.log", [wrapped.encode()], ReadState()):
        assert not isinstance(item, Event) or Quantity(32, 1) not in item.values.values()


def test_42_arguments_wrapped_inside_a_number_do_not_use_it(read_text: ReadText) -> None:
    text = (
        "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, max_prefill_tokens=1638\n4, port=1)\n"
    )
    launch = only(read_text(text + log(*init_lines())))
    assert {"model_path": "m", "tp_size": 2} == launch.args.values


def test_43_several_launches_in_one_file_are_told_apart(read_text: ReadText) -> None:
    launches = read_text(
        log(
            printed_args(tp_size=1, mem_fraction_static=0.55),
            *init_lines(minute="10:00"),
            *load_lines(minute="10:00"),
            BANNER,
            FRAME,
            NO_MEMORY,
            SIGQUIT,
            "",
            at("10:34:00", "", "server_args=ServerArgs(model_path='/models/m', tp_size=1, mem_fraction_static=0.88)"),
            *rank_lines(minute="10:35"),
            at("10:36:00", "", "The server is fired up and ready to roll!"),
        )
    )
    assert [1, 2] == [launch.number for launch in launches]
    assert ["failed", "ready"] == [launch.outcome.kind for launch in launches]
    assert [0.55, 0.88] == [launch.args.values["mem_fraction_static"] for launch in launches]
    assert [(1, 10), (11, 20)] == [(launch.nodes[0].first_line, launch.nodes[0].last_line) for launch in launches]


def test_43_several_launches_without_their_arguments_are_told_apart(read_text: ReadText) -> None:
    launches = read_text(log(*rank_lines(minute="10:00"), *rank_lines(minute="10:25")))
    assert [8, 8] == [len(launch.events) for launch in launches]
    assert [1, 9] == [launch.nodes[0].first_line for launch in launches]


def test_46_long_arguments_with_brackets_quotes_and_json(read_text: ReadText) -> None:
    values = {
        **{f"field_{number}": f"value, {number}" for number in range(200)},
        "model_loader_extra_config": '{"enable": true, "threads": [1, 2]}',
        "cuda_graph_bs": [1, 2],
        "note": "it's (odd",
    }
    line = printed_args(**values)
    assert len(line) > 4000
    launch = only(read_text(log(line, *init_lines())))
    assert {"model_path": "/models/m", **values, "cuda_graph_bs": (1, 2)} == launch.args.values
    assert launch.args.complete


def test_47_events_of_one_second_keep_the_order_of_the_file(read_text: ReadText) -> None:
    text = [at("10:00:20", tag, message) for message in (BEGIN, END) for tag in ("TP1", "TP0", "TP3", "TP2")]
    launch = only(read_text(log(*text)))
    assert list(range(1, 9)) == [event.pos.line for event in launch.events]
    assert {True} == {span.begin is not None and span.end is not None for span in launch.spans}


def test_48_banner_quotes_fences_and_tables_before_the_first_event(read_text: ReadText) -> None:
    text = log(
        "== PyTorch ==",
        "NVIDIA Release 25.01 (build 134983853)",
        "Copyright (c) 2014-2024 Facebook Inc. All rights reserved.",
        "```",
        "| NVIDIA-SMI 570.00  Driver Version: 570.00  CUDA Version: 12.8 |",
        "[0] NVIDIA H100 80GB | 31°C,   0 % |     4 / 81559 MB |",
        "> " + at("10:00:05", "TP0", BEGIN),
        "> " + FIRED_UP,
        "```",
    )
    launch = only(read_text(text))
    assert ([7, 8], "ready") == ([event.pos.line for event in launch.events], launch.outcome.kind)
    assert (9, 2, 0, 7) == (launch.tally.lines, launch.tally.events, launch.tally.drift, launch.tally.rest)


# ---- F. seen when SGLang itself was run -----------------------------------------------------------------------------


def test_49_silent_death_is_told_only_by_the_silence(read_text: ReadText) -> None:
    text = log(printed_args(tp_size=1), *init_lines())
    assert "running" == only(read_text(text)).outcome.kind
    assert "hung" == only(read_text(text, silence_s=600, age_s=3600)).outcome.kind
    assert "running" == only(read_text(text, silence_s=7200, age_s=3600)).outcome.kind


def test_49_crash_of_a_subprocess_after_ready_ends_the_launch(read_text: ReadText) -> None:
    crash = "[2026-01-05 10:09:00] Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup..."
    launch = only(read_text(log(*rank_lines(), FIRED_UP, crash)))
    assert launch.ended is not None
    assert ("ready", "failed") == (launch.outcome.kind, launch.ended.kind)


def test_50_port_in_use_is_a_failure_though_the_process_lives_on(read_text: ReadText) -> None:
    bind = "error while attempting to bind on address ('127.0.0.1', 30555): address already in use"
    error = f"[2026-01-05 10:02:00] ERROR:    [Errno 98] {bind}"
    launch = only(
        read_text(
            log(
                printed_args(),
                *rank_lines(),
                error,
                "[2026-01-05 10:02:00] INFO:     Waiting for application shutdown.",
            )
        )
    )
    assert ("failed", "failure.port_in_use") == (launch.outcome.kind, launch.outcome.event)


def test_51_imbalance_is_told_by_the_rich_ranks_with_the_poor_one_in_numbers(read_text: ReadText) -> None:
    text = (
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        "min_per_gpu_memory=49.977149963378906, local_gpu_memory=94.97714843787253, local_gpu_memory * 0.9=85.47943359408528"
    )
    rich = [line for tag in ("TP0", "TP2") for line in (BANNER.replace("TP0", tag), FRAME, text)]
    launch = only(read_text(log(*(line for tag in ("TP0", "TP1", "TP2") for line in init_lines(tag)[:1]), *rich)))
    assert ("failed", "failure.memory_unbalanced") == (launch.outcome.kind, launch.outcome.event)
    assert ["TP0", "TP2"] == [rank.tag for rank in launch.outcome.ranks]


def test_52_out_of_memory_inside_a_failed_capture_is_the_cause(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(
                *rank_lines()[:-1],
                BANNER,
                FRAME,
                OOM,
                "",
                "During handling of the above exception, another exception occurred:",
                "",
                TRACEBACK,
                FRAME,
                "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.54 GiB.",
                "Possible solutions:",
            )
        )
    )
    assert ("failed", "failure.out_of_memory", OOM) == (
        launch.outcome.kind,
        launch.outcome.event,
        launch.outcome.reason,
    )
    assert ["TP0"] == [rank.tag for rank in launch.outcome.ranks]


def test_52_end_of_file_in_the_parent_is_not_the_cause(read_text: ReadText) -> None:
    launch = only(read_text(log(BANNER.replace("TP0", "DP1 TP0"), FRAME, NO_MEMORY, TRACEBACK, FRAME, "EOFError")))
    assert (NO_MEMORY, ["DP1 TP0"]) == (launch.outcome.reason, [rank.tag for rank in launch.outcome.ranks])


def test_52_end_of_file_alone_is_all_that_is_known(read_text: ReadText) -> None:
    launch = only(read_text(log(*init_lines(), TRACEBACK, FRAME, "EOFError")))
    assert ("failed", "failure.pipe_closed") == (launch.outcome.kind, launch.outcome.event)


def test_53_warnings_only_log_of_a_launch_is_not_failed(read_text: ReadText) -> None:
    text = log(
        printed_args(tp_size=1),
        at("10:00:01", "TP0", "Ignore import error when loading sglang.srt.models.x: No module named 'y'"),
    )
    assert "running" == only(read_text(text)).outcome.kind


def test_54_level_and_file_inside_and_levels_of_uvicorn(read_text: ReadText) -> None:
    launch = only(
        read_text(
            log(
                f"[2026-01-05 10:00:00] INFO server_args.py:1934: {printed_args(tp_size=1).partition('] ')[2]}",
                at("10:00:05", "TP0", BEGIN),
                "[2026-01-05 10:01:00] INFO:     Started server process [4711]",
                "[2026-01-05 10:01:00] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
                FIRED_UP,
            )
        )
    )
    assert {"model_path": "/models/m", "tp_size": 1} == launch.args.values
    assert ["ready.server_process", "ready.listening", "ready.fired_up"] == ids(launch.events)[2:]
    assert (["TP0"], ()) == (tags(launch), launch.drift)


def test_54_usage_of_37_kb_is_a_refused_command_line(read_text: ReadText) -> None:
    usage = [
        f"                [--flag-{number} FLAG_{number}] [--mem-fraction-static MEM_FRACTION_STATIC]"
        for number in range(500)
    ]
    error = "launch_server.py: error: unrecognized arguments: --no-such-flag 3"
    launch = only(read_text(log("usage: launch_server.py [-h]", *usage, error)))
    assert ("failed", "failure.bad_argument", error) == (
        launch.outcome.kind,
        launch.outcome.event,
        launch.outcome.reason,
    )
    assert () == launch.drift


def test_55_pseudo_terminal_gives_crlf_and_colours(recogniser: Recogniser) -> None:
    text = (
        f"\x1b[32mINFO\x1b[0m:     Started server process [\x1b[36m4711\x1b[0m]\r\n{at('10:00:05', 'TP0', BEGIN)}\r\n"
    )
    events = said(recogniser, text, end="")
    assert ["ready.server_process", "load_weights.begin"] == ids(events)
    assert_is_load_begin(events[1], "TP0", "2026-01-05 10:00:05")


@pytest.mark.parametrize(
    "lines",
    [
        [
            "[rank0]:W1129 16:32:01.123000 4711 torch/_inductor/utils.py:1250] Not enough SMs to use max_autotune_gemm mode"
        ],
        [
            "/opt/venv/lib/python3.11/site-packages/x.py:83: FutureWarning: Load weight loaders are old",
            "  warnings.warn(",
        ],
        [
            'Thread 4711 (idle): "MainThread"',
            "    wait (threading.py:324)",
            "    run (sglang/srt/managers/scheduler.py:100)",
        ],
    ],
)
def test_55_unprefixed_lines_are_no_events(read_text: ReadText, lines: list[str]) -> None:
    launch = only(read_text(log(at("10:00:05", "TP0", BEGIN), *lines, at("10:00:20", "TP0", END), FIRED_UP)))
    assert ["load_weights.begin", "load_weights.end", "ready.fired_up"] == ids(launch.events)
    assert ((), "ready") == (launch.drift, launch.outcome.kind)


def test_56_init_parallel_has_no_memory(recogniser: Recogniser) -> None:
    begin, end = said(
        recogniser,
        at("10:00:01", "TP0", "Init parallel begin."),
        at("10:00:05", "TP0", "Init parallel ends. elapsed=4.02 s"),
    )
    assert ["init_torch_distributed.begin", "init_torch_distributed.end"] == ids([begin, end])
    assert (Quantity(4.02, 0.01), None) == (end.quantity("elapsed_s"), end.quantity("mem_usage_bytes"))


def test_57_rank_that_says_only_one_line_is_a_rank(read_text: ReadText) -> None:
    launch = only(read_text(log(*rank_lines("TP0"), *pool_lines(tag="TP1")[:1], FIRED_UP)))
    assert (["TP0", "TP1"], "ready") == (tags(launch), launch.outcome.kind)
    assert [] == [span for span in launch.spans if span.rank.tag == "TP1" and (span.begin or span.end)]


def test_58_capacity_of_the_host_is_not_that_of_a_device(recogniser: Recogniser) -> None:
    text = "max_total_num_tokens=2048, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=4, context_len=2048, "
    on_host, on_device = said(recogniser, text + "available_cpu_mem=40.10 GB", text + "available_gpu_mem=9.85 GB")
    assert on_host.values != on_device.values
    assert [gb("40.10")] == [
        v.value for n, v in on_host.values.items() if isinstance(v, Quantity) and n.endswith("_bytes")
    ]
    assert gb("9.85") in [v.value for v in on_device.values.values() if isinstance(v, Quantity)]
