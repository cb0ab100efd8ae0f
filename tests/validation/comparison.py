"""Graven on the same traces, and the ratios of what both found."""

from __future__ import annotations

import csv
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import graven

from . import nvmain
from .outcome import Outcome, parse
from .ratio import Difference, R, Ratio, band, differences
from .traces import TRACES, Request, write_nvmain

PEERS = Path(__file__).with_name("peers")
TOLERANCE = 0.05
"""How far a ratio may be from 1 without an accepted difference."""
FEW_HITS = 6
"""By so many row hits outcomes may differ where there are fewer than a hundred, all by chance."""
BURST = 4
"""By so many cycles latencies may differ: one of them NVMain takes to accept a request."""
QUANTITIES = ("cycles", "read_mean", "read_p99", "row_hits")
COLUMNS = ("machine", "scheduler", "trace", *QUANTITIES, "bank_writes")


@dataclass(frozen=True, order=True)
class Run:
    """What is run on both sides."""

    machine: str
    scheduler: str
    trace: str

    def __str__(self) -> str:
        return f"{self.machine}/{self.scheduler}/{self.trace}"


@dataclass(frozen=True)
class Peer:
    """The contents of `nvmain.toml`."""

    about: Mapping[str, str]
    machines: Mapping[str, nvmain.Settings]
    schedulers: Mapping[str, Mapping[str, Any]]
    graven: Mapping[str, object]
    differences: tuple[Difference, ...]

    @classmethod
    def read(cls) -> Peer:
        """The committed one."""
        found = tomllib.loads((PEERS / "nvmain.toml").read_text(encoding="utf-8"))
        machines = {name: {**found["common"], **own} for name, own in found["machines"].items()}
        accepted = differences(found)
        return cls(found["peer"], machines, found["schedulers"], found["graven"], accepted)

    def runs(self) -> Iterator[Run]:
        """All runs, in the order of the tables."""
        for machine in self.machines:
            for scheduler in self.schedulers:
                for trace in TRACES:
                    yield Run(machine, scheduler, trace.name)

    def nvmain_settings(self, run: Run) -> dict[str, str | int]:
        """NVMain's configuration of a run."""
        scheduler = self.schedulers[run.scheduler]["nvmain"]
        return {**self.machines[run.machine], "MEM_CTL": scheduler}

    def graven_settings(self, run: Run) -> dict[str, object]:
        """Graven's, on the machine `silo`."""
        timings = nvmain.graven_settings(self.machines[run.machine])
        return {**self.graven, **timings, **self.schedulers[run.scheduler]["graven"]}


def draw(name: str) -> list[Request]:
    """The requests of a trace."""
    return next(trace for trace in TRACES if trace.name == name).draw()


def measured() -> dict[Run, Outcome]:
    """The committed outputs of the peer."""
    with (PEERS / "nvmain.csv").open(encoding="utf-8", newline="") as file:
        return {
            Run(row["machine"], row["scheduler"], row["trace"]): parse(row)
            for row in csv.DictReader(file)
        }


def store(outcomes: Mapping[Run, Outcome]) -> None:
    """Writes outputs of the peer."""
    with (PEERS / "nvmain.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for run, found in outcomes.items():
            values = [getattr(found, quantity) for quantity in QUANTITIES]
            writes = " ".join(str(each) for each in found.bank_writes)
            writer.writerow([run.machine, run.scheduler, run.trace, *values, writes])


def simulate(
    peer: Peer, run: Run, folder: Path, changed: Mapping[str, object] | None = None
) -> Outcome:
    """What Graven finds, with these settings beside the peer's."""
    trace = folder / f"{run.trace}.nvt"
    if not trace.exists():
        write_nvmain(draw(run.trace), trace)
    settings = {**peer.graven_settings(run), **(changed or {})}
    return of_graven(graven.memory(trace, machine="silo", settings=settings).stats)


def of_graven(stats: Mapping[str, Any]) -> Outcome:
    """What Graven found, of the statistics of a request trace."""
    reads = stats["reads"] > 0
    return Outcome(
        cycles=stats["cycles"],
        read_mean=stats["read_latency_cycles_mean"] if reads else None,
        read_p99=stats["read_latency_cycles_p99"] if reads else None,
        row_hits=stats["row_hits"] + stats["write_row_hits"],
        bank_writes=(),
    )


def ratios(
    accepted: Sequence[Difference], run: R, theirs: Outcome, ours: Outcome
) -> Iterator[Ratio[R]]:
    """All quantities that both have."""
    for quantity in QUANTITIES:
        one, other = getattr(theirs, quantity), getattr(ours, quantity)
        if one is not None and other is not None:
            low, high, reason = band(accepted, run, quantity, TOLERANCE)
            few: float | None = BURST if quantity.startswith("read_") else None
            if quantity == "row_hits" and one < 100:
                # Of so few the number counts, not the ratio.
                few, low, high = FEW_HITS, 1.0, 1.0
            yield Ratio(run, quantity, one, other, few, low, high, reason)


def compare(
    pattern: str = "*", changed: Mapping[str, object] | None = None
) -> Iterator[Ratio[Run]]:
    """Compares Graven, with these settings beside the peer's, on everything that was measured."""
    peer, known = Peer.read(), measured()
    with tempfile.TemporaryDirectory() as folder:
        for run in peer.runs():
            if fnmatchcase(str(run), pattern):
                ours = simulate(peer, run, Path(folder), changed)
                yield from ratios(peer.differences, run, known[run], ours)
