"""ChampSim: cores and caches of both simulators on the same traces.

Nothing here builds or contains ChampSim. `measure` runs a program that the user has built with the
recorded configuration, and reads the JSON document that it writes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import graven

from . import programs
from .peers import Outcome, Peer
from .programs import EMPTY, PROGRAMS

CORES = ("in-order", "out-of-order")


def times(champsim: Mapping[str, Any], queues: Mapping[str, int]) -> dict[str, object]:
    """Returns ChampSim's latencies in Graven's parameters.

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


def write(run: str, path: Path) -> int:
    """Writes the trace of a run; returns the number of instructions before what is compared."""
    core, name = run.split("/")
    program = programs.find(name)
    return programs.write(program.draw(), core == "in-order" or program.dependent, path)


def counts_hits(run: str) -> bool:
    """Returns True if both count each access once in the L1.

    Not where accesses are under way at the same time: one to a line that is being fetched is in
    ChampSim a miss, or not counted at all if it meets another in a queue, and joins in Graven.
    """
    core, program = run.split("/")
    stores = any(access.write for access in programs.find(program).draw())
    return core == "in-order" and not stores


class ChampSim(Peer):
    """ChampSim on program traces; a run is CORE/PROGRAM. Counts are of the program alone.

    Misses of a level are lines that it asked the next one for, writebacks dirty lines that it gave
    to the next one.
    """

    name = "champsim"
    columns = ("core", "program")
    quantities = (
        "cycles", "l1_hits", "l1_misses", "l2_misses", "llc_misses", "l1_writebacks",
        "l2_writebacks", "llc_writebacks",
    )  # fmt: skip

    def runs(self) -> Iterator[str]:
        """Yields all runs, in the order of the tables; those without accesses first."""
        for core in CORES:
            yield from (f"{core}/{program.name}" for program in (EMPTY, *PROGRAMS))

    def limits(self, quantity: str, value: float) -> tuple[float, float | None, bool]:
        """Returns the tolerances of the peer's document."""
        del value
        return *self.document["tolerances"][quantity], False

    def graven_settings(self, run: str) -> dict[str, object]:
        """Returns Graven's parameters, on the machine `silo`."""
        found, core = self.document, run.split("/")[0]
        return {
            **times(found["champsim"], found["queues"]),
            **found["graven"],
            **found["cores"][core],
        }

    def compared(self, run: str) -> list[str]:
        """Returns the quantities that are compared; of a trace without accesses, none."""
        if run.endswith(f"/{EMPTY.name}"):
            return []
        return [name for name in self.quantities if name != "l1_hits" or counts_hits(run)]

    def expected(self, run: str, known: Mapping[str, Outcome]) -> Outcome:
        """Returns ChampSim's counts without those of a trace without accesses."""
        return less(known[run], known[without_accesses(run)])

    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs ChampSim on a trace."""
        trace, out = folder / "some.trace", folder / "some.json"
        before = write(run, trace)
        last = trace.stat().st_size // programs.INSTRUCTION_BYTES - programs.PADDING // 2
        options = ("--hide-heartbeat", "-w", before, "-i", last - before, "--json", out)
        command = [program, *options, trace]
        subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads(out.read_text(encoding="utf-8"))[0]["roi"]
        trace.unlink()

        def count(cache: str, types: tuple[str, ...], outcomes: tuple[str, ...]) -> int:
            return sum(found[cache][each][outcome][0] for each in types for outcome in outcomes)

        demand, write_, any_ = ("LOAD", "RFO"), ("WRITE",), ("hit", "miss")
        merged = count("LLC", demand, ("mshr_merge",))
        memory = found["DRAM"][0]
        return {
            "cycles": found["cores"][0]["cycles"],
            "l1_hits": count("cpu0_L1D", (*demand, *write_), ("hit",)),
            "l1_misses": count("cpu0_L2C", demand, any_),
            "l2_misses": count("LLC", demand, any_),
            "llc_misses": count("LLC", demand, ("miss",)) - merged,
            "l1_writebacks": count("cpu0_L2C", write_, any_),
            "l2_writebacks": count("LLC", write_, any_),
            "llc_writebacks": memory["WQ ROW_BUFFER_HIT"] + memory["WQ ROW_BUFFER_MISS"],
        }

    def simulate(self, run: str, folder: Path, changed: Mapping[str, object]) -> Outcome:
        """Runs Graven on a trace, and takes off what it counts in one without accesses."""
        settings = tuple({**self.graven_settings(run), **changed}.items())
        return less(counts(run, folder, settings), counts(without_accesses(run), folder, settings))


@cache
def counts(run: str, folder: Path, given: tuple[tuple[str, object], ...]) -> Outcome:
    """Returns Graven's counts of a whole trace, with these settings."""
    trace, imported = folder / "some.trace", folder / "some.gvt"
    write(run, trace)
    graven.import_champsim([trace], imported)
    settings = dict(given)

    def stats(more: Mapping[str, object]) -> Mapping[str, Any]:
        record = graven.replay(imported, "ideal", machine="silo", settings={**settings, **more})
        return record.stats

    whole = stats({})
    # Only what leaves the last level is counted; here, that is the L2.
    last = {"llc.bytes": settings["l2.bytes"], "llc.ways": settings["l2.ways"], "l2.bytes": 0}
    names = ("cycles", "l1_hits", "l1_misses", "l2_misses", "llc_misses", "llc_writebacks")
    # Graven does not count dirty lines that the L1 gives away.
    others = {"l1_writebacks": None, "l2_writebacks": stats(last)["llc_writebacks"]}
    return {**{name: whole[name] for name in names}, **others}


def without_accesses(run: str) -> str:
    """Returns the run of the same core on a trace without accesses."""
    return f"{run.split('/')[0]}/{EMPTY.name}"


def less(one: Outcome, empty: Outcome) -> Outcome:
    """Returns quantities without those of a trace without accesses."""
    return {name: None if of is None else of - empty[name] for name, of in one.items()}
