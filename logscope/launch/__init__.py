"""From events to launches: split streams, tell workers apart, pair phases, judge the outcome, join nodes."""

from logscope.launch.build import MIXED, NodeJoiner, NodeLog, are_nodes, build_launches, on_one_clock
from logscope.launch.outcome import LogEnd, is_bare_banner, judge
from logscope.launch.phases import pair_phases
from logscope.launch.releases import infer_releases, meet_ranges
from logscope.launch.split import Segment, Splitter, split_streams
from logscope.launch.workers import assign_workers

__all__ = [
    "MIXED",
    "LogEnd",
    "NodeJoiner",
    "NodeLog",
    "Segment",
    "Splitter",
    "are_nodes",
    "assign_workers",
    "build_launches",
    "infer_releases",
    "is_bare_banner",
    "judge",
    "meet_ranges",
    "on_one_clock",
    "pair_phases",
    "split_streams",
]
