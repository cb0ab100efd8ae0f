"""Regions in steady state: who measures them, and results that are of none.

Comparisons and sweeps measure a region in steady state of each run unless they are asked not to
(`from_start`). The exceptions are runs whose events are placed in the whole of them: a recovery
that is timed, a trace that ends when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graven._engine import ConfigError
from graven.engine.machine import Machine
from graven.results.record import KIND, STEADY, WHOLE
from graven.results.recovery import is_asked

if TYPE_CHECKING:
    from graven.results.record import Record

GROWN = 0.01
"""Structures that grow by a larger part than this within a region are said to grow."""


def with_region(
    settings: Mapping[str, str], machine: Machine, varied: Iterable[str] = (), *, from_start: bool
) -> dict[str, str]:
    """Settings of a comparison, with the part of a run that is measured.

    Args:
        settings: What is set.
        machine: The machine, whose file may say it, too.
        varied: Keys that are varied.
        from_start: Whether whole runs are asked for.

    Raises:
        ConfigError: the settings ask for a region in steady state, too.
    """
    varied = list(varied)
    if from_start:
        if settings.get(KIND, WHOLE) != WHOLE or KIND in varied:
            raise ConfigError(
                f"from_start: whole runs are asked for, and {KIND} is set; one of them is to go"
            )
        own = machine.values().get(KIND)
        is_said = own is not None and own.value != WHOLE
        return {**settings, KIND: WHOLE} if is_said else dict(settings)
    if KIND in settings or KIND in varied or is_asked(settings, varied, machine):
        return dict(settings)
    return {**settings, KIND: STEADY}


def not_steady(records: Iterable[Record]) -> list[str]:
    """Lines that say which results are of no steady state, and why."""
    return [
        f"{record.design} on {record.workload}"
        + "".join(f", {key} = {value}" for key, value in record.varied.items())
        + f": {'; '.join(record.why_not_steady)}"
        for record in records
        if record.why_not_steady
    ]


def growth(records: Iterable[Record]) -> str:
    """Names the workloads whose structures grow within the regions, with their growth.

    What all designs have more of at the end is the structure; what one alone has is its own.
    """
    shared: dict[tuple[str, tuple[object, ...]], float] = {}
    for record in records:
        before, after = record.measured.get("footprint_bytes", (0, 0))
        grown = after / before - 1.0 if before else 0.0
        place = record.workload, (record.threads, record.seed, *record.varied.items())
        shared[place] = min(shared.get(place, grown), grown)
    largest: dict[str, float] = {}
    for (workload, _), grown in shared.items():
        largest[workload] = max(largest.get(workload, 0.0), grown)
    said = [f"{name} by {100 * share:.1f} %" for name, share in largest.items() if share > GROWN]
    return f"Structures grow within the regions: {', '.join(said)} at most." if said else ""


def _pieces(records: Iterable[Record]) -> str:
    """Says in how many pieces regions were simulated, each by itself; nothing if in one go."""
    numbers = sorted({record.measured.get("pieces", 1) for record in records})
    if numbers == [1]:
        return ""
    return f"Regions are simulated in pieces: {' or '.join(map(str, numbers))} (region.pieces)."


def notes(records: Iterable[Record], *, several: bool) -> list[str]:
    """Returns remarks on regions in steady state, a line each; none on whole runs.

    Args:
        records: The results.
        several: Whether they are of several seeds, which have an interval of their own.
    """
    measured = [record for record in records if record.measured]
    if not measured:
        return []
    spread = "" if several else "; ±: half of a 95 % interval over windows of the region"
    lines = [
        f"Counts and energies are per transaction{spread}.",
        _pieces(measured),
        growth(measured),
    ]
    lines += [f"not in steady state: {line}" for line in not_steady(measured)]
    return [line for line in lines if line]
