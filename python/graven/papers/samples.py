"""A measured number: one value for each seed of its experiment.

The number is the mean over the seeds. What it may be is the 95 % interval of its seeds by Student's
t; two numbers of the same seeds differ if the interval of their differences, seed by seed, leaves
out 0. With one seed nothing is known of the spread, and any difference counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from graven.results.intervals import Interval


@dataclass(frozen=True)
class Sample:
    """One value for each seed.

    Attributes:
        values: In the order of the seeds; at least one.
        tied: Of a share of cases, the share whose intervals hold 1, which counts for neither side.
    """

    values: tuple[float, ...]
    tied: float = 0.0

    @cached_property
    def interval(self) -> Interval:
        """The mean with its 95 % interval."""
        found = Interval.of(self.values)
        return Interval(math.nan) if found is None else found

    @property
    def mean(self) -> float:
        """The arithmetic mean over the seeds."""
        return math.fsum(self.values) / len(self.values)

    @property
    def half_width(self) -> float | None:
        """Half of the interval; nothing with one seed."""
        return self.interval.half_width

    @property
    def low(self) -> float:
        """The lower end of the interval; the value itself with one seed."""
        return self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval; the value itself with one seed."""
        return self.mean + (self.half_width or 0.0)

    def against(self, number: float) -> int:
        """1 if it lies above a number, -1 if below, 0 if its interval holds the number."""
        return compare(self, Sample((number,) * len(self.values)))


def compare(left: Sample, right: Sample) -> int:
    """1 if the left is larger, -1 if it is smaller, 0 if their seeds do not tell.

    Numbers of as many seeds are of the same ones, and are compared seed by seed; others differ if
    their intervals do not meet.
    """
    if len(left.values) == len(right.values):
        pairs = zip(left.values, right.values, strict=True)
        difference = Sample(tuple(one - other for one, other in pairs))
        return _sign(difference.low, difference.high)
    return _sign(left.low - right.high, left.high - right.low)


def differ(samples: Sequence[Sample]) -> bool:
    """Tells whether the largest of some numbers is larger than the smallest, by their seeds."""
    by_mean = sorted(samples, key=lambda sample: sample.mean)
    return compare(by_mean[-1], by_mean[0]) > 0


def _sign(low: float, high: float) -> int:
    return 1 if low > 0.0 else -1 if high < 0.0 else 0
