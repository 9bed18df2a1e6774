"""An exception that no other cause knows: the sentence quotes it."""

from __future__ import annotations

from logscope.causes._held import after_free_memory, memory_findings, own_bytes
from logscope.causes._oom import shortage
from logscope.causes._types import Case, Diagnosis
from logscope.causes._unsaid import REST, with_shortage
from logscope.causes._words import on_rank, quoted
from logscope.units import gib

ID = "python_exception"


def diagnose(case: Case) -> Diagnosis:
    """Return the last resort."""
    custom = case.said.pattern.cause
    if custom is not None and case.said.pattern.means:  # a cause of the user's own pattern files
        return Diagnosis(custom, f"{case.said.pattern.means}: {quoted(case)}")
    if case.is_out_of_device_memory:
        return _unplaced(case)
    if not case.root.whole:
        cut = f"the log ends inside the line that says why{on_rank(case)}: {quoted(case)}"
        return with_shortage(case, Diagnosis(ID, cut, None, REST))
    where = on_rank(case).strip()
    return Diagnosis(ID, f"{where}: {quoted(case)}" if where else quoted(case))


def _unplaced(case: Case) -> Diagnosis:
    """A lack of memory in a log that shows no phase of the launch: whether the fraction matters depends on it."""
    remedy = (
        "While weights load, --mem-fraction-static plays no part, and the model needs more devices; later, lower it. The traceback "
        "tells: load_model, or what comes after it."
    )
    own = own_bytes(case)
    held = f"; this process itself holds {gib(own)} GiB" if own else ""
    sentence = f"out of memory{on_rank(case)}, in a phase that this log does not show{shortage(case)}{held}"
    return Diagnosis(ID, sentence, None, after_free_memory(case, remedy), findings=memory_findings(case))
