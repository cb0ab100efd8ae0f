"""`graven reproduce`: the papers' figures, tables and claims."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource
from rich.table import Table
from rich.text import Text

from graven.basics import output
from graven.basics.numbers import counted, ratio, scaled
from graven.cli import completions, options
from graven.cli.claims import print_beside, print_claims, print_counts
from graven.cli.programs import CAPTURES, capture_programs, print_programs, readings_of
from graven.cli.storing import conclude, watched
from graven.cli.tables import UNSAFE_NOTE, folded, marked, numbers, plain_table, whole
from graven.cli.terminal import note, refusing, results_console
from graven.engine.catalogue import catalogue
from graven.executors.estimates import seconds
from graven.laboratory.crashes import CrashJob
from graven.papers.data import SEEDS, Figure, Paper
from graven.papers.files import paper, papers
from graven.papers.laboratory import findings
from graven.papers.panels import Drawn, Point, drawn, shows
from graven.papers.plan import READINGS, Wanted, jobs_of
from graven.papers.reproduction import Reproduction, collect, needed, run
from graven.papers.rules import SEEDS_LEAST
from graven.papers.verdicts import Verdict, to_csv, to_json, unexplained, verdicts
from graven.results import formats
from graven.running.job import Job
from graven.running.pool import host_cores
from graven.running.progress import duration
from graven.running.work import Executor, Local
from graven.store import Store
from graven.store.keeper import Keeper

HELP = """Reproduce what the papers measured: figures, tables, and every claim.

PAPER is one of silo, morlog, fwb, hoop, lalea, or all; FIGURE one of its figures or tables
(--list shows them). Runs the simulations, several at a time, draws each figure as the paper does
with the paper's numbers beside ours, and gives a verdict on every claim.

Where a paper's text allows more than one reading, experiments have the default one; --readings
authors adds the combination that the paper's methodology describes, --readings all each reading
alone, too. Figures show the interval over what was tried, and a claim that is met under a reading
only says so. Nothing runs again that does not depend on what a reading sets. `graven explain CLAIM`
shows what moves one claim. --reading "real programs" runs captured programs in place of the paper's
where claims are about what programs are like; that decides no verdict.

Results are kept in FOLDER as they come, under the digest of what was simulated: after an interrupt,
the same command continues, and figures that share simulations share results. Sizes are the
papers', with three seeds for every number; --quick is for minutes, and has one seed unless --seeds
says more: fewer than three decide no direction.

\b
Examples:
  graven reproduce --list
  graven reproduce all --quick                 five reports and the table of claims, in minutes
  graven reproduce silo                        Silo's figures, at the paper's sizes
  graven reproduce silo fig12 --quick          one figure, in the terminal, too
  graven reproduce --claims --quick            the table of claims: paper's value, ours, verdict
  graven reproduce all --quick --readings all  the same under every reading, within the hour
  graven reproduce morlog --claims --format csv > morlog.csv
  graven reproduce morlog fig5 tab2-any --quick --reading "real programs"

Writes FOLDER/quick or FOLDER/full: PAPER.html, its figures as SVG and PNG in PAPER/, and
claims.csv. The exit code is 0 whatever the verdicts are, 1 if a simulation failed, 130 after an
interrupt.
"""


@click.command(help=HELP)
@click.argument("paper_name", metavar="PAPER|all", required=False, shell_complete=completions.paper)
@click.argument("figures", metavar="[FIGURE...]", nargs=-1, shell_complete=completions.figure)
@options.reproduction
@options.readings(*READINGS)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Seeds of each simulation.  [default: 3, with --quick 1]",
)
@click.option("--claims", is_flag=True, help="Print the table of claims, and write no report.")
@click.option("--list", "listed", is_flag=True, help="List figures and experiments; run nothing.")
@options.executor("Simulations")
@options.form("table", "json", "csv", text="With --claims, what goes to standard output.")
def reproduce(
    paper_name: str | None,
    figures: tuple[str, ...],
    quick: bool,
    named: tuple[str, ...],
    seeds: int | None,
    claims: bool,
    listed: bool,
    stored: bool,
    out: Path,
    executor: Executor,
    form: str,
) -> int:
    """Checks everything, simulates what is not stored, writes and prints."""
    chosen = _papers(paper_name, need=not (claims or listed))
    readings, named = readings_of(named, chosen)
    captures = out / CAPTURES
    wanted = [
        Wanted(item, quick, _figures(item, figures), readings, named, captures, seeds)
        for item in chosen
    ]
    if listed:
        return _list(wanted)
    if form != "table" and not claims:
        raise click.UsageError(f"--format {form} is of the table of claims: give --claims, too")
    folder = out / ("quick" if quick else "full")
    store = Store(out / "store")
    if stored and not (claims and is_default("out")):
        require_results(store, out)
    if not stored:
        capture_programs((name for item in wanted for name in item.programs()), captures)
    everything = needed(wanted)
    with refusing():
        out.mkdir(parents=True, exist_ok=True)
        room = formats.BYTES_PER_REPORT + store.missing(everything) * formats.BYTES_PER_RECORD
        output.check([folder / "claims.csv"], room, make=folder)

    status = 0 if stored else simulate(everything, store, executor)
    found = [collect(item, store) for item in wanted]
    assessed = [verdicts(item) for item in found]
    if not claims:
        workers = executor.workers if isinstance(executor, Local) else None
        _write(found, assessed, store, folder, workers or host_cores())
    _print(found, assessed, claims=claims, figures=bool(figures), form=form)
    if form == "table" and (seeds or (1 if quick else SEEDS)) < SEEDS_LEAST:
        note(f"fewer than {SEEDS_LEAST} seeds decide no direction: --seeds {SEEDS_LEAST}")
    return status


def is_default(option: str) -> bool:
    """Tells whether an option of the command that runs has not been given."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.DEFAULT


def require_results(store: Store, out: Path) -> None:
    """Refuses to show what is stored where nothing is.

    Raises:
        UsageError: there is no store.
    """
    if not store.is_there:
        raise click.UsageError(f"--stored: nothing is stored in {out}, and nothing runs")


def _papers(name: str | None, *, need: bool) -> list[Paper]:
    if name is None and need:
        raise click.UsageError(f"give a paper ({', '.join(papers())}), or all")
    return list(papers().values()) if name in (None, "all") else [paper(name)]


def _figures(item: Paper, figures: Sequence[str]) -> tuple[str, ...] | None:
    unknown = [name for name in figures if name not in item.figures]
    if unknown:
        known = ", ".join(item.figures)
        raise click.UsageError(f"{item.name} has no figure `{unknown[0]}`; it has {known}")
    return tuple(dict.fromkeys(figures)) or None


def _list(wanted: Sequence[Wanted]) -> int:
    console = results_console()
    for item in wanted:
        console.print(Text(item.paper.title, style="bold"))
        table = plain_table("figure", "paper", "what it shows", *numbers("simulations"))
        for figure in item.paper.figures.values():
            one = replace(item, figures=(figure.id,))
            count = len(jobs_of(one.alternatives()))
            table.add_row(figure.id, figure.where, Text(figure.title), f"{count:,}")
        console.print(table)
        console.print(
            f"{len(jobs_of(item.alternatives())):,} simulations in all, "
            f"{len(item.paper.claims)} claims"
        )
        if item.paper.readings:
            console.print(_readings(item.paper))
    return 0


def _readings(of: Paper) -> Table:
    table = plain_table(*folded("reading", "where", "what it says", "sets"))
    for reading in of.readings.values():
        what = reading.what + (" (part of the paper's method)" if reading.authors else "")
        table.add_row(reading.name, reading.where, Text(what), Text(reading.changes))
    return table


def estimate(missing: Sequence[Job | CrashJob], executor: Executor) -> str:
    """About how long some simulations take: on this host, or on one core of a cluster's."""
    each = [seconds(job) for job in missing]
    if not isinstance(executor, Local):
        return f"about {duration(sum(each))} on one core"
    cores = executor.workers or host_cores()
    longest = max(sum(each) / cores, *each)
    return f"about {duration(longest)}, {counted(cores, 'simulation')} at a time"


def simulate(everything: Mapping[str, Job | CrashJob], store: Store, executor: Executor) -> int:
    """Runs what is not stored, with a display, and says first how long; returns the exit code."""
    missing = [job for digest, job in everything.items() if not store.has(digest)]
    if missing:
        took = estimate(missing, executor)
        note(f"{len(missing):,} of {len(everything):,} simulations have no result yet: {took}")
    with watched(Keeper(store)) as display:
        ran = run(everything, store, executor=executor, observe=display)
    if ran.stored:
        note(f"{ran.stored:,} of {ran.stored + ran.new:,} results were there already")
    done = f"{ran.new:,} simulations had finished" if ran.interrupted else None
    return conclude(ran.failures, done, is_kept=True)


def _write(
    found: Sequence[Reproduction],
    assessed: Sequence[Sequence[Verdict]],
    store: Store,
    folder: Path,
    workers: int,
) -> None:
    from graven.drawing.pages.paper import Explained, write_index, write_reports

    reports = [
        Explained(item, verdict, findings(item.wanted.paper, store))
        for item, verdict in zip(found, assessed, strict=True)
    ]
    for pages in write_reports(reports, folder, workers):
        if pages:
            drawings = f" and {counted(len(pages) - 1, 'drawing')}" if len(pages) > 1 else ""
            note(f"wrote {pages[0]}{drawings}")
    if any(item.wanted.figures is not None for item in found):
        return
    table = [verdict for of_paper in assessed for verdict in of_paper]
    name = "claims" if len(found) > 1 else f"claims-{found[0].wanted.paper.name}"
    output.write(folder / f"{name}.csv", to_csv(table).encode())
    note(f"wrote {folder / name}.csv")
    if len(found) > 1:
        names = [item.wanted.paper.name for item in found]
        index = write_index(found, dict(zip(names, assessed, strict=True)), folder)
        note(f"wrote {index}")


def _print(
    found: Sequence[Reproduction],
    assessed: Sequence[Sequence[Verdict]],
    *,
    claims: bool,
    figures: bool,
    form: str,
) -> None:
    if claims and form != "table":
        table = [verdict for of_paper in assessed for verdict in of_paper]
        sys.stdout.write(to_json(table) if form == "json" else to_csv(table))
        return
    names = [item.wanted.paper.name for item in found]
    for item, verdict in zip(found, assessed, strict=True):
        if figures:
            for name in item.wanted.figures or ():
                figure = item.wanted.paper.figures[name]
                _print_figure(drawn(figure, item))
                about = [one for one in verdict if shows(figure, one.claim)]
                if about and not claims:
                    print_beside(about)
        if claims:
            print_claims(item.wanted.paper.title, verdict)
        print_programs(item.wanted.paper.title, verdict)
    if claims or not figures:
        print_counts(dict(zip(names, assessed, strict=True)))
    missing = [item.claim.id for verdict in assessed for item in unexplained(verdict)]
    if missing:
        note(f"not met, without a reason in claims.toml: {', '.join(missing)}")


def _print_figure(item: Drawn) -> None:
    console = results_console()
    figure = item.figure
    relative = f", relative to {figure.baseline}" if figure.relative else ""
    said = f"{figure.where}: {figure.title}{relative}{_unit(figure)}"
    console.print(Text(said, style="bold"))
    unsafe = catalogue().unsafe_designs().intersection(item.study.designs)
    for panel in item.panels:
        if panel.caption:
            console.print(panel.caption, markup=False)
        table = plain_table(whole("design"), *numbers(*panel.columns))
        for design, points in panel.rows.items():
            cells = [_cell(point, relative=figure.relative or figure.first) for point in points]
            table.add_row(marked(design, unsafe), *cells)
        console.print(table)
    if item.over:
        console.print(f"[low to high]: over {item.over}", markup=False)
    if any(p.printed is not None for panel in item.panels for r in panel.rows.values() for p in r):
        console.print("(paper …): what the paper prints")
    if item.missing:
        console.print(f"{item.missing:,} simulations have no result")
    if unsafe:
        console.print(UNSAFE_NOTE)


def _unit(figure: Figure) -> str:
    """The unit of a figure's numbers, with a comma before it."""
    if figure.relative or figure.first:
        return ", multiples"
    found = next((s.unit for s in catalogue().stats if s.name == figure.metric), "")
    return f", {found}" if found else ""


def _cell(point: Point, *, relative: bool) -> str:
    show = ratio if relative else scaled
    text = show(point.value)
    if point.spread is not None:
        text += f" [{show(point.spread[0])} to {show(point.spread[1])}]"
    if point.printed is not None:
        text += f" (paper {show(point.printed)})"
    return text
