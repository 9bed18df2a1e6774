"""What is explained of a launch: the verdict, and each finding with its exact words and a near miss that must not give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pytest

from conftest import (
    BANNER,
    CASES,
    FIRED_UP,
    NO_MEMORY,
    SIGQUIT,
    ReadText,
    at,
    graph_lines,
    init_lines,
    load_lines,
    log,
    pool_lines,
    printed_args,
)
from logscope.amounts import gib_text
from logscope.errors import UsageError
from logscope.explainer import Explanation, GivenCell, Question, check_question, explain_launch, explain_launches
from logscope.model import Finding, Launch
from logscope.packs import Packs
from logscope.report import Text
from logscope.report.explain import explain_report
from logscope.report.memory import ledger_table
from logscope.server_args import ArgValue
from logscope.units import GIB, Quantity
from logscope.words import clip

GIVEN = GivenCell(70272)
NONE_WORKS = "Use more tensor parallelism, a smaller or quantized model, or no draft model."
NONE_BETWEEN = "Use fewer or smaller graphs, smaller chunks, more tensor parallelism, a smaller or quantized model, or no draft model."


class Explain(Protocol):
    """Read lines and explain the launches that they are."""

    def __call__(
        self, *lines: str, claims: Mapping[str, ArgValue] | None = None, what_if: Mapping[str, ArgValue] | None = None
    ) -> list[Explanation]: ...


@pytest.fixture
def explain(read_text: ReadText, packs: Packs) -> Explain:
    def explain(
        *lines: str, claims: Mapping[str, ArgValue] | None = None, what_if: Mapping[str, ArgValue] | None = None
    ) -> list[Explanation]:
        return explain_launches(read_text(log(*lines)), packs, Question(what_if or {}, claims or {}))

    return explain


def finding(explanation: Explanation, finding_id: str) -> Finding | None:
    found = [each for each in explanation.findings if each.id == finding_id]
    assert len(found) < 2, found
    return found[0] if found else None


def said(explanation: Explanation) -> str:
    """Return the verdict without the name of the file."""
    name, _, sentence = explanation.verdict.partition(".log: ")
    assert name.endswith(("run", "launch"))
    return sentence


def by_turns(*ranks: list[str]) -> list[str]:
    """Interleave what ranks say."""
    return [line for lines in zip(*ranks, strict=True) for line in lines]


# -- the story -----------------------------------------------------------------------------------------------------------------


def test_car_is_short_of_20_61_gib_and_needs_more_than_0_769(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """A - T * 0.45 = 21.70 - 42.3135 = -20.61; 1 - 21.70 / 94.03 = 0.7692."""
    found = explain_launch(fixture_launches["car"], packs, Question())
    assert found.diagnosis is not None
    assert ("not_enough_memory", "raise", "failed", True) == (
        found.diagnosis.cause,
        found.direction,
        found.launch.outcome.kind,
        found.judged,
    )
    assert said(found).startswith(
        "failed after 9 min 42 s: not enough memory for the KV cache: under mem_fraction_static 0.55 the budget is "
        "-20.61 GiB per rank (line 49). Raise --mem-fraction-static to "
    )
    minimum, rest = found.sizing.fraction.minimum, found.sizing.rest
    assert minimum is not None and rest is not None
    assert 0.7690 < minimum.low < minimum.high < 0.7694
    assert -20.63 * GIB < rest.low < -20.61 * GIB < rest.high < -20.60 * GIB
    assert found.suggested is not None and found.suggested >= 0.770
    assert {None} == {offer.grant.tokens for offer in found.offers}
    assert [0.55, 0.77, 0.8, 0.81, 0.85] == [offer.grant.fraction for offer in found.offers]
    assert ["in force", "the least that starts", "", "suggested", ""] == [offer.why for offer in found.offers]


def test_with_bytes_per_token_the_offers_have_tokens(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    """0.80 leaves 21.695 - 18.807 .. 21.705 - 18.805 = 2.888..2.900 GiB: over 70,272 bytes 44,128..44,311 tokens."""
    found = explain_launch(fixture_launches["car"], packs, Question(source=GIVEN))
    (offer,) = [offer for offer in found.offers if offer.grant.fraction == 0.8]
    assert offer.grant.tokens is not None
    assert (44128, 44311) == (offer.grant.tokens.low, offer.grant.tokens.high)


def test_custom_all_reduce_is_bounded_and_cannot_be_it(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    found = finding(explain_launch(fixture_launches["car"], packs, Question()), "distributed_init_bounded")
    assert found is not None
    assert (
        "Custom all-reduce is not the cause: all of distributed init, of which it is a part, took 0.62..0.65 GiB per rank, "
        "and 20.61 GiB are missing."
    ) == found.sentence
    assert ("note", [12, 13, 14, 15, 16, 17]) == (found.level, sorted(pos.line for pos in found.evidence))


def test_a_claim_about_the_grepped_baseline_is_refuted_with_both_numbers(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    found = explain_launch(fixture_launches["baseline_grep"], packs, Question(claims={"mem_fraction_static": 0.55}))
    implied = found.sizing.fraction.implied
    assert implied is not None
    assert 0.8798 <= implied.low < implied.high <= 0.8803
    assert said(found).startswith(
        "mem_fraction_static 0.55 is not what ran: the pool implies 0.8798..0.8801; with 0.55 the budget would be -20.61 GiB "
        "per rank (line "
    )
    refuted = finding(found, "claim_refuted")
    assert refuted is not None
    assert "error" == refuted.level


def test_the_debug_line_is_confirmed_and_gives_the_same_minimum(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    found = explain_launch(fixture_launches["baseline_debug_nocar"], packs, Question())
    debug = finding(found, "debug_profile")
    assert debug is not None
    assert (
        "The arithmetic of the DEBUG line is right within its printed digits: rest -20.61 GiB (negative: nothing is left for the "
        "KV cache), max_tokens -314,887."
    ) == debug.sentence
    assert ("note", [50]) == (debug.level, [pos.line for pos in debug.evidence])
    minimum, coarse = found.sizing.fraction.minimum, explain_launch(fixture_launches["car"], packs, Question()).sizing
    assert minimum is not None and coarse.fraction.minimum is not None
    assert minimum.meets(coarse.fraction.minimum)
    assert 0.769 < minimum.low < minimum.high < 0.7694


# -- real launches -------------------------------------------------------------------------------------------------------------

CAUSES = {
    "0.4.10.post2-notenough-memfrac": ("not_enough_memory", "raise"),
    "0.4.10.post2-tp2": ("environment", None),
    "0.5.18-new-fakecuda-notenough": ("weights_leave_no_memory", "raise"),
    "0.5.23-fakecuda-notenough": ("weights_leave_no_memory", "raise"),
    "0.5.23-kill9-scheduler": ("cause_not_in_log", None),
    "0.5.23-port-in-use": ("port_in_use", None),
    "0.5.23-unknown-flag": ("bad_argument", None),
    "0.5.9-fakecuda-graph-oom": ("oom_graph_capture", "lower"),
    "0.5.9-fakecuda-imbalance": ("memory_unbalanced", None),
    "0.5.9-fakecuda-notenough": ("not_enough_memory", "raise"),
    "0.5.9-truncated": ("weights_io", None),
    "baseline_debug_nocar": ("not_enough_memory", "raise"),
    "car": ("not_enough_memory", "raise"),
    "car_050": ("not_enough_memory", "raise"),
    "car_debug": ("not_enough_memory", "raise"),
}


def test_every_fixture_that_failed_has_a_cause_here(fixture_launches: dict[str, Launch]) -> None:
    failed = {
        case
        for case, launch in fixture_launches.items()
        if launch.outcome.kind == "failed" or (launch.ended is not None and launch.ended.kind == "failed")
    }
    assert failed == set(CAUSES)
    assert 14 <= len(CASES) - len(CAUSES)


@pytest.mark.parametrize("case", CASES)
def test_failed_launches_have_their_cause_and_others_none(
    case: str, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    found = explain_launch(fixture_launches[case], packs, Question())
    cause = (found.diagnosis.cause, found.direction) if found.diagnosis else None
    assert CAUSES.get(case) == cause
    assert (found.suggested is not None) == (found.direction is not None)
    assert found.judged
    assert "\n" not in found.verdict
    assert all(each.sentence.endswith((".", '"')) for each in found.findings), found.findings


def test_a_server_that_was_killed_had_been_ready(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    found = explain_launch(fixture_launches["0.5.23-kill9-scheduler"], packs, Question())
    assert "ready" == found.launch.outcome.kind
    assert said(found).startswith("ready after 33 s: 1 rank, 20,000 tokens of KV cache")
    assert " It died later: " in said(found)
    assert "why is not in this log (line 67)." in said(found)
    assert finding(found, "consequences") is None


# -- findings ------------------------------------------------------------------------------------------------------------------

READY_SOON = "[2026-01-05 10:00:55] The server is fired up and ready to roll!"
GOOD = [
    *load_lines(),
    *pool_lines(),
    *graph_lines(),
]  # T 94.04, A 21.71, pool 10.42, 11.26 after, 9.85 left: implied 0.8798..0.8801
TWO = printed_args(tp_size=2)


def with_less(after: str, used: str, left: str, before: str = "94.04") -> list[str]:
    """Return two ranks, the second with so much less after its weights."""
    second = [*load_lines(before, after, used, tag="TP1"), *pool_lines(after=left, tag="TP1")]
    return by_turns([*load_lines(), *pool_lines()], second)


def host_lines(*tags: str) -> list[str]:
    text = "Allocating kv hierarchical KV host pool: 331776 tokens, 64.00 GB host memory."
    return [at("10:00:51", tag, text) for tag in tags]


def slow_load(seconds: int) -> list[str]:
    minute, second = divmod(6 + seconds, 60)
    end = f"Load weight end. elapsed={seconds}.00 s, type=M, dtype=d, avail mem=21.71 GB, mem usage=72.33 GB."
    return [
        printed_args(),
        at("10:00:06", "TP0", "Load weight begin. avail mem=94.04 GB"),
        at(f"10:{minute:02}:{second:02}", "TP0", end),
        f"[2026-01-05 10:{minute:02}:{second + 1:02}] The server is fired up and ready to roll!",
    ]


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.54 GiB. GPU 0 has a total capacity of 95.58 GiB of which "
    "0.44 GiB is free. Process 4711 has 95.13 GiB memory in use. Of the allocated memory 92.53 GiB is allocated by PyTorch, and "
    "12.34 MiB is reserved by PyTorch but unallocated."
)
# at 0.78: 21.71 - 94.04 * 0.22 = 1.02 GiB
POOL_OF_078 = [
    at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 15628, KV size: 1.02 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=20.68 GB"),
]
CAPTURE_OF_078 = graph_lines(before="20.68")[0]
# at 0.775: 21.71 - 94.04 * 0.225 = 0.55 GiB
POOL_OF_0775 = [
    at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 8406, KV size: 0.55 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=21.15 GB"),
]
# at 0.80: 21.71 - 94.04 * 0.20 = 2.90 GiB
POOL_OF_080 = [
    at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 44300, KV size: 2.90 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=18.80 GB"),
]
FOREIGN = (
    "CUDA out of memory. Tried to allocate 2.54 GiB. GPU 0 has a total capacity of 95.58 GiB of which 0.44 GiB is free. Including "
    "non-PyTorch memory, this process has 75.13 GiB memory in use. Of the allocated memory 74.53 GiB is allocated by PyTorch, and 12.34 "
    "MiB is reserved by PyTorch but unallocated."
)
SMALL_POOL = [
    at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 100000, KV size: 6.54 GB"),
    at("10:00:22", "TP0", "Memory pool end. avail mem=15.14 GB"),
]
STATES = at(
    "10:00:21",
    "TP0",
    "Mamba Cache is allocated. max_mamba_cache_size: 160, conv_state size: 0.13GB, ssm_state size: 6.40GB ",
)
TYPED = "+ python3 -m sglang.launch_server --model-path /models/m --mem-fraction-static 0.9"
ADJUSTED = at("10:00:01", "", "Multimodal model: Dynamically adjusted --mem-fraction-static from: 0.874 to: 0.817.")
DEBUG = (
    "DEBUG profile_max_num_token: avail=21.708 GiB, total=94.037 GiB, fraction=0.55, reserved=42.316 GiB, rest=-20.608 GiB, "
    "cell_size=70272, max_tokens=-314896"
)
TOO_SMALL = [printed_args(mem_fraction_static=0.55, tp_size=2)]
BOTH_INITS = by_turns(init_lines(), init_lines("TP1"))
BOTH_LOADS = by_turns(load_lines(), load_lines(tag="TP1"))

NO_ALL_REDUCE = "Custom allreduce is disabled because this process group spans across nodes."
ALL_REDUCE_OFF = [at("10:00:02", tag, NO_ALL_REDUCE) for tag in ("TP0", "TP1")]

TWO_SERVERS = "Look for lines of two servers in this file, or for another process that released memory in between."
HALF_NEGATIVE = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 100, K size: -1.00 GB, V size: 0.50 GB")
FULLER_POOL = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 159269, KV size: 22.22 GB")

# id, lines, level, sentence, lines of evidence, remedy
FINDINGS: list[tuple[str, list[str], str, str, list[int], str]] = [
    (
        # 94.035..94.045 before, 94.055 at least after
        "memory_rises", [*TOO_SMALL, *load_lines(after="94.06", used="-0.02"), BANNER, NO_MEMORY], "warning",
        "Free memory rises while the weights load, from 94.04 GiB to 94.06. No figure is drawn from free memory here.", [2, 3],
        "Another process released memory, or the device shares that of the host, as GB10 and MI300A do.",
    ),
    (
        # 94.04 - 21.71 - 71.81 = 0.52, 0.505 at least
        "lines_contradict", [*TOO_SMALL, *load_lines(used="71.81"), BANNER, NO_MEMORY], "error",
        "These lines contradict each other: 94.04 GiB free before the weights and 21.71 after them are not the 71.81 GiB that they "
        "are said to take. No figure is drawn from free memory here.", [2, 3], TWO_SERVERS,
    ),
    (
        # 22.215 - 21.715 = 0.50 and no more than half a GiB: see the near misses
        "lines_contradict", [printed_args(), *load_lines(), FULLER_POOL.replace("22.22", "22.23")], "error",
        "These lines contradict each other: pools of 22.23 GiB do not fit into the 21.71 GiB that are free before them. No figure "
        "is drawn from free memory here.", [4, 3], TWO_SERVERS,
    ),
    (
        "lines_contradict", [printed_args(), *load_lines(), HALF_NEGATIVE], "error",
        "This line contradicts itself: a KV cache of -1.00 GiB cannot be. No figure is drawn from free memory here.", [4], TWO_SERVERS,
    ),
    (
        "lines_contradict", [printed_args(), *load_lines(after="-5.00", used="99.04"), BANNER, NO_MEMORY], "error",
        "This line contradicts itself: free memory of -5.00 GiB cannot be. No figure is drawn from free memory here.", [3], TWO_SERVERS,
    ),
    (
        "lines_contradict",
        [printed_args(), *load_lines(), pool_lines()[0].replace("159269", "-100")], "error",
        "This line contradicts itself: a pool of -100 tokens cannot be. No figure is drawn from free memory here.", [4], TWO_SERVERS,
    ),
    (
        # 2.60 GiB at 10.42 GiB / 159,270 a token are 39,741 tokens
        "limiting_rank", [TWO, *with_less("19.11", "74.93", "8.69"), READY_SOON], "warning",
        "TP1 has the least memory for the KV cache, 19.11 GiB, 2.60 GiB less than the next: that costs every rank about 40,000 "
        "tokens. It was level before the weights: its share of the weights is larger (embeddings, replicated modules).",
        [5, 4], "",
    ),
    (
        # 94.04 - 91.44 = 2.60 before the weights
        "limiting_rank", [TWO, *with_less("19.11", "72.33", "8.69", before="91.44"), READY_SOON], "warning",
        "TP1 has the least memory for the KV cache, 19.11 GiB, 2.60 GiB less than the next: that costs every rank about 40,000 "
        "tokens. It had 2.60 GiB less before the weights already: another process on its GPU, or a smaller card.",
        [5, 4], "",
    ),
    (
        "limiting_rank", [TWO, *with_less("21.51", "72.53", "11.06"), READY_SOON], "note",
        "TP1 has the least memory for the KV cache, 21.51 GiB, 0.20 GiB less than the next: that costs every rank about 3,000 "
        "tokens. It was level before the weights: its share of the weights is larger (embeddings, replicated modules).",
        [5, 4], "",
    ),
    (
        # (10.4196..10.4308) / (6.545..6.535) * 100,001 = 159,201..159,616
        "bound_by_max_total_tokens",
        [printed_args(mem_fraction_static=0.88, max_total_tokens=100000), *load_lines(), *SMALL_POOL, READY_SOON], "note",
        "max_total_tokens 100,000 sets the capacity, not the memory, which would hold about 159,000.", [4], "",
    ),
    (
        "bound_by_mamba",
        [
            printed_args(), *load_lines(), STATES, at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 50000, KV size: 3.00 GB"),
            at("10:00:22", "TP0", "Memory pool end. avail mem=12.15 GB"), READY_SOON,
        ],
        "warning", "States of Mamba or linear layers take 6.53 GiB, the KV cache 3.00.", [4],
        "A lower --max-mamba-cache-size or --mamba-full-memory-ratio gives the KV cache more.",
    ),
    (
        "context_exceeds_capacity", [printed_args(context_length=159270), *GOOD, READY_SOON], "warning",
        "159,269 tokens are less than the context length of 159,270: a request of full length is refused; of 8,192 tokens each "
        "about 19 fit at once.",
        [4], "Set --context-length 159269 or less, or give the KV cache more memory.",
    ),
    (
        "requests_that_fit", [printed_args(context_length=159269), *GOOD, READY_SOON], "note",
        "1 request of the full context length fits at once (159,269 tokens each).", [4], "",
    ),
    (
        "requests_that_fit", [printed_args(context_length=16384), *GOOD, READY_SOON], "note",
        "9 requests of the full context length fit at once (16,384 tokens each).", [4], "",
    ),
    (
        "requests_that_fit", [printed_args(context_length=16384, max_running_requests=8), *GOOD, READY_SOON], "note",
        "9 requests of the full context length fit at once (16,384 tokens each); max_running_requests lets 8 run.", [4], "",
    ),
    (
        "requests_that_fit", [printed_args(context_length=16384, max_running_requests=9), *GOOD, READY_SOON], "note",
        "9 requests of the full context length fit at once (16,384 tokens each).", [4], "",
    ),
    (
        # 0.94035 GiB over 70,214..70,282 bytes: 14,366..14,380
        "idle_memory", [printed_args(mem_fraction_static=0.88), *GOOD, READY_SOON], "note",
        "9.85 GiB are still free when the server is ready; what requests take of it is not in this log. Each 0.01 of mem_fraction_static "
        "(now 0.88) is 0.94 GiB = about 14,400 tokens.",
        [7], "",
    ),
    (
        "host_memory_total", [TWO, *GOOD, *host_lines("TP0", "TP1"), READY_SOON], "note",
        "HiCache takes 128.0 GB of host memory in all: 2 pools of 2 ranks.", [8, 9], "",
    ),
    (
        "host_memory_total", [printed_args(), *GOOD, *host_lines("TP0"), READY_SOON], "note",
        "HiCache takes 64.0 GB of host memory in all: 1 pool of 1 rank.", [8], "",
    ),
    (
        "ranks_not_in_log",
        [printed_args(tp_size=8), *by_turns(*(load_lines(tag=f"TP{number}") for number in (0, 1, 3)))], "warning",
        "5 of 8 ranks are not in this log: TP2, TP4..TP7.", [], "",
    ),
    (
        "ranks_not_in_log", [printed_args(tp_size=2, pp_size=2), *load_lines(tag="PP0 TP0")], "warning",
        "3 of 4 ranks are not in this log: PP0 TP1, PP1 TP0..TP1.", [], "",
    ),
    (
        "ranks_not_in_log", [printed_args(tp_size=4, nnodes=2, node_rank=0), *BOTH_LOADS], "note",
        "2 of 4 ranks are not in this log: TP2..TP3. The launch has 2 nodes, and this is node 0.", [],
        "Give the logs of the other nodes, too: logscope explain node0.log node1.log",
    ),
    (
        "ranks_behind", [TWO, *BOTH_LOADS[:3], *pool_lines()], "warning",
        "TP1 is still in load weights; TP0 got through memory pools in all.", [3, 6], "",
    ),
    (
        # 72.33 / 100 = 0.723
        "slow_phase", slow_load(100), "note", "Load weights took 1 min 40 s of 1 min 47 s (93%): 72.33 GiB at 0.723 GiB/s.", [2, 3],
        "Faster or local storage, or files already in the page cache, is the one thing to mend.",
    ),
    (
        "unexplained_memory", [printed_args(), *load_lines(), *pool_lines(kv="8.00"), READY_SOON], "warning",
        "2.45 GiB went in memory pools in all that no line explains.", [3, 5], "",
    ),
    (
        "distributed_init_bounded", [*TOO_SMALL, *BOTH_INITS, *BOTH_LOADS, BANNER, NO_MEMORY], "note",
        "Custom all-reduce is not the cause: all of distributed init, of which it is a part, took 0.64 GiB per rank, and 20.61 GiB "
        "are missing.",
        [4, 5], "",
    ),
    (
        "distributed_init_bounded", [*TOO_SMALL, *ALL_REDUCE_OFF, *BOTH_INITS, *BOTH_LOADS, BANNER, NO_MEMORY], "note",
        "Custom all-reduce is not the cause: it was off, and all of distributed init took 0.64 GiB per rank, and 20.61 GiB are missing.",
        [2, 6, 7], "",
    ),
    (
        # one of two ranks says nothing: it may be on there
        "distributed_init_bounded", [*TOO_SMALL, ALL_REDUCE_OFF[0], *BOTH_INITS, *BOTH_LOADS, BANNER, NO_MEMORY], "note",
        "Custom all-reduce is not the cause: all of distributed init, of which it is a part, took 0.64 GiB per rank, and 20.61 GiB "
        "are missing.",
        [5, 6], "",
    ),
    (
        "distributed_init_bounded",
        [
            printed_args(mem_fraction_static=0.55, tp_size=2, disable_custom_all_reduce=True), *BOTH_INITS, *BOTH_LOADS, BANNER, NO_MEMORY,
        ],
        "note",
        "Custom all-reduce is not the cause: it was off, and all of distributed init took 0.64 GiB per rank, and 20.61 GiB are missing.",
        [1, 4, 5], "",
    ),
    (
        "consequences", [*TOO_SMALL, *BOTH_LOADS, BANNER, NO_MEMORY, SIGQUIT], "note",
        'Consequences, not causes: "Received sigquit from a child process. It usually means ...".', [8], "",
    ),
    (
        "unknown_wording", [*load_lines(), at("10:00:22", "TP0", "Memory pool end. all is well")], "warning",
        "1 line is known in another wording only, and not read: what it says is missing here.", [3],
        "logscope patterns gaps LOG lists them.",
    ),
    (
        # 1 - 4.005 / 94.035 = 0.9574
        "no_workable_fraction",
        [printed_args(mem_fraction_static=0.9), *load_lines(after="4.00", used="90.04"), BANNER, NO_MEMORY], "error",
        "No workable fraction: the weights alone need 0.958.", [3, 2], NONE_WORKS,
    ),
    (
        # 2.10 GiB were short: 0.78 - 2.10 / 94.04 = 0.7577, and 1 - 21.705 / 94.035 = 0.769
        "no_workable_fraction",
        [printed_args(mem_fraction_static=0.78), *load_lines(), *POOL_OF_078, CAPTURE_OF_078, BANNER, OUT_OF_MEMORY], "error",
        "No workable fraction: at 0.769 nothing is left for the KV cache, and 2.10 GiB more are needed than 0.78 leaves.", [3, 2],
        NONE_WORKS,
    ),
    (
        "fraction_not_in_force", [TYPED, printed_args(mem_fraction_static=0.88), *GOOD, READY_SOON], "error",
        "Your 0.9 is not what ran: server_args say mem_fraction_static 0.88.", [2, 1],
        "Look for a wrapper, a second occurrence of the flag, or a configuration file that sets it.",
    ),
    (
        "fraction_adjusted", [TYPED, printed_args(mem_fraction_static=0.874), ADJUSTED, *load_lines()], "note",
        "mem_fraction_static was typed as 0.9 and adjusted to 0.817 (Multimodal model).", [1, 3], "",
    ),
    (
        "fraction_contradicted", [printed_args(mem_fraction_static=0.55), *GOOD, READY_SOON], "error",
        "Your 0.55 is not what ran: the pool implies mem_fraction_static 0.8798..0.8801.", [1, 4, 3, 2],
        "Look for what changed the value after the arguments were printed, or for a second server's lines in this file.",
    ),
    (
        # (0.95 - 0.880057) * 94.035 = 6.577; 21.71 - 11.26 - 10.42 = 0.03, and half a digit of each: 0.045
        "fraction_contradicted", [printed_args(mem_fraction_static=0.95), *GOOD, READY_SOON], "error",
        "The pool is 6.58 GiB smaller than mem_fraction_static 0.95 grants: it implies 0.8798..0.8801, and memory taken in between "
        "explains 0.05 GiB at most.",
        [1, 4, 3, 2], "Either another limit set the pool (context, requests, states), or this value is not what ran.",
    ),
    (
        "debug_profile", [*load_lines(), at("10:00:21", "TP0", DEBUG)], "warning",
        "The DEBUG line contradicts itself: max_tokens is -314,896, and rest / cell_size gives -314,894..-314,879.", [3], "",
    ),
    (
        "not_judged", [printed_args(device="cpu"), *load_lines()], "note",
        "The device shares memory with the host, where other processes take and give at any time: these figures are estimates.", [], "",
    ),
]  # fmt: skip
NEAR_MISSES: list[tuple[str, str, list[str]]] = [
    ("memory_rises", "94.05 may be both", [*TOO_SMALL, *load_lines(after="94.05", used="-0.01"), BANNER, NO_MEMORY]),
    ("lines_contradict", "half a GiB may go between two looks", [*TOO_SMALL, *load_lines(used="71.83"), BANNER, NO_MEMORY]),
    ("lines_contradict", "a pool next to what is free", [printed_args(), *load_lines(), FULLER_POOL]),
    ("lines_contradict", "memory may be released", [*TOO_SMALL, *load_lines(after="94.06", used="-0.02"), BANNER, NO_MEMORY]),
    ("memory_rises", "a CPU", [printed_args(device="cpu"), *load_lines(after="94.06", used="-0.02")]),
    (
        "lines_contradict", "a draft may give memory back",
        [printed_args(), *GOOD, *load_lines("9.85", "11.71", "-1.86", model_type="LlamaForCausalLMEagle")],
    ),
    ("limiting_rank", "ranks alike", [TWO, *with_less("21.71", "72.33", "11.26"), READY_SOON]),
    ("limiting_rank", "a hundredth apart", [TWO, *with_less("21.70", "72.34", "11.25"), READY_SOON]),
    ("limiting_rank", "one rank", [printed_args(), *GOOD, READY_SOON]),
    (
        "bound_by_max_total_tokens", "the cap is above",
        [printed_args(max_total_tokens=100001), *load_lines(), *SMALL_POOL, READY_SOON],
    ),
    ("bound_by_mamba", "states are the smaller part", [printed_args(), *load_lines(), STATES, *pool_lines(after="4.73"), READY_SOON]),
    ("context_exceeds_capacity", "it just fits", [printed_args(context_length=159269), *GOOD, READY_SOON]),
    ("requests_that_fit", "none fits", [printed_args(context_length=159270), *GOOD, READY_SOON]),
    # 9.395 GiB is less than a tenth of 94.035
    (
        "idle_memory", "less than a tenth is left",
        [printed_args(mem_fraction_static=0.88), *GOOD[:-1], graph_lines(after="9.40", used="1.86")[1], READY_SOON],
    ),
    ("idle_memory", "not ready", [printed_args(mem_fraction_static=0.88), *GOOD]),
    (
        "idle_memory", "a cap set the pool",
        [printed_args(mem_fraction_static=0.88, max_total_tokens=100000), *load_lines(), *SMALL_POOL, READY_SOON],
    ),
    ("speculation_cost", "no draft", [printed_args(), *GOOD, READY_SOON]),
    ("host_memory_total", "no host pool", [printed_args(), *GOOD, READY_SOON]),
    ("ranks_not_in_log", "all there", [TWO, *BOTH_LOADS]),
    ("ranks_not_in_log", "no arguments", load_lines(tag="TP3")),
    ("ranks_not_in_log", "one device has no tag", [printed_args(tp_size=1), *load_lines(tag="")]),
    ("ranks_behind", "equally far", [TWO, *BOTH_LOADS]),
    ("ranks_behind", "ready", [TWO, *BOTH_LOADS, *pool_lines(), READY_SOON]),
    ("slow_phase", "a minute is not long", slow_load(59)),
    ("unexplained_memory", "0.03 GiB", [printed_args(), *GOOD, READY_SOON]),
    (
        "distributed_init_bounded", "the init is larger than what is missing",
        [*TOO_SMALL, *(line.replace("0.64 GB", "20.64 GB") for line in BOTH_INITS), *BOTH_LOADS, BANNER, NO_MEMORY],
    ),
    ("distributed_init_bounded", "one rank reduces nothing", [TOO_SMALL[0], *init_lines(), *load_lines(), BANNER, NO_MEMORY]),
    ("distributed_init_bounded", "it works", [TWO, *BOTH_INITS, *BOTH_LOADS, READY_SOON]),
    ("consequences", "nothing else is in the log", [TWO, *BOTH_LOADS, SIGQUIT]),
    ("consequences", "no consequence", [*TOO_SMALL, *BOTH_LOADS, BANNER, NO_MEMORY]),
    ("unknown_wording", "the file is cut there", load_lines()),
    # 1 - 6.00 / 94.04 = 0.936
    (
        "no_workable_fraction", "0.94 leaves something",
        [printed_args(mem_fraction_static=0.9), *load_lines(after="6.00", used="88.04"), BANNER, NO_MEMORY],
    ),
    # 0.88 - 0.0223 is above 0.769
    (
        "no_workable_fraction", "0.85 works",
        [printed_args(mem_fraction_static=0.88), *load_lines(), *pool_lines(), graph_lines()[0], BANNER, OUT_OF_MEMORY],
    ),
    ("fraction_not_in_force", "as typed", [TYPED, printed_args(mem_fraction_static=0.9), *load_lines()]),
    ("fraction_not_in_force", "adjusted", [TYPED, printed_args(mem_fraction_static=0.874), ADJUSTED, *load_lines()]),
    ("fraction_adjusted", "not adjusted", [TYPED, printed_args(mem_fraction_static=0.874), *load_lines()]),
    ("fraction_contradicted", "agrees", [printed_args(mem_fraction_static=0.88), *GOOD, READY_SOON]),
    ("fraction_contradicted", "a CPU", [printed_args(mem_fraction_static=0.55, device="cpu"), *GOOD, READY_SOON]),
    ("fraction_contradicted", "a rank is missing", [printed_args(mem_fraction_static=0.55, tp_size=2), *GOOD, READY_SOON]),
    ("debug_profile", "no such line", [printed_args(), *GOOD]),
    ("not_judged", "a GPU", [printed_args(device="cuda"), *GOOD]),
]  # fmt: skip
OF_FIXTURES = {"speculation_cost"}  # their sentences stand below


def test_every_finding_has_its_words_and_a_near_miss_here() -> None:
    named = {each[0] for each in FINDINGS} | OF_FIXTURES
    assert named - {"requests_that_fit"} == {each[0] for each in NEAR_MISSES} - {"requests_that_fit"}
    assert 20 <= len(named)


@pytest.mark.parametrize(
    ("finding_id", "lines", "level", "sentence", "evidence", "remedy"),
    FINDINGS,
    ids=[f"{number}-{each[0]}" for number, each in enumerate(FINDINGS)],
)
def test_a_finding_is_said_in_these_words(
    finding_id: str, lines: list[str], level: str, sentence: str, evidence: list[int], remedy: str, explain: Explain
) -> None:  # fmt: skip
    found = finding(explain(*lines)[-1], finding_id)
    assert found is not None
    assert (sentence, level, evidence, remedy) == (
        found.sentence,
        found.level,
        [pos.line for pos in found.evidence],
        found.remedy,
    )


@pytest.mark.parametrize(
    ("finding_id", "lines"),
    [(each[0], each[2]) for each in NEAR_MISSES],
    ids=[f"{each[0]}: {each[1]}" for each in NEAR_MISSES],
)
def test_a_near_miss_gives_no_finding(finding_id: str, lines: list[str], explain: Explain) -> None:
    assert finding(explain(*lines)[-1], finding_id) is None


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (
            # 0.13 + 1.19 + 1.19 = 2.51, over the 65,535..65,554 bytes that a token takes without a draft: 40,788..41,451. Graphs
            # are captured beside the pool. 0.5.9-fakecuda-tp2-dp2 is the same without a draft: 1,292,787 - 1,251,575 = 41,212
            "0.5.14-new-eagle-tp2",
            "Speculation costs 2.65..2.69 GiB per rank, 2.49..2.53 of it out of the KV cache's budget = about 41,000 tokens (draft "
            "weights 0.13, draft KV cache 2.38, draft graphs: draft decode 0.16).",
        ),
        (
            # the target's pool is 77.00, as the budget is: 91.63 - 94.98 * 0.154
            "0.5.9-new-eagle-tp2",
            "Speculation costs 3.60..3.66 GiB per rank, all of it out of what the fraction keeps free: it takes no tokens from the KV "
            "cache (draft weights 0.13, draft KV cache 2.40, draft graphs: draft decode 0.55, draft graphs: draft extend 0.55).",
        ),
    ],
)
def test_what_speculation_costs_is_one_line(
    case: str, sentence: str, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    found = finding(explain_launch(fixture_launches[case], packs, Question()), "speculation_cost")
    assert found is not None
    assert ("note", sentence) == (found.level, found.sentence)


DRAFT = {"model_type": "LlamaForCausalLMEagle", "minute": "10:01"}


def test_a_draft_that_took_nothing_yet_has_no_cost(explain: Explain) -> None:
    begun = load_lines("9.85", **DRAFT)[:1]
    assert (
        finding(
            explain(printed_args(speculative_algorithm="EAGLE"), *GOOD, *begun, BANNER, OUT_OF_MEMORY)[0],
            "speculation_cost",
        )
        is None
    )


def test_what_a_draft_took_before_a_failure_is_not_its_cost(explain: Explain) -> None:
    lines = [*GOOD, *load_lines("9.85", "8.85", "1.00", **DRAFT), BANNER, OUT_OF_MEMORY]
    found = finding(explain(printed_args(speculative_algorithm="EAGLE"), *lines)[0], "speculation_cost")
    assert found is not None
    assert (
        "Speculation had taken 1.00 GiB when this log ends, and was not all there yet (draft weights 1.00)."
    ) == found.sentence


@pytest.mark.parametrize(
    ("args", "price"),
    [
        ({"mem_fraction_static": 0.88}, ": that costs every rank about 40,000 tokens"),
        ({"mem_fraction_static": 0.95, "max_total_tokens": 159269}, ""),
    ],
    ids=["the fraction sets the pool", "a cap does"],
)
def test_less_memory_costs_no_tokens_where_a_cap_sets_the_pool(
    args: dict[str, object], price: str, explain: Explain
) -> None:
    """A pool of 10.42 GiB fits either way: the cap would be the same with the memory of the other rank."""
    lines = with_less("19.11", "74.93", "8.69")
    found = finding(explain(printed_args(tp_size=2, **args), *lines, READY_SOON)[0], "limiting_rank")
    assert found is not None
    assert f"2.60 GiB less than the next{price}. It was level" in found.sentence


def test_a_step_of_the_fraction_is_worth_what_states_leave_of_it(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    """42.32 of 42.32 + 38.08 GiB are the KV cache: 0.9498 * 0.5264 GiB over 32,767..32,783 bytes are 16,374..16,383 tokens."""
    found = finding(explain_launch(fixture_launches["0.5.23-new-mamba-tp1"], packs, Question()), "idle_memory")
    assert found is not None
    assert found.sentence.endswith("(now 0.867) is 0.95 GiB = about 16,380 tokens.")


def test_the_budget_is_that_of_the_fraction_that_ran(explain: Explain) -> None:
    """The arguments say 0.70, with which 21.71 - 94.04 * 0.30 = -6.50; the pool of 10.42 shows that it was 0.88."""
    found = explain(printed_args(mem_fraction_static=0.7), *GOOD, READY_SOON)[0]
    rest = found.sizing.rest
    assert rest is not None and 10.41 * GIB < rest.low < rest.high < 10.44 * GIB
    kept, left = found.budget[2:4]
    assert ("kept: T * (1 - f)", "94.04 * (1 - 0.8799)", ()) == (kept.name, kept.formula, kept.evidence)
    assert ("budget: A - kept", "10.42", "21.71 - 11.29") == (left.name, gib_text(left.amount), left.formula)
    assert [(each.why, each.is_now) for each in found.offers if each.why] == [("implied", True)]


def test_the_rate_of_a_slow_load_is_that_of_a_rank_and_of_all(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    """72.33 / 564.42 = 0.1281; times 8 1.025."""
    found = finding(explain_launch(fixture_launches["baseline"], packs, Question()), "slow_phase")
    assert found is not None
    assert (
        "Load weights took 9 min 24 s of 10 min 12 s (92%): 72.33 GiB at 0.128 GiB/s per rank, 1.03 GiB/s for all 8."
    ) == found.sentence


@pytest.mark.parametrize(
    ("tags", "remedy"),
    [(["TP0"], ""), (["TP0", "TP1"], "Look at the network between ranks, and at the slowest of them to arrive.")],
)
def test_a_single_rank_is_not_told_to_look_at_another(tags: list[str], remedy: str, explain: Explain) -> None:
    begin = [at("10:00:01", tag, "Init torch distributed begin.") for tag in tags]
    end = [at("10:03:05", tag, "Init torch distributed ends. elapsed=184.02 s, mem usage=0.64 GB") for tag in tags]
    found = finding(explain(printed_args(), *begin, *end, READY_SOON.replace("10:00:55", "10:03:06"))[0], "slow_phase")
    assert found is not None
    assert ("Distributed init took 3 min 04 s", remedy) == (found.sentence.partition(" of ")[0], found.remedy)


@pytest.mark.parametrize(
    ("died", "behind"), [("TP0", None), ("TP1", "TP0 was still in load weights; TP1 got through load weights.")]
)
def test_the_rank_that_died_is_not_still_in_its_phase(died: str, behind: str | None, explain: Explain) -> None:
    first, second = load_lines()[:1], load_lines(tag="TP1")
    death = at("10:00:21", died, "Scheduler hit an exception: Traceback (most recent call last):")
    (found,) = explain(printed_args(tp_size=2), *first, *second, death, "ValueError: no such shape", SIGQUIT)
    said = finding(found, "ranks_behind")
    assert behind == (said.sentence if said else None)


def ranks_apart(first: str, second: str, **args: object) -> list[str]:
    """Return two ranks, the second with 2.60 GiB less for its pool."""
    loads = [*load_lines(tag=first), *load_lines(after="19.11", used="74.93", tag=second)]
    pools = [*pool_lines(tag=first), *pool_lines(after="8.69", tag=second)]
    return [printed_args(mem_fraction_static=0.88, context_length=16384, **args), *loads, *pools, READY_SOON]


@pytest.mark.parametrize(
    ("tags", "args", "why"),
    [
        (("PP0", "PP1"), {"pp_size": 2}, "It was level before the weights: its pipeline stage holds more of them."),
        (
            ("DP0 TP0", "DP1 TP1"),
            {"dp_size": 2, "tp_size": 2, "enable_dp_attention": True},
            "It was level before the weights: its share of the weights is larger (embeddings, replicated modules).",
        ),
        (("DP0 TP0", "DP1 TP0"), {"dp_size": 2}, None),  # replicas: the one costs the other nothing
    ],
    ids=["stages", "DP attention", "replicas"],
)
def test_a_rank_is_compared_with_those_that_share_its_budget(
    tags: tuple[str, str], args: dict[str, object], why: str | None, explain: Explain
) -> None:
    found = finding(explain(*ranks_apart(*tags, **args))[0], "limiting_rank")
    assert why == (found.sentence.partition("tokens. ")[2] if found else None)


def test_requests_of_replicas_fit_on_each(explain: Explain) -> None:
    (found,) = explain(*ranks_apart("DP0 TP0", "DP1 TP0", dp_size=2))
    said = finding(found, "requests_that_fit")
    assert said is not None
    assert "9 requests of the full context length fit at once on each replica (16,384 tokens each)." == said.sentence


def test_what_is_free_is_the_least_where_ranks_differ(explain: Explain) -> None:
    second = [*load_lines(after="25.71", used="68.33", tag="TP1"), *pool_lines(after="15.26", tag="TP1")]
    lines = by_turns([*load_lines(), *pool_lines()], second)
    (found,) = explain(printed_args(mem_fraction_static=0.88, tp_size=2), *lines, READY_SOON)
    said = finding(found, "idle_memory")
    assert said is not None
    assert said.sentence.startswith("At least 11.26 GiB per rank are still free when the server is ready;")


def test_the_ledger_says_how_far_ranks_were_apart_from_the_start(explain: Explain) -> None:
    (found,) = explain(TWO, *with_less("19.11", "72.33", "8.69", before="91.44"), READY_SOON)
    table = ledger_table(found.ledger, found.launch)
    assert table is not None
    assert "Where the memory of TP1 went (the others differ by up to 2.60 GiB)" == table.title


def ledger_of_table(found: Explanation) -> list[tuple[object, ...]]:
    """Return item, bytes taken and bytes free of each row that people see."""
    table = ledger_table(found.ledger, found.launch)
    assert table is not None
    amounts = [(each.value if isinstance(each, Quantity) else each for each in row.cells[:3]) for row in table.rows]
    return [(item, taken and round(taken / GIB, 2), round(free / GIB, 2)) for item, taken, free in amounts]


@pytest.mark.parametrize(
    ("labels", "names"), [(("", ""), ("100 tokens", "80 tokens")), (("Full ", "SWA "), ("Full", "SWA"))]
)
def test_two_pools_of_one_name_are_told_apart(
    labels: tuple[str, str], names: tuple[str, str], explain: Explain
) -> None:
    pools = [
        at(
            "10:00:21",
            "TP0",
            f"{label}KV Cache is allocated. dtype: torch.bfloat16, #tokens: {count}, KV size: {size} GB",
        )
        for label, count, size in zip(labels, (100, 80), ("6.00", "4.00"), strict=True)
    ]
    (found,) = explain(*load_lines(), *pools, at("10:00:22", "TP0", "Memory pool end. avail mem=11.71 GB"))
    assert [(f"KV cache ({names[0]})", 6.0, 15.71), (f"KV cache ({names[1]})", 4.0, 11.71)] == ledger_of_table(found)[
        -2:
    ]


def test_a_step_of_rounding_does_not_drop_the_row_that_it_belongs_to(explain: Explain) -> None:
    """Weights of 0.00 GiB from 19.64 to 19.63: without their row 19.64 - 0.05 would not be 19.58."""
    lines = [*load_lines("19.64", "19.63", "0.00"), at("10:00:22", "TP0", "Memory pool end. avail mem=19.58 GB")]
    (found,) = explain(*lines)
    assert [
        ("free at the start", None, 19.64), ("weights", 0, 19.63), ("unexplained", 0.05, 19.58)
    ] == ledger_of_table(found)  # fmt: skip


def test_evidence_is_what_the_log_says(explain: Explain) -> None:
    """So that it is found by grep, also where a line is no failure."""
    bar = "Capturing batches (bs=32 avail_mem=0.44 GB):  33%|███      | 4/12 [00:02<00:04,  1.75it/s]"
    report = explain_report(explain(*OOM_AT_088[:6], bar, *OOM_AT_088[6:]))
    text = [line for section in report.sections[1:2] if isinstance(section, Text) for line in section.lines]
    assert [
        "line 6 TP0: Capture cuda graph begin. This can take up to several minutes. avail mem=11.26 GB",
        "line 7: Capturing batches (bs=32 avail_mem=0.44 GB): 33%|███ | 4/12 [00:02<00:04, 1.75it/s]",
    ] == text[2:]  # fmt: skip


def test_a_silence_ends_with_the_first_line_of_any_rank(explain: Explain) -> None:
    """TP1 begins at 10:01:40, TP0 two seconds later: 100 s without a line, and not 102."""
    init = [
        at("10:01:40", "TP1", "Init torch distributed begin."),
        at("10:01:42", "TP0", "Init torch distributed begin."),
        at("10:01:44", "TP0", "Init torch distributed ends. elapsed=2.02 s, mem usage=0.64 GB"),
        at("10:01:44", "TP1", "Init torch distributed ends. elapsed=4.02 s, mem usage=0.64 GB"),
    ]
    found = finding(explain(TWO, *init)[0], "slow_phase")
    assert found is not None
    assert (
        "1 min 40 s of 1 min 44 s (96%) passed without a line of any phase, before distributed init." == found.sentence
    )
    assert [1, 2] == [pos.line for pos in found.evidence]


def test_a_rank_that_waits_for_another_that_loads_is_no_silence(explain: Explain) -> None:
    """TP0 is in no phase from 10:00:20 to 10:02:30, but TP1 reads its weights all the time."""
    end = "Load weight end. elapsed=144.00 s, type=M, dtype=d, avail mem=21.71 GB, mem usage=72.33 GB."
    second = [load_lines(tag="TP1")[0], at("10:02:30", "TP1", end)]
    pools = [line.replace("10:00", "10:02") for line in pool_lines(minute="10:02")]
    found = finding(
        explain(TWO, second[0], *load_lines(), second[1], *pools, READY_SOON.replace("10:00:55", "10:02:55"))[0],
        "slow_phase",
    )
    assert found is not None
    assert found.sentence.startswith("Load weights took 2 min 24 s of 2 min 55 s (82%)")


def test_time_without_a_line_is_said_without_a_phase(explain: Explain) -> None:
    found = finding(explain(printed_args(), *GOOD, FIRED_UP)[0], "slow_phase")
    assert found is not None
    assert "4 min 10 s of 5 min 00 s (83%) passed without a line of any phase, after capture graphs." == found.sentence


def test_findings_stand_in_order_of_weight(explain: Explain) -> None:
    lines = [TYPED, printed_args(mem_fraction_static=0.88, context_length=200000), *GOOD, READY_SOON]
    order = {"error": 0, "warning": 1, "note": 2}
    levels = [order[each.level] for each in explain(*lines)[0].findings]
    assert sorted(levels) == levels
    assert {0, 1, 2} == set(levels)


def test_no_figure_is_drawn_from_lines_that_contradict_each_other(explain: Explain) -> None:
    (found,) = explain(*TOO_SMALL, *load_lines(used="71.33"), BANNER, NO_MEMORY)
    assert said(found).startswith(
        "These lines contradict each other: 94.04 GiB free before the weights and 21.71 after them are not the 71.33 GiB that they "
        "are said to take (line 2 and line 3). No figure is drawn from free memory here. Failed"
    )
    assert said(found).endswith("Raise --mem-fraction-static; by how much is not in this log.")
    assert_no_figures(found)


def test_memory_that_rises_comes_after_the_outcome_and_gives_no_figures(explain: Explain) -> None:
    (found,) = explain(*TOO_SMALL, *load_lines(after="95.00", used="-0.96"), BANNER, NO_MEMORY)
    assert said(found) == (
        "failed after 9 min 40 s: not enough memory for the KV cache (line 5). Raise --mem-fraction-static; by how much is not in "
        "this log."
    )
    assert_no_figures(found)


def assert_no_figures(found: Explanation) -> None:
    sizing = found.sizing
    assert (None, None, None) == (sizing.rest, sizing.fraction.minimum, sizing.fraction.implied)
    assert (None, (), ()) == (found.suggested, found.offers, found.budget)


def test_a_debug_line_that_contradicts_itself_gives_no_figures(read_text: ReadText, packs: Packs) -> None:
    """avail - reserved is -20.608, not 20.608: free memory is that of the lines of the rank."""
    text = log(*TOO_SMALL, *load_lines(), at("10:00:20", "TP0", DEBUG.replace("rest=-", "rest=")), BANNER, NO_MEMORY)
    (launch,) = read_text(text)
    found = explain_launch(launch, packs, Question())
    assert finding(found, "debug_profile") is not None
    assert found.sizing.cell is None
    assert found.sizing.avail is not None and pytest.approx(21.705 * GIB) == found.sizing.avail.amount.low


# -- several launches of one log -------------------------------------------------------------------------------------------------


def attempts(fraction: float, pool: list[str]) -> list[str]:
    """Return a launch that runs out of memory in its graphs, and one after it with too little for the weights."""
    first = [printed_args(mem_fraction_static=fraction, tp_size=1), *load_lines(), *pool, CAPTURE_OF_078, BANNER]
    second = [
        printed_args(mem_fraction_static=0.76, tp_size=1),
        *load_lines(),
        BANNER,
        NO_MEMORY.replace("0.55", "0.76"),
    ]
    return [*first, "torch.OutOfMemoryError: CUDA out of memory.", SIGQUIT, *second, SIGQUIT]


def test_two_launches_show_that_nothing_lies_between(explain: Explain) -> None:
    first, second = explain(*attempts(0.775, POOL_OF_0775))
    assert finding(first, "no_workable_fraction") is None
    found = finding(second, "no_workable_fraction")
    assert found is not None
    sentence = (
        "No workable fraction: 0.775 ran out of memory in launch 1 of this log, and the weights alone need 0.770."
    )
    assert ("error", sentence, NONE_BETWEEN, [8, 12, 11]) == (
        found.level,
        found.sentence,
        found.remedy,
        [pos.line for pos in found.evidence],
    )
    assert second.verdict.endswith(f"(line 14). {sentence} {NONE_BETWEEN}")
    assert (None, None, ()) == (second.direction, second.suggested, second.offers)
    assert second.diagnosis is not None and "not_enough_memory" == second.diagnosis.cause


def test_a_fraction_that_ran_out_before_bounds_what_is_suggested(explain: Explain) -> None:
    """Half way from 0.770 to 0.80 is 0.785; alone the launch would be told 0.81. Round values from 0.80 on are no offers."""
    first, second = explain(*attempts(0.80, POOL_OF_080))
    assert ["lower", "raise"] == [each.direction for each in (first, second)]
    assert 0.78 == second.suggested
    assert second.verdict.endswith(
        "Raise --mem-fraction-static to 0.78, which leaves 1.02 GiB for the KV cache, about 16,000 tokens; 0.770 is the least that "
        "starts. 0.8 ran out of memory in launch 1 of this log: mem_fraction_static has to stay below it."
    )
    assert [0.76, 0.77, 0.78] == [offer.grant.fraction for offer in second.offers]
    bound = finding(second, "runs_out_above")
    assert bound is not None
    assert ("note", [8]) == (bound.level, [pos.line for pos in bound.evidence])
    (alone,) = explain(*attempts(0.80, POOL_OF_080)[9:])
    assert (0.81, None) == (alone.suggested, finding(alone, "runs_out_above"))


def test_another_try_tells_bytes_per_token(explain: Explain) -> None:
    _, second = explain(*attempts(0.80, POOL_OF_080))
    assert second.sizing.cell is not None and "other launch" == second.sizing.cell.source
    assert {"by the other launch"} == {term.formula for term in second.budget if term.name == "bytes per token"}


@pytest.mark.parametrize(
    "change",
    [("tp_size=1", "tp_size=2"), ("/models/m'", "/models/other'"), ("server_args=", "no_args=")],
    ids=["tp_size", "model", "no arguments"],
)
def test_a_launch_of_other_arguments_bounds_nothing(change: tuple[str, str], explain: Explain) -> None:
    lines = attempts(0.80, POOL_OF_080)
    first = next(number for number, line in enumerate(lines) if "server_args" in line)
    lines[first] = lines[first].replace(*change)
    second = explain(*lines)[-1]
    assert (0.81, None, None) == (second.suggested, finding(second, "runs_out_above"), second.sizing.cell)


def test_what_another_process_took_or_a_cap_set_bounds_nothing(explain: Explain) -> None:
    foreign = [line.replace("CUDA out of memory.", FOREIGN) for line in attempts(0.80, POOL_OF_080)]
    capped = [line.replace("tp_size=1", "tp_size=1, max_total_tokens=44300") for line in attempts(0.80, POOL_OF_080)]
    for lines in (foreign, capped):
        first, second = explain(*lines)
        assert first.diagnosis is not None and "oom_graph_capture" == first.diagnosis.cause
        assert (0.81, None) == (second.suggested, finding(second, "runs_out_above"))


def test_two_launches_with_room_between_show_no_such_thing(explain: Explain) -> None:
    explanations = explain(*attempts(0.88, pool_lines()))
    assert ["lower", "raise"] == [each.direction for each in explanations]
    assert [None, None] == [finding(each, "no_workable_fraction") for each in explanations]
    assert 0.81 == explanations[1].suggested


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([printed_args(mem_fraction_static=0.9), *load_lines(after="4.00", used="90.04"), BANNER, NO_MEMORY], "not_enough_memory"),
        (
            [printed_args(mem_fraction_static=0.78), *load_lines(), *POOL_OF_078, CAPTURE_OF_078, BANNER, OUT_OF_MEMORY],
            "oom_graph_capture",
        ),
    ],
)  # fmt: skip
def test_where_no_fraction_works_none_is_suggested_in_any_direction(
    lines: list[str], cause: str, explain: Explain
) -> None:
    (found,) = explain(*lines)
    assert found.diagnosis is not None and cause == found.diagnosis.cause
    assert (None, None, ()) == (found.direction, found.suggested, found.offers)
    assert 1 == found.verdict.count("No workable fraction: ")
    assert found.verdict.endswith(NONE_WORKS)


# -- claims ----------------------------------------------------------------------------------------------------------------------

STANDS = [printed_args(mem_fraction_static=0.88, tp_size=1), *GOOD, READY_SOON]
CAPPED = [printed_args(mem_fraction_static=0.95, max_total_tokens=159269), *GOOD, READY_SOON]
SLACK = [printed_args(mem_fraction_static=0.8804), *GOOD, READY_SOON]
LEFT = [
    printed_args(
        kv_cache_dtype="auto", dtype="auto", context_length=None, attention_backend=None, page_size=1, quantization=None,
        load_format="auto", speculative_algorithm=None,
    ),
    at("10:00:01", "TP0", "Attention backend not set. Use fa3 backend by default."),
    at("10:00:02", "TP0", "Attention backend not set. Use flashinfer backend by default."),
    at("10:00:02", "TP0", "TensorRT-LLM MHA only supports page_size of 16, 32 or 64, changing page_size from 1 to 64."),
    *load_lines(), at("10:00:21", "TP0", "Using KV cache dtype: torch.bfloat16"), *pool_lines(),
    at(
        "10:00:51", "TP0", "max_total_num_tokens=159269, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, "
        "context_len=262144, available_gpu_mem=9.85 GB",
    ),
]  # fmt: skip
FP8_ROWS = [
    printed_args(kv_cache_dtype="auto"),
    at("10:00:22", "TP0", "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 318464, KV size: 10.42 GB"),
]
UINT8 = [FP8_ROWS[0], FP8_ROWS[1].replace("torch.float8_e4m3fn", "torch.uint8")]
CLAIMS: list[tuple[list[str], str, ArgValue, str, str]] = [
    (
        STANDS, "mem_fraction_static", 0.55, "claim_refuted",
        "mem_fraction_static 0.55 is not what ran: the pool implies 0.8798..0.8801; with 0.55 the budget would be -20.61 GiB.",
    ),
    (
        # 21.71 - 94.04 * 0.05 = 17.01
        STANDS, "mem_fraction_static", 0.95, "claim_refuted",
        "mem_fraction_static 0.95 is not what ran: the pool implies 0.8798..0.8801; with 0.95 the budget would be 17.01 GiB.",
    ),
    (
        STANDS, "mem_fraction_static", 0.88, "claim_confirmed",
        "mem_fraction_static 0.88 agrees with the pool, which implies 0.8798..0.8801.",
    ),
    (
        CAPPED, "mem_fraction_static", 0.55, "claim_refuted",
        "mem_fraction_static 0.55 is not what ran: the pool implies at least 0.8798; with 0.55 the budget would be -20.61 GiB.",
    ),
    (CAPPED, "mem_fraction_static", 0.9, "claim_refuted", "mem_fraction_static 0.9 is not what ran: it was 0.95."),
    (CAPPED, "mem_fraction_static", 0.95, "claim_confirmed", "mem_fraction_static 0.95 is in force."),
    (
        [printed_args(mem_fraction_static=0.88), *load_lines()], "mem_fraction_static", 0.55, "claim_refuted",
        "mem_fraction_static 0.55 is not what ran: it was 0.88.",
    ),
    (load_lines(), "mem_fraction_static", 0.55, "claim_open", "Whether mem_fraction_static 0.55 ran cannot be told from this log."),
    # 0.8801 + 0.045 / 94.035 is the most: what lies between the pool and it is the log's own value, or open
    (SLACK, "mem_fraction_static", 0.8804, "claim_confirmed",
     "mem_fraction_static 0.8804 is what the log prints; the pool implies 0.8798..0.8801, and memory taken before it was sized explains "
     "the rest."),
    (SLACK, "mem_fraction_static", 0.8803, "claim_refuted", "mem_fraction_static 0.8803 is not what ran: it was 0.8804."),
    (SLACK, "mem_fraction_static", 0.88, "claim_refuted", "mem_fraction_static 0.88 is not what ran: it was 0.8804."),
    (GOOD, "mem_fraction_static", 0.88, "claim_confirmed", "mem_fraction_static 0.88 agrees with the pool, which implies 0.8798..0.8801."),
    (GOOD, "mem_fraction_static", 0.8804, "claim_open",
     "mem_fraction_static 0.8804 lies above what the pool implies, 0.8798..0.8801. Memory taken before the pool was sized may explain "
     "that: whether it ran cannot be told from this log."),
    ([printed_args(mem_fraction_static=0.55), *GOOD], "mem_fraction_static", 0.55, "claim_refuted",
     "mem_fraction_static 0.55 is not what ran: the pool implies 0.8798..0.8801; with 0.55 the budget would be -20.61 GiB."),
    # a rank is missing, which may have less: neither value is proven
    ([printed_args(mem_fraction_static=0.55, tp_size=2), *GOOD], "mem_fraction_static", 0.55, "claim_open",
     "mem_fraction_static 0.55 is what the log prints; the pool implies 0.8798..0.8801: which of them ran cannot be told."),
    ([printed_args(mem_fraction_static=0.55, tp_size=2), *GOOD], "mem_fraction_static", 0.88, "claim_open",
     "mem_fraction_static 0.88 agrees with the pool, which implies 0.8798..0.8801; the log prints 0.55: which of them ran cannot be told "
     "from it."),
    (LEFT, "kv_cache_dtype", "bfloat16", "claim_confirmed",
     "kv_cache_dtype=bfloat16 is in force: it was auto, and became torch.bfloat16."),
    (LEFT, "kv_cache_dtype", "fp8_e4m3", "claim_refuted",
     "kv_cache_dtype=fp8_e4m3 is not what ran: it was auto, and became torch.bfloat16."),
    (LEFT, "kv_cache_dtype", "auto", "claim_confirmed", "kv_cache_dtype=auto is in force, as claimed."),
    (LEFT, "dtype", "bfloat16", "claim_confirmed", "dtype=bfloat16 is in force: it was auto, and became torch.bfloat16."),
    (LEFT, "dtype", "half", "claim_refuted", "dtype=half is not what ran: it was auto, and became torch.bfloat16."),
    (LEFT, "context_length", 262144, "claim_confirmed", "context_length=262144 is in force: it was not set, and became 262144."),
    (LEFT, "context_length", 4096, "claim_refuted", "context_length=4096 is not what ran: it was not set, and became 262144."),
    (LEFT, "attention_backend", "fa3", "claim_confirmed", "attention_backend=fa3 is in force: it was not set, and became fa3."),
    (LEFT, "page_size", 64, "claim_confirmed", "page_size=64 is in force: it was 1, and became 64."),
    (LEFT, "page_size", 1, "claim_refuted", "page_size=1 is not what ran: it was 1, and became 64."),
    (LEFT, "quantization", "fp8", "claim_open", "quantization=fp8 is claimed; it was not set, and what that became is not in this log."),
    (LEFT, "load_format", "dummy", "claim_open", "load_format=dummy is claimed; it was auto, and what that became is not in this log."),
    (LEFT, "speculative_algorithm", "EAGLE", "claim_refuted", "speculative_algorithm=EAGLE is not what ran: it was None."),
    (FP8_ROWS, "kv_cache_dtype", "fp8_e4m3", "claim_confirmed",
     "kv_cache_dtype=fp8_e4m3 is in force: it was auto, and became torch.float8_e4m3fn."),
    (UINT8, "kv_cache_dtype", "fp8_e4m3", "claim_open",
     "kv_cache_dtype=fp8_e4m3 is claimed; it was auto, and what that became is not in this log."),
    # the line may be about the draft's backend
    ([printed_args(attention_backend="fa3"), LEFT[2]], "attention_backend", "fa3", "claim_confirmed",
     "attention_backend=fa3 is in force, as claimed."),
    (STANDS, "tp_size", 8, "claim_refuted", "tp_size=8 is not what ran: it was 1."),
    (STANDS, "tp_size", 1, "claim_confirmed", "tp_size=1 is in force, as claimed."),
    (STANDS, "dp_size", 2, "claim_open", "dp_size=2 is claimed; what is in force is not in this log."),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "name", "value", "finding_id", "sentence"), CLAIMS)
def test_a_claim_is_answered_first(
    lines: list[str], name: str, value: ArgValue, finding_id: str, sentence: str, explain: Explain
) -> None:
    (found,) = explain(*lines, claims={name: value})
    answer = finding(found, finding_id)
    assert answer is not None
    assert sentence == answer.sentence
    assert said(found).startswith(sentence.removesuffix("."))
    assert ("error" if finding_id == "claim_refuted" else "note") == answer.level


def test_the_sentence_after_a_claim_begins_with_a_capital(explain: Explain) -> None:
    (found,) = explain(*STANDS, claims={"tp_size": 1})
    assert "tp_size=1 is in force, as claimed (line 1). Ready after 55 s: 1 rank, 159,269 tokens" in found.verdict


# -- what-ifs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "high", 1.5, 1, 0, -1, True, None])
def test_a_claim_that_is_no_fraction_is_refused(value: ArgValue) -> None:
    with pytest.raises(UsageError, match=r"is no fraction\n  do: give a number between 0 and 1"):
        check_question(Question(claims={"mem_fraction_static": value}))


@pytest.mark.parametrize(("cap", "remark", "tokens"), [(159000, "capped", 159000), (900000, "more than fits", 159400)])
def test_a_cap_beyond_the_memory_is_marked(cap: int, remark: str, tokens: int, explain: Explain) -> None:
    """The memory holds 159,400: 10.425 GiB + 0.01 over 70,214 bytes."""
    (found,) = explain(*STANDS, what_if={"max_total_tokens": cap})
    (answer,) = found.answers
    assert answer.grant.tokens is not None
    assert remark == answer.why
    assert tokens == pytest.approx(answer.grant.tokens.high, rel=0.002)


def test_what_ifs_are_answered_alone_and_together(explain: Explain) -> None:
    """FP8 halves the cell of 10.415..10.425 GiB for 159,270 tokens; 0.80 leaves 2.896..2.908 GiB."""
    asked: dict[str, ArgValue] = {"mem_fraction_static": 0.8, "kv_cache_dtype": "fp8_e4m3", "max_total_tokens": 50000}
    (found,) = explain(*STANDS, what_if=asked)
    assert [
        ("mem_fraction_static=0.8", (44244, 44470), ""),
        ("kv_cache_dtype=fp8_e4m3", (318375, 319023), ""),
        ("max_total_tokens=50000", (50000, 50000), "capped"),
        ("mem_fraction_static=0.8 kv_cache_dtype=fp8_e4m3 max_total_tokens=50000", (50000, 50000), "capped"),
    ] == [
        (each.flags, each.grant.tokens and (each.grant.tokens.low, each.grant.tokens.high), each.why)
        for each in found.answers
    ]


def test_a_what_if_that_fails_says_so(explain: Explain) -> None:
    (found,) = explain(*STANDS, what_if={"mem_fraction_static": 0.7})
    assert ["fails"] == [each.why for each in found.answers]


OOM_AT_088 = [
    printed_args(mem_fraction_static=0.88),
    *load_lines(),
    *pool_lines(),
    graph_lines()[0],
    BANNER,
    OUT_OF_MEMORY,
]


@pytest.mark.parametrize(
    ("lines", "what_if", "sentence"),
    [
        (
            # 21.71 - 10.42 - 9.85 = 1.44, 1.42 at least; 94.04 * 0.016 = 1.505, 94.04 * 0.015 = 1.41
            STANDS, {"mem_fraction_static": 0.985},
            "mem_fraction_static=0.985 runs out of memory: it keeps 1.41 GiB free, and 1.42..1.46 GiB went beside the pools in this "
            "launch.",
        ),
        (STANDS, {"mem_fraction_static": 0.984}, None),
        (STANDS, {"mem_fraction_static": 0.985, "max_total_tokens": 1000}, "alone"),
        (STANDS[:-1], {"mem_fraction_static": 0.985}, None),  # not ready: what is still to come is not in the log
        ([STANDS[0].replace("tp_size=1", "device='cpu'"), *STANDS[1:]], {"mem_fraction_static": 0.985}, None),
        (OOM_AT_088, {"mem_fraction_static": 0.9}, "mem_fraction_static=0.9 runs out of memory, as 0.88 did in this launch."),
        (OOM_AT_088, {"page_size": 64}, "page_size=64 runs out of memory, as 0.88 did in this launch."),
        (OOM_AT_088, {"mem_fraction_static": 0.87}, None),
        (OOM_AT_088, {"max_total_tokens": 1000}, None),
        ([*OOM_AT_088[:-1], FOREIGN], {"mem_fraction_static": 0.9}, None),
    ],
)  # fmt: skip
def test_a_what_if_that_keeps_too_little_free_says_so(
    lines: list[str], what_if: dict[str, ArgValue], sentence: str | None, explain: Explain
) -> None:
    (found,) = explain(*lines, what_if=what_if)
    said = finding(found, "what_if_runs_out")
    if sentence is None:
        assert said is None
        assert "runs out" not in [each.why for each in found.answers]
    elif sentence == "alone":  # with the cap there is room
        assert ["runs out", "capped", "capped"] == [each.why for each in found.answers]
    else:
        assert said is not None
        assert (sentence, "warning") == (said.sentence, said.level)
        assert ["runs out"] == [each.why for each in found.answers]


def test_an_earlier_try_that_ran_out_bounds_what_ifs_too(explain: Explain) -> None:
    again = [printed_args(mem_fraction_static=0.55), *load_lines(), BANNER, NO_MEMORY]
    found = explain(*OOM_AT_088, *again, what_if={"mem_fraction_static": 0.9})[1]
    said = finding(found, "what_if_runs_out")
    assert said is not None
    assert "mem_fraction_static=0.9 runs out of memory: 0.88 did in launch 1 of this log." == said.sentence


def test_no_fraction_is_offered_that_keeps_less_than_was_taken_beside_the_pools(explain: Explain) -> None:
    """21.71 - 10.42 - 2.00 = 9.29 GiB went beside them; 0.90 keeps 9.40, 0.92 only 7.52."""
    lines = [*GOOD[:-1], graph_lines(after="2.00", used="9.26")[1], READY_SOON]
    (found,) = explain(printed_args(mem_fraction_static=0.88), *lines)
    assert [0.8, 0.85, 0.88, 0.9] == [each.grant.fraction for each in found.offers]


def test_a_log_without_figures_answers_no_what_if_and_says_so(explain: Explain) -> None:
    (found,) = explain(*pool_lines(), what_if={"mem_fraction_static": 0.7, "page_size": 64})
    assert () == found.answers
    said = finding(found, "what_if_open")
    assert said is not None
    assert (
        "What another mem_fraction_static and page_size would give cannot be told: it rests on free memory before and after the "
        "weights, and on mem_fraction_static, and not all of them are in this log."
    ) == said.sentence
    for (other,) in (explain(*STANDS, what_if={"page_size": 64}), explain(*pool_lines())):
        assert finding(other, "what_if_open") is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tp_size", 4, "no what-if for 'tp_size': its effect is not modelled"),
        ("mem_fraction_static", 1.5, "mem_fraction_static=1.5 is no fraction"),
        ("mem_fraction_static", 0, "mem_fraction_static=0 is no fraction"),
        ("mem_fraction_static", "high", "mem_fraction_static=high is no fraction"),
        ("mem_fraction_static", True, "mem_fraction_static=True is no fraction"),
        ("page_size", 0, "page_size=0 is no whole number above 0"),
        ("page_size", 2.5, "page_size=2.5 is no whole number above 0"),
        ("max_total_tokens", -1, "max_total_tokens=-1 is no whole number above 0"),
        ("kv_cache_dtype", "int3", "no what-if for kv_cache_dtype=int3"),
    ],
)
def test_a_what_if_that_cannot_be_answered_is_refused(name: str, value: ArgValue, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_question(Question({name: value}))
    assert message == str(caught.value).splitlines()[0]
    assert str(caught.value).splitlines()[1].startswith("  do: ")


# -- what was enough to judge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "judged"),
    [
        ([*load_lines()], False),
        ([*load_lines(), pool_lines()[0]], True),
        ([printed_args(), *load_lines()], False),
        ([printed_args(), *load_lines(), BANNER, NO_MEMORY], True),
        ([printed_args(), *load_lines(), READY_SOON], True),
        ([SIGQUIT], True),
    ],
    ids=["weights only", "a pool", "unfinished", "failed", "ready", "a consequence"],
)  # fmt: skip
def test_a_log_with_an_outcome_or_a_pool_can_be_judged(lines: list[str], judged: bool, explain: Explain) -> None:
    assert judged == explain(*lines)[-1].judged


def test_one_pasted_line_says_size_and_bytes_per_token(explain: Explain) -> None:
    """8.225..8.235 GiB twice over 367,405 rows."""
    (found,) = explain("KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB")
    assert (
        "16.46 GiB of KV cache (keys and values together) for 367,404 tokens, 48,075..48,134 bytes per token; "
        "the log shows only this part of the launch."
    ) == said(found)


# -- what is offered -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "fractions"),
    [
        ("baseline", [0.8, 0.85, 0.88, 0.9, 0.92]),
        ("0.5.9-fakecuda-graph-oom", [0.6, 0.67, 0.867]),  # none between that would run out again
        ("0.5.18-new-fakecuda-notenough", [0.01, 0.073, 0.46, 0.5, 0.6]),
        ("0.5.23-port-in-use", []),  # memory has no part in it
        ("0.5.23-kill9-scheduler", []),
        ("0.4.10.post2-ok", []),  # a cap sets the pool: another fraction changes nothing
    ],
)
def test_fractions_are_offered_where_the_fraction_decides(
    case: str, fractions: list[float], fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    found = explain_launch(fixture_launches[case], packs, Question())
    assert fractions == [offer.grant.fraction for offer in found.offers]


def test_what_a_token_is_charged_is_a_term_of_its_own_with_a_draft(
    fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    def terms(case: str) -> list[str]:
        return [term.name for term in explain_launch(fixture_launches[case], packs, Question()).budget]

    assert "bytes per token, charged" in terms("0.5.14-new-eagle-tp2")
    assert "bytes per token, charged" not in terms("0.5.9-new-eagle-tp2")


def test_a_printed_nothing_is_not_rounded_to_something(explain: Explain) -> None:
    """K 0.00 and V 0.00 are 0..0.01 GiB in all."""
    pool = at("10:00:21", "TP0", "KV Cache is allocated. #tokens: 20000, K size: 0.00 GB, V size: 0.00 GB")
    (found,) = explain(printed_args(), *load_lines(), pool, READY_SOON)
    (size,) = [term.amount for term in found.budget if term.name == "KV cache, as allocated"]
    assert "0.00..0.01" == gib_text(size)


@pytest.mark.parametrize(
    ("lines", "remedy"), [([READY_SOON.replace("10:00:55", "10:02:00")], True), ([], False)], ids=["ready", "not"]
)
def test_only_a_launch_that_became_ready_is_told_to_mend_its_storage(
    lines: list[str], remedy: bool, explain: Explain
) -> None:
    """One that hangs, or whose log ends before it is ready, has another thing to mend."""
    found = finding(explain(*slow_load(100)[:3], *lines)[0], "slow_phase")
    assert found is not None
    assert bool(found.remedy) is remedy


def test_a_launch_that_died_is_not_told_to_mend_its_storage(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    found = explain_launch(fixture_launches["car"], packs, Question())
    assert [""] == [finding.remedy for finding in found.findings if finding.id == "slow_phase"]


def test_a_long_word_is_cut_inside_and_not_left_out() -> None:
    text = f"RuntimeError: [{'../third_party/' * 6}pair.cc:534] Connection closed by peer"
    assert "RuntimeError: [../third_party/../third_party/../third_pa ..." == clip(text, 60)
    assert "Received sigquit from a child ..." == clip("Received sigquit from a child process. It", 36)
