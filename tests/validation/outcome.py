"""What is compared of a run on a request trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    cycles: int, latencies: Sequence[int], row_hits: int | None, bank_writes: Sequence[int]
) -> Outcome:
    """From the latencies of all reads, or of none that count."""
    ordered = sorted(latencies)
    mean = round(sum(ordered) / len(ordered), 3) if ordered else None
    p99 = ordered[-(-99 * len(ordered) // 100) - 1] if ordered else None
    return Outcome(cycles, mean, p99, row_hits, tuple(bank_writes))


def parse(row: Mapping[str, str]) -> Outcome:
    """From a line of a peer's outputs, which may lack some columns."""

    def found(name: str) -> float | None:
        return float(row[name]) if row.get(name) else None

    p99, hits = found("read_p99"), found("row_hits")
    return Outcome(
        int(row["cycles"]),
        found("read_mean"),
        None if p99 is None else int(p99),
        None if hits is None else int(hits),
        tuple(int(each) for each in row.get("bank_writes", "").split()),
    )
