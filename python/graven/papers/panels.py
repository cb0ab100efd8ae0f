"""The numbers of a figure, in the arrangement in which the paper draws it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graven.basics.numbers import Value, caption, exact
from graven.papers.answers import View
from graven.papers.data import Claim, Figure, Measure, NumberAnswer, Study
from graven.papers.measures import coordinates, matching, same
from graven.papers.needs import needs
from graven.papers.plan import DEFAULT
from graven.papers.reproduction import Reproduction, Results
from graven.papers.samples import Sample
from graven.results.comparison import MEAN

THREADS, WORKLOAD = "threads", "workload"


@dataclass(frozen=True)
class Point:
    """A number of a figure.

    Attributes:
        value: By default, the mean over the seeds; `None` if a result is missing.
        low: The least over the seeds by default and the means under the readings that were tried.
        high: The greatest.
        printed: What the paper prints for it, if it prints a number.
        claim: The claim that says so.
    """

    value: float | None
    low: float | None
    high: float | None
    printed: float | None = None
    claim: str | None = None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The interval, if it is one."""
        if self.low is None or self.high is None or self.high - self.low <= 1e-3 * self.high:
            return None
        return self.low, self.high


@dataclass(frozen=True)
class Panel:
    """A part of a figure: designs, and a number for each column.

    Attributes:
        caption: Which part: `8 threads`; empty if there is only one.
        columns: Workloads and their mean, or the places of the axis.
        rows: By design.
    """

    caption: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Point, ...]]


@dataclass(frozen=True)
class Drawn:
    """A figure with its numbers.

    Attributes:
        figure: What is drawn.
        study: The experiment, sized.
        panels: Its parts.
        axis: What the columns are: `workload`, `threads` or a varied key.
        readings: The alternatives that are in the intervals, beside the seeds.
        missing: Simulations without a result.
    """

    figure: Figure
    study: Study
    panels: tuple[Panel, ...]
    axis: str
    readings: tuple[str, ...]
    missing: int

    @property
    def over(self) -> str:
        """Seeds and readings that the intervals are over, in words; empty if there are none."""
        seeds = (f"{self.study.seeds} seeds",) if self.study.seeds > 1 else ()
        return "; ".join((*seeds, *self.readings))


def drawn(figure: Figure, found: Reproduction) -> Drawn:
    """A figure's numbers."""
    results = found.results[figure.study]
    printed = [claim for claim in found.wanted.paper.claims if _is_about(claim, figure)]
    axis = figure.x or WORKLOAD
    places = _places(figure, results, THREADS)
    panels = [_panel(figure, results, place, printed) for place in places]
    panels += _with_programs(figure, found)
    panels = [panel for panel in panels if panel.columns]
    others = tuple(name for name in results.tried if name != DEFAULT)
    return Drawn(figure, results.study, tuple(panels), axis, others, results.missing)


def shows(figure: Figure, claim: Claim) -> bool:
    """Tells whether a figure shows the results that a claim is about."""
    return any(
        figure.study in measure.studies and measure.metric == figure.metric
        for measure in claim.measures
    )


def _with_programs(figure: Figure, found: Reproduction) -> list[Panel]:
    """A figure over workloads, with real programs in place of the paper's."""
    if figure.x is not None:
        return []
    panels = []
    for name, by_study in found.programs.items():
        if figure.study not in by_study:
            continue
        results = by_study[figure.study]
        # Traces have numbers of threads of their own, which are no axis.
        for place in _places(figure, results):
            panel = _panel(figure, results, place, ())
            caption = ", ".join(text for text in (name, panel.caption) if text)
            panels.append(replace(panel, caption=caption))
    return panels


def _is_about(claim: Claim, figure: Figure) -> bool:
    answer = claim.answer
    return (
        isinstance(answer, NumberAnswer)
        and answer.measure.studies == (figure.study,)
        and answer.measure.metric == figure.metric
        and answer.bound == "about"
    )


def _places(figure: Figure, results: Results, *more: str) -> list[dict[str, Value]]:
    """The coordinates of each panel: what the figure says, and whatever else has several values.

    Axes are the keys that the experiment varies, and more.
    """
    if not results.default.records:
        return []
    study = results.study
    axes = [*more, *(item.key for item in study.vary)]
    if figure.kind == "lines" and WORKLOAD in figure.panels:
        axes.insert(0, WORKLOAD)
    values = {axis: coordinates(results.default.records, axis) for axis in axes if axis != figure.x}
    several = [axis for axis in values if len(values[axis]) > 1 or axis == WORKLOAD]
    order = [a for a in figure.panels if a in several]
    order += [a for a in several if a not in order]
    combined = itertools.product(*(values[axis] for axis in order))
    return [dict(zip(order, choice, strict=True)) for choice in combined]


def _caption(place: Mapping[str, Value]) -> str:
    parts = []
    for axis, value in place.items():
        if axis == THREADS:
            parts.append("1 thread" if value == 1 else f"{value} threads")
        else:
            parts.append(str(value) if axis == WORKLOAD else caption({axis: value}))
    return ", ".join(parts)


def _panel(
    figure: Figure, results: Results, place: Mapping[str, Value], printed: Sequence[Claim]
) -> Panel:
    axis = figure.x or WORKLOAD
    # Workloads apart may have no results with the panel's values.
    columns: list[Value] = list(coordinates(matching(results.default.records, place), axis))
    if axis == WORKLOAD and len(columns) > 1:
        columns.append(MEAN)
    rows = {
        design: tuple(
            _with_printed(
                _point(_measure(figure, design, place, axis, column, columns), results),
                figure,
                results.study,
                printed,
                (design, {**place, axis: column}),
            )
            for column in columns
        )
        for design in results.study.designs
    }
    return Panel(_caption(place), tuple(exact(column) for column in columns), rows)


def _measure(
    figure: Figure,
    design: str,
    place: Mapping[str, Value],
    axis: str,
    column: Value,
    columns: Sequence[Value],
) -> Measure:
    at: dict[str, Any] = dict(place)
    if not (axis == WORKLOAD and column == MEAN):
        at[axis] = column
    over: dict[str, Any] = {}
    if figure.relative:
        over["design"] = figure.baseline
    if figure.first:
        over[axis] = columns[0]
        if figure.relative:
            over["design"] = design
    return Measure((figure.study,), figure.metric, (design,), over, at, figure.mean)


def _point(measure: Measure, results: Results) -> Point:
    default = _value(measure, results, DEFAULT)
    if default is None:
        return Point(None, None, None)
    others = [_value(measure, results, name) for name in results.tried if name != DEFAULT]
    known = [*default.values, *(other.mean for other in others if other is not None)]
    return Point(default.mean, min(known), max(known))


def _value(measure: Measure, results: Results, name: str) -> Sample | None:
    """The number under one alternative; `None` if a simulation has no result."""
    if any(needs(measure, job) for job in results.tried[name].missing):
        return None
    return View({results.study.id: results}, name).number(measure)


def _with_printed(
    point: Point,
    figure: Figure,
    study: Study,
    printed: Sequence[Claim],
    where: tuple[str, Mapping[str, Value]],
) -> Point:
    """A point with what the paper prints for it."""
    design, place = where
    for claim in printed:
        answer = claim.answer
        assert isinstance(answer, NumberAnswer), "others print no number"
        if answer.measure.of == (design,) and _is_at(answer.measure, figure, study, place):
            return replace(point, printed=answer.expect, claim=claim.id)
    return point


def _is_at(measure: Measure, figure: Figure, study: Study, place: Mapping[str, Value]) -> bool:
    """Whether a measure is of one place of a figure: the same coordinates, relative to the same."""
    over = {"design": figure.baseline} if figure.relative else {}
    if figure.first or dict(measure.over) != over or measure.mean in ("median", "max", "min"):
        return False
    if measure.mean != figure.mean and place.get(WORKLOAD, MEAN) == MEAN:
        return False
    wanted = {axis: value for axis, value in place.items() if value != MEAN}
    given = dict(measure.at)
    single = {THREADS: study.threads} | {item.key: item.values for item in study.vary}
    return all(
        same(value, given[axis]) if axis in given else len(single.get(axis, ())) == 1
        for axis, value in wanted.items()
        if axis != WORKLOAD or axis in wanted
    ) and all(axis in wanted or len(single.get(axis, ())) == 1 for axis in given)
