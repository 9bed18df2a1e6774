"""The data that passes between stages. Plain, frozen, in base units: bytes, seconds, tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from packaging.version import Version

from logscope.packs import Blame, Form, Pattern
from logscope.rank import Rank
from logscope.server_args import Command, ServerArgs
from logscope.units import Quantity

Worker = Literal["target", "draft"]
OutcomeKind = Literal["ready", "failed", "hung", "cut", "running"]
Ended = Literal["stopped", "failed"]
Level = Literal["error", "warning", "note"]
DataParallel = Literal["replicas", "attention"]
Value = Quantity | str | tuple[str | int, ...] | ServerArgs | Command


class Pos(Struct, frozen=True):
    """A physical line of a file, counted from 1 as ``grep -n`` does."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LogLine(Struct, frozen=True):
    """One message: a piece of a physical line, without the prefixes and with secrets redacted.

    ``time`` is SGLang's own clock and ``outer_time`` that of a container or supervisor, as printed. ``origin`` is who said it, where a
    prefix tells (a pod, a container, a task, an actor), ``stream`` which of its output streams. ``whole`` is False for the
    last line of a file that has no line end: it may be cut anywhere. ``block`` names a block (a traceback) that the line is inside of,
    ``closes`` one that it is the last line of. ``loose``: it may be part of another message: it stands behind one of SGLang's on the
    same line, or without a prefix while a block is open.
    """

    pos: Pos
    text: str
    tags: str = ""
    time: str | None = None
    outer_time: str | None = None
    origin: str = ""
    prefixed: bool = False
    whole: bool = True
    block: str | None = None
    closes: str | None = None
    stream: str = ""
    loose: bool = False


class Event(Struct, frozen=True):
    """One recognised message. ``values`` are in base units, by result name. Which worker it is about only the launch knows.

    ``time`` and ``outer_time`` are as in ``LogLine``; ``clock`` is the one of them that the launch goes by. ``text`` is the
    message without prefixes. ``whole`` is False at the end of a file without a line end: the line may have gone on, and its wording may be
    another.
    """

    pos: Pos
    time: str | None
    rank: Rank
    pattern: Pattern
    form: Form
    values: Mapping[str, Value]
    outer_time: str | None = None
    origin: str = ""
    text: str = ""
    whole: bool = True
    clock: str | None = None

    def quantity(self, name: str) -> Quantity | None:
        """Return a number by its result name, None where it was not printed."""
        value = self.values.get(name)
        return value if isinstance(value, Quantity) else None

    def string(self, name: str) -> str | None:
        """Return a text by its result name, None where it was not printed."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None


class Drift(Struct, frozen=True):
    """A line that holds the literal of ``patterns`` in a wording that no form fits. ``cut``: it is the unfinished end of a file."""

    pos: Pos
    time: str | None
    rank: Rank
    text: str
    patterns: tuple[str, ...]
    outer_time: str | None = None
    origin: str = ""
    cut: bool = False

    @property
    def clock(self) -> str | None:
        """The time as printed, by whichever clock the line has."""
        return self.time or self.outer_time


class Tally(Struct, frozen=True):
    """What became of the physical lines: ``lines == events + drift + rest``."""

    lines: int = 0
    events: int = 0
    drift: int = 0
    rest: int = 0


class PhaseSpan(Struct, frozen=True):
    """One phase of one worker of one rank. ``end`` is None when the log stops before it, ``begin`` when the log does not show it."""

    phase: str
    rank: Rank
    worker: Worker | None
    kind: str | None
    begin: Event | None
    end: Event | None
    points: tuple[Event, ...] = ()


class Outcome(Struct, frozen=True):
    """How the launch went, and the lines that say so. ``reason`` is the text of the failure, as printed.

    ``blame`` is that of the failure's event: a "banner" or a "consequence" does not say why. ``ranks`` are those that say it.
    """

    kind: OutcomeKind
    evidence: tuple[Pos, ...] = ()
    reason: str | None = None
    event: str | None = None
    ranks: tuple[Rank, ...] = ()
    blame: Blame = "cause"


class Ending(Struct, frozen=True):
    """How a launch ended that had been ready, and the lines that say so."""

    kind: Ended
    evidence: tuple[Pos, ...] = ()
    reason: str | None = None
    event: str | None = None
    blame: Blame = "cause"


class Finding(Struct, frozen=True):
    """Something worth saying of a launch: a sentence, the lines that show it, and what to do about it (may be empty)."""

    id: str
    level: Level
    sentence: str
    evidence: tuple[Pos, ...] = ()
    remedy: str = ""


class ReleaseRange(Struct, frozen=True):
    """The SGLang releases that the wordings allow: from ``since`` on, before ``until``; None is open. Empty if they disagree."""

    since: str | None = None
    until: str | None = None
    empty: bool = False

    def __str__(self) -> str:
        if self.empty:
            return "no single release has all of it"
        bounds = (f">={self.since}" if self.since else "", f"<{self.until}" if self.until else "")
        return ", ".join(bound for bound in bounds if bound) or "any"

    def overlaps(self, since: str | None, until: str | None) -> bool:
        """Return whether it may be a release from ``since`` on and before ``until``; None is open.

        ``not overlaps(None, x)``: surely x or later; ``not overlaps(x, None)``: surely before x.
        """
        is_late = until is not None and self.since is not None and Version(self.since) >= Version(until)
        is_early = since is not None and self.until is not None and Version(self.until) <= Version(since)
        return not is_late and not is_early


class Node(Struct, frozen=True):
    """One stream of a launch: a file, or what one origin said in it. ``number`` is the node's rank where ``server_args`` tell."""

    file: str
    origin: str
    number: int | None
    first_line: int
    last_line: int


class Launch(Struct, frozen=True):
    """What a log says of one launch, without opinion.

    ``has_start``: the log shows it from its beginning. ``followed_by``: where the next launch begins in the same stream.
    ``data_parallel``: several DP numbers are replicas of the model, or groups of one model's attention; None where
    there is but one. ``events`` are in file order; ``workers`` stand beside them, one per event. ``args`` are those in
    force (of the first node that prints them), ``command`` what was typed where the log shows it.
    """

    number: int
    nodes: tuple[Node, ...]
    events: tuple[Event, ...]
    workers: tuple[Worker | None, ...]
    spans: tuple[PhaseSpan, ...]
    drift: tuple[Drift, ...]
    ranks: tuple[Rank, ...]
    args: ServerArgs
    command: Command | None
    tally: Tally
    releases: ReleaseRange
    outcome: Outcome
    ended: Ending | None = None
    has_start: bool = True
    followed_by: Pos | None = None
    data_parallel: DataParallel | None = None
    notes: tuple[str, ...] = ()
    omitted: Mapping[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The files of the launch, for people."""
        return ", ".join(dict.fromkeys(node.file for node in self.nodes))
