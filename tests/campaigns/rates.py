"""How much a host simulates in a second, beside what is aimed at.

    python -m tests.campaigns.rates [--only PATTERN] [--missing] [--champsim PROGRAM]
    python -m tests.campaigns.rates --stored   write the page from the table
    python -m tests.campaigns.rates --list     name what it would measure

Three kinds of rates, by their names:

- `simulation/DESIGN/MACHINE/WORKLOAD`: loads and stores of whole simulations, of every design on
  its paper's machine and of `fwb` on `silo`'s, in processor time of the threads' programs
  (measured as `tests.campaigns.scale` does: of short runs, the shortest of three).
- `benchmark/…`: what Criterion measures in `benches/`, with its own repetitions; its medians.
- `champsim/PROGRAM/…`: instructions of the same trace, on ChampSim (a program that the user has
  built; without `--champsim` those rows stay as they are) and on Graven, in processor time. Reading
  the trace counts for both; Graven's start, building and shutdown do not.

Nothing else should run on the host. `--only` takes what matches a glob of a name; rows of what was
not measured stay in `rates.csv`, and `--missing` goes on after an interrupt.
`docs/results/rates.md` shows them.
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
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from tests.campaigns.corners import threads_of
from tests.campaigns.scale import TIMES, Point, figure
from tests.campaigns.scale import measure as measured
from tests.campaigns.tables import ROOT, Row, read_rows, replaced, table_of, write_page, write_rows

import graven
from graven.engine.catalogue import catalogue

TABLE = Path(__file__).parent / "rates.csv"
PAGE = ROOT / "docs/results/rates.md"
COLUMNS = ("name", "unit", "amount", "seconds", "actions")

TRANSACTIONS = 20_000
THREADS = 8
"""Of a machine that has so many, or all that it has."""
WORKLOADS = ("array", "btree", "hash", "queue", "rbtree")


@dataclass(frozen=True)
class Benchmark:
    """What Criterion measures: a benchmark, which of its rates, and what each is to reach."""

    bench: str
    aims: dict[str, float | None]
    """By Criterion's name; per second."""


BENCHMARKS = (
    Benchmark(
        "simulation",
        {
            "stream/friendly/1": 60e6,
            "stream/friendly/8": 60e6,
            "stream/missing/1": None,
            "stream/missing/8": None,
        },
    ),
    Benchmark(
        "memory",
        {
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
    ),
    Benchmark("program_trace", {"program-trace/read/btree": None, "program-trace/read/hash": None}),
    Benchmark(
        "populate",
        {
            f"populate/{how}/{name}": (64 << 20) / 0.05
            for how in ("alone", "alike")
            for name in WORKLOADS
        },
    ),
)
"""NVMain's text is read while it is replayed; populating 64 MB is to take 50 ms."""


@dataclass(frozen=True)
class Stream:
    """A program that ChampSim and Graven run from one trace: random words, half of them stored."""

    name: str
    what: str
    footprint_bytes: int
    instructions: int
    on_champsim: int
    """ChampSim, whose rate does not change much with time, runs so many of the instructions."""
    aim: float
    """How many times as many instructions as ChampSim in a second."""

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
"""Of the instructions of these programs, the share that loads or stores."""

STREAMS = (
    Stream("friendly", "random words of 16 KB", 16 << 10, 20_000_000, 2_000_000, 250),
    Stream("hash-like", "random words of 256 MB", 256 << 20, 5_000_000, 100_000, 600),
)

CHAMPSIM = "champsim"
CORES = ("in-order", "out-of-order")
"""Models of the core that Graven runs them with."""


def row(name: str, unit: str, amount: float, seconds: float, actions: float | None = None) -> Row:
    """A row of the table. Of simulations it has what the simulator's loop counts."""
    counted = "" if actions is None else f"{actions:.0f}"
    numbers = {"amount": f"{amount:.0f}", "seconds": f"{seconds:.4g}", "actions": counted}
    return {"name": name, "unit": unit, **numbers}


# ---- simulations -------------------------------------------------------------------------------


def simulations() -> Iterator[str]:
    """What is simulated: `DESIGN/MACHINE/WORKLOAD`."""
    for design in catalogue().designs:
        own = graven.cost(design.name).machine
        machines = [own, "silo"] if design.name == "fwb" else [own]
        for machine in machines:
            yield from (f"{design.name}/{machine}/{workload}" for workload in WORKLOADS)


def simulated(what: str) -> Iterator[Row]:
    """Measures one; nothing if it does not end, as with some designs that lose data as printed."""
    design, machine, workload = what.split("/")
    (preset,) = (each for each in catalogue().machines if each.name == machine)
    threads = min(THREADS, threads_of(preset)[-1])
    point = Point("simulation", what, 0, design, workload, threads, TRANSACTIONS, {}, machine)
    try:
        found = measured(point)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return
    numbers = (found["operations"], found["run_seconds"], found["actions"])
    yield row(f"simulation/{what}", "operations", *numbers)


# ---- Criterion ---------------------------------------------------------------------------------


BENCH = ("cargo", "bench", "--quiet", "--locked", "--package", "graven-benches", "--bench")


def benchmarked(of: Benchmark, names: Sequence[str]) -> Iterator[Row]:
    """Runs a benchmark for these names, and reads what Criterion has found."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*BENCH, of.bench, "--", "--noplot", f"^({'|'.join(names)})$"],
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
    """Seconds of the processor that this took, of this process or of those that it started."""

    def computed() -> float:
        used = resource.getrusage(whose)
        return used.ru_utime + used.ru_stime

    begun = computed()
    action()
    return computed() - begun


def streamed(stream: Stream, on: Sequence[str], champsim: Path | None) -> Iterator[Row]:
    """Simulates a program on these: `champsim`, if there is one, and Graven's cores."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / f"{stream.name}.champsim"
        stream.write(trace)
        if champsim is not None and CHAMPSIM in on:
            count, seconds = stream.on_champsim, on_champsim(champsim, trace, stream.on_champsim)
            yield row(f"champsim/{stream.name}/{CHAMPSIM}", "instructions", count, seconds)
        cores = [core for core in CORES if core in on]
        if cores:
            whole, few = Path(folder) / "whole.gvt", Path(folder) / "few.gvt"
            graven.import_champsim([trace], whole)
            graven.import_champsim([trace], few, instructions=FEW)
        for core in cores:
            # Building the machine is in both.
            seconds = replayed(whole, core) - replayed(few, core)
            count = stream.instructions - FEW
            yield row(f"champsim/{stream.name}/{core}", "instructions", count, seconds)


def on_champsim(program: Path, trace: Path, instructions: int) -> float:
    """Seconds of ChampSim for a trace's first instructions."""
    first = ("--warmup-instructions", "0", "--simulation-instructions", str(instructions))

    def run() -> None:
        subprocess.run([program, *first, trace], stdout=subprocess.DEVNULL, check=True)

    return seconds_of(run, resource.RUSAGE_CHILDREN)


def replayed(imported: Path, core: str) -> float:
    """Seconds of Graven for a whole trace; the shortest of several runs."""

    def run() -> None:
        graven.replay(imported, "ideal", machine="silo", settings={"core.model": core})

    return min(seconds_of(run, resource.RUSAGE_SELF) for _ in range(TIMES))


# ---- the page ----------------------------------------------------------------------------------


def rate(of: Row) -> float:
    """Of a row, for each second."""
    return float(of["amount"]) / float(of["seconds"])


def _millions(of: Row | None) -> str:
    return "" if of is None else figure(rate(of) / 1e6)


def blocks(rows: Sequence[Row]) -> list[str]:
    """What the page shows, in its order: simulations, parts, ChampSim."""
    by_name = {each["name"]: each for each in rows}
    return [_simulations(by_name), _parts(by_name), _champsim(by_name)]


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


def _parts(by_name: dict[str, Row]) -> str:
    lines = []
    for name, aim in (each for benchmark in BENCHMARKS for each in benchmark.aims.items()):
        found = by_name.get(f"benchmark/{name}")
        if found is not None:
            unit = "M elements" if found["unit"] == "elements" else "MB"
            scale = 1e6 if found["unit"] == "elements" else 1 << 20
            cells = (figure(rate(found) / scale), "" if aim is None else figure(aim / scale))
            lines.append((f"`{name}`", unit, *cells))
    return table_of(("benchmark", "what", "in a second", "aim"), lines, texts=2)


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


Measure = Callable[[Sequence[str]], Iterator[Row]]


def tasks(champsim: Path | None) -> Iterator[tuple[Sequence[str], Measure]]:
    """Names of rates that are measured together, and what measures some of them."""
    for what in simulations():
        yield [f"simulation/{what}"], lambda names: simulated(*_without("simulation/", names))
    for benchmark in BENCHMARKS:
        names = [f"benchmark/{name}" for name in benchmark.aims]
        yield names, lambda names, of=benchmark: benchmarked(of, _without("benchmark/", names))
    for stream in STREAMS:
        of_stream = f"champsim/{stream.name}/"
        yield (
            [of_stream + on for on in (CHAMPSIM, *CORES)],
            lambda names, stream=stream, of=of_stream: streamed(
                stream, _without(of, names), champsim
            ),
        )


def _without(prefix: str, names: Sequence[str]) -> list[str]:
    return [name.removeprefix(prefix) for name in names]


def main(arguments: list[str]) -> int:
    """Measures what is wanted, and writes table and page; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.rates")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    parser.add_argument("--list", action="store_true", help="run nothing, name rates")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rates to measure")
    parser.add_argument("--missing", action="store_true", help="only what the table has not")
    parser.add_argument("--champsim", type=Path, metavar="PROGRAM", help="as its README builds it")
    given = parser.parse_args(arguments)
    all_tasks = list(tasks(given.champsim))
    names = [name for names, _ in all_tasks for name in names]
    wanted = {name for name in names if fnmatchcase(name, given.only)}
    rows = read_rows(TABLE)
    if given.missing:
        wanted -= {each["name"] for each in rows}
    if given.list:
        print(*(name for name in names if name in wanted), sep="\n")
        return 0
    for names_of_task, measure in all_tasks:
        some = [name for name in names_of_task if name in wanted and not given.stored]
        for found in measure(some) if some else ():
            by_name = {each["name"]: each for each in replaced(rows, [found], ("name",))}
            rows = [by_name[name] for name in names if name in by_name]
            write_rows(TABLE, COLUMNS, rows)
            print(f"{found['name']}: {rate(found):,.0f}")
    write_page(PAGE, *blocks(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
