"""The request that the server sends to itself has failed, and nothing else says why."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import is_from, quoted
from logscope.model import Event

ID = "warmup_failed"
_BANNER = "failure.warmup"
_UNKNOWN = ("failure.exception", "failure.exception_other", "failure.pipe_closed", _BANNER)
_EMPTY = "Traceback"


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: what the request got, by the banner or the last line of the traceback under it."""
    banner = _banner_above(case)
    if banner is None or case.said.pattern.id not in _UNKNOWN:
        return None
    message = case.said.string("message") or ""
    what = f": {quoted(case)}" if case.said.pattern.id != _BANNER else f": {message.rstrip('. ')}"
    sentence = f"the warm-up request failed{'' if message.startswith(_EMPTY) else what}"
    remedy = "The reason stands in what the schedulers said before it."
    if is_from(case, "0.4.9"):
        remedy += " --skip-server-warmup starts without that request, and moves the failure to the first one."
    evidence = (banner.pos,) if banner is not case.root else ()
    return Diagnosis(ID, sentence, None, remedy, evidence=evidence)


def _banner_above(case: Case) -> Event | None:
    """Return the banner of the warm-up that the line that says why is, or stands under."""
    if case.root.pattern.id == _BANNER:
        return case.root
    before = [
        event
        for event in case.launch.events
        if event.pos.file == case.root.pos.file and event.pos.line <= case.root.pos.line and event is not case.root
    ]
    banners = [event for event in before if event.pattern.blame == "banner"]
    return banners[-1] if banners and banners[-1].pattern.id == _BANNER else None
