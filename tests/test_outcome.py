"""How a launch went, and which lines say so."""

from __future__ import annotations

import pytest

from conftest import (
    BANNER,
    FIRED_UP,
    FRAME,
    NO_MEMORY,
    SIGQUIT,
    ReadFiles,
    ReadText,
    at,
    gb,
    init_lines,
    load_lines,
    log,
    pool_lines,
    printed_args,
    rank_lines,
)
from logscope.model import Launch, Outcome
from logscope.packs import Packs
from logscope.words import headline

TRACEBACK = "Traceback (most recent call last):"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.54 GiB. GPU 0 has a total capacity of 95.58 GiB "
    "of which 2.44 GiB is free. Process 4711 has 93.13 GiB memory in use. Of the allocated memory 92.53 GiB is allocated by "
    "PyTorch, and 12.34 MiB is reserved by PyTorch but unallocated."
)
PORT_IN_USE = at(
    "10:10:00", "",
    "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
)  # fmt: skip
SIGTERM = at("10:08:00", "", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
STARTED = [printed_args(), *init_lines(), *load_lines()]


def told(outcome: Outcome) -> tuple[str, str | None, list[int]]:
    """Return (kind, event, lines)."""
    return outcome.kind, outcome.event, [pos.line for pos in outcome.evidence]


def ending(launch: Launch) -> tuple[str, str | None, list[int]] | None:
    ended = launch.ended
    return None if ended is None else (ended.kind, ended.event, [pos.line for pos in ended.evidence])


# -- ready ---------------------------------------------------------------------------------------------------------------------


def test_the_ready_line_makes_a_launch_ready(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP))
    assert ("ready", "ready.fired_up", [10]) == told(launch.outcome)
    assert ending(launch) is None


def test_a_follower_node_is_ready_with_its_health_server(read_text: ReadText) -> None:
    health = at("10:10:00", "", "Dummy health check server started in background thread at 0.0.0.0:30000")
    (launch,) = read_text(log(printed_args(nnodes=2, node_rank=1), *rank_lines(), health))
    assert ("ready", "ready.follower", [10]) == told(launch.outcome)


def test_a_log_cut_after_ready_is_ready(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP) + "[2026-01-05 10:10:")
    assert "ready" == launch.outcome.kind


def test_a_stop_after_ready_is_an_ending(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP, SIGTERM))
    assert "ready" == launch.outcome.kind
    assert ("stopped", "ready.stopping", [11]) == ending(launch)


def test_a_failure_after_ready_is_an_ending_with_its_cause(read_text: ReadText) -> None:
    crash = [BANNER, FRAME, OUT_OF_MEMORY, SIGQUIT]
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP, *crash))
    assert "ready" == launch.outcome.kind
    assert ("failed", "failure.out_of_memory", [13]) == ending(launch)


def test_an_exception_before_the_banner_is_the_cause_of_an_ending(read_text: ReadText) -> None:
    crash = [TRACEBACK, FRAME, OUT_OF_MEMORY, SIGQUIT]
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP, *crash))
    assert ("failed", "failure.out_of_memory", [13]) == ending(launch)


def test_a_stop_decides_over_what_breaks_after_it(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP, SIGTERM, SIGQUIT))
    assert ("stopped", "ready.stopping", [11]) == ending(launch)


# -- failed --------------------------------------------------------------------------------------------------------------------


def test_the_cause_is_told_not_the_banner_nor_the_consequence(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED, BANNER, FRAME, NO_MEMORY, SIGQUIT))
    assert ("failed", "failure.not_enough_memory", [8]) == told(launch.outcome)
    assert launch.outcome.reason is not None
    assert launch.outcome.reason.startswith("RuntimeError: Not enough memory.")
    assert ["TP0"] == [rank.tag for rank in launch.outcome.ranks]


def test_the_banner_stands_in_where_no_cause_is_told(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED, BANNER, SIGQUIT))
    assert ("failed", "failure.scheduler_exception", [6]) == told(launch.outcome)


def test_the_consequence_stands_in_where_nothing_else_is_told(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED, SIGQUIT))
    assert ("failed", "failure.sigquit", [6]) == told(launch.outcome)


def test_the_first_of_two_causes_is_told(read_text: ReadText) -> None:
    later = [at("10:09:45", "TP1", f"Scheduler hit an exception: {TRACEBACK}"), FRAME, OUT_OF_MEMORY]
    (launch,) = read_text(log(*STARTED, BANNER, FRAME, NO_MEMORY, *later))
    assert ("failed", "failure.not_enough_memory", [8]) == told(launch.outcome)


def test_all_ranks_with_the_same_cause_are_told(read_text: ReadText) -> None:
    second = BANNER.replace("TP0", "TP1")
    (launch,) = read_text(log(*STARTED, BANNER, FRAME, NO_MEMORY, second, FRAME, NO_MEMORY, SIGQUIT))
    assert ("failed", "failure.not_enough_memory", [8, 11]) == told(launch.outcome)
    assert ["TP0", "TP1"] == [rank.tag for rank in launch.outcome.ranks]


def test_over_several_files_the_clock_tells_what_came_first(read_files: ReadFiles) -> None:
    def node(rank: int, clock: str, reason: str) -> str:
        args = printed_args(nnodes=2, node_rank=rank, dist_init_addr="10.0.0.1:5000")
        banner = at(clock, f"TP{rank}", f"Scheduler hit an exception: {TRACEBACK}")
        return log(args, *init_lines(f"TP{rank}"), banner, FRAME, reason)

    (launch,) = read_files(
        {"a.log": node(0, "10:09:50", "RuntimeError: no such kernel"), "b.log": node(1, "10:09:40", NO_MEMORY)}
    )
    assert "failure.not_enough_memory" == launch.outcome.event
    assert ["node 1 TP1"] == [rank.label for rank in launch.outcome.ranks]


def test_a_traceback_that_the_launch_survives_is_no_failure(read_text: ReadText) -> None:
    benign = [at("10:00:05", "TP0", TRACEBACK), FRAME, "KeyError: 'no such key'"]
    survived = [printed_args(), *init_lines(), *benign, *load_lines(), *pool_lines()]
    (launch,) = read_text(log(*survived))
    assert ("running", None, [10]) == told(launch.outcome)
    (launch,) = read_text(log(*survived, FIRED_UP))
    assert "ready" == launch.outcome.kind


def test_a_traceback_that_ends_the_log_is_a_failure(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED, TRACEBACK, FRAME, "KeyError: 'no such key'"))
    assert ("failed", "failure.exception", [8]) == told(launch.outcome)


def test_a_port_in_use_is_a_failure_though_the_process_lives_on(read_text: ReadText) -> None:
    (launch,) = read_text(log(printed_args(), *rank_lines(), PORT_IN_USE))
    assert ("failed", "failure.port_in_use", [10]) == told(launch.outcome)


def test_a_stop_before_ready_is_a_failure(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED, SIGTERM))
    assert ("failed", "ready.stopping", [6]) == told(launch.outcome)
    assert launch.outcome.reason is not None
    assert launch.outcome.reason.startswith("stopped before it was ready: SIGTERM received.")


# -- hung, running, cut --------------------------------------------------------------------------------------------------------


def test_silence_is_no_hang_unless_asked_for(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED), age_s=3600)
    assert ("running", None, [5]) == told(launch.outcome)


def test_a_file_that_is_silent_for_long_has_hung(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED), silence_s=600, age_s=3600)
    assert ("hung", None, [5]) == told(launch.outcome)


def test_a_file_that_was_just_written_runs(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED), silence_s=600)
    assert "running" == launch.outcome.kind


def test_a_launch_that_is_ready_or_has_failed_has_not_hung(read_text: ReadText) -> None:
    ready = read_text(log(*STARTED, FIRED_UP), silence_s=600, age_s=3600)
    failed = read_text(log(*STARTED, SIGQUIT), silence_s=600, age_s=3600)
    assert ["ready", "failed"] == [launch.outcome.kind for launch in [*ready, *failed]]


def test_noise_long_after_the_last_event_shows_a_hang(read_text: ReadText) -> None:
    noise = [
        at("10:00:21", "", "INFO:     127.0.0.1:40312 - polled"),
        at("10:30:00", "", "INFO:     127.0.0.1:40312 - polled"),
    ]
    (launch,) = read_text(log(*STARTED, *noise), silence_s=600)
    assert ("hung", None, [7]) == told(launch.outcome)
    (launch,) = read_text(log(*STARTED, noise[0]), silence_s=600)
    assert "running" == launch.outcome.kind


def test_noise_on_the_outer_clock_shows_a_hang(read_text: ReadText) -> None:
    lines = [f"2026-01-05T11:00:{second:02}.000000000Z {line}" for second, line in enumerate(STARTED)]
    noise = "2026-01-05T11:30:00.000000000Z still alive"
    (launch,) = read_text(log(*lines, noise), silence_s=600)
    assert ("hung", None, [6]) == told(launch.outcome)


def test_a_log_that_ends_inside_a_line_is_cut(read_text: ReadText) -> None:
    (launch,) = read_text(log(*STARTED) + "[2026-01-05 10:00:21 TP0] KV Cache is all")
    assert ("cut", None, [6]) == told(launch.outcome)


def test_a_log_that_begins_in_the_middle_is_cut(read_text: ReadText) -> None:
    (launch,) = read_text(log(*load_lines(), *pool_lines()))
    assert ("cut", None, [4]) == told(launch.outcome)


def test_a_log_from_the_first_phase_on_runs(read_text: ReadText) -> None:
    (launch,) = read_text(log(*init_lines()))
    assert ("running", None, [2]) == told(launch.outcome)


@pytest.mark.parametrize("end", ["avail mem=11", "avail mem=11.", "avail mem=11.2", "avail mem=11.26"])
def test_a_number_cut_at_the_end_of_the_file_is_not_used(read_text: ReadText, end: str) -> None:
    (launch,) = read_text(log(*STARTED, pool_lines()[0]) + at("10:00:22", "TP0", f"Memory pool end. {end}"))
    assert "cut" == launch.outcome.kind
    free = [amount.value for event in launch.events if (amount := event.quantity("avail_mem_bytes"))]
    assert [gb("94.04"), gb("21.71")] == free
    assert () == launch.drift, "a cut line is no unknown wording"


@pytest.mark.parametrize("end", ["#tokens: 1592", "#tokens: 159269, KV size: 10", "#tokens: 159269, KV size: 10.42"])
def test_tokens_and_sizes_cut_at_the_end_of_the_file_are_not_used(read_text: ReadText, end: str) -> None:
    (launch,) = read_text(log(*STARTED) + at("10:00:22", "TP0", f"KV Cache is allocated. {end}"))
    assert "cut" == launch.outcome.kind
    assert [] == [event.values for event in launch.events if event.pattern.phase == "kv_cache"]


def test_the_end_of_the_processes_is_no_progress_after_an_exception(read_text: ReadText) -> None:
    (launch,) = read_text(
        log(
            printed_args(),
            at("10:00:01", "", "Init parallel begin."),
            at("10:00:09", "", "Scheduler hit an exception: Traceback (most recent call last):"),
            FRAME,
            "KeyError: 'model.layers.0.weight'",
            at("10:00:10", "", "kill_process_tree called: parent_pid=1, include_parent=True, pid=1"),
        )
    )
    assert ("failed", "KeyError: 'model.layers.0.weight'") == (launch.outcome.kind, launch.outcome.reason)


def test_a_server_that_served_and_was_stopped_has_not_failed(read_text: ReadText) -> None:
    batch = at(
        "10:00:00",
        "TP0",
        "Decode batch, #running-req: 1, #token: 39, token usage: 0.00, cuda graph: True, #queue-req: 0",
    )
    (launch,) = read_text(
        log(
            *[batch] * 20,
            at("10:01:00", "", "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),
        )
    )
    assert "cut" == launch.outcome.kind
    assert launch.ended is not None
    assert "stopped" == launch.ended.kind


def served(count: int) -> list[str]:
    text = "Decode batch, #running-req: 1, #token: 39, token usage: 0.00, cuda graph: True, #queue-req: 0"
    return [at("10:06:00", "TP1", text)] * count


@pytest.mark.parametrize(("after", "ended"), [(0, "failed"), (1, "failed"), (150, "failed"), (400, "stopped")])
def test_other_ranks_may_print_a_few_lines_while_one_dies(read_text: ReadText, after: int, ended: str) -> None:
    dying = [
        at("10:06:00", "TP0", "Scheduler hit an exception: Traceback (most recent call last):"),
        FRAME,
        OUT_OF_MEMORY,
    ]
    stop = at("10:07:00", "", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    (launch,) = read_text(log(printed_args(), *rank_lines(), FIRED_UP, *served(20), *dying, *served(after), stop))
    assert "ready" == launch.outcome.kind
    assert launch.ended is not None
    assert ended == launch.ended.kind


def test_a_clock_that_is_set_back_does_not_begin_a_launch(read_text: ReadText) -> None:
    lines = [printed_args(), *rank_lines(), FIRED_UP]
    early = [line.replace("10:00:2", "09:00:2").replace("10:00:5", "09:00:5") for line in lines[5:]]
    assert ["ready"] == [launch.outcome.kind for launch in read_text(log(*lines[:5], *early))]


def test_the_ready_line_of_the_first_node_counts_not_that_of_a_follower(read_text: ReadText) -> None:
    (launch,) = read_text(
        log(
            printed_args(),
            at("10:00:50", "", "Dummy health check server started in background thread at 0.0.0.0:30001"),
            FIRED_UP,
        )
    )
    assert (3, "ready.fired_up") == (launch.outcome.evidence[0].line, launch.outcome.event)


# -- two launches in one log ---------------------------------------------------------------------------------------------------


def test_lines_of_two_launches_that_are_mixed_are_called_so(read_text: ReadText, packs: Packs) -> None:
    begun = [init_lines(tag)[0] for tag in ("TP0", "TP1", "TP2", "TP3")]
    first = [printed_args(tp_size=4), *begun]
    second = [line.replace(" 10:", " 12:") for line in (printed_args(tp_size=4, page_size=64), *begun[::-1])]
    launches = read_text(log(*(line for pair in zip(first, second, strict=True) for line in pair)))
    assert len(launches) > 2
    notes = {launch.notes for launch in launches}
    assert notes == {("lines of several launches are mixed from line 7 on or before: the clock turns back there",)}
    assert headline(launches[0], packs).endswith(" the clock turns back there; give each launch a log of its own.")


def test_launches_one_after_the_other_are_not_mixed_in_any_order(read_text: ReadText) -> None:
    first = [printed_args(), *init_lines(), *load_lines()]
    launches = read_text(log(*(line.replace(" 10:", f" {hour}:") for hour in ("10", "12", "11") for line in first)))
    assert [launch.notes for launch in launches] == [(), (), ()]
