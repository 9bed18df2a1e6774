"""What causes are told from: both launches, the terms of the budget, arguments, steps, times; and a single effect."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from logscope.differ.types import ArgChange, Attribution, Change, PhaseTime, Side
from logscope.packs import Packs

BESIDE = ("graphs", "draft_memory", "distributed_init_beside", "pool")  # effects on memory that is not the budget's


class Effect(Struct, frozen=True):
    """Something measurable that differs: a term of the budget, memory beside it, or time (seconds).

    ``before`` and ``after`` are its own figures; ``where`` are the ranks that it is about, empty where that is all of them.
    """

    term: str
    bytes: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    before: str | None = None
    after: str | None = None
    where: str = ""

    @property
    def weight(self) -> float:
        """How much it is, among its like."""
        return abs(next((each for each in (self.seconds, self.tokens, self.bytes) if each is not None), 0.0))

    @property
    def is_up(self) -> bool:
        """Whether it is more after than before."""
        return next((each for each in (self.seconds, self.bytes, self.tokens) if each is not None), 0.0) > 0

    @property
    def is_of_budget(self) -> bool:
        """Whether it is an effect on the KV budget or the capacity."""
        return self.seconds is None and self.term not in BESIDE


class Evidence(Struct, frozen=True):
    """All that causes are told from."""

    before: Side
    after: Side
    packs: Packs
    budget: Attribution
    args: Sequence[ArgChange]
    changes: Sequence[Change]
    times: Sequence[PhaseTime]

    @property
    def may_be_one_release(self) -> bool:
        """Whether both launches may be of the same release."""
        other = self.after.launch.releases
        return self.before.launch.releases.overlaps(other.since, other.until)

    @property
    def both_ready(self) -> bool:
        """Whether both launches became ready: only then their times as a whole compare."""
        return all(side.launch.outcome.kind == "ready" for side in (self.before, self.after))
