"""A measured number: one value for each seed of its experiment.

The number is the mean over the seeds, and its spread is the greatest of them less the least. Two
numbers differ if their means are farther apart than the larger of their spreads; a smaller
difference decides nothing. With one seed nothing is known of the spread, and any difference counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One value for each seed.

    Attributes:
        values: In the order of the seeds; at least one.
        tied: Of a share of cases, the share that lies within the spread, and counts for neither
            side.
    """

    values: tuple[float, ...]
    tied: float = 0.0

    @property
    def mean(self) -> float:
        """The arithmetic mean over the seeds."""
        return math.fsum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """The greatest value less the least."""
        return max(self.values) - min(self.values)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least value and the greatest, if there are several seeds."""
        return (min(self.values), max(self.values)) if len(self.values) > 1 else None

    def against(self, number: float) -> int:
        """1 if it lies above a number, -1 if below, 0 if the difference is below the spread."""
        return _sign(self.mean - number, self.spread)


def compare(left: Sample, right: Sample) -> int:
    """1 if the left is larger, -1 if it is smaller, 0 if the difference is below a spread."""
    return _sign(left.mean - right.mean, max(left.spread, right.spread))


def widest(samples: Sequence[Sample]) -> float:
    """The largest spread of several numbers."""
    return max((sample.spread for sample in samples), default=0.0)


def _sign(difference: float, spread: float) -> int:
    return 0 if abs(difference) <= spread else 1 if difference > 0.0 else -1
