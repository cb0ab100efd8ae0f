"""`graven run`: one simulation, and its statistics."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import click

from graven._engine import ConfigError
from graven.basics import output, signals
from graven.cli import options
from graven.cli.files import Writer
from graven.cli.storing import say_found, watched
from graven.cli.terminal import complain, note, refusing, results_console
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


def _range(text: str) -> tuple[int, int]:
    """Reads numbers of transactions, FIRST-LAST; one alone is both."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is not FIRST-LAST, for example 5000-5007")
    return int(match[1]), int(match[2] or match[1])


@click.command(cls=Writer, help=HELP)
@options.one_run
@options.recovery
@options.keeping
@options.written(
    "--request-trace",
    "Write the requests that reach the memory controller: a binary trace if the name ends in "
    ".grt, otherwise NVMain's text.",
)
@options.written(
    "--bank-loads",
    "Write the mean load of every PM bank over time, as CSV: a line for each "
    "statistics.bank_load_interval_cycles.",
)
@options.written(
    "--timeline",
    "Write what happens while some transactions run (what threads wait for, writes until they "
    "are durable, work of the PM's banks, the design's notes): JSON for `graven plot timeline`, "
    "and for Perfetto.",
)
@click.option(
    "--timeline-transactions",
    type=options.Read("range", _range),
    metavar="FIRST-LAST",
    help="Transactions of --timeline, numbered from 0 as those of all threads begin. Default: two "
    "of each thread, in the middle of the run.",
)
@options.statistics
def run(
    job: Job,
    recovery: int | None,
    keeping: options.Keeping,
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
    job = replace(
        job,
        settings=tuple(with_recovery(dict(job.settings), recovery).items()),
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
    keep = keeping.keeper(1)
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
