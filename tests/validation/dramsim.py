"""DRAMsim3: its configuration in Graven's terms, how its output is read, and the comparison.

Nothing here builds or contains DRAMsim3. `measure` runs a program that the user has built with
`CMD_TRACE`, and reads two things that it writes by itself: the commands that it issued, with their
cycles, and its statistics, which have every latency of a read.
"""

from __future__ import annotations

import csv
import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import graven

from .comparison import draw, of_graven, ratios
from .outcome import Outcome, outcome, parse
from .ratio import Difference, Ratio, differences
from .traces import TRACES, Request

PEERS = Path(__file__).with_name("peers")
QUANTITIES = ("cycles", "read_mean", "read_p99")
BURST_CYCLES = 4
"""Of a line: BL / 2."""
CYCLES = 2_000_000
"""For so many DRAMsim3 runs, more than any trace takes."""


@dataclass(frozen=True, order=True)
class Run:
    """What is run on both sides."""

    machine: str
    trace: str

    def __str__(self) -> str:
        return f"{self.machine}/{self.trace}"


@dataclass(frozen=True)
class Peer:
    """The contents of `dramsim3.toml`."""

    configuration: Mapping[str, Mapping[str, object]]
    machines: Mapping[str, Mapping[str, float]]
    graven: Mapping[str, object]
    differences: tuple[Difference, ...]

    @classmethod
    def read(cls) -> Peer:
        """The committed one."""
        found = tomllib.loads((PEERS / "dramsim3.toml").read_text(encoding="utf-8"))
        return cls(found["configuration"], found["machines"], found["graven"], differences(found))

    def text(self, machine: str) -> str:
        """A configuration file of DRAMsim3."""
        sections = {**self.configuration, "timing": self.machines[machine]}
        return "\n".join(
            "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in section.items()), ""])
            for name, section in sections.items()
        )

    def graven_settings(self, machine: str) -> dict[str, object]:
        """Graven's, on the machine `silo`.

        - A read of a closed row takes tRCD + CL, of an open one CL; both are followed by the burst.
        - A row is closed in tRP; after the burst of a write it stays open for CWL and tWR.
        """
        time = self.machines[machine]
        return {
            **self.graven,
            "dram.read_ns": time["tRCD"] + time["CL"],
            "dram.row_hit_ns": time["CL"],
            "dram.precharge_ns": time["tRP"],
            "dram.write_ns": time["CWL"] + time["tWR"],
            "dram.burst_ns": BURST_CYCLES,
        }


def runs() -> Iterator[Run]:
    """All runs, in the order of the tables."""
    for machine in Peer.read().machines:
        for trace in TRACES:
            yield Run(machine, trace.name)


def write(requests: list[Request], path: Path) -> None:
    """Writes DRAMsim3's format: `ADDRESS READ|WRITE CYCLE`."""
    lines = (
        f"0x{each.address:X} {'WRITE' if each.write else 'READ'} {each.cycle}\n"
        for each in requests
    )
    path.write_text("".join(lines), encoding="ascii")


def measure(program: Path, run: Run, folder: Path) -> Outcome:
    """Runs DRAMsim3 on a trace.

    Raises:
        RuntimeError: it did not serve every read.
    """
    peer, requests = Peer.read(), draw(run.trace)
    trace, config = folder / "t.trc", folder / "t.ini"
    write(requests, trace)
    # At the end of a file DRAMsim3 offers its last request again: one that is never due.
    with trace.open("a", encoding="ascii") as file:
        file.write(f"0x0 READ {2 * CYCLES}\n")
    config.write_text(peer.text(run.machine), encoding="ascii")
    command = [program.resolve(), config, "-c", CYCLES, "-t", trace, "-o", folder]
    subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
    found = json.loads((folder / "dramsim3.json").read_text(encoding="utf-8"))["0"]
    commands = (folder / "dramsim3ch_0cmd.trace").read_text(encoding="ascii").splitlines()
    return _read(peer.machines[run.machine], requests, found, commands)


def _read(
    time: Mapping[str, float],
    requests: list[Request],
    stats: Mapping[str, Any],
    commands: list[str],
) -> Outcome:
    data = {"read": int(time["CL"]) + BURST_CYCLES, "write": int(time["CWL"]) + BURST_CYCLES}
    issued = [line.split()[:2] for line in commands]
    end = max(int(cycle) + data[kind] for cycle, kind in issued if kind in data)
    served = {int(latency): count for latency, count in (stats["read_latency"] or {}).items()}
    reads = sum(served.values())
    if reads != sum(not each.write for each in requests):
        raise RuntimeError(f"DRAMsim3 served {reads} reads")
    # Where all come at once, latencies are the length of the queue.
    counted = served if requests[-1].cycle > 0 else {}
    latencies = [latency for latency, count in counted.items() for _ in range(count)]
    return outcome(end, latencies, None, ())


def measured() -> dict[Run, Outcome]:
    """The committed outputs of the peer."""
    with (PEERS / "dramsim3.csv").open(encoding="utf-8", newline="") as file:
        return {Run(row["machine"], row["trace"]): parse(row) for row in csv.DictReader(file)}


def store(outcomes: Mapping[Run, Outcome]) -> None:
    """Writes outputs of the peer."""
    with (PEERS / "dramsim3.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["machine", "trace", *QUANTITIES])
        for run, found in outcomes.items():
            values = [getattr(found, quantity) for quantity in QUANTITIES]
            writer.writerow([run.machine, run.trace, *values])


def compare(
    pattern: str = "*", changed: Mapping[str, object] | None = None
) -> Iterator[Ratio[Run]]:
    """Compares Graven, with these settings beside the peer's, on everything that was measured."""
    peer, known = Peer.read(), measured()
    with tempfile.TemporaryDirectory() as name:
        for run in runs():
            if not fnmatchcase(str(run), pattern):
                continue
            trace = Path(name) / f"{run.trace}.trc"
            write(draw(run.trace), trace)
            settings = {**peer.graven_settings(run.machine), **(changed or {})}
            stats = graven.memory(trace, machine="silo", dram=True, settings=settings).stats
            yield from ratios(peer.differences, run, known[run], of_graven(stats))
