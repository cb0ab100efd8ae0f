"""`graven plot`: figures for papers, from results that are stored."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from graven._engine import ConfigError
from graven.basics import output
from graven.basics.folders import REPRODUCED
from graven.cli import completions, options
from graven.cli.files import Writers, Written
from graven.cli.terminal import note, refusing
from graven.drawing.figures.comparisons import RELATIVE, Asked, chart
from graven.drawing.figures.picture import Chart, checked, save, tables
from graven.drawing.figures.style import THEMES, WIDTHS, Look
from graven.drawing.scales import AUTO, SCALES
from graven.engine.machine import DEFAULT, Machine
from graven.results.command_line import compare_command
from graven.results.comparison import Comparison
from graven.running.experiment import best_of_aliases, record_of
from graven.running.job import Job
from graven.store import Store

F = TypeVar("F", bound=Callable[..., Any])

NAMED = 4
"""Missing results that a message names at most."""

BYTES_PER_PICTURE = 4 << 20
"""Room to ask for before a picture is drawn."""

HELP = """Draw figures for papers from stored results.

Each is written by the ending of --out as PDF (vectors, text as text, fonts embedded), SVG or PNG,
with what is drawn beside it as CSV. Nothing is simulated: where a result is missing, nothing is
drawn, and the message has the command that makes it.

\b
Examples:
  graven compare --designs base,fwb,silo --threads 1,2,4,8
  graven plot bars --designs base,fwb,silo --threads 8 --out bars.pdf
  graven plot lines --designs base,fwb,silo --threads 1,2,4,8 --width text --out scaling.pdf
  graven plot traffic --designs base,fwb,silo --threads 8 --out traffic.svg --out traffic.pdf
  graven plot paper silo fig12 --quick --out fig12.pdf
"""


@click.group(cls=Writers, help=HELP)
def plot() -> None:
    """The group of the kinds."""


@dataclass(frozen=True)
class Picture:
    """Files of a picture, and its look."""

    outs: tuple[Path, ...]
    look: Look

    @staticmethod
    def of(outs: tuple[Path, ...], width: str, theme: str, style: str | None) -> Picture:
        """Reads the options."""
        try:
            inches: str | float = width if width in WIDTHS else float(width)
        except ValueError:
            inches = width
        return Picture(outs, Look.of(inches, theme, style))

    def draw(self, made: Callable[[], Chart], file: Path | None = None) -> int:
        """Draws and writes what `made` gives of a file, once all options have been checked."""
        paths = checked(self.outs)
        read = [] if file is None else [("FILE", file)]
        with refusing():
            output.apart([("--out", path) for path in [*paths, *tables(paths)]], read)
        with refusing("--out: "):
            output.check([*paths, *tables(paths)], BYTES_PER_PICTURE)
        for path in save(made().draw(self.look), paths):
            note(f"wrote {path}")
        return 0


def drawing(command: F) -> F:
    """Options of all kinds, as `picture`."""
    return options.as_one(
        "picture",
        Picture.of,
        click.option(
            "--out",
            "outs",
            multiple=True,
            required=True,
            type=Written(),
            metavar="FILE",
            help="A file by its ending: .pdf, .svg or .png; may be repeated.",
        ),
        click.option(
            "--width",
            default="column",
            show_default=True,
            metavar="column|text|INCHES",
            help=f"Width: {WIDTHS['column']} in, {WIDTHS['text']:g} in, or as given.",
        ),
        click.option(
            "--theme",
            type=click.Choice(list(THEMES)),
            default="light",
            show_default=True,
            help="Colours of page and text.",
        ),
        click.option(
            "--style",
            metavar="FILE|NAME",
            help="A style of matplotlib (.mplstyle) that applies on top.",
        ),
    )(command)


# ---- comparisons -------------------------------------------------------------------------------


def selecting(command: F) -> F:
    """Options that say which results, as of `graven compare`."""
    usual = "as of compare"
    return options.together(
        options.comparing(designs_=usual, workloads_=usual, threads_=usual, size=usual),
        options.metric("A statistic.  [default: the usual one of the kind]"),
        click.option(
            "--baseline",
            metavar="DESIGN",
            help="The design that others are relative to.  [default: as of compare]",
        ),
        click.option(
            "--absolute", is_flag=True, help="Draw values, and not multiples of the baseline's."
        ),
        options.store,
    )(command)


_SCALED = frozenset({"bars", "lines", "traffic", "energy"})
"""Kinds whose axes of values are linear."""


def _of_comparison(kind: str, short: str, text: str, *, over: bool = False) -> None:
    """Adds the command of a kind of pictures of comparisons."""

    def command(
        asked: options.Comparing,
        metric: str | None,
        baseline: str | None,
        absolute: bool,
        folder: Path,
        picture: Picture,
        over: str | None = None,
        scales: str = AUTO,
    ) -> int:
        if absolute and baseline is not None:
            raise click.UsageError("--absolute and --baseline exclude each other")
        seeds = asked.all_seeds()
        plan = asked.plan()
        options.check_baseline(baseline, plan.choice.designs)
        jobs = {seed: plan.jobs([seed]) for seed in seeds}

        def made() -> Chart:
            comparison = _stored(jobs, folder, plan.settings)
            relative_to = None
            if baseline is not None or (kind in RELATIVE and not absolute):
                relative_to = comparison.normalised(baseline or plan.choice.baseline).baseline
            return chart(kind, Asked(comparison, relative_to, metric, over, scales))

        return picture.draw(made)

    made = selecting(drawing(command))
    if over:
        made = click.option(
            "--over",
            metavar="threads|SECTION.KEY",
            help="Axis of the lines.  [default: the one that has several values]",
        )(made)
    if kind in _SCALED:
        made = click.option(
            "--scales",
            type=click.Choice(SCALES),
            default=AUTO,
            show_default=True,
            help="One scale, or auto: others for workloads that one would hide.",
        )(made)
    plot.command(kind, help=text, short_help=short)(made)


_of_comparison(
    "bars",
    "Grouped bars, and their mean.",
    "Draw grouped bars: workloads and their geometric mean, a bar for each design.\n\n"
    "Relative to the baseline unless --absolute is given.",
)
_of_comparison(
    "lines",
    "Lines over threads or a varied key.",
    "Draw lines over the number of threads or a varied key, a panel for each workload.\n\n"
    "All panels have one scale, unless it would hide some (--scales). Absolute unless "
    "--baseline is given.",
    over=True,
)
_of_comparison(
    "traffic",
    "Writes by kind, in stacks.",
    "Draw writes in stacks: data, log, metadata, garbage collection.\n\n"
    "--metric is media_write_requests, controller_write_requests or written_bytes. Relative to the "
    "baseline unless --absolute is given.",
)
_of_comparison(
    "energy",
    "Energy of PM, in stacks.",
    "Draw the energy of PM in stacks: writes and reads.\n\n"
    "--metric processor_energy_pj adds that of the processor. Relative to the baseline unless "
    "--absolute is given.",
)
_of_comparison(
    "latency",
    "Latencies by their percentiles.",
    "Draw the distribution of a latency, by its percentiles.\n\n"
    "--metric is a statistic without its percentile, as commit_latency_cycles. Absolute unless "
    "--baseline is given.",
)


def _stored(jobs: dict[int, list[Job]], folder: Path, settings: Mapping[str, str]) -> Comparison:
    """The results of all jobs.

    Raises:
        ConfigError: one is not in the store; the message has the commands that make them.
    """
    from graven.store.keeper import Keeper

    store = Store(folder, note)
    every = [job for of_seed in jobs.values() for job in of_seed]
    if not store.is_there:
        raise ConfigError(f"there is no store in {folder}; {_makers(jobs, list(jobs), settings)}")
    click.get_current_context().call_on_close(store.close)
    keep = Keeper(store)
    results = [(job, keep.found(job)) for job in every]
    missing = list({job.asked: job for job, found in results if found is None}.values())
    if missing:
        asked = {job.asked for job in every}
        names = [job.label + _seed(job, jobs) for job in missing[:NAMED]]
        if len(missing) > NAMED:
            names.append(f"{len(missing) - NAMED:,} more")
        seeds = [seed for seed in jobs if any(job.seed == seed for job in missing)]
        raise ConfigError(
            f"{len(missing):,} of {len(asked):,} results are not in {folder}: {', '.join(names)}; "
            + _makers(jobs, seeds, settings)
        )
    there = [(job, record_of(job, found[0])) for job, found in results if found is not None]
    return Comparison(best_of_aliases(there))


def _seed(job: Job, jobs: dict[int, list[Job]]) -> str:
    return f", seed {job.seed}" if len(jobs) > 1 else ""


_OF_COMPARE = ("designs", "workloads", "machine", "threads", "transactions")


def _makers(jobs: dict[int, list[Job]], seeds: Sequence[int], settings: Mapping[str, str]) -> str:
    """The command that makes the results of some seeds, with the options that were given."""
    given = click.get_current_context().params
    asked = {
        name: given[name]
        for name in _OF_COMPARE
        if not (name == "machine" and given[name] == DEFAULT)
    }
    command = compare_command(
        {
            **asked,
            "seed": seeds[0] if len(seeds) == 1 and list(jobs) != [1] else None,
            "seeds": list(seeds) if len(seeds) > 1 else None,
            "store": given["folder"],
        },
        settings=settings,
        vary=given["vary"],
        variants=given["variants"],
        flags=["no-report"],
    )
    return f"{command} makes what is missing"


# ---- papers ------------------------------------------------------------------------------------


def _reproduced(command: F) -> F:
    return options.together(
        click.option("--quick", is_flag=True, help="Results of quick sizes."),
        click.option(
            "--results",
            type=click.Path(path_type=Path, file_okay=False),
            default=REPRODUCED,
            show_default=True,
            metavar="FOLDER",
            help="Folder of `graven reproduce` and `graven explain` (their --out).",
        ),
    )(command)


@plot.command("paper", short_help="A paper's numbers beside ours.")
@click.argument("paper_name", metavar="PAPER", shell_complete=completions.paper)
@click.argument("figure", metavar="FIGURE", shell_complete=completions.figure)
@_reproduced
@drawing
def of_paper(paper_name: str, figure: str, quick: bool, results: Path, picture: Picture) -> int:
    """Draw the numbers that a paper prints about a figure, each beside ours.

    `graven reproduce --list` has papers and figures.
    """
    from graven.drawing.figures.rows import Pairs
    from graven.papers.files import paper
    from graven.papers.plan import READINGS, Wanted
    from graven.papers.reproduction import collect, needed
    from graven.papers.verdicts import verdicts

    found = paper(paper_name)
    if figure not in found.figures:
        raise click.UsageError(
            f"{found.name} has no figure `{figure}`; it has {', '.join(found.figures)}"
        )
    wanted = Wanted(found, quick, (figure,), READINGS[0], (), None)
    maker = f"graven reproduce {found.name} {figure}{' --quick' if quick else ''} --out {results}"

    def made() -> Chart:
        store = _whole(results, needed([wanted]), maker)
        item = collect(wanted, store)
        pairs = Pairs.of(found.figures[figure], verdicts(item))
        if pairs is None:
            raise ConfigError(f"{found.name} prints no number about {figure} that is a ratio")
        return pairs

    return picture.draw(made)


@plot.command("sensitivity", short_help="What moves a claim.")
@click.argument("claim_id", metavar="CLAIM", shell_complete=completions.claim)
@_reproduced
@drawing
def of_claim(claim_id: str, quick: bool, results: Path, picture: Picture) -> int:
    """Draw what moves a claim, as `graven explain` found it: readings and open keys."""
    from graven.drawing.figures.rows import Sensitivities
    from graven.papers.files import claim_of
    from graven.papers.plan import jobs_of
    from graven.papers.reproduction import by_digest
    from graven.papers.sensitivity import alternatives_of, sensitivity

    paper, claim = claim_of(claim_id)
    maker = f"graven explain {claim.id}{' --quick' if quick else ''} --simulate --out {results}"

    def made() -> Chart:
        jobs = by_digest(jobs_of(alternatives_of(claim, paper, quick=quick)))
        store = _whole(results, jobs, maker)
        drawn = Sensitivities.of(sensitivity(claim, paper, store, quick=quick))
        if drawn is None:
            raise ConfigError(f"nothing that was tried moves {claim.id} by a factor")
        return drawn

    return picture.draw(made)


def _whole(results: Path, jobs: Any, maker: str) -> Store:  # noqa: ANN401 - jobs by digest
    """The store of `graven reproduce`, if it has all of some jobs.

    Raises:
        ConfigError: one is missing; the message has the command that makes it.
    """
    store = Store(results / "store", note)
    click.get_current_context().call_on_close(store.close)
    missing = store.missing(jobs)
    if missing:
        raise ConfigError(
            f"{missing:,} of {len(jobs):,} results are not in {results}; "
            f"{maker} makes what is missing"
        )
    return store


# ---- single runs -------------------------------------------------------------------------------


@plot.command("banks", short_help="Loads of PM banks over time.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@drawing
def of_banks(file: Path, picture: Picture) -> int:
    """Draw the load of every PM bank over time.

    FILE is what `graven run --bank-loads FILE` wrote.
    """
    from graven.drawing.figures.banks import BankLoads

    return picture.draw(lambda: BankLoads.read(file), file)


@plot.command("timeline", short_help="What waits for what while some transactions run.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@drawing
def of_transactions(file: Path, picture: Picture) -> int:
    """Draw what waits for what while some transactions run.

    FILE is what `graven run --timeline FILE` wrote.
    """
    from graven.drawing.figures.timeline import Lanes, Timeline

    return picture.draw(lambda: Lanes(Timeline.read(file)), file)


@plot.command("counterexample", short_help="What led to a violation.")
@options.design("The design.")
@options.workload("The workload.")
@options.machine
@options.store
@drawing
def of_crash(design: str, workload: str, machine: str, folder: Path, picture: Picture) -> int:
    """Draw the newest violation that `graven crash` has found: who did what, and when."""
    from graven.drawing.figures.counterexample import Counterexample
    from graven.laboratory.reports import parse_violations
    from graven.store.keeper import CRASH, build

    words = ["graven", "crash", "--design", design, "--workload", workload, "--machine", machine]
    maker = shlex.join([*words, "--store", str(folder)])

    def made() -> Chart:
        store = Store(folder, note)
        if not store.is_there:
            raise ConfigError(f"there is no store in {folder}; {maker} looks for a violation")
        click.get_current_context().call_on_close(store.close)
        store.refresh()
        rows = store.index.query(
            "SELECT digest FROM results WHERE kind = ? AND build = ? AND design = ? "
            "AND workload = ? AND machine = ? ORDER BY written_at DESC, digest",
            [CRASH, build(), design, workload, Machine.find(machine).name],
        ).rows
        for (digest,) in rows:
            record = store.record(digest)
            violations = () if record is None else parse_violations(record.result)
            if violations:
                return Counterexample.of_violation(design, violations[0])
        what = f"{len(rows):,} runs without a violation" if rows else "no run"
        raise ConfigError(
            f"{folder} has {what} of {design} on {workload}, machine {machine}; {maker} looks for "
            "one"
        )

    return picture.draw(made)
