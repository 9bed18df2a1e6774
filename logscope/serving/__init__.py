"""The lines of serving: read fast, told apart by launch and rank, summed up over time."""

from logscope.serving.read import Part, Serving, read_parts
from logscope.serving.types import DECODE, PREFILL, RETRACT, Batch, Unread, Vocabulary

__all__ = ["DECODE", "PREFILL", "RETRACT", "Batch", "Part", "Serving", "Unread", "Vocabulary", "read_parts"]
