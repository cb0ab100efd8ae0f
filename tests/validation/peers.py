"""Peers: what they are given, their recorded outputs, and the comparison with Graven's."""

from __future__ import annotations

import csv
import tempfile
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .ratio import Ratio, band, differences
from .traces import TRACES, Geometry, Request, Trace, digest

FOLDER = Path(__file__).with_name("peers")

Outcome = Mapping[str, Any]
"""Quantities of a run by name; `None` where one is not counted. Times are in cycles."""


class Peer(ABC):
    """Simulator that Graven is compared with.

    A run is a text of steps between slashes, of which the last one is a trace or a program.

    Attributes:
        name: Name of its files in `peers/`.
        columns: Columns of the steps of a run.
        quantities: Columns of the quantities that are compared.
        also: Columns of other quantities that are recorded.
    """

    name: str
    columns: tuple[str, ...]
    quantities: tuple[str, ...]
    also: tuple[str, ...] = ()

    def __init__(self) -> None:
        """Reads its document: the version, the configuration, Graven's settings, differences."""
        text = (FOLDER / f"{self.name}.toml").read_text(encoding="utf-8")
        self.document: dict[str, Any] = tomllib.loads(text)
        self.differences = differences(self.document)

    @abstractmethod
    def runs(self) -> Iterator[str]:
        """Yields all runs, in the order of the tables."""

    @abstractmethod
    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs the peer.

        Raises:
            RuntimeError: It failed, or did not serve every request.
        """

    @abstractmethod
    def simulate(self, run: str, folder: Path, changed: Mapping[str, object]) -> Outcome:
        """Runs Graven, with these settings beside the peer's."""

    @abstractmethod
    def limits(self, quantity: str, value: float) -> tuple[float, float | None, bool]:
        """Returns what is accepted of a quantity with this value of the peer.

        Returns:
            The share by which Graven's may differ; the number by which it may differ, whatever its
            ratio; and True if the number alone counts.
        """

    def expected(self, run: str, known: Mapping[str, Outcome]) -> Outcome:
        """Returns the outputs of the peer with which Graven is compared."""
        return known[run]

    def compared(self, run: str) -> Sequence[str]:
        """Returns the quantities that are compared in a run."""
        del run
        return self.quantities

    def measured(self) -> dict[str, Outcome]:
        """Reads the committed outputs of the peer."""
        with (FOLDER / f"{self.name}.csv").open(encoding="utf-8", newline="") as file:
            return {
                "/".join(row[name] for name in self.columns): {
                    name: _parsed(row[name]) for name in (*self.quantities, *self.also)
                }
                for row in csv.DictReader(file)
            }

    def store(self, outcomes: Mapping[str, Outcome]) -> None:
        """Writes outputs of the peer."""
        names = (*self.quantities, *self.also)
        with (FOLDER / f"{self.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*self.columns, *names])
            for run, found in outcomes.items():
                writer.writerow([*run.split("/"), *(_text(found[name]) for name in names)])

    def compare(
        self, pattern: str = "*", changed: Mapping[str, object] | None = None
    ) -> Iterator[Ratio]:
        """Compares Graven, with these settings beside the peer's, on all that was measured."""
        known = self.measured()
        with tempfile.TemporaryDirectory() as folder:
            for run in self.runs():
                if fnmatchcase(run, pattern) and self.compared(run):
                    theirs = self.expected(run, known)
                    yield from self._ratios(
                        run, theirs, self.simulate(run, Path(folder), changed or {})
                    )

    def _ratios(self, run: str, theirs: Outcome, ours: Outcome) -> Iterator[Ratio]:
        for quantity in self.compared(run):
            one, other = theirs[quantity], ours[quantity]
            if one is not None and other is not None:
                tolerance, few, is_number = self.limits(quantity, one)
                low, high, reason = band(self.differences, run, quantity, tolerance)
                if is_number and reason is None:
                    low, high = 1.0, 1.0
                yield Ratio(run, quantity, one, other, few, low, high, reason)


def _parsed(text: str) -> Any:  # noqa: ANN401 - a number, several, or none
    if " " in text:
        return tuple(map(int, text.split()))
    return None if not text else int(text) if text.isdecimal() else float(text)


def _text(value: Any) -> Any:  # noqa: ANN401
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


# ---- request traces ----------------------------------------------------------------------------

TOLERANCES = {"cycles": 0.05, "read_mean": 0.1, "read_p99": 0.25, "row_hits": 0.05}
"""Share by which the ratio of a quantity may differ from 1 without an accepted difference."""
FEW_HITS = 6
"""Number by which row hits may differ where there are fewer than a hundred, all by chance."""
BURST = 4
"""Cycles by which latencies may differ: one of them NVMain takes to accept a request."""


class MemoryPeer(Peer):
    """Simulator of memory, which is given request traces.

    The first step of a run is a machine, the last one a trace.
    """

    also: tuple[str, ...] = ("drawn",)

    @abstractmethod
    def geometry(self, machine: str) -> Geometry:
        """Returns the places of a machine's memory with one channel."""

    def title(self, run: str) -> str:
        """Returns the name under which a run is counted in the table of all references."""
        return f"{self.document['peer']['name']}, {run.split('/')[0]}"

    def serves(self, run: str) -> bool:
        """Returns False if the peer fails in a run, or does not serve all its requests."""
        return not any(fnmatchcase(run, each["runs"]) for each in self.document.get("unserved", ()))

    def trace(self, run: str) -> tuple[Trace, Geometry]:
        """Returns the trace of a run and the geometry that it is drawn for."""
        machine, *_, name = run.split("/")
        return TRACES[name], TRACES[name].of(self.geometry(machine))

    def draw(self, run: str) -> list[Request]:
        """Draws the requests of a run."""
        trace, geometry = self.trace(run)
        return trace.draw(geometry)

    def limits(self, quantity: str, value: float) -> tuple[float, float | None, bool]:
        """Returns what is accepted; of few row hits the number counts, not the ratio."""
        tolerance = TOLERANCES[quantity]
        if quantity == "row_hits" and value < 100:
            return tolerance, FEW_HITS, True
        return tolerance, BURST if quantity.startswith("read_") else None, False


def of_requests(
    requests: list[Request], cycles: int, latencies: Sequence[int], **others: object
) -> Outcome:
    """Makes the outcome of a request trace from the latencies of all reads, or of none that count.

    Args:
        requests: The requests.
        cycles: From the first cycle to the end of the last request.
        latencies: From acceptance of a read by the controller to the last data.
        **others: Other quantities.
    """
    ordered = sorted(latencies)
    mean = round(sum(ordered) / len(ordered), 3) if ordered else None
    p99 = ordered[-(-99 * len(ordered) // 100) - 1] if ordered else None
    known = {"cycles": cycles, "read_mean": mean, "read_p99": p99, "drawn": digest(requests)}
    return {**known, **others}


def of_graven(stats: Mapping[str, Any], row_hits: Sequence[str]) -> Outcome:
    """Makes the outcome of a request trace from Graven's statistics, some of them row hits."""
    reads = stats["reads"] > 0
    return {
        "cycles": stats["cycles"],
        "read_mean": stats["read_latency_cycles_mean"] if reads else None,
        "read_p99": stats["read_latency_cycles_p99"] if reads else None,
        "row_hits": sum(stats[each] for each in row_hits),
    }
