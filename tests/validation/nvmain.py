"""NVMain: its configuration in Graven's terms, and the reader of its output.

Nothing here builds or contains NVMain. `measure` runs a program that the user has built, as
NVMain's README says, and reads two things that NVMain writes by itself: the requests that it
accepted, with their cycles (`PrintPreTrace`), and the commands that its controller issued, with
theirs (`EnableDebug` for `MemoryController`).
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import graven

from .peers import MemoryPeer, Outcome, of_graven, of_requests
from .traces import TRACES, Geometry, Request, write_nvmain

Settings = Mapping[str, str | int]
"""Keys of NVMain's configuration; times in its cycles."""

LONGEST = 60
"""Seconds for which NVMain runs at most."""

ACTIVATE, READ, WRITE = 1, 2, 4
"""Commands, as NVMain numbers them."""

COMMAND = re.compile(
    r"^(\d+) MemoryController: Issued request type (\d+) for address 0x([0-9a-f]+) for queue (\d+)",
    re.MULTILINE,
)
HITS = re.compile(r"\.(?:rq_|wq_|)rb_hits (\d+)$", re.MULTILINE)


def graven_settings(nvmain: Settings) -> dict[str, object]:
    """The same machine in Graven's parameters, with B = max(tBURST, tCCD).

    - A read of a closed row takes tRCD + tCAS, of an open one tCAS; both are followed by the burst.
    - A bank is held by a read for B, or for tCAS if that is less, beyond the opening of its row;
      by a write for the burst and the pulse, B + tWP.
    - A write's data follow those of the read before, which leave the bus tCAS after its command.
    - A row is closed in tRP. NVMain may have it wait longer before that, by tRTP after a read, and
      by tCWD and tWR after a write; Graven has no such times.

    Raises:
        ValueError: NVMain's row would stay open for longer than Graven's.
    """
    time = {key: int(value) for key, value in nvmain.items() if key.startswith("t")}
    between = max(time["tBURST"], time["tCCD"])
    column = min(between, time["tCAS"])
    after_read = time["tBURST"] + time["tRTP"] - time["tCCD"] - column
    after_write = time["tCWD"] + time["tWR"]
    if after_read != 0 or after_write != 0:
        raise ValueError(f"rows stay open {after_read} and {after_write} cycles too long")
    period_ns = 1000 / int(nvmain["CLK"])
    return {
        "core.frequency_mhz": nvmain["CLK"],
        "pm.read_ns": (time["tRCD"] + time["tCAS"]) * period_ns,
        "pm.row_hit_ns": time["tCAS"] * period_ns,
        "pm.column_ns": column * period_ns,
        "pm.write_ns": (between + time["tWP"]) * period_ns,
        "pm.precharge_ns": time["tRP"] * period_ns,
        "pm.burst_ns": time["tBURST"] * period_ns,
        "controller.turnaround_ns": time["tCAS"] * period_ns,
        "pm.banks": nvmain["BANKS"],
        "pm.ranks": nvmain["RANKS"],
        "pm.row_bytes": f"{int(nvmain['COLS']) * 64} B",
        "controller.page_bytes": f"{int(nvmain['COLS']) * 64} B",
        "controller.channels": nvmain["CHANNELS"],
    }


def configuration(settings: Settings, accepted: Path) -> str:
    """A configuration file of NVMain."""
    watch = {
        "PrintPreTrace": "true",
        "PreTraceFile": str(accepted.resolve()),
        "EnableDebug": "true",
        "DebugClasses": "MemoryController",
    }
    return "".join(f"{key} {value}\n" for key, value in {**settings, **watch}.items())


def _read(
    settings: Settings,
    requests: list[Request],
    accepted: Iterable[str],
    commands: str,
    stats: str,
) -> Outcome:
    arrivals: dict[tuple[str, int], deque[int]] = defaultdict(deque)
    for line in accepted:
        match line.split():
            case [arrival, ("R" | "W") as operation, place, *_]:
                arrivals[operation, int(place, 16)].append(int(arrival))
    time = {key: int(value) for key, value in settings.items() if key.startswith("t")}
    read = time["tCAS"] + time["tBURST"]
    write = time["tCWD"] + max(time["tBURST"], time["tCCD"]) + time["tWP"]
    end, latencies, bank_writes = 0, [], [0] * int(settings["BANKS"])
    for command in COMMAND.finditer(commands):
        cycle, kind, address = int(command[1]), int(command[2]), int(command[3], 16)
        if kind == READ:
            end = max(end, cycle + read)
            latencies.append(cycle + read - arrivals["R", address].popleft())
        elif kind == WRITE:
            end = max(end, cycle + write)
            bank_writes[int(command[4])] += 1
    hits = sum(int(found) for found in HITS.findall(stats))
    return of_requests(requests, end, latencies, row_hits=hits, bank_writes=tuple(bank_writes))


class NVMain(MemoryPeer):
    """NVMain on request traces; a run is MACHINE/SCHEDULER/TRACE."""

    name = "nvmain"
    columns = ("machine", "scheduler", "trace")
    quantities = ("cycles", "read_mean", "read_p99", "row_hits")
    also = ("bank_writes", "drawn")

    def runs(self) -> Iterator[str]:
        """Yields all runs, in the order of the tables."""
        for machine in self.document["machines"]:
            for scheduler in self.document["schedulers"]:
                yield from filter(self.serves, (f"{machine}/{scheduler}/{name}" for name in TRACES))

    def title(self, run: str) -> str:
        """Counts all machines and schedulers together."""
        del run
        return str(self.document["peer"]["name"])

    def geometry(self, machine: str) -> Geometry:
        """Returns the banks and rows of a machine."""
        settings = self.machine(machine)
        return Geometry(banks=int(settings["BANKS"]), lines=int(settings["COLS"]))

    def machine(self, name: str, channels: int = 1) -> Settings:
        """Returns NVMain's configuration of a machine."""
        common = {**self.document["common"], "CHANNELS": channels}
        return {**common, **self.document["machines"][name]}

    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs NVMain on a trace.

        Raises:
            RuntimeError: It failed, or did not serve every request.
        """
        machine, scheduler, _ = run.split("/")
        control = self.document["schedulers"][scheduler]["nvmain"]
        of_trace, geometry = self.trace(run)
        settings = {**self.machine(machine, of_trace.channels), "MEM_CTL": control}
        trace, config, accepted = (folder / name for name in ("t.nvt", "t.config", "accepted.nvt"))
        requests = self.draw(run)
        write_nvmain(requests, geometry, trace)
        config.write_text(configuration(settings, accepted), encoding="ascii")
        arguments = [str(program.resolve()), str(config.resolve()), str(trace.resolve()), "0"]
        try:
            ran = subprocess.run(
                arguments, capture_output=True, text=True, cwd=folder, check=False, timeout=LONGEST
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{program} did not end") from error
        if ran.returncode != 0:
            raise RuntimeError(f"{program} ended with {ran.returncode}: {ran.stderr[-500:]}")
        lines = accepted.read_text().splitlines()
        found = _read(settings, requests, lines, ran.stderr, ran.stdout)
        if sum(found["bank_writes"]) != sum(request.write for request in requests):
            raise RuntimeError(f"{program} served {sum(found['bank_writes'])} writes")
        return found

    def simulate(self, run: str, folder: Path, changed: Mapping[str, object]) -> Outcome:
        """Runs Graven on the machine `silo`, with these settings beside NVMain's."""
        machine, scheduler, name = run.split("/")
        of_trace, geometry = self.trace(run)
        trace = folder / f"{name}.nvt"
        if not trace.exists():
            write_nvmain(self.draw(run), geometry, trace)
        times = graven_settings(self.machine(machine, of_trace.channels))
        own = self.document["schedulers"][scheduler]["graven"]
        settings = {**self.document["graven"], **times, **own, **changed}
        stats = graven.memory(trace, machine="silo", settings=settings).stats
        return of_graven(stats, ("row_hits", "write_row_hits"))
