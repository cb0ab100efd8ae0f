"""What is compared of a run on a request trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Of one run; times in cycles of the memory."""

    cycles: int
    """From the first cycle to the end of the last request."""
    read_mean: float | None
    """Latency of reads, from acceptance by the controller to the last data; None without reads."""
    read_p99: int | None
    """Its 99th percentile."""
    row_hits: int | None
    """Accesses that found their row open; None where not counted."""
    bank_writes: tuple[int, ...]
    """Writes of each bank."""


def outcome(
    cycles: int, latencies: Sequence[int], row_hits: int, bank_writes: Sequence[int]
) -> Outcome:
    """From the latencies of all reads."""
    ordered = sorted(latencies)
    mean = round(sum(ordered) / len(ordered), 3) if ordered else None
    p99 = ordered[-(-99 * len(ordered) // 100) - 1] if ordered else None
    return Outcome(cycles, mean, p99, row_hits, tuple(bank_writes))
