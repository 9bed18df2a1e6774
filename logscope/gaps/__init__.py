"""What the pattern files do not know of logs (``find``), written as a pattern file to start from (``pack``)."""

from logscope.gaps.find import Gap, find_gaps
from logscope.gaps.pack import gap_pack

__all__ = ["Gap", "find_gaps", "gap_pack"]
