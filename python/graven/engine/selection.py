"""Selections: designs, workloads, threads, a baseline, and what is varied in a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graven.basics.toml import Table


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

    @staticmethod
    def read(table: Table) -> tuple[Variation, ...] | None:
        """Reads the `vary` of a table of TOML; `None` if it has none.

        Raises:
            ConfigError: it is not as it must be.
        """
        found = table.variations()
        where = f"{table.where}, vary"
        if found is None:
            return None
        return tuple(Variation(key, values, where) for key, values in found.items())


@dataclass(frozen=True)
class Selection:
    """The comparison that a machine's file asks for; `None` where it says nothing."""

    designs: tuple[str, ...] | None = None
    workloads: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    transactions: int | None = None
    baseline: str | None = None
    vary: tuple[Variation, ...] | None = None
    metrics: tuple[str, ...] | None = None

    def lines(self) -> list[str]:
        """Lines for a person, one for each key."""
        lists = {"designs": self.designs, "workloads": self.workloads, "metrics": self.metrics}
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
        values: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()
        }
        if raw["vary"] is not None:
            varied = ((item["key"], item["values"], item["origin"]) for item in raw["vary"])
            values["vary"] = tuple(Variation(key, tuple(v), origin) for key, v, origin in varied)
        return Selection(**values)
