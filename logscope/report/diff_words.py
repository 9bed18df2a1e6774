"""Steps of a comparison in words: what a line or a phase is about, and which of its figures."""

from __future__ import annotations

from logscope.amounts import flag_text
from logscope.differ import SILENT, Change, Divergence
from logscope.packs import Packs
from logscope.units import count_text, gib, seconds_text
from logscope.words import inside_a_sentence

NOT_REACHED = "not reached"
_FIELDS = {
    "mem_usage_bytes": "taken",
    "used_bytes": "taken",
    "drop_bytes": "taken",
    "kv_size_bytes": "size",
    "k_size_bytes": "K size",
    "v_size_bytes": "V size",
    "elapsed_s": "time",
    "duration_s": "time by the clock",
    "available_mem_bytes": "free, cache not emptied",
    "said": "said",
}
_FREE = {"begin": "free before", "end": "free after", "point": "free"}
_WIDEST_TEXT = 13  # as "not reached" and "139.50 GiB" are
_KEPT = ("max_total_num_tokens",)  # named as SGLang prints it


def step_title(step: Change | Divergence, packs: Packs) -> str:
    """Name what a step is about, and its figure: "Weights: free before", "Draft KV cache: K size"."""
    title = f"{'draft ' if step.worker == 'draft' else ''}{_subject(step, packs)}"
    return f"{title[:1].upper()}{title[1:]}: {field_words(step, packs)}"


def _subject(step: Change | Divergence, packs: Packs) -> str:
    """Name the phase by what it takes where it has a name for that: it is shorter, and the figures are about it."""
    phase = packs.phases.get(step.phase)
    if phase is None:
        return step.phase
    name = phase.item or inside_a_sentence(phase.title).removesuffix(" in all")
    return (
        f"{step.role} {name}"
        if step.role and phase.item and not step.role.startswith("#")
        else f"{name} {step.role}".strip()
    )


def field_words(step: Change | Divergence, packs: Packs) -> str:
    """Name a figure of a step."""
    if step.field == "avail_mem_bytes":
        return _FREE[_edge(step.event, packs)]
    if step.field in _FIELDS:
        return _FIELDS[step.field]
    if step.field in _KEPT:
        return step.field
    return step.field.removesuffix("_bytes").removesuffix("_s").removesuffix("_tokens").replace("_", " ")


def _edge(event: str, packs: Packs) -> str:
    return next((pattern.edge for pattern in packs.patterns if pattern.id == event), "point")


def both_values(step: Change | Divergence, none: str) -> tuple[str, str]:
    """Write the values of a step in both launches.

    Args:
        none: what to write where a launch has no such step, though it got that far.
    """
    absent = (
        NOT_REACHED
        if step.reason.startswith(NOT_REACHED)
        else "not printed"
        if step.reason.startswith(SILENT)
        else none
    )
    before, after = (_value_words(value, step.unit, absent) for value in (step.before, step.after))
    is_text = isinstance(step.before, str) or isinstance(step.after, str)
    return two_values(before, after, _WIDEST_TEXT) if is_text else (before, after)


def _value_words(value: float | str | None, unit: str, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, str):
        return value
    if unit == "bytes":
        return f"{gib(value)} GiB"
    if unit == "s":
        return f"{seconds_text(value, 0.01)} s"
    return count_text(value) if unit == "tokens" or value == int(value) else flag_text(value)


def signed_gib(amount: float) -> str:
    """Write bytes as GiB with a sign, but for zero."""
    text = gib(amount)
    return text if text.startswith("-") or float(text.replace(",", "")) == 0 else f"+{text}"


def delta_words(change: Change) -> str:
    """Write the difference of a step, nothing for texts and what one launch does not have."""
    if change.delta is None:
        return ""
    if change.unit == "bytes":
        return f"{signed_gib(change.delta)} GiB"
    if change.unit == "s":
        return f"{change.delta:+,.1f} s"
    return f"{change.delta:+,.6g}" if change.delta != int(change.delta) else f"{int(change.delta):+,}"


def two_values(before: str, after: str, width: int) -> tuple[str, str]:
    """Shorten two texts so that what differs is still seen; ".." stands for what is left out."""
    if max(len(before), len(after)) <= width:
        return before, after
    start = 0
    while before != after and start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    start = max(0, start - width // 3)
    return _window(before, start, width), _window(after, start, width)


def _window(text: str, start: int, width: int) -> str:
    if len(text) <= width:
        return text
    start = min(start, len(text) - width + 2)
    head = ".." if start > 2 else ""
    body = text[start if head else 0 :]
    room = width - len(head)
    return head + (body if len(body) <= room else f"{body[: room - 2]}..")
