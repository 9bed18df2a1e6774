"""A rank is its whole tag; what the tag does not say is unknown."""

import itertools

import pytest

from logscope.rank import Rank, parse_rank


@pytest.mark.parametrize(
    ("tag", "rank"),
    [
        ("", Rank()),
        ("TP0", Rank("TP0", tp=0)),
        ("DP1 TP1", Rank("DP1 TP1", dp=1, tp=1)),
        ("DP0 TP10 EP10", Rank("DP0 TP10 EP10", dp=0, tp=10, ep=10)),
        ("PP0 TP1", Rank("PP0 TP1", pp=0, tp=1)),
        ("ATTN_CP5 TP5", Rank("ATTN_CP5 TP5", attn_cp=5, tp=5)),
        ("DP0 PP1 ATTN_CP5 MOE_DP0 TP5 EP5", Rank("DP0 PP1 ATTN_CP5 MOE_DP0 TP5 EP5", None, 0, 1, 5, 5, 5, 0)),
        ("gpu_id=3", Rank("gpu_id=3", gpu=3)),
        (
            "DisaggregationMode.IGPUDECODE TP1",
            Rank("DisaggregationMode.IGPUDECODE TP1", tp=1, extra="DisaggregationMode.IGPUDECODE"),
        ),
        ("encode_dp_worker[0]", Rank("encode_dp_worker[0]", extra="encode_dp_worker[0]")),
        ("TP", Rank("TP", extra="TP")),
        ("XTP0", Rank("XTP0", extra="XTP0")),
        (" DP0  TP1 ", Rank("DP0 TP1", dp=0, tp=1)),
    ],
)
def test_tag_is_read(tag: str, rank: Rank) -> None:
    assert rank == parse_rank(tag)


def test_missing_rank_tag_is_unknown_not_zero() -> None:
    rank = parse_rank("")
    assert (None, None, None, None) == (rank.dp, rank.pp, rank.tp, rank.ep)
    assert parse_rank("TP0") != rank


def test_identity_is_the_whole_tag_and_the_node() -> None:
    tags = ("TP1", "DP0 TP1", "DP1 TP1", "DP1 TP1 EP1", "Decode TP1")
    ranks = {parse_rank(tag, node) for tag in tags for node in (None, 0, 1)}
    assert 15 == len(ranks)
    assert parse_rank("DP1 TP1") == parse_rank("DP1  TP1")


def test_order_is_numeric() -> None:
    tags = ["TP10", "TP2", "DP1 TP0", "TP0", "DP0 TP11", "DP0 TP9"]
    assert ["TP0", "TP2", "TP10", "DP0 TP9", "DP0 TP11", "DP1 TP0"] == [r.tag for r in sorted(map(parse_rank, tags))]


def test_nodes_come_before_tags_in_order() -> None:
    ranks = [parse_rank("TP0", 10), parse_rank("TP1", 2), parse_rank("TP0", 2)]
    assert [(2, "TP0"), (2, "TP1"), (10, "TP0")] == [(rank.node, rank.tag) for rank in sorted(ranks)]


def test_order_agrees_with_identity() -> None:
    ranks = [
        parse_rank(tag, node) for tag in ("", "TP0", "TP1", "a TP0", "b TP0", "EP0", "gpu_id=0") for node in (None, 0)
    ]
    for one, other in itertools.product(ranks, ranks):
        assert (one == other) == (not one < other and not other < one)


def test_label_is_for_people() -> None:
    assert "TP3" == parse_rank("TP3").label
    assert "(no tag)" == parse_rank("").label
    assert "node 1 TP3" == parse_rank("TP3", 1).label
