"""DRAMsim3: its configuration in Graven's terms, and the reader of its output.

Nothing here builds or contains DRAMsim3. `measure` runs a program that the user has built with
`CMD_TRACE`, and reads two things that it writes by itself: the commands that it issued, with their
cycles, and its statistics, which have every latency of a read.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import graven

from .peers import MemoryPeer, Outcome, draw, of_graven, of_requests
from .traces import TRACES, Request

BURST_CYCLES = 4
"""Cycles of a line: BL / 2."""
CYCLES = 2_000_000
"""Cycles that DRAMsim3 runs, more than any trace takes."""


def write(requests: list[Request], path: Path) -> None:
    """Writes DRAMsim3's format: `ADDRESS READ|WRITE CYCLE`."""
    lines = (
        f"0x{each.address:X} {'WRITE' if each.write else 'READ'} {each.cycle}\n"
        for each in requests
    )
    path.write_text("".join(lines), encoding="ascii")


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
    return of_requests(end, latencies)


class DRAMsim3(MemoryPeer):
    """DRAMsim3 on request traces; a run is MACHINE/TRACE."""

    name = "dramsim3"
    columns = ("machine", "trace")
    quantities = ("cycles", "read_mean", "read_p99")

    def runs(self) -> Iterator[str]:
        """Yields all runs, in the order of the tables."""
        for machine in self.document["machines"]:
            yield from (f"{machine}/{trace.name}" for trace in TRACES)

    def text(self, machine: str) -> str:
        """Makes a configuration file of DRAMsim3."""
        sections = {**self.document["configuration"], "timing": self.document["machines"][machine]}
        return "\n".join(
            "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in section.items()), ""])
            for name, section in sections.items()
        )

    def graven_settings(self, machine: str) -> dict[str, object]:
        """Returns Graven's settings, on the machine `silo`.

        - A read of a closed row takes tRCD + CL, of an open one CL; both are followed by the burst.
        - A row is closed in tRP; after the burst of a write it stays open for CWL and tWR.
        """
        time = self.document["machines"][machine]
        return {
            **self.document["graven"],
            "dram.read_ns": time["tRCD"] + time["CL"],
            "dram.row_hit_ns": time["CL"],
            "dram.precharge_ns": time["tRP"],
            "dram.write_ns": time["CWL"] + time["tWR"],
            "dram.burst_ns": BURST_CYCLES,
        }

    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs DRAMsim3 on a trace.

        Raises:
            RuntimeError: It did not serve every read.
        """
        machine, requests = run.split("/")[0], draw(run)
        trace, config = folder / "t.trc", folder / "t.ini"
        write(requests, trace)
        # At the end of a file DRAMsim3 offers its last request again: one that is never due.
        with trace.open("a", encoding="ascii") as file:
            file.write(f"0x0 READ {2 * CYCLES}\n")
        config.write_text(self.text(machine), encoding="ascii")
        command = [program.resolve(), config, "-c", CYCLES, "-t", trace, "-o", folder]
        subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads((folder / "dramsim3.json").read_text(encoding="utf-8"))["0"]
        commands = (folder / "dramsim3ch_0cmd.trace").read_text(encoding="ascii").splitlines()
        return _read(self.document["machines"][machine], requests, found, commands)

    def simulate(self, run: str, folder: Path, changed: Mapping[str, object]) -> Outcome:
        """Runs Graven on the machine `silo`, with these settings beside DRAMsim3's."""
        machine, name = run.split("/")
        trace = folder / f"{name}.trc"
        write(draw(run), trace)
        settings = {**self.graven_settings(machine), **changed}
        return of_graven(graven.memory(trace, machine="silo", dram=True, settings=settings).stats)
