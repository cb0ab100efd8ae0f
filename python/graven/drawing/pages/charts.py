"""Charts, each drawn twice: wide for desks and paper, narrow for phones.

Each bar carries its value as a tooltip, and the page prints the same numbers in a table beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from graven.basics.numbers import ratio, scaled
from graven.drawing.pages.svg import (
    NARROW,
    POINTS,
    PRINTED,
    WIDE,
    Tip,
    as_files,
    as_svg,
    behind,
    folded,
    look,
    text_width,
)
from graven.drawing.palette import BAND, INK, KINDS, PAGE, RULE, SOFT, Style, design_styles
from graven.drawing.scales import ends
from graven.results.comparison import MEAN

_GAP = 1.1
"""Space between two groups of bars, in bars."""


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        value: Its height, in multiples of the baseline if there is one.
        parts: How that splits into kinds.
        spread: The interval that the value lies in, drawn as a whisker.
        printed: What a paper prints for it, drawn as a diamond.
    """

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    spread: tuple[float, float] | None = None
    printed: float | None = None

    @property
    def top(self) -> float:
        """The highest of what is drawn of it."""
        high = None if self.spread is None else self.spread[1]
        return max(v for v in (0.0, self.value, high, self.printed) if v is not None)


@dataclass(frozen=True)
class BarChart:
    """Groups (workloads, then the mean) of bars (designs); absolute values without a baseline."""

    key: str
    description: str
    groups: Sequence[str]
    designs: Sequence[str]
    bars: Mapping[tuple[str, str], Bar]
    baseline: str | None
    unsafe: Collection[str] = ()
    simulations: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of bars that are of one simulation, its place in the report's list."""

    @property
    def strips(self) -> list[tuple[list[str], float]]:
        """Groups that share a scale, with the end of it; those with the largest values first."""
        least = 1.0 if self.baseline is not None else 0.0
        tops = {g: max([least, *(self.bars[d, g].top for d in self.designs)]) for g in self.groups}
        found = dict(zip(tops, ends(list(tops.values())), strict=True))
        return [
            ([group for group in found if found[group] == end], 1.14 * end or 1.0)
            for end in sorted(set(found.values()), reverse=True)
        ]

    @property
    def number(self) -> Callable[[float | None], str]:
        """How values are written."""
        return ratio if self.baseline is not None else scaled

    @property
    def labels(self) -> list[str]:
        """The designs' names, unsafe ones marked."""
        return [f"{name} †" if name in self.unsafe else name for name in self.designs]

    def wide(self) -> str:
        """Standing bars, groups side by side."""
        with look():
            figure, tips = _draw_wide(self)
            return as_svg(figure, self.key + "-wide", self.description, "wide", tips)

    def narrow(self) -> str:
        """Lying bars, groups one below the other."""
        with look():
            figure, tips = _draw_narrow(self)
            return as_svg(figure, self.key + "-narrow", self.description, "narrow", tips)

    def files(self) -> dict[str, bytes]:
        """The wide drawing as files that stand alone, by their endings."""
        with look(embedded=False):
            return as_files(_draw_wide(self)[0])


@dataclass(frozen=True)
class Line:
    """One design's values over an axis.

    Attributes:
        design: The design.
        values: Its values.
        spreads: The intervals that they lie in, drawn as a band.
        printed: What a paper prints for them, drawn as diamonds.
    """

    design: str
    values: Sequence[float | None]
    spreads: Sequence[tuple[float, float] | None] = ()
    printed: Sequence[float | None] = ()

    @property
    def top(self) -> float:
        """The highest of what is drawn of it."""
        highs = [spread[1] for spread in self.spreads if spread is not None]
        return max((v for v in (*self.values, *self.printed, *highs) if v is not None), default=0.0)


@dataclass(frozen=True)
class LineChart:
    """Small panels, one for each workload: a value over an axis."""

    key: str
    description: str
    designs: Sequence[str]
    places: Sequence[str]
    panels: Mapping[str, Sequence[Line]]
    axis: str = "threads"
    unsafe: Collection[str] = ()

    def wide(self) -> str:
        """Three panels in a row."""
        with look():
            figure = _draw_lines(self, WIDE, 3)
            return as_svg(figure, f"{self.key}-wide", self.description, "wide", {})

    def narrow(self) -> str:
        """One panel in a row."""
        with look():
            figure = _draw_lines(self, NARROW, 1)
            return as_svg(figure, f"{self.key}-narrow", self.description, "narrow", {})

    def files(self) -> dict[str, bytes]:
        """The wide drawing as files that stand alone, by their endings."""
        with look(embedded=False):
            return as_files(_draw_lines(self, WIDE, 3))


def _pieces(bar: Bar, style: Style) -> list[tuple[str, float, str, str]]:
    """What to draw for one bar: name, length, colour, hatch."""
    if bar.value is None:
        return []
    if bar.parts:
        hatch = "////" if style.hatched else ""
        return [(kind, bar.parts.get(kind, 0.0), colour, hatch) for kind, colour in KINDS.items()]
    return [("", bar.value, style.colour, "////" if style.hatched else "")]


def _tip(chart: BarChart, design: str, group: str, kind: str, length: float) -> Tip:
    bar = chart.bars[design, group]
    show = chart.number
    text = f"{design}, {group}: {show(bar.value)}"
    if chart.baseline is not None:
        text += f" × {chart.baseline}"
    if kind:
        text += f", of which {kind} {show(length)}"
    if bar.spread is not None:
        text += f", between {show(bar.spread[0])} and {show(bar.spread[1])}"
    if bar.printed is not None:
        text += f"; the paper: {show(bar.printed)}"
    return Tip(text, chart.simulations.get((design, group)))


_SMALLER = "smaller scale"
"""The note above bars whose axis ends below that of others in the drawing."""


def _draw_wide(chart: BarChart) -> tuple[Figure, dict[str, Tip]]:
    """Rows of bars, each with a scale; one, unless it would hide some groups."""
    names = text_width(chart.labels, 11.5) + 8
    bottom, strips = names + 32, chart.strips
    row = 290 + bottom
    height = row * len(strips)
    figure = Figure(figsize=(WIDE / POINTS, height / POINTS), dpi=POINTS)
    slots = max(len(groups) for groups, _ in strips)
    tips: dict[str, Tip] = {}
    for number, (groups, top) in enumerate(strips):
        low = height - (number + 1) * row + bottom
        size = ((WIDE - 42) / WIDE, (row - bottom - 14) / height)
        axes = figure.add_axes((38 / WIDE, low / height, *size))
        tips |= _strip(axes, chart, groups, top, slots, names)
        if number:
            axes.annotate(
                _SMALLER, (0, 1), xycoords="axes fraction", xytext=(2, 2),
                textcoords="offset points", fontsize=11, color=SOFT,
            )  # fmt: skip
    return figure, tips


def _strip(
    axes: Axes, chart: BarChart, groups: Sequence[str], top: float, slots: int, names: float
) -> dict[str, Tip]:
    """A row of standing bars, with room for a number of groups; returns what bars say."""
    count = len(chart.designs)
    span = count + _GAP
    total = span * slots
    axes.set_xlim(-_GAP / 2 - 0.5, total - _GAP / 2 - 0.5)
    axes.set_ylim(0, top)
    pitch = (WIDE - 42) / total
    tips: dict[str, Tip] = {}
    styles = design_styles(chart.designs, chart.unsafe)
    # Names of groups do not run into each other.
    widest = text_width([*chart.groups], 13) + 6
    size = 13 * min(1.0, pitch * span / widest)

    for at, group in enumerate(groups):
        start, number = at * span, chart.groups.index(group)
        if group == MEAN:
            axes.axvspan(
                start - 0.5 - _GAP / 2, start + span - 0.5 - _GAP / 2, color=BAND, lw=0, zorder=0
            )
        for place, design in enumerate(chart.designs):
            x, base, bar = start + place, 0.0, chart.bars[design, group]
            for kind, length, colour, hatch in _pieces(bar, styles[design]):
                if length <= 0.0:
                    continue
                patch = Rectangle(
                    (x - 0.43, base), 0.86, length, facecolor=colour, hatch=hatch, lw=0
                )
                gid = f"bar-{number}-{place}-{kind}"
                tips[gid] = _tip(chart, design, group, kind, length)
                patch.set_gid(gid)
                axes.add_artist(patch)
                base += length
            _extras(axes, bar, x, vertical=True)
            _value_label(axes, chart, bar, x, pitch, _ground(group))
        middle = start + (count - 1) / 2
        axes.annotate(
            group,
            (middle, 0),
            xytext=(0, -names - 16),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            fontweight="bold",
        )
    places = {
        (design, group): at * span + place
        for at, group in enumerate(groups)
        for place, design in enumerate(chart.designs)
    }
    _names(axes, chart, places, min(11.5, pitch), vertical=True)
    _value_axis(axes, chart, vertical=True)
    return tips


def _names(
    axes: Axes,
    chart: BarChart,
    places: Mapping[tuple[str, str], float],
    size: float,
    *,
    vertical: bool,
) -> None:
    """The design's name beside each bar, whose places are by design and group.

    Ticks, of which each has lines and texts that are not drawn, take minutes of a thousand bars.
    """
    (axes.xaxis if vertical else axes.yaxis).set_ticks([])
    within = axes.get_xaxis_transform() if vertical else axes.get_yaxis_transform()
    how: dict[str, Any] = (
        {"xytext": (0, -3.5), "ha": "center", "va": "top", "rotation": 90}
        if vertical
        else {"xytext": (-3.5, 0), "ha": "right", "va": "center_baseline"}
    )
    axis = "xtick" if vertical else "ytick"
    labels = dict(zip(chart.designs, chart.labels, strict=True))
    order = {group: number for number, group in enumerate(chart.groups)}
    for (design, group), place in places.items():
        name, at = labels[design], order[group] * len(labels) + chart.designs.index(design)
        spot = (place, 0.0) if vertical else (0.0, place)
        label = axes.annotate(
            name, spot, xycoords=within, textcoords="offset points", fontsize=size,
            annotation_clip=False, **how,
        )  # fmt: skip
        label.set_gid(f"{axis}-{at}")


def _extras(axes: Axes, bar: Bar, at: float, *, vertical: bool) -> None:
    """A whisker for the interval, a diamond for what is printed."""
    if bar.spread is not None:
        low, high = bar.spread
        below, above = [(bar.value or low) - low], [high - (bar.value or low)]
        style: dict[str, Any] = {"ecolor": INK, "elinewidth": 1.1, "capsize": 2.5, "capthick": 1.1}
        deltas = [[max(0.0, below[0])], [max(0.0, above[0])]]
        if vertical:
            axes.errorbar([at], [bar.value or low], yerr=deltas, fmt="none", zorder=3, **style)
        else:
            axes.errorbar([bar.value or low], [at], xerr=deltas, fmt="none", zorder=3, **style)
    if bar.printed is not None:
        place = (at, bar.printed) if vertical else (bar.printed, at)
        axes.plot(*([c] for c in place), **PRINTED)


"""What a paper prints: a hollow diamond."""


def _ground(group: str) -> str:
    """The colour behind the bars of a group."""
    return BAND if group == MEAN else PAGE


def _value_label(
    axes: Axes, chart: BarChart, bar: Bar, x: float, pitch: float, ground: str
) -> None:
    upright = pitch < 27
    if pitch < 9:
        return
    axes.annotate(
        chart.number(bar.value),
        (x, bar.top),
        xytext=(0, 7 if bar.printed is not None else 5 if bar.spread is not None else 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90 if upright else 0,
        fontsize=min(11.0, pitch * 0.85),
        bbox=behind(ground),
    )


def _value_axis(axes: Axes, chart: BarChart, *, vertical: bool) -> None:
    """Light rules at round values, a stronger one at the baseline's."""
    axes.set_axisbelow(True)
    axes.grid(axis="y" if vertical else "x", color=RULE, lw=0.8)
    axes.tick_params(length=0)
    if chart.baseline is not None:
        line = axes.axhline if vertical else axes.axvline
        line(1.0, color=INK, lw=1.0, zorder=0.9)
    else:
        shown = axes.yaxis if vertical else axes.xaxis
        shown.set_major_formatter(lambda value, _place: scaled(value))
    axes.spines["left" if vertical else "bottom"].set_visible(False)


def _draw_narrow(chart: BarChart) -> tuple[Figure, dict[str, Tip]]:
    """Lying bars, in parts with a scale each; one, unless it would hide some groups."""
    row, head = 20.0, 30.0
    block = len(chart.designs) * row + head
    left = text_width(chart.labels, 12) + 8
    top, bottom = 6.0, 22.0
    strips = chart.strips
    height = sum(block * len(groups) + top + bottom for groups, _ in strips)
    figure = Figure(figsize=(NARROW / POINTS, height / POINTS), dpi=POINTS)
    tips: dict[str, Tip] = {}
    above = height
    for number, (groups, end) in enumerate(strips):
        inner = block * len(groups)
        above -= inner + top + bottom
        size = ((NARROW - left - 4) / NARROW, inner / height)
        axes = figure.add_axes((left / NARROW, (above + bottom) / height, *size))
        axes.set_xlim(0, end * 1.06)
        axes.set_ylim(inner, 0)
        tips |= _lying(axes, chart, groups, row, head)
        if number:
            axes.annotate(
                _SMALLER, (1, 1), xycoords="axes fraction", xytext=(-2, -2),
                textcoords="offset points", ha="right", va="top", fontsize=11, color=SOFT,
                bbox=behind(PAGE),
            )  # fmt: skip
    return figure, tips


def _lying(
    axes: Axes, chart: BarChart, groups: Sequence[str], row: float, head: float
) -> dict[str, Tip]:
    """Lying bars, each `row` pixels high, below a head for each group; returns what bars say."""
    block = len(chart.designs) * row + head
    tips: dict[str, Tip] = {}
    styles = design_styles(chart.designs, chart.unsafe)
    places: dict[tuple[str, str], float] = {}
    for at, group in enumerate(groups):
        start, number = at * block, chart.groups.index(group)
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
            y, base, bar = start + head + place * row, 0.0, chart.bars[design, group]
            places[design, group] = y + row / 2
            for kind, length, colour, hatch in _pieces(bar, styles[design]):
                if length <= 0.0:
                    continue
                patch = Rectangle((base, y + 2), length, row - 4, fc=colour, hatch=hatch, lw=0)
                gid = f"bar-{number}-{place}-{kind}"
                tips[gid] = _tip(chart, design, group, kind, length)
                patch.set_gid(gid)
                axes.add_artist(patch)
                base += length
            _extras(axes, bar, y + row / 2, vertical=False)
            axes.annotate(
                chart.number(bar.value),
                (bar.top, y + row / 2),
                xytext=(4 if bar.printed is None else 8, 0),
                textcoords="offset points",
                va="center",
                fontsize=11,
                bbox=behind(_ground(group)),
            )
    _names(axes, chart, places, 12, vertical=False)
    axes.locator_params(axis="x", nbins=5)
    _value_axis(axes, chart, vertical=False)
    return tips


_MARKERS = dict(zip("osD^vP*XpH<>", "●■◆▲▼✚★✖⬟⬢◀▶", strict=True))
"""Shapes of the points of a line, and the signs that stand for them in a legend."""


def _marker(designs: Sequence[str], design: str) -> str:
    return [*_MARKERS][designs.index(design) % len(_MARKERS)]


def marker_signs(designs: Sequence[str]) -> dict[str, str]:
    """The sign of each design's points, of those that are shown together."""
    return {design: _MARKERS[_marker(designs, design)] for design in designs}


def _draw_lines(chart: LineChart, width: float, across: int) -> Figure:
    names = list(chart.panels)
    down = -(-len(names) // across)
    cell = width / across
    tops = [max((item.top for item in lines), default=0.0) for lines in chart.panels.values()]
    found = ends(tops)
    titles = [
        folded(name if end == max(found) else f"{name} (smaller scale)", 13.5, cell - 56)
        for name, end in zip(names, found, strict=True)
    ]
    above = 36.0 + 17.0 * (max((len(lines) for lines in titles), default=1) - 1)
    panel = 196.0 + above
    height = panel * down
    figure = Figure(figsize=(width / POINTS, height / POINTS), dpi=POINTS)
    styles = design_styles(chart.designs, chart.unsafe)
    places = range(len(chart.places))
    for number, name in enumerate(names):
        column, line = number % across, number // across
        left, bottom = column * cell + 36, height - (line + 1) * panel + 42
        size = ((cell - 52) / width, (panel - 42 - above) / height)
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
            _line_extras(axes, item, style.line)
        axes.set_title("\n".join(titles[number]), loc="left", fontsize=13, fontweight="bold")
        axes.set_xticks(list(places), list(chart.places))
        axes.set_xlim(-0.25, len(chart.places) - 0.75)
        axes.set_ylim(0, 1.05 * found[number] or 1.0)
        axes.set_xlabel(chart.axis, fontsize=10.5)
        axes.locator_params(axis="y", nbins=5)
        axes.grid(axis="y", color=RULE, lw=0.8)
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
    return figure


def _line_extras(axes: Axes, item: Line, colour: str) -> None:
    """A band for the intervals, diamonds for what is printed."""
    nothing = float("nan")
    if any(item.spreads):
        pairs = zip(item.spreads, item.values, strict=True)
        ends = [spread or (value or nothing, value or nothing) for spread, value in pairs]
        low, high = [end[0] for end in ends], [end[1] for end in ends]
        axes.fill_between(range(len(ends)), low, high, color=colour, alpha=0.18, lw=0)
    if any(value is not None for value in item.printed):
        values = [nothing if value is None else value for value in item.printed]
        axes.plot(range(len(values)), values, **PRINTED)
