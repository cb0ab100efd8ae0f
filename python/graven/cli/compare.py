"""`graven compare`: designs side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from graven._engine import ConfigError
from graven.api.loading import load
from graven.api.plans import Plan
from graven.basics import output
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.storing import conclude, say_found, watched
from graven.cli.terminal import note, refusing, results_console
from graven.results import formats
from graven.results.combining import combine
from graven.results.comparison import Comparison, Normalised
from graven.running.experiment import Experiment
from graven.running.work import Executor, How

DEFAULT_REPORT = Path("report.html")

HELP = """Compare designs on workloads, several simulations at a time.

Without options: the designs and the five micro workloads of Silo's paper on the `silo` machine.
Prints throughput, media writes, bytes written per transaction, mean transaction latency and write
energy relative to the baseline, and writes report.html, which opens without a network. With
--recovery also the time of recovery after a power failure.

What is measured is a region in steady state of each run, until its interval is narrow; results that
are of no steady state are named below the tables. --from-start measures whole runs.

A machine's file may say what is compared on it: designs, workloads, threads, transactions,
baseline, what is varied, and the statistics that designs are compared by. An option takes the place
of what the file says about the same; a key that is --set is not varied. A name that stands for
several designs shows, workload by workload, the one with the highest throughput. --design-as gives
a design with settings of its own a name, under which it stands beside the others.

\b
Examples:
  graven compare
  graven compare --designs base,fwb,silo --workloads btree,hash
  graven compare --workloads all --threads 1,2,4,8 --out results
  graven compare --vary workload.element_bytes="64 B,4 KB" --vary pm.write_ns=150,300
  graven compare --designs base,silo --design-as mine=silo,silo.log_buffer_entries=64
  graven compare --machine fwb --set pm.write_ns=300 --report slow.html
  graven compare --designs base,silo --metrics throughput_tx_per_s,ipc,pm_energy_pj
  graven compare --designs base,fwb,lsm,hoop --workloads hash --recovery 4
  graven compare --designs base,silo,lad --seeds 5
  graven compare --from-start --transactions 10000
  graven compare --machine mine.toml --format csv > mine.csv
  graven compare --designs base,silo --with theirs.json
  graven compare --on dask://scheduler:8786
  graven compare --format json | jq '.[].stats.cycles'

With --format json or csv, standard output is that one document and nothing else. Each result is
kept in the store as it comes, and the same command simulates only what is missing. Ctrl-C stops at
once; what had finished is printed and written all the same, and the exit code is 130.
"""


@click.command(cls=Writer, help=HELP)
@options.comparing(
    designs_="the machine's, else every one that stands for a paper",
    workloads_="the machine's, else micro",
    threads_="the machine's, else one per core",
    size="the machine's, else as many as precision asks for",
)
@options.recovery
@click.option(
    "--baseline",
    metavar="DESIGN",
    help="The design that others are relative to.  [default: the machine's, else base, else the "
    "first safe one]",
)
@options.metrics("the machine's, else five")
@click.option(
    "--with",
    "others",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Put results of another comparison beside these, from a file that --out wrote (.json, "
    ".csv, .parquet), if they were made with the same machine, threads, transactions, seeds and "
    "settings; may be repeated.",
)
@click.option(
    "--out",
    type=Written(),
    metavar="FOLDER|FILE",
    help="Write results with the whole configuration: a file by its ending (.json, .csv, "
    ".parquet), or a folder with all three and the report.",
)
@options.executor("Simulations")
@options.keeping
@options.form("table", "json", "csv", "parquet")
@options.written(
    "--report",
    "Write the report there.  [default with a table: report.html, or in the --out folder]",
)
@click.option("--no-report", is_flag=True, help="Write no report.")
def compare(
    asked: options.Comparing,
    recovery: int | None,
    baseline: str | None,
    metrics: str | None,
    others: tuple[Path, ...],
    out: Path | None,
    executor: Executor,
    keeping: options.Keeping,
    form: str,
    report: Path | None,
    no_report: bool,
) -> int:
    """Checks everything, simulates, prints, writes."""
    plan = asked.plan(recovery=recovery, metrics=metrics)
    beside = [_read(path) for path in others]
    theirs = [design for item in beside for design in item.designs]
    options.check_baseline(baseline, list(dict.fromkeys([*plan.choice.designs, *theirs])))
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise click.UsageError(
            "--format parquet is binary: give --out FILE.parquet, or redirect standard output"
        )
    experiment = Experiment.prepare(plan.jobs(asked.all_seeds()))
    total = len(experiment.simulations)
    targets = _targets(out, report, form, no_report=no_report)
    _check(targets, out, others, len(experiment.jobs))
    keep = keeping.keeper(total)

    with watched(keep) as display:
        result = experiment.run(How(keep, executor, display))
    say_found(result.found, total)
    if total < len(experiment.jobs):
        note(f"simulations: {experiment.counted}; a design that does not read a key runs once")
    comparison = Comparison(
        result.records, metrics=plan.metrics, machine=plan.machine, settings=plan.settings
    )
    if comparison.records:
        for path, item in zip(others, beside, strict=True):
            comparison = _beside(comparison, item, path)
    baseline = baseline or plan.choice.baseline
    if baseline is not None and result.records and baseline not in comparison.designs:
        note(f"no result of the baseline {baseline}; another design takes its place")
        baseline = None
    normalised = comparison.normalised(baseline)
    try:
        _write(targets, normalised, plan)
    finally:
        _print(form, normalised, binary=out is None)
    done = f"{result.done} of {total} simulations had finished"
    interruption = done if result.interrupted else None
    return conclude(result.failures, interruption, is_kept=keep is not None)


def _read(path: Path) -> Comparison:
    """The results of another comparison.

    Raises:
        ConfigError: the file is not one.
    """
    try:
        return load(path)
    except ConfigError as error:
        raise ConfigError(f"--with: {str(error).removeprefix('path: ')}") from None


def _beside(comparison: Comparison, other: Comparison, path: Path) -> Comparison:
    """The two together.

    Raises:
        ConfigError: they are not comparable.
    """
    try:
        return combine(comparison, other)
    except ConfigError as error:
        said = str(error).removeprefix("combine: ")
        raise ConfigError(f"--with {path}: {said} (here and there)") from None


def _targets(
    out: Path | None, report: Path | None, form: str, *, no_report: bool
) -> list[formats.Target]:
    if report is None and out is None and form == "table":
        report = DEFAULT_REPORT
    with refusing():
        targets = formats.targets(out, report)
    return [target for target in targets if not (no_report and target.form == "html")]


def _check(
    targets: Sequence[formats.Target], out: Path | None, others: Sequence[Path], records: int
) -> None:
    needed = records * formats.BYTES_PER_RECORD
    if any(target.form == "html" for target in targets):
        needed += formats.BYTES_PER_REPORT
    with refusing():
        written = [("--report" if t.form == "html" else "--out", t.path) for t in targets]
        output.apart(written, [("--with", path) for path in others])
        output.check([path for _, path in written], needed, make=out)


def _write(targets: Sequence[formats.Target], normalised: Normalised, plan: Plan) -> None:
    records = normalised.comparison.records
    if not records:
        return
    for target in targets:
        if target.form == "html":
            from graven.drawing.pages import render

            content = render(normalised, plan.machine, plan.settings).encode()
        else:
            content = formats.encode(records, target.form, full=True)
        output.write(target.path, content)
        note(f"wrote {target.path}")


def _print(form: str, normalised: Normalised, *, binary: bool) -> None:
    records = normalised.comparison.records
    if form == "table":
        if records:
            from graven.cli.tables import print_comparison

            print_comparison(results_console(), normalised)
    elif form == "parquet":
        if binary:
            sys.stdout.buffer.write(formats.encode(records, form, full=True))
    else:
        sys.stdout.write(formats.encode(records, form, full=False).decode())
    sys.stdout.flush()
