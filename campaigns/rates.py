"""Rates at which a host simulates, beside those that are aimed at.

Four kinds of rates, by their names:

- `simulation/DESIGN/MACHINE/WORKLOAD`: loads and stores of whole simulations, of every design on
  its paper's machine and of `fwb` on `silo`'s, in processor time of the threads' programs
  (measured as `campaigns.scale` does: of short runs, the shortest of three).
- `failures/DESIGN`: power failures that `graven crash` judges, with all modes, in a run of `hash`,
  in processor time, its start included; of every sound design (the shortest of three).
- `benchmark/…`: what Criterion measures in `benches/`, with its own repetitions; its medians.
- `champsim/PROGRAM/…`: instructions of the same trace, on ChampSim (a program that the user has
  built; without `--champsim` those rows stay as they are) and on Graven, in processor time. Reading
  the trace counts for both; Graven's start, building and shutdown do not.

Nothing else should run on the host. `--only` takes what matches a glob of a name; rows of what was
not measured stay in `rates.csv`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import graven
from graven.api.options import sound_designs
from graven.engine.catalogue import catalogue

from .host_cost import threads_most
from .runner import Campaign, Failed, Given, Rows
from .scale import TIMES, Point, figure
from .scale import measure as measured
from .tables import ROOT, Row, Table, table_of

TABLE = Table(
    "rates",
    ("name", "unit", "amount", "seconds", "actions"),
    ("name",),
    lambda: ((name,) for name in names()),
)

TRANSACTIONS = 20_000
THREADS = 8
"""Threads of a machine that has as many; others run all that they have."""
WORKLOADS = ("array", "btree", "hash", "queue", "rbtree")

TRANSACTIONS_CRASHED = 1200
"""Transactions of a run of `hash` that is crashed everywhere."""

BENCHMARKS: dict[str, dict[str, float | None]] = {
    "simulation": {
        "stream/friendly/1": 60e6,
        "stream/friendly/8": 60e6,
        "stream/missing/1": None,
        "stream/missing/8": None,
    },
    "memory": {
        "trace/read nvmain": None,
        "trace/read binary": None,
        "replay/silo/random/saturated": 1.5e6,
        "replay/silo/random/light": 1.5e6,
        "replay/silo/sequential/saturated": 1.5e6,
        "replay/fwb/random/saturated": 1.5e6,
        "replay binary/silo/random/saturated": 3e6,
        "replay binary/silo/random/light": 3e6,
        "replay binary/silo/sequential/saturated": 3e6,
        "replay binary/fwb/random/saturated": 3e6,
    },
    "program_trace": {"program-trace/read/btree": None, "program-trace/read/hash": None},
    "populate": {
        f"populate/{how}/{name}": (64 << 20) / 0.05
        for how in ("alone", "alike")
        for name in WORKLOADS
    },
}
"""Benchmarks that Criterion measures: rates that they are to reach in a second, by its names.

NVMain's text is read while it is replayed; populating 64 MB is to take 50 ms.
"""


@dataclass(frozen=True)
class Stream:
    """A program that ChampSim and Graven run from one trace: random words, half of them stored."""

    name: str
    what: str
    footprint_bytes: int
    instructions: int
    on_champsim: int
    """Instructions that ChampSim runs, whose rate does not change much with time."""
    aim: float
    """Instructions in a second that are aimed at, over those of ChampSim."""

    def write(self, path: Path) -> None:
        """Writes its trace."""
        draw = np.random.default_rng(1)
        trace = np.zeros(self.instructions, INSTRUCTION)
        trace["ip"] = 0x7F00_0000_0000 + np.arange(self.instructions) % 1024 * 4
        touches_memory = draw.random(self.instructions) < MEMORY_SHARE
        stores = touches_memory & (draw.random(self.instructions) < 0.5)
        words = draw.integers(self.footprint_bytes // 8, size=self.instructions) * 8 + FIRST
        loads = touches_memory & ~stores
        trace["loaded"][loads, 0] = words[loads]
        trace["stored"][stores, 0] = words[stores]
        path.write_bytes(trace.tobytes())


INSTRUCTION = np.dtype(
    [
        ("ip", "<u8"),
        ("branch", "u1", 2),
        ("registers", "u1", 6),
        ("stored", "<u8", 2),
        ("loaded", "<u8", 4),
    ]
)
"""An instruction of ChampSim's traces."""

FIRST = 1 << 20
"""The first address that is touched; 0 stands for no address."""

FEW = 1000
"""Instructions of a run that stands for building the machine."""

MEMORY_SHARE = 0.35
"""Share of the instructions of these programs that load or store."""

STREAMS = (
    Stream("friendly", "random words of 16 KB", 16 << 10, 20_000_000, 2_000_000, 250),
    Stream("hash-like", "random words of 256 MB", 256 << 20, 5_000_000, 100_000, 600),
)

CHAMPSIM = "champsim"
CORES = ("in-order", "out-of-order")
"""Models of the core that Graven runs them with."""


def row(name: str, unit: str, amount: float, seconds: float, actions: float | None = None) -> Row:
    """Makes a row of the table. A simulation has the number of actions, too."""
    counted = "" if actions is None else f"{actions:.0f}"
    numbers = {"amount": f"{amount:.0f}", "seconds": f"{seconds:.4g}", "actions": counted}
    return {"name": name, "unit": unit, **numbers}


# ---- simulations -------------------------------------------------------------------------------


def simulations() -> Iterator[str]:
    """Yields what is simulated: `DESIGN/MACHINE/WORKLOAD`."""
    for design in catalogue().designs:
        own = graven.cost(design.name).machine
        machines = [own, "silo"] if design.name == "fwb" else [own]
        for machine in machines:
            yield from (f"{design.name}/{machine}/{workload}" for workload in WORKLOADS)


def simulated(what: str) -> Iterator[Row]:
    """Measures one; nothing if it does not end, as with some designs that lose data as printed."""
    design, machine, workload = what.split("/")
    (preset,) = (each for each in catalogue().machines if each.name == machine)
    threads = min(THREADS, threads_most(preset))
    point = Point("simulation", what, 0, design, workload, threads, TRANSACTIONS, {}, machine)
    try:
        found = measured(point)
    except Failed as error:
        print(error, file=sys.stderr)
        return
    numbers = (found["operations"], found["run_seconds"], found["actions"])
    yield row(f"simulation/{what}", "operations", *numbers)


# ---- power failures ----------------------------------------------------------------------------


def judged(design: str) -> Iterator[Row]:
    """Crashes a run of a design everywhere, on one core; the shortest of several times."""
    command = [
        sys.executable, "-m", "graven", "crash", "--design", design, "--workload", "hash",
        "--transactions", str(TRANSACTIONS_CRASHED), "--jobs", "1", "--no-store",
        "--format", "json",
    ]  # fmt: skip
    printed = b""

    def run() -> None:
        nonlocal printed
        printed = subprocess.run(command, capture_output=True, check=True).stdout

    seconds = min(seconds_of(run, resource.RUSAGE_CHILDREN) for _ in range(TIMES))
    (report,) = json.loads(printed)
    yield row(f"failures/{design}", "power failures", report["recoveries"], seconds)


# ---- Criterion ---------------------------------------------------------------------------------


BENCH = ("cargo", "bench", "--quiet", "--locked", "--package", "graven-benches", "--bench")


def benchmarked(bench: str, name: str) -> Iterator[Row]:
    """Runs a benchmark of `benches`, and reads what Criterion has found."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*BENCH, bench, "--", "--noplot", f"^({name})$"],
            cwd=ROOT,
            env=os.environ | {"CRITERION_HOME": folder},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        for about in sorted(Path(folder).glob("**/new/benchmark.json")):
            told = json.loads(about.read_text(encoding="utf-8"))
            found = json.loads(about.with_name("estimates.json").read_text(encoding="utf-8"))
            ((unit, amount),) = told["throughput"].items()
            seconds = found["median"]["point_estimate"] / 1e9
            yield row(f"benchmark/{told['full_id']}", unit.lower(), amount, seconds)


# ---- ChampSim ----------------------------------------------------------------------------------


def seconds_of(action: Callable[[], object], whose: int) -> float:
    """Returns the processor seconds of an action, of this process or of those that it started."""

    def computed() -> float:
        used = resource.getrusage(whose)
        return used.ru_utime + used.ru_stime

    begun = computed()
    action()
    return computed() - begun


def streamed(stream: Stream, on: str, champsim: Path | None) -> Iterator[Row]:
    """Simulates a program on ChampSim, if there is one, or on one of Graven's cores."""
    with tempfile.TemporaryDirectory() as folder:
        trace, whole, few = (Path(folder) / name for name in ("t.champsim", "whole.gvt", "few.gvt"))
        stream.write(trace)
        if on != CHAMPSIM:
            graven.import_champsim([trace], whole)
            graven.import_champsim([trace], few, instructions=FEW)
            # Building the machine is in both.
            seconds, count = replayed(whole, on) - replayed(few, on), stream.instructions - FEW
        elif champsim is not None:
            seconds, count = on_champsim(champsim, trace, stream.on_champsim), stream.on_champsim
        else:
            return
        yield row(f"champsim/{stream.name}/{on}", "instructions", count, seconds)


def on_champsim(program: Path, trace: Path, instructions: int) -> float:
    """Returns the seconds of ChampSim for a trace's first instructions."""
    first = ("--warmup-instructions", "0", "--simulation-instructions", str(instructions))

    def run() -> None:
        subprocess.run([program, *first, trace], stdout=subprocess.DEVNULL, check=True)

    return seconds_of(run, resource.RUSAGE_CHILDREN)


def replayed(imported: Path, core: str) -> float:
    """Returns the seconds of Graven for a whole trace; the shortest of several runs."""

    def run() -> None:
        graven.replay(imported, "ideal", machine="silo", settings={"core.model": core})

    return min(seconds_of(run, resource.RUSAGE_SELF) for _ in range(TIMES))


# ---- the page ----------------------------------------------------------------------------------


def rate(of: Row) -> float:
    """Returns the amount of a row for each second."""
    return float(of["amount"]) / float(of["seconds"])


def _millions(of: Row | None) -> str:
    return "" if of is None else figure(rate(of) / 1e6)


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the parts of the page, in its order: simulations, power failures, parts, ChampSim."""
    by_name = {each["name"]: each for each in rows}
    return [_simulations(by_name), _failures(by_name), _parts(by_name), _champsim(by_name)]


def _simulations(by_name: dict[str, Row]) -> str:
    lines = []
    simulated = [name.split("/") for name in by_name if name.startswith("simulation/")]
    for design, machine in dict.fromkeys((each[1], each[2]) for each in simulated):
        names = [f"simulation/{design}/{machine}/{workload}" for workload in WORKLOADS]
        found = [by_name[name] for name in names if name in by_name]
        seconds, operations, actions = (
            sum(float(each[column]) for each in found)
            for column in ("seconds", "amount", "actions")
        )
        work = (f"{actions / operations:.1f}", figure(1e9 * seconds / actions))
        in_a_second = (_millions(by_name.get(name)) for name in names)
        lines.append((f"`{design}`", machine, *in_a_second, *work))
    head = ("design", "machine", *WORKLOADS, "actions/operation", "ns/action")
    return table_of(head, lines, texts=2)


def _failures(by_name: dict[str, Row]) -> str:
    lines = []
    for name, found in by_name.items():
        kind, _, design = name.partition("/")
        if kind == "failures":
            judged_in_a_second = figure(rate(found) / 1e3)
            lines.append((f"`{design}`", f"{int(found['amount']):,}", judged_in_a_second))
    return table_of(("design", "power failures", "thousands in a second"), lines)


def _parts(by_name: dict[str, Row]) -> str:
    lines = []
    for name, aim in (each for aims in BENCHMARKS.values() for each in aims.items()):
        found = by_name.get(f"benchmark/{name}")
        if found is not None:
            unit, scale = ("M", 1e6) if found["unit"] == "elements" else ("MB", 1 << 20)
            rates = (rate(found), aim)
            cells = ("" if each is None else f"{figure(each / scale)} {unit}" for each in rates)
            lines.append((f"`{name}`", *cells))
    return table_of(("benchmark", "in a second", "aim"), lines)


def _champsim(by_name: dict[str, Row]) -> str:
    lines = []
    for stream in STREAMS:
        peer = by_name.get(f"champsim/{stream.name}/{CHAMPSIM}")
        for core in CORES:
            ours = by_name.get(f"champsim/{stream.name}/{core}")
            if peer is not None and ours is not None:
                times = rate(ours) / rate(peer)
                cells = (figure(rate(peer) / 1e3), figure(rate(ours) / 1e3), figure(times))
                lines.append((stream.what, core, *cells, figure(stream.aim)))
    head = ("program", "Graven's core", "ChampSim: k instructions/s", "Graven", "times", "aim")
    return table_of(head, lines, texts=2)


# ---- running -----------------------------------------------------------------------------------


def names() -> Iterator[str]:
    """Yields the names of all rates, in the order of the table."""
    yield from (f"simulation/{what}" for what in simulations())
    yield from (f"failures/{design}" for design in sound_designs())
    yield from (f"benchmark/{name}" for aims in BENCHMARKS.values() for name in aims)
    yield from (f"champsim/{of.name}/{on}" for of in STREAMS for on in (CHAMPSIM, *CORES))


def run(name: str, given: Given) -> Rows:
    """Measures a rate."""
    kind, _, what = name.partition("/")
    if kind == "simulation":
        return {TABLE: list(simulated(what))}
    if kind == "failures":
        return {TABLE: list(judged(what))}
    if kind == "benchmark":
        (bench,) = (bench for bench, aims in BENCHMARKS.items() if what in aims)
        return {TABLE: list(benchmarked(bench, what))}
    program, _, on = what.partition("/")
    (stream,) = (stream for stream in STREAMS if stream.name == program)
    return {TABLE: list(streamed(stream, on, given.champsim))}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the program that Graven is compared with."""
    what = "the program, built as its README says"
    parser.add_argument("--champsim", type=Path, metavar="PROGRAM", help=what)


CAMPAIGN = Campaign(
    lambda _: names(),
    run,
    [TABLE],
    ROOT / "docs/results/rates.md",
    blocks,
    options=options,
    repeats=lambda name, given: given.champsim is None and name.endswith(f"/{CHAMPSIM}"),
)
