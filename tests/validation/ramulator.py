"""Ramulator 2.1: its configuration in Graven's terms, and the reader of a driver's output.

Nothing here builds or contains Ramulator. `measure` runs a driver that the user has written on its
C++ interface; the README of this folder says what that gets and prints.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import dram
from .peers import Outcome, of_requests
from .traces import Geometry, write_dramsim


class Ramulator(dram.DramPeer):
    """Ramulator on request traces; a run is MACHINE/TRACE."""

    name = "ramulator"
    quantities = ("cycles", "read_mean", "read_p99", "row_hits")

    def geometry(self, machine: str) -> Geometry:
        """Returns the banks and rows of a preset."""
        of_preset = self.document["machines"][machine]["geometry"]
        return Geometry(banks=of_preset["banks"], lines=of_preset["lines"])

    def graven_settings(self, run: str) -> dict[str, object]:
        """Returns Graven's settings, on the machine `silo`.

        Where some commands take two clocks, as in DDR5, Ramulator counts distances from the second
        one: a command of one clock comes a clock later after one of two, and the other way round.
        """
        machine = self.document["machines"][run.split("/")[0]]
        time: Mapping[str, int] = machine["timing"]
        more = machine["command_clocks"] - 1
        clocks = {
            "burst": time["nBL"],
            "cl": time["nCL"],
            "cwl": time["nCWL"],
            "rcd": time["nRCD"],
            "rp": time["nRP"] - more,
            "ras": time["nRAS"] + more,
            "ccd_s": time["nCCDS"],
            "ccd_l": time["nCCDL"],
            "ccd_l_write": time.get("nCCDL_WR", time["nCCDL"]),
            "rrd_s": time["nRRDS"],
            "rrd_l": time["nRRDL"],
            "faw": time["nFAW"],
            "rtp": time["nRTP"] + more,
            "wr": time["nWR"] + more,
            "wtr_s": time["nWTRS"],
            "wtr_l": time["nWTRL"],
            "turn": machine["read_to_write"],
            "rtrs": time["nCS"],
            "rfc": time["nRFC"] - more,
            "refi": time["nREFI"],
        }
        of_preset = machine["geometry"]
        own = dram.settings(self.trace(run)[1], clocks, of_preset["groups"], of_preset["ranks"])
        return {**own, **self.document["graven"]}

    def measure(self, program: Path, run: str, folder: Path) -> Outcome:
        """Runs the driver on a trace.

        Raises:
            RuntimeError: It failed, or its memory is not the one described here.
        """
        machine = self.document["machines"][run.split("/")[0]]
        of_trace, geometry = self.trace(run)
        requests = self.draw(run)
        trace, config = folder / "t.trc", folder / "t.json"
        write_dramsim(requests, geometry, trace)
        given = {**self.document["configuration"], **machine["configuration"]}
        config.write_text(json.dumps({**given, "channels": of_trace.channels}), encoding="utf-8")
        command = [str(each) for each in (program.resolve(), config, trace)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{program} ended with {ran.returncode}: {ran.stderr[-500:]}")
        found = json.loads(ran.stdout)
        for name, known in (("timing", machine["timing"]), ("geometry", machine["geometry"])):
            if found[name] != known:
                raise RuntimeError(f"{program} has {found[name]} as {name}, not {known}")
        return of_requests(requests, found["end"], found["latencies"], row_hits=found["row_hits"])
