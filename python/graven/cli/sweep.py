"""`graven sweep`: all that a file asks for, on this host or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

import click

from graven.api.sweeps import Sweep
from graven.basics import output
from graven.basics.numbers import exact, scaled
from graven.cli import options
from graven.cli.files import Writer
from graven.cli.storing import conclude, keeper, say_found, watched
from graven.cli.terminal import complain, note, refusing, results_console
from graven.executors import estimates
from graven.executors.shards import Shard
from graven.laboratory.reports import CrashReport
from graven.results import formats
from graven.results.formats import write_json_list, write_records
from graven.results.record import Record
from graven.running.pool import host_cores
from graven.running.progress import duration
from graven.running.work import Executor
from graven.store.keeper import Keeper

HELP = """Run all that SWEEP.toml asks for, on this host or on a cluster.

The file names designs, workloads, machines, threads, seeds and settings, and what is varied; all
combinations are run (docs/guides/sweeps.md):

\b
  designs = ["silo", "fwb"]
  workloads = ["micro"]
  threads = [1, 2, 4, 8]
  seeds = [1, 2, 3]
  vary = { "pm.write_ns" = [150, 300, 600] }

Each result is kept in the store as it comes, and the same command simulates only what is missing:
after an interrupt, on another executor, or with more in the file. What is written is the same, byte
for byte, wherever simulations ran.

\b
Examples:
  graven sweep sweep.toml --dry-run
  graven sweep sweep.toml --out results.parquet
  graven sweep sweep.toml --on dask://scheduler:8786
  SBATCH_PARTITION=short graven sweep sweep.toml --on slurm --store /scratch/store
  graven sweep sweep.toml --shard 3/8 --store part3
"""

SHOWN = 10
"""Failures that are shown one by one, at most."""


@click.command(cls=Writer, help=HELP)
@click.argument("file", metavar="SWEEP.toml", type=click.Path(path_type=Path))
@options.executor("Simulations")
@click.option(
    "--shard",
    metavar="I/N",
    help="Run the I-th of N parts alone; `graven results merge` puts stores together.",
)
@click.option("--dry-run", is_flag=True, help="Run nothing: say what would run, and what it takes.")
@options.written(
    "--out",
    "Write results with the whole configuration, in the format that the ending says (.json, "
    ".csv, .parquet).",
)
@options.form("table", "json", "csv")
@options.store
@click.option("--fresh", is_flag=True, help="Run again what has a result in the store, too.")
def sweep(
    file: Path,
    executor: Executor,
    shard: str | None,
    dry_run: bool,
    out: Path | None,
    form: str,
    folder: Path,
    fresh: bool,
) -> int:
    """Reads, checks, runs, writes."""
    whole = Sweep.read(file)
    part = None if shard is None else Shard.parse(shard)
    if part is not None and (out is not None or form != "table"):
        raise click.UsageError("--shard: a part has no whole results; not with --out or --format")
    if whole.is_crash and (form == "csv" or (out is not None and out.suffix != ".json")):
        raise click.UsageError("reports of runs that are crashed are written as JSON alone")
    mine = whole if part is None else whole.part(part)
    mine.check()
    target = None
    if out is not None:
        with refusing():
            [target] = [t for t in formats.targets(out, None) if t.form in formats.FORMATS]
            output.check([target.path], len(mine.jobs) * formats.BYTES_PER_RECORD)
    keep = keeper(folder, fresh=fresh, results=len(mine.simulations))
    if dry_run:
        _say_plan(whole, mine, part, keep)
        return 0
    with watched(keep) as display:
        done = mine.complete(keep, executor, display)
    total = len(mine.simulations)
    say_found(done.found, total)
    have = f"{exact(done.found + done.came)} of {exact(total)} have results in {folder}"
    interruption = have if done.ended.interrupted else None
    status = conclude(done.ended.failures[:SHOWN], interruption, is_kept=True)
    if len(done.ended.failures) > SHOWN:
        complain(f"{exact(len(done.ended.failures) - SHOWN)} more failed")
    if part is not None and interruption is None:
        note(f"part {part}: {have}; when the parts are merged, the command without --shard writes")
    elif interruption is None:
        _write(mine, keep, target, form)
    return status


def _write(sweep: Sweep, keep: Keeper, target: formats.Target | None, form: str) -> None:
    """Writes what is in the store, one result after the other."""
    if sweep.is_crash:
        if target is not None:
            with output.written(target.path) as file:
                write_json_list(file, _documents(sweep, keep))
        if form == "json":
            write_json_list(sys.stdout.buffer, _documents(sweep, keep))
        else:
            _print_reports(sweep.reports(keep))
    else:
        records = sweep.records(keep)
        if target is not None:
            with output.written(target.path) as file:
                write_records(file, records, target.form, full=True)
        if form == "table":
            _print_records(records)
        else:
            write_records(sys.stdout.buffer, records, form, full=False)
    if target is not None:
        note(f"wrote {target.path}")
    sys.stdout.flush()


def _documents(sweep: Sweep, keep: Keeper) -> Iterator[dict[str, object]]:
    return (_without_seconds(report) for report in sweep.reports(keep))


def _without_seconds(report: CrashReport) -> dict[str, object]:
    """All that is the same wherever it ran."""
    return {key: value for key, value in report.to_dict().items() if key != "seconds"}


def _print_records(records: Iterable[Record]) -> None:
    from graven.cli.tables import numbers, plain_table, whole

    counted = numbers("simulations", "least", "median", "greatest")
    table = plain_table(whole("design"), whole("machine"), *counted)
    groups: dict[tuple[str, str], list[float]] = {}
    for record in records:
        values = groups.setdefault((record.design, record.machine), [])
        values.append(record.number("throughput_tx_per_s") or 0.0)
    for (design, machine), values in groups.items():
        three = (min(values), median(values), max(values))
        table.add_row(design, machine, exact(len(values)), *(scaled(value) for value in three))
    console = results_console()
    console.print("Throughput, transactions/s", style="bold")
    console.print(table)


def _print_reports(reports: Iterable[CrashReport]) -> None:
    from graven.cli.tables import numbers, plain_table, whole

    names = map(whole, ("design", "workload", "machine"))
    table = plain_table(*names, *numbers("power failures", "violations"))
    for report in reports:
        number = exact(len(report.violations))
        row = (report.design, report.workload, report.machine)
        table.add_row(*row, exact(report.recoveries), number)
    results_console().print(table)


def _say_plan(whole: Sweep, mine: Sweep, part: Shard | None, keep: Keeper) -> None:
    """What would run, how long it would take one core, and the memory of the largest."""
    missing = [mine.jobs[at] for at in mine.simulations if not keep.has(mine.jobs[at])]
    seconds = sum(estimates.seconds(job) for job in missing)
    noun = "runs" if whole.is_crash else "simulations"
    lines = [f"{noun}: {whole.counted}"]
    if part is not None:
        lines.append(f"of part {part}: {mine.counted}")
    lines.append(f"without a result in {keep.store.folder}: {exact(len(missing))}")
    lines.append(f"time on one core: about {duration(seconds)}")
    lines.append(f"time on this host: about {duration(seconds / host_cores())}")
    longest = max(missing, key=estimates.seconds, default=None)
    if longest is not None:
        lines.append(f"the longest: about {duration(estimates.seconds(longest))}")
        needs = [estimates.memory_bytes(job) for job in missing[: 1 << 12]]
        known = [need for need in needs if need is not None]
        if known:
            lines.append(f"memory of the largest: {max(known) / (1 << 20):.0f} MB at most")
    lines.append(f"storage: about {len(missing) * BYTES_STORED / (1 << 20):.1f} MB")
    print("\n".join(lines))


BYTES_STORED = 24 << 10
"""Bytes of a result in a segment and in the index, about."""
