"""Lines: a panel for each workload, a line for each design.

All panels have one scale, unless it would hide those whose values are much smaller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from graven.basics.numbers import Scale, Value
from graven.drawing.figures.marks import (
    Legend,
    apart,
    line_height,
    listed,
    log_axis,
    number_axis,
    numbers_width,
    pieces,
    printed_mark,
    room_beside,
    ruled,
    text_size,
    values_title,
    widest,
    wrapped,
)
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.picture import Chart, Picture, Rows
from graven.drawing.figures.style import Look
from graven.drawing.figures.values import NO_RESULT, Number
from graven.drawing.scales import ends

_HEIGHT = 74.0, 92.0
"""Heights of the axes of a panel, in points: of pictures one column wide, and of wider ones."""

_NARROW = 92.0
"""Least width of a panel with its margins, in points; thrice as much in pages."""


@dataclass(frozen=True)
class Lines(Chart):
    """Numbers over an axis.

    Attributes:
        measure: The statistic, and the designs with a line in each panel.
        axis: Title of the places, with their unit.
        places: Positions of the numbers along the axis.
        labels: Texts at the places.
        panels: By name: numbers by design, one for each place; nothing where a result is missing.
        log: True for a logarithmic axis of values, which has one scale.
        joined: True if lines between the places are numbers, too, and do not only lead the eye.
        absent: Reasons for missing numbers.
    """

    measure: Measure
    axis: str
    places: Sequence[float]
    labels: Sequence[str]
    panels: Mapping[str, Mapping[str, Sequence[Number | None]]]
    log: bool = False
    joined: bool = True
    absent: Sequence[str] = ()

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return self.measure.with_conditions(
            self._row(panel, design, label, number)
            for panel, lines in self.panels.items()
            for design in self.measure.designs
            for label, number in zip(self.labels, lines[design], strict=True)
        )

    def _row(self, panel: str, design: str, label: str, number: Number | None) -> dict[str, Value]:
        place = {"panel": panel, "design": design, self.axis: label}
        return self.measure.row(number, **place)

    @property
    def _numbers(self) -> list[Number | None]:
        return [n for lines in self.panels.values() for line in lines.values() for n in line]

    @property
    def _zeros(self) -> bool:
        """Tells whether a number is 0 on an axis that has no 0."""
        return self.log and any(n is not None and n.low <= 0.0 for n in self._numbers)

    @property
    def ends(self) -> dict[str, tuple[float, float]]:
        """The ends of the scale of each panel."""
        found = {}
        for name, lines in self.panels.items():
            known = [n for line in lines.values() for n in line if n is not None]
            over = [] if self.measure.baseline is None else [1.0]
            lows = [n.low for n in known if not self.log or n.low > 0.0]
            # Of 0 to a number, on a logarithmic axis, there is the number.
            lows += [n.high for n in known if self.log and n.low <= 0.0 < n.high]
            found[name] = (
                min([*lows, *over], default=1.0),
                max([*(n.top for n in known), *over], default=1.0),
            )
        if self.log:
            low = min((low for low, _ in found.values()), default=1.0)
            high = max((high for _, high in found.values()), default=1.0)
            return dict.fromkeys(found, (low, max(low, high)))
        tops = ends([high for _, high in found.values()], self.measure.scales)
        low = min([0.0, *(low for low, _ in found.values())])
        return {name: (low, top or 1.0) for name, top in zip(found, tops, strict=True)}

    def _drawn(self, look: Look) -> Picture:
        title = text_size("axes.titlesize")
        label = text_size("axes.labelsize")
        tick = text_size("ytick.labelsize")
        ends = self.ends
        tops = [high for _, high in ends.values()]
        several = len(set(ends.values())) > 1
        scaled = self.measure.scale(tops)
        words = [piece for name in self.panels for piece in pieces(name)]
        room = room_beside(look.points, scaled, tops)
        # Panels with scales of their own have numbers of their own.
        beside = numbers_width(scaled, tops) + 4 if several else 0.0
        least = max(3 * _NARROW if look.in_page else _NARROW, widest(words, title) + 8)
        fit = max(1, int((room + beside) / (least + beside)))
        down = -(-len(self.panels) // fit)
        across = -(-len(self.panels) // down)
        wide = (room - (across - 1) * beside) / across
        names = [listed(name, title, wide - 8) for name in self.panels]
        above = line_height(title) * max(name.count("\n") + 1 for name in names)
        legend = self._legend(look)
        panel = look.height(*_HEIGHT) + above + 2.2 * tick
        height = panel * down + 2 * line_height(label) + legend.height
        picture = Picture(look, height, self.rows, self.measure.made_with, layout="constrained")
        grid = picture.subplots(down, across, sharex=True, sharey=not several, squeeze=False)
        everything = list(grid.flat)
        for axes, name, panel_name in zip(everything, names, self.panels, strict=False):
            foot = self._axes(axes, scaled, look, wide - 10, ends[panel_name])
            self._panel(axes, self.panels[panel_name], look, foot)
            axes.set_title(name, loc="left")
        for number, axes in enumerate(everything):
            if number >= len(names):
                axes.remove()
            elif number + across >= len(names):
                axes.tick_params(labelbottom=True)
        low = 2 * line_height(label) + tick
        text = self.measure.axis_title(scaled, "panels differ in scale" if several else "")
        values_title(picture, text, low, height - legend.height)
        picture.supxlabel(wrapped(self.axis, label, 0.9 * look.points), fontsize=label)
        legend.draw(picture)
        return picture

    def _panel(
        self, axes: Axes, lines: Mapping[str, Sequence[Number | None]], look: Look, foot: float
    ) -> None:
        """Draws the lines; values of 0 stand at the foot of a logarithmic axis."""

        def height(value: float) -> float:
            return value if value > 0.0 or not self.log else foot

        nothing = math.nan
        for design, marked in look.marked(self.measure.designs, self.measure.unsafe).items():
            numbers = lines[design]
            values = [nothing if number is None else height(number.value) for number in numbers]
            axes.plot(
                self.places, values, color=marked.line, marker=marked.marker,
                ls=marked.dashes if self.joined else ":", lw=None if self.joined else 0.7,
                markeredgewidth=0.4, markeredgecolor=look.colours.page, clip_on=False, zorder=3,
            )  # fmt: skip
            if any(number is not None and number.spread for number in numbers):
                low = [nothing if number is None else height(number.low) for number in numbers]
                high = [nothing if number is None else height(number.high) for number in numbers]
                axes.fill_between(self.places, low, high, color=marked.line, alpha=0.2, lw=0)
            pairs = zip(self.places, numbers, strict=True)
            printed = [(at, height(n.printed)) for at, n in pairs if n and n.printed is not None]
            if printed:
                axes.add_line(printed_mark(look, printed))

    def _axes(
        self, axes: Axes, scaled: Scale, look: Look, width: float, ends: tuple[float, float]
    ) -> float:
        """Sets the axes up; returns the foot of the axis of values."""
        first, last = min(self.places), max(self.places)
        size = text_size("xtick.labelsize")
        # Labels at the ends stay within the panel.
        edge = min(max(0.5 * widest(self.labels, size), 4.0) / width, 0.3)
        margin = (last - first) * edge / (1.0 - 2.0 * edge) or 0.5
        axes.set_xlim(first - margin, last + margin)
        along = width / (last - first + 2 * margin)
        points = [(place - first) * along for place in self.places]
        labels = apart(points, self.labels, size)
        axes.xaxis.set_major_locator(FixedLocator(list(self.places)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(list(self.places), labels)
        low, high = ends
        if self.log:
            low, high = low / 1.15, high * 1.15
            axes.set_yscale("log")
            room = look.height(*_HEIGHT)
            tick = text_size("ytick.labelsize")
            if self._zeros:
                # A part of the axis below its least number stands for 0.
                part = 2.2 * tick / room
                foot = low * (low / high) ** (part / (1.0 - part))
                axes.set_ylim(foot, high)
                log_axis(axes.yaxis, scaled, (low, high), room * (1.0 - part), tick, foot)
                low = foot
            else:
                axes.set_ylim(low, high)
                log_axis(axes.yaxis, scaled, (low, high), room, tick)
        else:
            axes.set_ylim(low, 1.06 * high)
            number_axis(axes.yaxis, scaled)
        ruled(axes, "y")
        if self.measure.baseline is not None:
            axes.axhline(1.0, color=look.colours.ink, lw=0.6, zorder=1.5)
        return low

    def _legend(self, look: Look) -> Legend:
        legend = Legend(look.points)
        for design, marked in look.marked(self.measure.designs, self.measure.unsafe).items():
            line = Line2D(
                [], [], color=marked.line, marker=marked.marker, ls=marked.dashes,
                markeredgewidth=0.4, markeredgecolor=look.colours.page,
            )  # fmt: skip
            if not self.joined:
                line.set_linestyle("none")
            legend.add(line, self.measure.label(design))
        if any(number is not None and number.spread for number in self._numbers):
            legend.add(Patch(color=look.colours.soft, lw=0, alpha=0.3), self.measure.spreads)
        if any(number is not None and number.printed is not None for number in self._numbers):
            legend.add(printed_mark(look), "the paper")
        for note in self.measure.notes:
            legend.say(note)
        if None in self._numbers:
            legend.say(f"gaps: {', '.join(self.absent or [NO_RESULT])}")
        return legend
