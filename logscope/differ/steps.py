"""The verdict on each step: same, changed or unknown, and the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from logscope.differ.align import KEY, align, spread_of
from logscope.differ.ranks import in_order
from logscope.differ.types import Change, Divergence, Verdict
from logscope.model import Launch, Pos
from logscope.packs import Packs, Pattern

TIME_NOISE_S = 2.0  # and
TIME_NOISE = 0.2  # of it: loading and compiling vary so much from run to run
CAPACITY = ("tokens", "max_total_num_tokens")
_FLOAT = 1e-6  # of a difference of two printed numbers, in base units
TOLERATED, SPREAD = "within the tolerance", "within the spread"  # reasons that are no print resolution
NOT_REACHED, SILENT = "not reached", "this rank is silent"  # reasons of steps that only one launch has
_DEBUG = "debug_profile"  # printed by patched builds: a launch that does not print it has not missed a step
_VAGUE = ("available_mem_bytes",)  # measured without emptying the allocator's cache first


class Tolerance(Struct, frozen=True):
    """What counts as the same beyond print resolution: bytes, seconds, or a share (0.01 is 1 %); 0 is none."""

    bytes: float = 0.0
    share: float = 0.0
    seconds: float = 0.0

    def allows(self, delta: float, before: float, unit: str) -> bool:
        """Return whether a difference is within the tolerance."""
        own = {"bytes": self.bytes, "s": self.seconds}.get(unit, 0.0)
        return abs(delta) <= max(self.share * abs(before), own) + _FLOAT


def compare_steps(
    baselines: Sequence[Launch],
    after: Launch,
    packs: Packs,
    tolerance: Tolerance,
    token_steps: tuple[float, float] = (1.0, 1.0),
) -> tuple[list[Change], list[str]]:
    """Return every step of the last baseline and of the other launch with its verdict, and what could not be compared.

    Args:
        token_steps: how many tokens of capacity are no difference: what the print resolution of memory is worth, and the tolerance.
    """
    before = baselines[-1]
    joined, notes = align(before, after, packs)
    spread = _spread(baselines, packs)
    shown = [_shown(launch, packs) for launch in (before, after)]
    patterns = {pattern.id: pattern for pattern in packs.patterns}
    rows = [{str(key): row[key] for key in row} for row in joined.to_dict("records")]
    said = _said_by_some(rows, "before"), _said_by_some(rows, "after")
    judge = _Judge(shown[0], shown[1], patterns, packs, tolerance, spread, len(baselines), token_steps, said)
    changes = [judge.change(row) for row in rows]
    return _on_a_timeline(changes), notes


def _on_a_timeline(changes: Sequence[Change]) -> list[Change]:
    """Sort changes by when the first rank gets to the step: the nodes of a launch stand one after the other in its events."""
    earliest: dict[object, int] = {}
    for change in changes:
        step = step_of(change)
        earliest[step] = min(change.order, earliest.get(step, change.order))
    return sorted(changes, key=lambda change: (earliest[step_of(change)], change.order))


def _spread(baselines: Sequence[Launch], packs: Packs) -> Mapping[tuple[object, ...], tuple[float, float]]:
    if len(baselines) < 2:
        return {}
    rows = spread_of(baselines, packs).to_dict("records")
    return {tuple(row[name] for name in KEY): (float(row["low"]), float(row["high"])) for row in rows}


def _said_by_some(rows: Sequence[Mapping[str, object]], side: str) -> frozenset[tuple[object, ...]]:
    """Return the steps that some rank of a launch prints."""
    return frozenset(_step_key(row) for row in rows if isinstance(row[f"file_{side}"], str) and row["rank"])


def _step_key(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in KEY if name != "rank")


def _number(value: object) -> float | None:
    import pandas

    return None if pandas.isna(value) else float(value)  # type: ignore[arg-type, call-overload]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class _Shown(Struct, frozen=True):
    """What a launch shows, told once for all its steps.

    ``end`` is the order of the phase in which it ended, infinity where it became ready; ``said`` are (event id, worker).
    """

    launch: Launch
    end: float
    said: frozenset[tuple[str, str]]
    has_draft: bool


def _shown(launch: Launch, packs: Packs) -> _Shown:
    said = frozenset(
        (event.pattern.id, worker or "") for event, worker in zip(launch.events, launch.workers, strict=True)
    )
    return _Shown(launch, _end_of(launch, packs), said, "draft" in launch.workers)


class _Judge(Struct, frozen=True):
    before: _Shown
    after: _Shown
    patterns: Mapping[str, Pattern]
    packs: Packs
    tolerance: Tolerance
    spread: Mapping[tuple[object, ...], tuple[float, float]]
    baselines: int
    token_steps: tuple[float, float]
    said_by_some: tuple[frozenset[tuple[object, ...]], frozenset[tuple[object, ...]]]

    def change(self, row: Mapping[str, object]) -> Change:
        """Judge one aligned row."""
        first, second = _number(row["number_before"]), _number(row["number_after"])
        texts = _text(row["text_before"]), _text(row["text_after"])
        before, after = (first if first is not None else texts[0]), (second if second is not None else texts[1])
        verdict, reason = self._verdict(row, before, after)
        orders = [_number(row["order_before"]), _number(row["order_after"])]
        return Change(
            worker=str(row["worker"]) or None,
            phase=str(row["phase"]),
            event=str(row["event"]),
            role=str(row["role"]),
            field=str(row["field"]),
            rank=str(row["rank"]),
            before=before,
            after=after,
            delta=second - first if first is not None and second is not None else None,
            unit=str(row["unit"]),
            verdict=verdict,
            reason=reason,
            before_at=_place(row, "before"),
            after_at=_place(row, "after"),
            order=int(orders[0] if orders[0] is not None else orders[1] or 0),
        )

    def _verdict(
        self, row: Mapping[str, object], before: float | str | None, after: float | str | None
    ) -> tuple[Verdict, str]:
        if before is None or after is None:
            return self._one_sided(row, in_before=before is not None)
        if isinstance(before, str) or isinstance(after, str):
            return ("same", "alike") if before == after else ("changed", "another text")
        return self._numbers(row, before, after)

    def _numbers(self, row: Mapping[str, object], before: float, after: float) -> tuple[Verdict, str]:
        unit, delta = str(row["unit"]), after - before
        steps = [_number(row["resolution_before"]) or 0.0, _number(row["resolution_after"]) or 0.0]
        if delta == 0:
            return "same", "alike"
        if row["field"] in _VAGUE:
            return "unknown", "measured without emptying the cache: not comparable"
        if unit != "s" and abs(delta) <= sum(steps) / 2:
            return "same", "one token" if unit == "tokens" else "within print resolution"
        if row["field"] in CAPACITY and abs(delta) <= self.token_steps[0]:
            return "same", "within print resolution of the memory"
        if unit == "s" and abs(delta) <= max(TIME_NOISE_S, sum(steps) / 2, TIME_NOISE * max(before, after)):
            return "same", "within what time varies from run to run"
        known = self.spread.get(tuple(row[name] for name in KEY))
        if known is not None and known[0] - sum(steps) / 2 <= after <= known[1] + sum(steps) / 2:
            return "same", f"{SPREAD} of {self.baselines} baselines"
        by_memory = row["field"] in CAPACITY and abs(delta) <= self.token_steps[1]
        if by_memory or self.tolerance.allows(delta, before, unit):
            return "same", TOLERATED
        return "changed", "beyond print resolution" if known is None else "beyond the spread of the baselines"

    def _one_sided(self, row: Mapping[str, object], *, in_before: bool) -> tuple[Verdict, str]:
        """Judge a step that one launch does not have: not reached, not printed by its release, or really there or not."""
        silent, other = (self.after, "after") if in_before else (self.before, "before")
        launch = silent.launch
        if row["phase"] == _DEBUG or (not launch.has_start and not launch.args.values):
            return "unknown", f"not in the log {other}"
        phase = self.packs.phases.get(str(row["phase"]))
        is_early = launch.outcome.kind != "ready" and not silent.has_draft
        if (phase is not None and phase.order >= silent.end) or (row["worker"] == "draft" and is_early):
            return "unknown", f"{NOT_REACHED} {other}"
        pattern = self.patterns.get(str(row["event"]))
        if pattern is not None and not _can_print(pattern, launch):
            return "unknown", f"SGLang {launch.releases} does not print it"
        releases = self.after.launch.releases
        if not self.before.launch.releases.overlaps(releases.since, releases.until):
            return "unknown", "the releases print other things"
        if _step_key(row) in self.said_by_some[in_before]:
            return "unknown", f"{SILENT} {other}"
        if not row["role"] and (row["event"], row["worker"]) in silent.said:
            return "unknown", f"not printed {other}"
        return "changed", f"only {'before' if in_before else 'after'}"


def _place(row: Mapping[str, object], side: str) -> Pos | None:
    file, line = row[f"file_{side}"], _number(row[f"line_{side}"])
    return Pos(file, int(line)) if isinstance(file, str) and line is not None else None


def _end_of(launch: Launch, packs: Packs) -> float:
    """Return the order of the phase in which a launch that is not ready ended; infinity for a ready one."""
    if launch.outcome.kind == "ready":
        return float("inf")
    reached = [
        packs.phase_of(event.pattern).order
        for event in launch.events
        if not event.pattern.ends
        and event.pattern.edge != "begin"
        and event.pattern.progress
        and event.pattern.phase not in ("failure", _DEBUG)
    ]
    return max(reached, default=0)


def _can_print(pattern: Pattern, launch: Launch) -> bool:
    """Return whether some release that the launch may be of prints an event."""
    return any(launch.releases.overlaps(form.since, form.until) for form in pattern.forms)


def first_divergence(changes: Sequence[Change]) -> Divergence | None:
    """Return the first step, in the order of the first launch, at which memory or tokens part or one launch is not any more.

    Of its ranks the values are those of the one that changed most.
    """
    parted = [change for change in changes if change.is_worth_showing]
    candidates = [c for c in parted if c.is_amount and c.unit != "s"] or [c for c in parted if c.unit == "s"]
    if not candidates:
        return None
    first = step_of(candidates[0])
    own = [change for change in candidates if step_of(change) == first]
    by_rank = {change.rank: change for change in own}
    ranks = in_order(by_rank)
    worst = max((by_rank[rank] for rank in ranks), key=lambda change: abs(change.delta or 0.0), default=own[0])
    everyone = in_order(change.rank for change in changes if step_of(change) == first)
    return Divergence(
        worst.worker, worst.phase, worst.event, worst.role, worst.field,
        worst.rank, tuple(ranks), len(everyone), worst.before, worst.after, worst.unit, worst.reason,
    )  # fmt: skip


def step_of(change: Change) -> tuple[str | None, str, str, str, str]:
    """Return which step it is, whichever rank says it."""
    return change.worker, change.phase, change.event, change.role, change.field
