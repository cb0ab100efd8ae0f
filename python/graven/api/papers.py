"""The papers from Python: figures with the papers' numbers beside ours, and what moves a claim."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graven._engine import ConfigError
from graven.api.options import executor_of, observer, split_names, warn
from graven.basics import arguments
from graven.basics.folders import REPRODUCED
from graven.basics.numbers import MISSING, Value, counted, ratio, scaled
from graven.drawing.figures.plotted import Plotted
from graven.papers.files import claim_of, paper
from graven.papers.panels import Drawn, drawn
from graven.papers.plan import READINGS, Wanted, jobs_of
from graven.papers.reproduction import by_digest, collect, needed, run
from graven.papers.sensitivity import alternatives_of, sensitivity
from graven.papers.verdicts import Verdict, verdicts
from graven.results.formats import arrow_table
from graven.results.frames import Frames
from graven.running.pool import Observer, failures_text, kind_of
from graven.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from graven.drawing.figures.picture import Chart
    from graven.laboratory.crashes import CrashJob
    from graven.papers.sensitivity import Sensitivity
    from graven.running.job import Job

Names = str | Iterable[str] | None


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what came of it.

    Attributes:
        id: Its name, as `graven explain` takes it.
        where: Section, figure or table.
        says: What the paper says.
        paper: What it prints, as a person reads it.
        ours: What came out by default; empty if nothing is simulated for it.
        verdict: `met within 10%`, `direction only`, `contradicted`, …, and the reading that it
            depends on.

    Examples:
        >>> found = graven.reproduce("hoop", "fig11", quick=True)
        >>> claim = found.claims[0]
        >>> claim.says
        'Recovery time falls linearly with the NVM bandwidth'
        >>> claim.paper, claim.ours, claim.verdict
        ('falls linearly with bandwidth', '0.48 ×', 'undecided')
    """

    id: str
    where: str
    says: str
    paper: str
    ours: str
    verdict: str

    @staticmethod
    def _of(found: Verdict) -> Claim:
        """A claim with its verdict."""
        claim = found.claim
        return Claim(claim.id, claim.where, claim.says, found.paper, found.ours, found.text)


@dataclass(frozen=True, repr=False)
class PaperFigure(Frames, Plotted):
    """A figure or table of a paper, with the paper's numbers beside ours.

    Examples:
        >>> figure = graven.reproduce("hoop", "fig11", quick=True)["fig11"]
        >>> figure
        <Figure fig11: Time of recovery over the memory's channels, of 8 GB/s each (Fig. 11)>
        >>> [(row["panel"], round(row["value"], 2)) for row in figure.rows][:2]
        [('hoop.recovery_threads = 1', 6.37), ('hoop.recovery_threads = 1', 5.7)]
        >>> figure.to_arrow().num_rows
        6

        The numbers that the paper prints about it, each beside ours:

        >>> [path.name for path in figure.plot().save("fig11.pdf")]
        ['fig11.pdf', 'fig11.csv']
    """

    found: Drawn
    verdicts: Sequence[Verdict]

    def __repr__(self) -> str:
        figure = self.found.figure
        return f"<Figure {figure.id}: {figure.title} ({figure.where})>"

    @property
    def rows(self) -> list[dict[str, Value]]:
        """A row for each number: `value` with its `low` and `high`, and what is `printed`."""
        axis = self.found.axis
        return [
            {
                "panel": panel.caption,
                "design": design,
                axis: column,
                "value": point.value,
                "low": point.low,
                "high": point.high,
                "printed": point.printed,
                "claim": point.claim,
            }
            for panel in self.found.panels
            for design, points in panel.rows.items()
            for column, point in zip(panel.columns, points, strict=True)
        ]

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return arrow_table(self.rows, ())

    def _chart(self) -> Chart:
        """The numbers that the paper prints about it, each beside ours.

        Raises:
            ConfigError: the paper prints no such number.
        """
        from graven.drawing.figures.rows import Pairs

        pairs = Pairs.of(self.found.figure, self.verdicts)
        if pairs is None:
            figure = self.found.figure.id
            raise ConfigError(f"no ratio is printed about {figure}; `rows` has our numbers")
        return pairs

    def _repr_html_(self) -> str:
        figure = self.found.figure
        show = ratio if figure.relative or figure.first else scaled
        parts = [f"<p>{html.escape(repr(self)[1:-1])}</p>"]
        for panel in self.found.panels:
            head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *panel.columns))
            rows = []
            for design, points in panel.rows.items():
                cells = [
                    f"<td>{show(p.value)}"
                    + (f" <small>(paper {show(p.printed)})</small>" if p.printed else "")
                    + "</td>"
                    for p in points
                ]
                rows.append(f"<tr><th>{html.escape(design)}</th>{''.join(cells)}</tr>")
            caption = html.escape(panel.caption)
            parts.append(
                f"<table><caption>{caption}</caption><tr>{head}</tr>{''.join(rows)}</table>"
            )
        return "".join(parts)


@dataclass(frozen=True, repr=False)
class Reproduction(Frames):
    """Results of a paper's experiments.

    Attributes:
        paper: The paper's name.
        quick: Whether sizes are those for minutes, instead of the paper's.
        figures: By name, in the paper's order.
        claims: Those that were assessed.

    Examples:
        >>> found = graven.reproduce("hoop", "fig11", quick=True)
        >>> found
        <Reproduction of hoop: 1 figure, 2 claims, quick sizes>
        >>> [figure for figure in found]
        [<Figure fig11: Time of recovery over the memory's channels, of 8 GB/s each (Fig. 11)>]
        >>> found["fig11"].rows[0]["design"]
        'hoop'
        >>> found.to_arrow().column("verdict").to_pylist()
        ['undecided', 'met']
    """

    paper: str
    quick: bool
    figures: Mapping[str, PaperFigure]
    claims: Sequence[Claim]

    def __repr__(self) -> str:
        parts = [counted(len(self.figures), "figure"), counted(len(self.claims), "claim")]
        parts.append("quick sizes" if self.quick else "the paper's sizes")
        return f"<Reproduction of {self.paper}: {', '.join(parts)}>"

    def __getitem__(self, figure: str) -> PaperFigure:
        found = self.figures.get(arguments.text("figure", figure))
        if found is None:
            raise arguments.known("figure", figure, self.figures)
        return found

    def __iter__(self) -> Iterator[PaperFigure]:
        return iter(self.figures.values())

    def __len__(self) -> int:
        return len(self.figures)

    def to_arrow(self) -> pa.Table:
        """The claims as an Arrow table."""
        return arrow_table([vars(claim) for claim in self.claims], ())

    def _repr_html_(self) -> str:
        from graven.drawing.figures.notebook import table

        rows = [[c.id, c.where, c.paper, c.ours or MISSING, c.verdict] for c in self.claims]
        return f"<p>{html.escape(repr(self)[1:-1])}</p>" + table(
            ["claim", "where", "paper", "ours", "verdict"], rows
        )


@dataclass(frozen=True)
class Moved:
    """Effect of one change on a claim.

    Attributes:
        name: A reading of the paper's text, the paper's method, or a value of an open key.
        ours: What comes out then.
        outcome: How that compares with what is printed.
        factor: By how much it moves the claim's number; `None` if there is none.
        grounds: The sentence that allows it, or what makes a value sensible.

    Examples:
        >>> found = graven.explain("hoop-recovery-linear-bandwidth", quick=True)
        >>> moved = found.moves[0]
        >>> moved.name, moved.ours, moved.outcome, round(moved.factor, 2)
        ('eight-stores', '0.31 ×', 'met within 25%', 0.64)
        >>> print(moved.grounds)
        “Hashmap [24] Insert/update entries. 8 100%/0%” (Table III)
    """

    name: str
    ours: str
    outcome: str
    factor: float | None
    grounds: str


@dataclass(frozen=True, repr=False)
class Explanation(Frames, Plotted):
    """A claim, and everything that may move it, most first.

    Examples:
        >>> found = graven.explain("hoop-recovery-linear-bandwidth", quick=True)
        >>> found
        <Explanation of hoop-recovery-linear-bandwidth: met under reading eight-stores; 10 changes>
        >>> found.claim.says
        'Recovery time falls linearly with the NVM bandwidth'
        >>> found.verdict
        'met under reading eight-stores'
        >>> for move in found.moves[:3]:
        ...     print(move.name, move.ours)
        eight-stores 0.31 ×
        items-stored-again 0.45 ×
        rows-written-back 0.46 ×
        >>> found.to_arrow().num_rows
        10
        >>> [path.name for path in found.plot().save("moved.pdf")]
        ['moved.pdf', 'moved.csv']
    """

    found: Sensitivity

    def __repr__(self) -> str:
        tried = counted(len(self.found.moves), "change")
        return f"<Explanation of {self.claim.id}: {self.verdict}; {tried}>"

    @property
    def claim(self) -> Claim:
        """The claim."""
        return Claim._of(self.found.verdict)

    @property
    def verdict(self) -> str:
        """Verdict on the claim."""
        return self.found.verdict.text

    @property
    def moves(self) -> list[Moved]:
        """Effect of each change, the largest first."""
        return [
            Moved(move.name, move.found.ours, move.found.verdict, move.factor, move.sentence)
            for move in self.found.moves
        ]

    def to_arrow(self) -> pa.Table:
        """The changes as an Arrow table."""
        return arrow_table([vars(move) for move in self.moves], ())

    def _chart(self) -> Chart:
        """What moves it by a factor, most first.

        Raises:
            ConfigError: nothing does.
        """
        from graven.drawing.figures.rows import Sensitivities

        drawn = Sensitivities.of(self.found)
        if drawn is None:
            raise ConfigError(f"nothing that was tried moves {self.claim.id} by a factor")
        return drawn

    def _repr_html_(self) -> str:
        from graven.drawing.figures.notebook import table

        claim = self.claim
        rows = [
            [move.name, move.ours, move.outcome, ratio(move.factor), move.grounds]
            for move in self.moves
        ]
        said = (
            f"{claim.where}: {claim.says} Paper: {claim.paper}; ours: {claim.ours}. {self.verdict}"
        )
        return f"<p>{html.escape(said)}</p>" + table(
            ["what is changed", "what comes out", "outcome", "factor", "grounds"], rows
        )


@arguments.in_python
def reproduce(
    paper_name: str,
    figures: Names = None,
    *,
    quick: bool = False,
    readings: str = READINGS[0],
    seeds: int | None = None,
    folder: str | PathLike[str] = REPRODUCED,
    jobs: int | None = None,
    on: str = "local",
    observe: Observer | None = None,
) -> Reproduction:
    """Reproduces a paper's figures and claims, as `graven reproduce` does.

    Args:
        paper_name: `silo`, `morlog`, `fwb`, `hoop` or `lalea`.
        figures: Names of figures and tables, or a list separated by commas; all if not given.
        quick: Sizes for minutes, instead of the paper's.
        readings: `none`: the default readings of the paper's text; `authors`: the combination that
            its methodology describes, too; `all`: each reading alone, too.
        seeds: Seeds of each simulation; three if not given, or one of quick sizes, which decides no
            direction.
        folder: Where results are kept, and found: the `--out` of the command.
        jobs: Simulations at a time on this host; its cores if not given.
        on: Where simulations run: `local`, `local:N`, `dask://HOST:PORT`, `slurm`.
        observe: Called with the progress several times a second.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: a simulation failed; the results of the others are kept.
        KeyboardInterrupt: Ctrl-C; what had finished is kept.

    Examples:
        One figure, with sizes that take seconds, and the claims about it:

        >>> found = graven.reproduce("hoop", "fig11", quick=True)
        >>> found
        <Reproduction of hoop: 1 figure, 2 claims, quick sizes>
        >>> for claim in found.claims:
        ...     print(claim.id, claim.verdict)
        hoop-recovery-linear-bandwidth undecided
        hoop-recovery-threads met
        >>> [path.name for path in found["fig11"].plot().save("fig11.pdf")]
        ['fig11.pdf', 'fig11.csv']
    """
    source = paper(arguments.text("paper_name", paper_name))
    if readings not in READINGS:
        raise arguments.known("readings", str(readings), READINGS)
    names = arguments.names("figures", figures)
    chosen = None if names is None else tuple(dict.fromkeys(split_names(names)))
    for name in chosen or ():
        if name not in source.figures:
            raise arguments.known("figure", name, source.figures)
    is_quick = arguments.flag("quick", quick)
    of_each = arguments.integer_or_none("seeds", seeds, most=arguments.SEEDS_MAX)
    wanted = Wanted(source, is_quick, chosen, readings, (), None, of_each)
    store = _complete(folder, needed([wanted]), on, jobs, observe)
    found = collect(wanted, store)
    assessed = verdicts(found)
    shown = {
        name: PaperFigure(drawn(figure, found), assessed)
        for name, figure in source.figures.items()
        if chosen is None or name in chosen
    }
    return Reproduction(source.name, is_quick, shown, [Claim._of(verdict) for verdict in assessed])


@arguments.in_python
def explain(
    claim_id: str,
    *,
    quick: bool = False,
    folder: str | PathLike[str] = REPRODUCED,
    jobs: int | None = None,
    on: str = "local",
    observe: Observer | None = None,
) -> Explanation:
    """Finds what moves a claim of a paper, as `graven explain` does.

    Args:
        claim_id: The name of a claim that simulations answer.
        quick: As of `reproduce`, and so are the others.
        folder: Where results are kept, and found.
        jobs: Simulations at a time on this host.
        on: Where simulations run.
        observe: Called with the progress several times a second.

    Raises:
        ConfigError: there is no such claim, or nothing is simulated for it; nothing has run.
        SimulationError: a simulation failed; the results of the others are kept.
        KeyboardInterrupt: Ctrl-C; what had finished is kept.

    Examples:
        By its claim, recovery takes a quarter of the time if PM has four times the bandwidth. Here
        it takes 0.49 of it, and 0.31 if transactions store eight times:

        >>> found = graven.explain("hoop-recovery-linear-bandwidth", quick=True)
        >>> found
        <Explanation of hoop-recovery-linear-bandwidth: met under reading eight-stores; 10 changes>
        >>> found.claim.ours
        '0.48 ×'
        >>> found.moves[0].name, found.moves[0].ours
        ('eight-stores', '0.31 ×')
    """
    source, claim = claim_of(arguments.text("claim_id", claim_id))
    is_quick = arguments.flag("quick", quick)
    jobs_needed = by_digest(jobs_of(alternatives_of(claim, source, quick=is_quick)))
    store = _complete(folder, jobs_needed, on, jobs, observe)
    return Explanation(sensitivity(claim, source, store, quick=is_quick))


def _complete(
    folder: str | PathLike[str],
    wanted: Mapping[str, Job | CrashJob],
    on: str,
    jobs: int | None,
    observe: Observer | None,
) -> Store:
    """The store of a folder, when it has all of some jobs."""
    executor = executor_of(on, jobs)
    shown = observer(observe)
    store = Store(Path(arguments.path("folder", folder)) / "store", warn)
    done = run(wanted, store, executor=executor, observe=shown)
    if done.interrupted:
        raise KeyboardInterrupt
    if done.failures:
        raise kind_of(done.failures)(failures_text(done.failures))
    return store
