"""Choices: what is compared with what, nothing left open but the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graven.engine.selection import Variation

if TYPE_CHECKING:
    from graven.engine.variants import Variant


@dataclass(frozen=True)
class Choice:
    """A comparison with nothing left open but the baseline.

    Attributes:
        designs: Names of designs.
        workloads: Names of workloads.
        threads: Numbers of program threads; `None` for one per core.
        transactions: Transactions of one simulation; `None` for the engine's default.
        baseline: The machine's, if it is among the designs.
        vary: Keys whose values are combined with each other.
        metrics: Statistics that designs are compared by; `None` for the default.
        variants: What those of the designs are that the comparison defines itself, by name.
    """

    designs: list[str]
    workloads: list[str]
    threads: tuple[int | None, ...]
    transactions: int | None
    baseline: str | None
    vary: tuple[Variation, ...]
    metrics: tuple[str, ...] | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)
