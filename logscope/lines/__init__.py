"""From blocks of bytes to messages."""

from __future__ import annotations

from logscope.lines.prefixes import peel_outer, split_at_prefixes
from logscope.lines.read import build_gate, read_lines
from logscope.lines.secrets import REDACTED, redact

__all__ = ["REDACTED", "build_gate", "peel_outer", "read_lines", "redact", "split_at_prefixes"]
