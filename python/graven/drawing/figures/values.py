"""Numbers to be drawn: means over seeds, absolute or over a baseline's, and whole or not at all.

A number is there only if every seed has a result: a mean over a part of them, or of the workloads,
would be another number under the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from graven.basics.numbers import Value
from graven.results.comparison import MEAN, Comparison
from graven.results.intervals import (
    WINDOWS_TITLE,
    Interval,
    geometric,
    of_record,
    over_seeds,
    relative,
    spread_title,
)
from graven.results.record import Record

Place = tuple[int, tuple[tuple[str, Value], ...]]
"""Threads, and what is varied."""

NO_RESULT = "no result"
BASELINE_IS_0 = "baseline is 0"
VALUE_IS_0 = "no geomean: a value is 0"
"""Reasons for a number that is not there."""

Take = Callable[[Record], Interval | None]
"""Function that takes a number of a record, with the interval that the record carries."""


@dataclass(frozen=True)
class Number:
    """A number, and the ends of its interval.

    Attributes:
        value: The number, a mean over seeds.
        low: The lower end.
        high: The upper end.
        parts: What it is made of, by name, each a mean over the same seeds.
        printed: Number that a paper prints in its place.
        simulation: Place of the simulation that it is of in a report's list, if it is of one.
    """

    value: float
    low: float
    high: float
    parts: Mapping[str, float] | None = None
    printed: float | None = None
    simulation: int | None = None

    @staticmethod
    def of(values: Sequence[Interval | None]) -> Number | None:
        """The number of these seeds; nothing if one of them has none."""
        found = over_seeds(values)
        return None if found is None else Number(found.mean, *found.ends)

    @staticmethod
    def known(
        value: float | None,
        spread: tuple[float, float] | None = None,
        printed: float | None = None,
    ) -> Number | None:
        """Returns a number that is not computed here; nothing without a value."""
        return None if value is None else Number(value, *(spread or (value, value)), None, printed)

    @property
    def top(self) -> float:
        """The highest of what is drawn of it."""
        return max(self.high, self.printed or 0.0)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The ends of the interval, if they differ."""
        return (self.low, self.high) if self.high > self.low else None


class Source:
    """Numbers of a comparison, seed by seed."""

    def __init__(self, comparison: Comparison, baseline: str | None) -> None:
        """Absolute numbers, or multiples of the baseline's result of the same seed."""
        self.comparison = comparison
        self.baseline = baseline
        self._records = {(r.design, r.workload, *_place(r), r.seed): r for r in comparison.records}

    @cached_property
    def seeds(self) -> list[int]:
        """Every seed with a result."""
        return list(dict.fromkeys(record.seed for record in self.comparison.records))

    @cached_property
    def places(self) -> list[Place]:
        """Every number of threads with every combination of varied values that has a result."""
        return list(dict.fromkeys(_place(record) for record in self.comparison.records))

    @property
    def groups(self) -> list[str]:
        """Workloads, and of multiples their geometric mean if there are several."""
        workloads = self.comparison.workloads
        several = self.baseline is not None and len(workloads) > 1
        return [*workloads, MEAN] if several else workloads

    def number(self, take: Take, design: str, group: str, place: Place) -> Number | None:
        """A number of a workload or of their mean; nothing if a result of it is missing."""
        return Number.of([self._seed(take, design, group, place, seed) for seed in self.seeds])

    def absence(self, take: Take, design: str, group: str, place: Place) -> str:
        """The reason for which there is no number: a result, or a divisor other than 0, is missing.

        Empty if there is a number.
        """
        if self.number(take, design, group, place) is not None:
            return ""
        workloads = self.comparison.workloads if group == MEAN else [group]
        own, references = (
            [self._taken(take, of, w, place, seed) for w in workloads for seed in self.seeds]
            for of in (design, self.baseline or design)
        )
        if None in own or None in references:
            return NO_RESULT
        has_zero = any(value is not None and value.mean == 0.0 for value in references)
        return BASELINE_IS_0 if self.baseline is not None and has_zero else VALUE_IS_0

    def _seed(
        self, take: Take, design: str, group: str, place: Place, seed: int
    ) -> Interval | None:
        if group == MEAN:
            workloads = self.comparison.workloads
            return geometric([self._seed(take, design, w, place, seed) for w in workloads])
        own = self._taken(take, design, group, place, seed)
        if self.baseline is None:
            return own
        reference = self._taken(take, self.baseline, group, place, seed)
        return relative(own, reference, is_itself=design == self.baseline)

    def _taken(
        self, take: Take, design: str, workload: str, place: Place, seed: int
    ) -> Interval | None:
        record = self._records.get((design, workload, *place, seed))
        return None if record is None else take(record)

    def share(
        self, value: float, part: Take, whole: Take, design: str, group: str, place: Place
    ) -> float:
        """Returns the part of a value that a part has of a whole; 0 without one of them.

        A geometric mean has no parts: it is divided by the mean share of the workloads.
        """
        if group == MEAN:
            parts = [self._mean(part, design, w, place) for w in self.comparison.workloads]
            wholes = [self._mean(whole, design, w, place) for w in self.comparison.workloads]
            if None in parts or None in wholes:
                return 0.0
            shares = [p / w for p, w in zip(parts, wholes, strict=True) if p is not None and w]
            return value * math.fsum(shares) / len(shares) if shares else 0.0
        own, total = (self._mean(take, design, group, place) for take in (part, whole))
        return value * own / total if own is not None and total else 0.0

    def _mean(self, take: Take, design: str, workload: str, place: Place) -> float | None:
        number = Number.of(
            [self._taken(take, design, workload, place, seed) for seed in self.seeds]
        )
        return None if number is None else number.value

    @property
    def what_spreads_are(self) -> str:
        """Meaning of whiskers and bands, in words; empty if there are none."""
        count = len(self.seeds)
        if count > 1:
            return spread_title(count)
        return WINDOWS_TITLE if any(record.measured for record in self.comparison) else ""


def _place(record: Record) -> Place:
    return record.threads, tuple(sorted(record.varied.items()))


def stat(name: str) -> Take:
    """Takes a statistic."""
    return lambda record: of_record(record, name)


def total(names: Sequence[str]) -> Take:
    """Takes the sum of some statistics; nothing if a record lacks one."""

    def take(record: Record) -> Interval | None:
        values = [record.value(name) for name in names]
        known = [value for value in values if value is not None]
        return Interval(math.fsum(known)) if len(known) == len(values) else None

    return take
