"""Where one launch ends and the next begins, and what is one launch in several files."""

from __future__ import annotations

from conftest import (
    BANNER,
    FIRED_UP,
    FRAME,
    NO_MEMORY,
    SIGQUIT,
    ReadFiles,
    ReadText,
    at,
    graph_lines,
    init_lines,
    load_lines,
    log,
    pool_lines,
    printed_args,
    rank_lines,
)
from logscope.model import Launch

COMMAND = "+ python3 -m sglang.launch_server --model-path /models/m --tp 2"


def line_ranges(launches: list[Launch]) -> list[tuple[int, int]]:
    """Return (first line, last line) of each launch of one file."""
    return [(launch.nodes[0].first_line, launch.nodes[0].last_line) for launch in launches]


def test_printed_arguments_open_a_launch(read_text: ReadText) -> None:
    launches = read_text(
        log(printed_args(tp_size=1), *rank_lines(), printed_args(tp_size=2), *rank_lines(minute="10:30"))
    )
    assert [1, 2] == [launch.args.values["tp_size"] for launch in launches]
    assert [(1, 9), (10, 18)] == line_ranges(launches)
    assert [1, 2] == [launch.number for launch in launches]


def test_command_and_arguments_open_one_launch(read_text: ReadText) -> None:
    text = log(COMMAND, printed_args(tp_size=2), *rank_lines())
    launches = read_text(text * 2)
    assert [(1, 10), (11, 20)] == line_ranges(launches)
    assert [2, 2] == [launch.command.flags["tp_size"] for launch in launches if launch.command]


def test_the_same_arguments_printed_twice_open_one_launch(read_text: ReadText) -> None:
    launches = read_text(log(printed_args(tp_size=2), printed_args(tp_size=2), *rank_lines()))
    assert [(1, 10)] == line_ranges(launches)


def test_a_clock_that_runs_back_opens_a_launch(read_text: ReadText) -> None:
    launches = read_text(log(*rank_lines(minute="10:30"), *rank_lines(minute="10:00")))
    assert [(1, 8), (9, 16)] == line_ranges(launches)


def test_a_clock_one_second_back_opens_none(read_text: ReadText) -> None:
    lines = [*init_lines(), at("10:00:04", "TP0", "Load weight begin. avail mem=94.04 GB")]
    assert [(1, 3)] == line_ranges(read_text(log(*lines)))


def test_memory_that_is_free_again_opens_a_launch(read_text: ReadText) -> None:
    first = [*init_lines(), *load_lines()]
    launches = read_text(log(*first, *init_lines(minute="10:30"), *load_lines(minute="10:30")))
    assert [(1, 4), (5, 8)] == line_ranges(launches)


def test_memory_that_is_free_again_opens_a_launch_of_all_ranks(read_text: ReadText) -> None:
    def both(minute: str) -> list[str]:
        pairs = zip([*init_lines("TP0", minute), *load_lines(tag="TP0", minute=minute)],
                    [*init_lines("TP1", minute), *load_lines(tag="TP1", minute=minute)], strict=True)  # fmt: skip
        return [line for pair in pairs for line in pair]

    launches = read_text(log(*both("10:00"), *both("10:30")))
    assert [(1, 8), (9, 16)] == line_ranges(launches)
    assert [["TP0", "TP1"]] * 2 == [[rank.tag for rank in launch.ranks] for launch in launches]


def test_ranks_that_start_again_at_different_speed_are_not_torn_apart(read_text: ReadText) -> None:
    ahead = [*init_lines("TP1", "10:30"), *init_lines("TP0", "10:30"), *load_lines(tag="TP0", minute="10:30")]
    launches = read_text(log(*init_lines("TP1"), *init_lines("TP0"), *load_lines(tag="TP0"), *ahead))
    assert [(1, 6), (7, 12)] == line_ranges(launches)


def test_the_draft_of_one_launch_opens_none(read_text: ReadText) -> None:
    draft = load_lines("9.85", "9.72", "0.13", minute="10:01", model_type="LlamaForCausalLMEagle")
    launches = read_text(
        log(*rank_lines(), *init_lines(minute="10:01"), *draft, *pool_lines("1.20", "8.51", minute="10:01"))
    )
    assert [(1, 14)] == line_ranges(launches)


def test_a_phase_that_begins_again_after_ready_opens_a_launch(read_text: ReadText) -> None:
    launches = read_text(log(*rank_lines(), FIRED_UP, *rank_lines(minute="10:30")))
    assert [(1, 9), (10, 17)] == line_ranges(launches)
    assert ["ready", "running"] == [launch.outcome.kind for launch in launches]


def test_a_phase_that_begins_again_after_a_failure_opens_a_launch(read_text: ReadText) -> None:
    failure = [BANNER, FRAME, NO_MEMORY, SIGQUIT]
    launches = read_text(log(*init_lines(), *load_lines(), *failure, *init_lines(minute="10:30")))
    assert [(1, 8), (9, 10)] == line_ranges(launches)
    assert ["failed", "running"] == [launch.outcome.kind for launch in launches]


def test_warnings_before_the_arguments_go_with_the_next_launch(read_text: ReadText) -> None:
    warning = at("10:29:59", "", "Max running requests is reset to 48 for speculative decoding.")
    first = [printed_args(), *rank_lines(), FIRED_UP]
    launches = read_text(log(*first, "noise", warning, printed_args(), *init_lines(minute="10:30")))
    assert [(1, 11), (12, 15)] == line_ranges(launches)
    assert ["server_args.adjusted_max_running_requests", "server_args.printed"] == [
        event.pattern.id for event in launches[1].events[:2]
    ]
    for launch in launches:
        assert launch.tally.lines == launch.tally.events + launch.tally.drift + launch.tally.rest
    assert 15 == sum(launch.tally.lines for launch in launches)


def test_warnings_go_with_the_next_launch_although_its_arguments_are_missing(read_text: ReadText) -> None:
    warning = at("10:29:59", "", "Max running requests is reset to 48 for speculative decoding.")
    launches = read_text(log(*rank_lines(), FIRED_UP, warning, *init_lines(minute="10:30")))
    assert [(1, 9), (10, 12)] == line_ranges(launches)


def test_an_unknown_wording_before_the_opener_is_counted_in_its_own_launch(read_text: ReadText) -> None:
    first = [*init_lines(), *load_lines()]
    second = [*init_lines(minute="10:30")[:1], at("10:30:03", "TP0", "Init torch distributed ends. took 4 s")]
    launches = read_text(log(*first, *second, *load_lines(minute="10:30")))
    assert [(1, 4), (5, 8)] == line_ranges(launches)
    assert [0, 1] == [launch.tally.drift for launch in launches]


def node_args(rank: int) -> str:
    return printed_args(tp_size=2, nnodes=2, node_rank=rank, dist_init_addr="10.0.0.1:5000")


def test_two_nodes_interleaved_in_one_file_are_one_launch(read_text: ReadText) -> None:
    pairs = zip([node_args(0), *rank_lines("TP0")], [node_args(1), *rank_lines("TP1")], strict=True)
    launches = read_text(log(*(line for pair in pairs for line in pair)))
    assert [(1, 18)] == line_ranges(launches)
    assert ["TP0", "TP1"] == [rank.tag for rank in launches[0].ranks]
    assert [None, None] == [rank.node for rank in launches[0].ranks], "a line does not tell its node"
    assert not any("is not here" in note for note in launches[0].notes)


def test_ray_actors_are_kept_apart(read_text: ReadText) -> None:
    pairs = zip(rank_lines("TP0"), rank_lines("TP0"), strict=True)
    lines = [f"(SGLangEngine pid={4711 + number}) {line}" for pair in pairs for number, line in enumerate(pair)]
    launches = read_text(log(*lines))
    assert ["SGLangEngine pid=4711", "SGLangEngine pid=4712"] == [launch.nodes[0].origin for launch in launches]
    assert [8, 8] == [len(launch.events) for launch in launches]


def test_compose_services_are_kept_apart(read_text: ReadText) -> None:
    pairs = zip(rank_lines("TP0"), rank_lines("TP0"), strict=True)
    lines = [f"sglang-{number}  | {line}" for pair in pairs for number, line in enumerate(pair, 1)]
    launches = read_text(log(*lines))
    assert ["sglang-1", "sglang-2"] == [launch.nodes[0].origin for launch in launches]
    assert [8, 8] == [len(launch.events) for launch in launches]


def test_lines_without_an_origin_belong_to_the_stream_that_spoke_last(read_text: ReadText) -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:03<00:03,  1.60s/it]"
    lines = [f"sglang-1  | {line}" for line in init_lines()]
    launches = read_text(log(*lines, bar))
    assert [["init_torch_distributed.begin", "init_torch_distributed.end", "load_weights.progress"]] == [
        [event.pattern.id for event in launch.events] for launch in launches
    ]


def test_nodes_in_several_files_are_joined_when_their_arguments_say_so(read_files: ReadFiles) -> None:
    launches = read_files(
        {"a.log": log(node_args(0), *rank_lines("TP0")), "b.log": log(node_args(1), *rank_lines("TP1"))}
    )
    assert [(0, "TP0"), (1, "TP1")] == [(rank.node, rank.tag) for launch in launches for rank in launch.ranks]
    assert [0, 1] == [node.number for node in launches[0].nodes]
    assert 1 == len(launches)
    assert 1 == len(launches[0].notes)
    assert launches[0].notes[0].startswith("2 nodes joined, by their server_args: node 0 = ")


def test_files_without_node_ranks_are_kept_apart(read_files: ReadFiles) -> None:
    text = log(printed_args(tp_size=1), *rank_lines())
    launches = read_files({"a.log": text, "b.log": text})
    assert [1, 2] == [launch.number for launch in launches]
    assert [None, None] == [launch.nodes[0].number for launch in launches]


def test_nodes_of_different_launches_are_kept_apart(read_files: ReadFiles) -> None:
    other = printed_args(tp_size=2, nnodes=2, node_rank=1, dist_init_addr="10.0.0.9:5000")
    launches = read_files({"a.log": log(node_args(0), *init_lines("TP0")), "b.log": log(other, *init_lines("TP1"))})
    assert [(0,), (1,)] == [tuple(node.number for node in launch.nodes) for launch in launches]


def test_a_node_whose_log_is_missing_is_named(read_text: ReadText) -> None:
    (launch,) = read_text(log(node_args(1), *rank_lines("TP1")), name="node1.log")
    assert 1 == len(launch.notes)
    assert launch.notes[0].startswith("2 nodes, of which node 1 = ")
    assert launch.notes[0].endswith("node1.log; the log of node 0 is not here")


def test_graphs_of_a_launch_do_not_move_to_the_next(read_text: ReadText) -> None:
    launches = read_text(log(*rank_lines(), FIRED_UP, *graph_lines(minute="10:20"), *init_lines(minute="10:30")))
    assert [(1, 11), (12, 13)] == line_ranges(launches)
