"""The report of a paper: its figures redrawn with its numbers beside ours, and every claim."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from graven.basics import output
from graven.basics.numbers import exact, ratio, scaled
from graven.drawing.figures.bars import Bars
from graven.drawing.figures.bars import Panel as BarPanel
from graven.drawing.figures.embedded import Drawing
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.picture import Chart
from graven.drawing.figures.rows import Pairs
from graven.drawing.figures.style import Look
from graven.drawing.figures.values import Number
from graven.drawing.pages.page import Part, complete, part_of
from graven.engine.catalogue import Statistic, catalogue
from graven.engine.machine import Machine
from graven.papers.counts import CLASSES, COLUMNS, HEADS, by_class, tally, three_counts
from graven.papers.data import Figure, OpenKey, Paper
from graven.papers.laboratory import Finding, command
from graven.papers.panels import Drawn, Panel, Point, drawn, shows
from graven.papers.plan import Wanted
from graven.papers.readings import Question, Reading
from graven.papers.reproduction import Reproduction
from graven.papers.rules import MEANINGS, METHOD_MEANS, READING_MEANS, VERDICTS
from graven.papers.verdicts import Verdict, outcome_text
from graven.results.comparison import MEAN, Comparison, metrics_of

TRAFFIC = ("media_write_requests", "write_energy_pj", "transaction_latency_cycles_mean")
"""Statistics of the main experiment that every report shows."""


WORDS: Mapping[str, Any] = {
    "meanings": MEANINGS,
    "reading_means": READING_MEANS,
    "method_means": METHOD_MEANS,
    "columns": COLUMNS,
    "heads": HEADS,
    "verdicts": VERDICTS,
}
"""Words of verdicts and counts, for the pages."""

STYLES = ("page.css", "paper.css")


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it."""

    figure: Figure
    lead: str
    sizes: str
    panels: Sequence[tuple[Panel, Drawing | None]]
    show: Callable[[float | None], str]
    drawing: Drawing | None
    beside: Drawing | None
    over: str
    missing: int
    claims: Sequence[Verdict]
    command: str


@dataclass(frozen=True)
class Explained:
    """The content of a paper's report."""

    found: Reproduction
    assessed: Sequence[Verdict]
    laboratory: Sequence[Finding]


def write_reports(reports: Sequence[Explained], folder: Path, workers: int) -> Iterator[list[Path]]:
    """Writes several papers' reports, as many at a time as there are workers; yields their files.

    Drawing takes most of the time, and one host core. Where a process cannot be forked safely they
    are written one after the other.

    Raises:
        OutputError: one cannot be written.
    """
    count = min(workers, len(reports)) if sys.platform == "linux" else 1
    if count < 2:
        yield from (write_report(report, folder) for report in reports)
        return
    # An interrupt of the command reaches every worker, too: they end, and say nothing.
    quiet = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pool = ProcessPoolExecutor(count, get_context("fork"), quiet)
    try:
        yield from pool.map(partial(write_report, folder=folder), reports)
    finally:
        pool.shutdown(cancel_futures=True)


def write_report(report: Explained, folder: Path) -> list[Path]:
    """Writes the page and the drawings of a paper into a folder; returns the files.

    Raises:
        OutputError: one cannot be written.
    """
    found = report.found
    paper = found.wanted.paper
    names = found.wanted.figures or tuple(paper.figures)
    figures = [drawn(paper.figures[name], found) for name in names]
    written = _write_drawings(figures, report.assessed, folder / paper.name)
    if found.wanted.figures is None:
        page = folder / f"{paper.name}.html"
        content = render(found, figures, report.assessed, report.laboratory)
        output.write(page, content.encode())
        written.insert(0, page)
    return written


def _write_drawings(
    figures: Sequence[Drawn], assessed: Sequence[Verdict], folder: Path
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    look = Look.of("text")
    written = []
    for item in figures:
        name, charts = item.figure.id, [chart for chart, _ in _charts(item)]
        named: dict[str, Chart] = (
            {name: charts[0]}
            if len(charts) == 1
            else {f"{name}-{number}": chart for number, chart in enumerate(charts, 1)}
        )
        beside = Pairs.of(item.figure, assessed)
        if beside is not None:
            named[f"{name}-printed"] = beside
        for each, chart in named.items():
            picture = chart.draw(look)
            for form in ("svg", "png"):
                path = folder / f"{each}.{form}"
                output.write(path, picture.encoded(form))
                written.append(path)
    return written


def render(
    found: Reproduction,
    figures: Sequence[Drawn],
    assessed: Sequence[Verdict],
    laboratory: Sequence[Finding],
) -> str:
    """The whole page."""
    paper = found.wanted.paper
    return complete(
        "paper.html",
        styles=STYLES,
        paper=paper,
        quick=found.wanted.quick,
        figures=[_figure_view(item, found.wanted, assessed) for item in figures],
        tally=tally(assessed),
        classes=by_class(assessed),
        counts=three_counts(assessed),
        readings=_readings_view(paper),
        claims=[
            (kind, [verdict for verdict in assessed if verdict.kind == kind]) for kind in CLASSES
        ],
        class_of=_class_of,
        outcome_text=outcome_text,
        parts=_main_parts(found),
        open=[_open_view(item, paper.machine) for item in paper.open.values()],
        tries=found.wanted.readings,
        machine=_machine_values(paper.machine),
        laboratory=laboratory,
        summaries={design.name: design.summary for design in catalogue().designs},
        crash_command=command(laboratory),
        command=_command(found.wanted, None),
        **WORDS,
    )


def _class_of(verdict: str) -> str:
    """The class of a verdict in the page."""
    return verdict.replace(" ", "-").replace("%", "")


def _command(wanted: Wanted, figure: str | None) -> str:
    readings = f"--readings {wanted.readings}" if wanted.readings != "none" else None
    quick = "--quick" if wanted.quick else None
    named = [f'--reading "{name}"' for name in wanted.named]
    parts = ["graven reproduce", wanted.paper.name, figure, quick, readings, *named]
    return " ".join(part for part in parts if part)


def _readings_view(paper: Paper) -> list[tuple[Question, list[Reading]]]:
    return [
        (question, [one for one in paper.readings.values() if one.question == question.name])
        for question in paper.questions.values()
    ]


def _open_view(item: OpenKey, machine: str) -> tuple[str, str, str, str]:
    assumed = catalogue().machine(machine).value(item.key)
    return item.key, str("" if assumed is None else assumed), ", ".join(item.values), item.why


def _machine_values(machine: str) -> list[tuple[str, str, str, str]]:
    """Key, value, origin and kind of every value that the machine's file gives."""
    units = {p.key: p.unit for section in catalogue().sections for p in section.parameters}
    found = []
    for key, value in Machine(machine).values().items():
        if value.source is None and value.assumed is None:
            continue
        unit = units.get(key, "")
        shown = exact(value.value) if isinstance(value.value, int | float) else str(value.value)
        origin = value.source or f"assumed: {value.assumed}"
        kind = "source" if value.source else "assumed"
        found.append((key, f"{shown} {unit}".strip(), origin, kind))
    return found


def _main_parts(found: Reproduction) -> list[Part]:
    """Write traffic by kind, energy and latency of the paper's first experiment."""
    study = next(iter(found.results.values()))
    records = study.default.records
    if not records:
        return []
    comparison = Comparison(tuple(records), metrics=metrics_of(TRAFFIC))
    if study.study.baseline not in comparison.designs:
        return []
    normalised = comparison.normalised(study.study.baseline)
    parts = [part_of(normalised, metric) for metric in comparison.metrics]
    # Their drawings have names of their own, which must not meet those of the figures.
    return [replace(part, key=f"main-{part.key}") for part in parts]


def _figure_view(item: Drawn, wanted: Wanted, assessed: Sequence[Verdict]) -> FigureView:
    figure = item.figure
    charts = _charts(item)
    drawings = [
        Drawing.of(chart, f"{figure.id}-{number}", description)
        for number, (chart, description) in enumerate(charts)
    ]
    lines = figure.kind == "lines"
    own = drawings if figure.kind == "bars" else [None] * len(item.panels)
    points = [p for panel in item.panels for row in panel.rows.values() for p in row]
    pairs = Pairs.of(figure, assessed)
    what = f"{figure.where}, {figure.title}: numbers that the paper prints, and ours"
    return FigureView(
        figure=figure,
        lead=lead(figure),
        sizes=_sizes(item, wanted),
        panels=list(zip(item.panels, own, strict=True)),
        show=ratio if figure.relative or figure.first else scaled,
        drawing=drawings[0] if lines and drawings else None,
        beside=None if pairs is None else Drawing.of(pairs, f"{figure.id}-printed", what),
        over=item.over if any(point.spread for point in points) else "",
        missing=item.missing,
        claims=[verdict for verdict in assessed if shows(figure, verdict.claim)],
        command=_command(wanted, figure.id),
    )


def lead(figure: Figure) -> str:
    """Returns the statistic and the baseline of a figure, in words."""
    parts = []
    if figure.first:
        parts.append(f"Each relative to its own value at the first {figure.x}.")
    elif figure.relative:
        parts.append(f"Relative to {figure.baseline}.")
    statistic = _statistic(figure)
    what = figure.metric if statistic is None else statistic.description.rstrip(".")
    absolute = not figure.relative and not figure.first
    unit = f", {statistic.unit}" if statistic is not None and statistic.unit and absolute else ""
    parts.insert(0, f"{what}{unit}.")
    if figure.higher_is_better is not None:
        parts.append("Higher is better." if figure.higher_is_better else "Lower is better.")
    if figure.kind == "bars":
        parts.append(f"The mean is {figure.mean}.")
    if figure.note:
        parts.append(figure.note)
    return " ".join(parts)


def _sizes(item: Drawn, wanted: Wanted) -> str:
    threads = ", ".join("one per core" if n is None else str(n) for n in item.study.threads)
    quick = "Quick sizes, not the paper's: " if wanted.quick else ""
    plural = "" if item.study.threads == (1,) else "s"
    settings = "".join(f", {key} = {value}" for key, value in item.study.settings)
    fewer = "".join(
        f" ({part.transactions:,} of {', '.join(part.workloads)})"
        for part in item.study.parts
        if part.transactions
    )
    transactions = f"{item.study.transactions:,} transactions{fewer}"
    seeds = "one seed" if item.study.seeds == 1 else f"means over {item.study.seeds} seeds"
    return f"{quick}{transactions}, {threads} thread{plural}, {seeds}{settings}."


def _charts(item: Drawn) -> list[tuple[Chart, str]]:
    """The drawings of a figure with their descriptions.

    Bars have one for each panel, lines one in all, tables none.
    """
    figure = item.figure
    if figure.kind == "bars":
        return [_bars(item, panel) for panel in item.panels]
    if figure.kind != "lines" or not item.panels:
        return []
    labels = list(item.panels[0].columns)
    panels = {
        panel.caption or "all workloads": {
            design: [_number(point) for point in points] for design, points in panel.rows.items()
        }
        for panel in item.panels
    }
    places = [float(at) for at in range(len(labels))]
    chart = Lines(_measure(item, item.study.designs), item.axis, places, labels, panels)
    said = f"{figure.title} over {item.axis}. The tables below have the same numbers."
    return [(chart, said)]


def _bars(item: Drawn, panel: Panel) -> tuple[Chart, str]:
    figure = item.figure
    numbers = {
        (design, column): _number(point)
        for design, points in panel.rows.items()
        for column, point in zip(panel.columns, points, strict=True)
    }
    where = f", {panel.caption}" if panel.caption else ""
    relative = f", relative to {figure.baseline}" if figure.relative else ""
    chart = Bars(
        _measure(item, list(panel.rows)), panel.columns, [BarPanel("", numbers)], mean=MEAN
    )
    said = f"{figure.title} of each design on each workload{relative}{where}. "
    return chart, said + "The table below has the same numbers."


def _measure(item: Drawn, designs: Sequence[str]) -> Measure:
    figure = item.figure
    better = {True: "higher is better", False: "lower is better", None: ""}
    statistic = _statistic(figure)
    baseline = figure.baseline if figure.relative else None
    if figure.first:
        baseline = f"its own at the first {figure.x}"
    return Measure(
        figure.metric,
        figure.title,
        "" if statistic is None else statistic.unit,
        better[figure.higher_is_better],
        designs,
        baseline,
        catalogue().unsafe_designs(),
        f"least to greatest over {item.over}",
    )


def _statistic(figure: Figure) -> Statistic | None:
    """The statistic that a figure shows, if it is one alone."""
    return next((s for s in catalogue().stats if s.name == figure.metric), None)


def _number(point: Point) -> Number | None:
    return Number.known(point.value, point.spread, point.printed)


def write_index(
    found: Sequence[Reproduction], assessed: Mapping[str, Sequence[Verdict]], folder: Path
) -> Path:
    """Writes the page that leads to the papers' reports."""
    titles = {item.wanted.paper.name: item.wanted.paper.title for item in found}
    of_all = [verdict for of_paper in assessed.values() for verdict in of_paper]
    groups = [(f"{name}.html", titles[name], assessed[name]) for name in titles]
    content = complete(
        "index.html",
        styles=STYLES,
        papers=[
            (link, title, by_class(verdicts), three_counts(verdicts))
            for link, title, verdicts in [*groups, ("", "all papers", of_all)]
        ],
        quick=found[0].wanted.quick,
        tries=found[0].wanted.readings,
        **WORDS,
    )
    path = folder / "index.html"
    output.write(path, content.encode())
    return path
