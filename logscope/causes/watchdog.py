"""SGLang's own watchdog stopped the server: a batch, or an answer of a process, took longer than it allows."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import on_rank
from logscope.units import seconds_text

ID = "watchdog"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis where nothing but the watchdog says why."""
    if not case.tells(ID):
        return None
    waited = case.said.quantity("waited_s")
    if waited:
        sentence = f"the server got no answer from its own processes for {seconds_text(waited.value)} s"
        return Diagnosis(
            ID, sentence, None, "Look for what the schedulers did last: one of them hangs, died or was stopped."
        )
    allowed, process = case.said.quantity("allowed_s"), case.said.string("process")
    limit = f" the {seconds_text(allowed.value)} s" if allowed else ""
    sentence = (
        f"a batch took longer than{limit} that the watchdog allows{f' the {process}' if process else ''}{on_rank(case)}"
    )
    higher = f" {2 * allowed.value:.0f}" if allowed else ""
    remedy = (
        "The stacks that are printed beside it show where each process stood. A rank that waits in a collective waits for another. If "
        f"batches are that slow (kernels that are compiled first, for example), set --watchdog-timeout{higher}."
    )
    said = [event.pos for event in case.launch.events if event.pattern.id == case.said.pattern.id]
    return Diagnosis(ID, sentence, None, remedy, evidence=tuple(pos for pos in said if pos != case.root.pos))
