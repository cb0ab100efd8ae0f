"""What a comparison is of: designs, workloads, threads, a baseline, and what is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Variation:
    """A configuration key whose values are compared with each other.

    Attributes:
        key: SECTION.KEY.
        values: As `--set` takes them, each once.
        origin: The argument or the file that asks for it, for messages.
    """

    key: str
    values: tuple[str, ...]
    origin: str = "--vary"


@dataclass(frozen=True)
class Selection:
    """What a machine's file says is compared on it; `None` where it says nothing."""

    designs: tuple[str, ...] | None = None
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    transactions: int | None = None
    baseline: str | None = None
    vary: tuple[Variation, ...] | None = None
    metrics: tuple[str, ...] | None = None

    def lines(self) -> list[str]:
        """What it says, for a person: a line for each key."""
        lists = {
            "designs": self.designs,
            "workloads": self.workloads,
            "metrics": self.metrics,
        }
        lines = [f"{what}: {', '.join(names)}" for what, names in lists.items() if names]
        if self.threads is not None:
            lines.append(f"threads: {', '.join(map(str, self.threads))}")
        if self.transactions is not None:
            lines.append(f"transactions: {self.transactions:,}")
        if self.baseline is not None:
            lines.append(f"baseline: {self.baseline}")
        return lines + [f"{item.key} = {', '.join(item.values)}" for item in self.vary or ()]

    @staticmethod
    def parse(raw: Mapping[str, Any]) -> Selection:
        """Reads the engine's document."""

        def names(given: Sequence[str] | None) -> tuple[str, ...] | None:
            return None if given is None else tuple(given)

        threads, vary = raw["threads"], raw["vary"]
        return Selection(
            names(raw["designs"]),
            names(raw["workloads"]),
            None if threads is None else tuple(threads),
            raw["transactions"],
            raw["baseline"],
            None
            if vary is None
            else tuple(Variation(v["key"], tuple(v["values"]), v["origin"]) for v in vary),
            names(raw["metrics"]),
        )
