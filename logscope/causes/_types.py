"""What a cause is told from, and what it says."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from logscope.model import Event, Finding, Launch, Pos
from logscope.packs import Packs
from logscope.sizing import Sizing

Direction = Literal["raise", "lower"]


class Case(Struct, frozen=True):
    """A launch that failed.

    Attributes:
        root: the first line that says why; where none does, the first banner or consequence.
        said: what is to be judged: ``root``, or the message of a banner read as a line of its own.
        phase: where the rank of ``root`` was: the phase that is open, else the last one that ended; None before any.
        is_open: whether that phase had begun and not ended.
        was_ready: whether the server had been ready before it failed.
    """

    launch: Launch
    packs: Packs
    sizing: Sizing
    root: Event
    said: Event
    phase: str | None
    is_open: bool
    was_ready: bool

    @property
    def message(self) -> str:
        """The text of the line to be judged."""
        return " ".join(self.said.text.split())

    @property
    def is_out_of_device_memory(self) -> bool:
        """Whether an allocator of the device got no more memory."""
        return self.said.pattern.id in ("failure.out_of_memory", "failure.driver_out_of_memory") or (
            self.said.pattern.id == "failure.capture_failed" and self.said.quantity("asked_bytes") is not None
        )

    def tells(self, cause: str) -> bool:
        """Return whether the line alone tells this cause, by its pattern file."""
        return self.said.pattern.cause == cause


class Diagnosis(Struct, frozen=True):
    """A root cause.

    Attributes:
        cause: its stable id.
        sentence: what happened and why, with numbers; a fragment without a full stop that reads after "failed after 31 s: ".
        direction: whether mem_fraction_static has to be raised or lowered; None where it is not the flag to turn.
        remedy: what to do, sentences; the flag with its value where there is one.
        evidence: lines beyond ``Case.root``.
        findings: what else this cause has to say.
        fraction: the fraction to lower to, where the remedy names one.
    """

    cause: str
    sentence: str
    direction: Direction | None = None
    remedy: str = ""
    evidence: tuple[Pos, ...] = ()
    findings: tuple[Finding, ...] = ()
    fraction: float | None = None
