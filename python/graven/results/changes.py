"""Changes between two sets of results: the same simulations before and after something."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graven.basics.numbers import Value, caption
from graven.results.comparison import Comparison, Metric
from graven.results.differences import Difference, of_configuration, percent
from graven.results.intervals import geometric_mean
from graven.results.record import Record

Place = tuple[str, str, int, int, tuple[tuple[str, Value], ...]]
"""Design, workload, threads, seed, and what is varied."""


@dataclass(frozen=True)
class Change:
    """A statistic of one simulation in both sets; `simulation` names it with its design."""

    simulation: str
    design: str
    metric: Metric
    left: float
    right: float

    @property
    def place(self) -> str:
        """The simulation without its design."""
        return self.simulation.removeprefix(f"{self.design} on ")

    @property
    def factor(self) -> float | None:
        """The other over the one; `None` if that is nothing."""
        return self.right / self.left if self.left else None

    @property
    def size(self) -> float:
        """Size of the change, up or down alike: 0 if there is none."""
        factor = self.factor
        if factor is None or factor <= 0.0:
            return 0.0 if self.left == self.right else math.inf
        return abs(math.log(factor))

    @property
    def is_better(self) -> bool | None:
        """True if the other is better; `None` if they are alike."""
        if self.left == self.right:
            return None
        return (self.right > self.left) == self.metric.higher_is_better


@dataclass(frozen=True)
class Configured:
    """A key whose value differs, and the number of simulations in which it does."""

    difference: Difference
    simulations: int


@dataclass(frozen=True)
class Changes:
    """Two sets of results, simulation by simulation.

    Attributes:
        both: How many simulations are in both.
        configuration: Keys whose values differ, those of most simulations first.
        changes: Metrics of those that are in both, what changes most first.
        only_left: Simulations that only the one has.
        only_right: Simulations that only the other has.
        metrics: What is compared.
        least_percent: What changes by less, of the larger of the two, is not shown; it is in the
            means all the same.
    """

    both: int
    configuration: Sequence[Configured]
    changes: Sequence[Change]
    only_left: Sequence[str]
    only_right: Sequence[str]
    metrics: Sequence[Metric]
    least_percent: float = 0.0

    @staticmethod
    def of(
        left: Comparison,
        right: Comparison,
        metrics: Sequence[Metric],
        least_percent: float = 0.0,
    ) -> Changes:
        """Compares two sets, simulation by simulation."""
        before, after = _by_place(left.records), _by_place(right.records)
        both = [place for place in before if place in after]
        keys: dict[tuple[str, str, Value, Value], int] = {}
        changes = []
        for place in both:
            one, other = before[place], after[place]
            for item in of_configuration(one.config, other.config):
                key = (item.name, item.unit, item.left, item.right)
                keys[key] = keys.get(key, 0) + 1
            for metric in metrics:
                values = one.value(metric.stat), other.value(metric.stat)
                if values[0] is not None and values[1] is not None:
                    name = _name(place)
                    changes.append(Change(name, one.design, metric, values[0], values[1]))
        configured = [Configured(Difference(*key), count) for key, count in keys.items()]
        return Changes(
            len(both),
            sorted(configured, key=lambda item: -item.simulations),
            sorted(changes, key=lambda change: -change.size),
            [_name(place) for place in before if place not in after],
            [_name(place) for place in after if place not in before],
            metrics,
            least_percent,
        )

    def of_metric(self, metric: Metric) -> list[Change]:
        """The changes of one metric, the largest first."""
        return [change for change in self.changes if change.metric == metric]

    def shown(self, metric: Metric) -> list[Change]:
        """Those of them that are shown: what changes, by as much as is asked for."""
        return [c for c in self.of_metric(metric) if c.size > 0.0 and self._is_large(c)]

    def _is_large(self, change: Change) -> bool:
        return percent(change.left, change.right) >= self.least_percent

    def mean(self, metric: Metric, design: str | None = None) -> float | None:
        """The geometric mean of a metric's factors, of one design or all; `None` if one is none."""
        of = [c for c in self.of_metric(metric) if design in (None, c.design)]
        return geometric_mean([change.factor for change in of])

    def designs(self) -> list[str]:
        """The designs in both, in the order of the results."""
        return sorted({change.design for change in self.changes})

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {
            "simulations": self.both,
            "configuration": [
                item.difference.to_dict() | {"simulations": item.simulations}
                for item in self.configuration
            ],
            "changes": [
                {
                    "simulation": change.simulation,
                    "statistic": change.metric.stat,
                    "left": change.left,
                    "right": change.right,
                    "ratio": change.factor,
                }
                for change in self.changes
                if self._is_large(change)
            ],
            "only_left": list(self.only_left),
            "only_right": list(self.only_right),
        }


def _by_place(records: Sequence[Record]) -> Mapping[Place, Record]:
    return {(r.design, r.workload, r.threads, r.seed, tuple(r.varied.items())): r for r in records}


def _name(place: Place) -> str:
    design, workload, threads, seed, varied = place
    name = f"{design} on {workload} ×{threads}"
    if varied:
        name += f", {caption(dict(varied))}"
    return name if seed == 1 else f"{name}, seed {seed}"
