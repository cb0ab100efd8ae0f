"""Comparisons of Graven's DRAM: their parameters, and runs of Graven."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

import graven

from .peers import MemoryPeer, Outcome, of_graven
from .traces import TRACES, Geometry, write_dramsim

QUEUE = 64
"""Places for reads, and as many for writes."""


def settings(
    geometry: Geometry, clocks: Mapping[str, int], groups: int, ranks: int = 1
) -> dict[str, object]:
    """Returns Graven's parameters of a DRAM.

    Args:
        geometry: Channels, banks and rows.
        clocks: Distances in clocks, by the names of the parameters without `_clocks`.
        groups: Groups of banks in a rank.
        ranks: Ranks, which have an equal number of the banks each.
    """
    row = f"{geometry.lines * 64} B"
    return {
        "core.frequency_mhz": 1000,
        "dram.clock_mhz": 1000,
        "dram.capacity_bytes": "64 GB",
        "dram.channels": geometry.channels,
        "dram.ranks": ranks,
        "dram.bank_groups": groups,
        "dram.banks": geometry.banks // ranks,
        "dram.row_bytes": row,
        "dram.read_queue_entries": QUEUE,
        "dram.write_queue_entries": QUEUE,
        "controller.page_bytes": row,
        "controller.interleave": "page",
        "controller.row_hit_limit": 0,
        "controller.age_limit_ns": 0,
        **{f"dram.{name}_clocks": value for name, value in clocks.items()},
    }


class DramPeer(MemoryPeer):
    """Simulator of DRAM; a run is MACHINE/TRACE."""

    columns = ("machine", "trace")

    def runs(self) -> Iterator[str]:
        """Yields all runs, in the order of the tables."""
        for machine in self.document["machines"]:
            yield from filter(self.serves, (f"{machine}/{name}" for name in TRACES))

    @abstractmethod
    def graven_settings(self, run: str) -> dict[str, object]:
        """Returns Graven's settings, on the machine `silo`."""

    def simulate(self, run: str, folder: Path, changed: Mapping[str, object]) -> Outcome:
        """Runs Graven on the machine `silo`, with these settings beside the peer's."""
        trace = folder / "graven.trc"
        write_dramsim(self.draw(run), self.trace(run)[1], trace)
        given = {**self.graven_settings(run), **changed}
        stats = graven.memory(trace, machine="silo", dram=True, settings=given).stats
        return of_graven(stats, ("dram_row_hits",))
