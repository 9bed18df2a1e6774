"""The words that rules may use: events and fields of the pattern files, findings, causes, and what a launch has beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import get_args

from msgspec import Struct

from logscope.causes import LAST, ORDER
from logscope.checker.types import Select, Source
from logscope.explainer import FINDING_IDS
from logscope.model import Ended, OutcomeKind
from logscope.packs import Packs, Pattern
from logscope.packs.values import suggestion
from logscope.units import NUMBER_UNITS

PHASE_FIELDS: Mapping[str, str] = {"duration": "s", "used": "bytes", "before": "bytes", "after": "bytes"}
LAUNCH_FIELDS: Mapping[str, str] = {
    "outcome": "text", "ended": "text", "cause": "text", "tokens": "tokens", "kv_size": "bytes", "ranks": "", "elapsed": "s",
    "left_free": "bytes", "budget": "bytes", "drift": "",
}  # fmt: skip
COUNTS = ("ranks", "drift")  # of a launch: more lines can make them greater
_TEXTS: Mapping[str, Sequence[str]] = {
    "outcome": get_args(OutcomeKind), "ended": ("", *get_args(Ended)), "cause": ("", *ORDER, LAST),
}  # fmt: skip
DRIFT = "drift"
READY = "ready"  # whichever line ends a launch so: it differs by release and node


class Refusal(Struct, frozen=True):
    """What is wrong with a word, and what to do."""

    what: str
    do: str


class Vocabulary:
    """The words that the pattern files and logscope itself know."""

    def __init__(self, packs: Packs) -> None:
        self.packs = packs
        self.events: dict[str, Pattern] = {pattern.id: pattern for pattern in packs.patterns}
        self.judgements = (*FINDING_IDS, *ORDER, LAST, DRIFT)
        self.unchanged = ("args", "steps", "capacity", "outcome", *packs.phases)
        self.ledger = sorted(
            {field.item for pattern in packs.patterns for field in pattern.fields.values() if field.item}
            | {phase.item for phase in packs.phases.values() if phase.item}
            | {"unexplained"}
        )

    def refuse_select(self, source: Source, name: str, field: str) -> Refusal | None:
        """Return why nothing can be selected so, None if it can."""
        if source == "event":
            return self._refuse_event(name, field)
        if source == "phase":
            if name not in self.packs.phases:
                return Refusal(f"there is no phase '{name}'", suggestion(name, list(self.packs.phases)))
            return (
                None
                if field in PHASE_FIELDS
                else Refusal(f"a phase has no '{field}'", f"fields are {', '.join(PHASE_FIELDS)}")
            )
        if source == "launch":
            return (
                None
                if name in LAUNCH_FIELDS
                else Refusal(f"a launch has no '{name}'", suggestion(name, list(LAUNCH_FIELDS)))
            )
        if source == "arg":
            return self.refuse_arg(name)
        if source == "ledger" and not any(_fits(item, name) for item in self.ledger):
            return Refusal(f"the ledger has no item '{name}'", suggestion(name, self.ledger))
        return None

    def refuse_arg(self, name: str) -> Refusal | None:
        """Return why no launch prints such an argument, None if one does."""
        if name in self.packs.arguments:
            return None
        typed = name.lstrip("-").replace("-", "_")
        printed = self.packs.aliases.get(typed, typed)
        near = [printed] if printed in self.packs.arguments else get_close_matches(typed, self.packs.arguments, 1)
        do = f"did you mean '{near[0]}'?" if near else "write it as the log's server_args print it"
        add = 'a new one is made known by  arguments = "..."  in [phase] of a file for --patterns'
        return Refusal(f"SGLang has no argument '{name}'", f"{do}  {add}")

    def _refuse_event(self, name: str, field: str) -> Refusal | None:
        if name not in self.events:
            return Refusal(f"there is no event '{name}'", suggestion(name, list(self.events)))
        fields = self.events[name].fields
        if field and field not in fields and field not in {each.result for each in fields.values()}:
            near = [each for each in fields if each.endswith(f"_{field}") or each.startswith(f"{field}_")]
            do = (
                f"did you mean one of {', '.join(near)}?"
                if len(near) > 1
                else suggestion(field, near or list(fields) or ["none"])
            )
            return Refusal(f"{name} has no field '{field}'", do)
        return None

    def field_name(self, source: Source, name: str, field: str) -> str:
        """Return the name of a field in results: with its base unit."""
        if source != "event" or name not in self.events:
            return field
        known = self.events[name].fields.get(field)
        return known.result if known else field

    def dimension(self, select: Select) -> str:
        """Return what a selected value is: bytes, s, tokens, text, or empty for a plain number."""
        if select.source == "phase":
            return PHASE_FIELDS[select.field]
        if select.source == "launch":
            return LAUNCH_FIELDS[select.name]
        if select.source == "ledger":
            return "bytes"
        if select.source == "arg":
            return ""
        field = next((f for f in self.events[select.name].fields.values() if f.result == select.field), None)
        if field is None:
            return ""
        unit = NUMBER_UNITS.get(field.unit)
        return unit.suffix if unit is not None else "text"

    def refuse_word(self, word: str, *, events_only: bool) -> Refusal | None:
        """Return why a word (with stars) names no event, finding or cause, None if it names one."""
        known = [*self.events, READY, *(() if events_only else self.judgements)]
        if any(fnmatchcase(name, word) for name in known):
            return None
        return Refusal(f"'{word}' is no event{'' if events_only else ', finding or cause'}", _near(word, known))

    def is_anything(self, word: str) -> bool:
        """Return whether a word with stars means every event."""
        return "*" in word and all(fnmatchcase(name, word) for name in self.events)

    def refuse_of_ranks(self, word: str) -> Refusal | None:
        """Return why not every rank says an event, None if it does."""
        silent = [
            name for name, event in self.events.items() if fnmatchcase(name, word) and event.said_by != "every rank"
        ]
        if word != READY and not silent:
            return None
        return Refusal(
            f"'{word}' is not said by every rank", "take an event that each rank says, such as load_weights.end"
        )

    def refuse_equals(self, select: Select, wanted: str) -> Refusal | None:
        """Return why a selected value can never be equal to a text, None if it can."""
        dimension = self.dimension(select)
        if dimension in ("bytes", "s"):
            return Refusal("'equals' compares texts and whole numbers", 'write a bound, such as  each = "<= 9.5 GiB"')
        if dimension == "tokens" and not wanted.lstrip("-").isdecimal():
            return Refusal(f"equals = {wanted!r} is no number of tokens", "write  equals = 159269")
        known = _TEXTS.get(select.name) if select.source == "launch" else None
        if known is not None and wanted not in known:
            return Refusal(f"{select.name} is never {wanted!r}", suggestion(wanted, [each for each in known if each]))
        return None


def _near(word: str, known: list[str]) -> str:
    text = suggestion(word, known)
    return (
        text
        if text.startswith("did you")
        else "`logscope patterns list` shows the events, docs/explain.md findings and causes"
    )


def _fits(item: str, name: str) -> bool:
    """Return whether a ledger's item may be called so: "graphs: {kind}" has any kind, a draft's items begin with "draft"."""
    shown, own = item.replace("{kind}", "*").strip(), name.removeprefix("draft ")
    return fnmatchcase(name, shown) or fnmatchcase(own, shown) or fnmatchcase(shown, own)
