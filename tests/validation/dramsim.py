"""DRAMsim3: its configuration in Graven's terms, and the reader of its output.

Nothing here builds or contains DRAMsim3. `measure` runs a program that the user has built with
`CMD_TRACE`, and reads two things that it writes by itself: the commands that it issued, with their
cycles, and its statistics, which have every latency of a read.

DRAMsim3's trace reader offers one request per cycle, so that requests of one cycle are moved apart
for both.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import dram
from .peers import Outcome, of_requests
from .traces import Geometry, Request, write_dramsim

BURST_CYCLES = 4
"""Cycles of a line: BL / 2."""
CYCLES = 2_000_000
"""Cycles that DRAMsim3 runs, more than any trace takes."""


def _read(
    time: Mapping[str, int],
    requests: list[Request],
    stats: Mapping[str, Mapping[str, Any]],
    commands: list[str],
) -> Outcome:
    data = {"read": time["CL"] + BURST_CYCLES, "write": time["CWL"] + BURST_CYCLES}
    issued = [line.split()[:2] for line in commands]
    end = max(int(cycle) + data[kind] for cycle, kind in issued if kind in data)
    served = [
        (int(latency), count)
        for channel in stats.values()
        for latency, count in (channel["read_latency"] or {}).items()
    ]
    reads = sum(count for _, count in served)
    if reads != sum(not each.write for each in requests):
        raise RuntimeError(f"DRAMsim3 served {reads} reads")
    # Where all come at once, latencies are the length of the queues, which are not equal.
    counted = served if requests[-1].cycle > 0 else []
    latencies = [latency for latency, count in counted for _ in range(count)]
    return of_requests(requests, end, latencies)


class DRAMsim3(dram.DramPeer):
    """DRAMsim3 on request traces; a run is MACHINE/TRACE."""

    name = "dramsim3"
    quantities = ("cycles", "read_mean", "read_p99")

    def geometry(self, machine: str) -> Geometry:
        """Returns the banks and rows of the configured structure."""
        del machine
        structure = self.document["configuration"]["dram_structure"]
        devices = self.document["configuration"]["system"]["bus_width"] // structure["device_width"]
        row_bytes = structure["columns"] * structure["device_width"] // 8 * devices
        banks = structure["bankgroups"] * structure["banks_per_group"]
        return Geometry(banks=banks, lines=row_bytes // 64)

    def draw(self, run: str) -> list[Request]:
        """Draws the requests, no two of them in one cycle, but for those that come all at once."""
        requests = super().draw(run)
        if requests[-1].cycle == 0:
            return requests
        apart, cycle = [], -1
        for each in requests:
            cycle = max(cycle + 1, each.cycle)
            apart.append(replace(each, cycle=cycle))
        return apart

    def text(self, machine: str, channels: int) -> str:
        """Makes a configuration file of DRAMsim3."""
        configuration = self.document["configuration"]
        system = {**configuration["system"], "channels": channels}
        timing = self.document["machines"][machine]
        sections = {**configuration, "system": system, "timing": timing}
        return "\n".join(
            "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in section.items()), ""])
            for name, section in sections.items()
        )

    def graven_settings(self, run: str) -> dict[str, object]:
        """Returns Graven's settings, on the machine `silo`."""
        time = self.document["machines"][run.split("/")[0]]
        clocks = {
            "burst": BURST_CYCLES,
            "cl": time["CL"],
            "cwl": time["CWL"],
            "rcd": time["tRCD"],
            "rp": time["tRP"],
            "ras": time["tRAS"],
            "ccd_s": time["tCCD_S"],
            "ccd_l": time["tCCD_L"],
            "ccd_l_write": time["tCCD_L"],
            "rrd_s": time["tRRD_S"],
            "rrd_l": time["tRRD_L"],
            "faw": time["tFAW"],
            "rtp": time["tRTP"],
            "wr": time["tWR"],
            "wtr_s": time["tWTR_S"],
            "wtr_l": time["tWTR_L"],
            "turn": time["tRTRS"],
            "rtrs": time["tRTRS"],
            "rfc": time["tRFC"],
            "refi": time["tREFI"],
        }
        groups = self.document["configuration"]["dram_structure"]["bankgroups"]
        own = dram.settings(self.trace(run)[1], clocks, groups)
        return {**own, **self.document["graven"]}

    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs DRAMsim3 on a trace.

        Raises:
            RuntimeError: It did not serve every read.
        """
        machine, requests = run.split("/")[0], self.draw(run)
        of_trace, geometry = self.trace(run)
        trace, config = folder / "t.trc", folder / "t.ini"
        write_dramsim(requests, geometry, trace)
        # At the end of a file DRAMsim3 offers its last request again: one that is never due.
        with trace.open("a", encoding="ascii") as file:
            file.write(f"0x0 READ {2 * CYCLES}\n")
        config.write_text(self.text(machine, of_trace.channels), encoding="ascii")
        command = [program.resolve(), config, "-c", CYCLES, "-t", trace, "-o", folder]
        subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads((folder / "dramsim3.json").read_text(encoding="utf-8"))
        commands = [
            line
            for channel in range(of_trace.channels)
            for line in (folder / f"dramsim3ch_{channel}cmd.trace").read_text().splitlines()
        ]
        return _read(self.document["machines"][machine], requests, found, commands)
