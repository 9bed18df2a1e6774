"""What the explainer is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from logscope.budget import Interval
from logscope.causes import Diagnosis, Direction
from logscope.explainer.cell_source import Source
from logscope.ledger import LedgerRow
from logscope.model import Finding, Launch, Pos
from logscope.packs import Packs
from logscope.server_args import ArgValue
from logscope.sizing import Grant, Sizing

FINDING_IDS = (
    "bound_by_mamba", "bound_by_max_total_tokens", "claim_confirmed", "claim_open", "claim_refuted", "consequences",
    "context_exceeds_capacity", "debug_profile", "distributed_init_bounded", "foreign_process", "fraction_adjusted",
    "fraction_contradicted", "fraction_not_in_force", "fragmentation", "hint_not_needed", "hint_on_trust", "hint_refused",
    "host_memory_total", "idle_memory", "limiting_rank", "lines_contradict", "memory_rises", "no_workable_fraction", "not_judged",
    "ranks_behind", "ranks_not_in_log", "requests_that_fit", "runs_out_above", "sglang_hint", "slow_phase", "speculation_cost",
    "unexplained_memory", "unknown_wording", "what_if_open", "what_if_runs_out",
)  # fmt: skip


class Question(Struct, frozen=True):
    """What is asked beside "what happened".

    Attributes:
        what_if: arguments that are to be changed, name -> value.
        claims: values that somebody claims are in force, name -> value.
        source: what tells bytes per token where the log does not.
    """

    what_if: Mapping[str, ArgValue] = field(default_factory=dict)
    claims: Mapping[str, ArgValue] = field(default_factory=dict)
    source: Source | None = None


class Term(Struct, frozen=True):
    """A line of the budget: what it is, its amount (bytes, or a fraction), how it is computed, and where it stands."""

    name: str
    amount: Interval
    unit: str
    formula: str
    evidence: tuple[Pos, ...] = ()


class Offer(Struct, frozen=True):
    """Something to set: the flags as typed, what they give, and why they are listed. ``is_now``: what ran already.

    ``is_together``: it is all what-ifs at once, which stand alone before it.
    """

    flags: str
    grant: Grant
    why: str
    is_now: bool = False
    is_together: bool = False


class Explanation(Struct, frozen=True):
    """What is to be said of a launch; ``verdict`` is the sentence that comes first.

    ``suggested`` is the fraction to set, None where it is not the flag to turn. ``judged``: the log was enough for an answer.
    ``answers`` are the what-ifs, in the order asked.
    """

    launch: Launch
    packs: Packs
    sizing: Sizing
    diagnosis: Diagnosis | None
    verdict: str
    direction: Direction | None
    suggested: float | None
    budget: tuple[Term, ...]
    offers: tuple[Offer, ...]
    answers: tuple[Offer, ...]
    findings: tuple[Finding, ...]
    ledger: tuple[LedgerRow, ...]
    judged: bool
