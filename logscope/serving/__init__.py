"""The lines of serving: read fast, told apart by launch and rank, summed up over time."""

from logscope.serving.frames import ServingFrames, read_frames
from logscope.serving.read import Part, Serving, read_parts
from logscope.serving.types import DATED_FROM_S, DECODE, PREFILL, RETRACT, Batch, Unread, Vocabulary

__all__ = [
    "DATED_FROM_S",
    "DECODE",
    "PREFILL",
    "RETRACT",
    "Batch",
    "Part",
    "Serving",
    "ServingFrames",
    "Unread",
    "Vocabulary",
    "read_frames",
    "read_parts",
]
