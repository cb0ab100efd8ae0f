"""`graven run`: one simulation, and its statistics."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from graven._engine import ConfigError
from graven.basics import output, signals
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.storing import keeper, say_found, watched
from graven.cli.terminal import complain, note, refusing, results_console
from graven.engine.machine import Machine
from graven.results import formats
from graven.results.record import Record
from graven.results.recovery import with_recovery
from graven.running.experiment import Experiment, Result, run_one
from graven.running.job import Job, is_binary
from graven.running.pool import failures_text

TRACE_ROOM = 64 << 20
"""Room to ask for before a run that writes its requests; the trace may well take more."""

HELP = """Simulate one design on one workload and show what it did.

\b
Examples:
  graven run --design silo --workload btree
  graven run --design silo --workload btree --all
  graven run --design fwb --workload hash --threads 4 --set workload.element_bytes="1 KB"
  graven run --design silo --workload queue --format json
  graven run --design hoop --workload hash --machine hoop --recovery 4
  graven run --design fwb --workload hash --set recovery.at_percent=90
  graven run --design base --workload array --request-trace requests.grt
  graven run --design lalea --workload hash --machine lalea --bank-loads banks.csv
  graven run --design silo --workload hash --timeline timeline.json

The result is kept in the store, where the same command finds it; what writes a trace or loads of
banks simulates every time. The table leaves out what is zero, unless the design itself counts it,
and what is of single cores and banks; JSON and CSV have every statistic.
"""


class TransactionRange(click.ParamType[tuple[int, int]]):
    """Numbers of transactions, FIRST-LAST; one alone is both."""

    name = "range"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """The numbers."""
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", str(value).strip(), re.ASCII)
        if match is None:
            self.fail(f"{value!r} is not FIRST-LAST, for example 5000-5007", param, ctx)
        first = int(match[1])
        return first, first if match[2] is None else int(match[2])


@click.command(cls=Writer, help=HELP)
@options.one_run
@options.recovery
@options.keeping
@click.option(
    "--request-trace",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="Write the requests that reach the memory controller: a binary trace if the name ends in "
    ".grt, otherwise NVMain's text.",
)
@click.option(
    "--bank-loads",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="Write the mean load of every PM bank over time, as CSV: a line for each "
    "statistics.bank_load_interval_cycles.",
)
@click.option(
    "--timeline",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="Write what happens while some transactions run (what threads wait for, writes until they "
    "are durable, work of the PM's banks, the design's notes): JSON for `graven plot timeline`, "
    "and for Perfetto.",
)
@click.option(
    "--timeline-transactions",
    type=TransactionRange(),
    metavar="FIRST-LAST",
    help="Which transactions, numbered from 0 as those of all threads begin. Default: two of each "
    "thread, in the middle of the run.",
)
@options.statistics
def run(
    design: str,
    workload: str,
    machine: str,
    threads: int | None,
    transactions: int | None,
    seed: int,
    settings: dict[str, str],
    recovery: int | None,
    folder: Path,
    no_store: bool,
    fresh: bool,
    request_trace: Path | None,
    bank_loads: Path | None,
    timeline: Path | None,
    timeline_transactions: tuple[int, int] | None,
    form: str,
    every: bool,
) -> int:
    """Checks everything, simulates, prints."""
    if timeline is None and timeline_transactions is not None:
        raise click.UsageError("--timeline-transactions is for --timeline")
    job = Job(
        design,
        workload,
        Machine.find(machine),
        threads,
        transactions,
        seed,
        tuple(with_recovery(settings, recovery).items()),
        request_trace=None if request_trace is None else str(request_trace),
        bank_loads=None if bank_loads is None else str(bank_loads),
        timeline=None if timeline is None else str(timeline),
        timeline_transactions=timeline_transactions,
        binary_requests=request_trace is not None and is_binary(request_trace),
    )
    files = {f"--{name.replace('_', '-')}": Path(path) for name, path in job.files.items()}
    Experiment.prepare([job])
    for option, path in files.items():
        with refusing(f"{option}: "):
            output.check([path], TRACE_ROOM if path == request_trace else 0)
    keep = keeper(folder, no_store=no_store, fresh=fresh, results=1)
    with watched(keep) as display:
        result = run_one(job, keep=keep, observe=display)
    say_found(result.found, 1)
    if result.records:
        for path in files.values():
            note(f"wrote {path}")
    return show(result, form, every=every)


def show(result: Result, form: str, *, every: bool) -> int:
    """Prints what came of one simulation, in a table `every` statistic or not; the exit code."""
    if result.interrupted:
        complain(signals.words())
        return 130
    if result.failures:
        complain(failures_text(result.failures))
        return 2 if isinstance(result.failures[0].error, ConfigError) else 1
    if form == "table":
        _table(result.records[0], every=every)
    else:
        sys.stdout.write(formats.encode(result.records, form, full=False).decode())
    return 0


def _table(record: Record, *, every: bool) -> None:
    from graven.cli.tables import UNSAFE_NOTE, marked, print_statistics

    console = results_console()
    unsafe = set() if record.safe else {record.design}
    part = "in steady state" if record.measured else "from the start"
    console.print(
        f"[bold]{marked(record.design, unsafe)}[/] on [bold]{record.workload}[/]: "
        f"{record.transactions} transactions {part}, {record.threads} threads, "
        f"machine {record.machine}, seed {record.seed}"
    )
    if unsafe:
        console.print(UNSAFE_NOTE)
    console.print()
    print_statistics(console, record.stats, design=record.design, every=every)
