"""ChampSim: cores and caches of both simulators on the same traces, and what both found.

Nothing here builds or contains ChampSim. `measure` runs a program that the user has built with the
recorded configuration, and reads the JSON document that it writes.
"""

from __future__ import annotations

import csv
import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import graven

from . import programs
from .programs import EMPTY, PROGRAMS
from .ratio import Difference, Ratio, band, differences

PEERS = Path(__file__).with_name("peers")
CORES = ("in-order", "out-of-order")


@dataclass(frozen=True)
class Counts:
    """What is compared: of the accesses of the program alone."""

    cycles: int
    l1_hits: int
    l1_misses: int
    """Lines that the L1 asked the L2 for."""
    l2_misses: int
    """Lines that the L2 asked the LLC for."""
    llc_misses: int
    """Lines that the LLC asked memory for."""
    l1_writebacks: int | None
    """Dirty lines that the L1 gave to the L2; Graven does not count them."""
    l2_writebacks: int
    """Dirty lines that the L2 gave to the LLC."""
    llc_writebacks: int
    """Dirty lines that went to memory."""


QUANTITIES = tuple(each.name for each in fields(Counts))


@dataclass(frozen=True, order=True)
class Run:
    """What is run on both sides."""

    core: str
    program: str

    def __str__(self) -> str:
        return f"{self.core}/{self.program}"


@dataclass(frozen=True)
class Peer:
    """The contents of `champsim.toml`."""

    about: Mapping[str, str]
    champsim: Mapping[str, Any]
    """Its configuration, as the JSON document that it is built with."""
    queues: Mapping[str, int]
    graven: Mapping[str, object]
    cores: Mapping[str, Mapping[str, object]]
    tolerances: Mapping[str, tuple[float, int]]
    differences: tuple[Difference, ...]

    @classmethod
    def read(cls) -> Peer:
        """The committed one."""
        found = tomllib.loads((PEERS / "champsim.toml").read_text(encoding="utf-8"))
        tolerances = {name: tuple(each) for name, each in found["tolerances"].items()}
        return cls(
            found["peer"],
            found["champsim"],
            found["queues"],
            found["graven"],
            found["cores"],
            tolerances,
            differences(found),
        )

    def graven_settings(self, core: str) -> dict[str, object]:
        """Graven's parameters, on the machine `silo`."""
        return {**times(self.champsim, self.queues), **self.graven, **self.cores[core]}


def times(champsim: Mapping[str, Any], queues: Mapping[str, int]) -> dict[str, object]:
    """ChampSim's latencies in Graven's parameters.

    - A cache takes `hit_latency` to look a line up, and `fill_latency` to take one from below. With
      h and f of levels 1 to 3, a hit takes h1, h1 + h2 + f1, or h1 + h2 + h3 + f1 + f2, and a miss
      f3 more.
    - Beside that a request waits in queues; `queues` has the cycles before each level. They are the
      differences, whole cycles, on four programs whose reads wait for each other (l1-reads,
      stride-4k, llc-chase, memory-chase); the other programs have no part in them.
    - Memory has rows that cost nothing to open (tRP = tRCD = 0): each access takes tCAS, then the
      burst, during both of which its bank is held.
    """
    level = [champsim[name] for name in ("L1D", "L2C", "LLC")]
    hit = [each["hit_latency"] for each in level]
    fill = [each["fill_latency"] for each in level]
    memory = champsim["physical_memory"]
    cycle_ns = 1000 / champsim["ooo_cpu"][0]["frequency"]
    access_ns = memory["tCAS"] * 2000 / memory["data_rate"]
    burst_ns = 64 / memory["channel_width"] * 1000 / memory["data_rate"]
    read_ns = access_ns + (fill[2] + queues["memory"]) * cycle_ns
    return {
        "core.frequency_mhz": champsim["ooo_cpu"][0]["frequency"],
        "l1.latency_cycles": hit[0] + queues["l1"],
        "l2.latency_cycles": hit[1] + fill[0] + queues["l2"],
        "llc.latency_cycles": hit[2] + fill[1] + queues["llc"],
        "pm.read_ns": read_ns,
        "pm.row_hit_ns": read_ns,
        "pm.column_ns": access_ns + burst_ns,
        "pm.precharge_ns": 0,
        "pm.write_ns": access_ns,
        "pm.burst_ns": burst_ns,
    }


def runs() -> Iterator[Run]:
    """All runs, in the order of the tables; those without accesses first."""
    for core in CORES:
        for program in (EMPTY, *PROGRAMS):
            yield Run(core, program.name)


def write(run: Run, path: Path) -> int:
    """Writes the trace of a run; returns how many instructions come before what is compared."""
    program = programs.find(run.program)
    return programs.write(program.draw(), run.core == "in-order" or program.dependent, path)


def measure(program: Path, run: Run, folder: Path) -> Counts:
    """What ChampSim finds."""
    trace, out = folder / f"{run.core}-{run.program}.trace", folder / f"{run.program}.json"
    before = write(run, trace)
    last = trace.stat().st_size // programs.INSTRUCTION_BYTES - programs.PADDING // 2
    command = [program, "--hide-heartbeat", "-w", before, "-i", last - before, "--json", out, trace]
    subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
    found = json.loads(out.read_text(encoding="utf-8"))[0]["roi"]
    trace.unlink()

    def count(cache: str, types: tuple[str, ...], outcomes: tuple[str, ...]) -> int:
        return sum(found[cache][each][outcome][0] for each in types for outcome in outcomes)

    demand, write_, any_ = ("LOAD", "RFO"), ("WRITE",), ("hit", "miss")
    merged = count("LLC", demand, ("mshr_merge",))
    memory = found["DRAM"][0]
    return Counts(
        cycles=found["cores"][0]["cycles"],
        l1_hits=count("cpu0_L1D", (*demand, *write_), ("hit",)),
        l1_misses=count("cpu0_L2C", demand, any_),
        l2_misses=count("LLC", demand, any_),
        llc_misses=count("LLC", demand, ("miss",)) - merged,
        l1_writebacks=count("cpu0_L2C", write_, any_),
        l2_writebacks=count("LLC", write_, any_),
        llc_writebacks=memory["WQ ROW_BUFFER_HIT"] + memory["WQ ROW_BUFFER_MISS"],
    )


def measured() -> dict[Run, Counts]:
    """The committed outputs of the peer."""
    with (PEERS / "champsim.csv").open(encoding="utf-8", newline="") as file:
        return {
            Run(row["core"], row["program"]): Counts(*(int(row[name]) for name in QUANTITIES))
            for row in csv.DictReader(file)
        }


def store(found: Mapping[Run, Counts]) -> None:
    """Writes outputs of the peer."""
    with (PEERS / "champsim.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["core", "program", *QUANTITIES])
        for run, counts in found.items():
            writer.writerow([run.core, run.program, *astuple(counts)])


def simulate(peer: Peer, run: Run, folder: Path, changed: Mapping[str, object]) -> Counts:
    """What Graven counts in a whole trace, with these settings beside the peer's."""
    trace, imported = folder / "some.trace", folder / "some.gvt"
    write(run, trace)
    graven.import_champsim([trace], imported)
    settings = {**peer.graven_settings(run.core), **changed}

    def stats(more: Mapping[str, object]) -> Mapping[str, Any]:
        record = graven.replay(imported, "ideal", machine="silo", settings={**settings, **more})
        return record.stats

    whole = stats({})
    # Only what leaves the last level is counted; here, that is the L2.
    last = {"llc.bytes": settings["l2.bytes"], "llc.ways": settings["l2.ways"], "l2.bytes": 0}
    return Counts(
        cycles=whole["cycles"],
        l1_hits=whole["l1_hits"],
        l1_misses=whole["l1_misses"],
        l2_misses=whole["l2_misses"],
        llc_misses=whole["llc_misses"],
        l1_writebacks=None,
        l2_writebacks=stats(last)["llc_writebacks"],
        llc_writebacks=whole["llc_writebacks"],
    )


def less(counts: Counts, empty: Counts) -> Counts:
    """Without what a trace without accesses has."""
    return replace(
        counts,
        **{
            name: getattr(counts, name) - getattr(empty, name)
            for name in QUANTITIES
            if getattr(counts, name) is not None
        },
    )


def counts_hits(run: Run) -> bool:
    """Whether both count each access once in the L1.

    Not where accesses are under way at the same time: one to a line that is being fetched is in
    ChampSim a miss, or not counted at all if it meets another in a queue, and joins in Graven.
    """
    stores = any(access.write for access in programs.find(run.program).draw())
    return run.core == "in-order" and not stores


def ratios(peer: Peer, run: Run, theirs: Counts, ours: Counts) -> Iterator[Ratio[Run]]:
    """All quantities that both have."""
    for name in QUANTITIES:
        one, other = getattr(theirs, name), getattr(ours, name)
        if other is not None and (name != "l1_hits" or counts_hits(run)):
            tolerance, few = peer.tolerances[name]
            low, high, reason = band(peer.differences, run, name, tolerance)
            yield Ratio(run, name, one, other, few, low, high, reason)


def compare(
    pattern: str = "*", changed: Mapping[str, object] | None = None
) -> Iterator[Ratio[Run]]:
    """Compares Graven, with these settings beside the peer's, on everything that was measured."""
    peer, known = Peer.read(), measured()
    with tempfile.TemporaryDirectory() as name:
        empty: dict[str, Counts] = {}
        for run in runs():
            if run.program == EMPTY.name:
                empty[run.core] = simulate(peer, run, Path(name), changed or {})
            elif fnmatchcase(str(run), pattern):
                ours = less(simulate(peer, run, Path(name), changed or {}), empty[run.core])
                theirs = less(known[run], known[Run(run.core, EMPTY.name)])
                yield from ratios(peer, run, theirs, ours)
