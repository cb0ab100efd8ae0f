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

from markupsafe import Markup

from graven import _engine
from graven.basics import output
from graven.basics.numbers import MISSING, exact, ratio, scaled
from graven.drawing.pages.charts import Bar, BarChart, Line, LineChart, marker_signs
from graven.drawing.pages.page import Part, part_of, template, text
from graven.drawing.pages.pairs import Pair, PairChart
from graven.drawing.palette import KIND_TITLES, KINDS, Style, design_styles
from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.papers.counts import CLASSES, COLUMNS, by_class, share, tally, three_counts
from graven.papers.data import Figure, NumberAnswer, OpenKey, Paper
from graven.papers.laboratory import Finding, command
from graven.papers.measures import brief
from graven.papers.panels import Drawn, Panel, Point, drawn, shows
from graven.papers.plan import Wanted
from graven.papers.readings import Question, Reading
from graven.papers.reproduction import Reproduction
from graven.papers.rules import MEANINGS, METHOD_MEANS, OUTCOMES, READING_MEANS, VERDICTS
from graven.papers.verdicts import Verdict, outcome_text
from graven.results.comparison import Comparison, metrics_of

TRAFFIC = ("media_write_requests", "write_energy_pj", "transaction_latency_cycles_mean")
"""What every report shows of the main experiment, whatever the paper draws."""


WORDS = {
    "meanings": MEANINGS,
    "reading_means": READING_MEANS,
    "method_means": METHOD_MEANS,
    "columns": COLUMNS,
}
"""The words of verdicts and counts, for the pages."""


@dataclass(frozen=True)
class Cell:
    """A cell of a figure's table: our number, its interval, the paper's number."""

    text: str
    spread: str
    printed: str


@dataclass(frozen=True)
class Drawing:
    """A drawing for desks and paper, and the same for phones."""

    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class PanelView:
    """A panel of a figure: its table, and its drawings if it has some of its own."""

    caption: str
    wide: Markup
    narrow: Markup
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it."""

    figure: Figure
    lead: str
    sizes: str
    panels: Sequence[PanelView]
    wide: Markup
    narrow: Markup
    designs: Sequence[tuple[str, Style, str]]
    lines: bool
    printed: bool
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
    written = []
    for item in figures:
        charts = _charts(item)
        named: dict[str, BarChart | LineChart | PairChart] = {
            item.figure.id if len(charts) == 1 else f"{item.figure.id}-{number}": chart
            for number, chart in enumerate(charts, 1)
        }
        beside = pair_chart(item.figure, assessed)
        if beside is not None:
            named[beside.key] = beside
        for name, chart in named.items():
            for form, content in chart.files().items():
                path = folder / f"{name}.{form}"
                output.write(path, content)
                written.append(path)
    return written


def pair_chart(figure: Figure, assessed: Sequence[Verdict]) -> PairChart | None:
    """The numbers that the paper prints about a figure beside ours; `None` if it prints none."""
    pairs: dict[str, Pair] = {}
    for verdict in assessed:
        answer, ours = verdict.claim.answer, verdict.value
        if not isinstance(answer, NumberAnswer) or not shows(figure, verdict.claim):
            continue
        if ours is None or not answer.measure.over or answer.form == "cases":
            continue
        if min(ours, answer.expect, *(verdict.range or ())) > 0.0:
            label = brief(answer.measure)
            same = verdict.claim.restates or verdict.claim.id
            pairs.setdefault(same, Pair(label, answer.expect, ours, verdict.range))
    if not pairs:
        return None
    description = f"{figure.where}, {figure.title}: numbers that the paper prints, and ours"
    return PairChart(f"{figure.id}-printed", description, list(pairs.values()))


def render(
    found: Reproduction,
    figures: Sequence[Drawn],
    assessed: Sequence[Verdict],
    laboratory: Sequence[Finding],
) -> str:
    """The whole page."""
    paper = found.wanted.paper
    unsafe = catalogue().unsafe_designs()
    views = [_figure_view(item, found.wanted, assessed) for item in figures]
    return (
        template("paper.html").render(
            style=Markup(text("page.css") + text("paper.css")),
            script=Markup(text("tables.js")),
            paper=paper,
            quick=found.wanted.quick,
            unsafe=unsafe,
            figures=views,
            tally=tally(assessed),
            classes=by_class(assessed),
            counts=three_counts(assessed),
            outcomes=OUTCOMES,
            **WORDS,
            share=share,
            readings=_readings_view(paper),
            verdicts=VERDICTS,
            claims=[
                (kind, [verdict for verdict in assessed if verdict.kind == kind])
                for kind in CLASSES
            ],
            class_of=_class_of,
            outcome_text=outcome_text,
            ratio=ratio,
            parts=_main_parts(found),
            kinds=[(KIND_TITLES[kind], KINDS[kind]) for kind in KINDS],
            markers=marker_signs,
            open=[_open_view(item, paper.machine) for item in paper.open.values()],
            tries=found.wanted.readings,
            machine=_machine_values(paper.machine),
            laboratory=laboratory,
            summaries={design.name: design.summary for design in catalogue().designs},
            version=_engine.__version__,
            build=_engine.build(),
            crash_command=command(laboratory),
            command=_command(found.wanted, None),
        )
        + "\n"
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
    lines = figure.kind == "lines"
    drawings = [(Markup(chart.wide()), Markup(chart.narrow())) for chart in charts]
    nothing = Markup("")
    whole = drawings[0] if lines and drawings else (nothing, nothing)
    own = drawings if figure.kind == "bars" else [(nothing, nothing)] * len(item.panels)
    panels = [
        _panel_view(item, panel, drawing) for panel, drawing in zip(item.panels, own, strict=True)
    ]
    points = [p for panel in item.panels for row in panel.rows.values() for p in row]
    styles = design_styles(item.study.designs)
    signs = marker_signs(item.study.designs)
    beside = pair_chart(figure, assessed)
    return FigureView(
        figure=figure,
        lead=lead(figure),
        sizes=_sizes(item, wanted),
        panels=panels,
        wide=whole[0],
        narrow=whole[1],
        designs=[(name, styles[name], signs[name]) for name in item.study.designs],
        lines=lines,
        printed=any(point.printed is not None for point in points),
        beside=None if beside is None else Drawing(Markup(beside.wide()), Markup(beside.narrow())),
        over=item.over if any(point.spread for point in points) else "",
        missing=item.missing,
        claims=[verdict for verdict in assessed if shows(figure, verdict.claim)],
        command=_command(wanted, figure.id),
    )


def lead(figure: Figure) -> str:
    """What a figure shows, in words."""
    parts = []
    if figure.first:
        parts.append(f"Each relative to its own value at the first {figure.x}.")
    elif figure.relative:
        parts.append(f"Relative to {figure.baseline}.")
    statistic = next((s for s in catalogue().stats if s.name == figure.metric), None)
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


def _charts(item: Drawn) -> list[BarChart | LineChart]:
    """The drawings of a figure: bars have one for each panel, lines one in all, tables none."""
    match item.figure.kind:
        case "bars":
            return [_bar_chart(item, panel, number) for number, panel in enumerate(item.panels)]
        case "lines":
            return [_line_chart(item)] if item.panels else []
        case _:
            return []


def _bar_chart(item: Drawn, panel: Panel, number: int) -> BarChart:
    figure = item.figure
    bars = {
        (design, column): Bar(point.value, {}, point.spread, point.printed)
        for design, points in panel.rows.items()
        for column, point in zip(panel.columns, points, strict=True)
    }
    where = f", {panel.caption}" if panel.caption else ""
    relative = f", relative to {figure.baseline}" if figure.relative else ""
    return BarChart(
        key=f"{figure.id}-{number}",
        description=f"{figure.title} of each design on each workload{relative}{where}. "
        "The table below has the same numbers.",
        groups=list(panel.columns),
        designs=list(panel.rows),
        bars=bars,
        baseline=figure.baseline if figure.relative else None,
        unsafe=catalogue().unsafe_designs(),
    )


def _line_chart(item: Drawn) -> LineChart:
    figure = item.figure
    panels = {
        panel.caption or "all workloads": [
            Line(
                design,
                [point.value for point in points],
                [point.spread for point in points],
                [point.printed for point in points],
            )
            for design, points in panel.rows.items()
        ]
        for panel in item.panels
    }
    return LineChart(
        key=figure.id,
        description=f"{figure.title} over {item.axis}. The tables below have the same numbers.",
        designs=list(item.study.designs),
        places=list(item.panels[0].columns),
        panels=panels,
        axis=item.axis,
    )


def _panel_view(item: Drawn, panel: Panel, drawing: tuple[Markup, Markup]) -> PanelView:
    show = ratio if item.figure.relative or item.figure.first else scaled
    rows = [
        (design, [_cell(point, show) for point in points]) for design, points in panel.rows.items()
    ]
    return PanelView(panel.caption, *drawing, panel.columns, rows)


def _cell(point: Point, show: Callable[[float | None], str]) -> Cell:
    spread = "" if point.spread is None else f"{show(point.spread[0])} to {show(point.spread[1])}"
    printed = "" if point.printed is None else show(point.printed)
    return Cell(show(point.value) if point.value is not None else MISSING, spread, printed)


def write_index(
    found: Sequence[Reproduction], assessed: Mapping[str, Sequence[Verdict]], folder: Path
) -> Path:
    """Writes the page that leads to the papers' reports."""
    titles = {item.wanted.paper.name: item.wanted.paper.title for item in found}
    of_all = [verdict for of_paper in assessed.values() for verdict in of_paper]
    groups = [(f"{name}.html", titles[name], assessed[name]) for name in titles]
    content = template("index.html").render(
        style=Markup(text("page.css") + text("paper.css")),
        script=Markup(text("tables.js")),
        papers=[
            (link, title, by_class(verdicts), three_counts(verdicts))
            for link, title, verdicts in [*groups, ("", "all papers", of_all)]
        ],
        verdicts=VERDICTS,
        outcomes=OUTCOMES,
        **WORDS,
        share=share,
        quick=found[0].wanted.quick,
        tries=found[0].wanted.readings,
        version=_engine.__version__,
        build=_engine.build(),
    )
    path = folder / "index.html"
    output.write(path, (content + "\n").encode())
    return path
