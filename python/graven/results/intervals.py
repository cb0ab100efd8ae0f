"""Intervals: a mean with half of its 95 % confidence interval, and what follows for ratios.

Tables, reports and pictures take every number that may have a spread from here. There are two
sources. Several seeds give an interval by Student's t distribution over their values (kind
`seeds`). A single record of a region in steady state carries an interval over its windows (kind
`windows`). Seeds come first: where there are several, what single records carry is not used.

A ratio over seeds is the mean of the ratios of single seeds, each of a design and the baseline on
the same program: what a seed does to both cancels out. A ratio of two records with intervals of
their own has the relative half-widths of both, in quadrature, since nothing pairs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import stdev
from typing import TYPE_CHECKING

from graven.basics.numbers import ratio, scaled, with_spread

if TYPE_CHECKING:
    from graven.results.record import Record

SEEDS = "seeds"
"""The kind of an interval over seeds."""

WINDOWS = "windows"
"""The kind of an interval over the windows of a run."""

LEVEL = 0.95
"""The confidence of an interval."""


@dataclass(frozen=True)
class Interval:
    """A mean, and how far from it the true one may be.

    Attributes:
        mean: The mean.
        half_width: Half of the 95 % confidence interval; nothing if it is not known.
        n: The number of values.
        kind: What the values are of: `seeds` or `windows`; empty for a single value.

    Examples:
        >>> result = graven.compare("base,silo", "hash", transactions=200, seeds=3, from_start=True)
        >>> found = result.interval("ipc", "silo", "hash", threads=8)
        >>> round(found.mean, 3), round(found.half_width, 3), found.n, found.kind
        (0.64, 0.048, 3, 'seeds')
        >>> found.low < found.mean < found.high
        True
        >>> found.ends == (found.low, found.high)
        True
        >>> found.overlaps(result.interval("ipc", "base", "hash", threads=8))
        False
        >>> print(found)
        0.64 ±0.0483

        A ratio is paired by seed. Intervals that nothing pairs are divided by `over`:

        >>> paired = result.normalised("base").interval("cycles", "silo", "hash", threads=8)
        >>> print(paired)
        0.424 ±0.0178
        >>> apart = found.over(result.interval("ipc", "base", "hash", threads=8))
        >>> apart.kind, apart.half_width > 0
        ('seeds', True)
        >>> graven.Interval.of([1.0, 2.0, None]) is None
        True
    """

    mean: float
    half_width: float | None = None
    n: int = 1
    kind: str = ""

    @staticmethod
    def of(values: Sequence[float | None], kind: str = SEEDS) -> Interval | None:
        """The interval over some values by Student's t; nothing if one of them is missing."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known or len(known) < len(values):
            return None
        if len(known) == 1:
            return Interval(known[0])
        half = quantile(len(known) - 1) * stdev(known) / math.sqrt(len(known))
        return Interval(math.fsum(known) / len(known), half, len(known), kind)

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + (self.half_width or 0.0)

    def overlaps(self, other: Interval) -> bool:
        """Tells whether the two have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def over(self, other: Interval) -> Interval | None:
        """The ratio of two that nothing pairs; nothing if the other is 0."""
        if not other.mean:
            return None
        return _with_relative(self.mean / other.mean, [self, other])

    @property
    def ends(self) -> tuple[float, float]:
        """The two ends as pictures draw them, where nothing lies below 0."""
        return max(self.low, 0.0), self.high

    def __str__(self) -> str:
        if self.half_width is None:
            return scaled(self.mean)
        return f"{scaled(self.mean)} ±{scaled(self.half_width)}"


def _with_relative(mean: float, parts: Sequence[Interval], share: float = 1.0) -> Interval:
    """A mean whose relative half-width is a share of those of the parts, in quadrature."""
    if any(part.half_width is None or not part.mean for part in parts):
        return Interval(mean)
    squares = ((part.half_width or 0.0) ** 2 / part.mean**2 for part in parts)
    half = abs(mean) * share * math.sqrt(math.fsum(squares))
    return Interval(mean, half, min(part.n for part in parts), parts[0].kind)


def of_record(record: Record, stat: str) -> Interval | None:
    """A statistic of a record, with the interval that the record carries, if any."""
    estimate = record.estimate(stat)
    if estimate is not None:
        return Interval(*estimate, kind=WINDOWS)
    value = record.number(stat)
    return None if value is None else Interval(value, None)


def relative(
    own: Interval | None, reference: Interval | None, *, is_itself: bool
) -> Interval | None:
    """A design's value over the baseline's; nothing if one is missing, or the baseline's is 0.

    A baseline over itself is 1, whatever it is known to.
    """
    if own is None or reference is None or not reference.mean:
        return None
    return Interval(1.0) if is_itself else own.over(reference)


def over_seeds(values: Sequence[Interval | None]) -> Interval | None:
    """One interval of those of single seeds: of one seed its own, of several that over seeds."""
    if len(values) == 1:
        return values[0]
    return Interval.of([None if value is None else value.mean for value in values])


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """The geometric mean; `None` if there is no value, or one is missing or not positive."""
    positive = [value for value in values if value is not None and value > 0.0]
    if not values or len(positive) != len(values):
        return None
    return math.exp(math.fsum(math.log(value) for value in positive) / len(positive))


def geometric(values: Sequence[Interval | None]) -> Interval | None:
    """The geometric mean of independent intervals; nothing as of `geometric_mean`."""
    mean = geometric_mean([None if value is None else value.mean for value in values])
    if mean is None:
        return None
    return _with_relative(mean, [v for v in values if v is not None], 1.0 / len(values))


def arithmetic(values: Sequence[Interval | None]) -> Interval | None:
    """The arithmetic mean of independent intervals; nothing if one is missing."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    mean = math.fsum(value.mean for value in known) / len(known)
    if any(value.half_width is None for value in known):
        return Interval(mean)
    half = math.sqrt(math.fsum((value.half_width or 0.0) ** 2 for value in known)) / len(known)
    return Interval(mean, half, min(value.n for value in known), known[0].kind)


def best_of(values: Mapping[str, Interval | None], *, higher: bool) -> set[str]:
    """The names whose values are the best, if the intervals tell them from all others.

    Without intervals, equal values are the best together.
    """
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return set()
    rivals = rivals_of(known, higher=higher)
    top = known[rivals[0]]
    if len(rivals) == 1 or all(known[name].mean == top.mean for name in rivals):
        has_none = all(known[name].half_width is None for name in rivals)
        return set(rivals) if has_none or len(rivals) == 1 else set()
    return set()


def rivals_of(known: Mapping[str, Interval], *, higher: bool) -> list[str]:
    """The name of the best value, and then those whose intervals overlap with its own."""
    choose = max if higher else min
    top = choose(known, key=lambda name: known[name].mean)
    others = [name for name in known if name != top and known[name].overlaps(known[top])]
    return [top, *others]


def ratio_text(value: Interval | None) -> str:
    """A multiple as tables show it: `2.46 ±0.03`."""
    if value is None or value.half_width is None:
        return ratio(None if value is None else value.mean)
    return with_spread(ratio(value.mean), value.half_width)


def scaled_text(value: Interval | None) -> str:
    """A value of any size as tables show it: `1.24 ±0.03 M`."""
    if value is None or value.half_width is None:
        return scaled(None if value is None else value.mean)
    number, space, prefix = scaled(value.mean).partition(" ")
    factor = value.mean / float(number) if float(number) else 1.0
    return with_spread(number, value.half_width / abs(factor)) + space + prefix


def explained(n: int) -> str:
    """Explains ± in tables of several seeds."""
    return (
        f"±: half of the {100 * LEVEL:.0f} % confidence interval of the mean over {n} seeds "
        "(Student's t); ratios are paired by seed. The best is marked where its interval overlaps "
        "no other safe design's."
    )


WINDOWS_TITLE = f"{100 * LEVEL:.0f} % confidence interval over windows"
"""Meaning of whiskers and bands in pictures of regions in steady state."""


def spread_title(n: int) -> str:
    """Returns the meaning of whiskers and bands in pictures of several seeds."""
    return f"{100 * LEVEL:.0f} % confidence interval, {n} seeds"


@cache
def quantile(freedom: int, level: float = LEVEL) -> float:
    """The number that Student's t stays below in size with this probability.

    The distribution for whole degrees of freedom is a finite sum (Abramowitz and Stegun, 26.7.3 and
    26.7.4), of an angle, which is found by bisection.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if _within(middle, freedom) > level else (middle, high)
    return math.tan((low + high) / 2) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """The probability that Student's t is less than √freedom × tan(angle) in size."""
    cosine = math.cos(angle)
    is_odd = freedom % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        first = 2 * step + 2 if is_odd else 2 * step + 1
        term *= cosine * cosine * first / (first + 1)
    if is_odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
