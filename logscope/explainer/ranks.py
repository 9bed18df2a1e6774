"""Findings about ranks: who is behind, who is not in this log at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logscope.explainer._subject import Subject
from logscope.model import Event, Finding
from logscope.rank import Rank
from logscope.server_args import arg_count, arg_number
from logscope.timeline import GAP, PhaseRow, phase_rows
from logscope.words import inside_a_sentence, phase_title


def find(subject: Subject) -> Iterator[Finding]:
    """Yield the findings about ranks."""
    yield from _absent(subject)
    if subject.launch.outcome.kind != "ready":
        yield from _behind(subject)


def _absent(subject: Subject) -> Iterator[Finding]:
    """Say which ranks the arguments ask for and the log does not have."""
    values = subject.launch.args.values
    tp, pp = (arg_count(values, name) for name in ("tp_size", "pp_size"))
    seen = {(rank.pp or 0, rank.tp) for rank in subject.launch.ranks if rank.tp is not None}
    if tp * pp <= 1 or not seen:
        return
    missing = [(stage, number) for stage in range(pp) for number in range(tp) if (stage, number) not in seen]
    if not missing:
        return
    names = ", ".join(
        _missing_of(stage, missing, is_staged=pp > 1) for stage in sorted({stage for stage, _ in missing})
    )
    nodes = arg_count(values, "nnodes")
    verb = "is" if len(missing) == 1 else "are"
    sentence = f"{len(missing)} of {tp * pp} ranks {verb} not in this log: {names}."
    remedy = ""
    if nodes > 1:
        own = arg_number(values, "node_rank")
        sentence += f" The launch has {nodes} nodes, and this is node {own:g}." if own is not None else ""
        remedy = "Give the logs of the other nodes, too: logscope explain node0.log node1.log"
    is_fine = subject.launch.outcome.kind == "ready"
    yield Finding("ranks_not_in_log", "note" if is_fine or nodes > 1 else "warning", sentence, (), remedy)


def _missing_of(stage: int, missing: Sequence[tuple[int, int]], *, is_staged: bool) -> str:
    runs = _runs([number for own, number in missing if own == stage])
    return ", ".join(f"PP{stage} {run}" if is_staged else run for run in runs)


def _runs(numbers: list[int]) -> Iterator[str]:
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        yield f"TP{start}" if start == previous else f"TP{start}..TP{previous}"
        if number is not None:
            start = previous = number


def _behind(subject: Subject) -> Iterator[Finding]:
    """Say how far the ranks got, where they got differently far."""
    last: dict[Rank, PhaseRow] = {}
    for row in phase_rows(subject.launch):
        if row.phase != GAP and row.worker != "draft":
            last[row.rank] = row
    order = {phase.id: phase.order for phase in subject.packs.phases.values()}
    reached = {rank: (order[row.phase], not row.is_open) for rank, row in last.items()}
    if len(set(reached.values())) < 2:
        return
    lowest = min(reached.values())
    slow = sorted(rank for rank, how in reached.items() if how == lowest)
    ahead = sorted(rank for rank, how in reached.items() if how != lowest)
    died = {
        event.rank for event in subject.launch.events if event.pattern.ends and event.pattern.blame != "consequence"
    }
    if subject.diagnosis is not None and (len(slow) > len(ahead) or died.issuperset(slow)):
        return  # one rank said more before all died, or the ranks that died got no further: nobody is behind
    row, other = last[slow[0]], last[ahead[-1]]
    many, dead = len(slow) > 1, subject.diagnosis is not None
    state = f"{('were' if many else 'was') if dead else ('are' if many else 'is')} still in"
    what = f"{state if row.is_open else 'got no further than'} {inside_a_sentence(phase_title(row, subject.packs))}"
    lead = f"{subject.names(ahead)} {'got to' if other.is_open else 'got through'} {inside_a_sentence(phase_title(other, subject.packs))}"
    places = tuple(event.pos for event in (_last_event(row), _last_event(other)) if event is not None)
    yield Finding("ranks_behind", "warning", f"{subject.names(slow)} {what}; {lead}.", places)


def _last_event(row: PhaseRow) -> Event | None:
    return row.end or row.begin
