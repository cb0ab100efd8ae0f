"""Ratios of Graven's quantities to a peer's, and the bands in which they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Difference:
    """Runs in which more than the tolerance is accepted, and why."""

    runs: tuple[str, ...]
    """Their names, or globs."""
    bands: Mapping[str, tuple[float, float]]
    """Least and largest ratio by quantity."""
    reason: str

    def covers(self, run: str, quantity: str) -> bool:
        """Returns True if it is about this quantity of a run."""
        return quantity in self.bands and any(fnmatchcase(run, each) for each in self.runs)


@dataclass(frozen=True)
class Ratio:
    """A quantity of Graven over the peer's."""

    run: str
    quantity: str
    peer: float
    ours: float
    few: float | None
    """Number by which both may differ whatever their ratio; `None` where the ratio alone counts."""
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
        """True if it lies in its band, or the difference is too small to mean anything."""
        too_few = self.few is not None and abs(self.ours - self.peer) <= self.few
        return too_few or self.low <= self.value <= self.high


def differences(document: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The accepted differences of a peer's document."""

    def difference(runs: list[str], reason: str, **bands: list[float]) -> Difference:
        return Difference(
            tuple(runs), {name: (low, high) for name, (low, high) in bands.items()}, reason
        )

    return tuple(difference(**each) for each in document.get("differences", []))


def band(
    accepted: Iterable[Difference], run: str, quantity: str, tolerance: float
) -> tuple[float, float, str | None]:
    """The band of a ratio, and the reason if it is not the usual one."""
    for each in accepted:
        if each.covers(run, quantity):
            return *each.bands[quantity], each.reason
    return 1 - tolerance, 1 + tolerance, None
