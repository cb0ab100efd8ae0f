"""Charts, each drawn twice: wide for desks and paper, narrow for phones.

The drawings are SVG with real text, so that they take the page's font, can be searched, and stay
small. Equal content gives equal bytes: no dates, no random identifiers. Each bar carries its value
as a tooltip, and the page prints the same numbers in a table beside it.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from graven.comparison import MEAN
from graven.figures import ratio
from graven.report.palette import BAND, INK, KINDS, RULE, SOFT, design_styles

WIDE, NARROW = 1060.0, 380.0
"""Widths in CSS pixels."""

_POINTS = 72.0
_GAP = 1.1
"""Space between two groups of bars, in bars."""


@dataclass(frozen=True)
class Bar:
    """One bar: its height in multiples of the baseline, and how that splits into kinds."""

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BarChart:
    """Groups (workloads, then the mean) of bars (designs)."""

    key: str
    description: str
    groups: Sequence[str]
    designs: Sequence[str]
    bars: Mapping[tuple[str, str], Bar]
    baseline: str
    unsafe: Collection[str] = ()

    @property
    def top(self) -> float:
        """The end of the axis of values."""
        return 1.14 * max([1.0, *(bar.value for bar in self.bars.values() if bar.value)])

    @property
    def labels(self) -> list[str]:
        """The designs' names, unsafe ones marked."""
        return [f"{name} †" if name in self.unsafe else name for name in self.designs]

    def wide(self) -> str:
        """Standing bars, groups side by side."""
        with _style():
            return _draw_wide(self)

    def narrow(self) -> str:
        """Lying bars, groups one below the other."""
        with _style():
            return _draw_narrow(self)


@dataclass(frozen=True)
class Line:
    """One design's values over the numbers of threads."""

    design: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class LineChart:
    """Small panels, one for each workload: a value over the number of threads."""

    key: str
    description: str
    designs: Sequence[str]
    threads: Sequence[int]
    panels: Mapping[str, Sequence[Line]]

    def wide(self) -> str:
        """Three panels in a row."""
        with _style():
            return _draw_lines(self, WIDE, 3)

    def narrow(self) -> str:
        """One panel in a row."""
        with _style():
            return _draw_lines(self, NARROW, 1)


@contextmanager
def _style() -> Iterator[None]:
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "graven",
        "font.family": "sans-serif",
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": RULE,
        "axes.labelcolor": SOFT,
        "text.color": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "hatch.linewidth": 1.6,
        "hatch.color": "#ffffff",
        "axes.unicode_minus": False,
    }
    with mpl.rc_context(settings):
        yield


def _axes(
    width: float, height: float, left: float, right: float, top: float, bottom: float
) -> tuple[Figure, Axes]:
    """A figure of a size in pixels, with axes inset by margins in pixels."""
    figure = Figure(figsize=(width / _POINTS, height / _POINTS), dpi=_POINTS)
    inner = (width - left - right) / width, (height - top - bottom) / height
    axes = figure.add_axes((left / width, bottom / height, *inner))
    return figure, axes


def _text_width(texts: Sequence[str], size: float) -> float:
    """A safe estimate, in pixels, for whatever sans-serif font the reader has."""
    return max((len(text) for text in texts), default=0) * size * 0.6


def _pieces(chart: BarChart, design: str, group: str) -> list[tuple[str, float, str, str]]:
    """What to draw for one bar: name, length, colour, hatch."""
    style = design_styles(chart.designs)[design]
    bar = chart.bars[design, group]
    if bar.value is None:
        return []
    if bar.parts:
        hatch = "////" if style.hatched else ""
        return [(kind, bar.parts.get(kind, 0.0), colour, hatch) for kind, colour in KINDS.items()]
    return [("", bar.value, style.colour, "////" if style.hatched else "")]


def _tooltip(chart: BarChart, design: str, group: str, kind: str, length: float) -> str:
    value = chart.bars[design, group].value
    split = f", of which {kind} {ratio(length)}" if kind else ""
    return f"{design}, {group}: {ratio(value)} × {chart.baseline}{split}"


def _draw_wide(chart: BarChart) -> str:
    count = len(chart.designs)
    names = _text_width(chart.labels, 11.5) + 8
    bottom, height = names + 32, 290 + names + 32
    figure, axes = _axes(WIDE, height, left=38, right=4, top=14, bottom=bottom)
    span = count + _GAP
    total = span * len(chart.groups)
    axes.set_xlim(-_GAP / 2 - 0.5, total - _GAP / 2 - 0.5)
    axes.set_ylim(0, chart.top)
    pitch = (WIDE - 42) / total
    titles: dict[str, str] = {}

    for number, group in enumerate(chart.groups):
        start = number * span
        if group == MEAN:
            axes.axvspan(
                start - 0.5 - _GAP / 2, start + span - 0.5 - _GAP / 2, color=BAND, lw=0, zorder=0
            )
        for place, design in enumerate(chart.designs):
            x, base = start + place, 0.0
            for kind, length, colour, hatch in _pieces(chart, design, group):
                if length <= 0.0:
                    continue
                patch = Rectangle(
                    (x - 0.43, base), 0.86, length, facecolor=colour, hatch=hatch, lw=0
                )
                gid = f"bar-{number}-{place}-{kind}"
                titles[gid] = _tooltip(chart, design, group, kind, length)
                patch.set_gid(gid)
                axes.add_patch(patch)
                base += length
            _value_label(axes, chart.bars[design, group].value, x, pitch)
        middle = start + (count - 1) / 2
        axes.annotate(
            group,
            (middle, 0),
            xytext=(0, -names - 16),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=13,
            fontweight="bold",
        )
    places = [n * span + p for n in range(len(chart.groups)) for p in range(count)]
    axes.set_xticks(
        places, chart.labels * len(chart.groups), rotation=90, fontsize=min(11.5, pitch)
    )
    _value_axis(axes, vertical=True)
    return _svg(figure, chart.key + "-wide", chart.description, "wide", titles)


def _value_label(axes: Axes, value: float | None, x: float, pitch: float) -> None:
    upright = pitch < 27
    if pitch < 9:
        return
    axes.annotate(
        ratio(value),
        (x, value or 0.0),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90 if upright else 0,
        fontsize=min(11.0, pitch * 0.85),
    )


def _value_axis(axes: Axes, *, vertical: bool) -> None:
    """Light rules at round values, a stronger one at the baseline's."""
    axes.set_axisbelow(True)
    axes.grid(axis="y" if vertical else "x", color=RULE, lw=0.8)
    axes.tick_params(length=0)
    line = axes.axhline if vertical else axes.axvline
    line(1.0, color=INK, lw=1.0, zorder=0.9)
    axes.spines["left" if vertical else "bottom"].set_visible(False)


def _draw_narrow(chart: BarChart) -> str:
    count = len(chart.designs)
    row, head = 20.0, 30.0
    block = count * row + head
    left = _text_width(chart.labels, 12) + 8
    top, bottom = 6.0, 22.0
    inner = block * len(chart.groups)
    figure, axes = _axes(NARROW, inner + top + bottom, left, right=4, top=top, bottom=bottom)
    axes.set_xlim(0, chart.top * 1.06)
    axes.set_ylim(inner, 0)
    titles: dict[str, str] = {}
    places: list[float] = []
    for number, group in enumerate(chart.groups):
        start = number * block
        if group == MEAN:
            axes.axhspan(start, start + block, color=BAND, lw=0, zorder=0)
        axes.annotate(
            group,
            (0, start + head - 9),
            xytext=(1, 0),
            textcoords="offset points",
            fontsize=13,
            fontweight="bold",
            va="center",
        )
        for place, design in enumerate(chart.designs):
            y, base = start + head + place * row, 0.0
            places.append(y + row / 2)
            for kind, length, colour, hatch in _pieces(chart, design, group):
                if length <= 0.0:
                    continue
                patch = Rectangle((base, y + 2), length, row - 4, fc=colour, hatch=hatch, lw=0)
                gid = f"bar-{number}-{place}-{kind}"
                titles[gid] = _tooltip(chart, design, group, kind, length)
                patch.set_gid(gid)
                axes.add_patch(patch)
                base += length
            value = chart.bars[design, group].value
            axes.annotate(
                ratio(value),
                (value or 0.0, y + row / 2),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=11,
            )
    axes.set_yticks(places, chart.labels * len(chart.groups), fontsize=12)
    axes.locator_params(axis="x", nbins=5)
    _value_axis(axes, vertical=False)
    return _svg(figure, chart.key + "-narrow", chart.description, "narrow", titles)


_MARKERS = dict(zip("osD^vP*XpH<>", "●■◆▲▼✚★✖⬟⬢◀▶", strict=True))
"""Shapes of the points of a line, and the signs that stand for them in a legend."""


def _marker(designs: Sequence[str], design: str) -> str:
    return [*_MARKERS][designs.index(design) % len(_MARKERS)]


def marker_signs(designs: Sequence[str]) -> dict[str, str]:
    """The sign of each design's points, of those that are shown together."""
    return {design: _MARKERS[_marker(designs, design)] for design in designs}


def _draw_lines(chart: LineChart, width: float, across: int) -> str:
    names = list(chart.panels)
    down = -(-len(names) // across)
    panel = 232.0
    height = panel * down
    figure = Figure(figsize=(width / _POINTS, height / _POINTS), dpi=_POINTS)
    styles = design_styles(chart.designs)
    places = range(len(chart.threads))
    cell = width / across
    for number, name in enumerate(names):
        column, line = number % across, number // across
        left, bottom = column * cell + 36, height - (line + 1) * panel + 42
        size = ((cell - 52) / width, (panel - 78) / height)
        axes = figure.add_axes((left / width, bottom / height, *size))
        for item in chart.panels[name]:
            style = styles[item.design]
            axes.plot(
                places,
                [float("nan") if value is None else value for value in item.values],
                color=style.line,
                marker=_marker(chart.designs, item.design),
                markersize=5,
                lw=1.8,
                ls="--" if style.hatched else "-",
            )
        axes.set_title(name, loc="left", fontsize=13, fontweight="bold")
        axes.set_xticks(list(places), [str(count) for count in chart.threads])
        axes.set_xlim(-0.25, len(chart.threads) - 0.75)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("threads", fontsize=10.5)
        axes.locator_params(axis="y", nbins=5)
        axes.grid(axis="y", color=RULE, lw=0.8)
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
    kind = "wide" if across > 1 else "narrow"
    return _svg(figure, f"{chart.key}-{kind}", chart.description, kind, {})


def _svg(figure: Figure, key: str, description: str, kind: str, titles: Mapping[str, str]) -> str:
    """The drawing as an element of a page, with identifiers that are unique in that page."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for gid, title in titles.items():
        element = f'<g id="{gid}">'
        text = text.replace(element, f"{element}<title>{html.escape(title)}</title>", 1)
    text = re.sub(r'\bid="', f'id="{key}-', text)
    text = re.sub(r"url\(#", f"url(#{key}-", text)
    text = re.sub(r'xlink:href="#', f'href="#{key}-', text)
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None, "every drawing has a view box"
    opening = (
        f'<svg class="{kind}" role="img" aria-label="{html.escape(description, quote=True)}" '
        f"{view.group(0)}>"
    )
    text = re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1)
    return re.sub(r"\s*\n\s*", "\n", text).strip()
