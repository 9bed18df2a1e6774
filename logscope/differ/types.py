"""What differs between launches: steps, arguments, the terms of the budget, causes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from logscope.causes import Diagnosis
from logscope.model import Launch, Pos
from logscope.sizing import Sizing

Verdict = Literal["same", "changed", "unknown"]
Origin = Literal["typed", "derived", "environment", "log line"]
_SETTINGS = {  # numbers of tokens that lines repeat from the arguments or the model, and what SGLang calls them
    "chunked_prefill_size_tokens": "chunked_prefill_size", "max_prefill_tokens": "max_prefill_tokens",
    "context_len_tokens": "context_len", "context_length_tokens": "context_length", "page_size_tokens": "page_size",
}  # fmt: skip
CauseKind = Literal["argument", "environment", "inferred", "memory", "time", "failure", "release"]


class Change(Struct, frozen=True):
    """One value of one step in both launches. Numbers in base units (``unit``: bytes, s, tokens, or empty); texts have no ``delta``.

    ``rank`` is a rank's tag; "least" or "most" where the topologies differ. ``order`` is where the step stands in a launch.
    """

    worker: str | None
    phase: str
    event: str
    role: str
    field: str
    rank: str
    before: float | str | None
    after: float | str | None
    delta: float | None
    unit: str
    verdict: Verdict
    reason: str
    before_at: Pos | None
    after_at: Pos | None
    order: int

    @property
    def is_worth_showing(self) -> bool:
        """Whether it is more than noise: changed, or a step that one launch did not reach, or one of its ranks does not print."""
        is_absent = self.reason.startswith(("not reached", "this rank is silent"))
        return self.verdict == "changed" or (is_absent and self.unit in ("bytes", "tokens"))

    @property
    def is_amount(self) -> bool:
        """Whether it is memory, time or capacity; other numbers are settings that lines repeat."""
        return self.unit in ("bytes", "s") or (self.unit == "tokens" and self.field not in _SETTINGS)

    @property
    def setting(self) -> str:
        """What SGLang calls a number that is no amount."""
        return _SETTINGS.get(self.field, self.field)


class ArgChange(Struct, frozen=True):
    """An argument, environment variable or fact that differs. ``noise``: it differs from run to run and means nothing."""

    name: str
    before: str | None
    after: str | None
    origin: Origin | None
    noise: bool


class Term(Struct, frozen=True):
    """A part of the change of the budget, in bytes on each rank, and what it is worth in tokens (None: no cell size known).

    ``before`` and ``after`` are the amounts behind it, in bytes; None where they are not told or printed by lines of their own.
    """

    term: str
    bytes: float
    tokens: float | None
    step: float
    before: float | None = None
    after: float | None = None


class Attribution(Struct, frozen=True):
    """The change of the KV budget, split into terms that add up with the residual; bytes on each rank and tokens.

    ``before`` and ``after`` are the budgets, None where a launch does not tell it; then there are no terms. ``missing`` is the residual
    as a term: how much less than free memory and fraction give the pools have in each launch. ``named_between`` is what lines call the
    memory that went between the weights and the pools, empty where they do not.
    """

    before: float | None
    after: float | None
    terms: tuple[Term, ...]
    residual: float
    tokens_before: float | None
    tokens_after: float | None
    residual_tokens: float | None
    missing: Term | None = None
    named_between: str = ""

    @property
    def change(self) -> float | None:
        """The change of the budget, bytes."""
        return None if self.before is None or self.after is None else self.after - self.before


class PhaseTime(Struct, frozen=True):
    """The time of a phase in both launches, seconds: of the rank that took longest. None where it was not reached."""

    phase: str
    before: float | None
    after: float | None


class Cause(Struct, frozen=True):
    """Why the launches differ: what was changed, and what that explains (after - before); ``sentence`` says it.

    ``is_of_budget``: it acts on the KV budget or the capacity, not on memory beside it or on time. ``together_with`` are arguments that
    act on the same: the logs do not tell their parts from this one's.
    """

    kind: CauseKind
    name: str
    before: str | None
    after: str | None
    explains_bytes: float | None
    explains_tokens: float | None
    sentence: str
    is_of_budget: bool = False
    together_with: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that is blamed."""
        return (self.name, *self.together_with)


class RuledOut(Struct, frozen=True):
    """What differs and is not the cause: its effect in bytes, and why that is told."""

    name: str
    bytes: float | None
    reason: str


class Divergence(Struct, frozen=True):
    """The first step at which the launches part. The values are of ``rank``; ``ranks`` are all that part there, and
    ``of`` says how many have the step.
    """

    worker: str | None
    phase: str
    event: str
    role: str
    field: str
    rank: str
    ranks: tuple[str, ...]
    of: int
    before: float | str | None
    after: float | str | None
    unit: str
    reason: str


class Side(Struct, frozen=True):
    """One launch of the comparison: its name for people, its figures, and why it failed."""

    name: str
    launch: Launch
    sizing: Sizing
    diagnosis: Diagnosis | None


class Difference(Struct, frozen=True):
    """All of it. ``lines`` are the verdict, sentence by sentence; ``notes`` say what could not be compared, and why; ``absent`` are the
    sentences of the verdict about ranks that are missing or silent.
    """

    before: Side
    after: Side
    baselines: int
    lines: tuple[str, ...]
    causes: tuple[Cause, ...]
    ruled_out: tuple[RuledOut, ...]
    args: tuple[ArgChange, ...]
    budget: Attribution
    times: tuple[PhaseTime, ...]
    changes: tuple[Change, ...]
    first: Divergence | None
    notes: tuple[str, ...]
    absent: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether anything changed beyond tolerance: a step, or how the launch went."""
        return bool(self.causes or self.absent) or any(each.is_worth_showing for each in self.changes)
