"""What rules are judged on: a launch with what explain finds in it, and its baselines; made when a rule first asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from logscope.checker.unknown import find_unknown, unknown_in
from logscope.explainer import Explanation, Question, explain_launch
from logscope.gaps import Gap
from logscope.model import Launch
from logscope.packs import Packs

if TYPE_CHECKING:
    from logscope.differ import Difference


class Subject(Struct):
    """A launch to be checked; ``text``: the log itself where it is no file."""

    launch: Launch
    packs: Packs
    baselines: Sequence[Launch] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    _explanation: Explanation | None = None
    _difference: Difference | None = None
    _unknown: tuple[Gap, ...] | None = None

    @property
    def unknown(self) -> tuple[Gap, ...] | None:
        """Lines that look like memory and that no pattern knows; None where the log cannot be read again.

        Raises:
            SourceError: a log is not there any more.
        """
        if self._unknown is None and self.text is not None:
            (node,) = self.launch.nodes
            self._unknown = tuple(unknown_in(node.file, [self.text.encode()], self.packs, [node]))
        elif self._unknown is None:
            self._unknown = find_unknown(self.launch, self.packs)
        return self._unknown

    @property
    def explanation(self) -> Explanation:
        """What explain finds."""
        if self._explanation is None:
            self._explanation = explain_launch(self.launch, self.packs, Question())
        return self._explanation

    @property
    def difference(self) -> Difference | None:
        """What differs from the baselines, None where there are none. Costs pandas."""
        if self._difference is None and self.baselines:
            from logscope.differ import Tolerance, diff_launches  # most checks need neither it nor pandas

            self._difference = diff_launches(self.baselines, self.launch, self.packs, Tolerance())
        return self._difference
