"""The page of what changed between two sets of results: one HTML file that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from graven import _engine
from graven.basics.numbers import exact, ratio, scaled
from graven.drawing.pages.page import template, text
from graven.engine.catalogue import catalogue
from graven.results.changes import Change, Changes
from graven.results.comparison import Metric

SHOWN_MOST = 1000
"""So many simulations are shown of each metric: those that change most."""


@dataclass(frozen=True)
class Row:
    """A simulation's change of a metric, with the bar that shows it.

    Attributes:
        design: Whose it is.
        simulation: Which.
        left: The value in the one set.
        right: The value in the other.
        factor: The other over the one.
        begin: Where the bar begins, in percent of its width; the middle is no change.
        length: How long it is, in percent.
        verdict: `better`, `worse` or `same`.
    """

    design: str
    simulation: str
    left: str
    right: str
    factor: str
    begin: float
    length: float
    verdict: str


@dataclass(frozen=True)
class Part:
    """One metric.

    Attributes:
        title: In words.
        key: Its name.
        unit: Its unit.
        direction: Which way is better.
        means: Geometric mean of the factors, by design.
        rows: The simulations that change most.
        alike: How many do not change, or by less than is asked for.
        left_out: How many others are not shown.
    """

    title: str
    key: str
    unit: str
    direction: str
    means: Sequence[tuple[str, str]]
    rows: Sequence[Row]
    alike: int
    left_out: int


def render(changes: Changes, names: tuple[str, str]) -> str:
    """The whole page."""
    return template("changes.html").render(
        left=names[0],
        right=names[1],
        both=changes.both,
        least=exact(changes.least_percent) if changes.least_percent else "",
        configuration=[
            (item.difference.name, item.difference.unit, exact(item.difference.left),
             exact(item.difference.right), item.simulations)
            for item in changes.configuration
        ],
        parts=[_part(changes, metric) for metric in changes.metrics],
        only_left=changes.only_left,
        only_right=changes.only_right,
        unsafe=catalogue().unsafe_designs(),
        version=_engine.__version__,
        style=Markup(text("page.css")),
        script=Markup(text("tables.js")),
    )  # fmt: skip


def _part(changes: Changes, metric: Metric) -> Part:
    of = changes.of_metric(metric)
    large = changes.shown(metric)
    shown = large[:SHOWN_MOST]
    widest = max((change.size for change in shown if math.isfinite(change.size)), default=1.0)
    means = [(design, ratio(changes.mean(metric, design))) for design in changes.designs()]
    return Part(
        metric.title,
        metric.stat,
        metric.unit,
        metric.direction,
        means,
        [_row(change, widest) for change in shown],
        len(of) - len(large),
        len(large) - len(shown),
    )


def _row(change: Change, widest: float) -> Row:
    length = 50.0 * min(change.size / widest, 1.0)
    up = change.right > change.left
    return Row(
        change.design,
        change.simulation.removeprefix(f"{change.design} on "),
        scaled(change.left),
        scaled(change.right),
        ratio(change.factor),
        round(50.0 if up else 50.0 - length, 2),
        round(length, 2),
        {True: "better", False: "worse", None: "same"}[change.is_better],
    )
