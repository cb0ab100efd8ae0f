"""In what two results differ, or two machines: configuration, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graven.basics.numbers import Value
from graven.engine.catalogue import catalogue
from graven.results.record import Record

IDENTITY = ("design", "workload", "machine", "threads", "transactions", "seed", "version")
"""Fields of a record that are compared besides its configuration."""


@dataclass(frozen=True)
class Difference:
    """Something that two sides do not have alike.

    Attributes:
        name: A key of the configuration, `SECTION.KEY`; a statistic; or what distinguishes runs.
        unit: Its unit, or nothing.
        left: The one side's value; `None` if it has none.
        right: The other side's.
    """

    name: str
    unit: str
    left: Value
    right: Value

    @property
    def ratio(self) -> float | None:
        """The right side over the left one, of numbers."""
        sides = (self.left, self.right)
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in sides):
            return None
        return float(self.right) / float(self.left) if self.left else None  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        ratio = self.ratio
        document = {"name": self.name, "unit": self.unit, "left": self.left, "right": self.right}
        return document if ratio is None else document | {"ratio": ratio}


def of_identity(left: Record, right: Record) -> list[Difference]:
    """Returns the differences in what was simulated."""
    return _unequal(
        {name: getattr(left, name) for name in IDENTITY},
        {name: getattr(right, name) for name in IDENTITY},
        {},
    )


def of_configuration(
    left: Mapping[str, Mapping[str, Value]], right: Mapping[str, Mapping[str, Value]]
) -> list[Difference]:
    """Keys whose values are not the same, in the order in which they are declared."""
    units = {key: parameter.unit for key, parameter in catalogue().parameters.items()}
    return _unequal(_flat(left), _flat(right), units)


def of_statistics(
    left: Mapping[str, Value], right: Mapping[str, Value], *, least_percent: float = 0.0
) -> list[Difference]:
    """Statistics whose values are not the same; of numbers, those that differ by so much at least.

    Args:
        left: The one side's.
        right: The other's.
        least_percent: Of the larger of the two.
    """
    units = {name: catalogue().described(name).unit for name in (*left, *right)}
    return [
        item
        for item in _unequal(left, right, units)
        if percent(item.left, item.right) >= least_percent
    ]


def percent(left: Value, right: Value) -> float:
    """By how much numbers differ, of the larger; what is none differs by all."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return 100.0
    largest = max(abs(left), abs(right))
    return 100.0 * abs(right - left) / largest if largest else 0.0


def _flat(config: Mapping[str, Mapping[str, Value]]) -> dict[str, Value]:
    return {f"{section}.{key}": v for section, keys in config.items() for key, v in keys.items()}


def _unequal(
    left: Mapping[str, Value], right: Mapping[str, Value], units: Mapping[str, str]
) -> list[Difference]:
    names = dict.fromkeys((*left, *right))
    return [
        Difference(name, units.get(name, ""), left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    ]
