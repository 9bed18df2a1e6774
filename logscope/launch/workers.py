"""Which worker an event is about: the target model, or the draft of speculative decoding.

A draft worker repeats every phase under its target's rank tag. To SGLang 0.5.13 it does so after the target's graphs are captured; from
0.5.14 on its weights load right after the target's, then come the target's pools, the draft's pools, and all captures. Two KV pools
before one "Memory pool end" are sliding-window and full pools of one model, not a draft.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from logscope.model import Event, Worker
from logscope.packs import Packs, Phase


def assign_workers(events: Sequence[Event], packs: Packs) -> list[Worker | None]:
    """Return the worker of each event of one launch; None for what is not about a model worker's phases."""
    ranks: dict[tuple[int | None, str], _RankWorkers] = {}
    workers: list[Worker | None] = []
    for event in events:
        phase = packs.phase_of(event.pattern)
        stated = event.pattern.worker or event.string("worker")
        if stated in ("target", "draft"):
            workers.append("target" if stated == "target" else "draft")
            continue
        if not event.pattern.is_of_a_rank or not phase.per_worker:
            workers.append(None)
            continue
        rank = (event.rank.node, event.rank.tag)
        if rank not in ranks:
            ranks[rank] = _new_rank(packs)
        workers.append(ranks[rank].take(event, phase))
    return _correct_begins(events, workers, packs)


def _new_rank(packs: Packs) -> _RankWorkers:
    load_order = max((phase.order for phase in packs.phases.values() if phase.draft_model_types), default=0)
    pool_order = max((phase.order for phase in packs.phases.values() if phase.once), default=0)
    return _RankWorkers(_draft_types(packs), load_order, pool_order)


def _draft_types(packs: Packs) -> tuple[str, ...]:
    return tuple(ending for phase in packs.phases.values() for ending in phase.draft_model_types)


class _RankWorkers(Struct):
    """How far the workers of one rank are: which one loads, whose pool is being made.

    Phases before ``load_order`` are initialisation, those up to ``pool_order`` pools, later ones graphs.
    """

    drafts: tuple[str, ...]
    load_order: int
    pool_order: int
    begun: int = 0
    ended: int = 0
    target_pools: bool = False
    pools_before_draft: bool = False
    pools_closed: int = 0

    def take(self, event: Event, phase: Phase) -> Worker:
        if phase.order < self.load_order:
            return "draft" if self.begun or self.ended else "target"
        if phase.order == self.load_order:
            return self._loading(event)
        return self._pool_or_graph(event, phase)

    def _loading(self, event: Event) -> Worker:
        if event.pattern.edge == "begin":
            self.begun = max(self.begun, self.ended) + 1
            nth = self.begun
        elif event.pattern.edge == "end":
            self.ended = max(self.ended + 1, self.begun)
            nth = self.ended
        else:
            nth = max(self.begun, self.ended)
        if nth > 1 or self._is_draft_type(event):
            self.pools_before_draft = self.pools_before_draft or self.target_pools
            self.begun, self.ended = (
                max(self.begun, 2),
                self.ended if event.pattern.edge == "begin" else max(self.ended, 2),
            )
            return "draft"
        return "target"

    def _is_draft_type(self, event: Event) -> bool:
        model_type = event.string("model_type")
        return model_type is not None and model_type.endswith(self.drafts)

    @property
    def has_draft(self) -> bool:
        return max(self.begun, self.ended) > 1

    def _pool_or_graph(self, event: Event, phase: Phase) -> Worker:
        if (
            phase.order > self.pool_order
        ):  # graphs: newer wordings say the worker; in older ones the draft captures after it has loaded
            self.target_pools = self.target_pools or not self.has_draft  # what captures has its pools, said or not
            return "draft" if self.has_draft and self.pools_before_draft else "target"
        if self.pools_closed or (self.has_draft and self.pools_before_draft):
            worker: Worker = "draft"
        else:
            worker = "target"
            self.target_pools = True
        if phase.once and event.pattern.edge == "end":
            self.pools_closed += 1
        return worker


def _correct_begins(events: Sequence[Event], workers: list[Worker | None], packs: Packs) -> list[Worker | None]:
    """Let a begin follow its end: a load whose model type turns out to be a draft's began as a draft's."""
    for index, event in enumerate(events):
        model_type = event.string("model_type") if event.pattern.edge == "end" else None
        if model_type is not None and model_type.endswith(_draft_types(packs)):
            begin = _begin_of(events, index)
            if begin is not None:
                workers[begin] = "draft"
    return workers


def _begin_of(events: Sequence[Event], end: int) -> int | None:
    """Return where the phase began that ends at ``end``; None if another begin or end of the rank stands between: the line is missing."""
    rank, phase = events[end].rank, events[end].pattern.phase
    for before in range(end - 1, -1, -1):
        pattern = events[before].pattern
        if events[before].rank == rank and pattern.edge != "point" and pattern.is_of_a_rank:
            return before if pattern.phase == phase and pattern.edge == "begin" else None
    return None
