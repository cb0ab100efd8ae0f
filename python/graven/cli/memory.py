"""`graven memory`: the memory controller and device alone, from a trace of requests."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import click

from graven.api import simulations
from graven.api.assumed import Assumed
from graven.basics.numbers import scaled
from graven.cli import options
from graven.cli.storing import say_found, watched
from graven.cli.terminal import note, results_console
from graven.engine.machine import Machine
from graven.results.formats import json_text
from graven.results.record import MemoryRecord

HELP = """Drive the memory controller and device alone from a trace of requests.

\b
TRACE is binary (docs/guides/traces.md), a packet trace of gem5, or text in one of these formats:
  NVMain       CYCLE R|W 0xADDRESS DATA OLDDATA THREAD   (after a line NVMV1)
  DRAMsim3     0xADDRESS READ|WRITE CYCLE            (write, P_MEM_WR, BOFF write; others read)
  Ramulator 1  0xADDRESS R|W                             (no times: one in each cycle)
  Ramulator 2  LD|ST ADDRESS, or R|W CHANNEL,RANK,...    (no times; vectors need --levels)
  DRAMSys      CYCLE: [(BYTES)] read|write 0xADDRESS [DATA]   (.rstl needs --relative)
It may be compressed (gzip, xz, bzip2, Zstandard, zip), whatever its name.

\b
Examples:
  graven memory requests.nvt
  graven memory requests.nvt --machine lalea --set pm.write_ns=500
  graven memory requests.trc --dram --set dram.channels=2
  graven memory requests.trc --clock '1200 MHz'
  graven memory vectors.trace --levels 1,2,4,4,65536,128
  graven run --design silo --workload hash --request-trace r.grt && graven memory r.grt
  graven trace convert r.grt --to r.nvt        from binary to NVMain's text, or back
"""


@click.command(help=HELP)
@click.argument("trace", type=click.Path(path_type=Path))
@options.machine
@options.settings
@click.option(
    "--dram",
    is_flag=True,
    help="Addresses are the DRAM's instead of the PM's; of its requests times alone are counted.",
)
@options.clock
@options.levels
@options.relative
@options.keeping
@options.statistics
def memory(
    trace: Path,
    machine: str,
    settings: dict[str, str],
    dram: bool,
    clock: str | None,
    levels: tuple[int, ...] | None,
    relative: bool,
    keeping: options.Keeping,
    form: str,
    every: bool,
) -> int:
    """Checks everything, replays, prints."""
    if trace.is_dir() or not trace.exists():
        what = "is a folder" if trace.is_dir() else "there is no such file"
        raise click.UsageError(f"TRACE: {trace}: {what}")
    where = Machine.find(machine)
    assumed = Assumed.of(clock, levels, relative)
    keep = keeping.keeper(1)
    with watched(keep, "replays") as display:
        record, was_there = simulations.replay_requests(
            str(trace), where, settings, dram=dram, assumed=assumed, keep=keep, observe=display
        )
    say_found(int(was_there), 1)
    for text in record.notes:
        note(text)
    if form == "json":
        sys.stdout.write(json_text(record.to_dict()))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["machine", *record.stats])
        writer.writerow([record.machine, *record.stats.values()])
    else:
        from graven.cli.tables import print_statistics

        print_statistics(results_console(), record.stats, every=every)
    if not was_there:
        note(_host_rate(record))
    return 0


def _host_rate(record: MemoryRecord) -> str:
    """The speed of the simulator itself; never part of a result, as it differs from run to run."""
    rate = record.requests / record.host_seconds if record.host_seconds > 0 else 0.0
    return (
        f"{record.requests} requests in {record.host_seconds:.2f} s of host time: "
        f"{scaled(rate)} requests/s"
    )
