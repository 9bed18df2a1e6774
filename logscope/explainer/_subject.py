"""What every finding is made from."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from logscope.causes import Diagnosis
from logscope.explainer._types import Question
from logscope.explainer.cell_source import Hint
from logscope.ledger import LedgerRow
from logscope.model import Event, Launch
from logscope.packs import Packs
from logscope.rank import Rank
from logscope.sizing import RankSizing, Sizing
from logscope.words import ranks_text


class Subject(Struct, frozen=True):
    """A launch, its figures, why it failed (if it did), its ledger, what is asked, and bytes per token from elsewhere."""

    launch: Launch
    packs: Packs
    sizing: Sizing
    diagnosis: Diagnosis | None
    ledger: Sequence[LedgerRow]
    question: Question
    hint: Hint | None = None

    @property
    def limiting(self) -> RankSizing | None:
        """The figures of the rank with the least memory for its pools."""
        return self.sizing.of(self.sizing.limiting[0]) if self.sizing.limiting else None

    def names(self, ranks: Sequence[Rank]) -> str:
        """Name ranks shortly."""
        return ranks_text(ranks, self.launch.ranks)

    def events(self, event_id: str) -> list[Event]:
        """Return the events of one id, or of all ids that begin so if it ends with a full stop."""
        if event_id.endswith("."):
            return [event for event in self.launch.events if event.pattern.id.startswith(event_id)]
        return [event for event in self.launch.events if event.pattern.id == event_id]

    @property
    def per_rank(self) -> str:
        """What follows an amount that each of several ranks has."""
        return " per rank" if len(self.launch.ranks) > 1 else ""
