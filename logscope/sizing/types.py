"""What a launch's lines say about the size of its KV cache: figures with their lines, as intervals."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from logscope.budget import Interval
from logscope.model import Pos, Worker
from logscope.rank import Rank

CellSource = Literal["pool line", "DEBUG line", "model config", "given", "other log", "other launch"]
BoundBy = Literal["fraction", "max_total_tokens", "mamba", "swa", "draft", "page"]
Verdict = Literal["meets", "below", "above", "unknown"]


class Stated(Struct, frozen=True):
    """A figure and the line that states it; ``derived`` where it is a sum or difference of printed ones."""

    amount: Interval
    pos: Pos
    derived: bool = False


class Pool(Struct, frozen=True):
    """One pool of one rank. ``item`` is its name in the ledger, ``size`` in bytes; ``tokens`` None where the line has none."""

    worker: Worker | None
    item: str
    label: str
    tokens: float | None
    size: Interval
    pos: Pos


class RankSizing(Struct, frozen=True):
    """The figures of one rank, bytes.

    ``total`` is T, free before the weights; ``avail`` is A, free when the pools are due; ``after`` is free when they stand;
    ``last`` is what the rank states last. ``unexplained``: taken between A and ``after`` without any line that says so, at most.
    """

    rank: Rank
    total: Stated | None
    avail: Stated | None
    pools: tuple[Pool, ...]
    after: Stated | None
    last: Stated | None
    unexplained: float | None


class Cell(Struct, frozen=True):
    """Bytes per token and rank. ``charged`` is what the budget pays for a token: with the draft's layers, where they count."""

    size: Interval
    charged: Interval
    source: CellSource


class Profile(Struct, frozen=True):
    """A DEBUG line with the terms of the budget, and what of it does not fit the rest of it (empty: all of it is confirmed)."""

    pos: Pos
    rest: Interval | None
    tokens: float | None
    faults: tuple[str, ...]


class Fraction(Struct, frozen=True):
    """mem_fraction_static: as typed, as in force, as the numbers imply, and the least with which anything is left.

    ``implied`` is None where no pool line tells. ``is_floor``: another limit set the pool, so that the fraction is at least
    ``implied.low``. ``slack``: how much higher it may be for memory that was taken before the pool was sized; None: not known.
    """

    typed: float | None = None
    typed_at: Pos | None = None
    in_force: float | None = None
    in_force_at: Pos | None = None
    adjusted: str | None = None
    implied: Interval | None = None
    is_floor: bool = False
    slack: float | None = None
    minimum: Interval | None = None
    verdict: Verdict = "unknown"


class Contradiction(Struct, frozen=True):
    """Lines that cannot all be true: which kind, what they say (a clause), and where."""

    kind: Literal["negative", "load", "rise", "pool"]
    sentence: str
    places: tuple[Pos, ...]


class RunOut(Struct, frozen=True):
    """A fraction with which an earlier launch of the same arguments ran out of memory beside its pool: number and line of that launch."""

    fraction: float
    launch: int
    pos: Pos


class Sizing(Struct, frozen=True):
    """All figures of a launch that its KV cache depends on; bytes and tokens.

    ``total`` and ``avail`` are the least over the ranks, as SGLang takes them; ``limiting`` are the ranks with the least ``avail``
    (all that print the same). ``rest`` is A - T * (1 - f): what is left for the pools, negative where the launch fails.
    ``f`` is the value in force, or what the pools imply where they refute that.
    ``paid`` is the budget that the pools as allocated need, None where no line tells or it is not modelled.
    ``tokens`` is the capacity that the server uses. ``notes`` say what is not modelled. Where ``contradictions`` stand, ``total`` and
    ``avail`` are None, and so is what follows from them. ``is_draft_paid``: the budget pays for the draft's weights and pools, too; else
    they come out of what the fraction keeps free. ``run_out`` is known from other launches of the log only.
    """

    ranks: tuple[RankSizing, ...]
    total: Stated | None
    avail: Stated | None
    limiting: tuple[Rank, ...]
    fraction: Fraction
    rest: Interval | None
    paid: Interval | None
    tokens: Stated | None
    size: Interval | None
    cell: Cell | None
    page_size: int
    page_known: bool
    bound_by: BoundBy | None
    profiles: tuple[Profile, ...]
    notes: tuple[str, ...]
    contradictions: tuple[Contradiction, ...] = ()
    is_draft_paid: bool = False
    run_out: RunOut | None = None

    def of(self, rank: Rank) -> RankSizing | None:
        """Return the figures of one rank."""
        return next((each for each in self.ranks if each.rank == rank), None)
