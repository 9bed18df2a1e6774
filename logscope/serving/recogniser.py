"""The recogniser of lines of serving."""

from __future__ import annotations

from logscope.events import Recogniser, printed_values
from logscope.model import Drift, Event, LogLine
from logscope.packs import Packs
from logscope.serving.types import KIND_OF, Unread


class ServingRecogniser(Recogniser):
    """Takes note of values that are no numbers, too: the event does not have them."""

    def __init__(self, packs: Packs, unread: Unread) -> None:
        super().__init__(packs, dense=True)
        self._unread = unread

    def recognise_silently(self, line: LogLine) -> Event | Drift | None:
        """Do the same without taking note of anything."""
        return super().recognise(line)

    def recognise(self, line: LogLine) -> Event | Drift | None:
        """Do what ``Recogniser.recognise`` does."""
        found = self.recognise_silently(line)
        if isinstance(found, Event) and found.pattern.id in KIND_OF:
            for name, printed in (printed_values(line, found.pattern, found.form) or {}).items():
                field = found.pattern.fields.get(name)
                if field is not None and field.result not in found.values and printed:
                    self._unread.add(field.result, printed, found.pos)
        return found
