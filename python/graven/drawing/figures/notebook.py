"""HTML of results in notebooks: a small table, and a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence

from graven._engine import ConfigError
from graven.basics.numbers import exact, ratio, scaled, with_spread
from graven.drawing.figures.comparisons import Asked, chart, is_one_of_each, place_caption
from graven.drawing.figures.embedded import inline
from graven.drawing.figures.measure import UNSAFE_MARK, UNSAFE_NOTE
from graven.drawing.figures.style import Look
from graven.drawing.figures.values import Number, Source, stat
from graven.engine.catalogue import catalogue
from graven.results.comparison import METRICS, Comparison, Normalised
from graven.results.record import Record

ROWS_MOST = 24
"""Largest number of rows of a table."""


def comparison_html(comparison: Comparison) -> str:
    """A comparison, relative to its default baseline."""
    if not comparison.records:
        return "<p>No results.</p>"
    return normalised_html(comparison.normalised())


def normalised_html(normalised: Normalised) -> str:
    """Geometric means over the baseline's as a table, and bars of the first metric."""
    comparison, baseline = normalised.comparison, normalised.baseline
    if not comparison.records:
        return "<p>No results.</p>"
    if not is_one_of_each(comparison.records):
        return f"<p>{html.escape(repr(comparison))}</p>"
    parts = [f"<p>{html.escape(repr(normalised))}; means over workloads are geometric.</p>"]
    parts.append(_means(comparison, baseline))
    if comparison.unsafe:
        parts.append(f"<p>{UNSAFE_NOTE}</p>")
    try:
        picture = chart("bars", Asked(comparison, baseline)).draw(Look.of("text"))
    except ConfigError:
        return "".join(parts)
    return "".join([*parts, inline(picture)])


def _means(comparison: Comparison, baseline: str) -> str:
    source = Source(comparison, baseline)
    several = len(source.places) > 1
    head = ["design", *(["at"] if several else [])]
    head += [metric.title for metric in comparison.metrics]
    rows = []
    for place in source.places:
        for design in comparison.designs:
            cells = [f"{design} {UNSAFE_MARK}" if design in comparison.unsafe else design]
            if several:
                cells.append(place_caption(place, source.places))
            group = source.groups[-1]
            for metric in comparison.metrics:
                number = source.number(stat(metric.stat), design, group, place)
                cells.append(_ratio(number))
            rows.append(cells)
    return table(head, rows)


def _ratio(number: Number | None) -> str:
    """A multiple, and half of its interval if it has one."""
    if number is None or number.spread is None:
        return ratio(None if number is None else number.value)
    return with_spread(ratio(number.value), number.high - number.value)


def record_html(record: Record) -> str:
    """The usual metrics of one simulation."""
    rows = []
    for metric in METRICS:
        value = record.stats.get(metric.stat)
        if isinstance(value, int | float):
            rows.append([metric.title, scaled(value), catalogue().described(metric.stat).unit])
    rows.append(["All statistics", exact(len(record.stats)), "in .stats"])
    return f"<p>{html.escape(repr(record))}</p>{table(['statistic', 'value', 'unit'], rows)}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as an element of a page; of many rows, the first."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    shown = rows if len(rows) <= ROWS_MOST else rows[: ROWS_MOST - 1]
    lines = [
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in shown
    ]
    if len(shown) < len(rows):
        more = f"and {len(rows) - len(shown):,} more"
        lines.append(f'<tr><td colspan="{len(head)}">{more}</td></tr>')
    body = "".join(lines)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
