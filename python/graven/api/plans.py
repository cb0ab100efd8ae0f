"""Comparisons that are decided, for Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graven.api.options import Names, Variations, choose
from graven.engine.choice import Choice
from graven.engine.machine import Machine
from graven.results.comparison import Metric
from graven.results.recovery import is_asked, shown, with_recovery
from graven.results.region import with_region
from graven.running.job import Job, chosen


@dataclass(frozen=True)
class Plan:
    """A comparison that is decided, and of which nothing has run.

    Attributes:
        machine: The machine.
        choice: Designs, workloads and all else that is combined.
        settings: Configuration, with what says which part of each run is measured.
        metrics: Numbers that designs are compared by.
    """

    machine: Machine
    choice: Choice
    settings: dict[str, str]
    metrics: tuple[Metric, ...]

    @staticmethod
    def of(
        designs: Names,
        workloads: Names,
        machine: Machine,
        settings: Mapping[str, str],
        vary: Variations,
        *,
        from_start: bool,
        recovery: int | None,
        **more: Any,  # noqa: ANN401 - as of `choose`
    ) -> Plan:
        """Decides what is compared, as `choose` does, and which part of each run is measured.

        Raises:
            ConfigError: something is refused.
        """
        texts = with_recovery(settings, recovery)
        choice = choose(designs, workloads, machine, texts, vary, **more)
        varied = [item.key for item in choice.vary]
        texts = with_region(texts, machine, varied, from_start=from_start)
        metrics = shown(choice.metrics, asked=is_asked(texts, varied, machine))
        return Plan(machine, choice, texts, metrics)

    def jobs(self, seeds: Sequence[int]) -> list[Job]:
        """Returns the simulations, seed by seed."""
        return chosen(self.choice, self.machine, seeds=seeds, settings=self.settings)
