"""The median of numbers that are too many to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Histogram:
    """Tells the median of millions of numbers in constant memory: exactly of a few, else in steps of half a percent."""

    _FEW = 10_000
    _STEP = 0.005
    _LEAST = 0.01
    _BINS = 6000  # to 1e11

    def __init__(self) -> None:
        self._few: list[NDArray[np.float64]] = []
        self._counts: NDArray[np.int64] | None = None

    def add(self, values: NDArray[np.float64]) -> None:
        """Count some numbers; NaN is none."""
        import numpy as np

        values = values[~np.isnan(values)]
        if self._counts is not None:
            self._counts += self._counted(values)
            return
        self._few.append(values)
        if sum(map(len, self._few)) > self._FEW:
            self._counts = self._counted(np.concatenate(self._few))
            self._few.clear()

    def _counted(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        import numpy as np

        steps = np.log(np.maximum(values, self._LEAST) / self._LEAST) / self._STEP
        bins = np.where(values < self._LEAST, 0, 1 + np.minimum(steps, self._BINS - 2)).astype(np.int64)
        return np.bincount(bins, minlength=self._BINS)

    def median(self) -> float | None:
        """Return the median, None of no numbers; it is known to a quarter of a percent."""
        import numpy as np

        if self._counts is None:
            few = np.concatenate(self._few) if self._few else np.empty(0)
            return float(np.median(few)) if len(few) else None
        place = int(np.searchsorted(np.cumsum(self._counts), (int(self._counts.sum()) + 1) // 2))
        return 0.0 if place == 0 else float(self._LEAST * np.exp((place - 0.5) * self._STEP))
