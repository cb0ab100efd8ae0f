"""Ratios of what Graven and a peer found, and the bands in which they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

R = TypeVar("R")
"""What is run on both sides; its text is a path, which patterns match."""


@dataclass(frozen=True)
class Difference:
    """Where more than the tolerance is accepted, and why."""

    runs: str
    quantities: tuple[str, ...]
    low: float
    high: float
    reason: str

    def covers(self, run: object, quantity: str) -> bool:
        """Whether it is about this."""
        return quantity in self.quantities and fnmatchcase(str(run), self.runs)


@dataclass(frozen=True)
class Ratio(Generic[R]):
    """A quantity of Graven over the peer's."""

    run: R
    quantity: str
    peer: float
    ours: float
    few: float | None
    """By so many both may differ whatever their ratio; `None` where the ratio alone counts."""
    low: float
    high: float
    reason: str | None
    """The accepted difference, if there is one."""

    @property
    def value(self) -> float:
        """The ratio; 1 if both are 0."""
        if self.peer == 0:
            return 1.0 if self.ours == 0 else float("inf")
        return self.ours / self.peer

    @property
    def holds(self) -> bool:
        """Whether it lies in its band, or the difference is too small to mean anything."""
        too_few = self.few is not None and abs(self.ours - self.peer) <= self.few
        return too_few or self.low <= self.value <= self.high


def differences(document: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The accepted differences of a peer's document."""
    return tuple(
        Difference(
            each["runs"],
            tuple(each["quantities"]),
            each["band"][0],
            each["band"][1],
            each["reason"],
        )
        for each in document.get("differences", [])
    )


def band(
    accepted: Iterable[Difference], run: object, quantity: str, tolerance: float
) -> tuple[float, float, str | None]:
    """The band of a ratio, and the reason if it is not the usual one."""
    for each in accepted:
        if each.covers(run, quantity):
            return each.low, each.high, each.reason
    return 1 - tolerance, 1 + tolerance, None
