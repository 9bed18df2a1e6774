"""What rules are judged on: a launch with what explain finds in it, and its baselines; made when a rule first asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from logscope.differ import Difference, Tolerance, diff_launches
from logscope.explainer import Explanation, Question, explain_launch
from logscope.model import Launch, Pos
from logscope.packs import Packs


@dataclass(slots=True)
class Subject:
    """A launch to be checked.

    ``unknown_memory``: how many lines of its logs look like memory and no pattern knows, None where the logs cannot be read again;
    ``unknown_at``: where some of them stand.
    """

    launch: Launch
    packs: Packs
    baselines: Sequence[Launch] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    unknown_memory: int | None = None
    unknown_at: Sequence[Pos] = ()
    _explanation: Explanation | None = None
    _difference: Difference | None = None

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
            self._difference = diff_launches(self.baselines, self.launch, self.packs, Tolerance())
        return self._difference
