"""The backend that results show themselves with (`graven.results.views.Backend`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from graven.drawing.figures.comparisons import Asked, chart
from graven.drawing.figures.counterexample import Counterexample
from graven.drawing.figures.notebook import comparison_html, normalised_html, record_html
from graven.drawing.figures.picture import Picture
from graven.drawing.figures.style import Look
from graven.drawing.pages import render
from graven.engine.machine import Machine
from graven.laboratory.reports import Report
from graven.results.comparison import Comparison, Normalised
from graven.results.record import Record


@singledispatch
def html(of: object) -> str:
    """HTML that a notebook shows of results."""
    raise TypeError(f"notebooks show no {type(of).__name__}")


html.register(Record, record_html)
html.register(Comparison, comparison_html)
html.register(Normalised, normalised_html)


def page(of: Normalised, machine: Machine, settings: Mapping[str, str]) -> str:
    """A report in one file of HTML."""
    return render(of, machine, settings)


def picture(
    of: Comparison | Normalised | Report,
    width: str | float,
    theme: str,
    style: object,
    **asked: Any,  # noqa: ANN401 - as their `plot` takes them
) -> Picture:
    """A picture of results; `asked` are arguments of their `plot`."""
    look = Look.of(width, theme, style)
    if isinstance(of, Report):
        return Counterexample.of(of, asked["violation"]).draw(look)
    kind = asked.pop("kind")
    if isinstance(of, Normalised):
        return chart(kind, Asked(of.comparison, of.baseline, **asked)).draw(look)
    return chart(kind, Asked(of, None, **asked)).draw(look)
