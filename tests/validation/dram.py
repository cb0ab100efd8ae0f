"""The parameters that comparisons of Graven's DRAM have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import graven

from .peers import Outcome, of_graven
from .traces import Geometry, Request, write_dramsim

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


def simulate(
    requests: list[Request], geometry: Geometry, given: Mapping[str, Any], folder: Path
) -> Outcome:
    """Runs Graven's DRAM on requests."""
    trace = folder / "graven.trc"
    write_dramsim(requests, geometry, trace)
    stats = graven.memory(trace, machine="silo", dram=True, settings=given).stats
    return of_graven(stats, ("dram_row_hits",))
