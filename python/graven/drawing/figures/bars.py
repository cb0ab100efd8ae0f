"""Grouped bars: workloads, then their mean, and a bar for each design; whole or in parts.

Where there are more bars than fit side by side, further rows have the rest of the groups. Rows have
one scale, unless it would hide groups whose values are much smaller; these have rows of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from graven.drawing.figures.marks import (
    SMALL,
    Legend,
    line_height,
    listed,
    number_axis,
    pieces,
    printed_mark,
    room_beside,
    ruled,
    text_size,
    text_width,
    values_title,
    widest,
    wrapped,
)
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.picture import Chart, Picture, Rows, Tip
from graven.drawing.figures.style import HATCHES, Look, Marked
from graven.drawing.figures.values import BASELINE_IS_0, NO_RESULT, VALUE_IS_0, Number
from graven.drawing.palette import KINDS
from graven.drawing.scales import ends
from graven.results.comparison import MEAN

MEAN_TITLE = "geomean"
"""Title below the mean of multiples, which is the geometric one."""

_GAP = 1.2
"""Space between two groups, in bars."""

_BAR = 1.9
"""Least width of a bar with the space beside it, in points."""

_PITCH = 1.12
"""Distance of names below bars, in sizes of their letters."""

_ABSENT = {NO_RESULT: "x", BASELINE_IS_0: "+", VALUE_IS_0: "1"}
"""Marks in the place of bars that are missing, by the reason."""


@dataclass(frozen=True)
class Panel:
    """Bars that belong together.

    Attributes:
        caption: The condition that they share, if there are several panels: `8 threads`.
        numbers: By design and group; nothing where there is no number.
        absent: Reasons for missing numbers; a missing result if none is given.
    """

    caption: str
    numbers: Mapping[tuple[str, str], Number | None]
    absent: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def reason(self, design: str, group: str) -> str:
        """Returns the reason for which a number is missing; empty if it is not."""
        if self.numbers[design, group] is not None:
            return ""
        return self.absent.get((design, group)) or NO_RESULT


@dataclass(frozen=True)
class Bars(Chart):
    """Groups of bars.

    Attributes:
        measure: The statistic, and the designs with a bar in each group.
        groups: Workloads, and `MEAN`.
        panels: One or several.
        parts: Names of the parts with their titles, if bars have some.
        mean: Title of `MEAN`.
    """

    measure: Measure
    groups: Sequence[str]
    panels: Sequence[Panel]
    parts: Mapping[str, str] | None = None
    mean: str = MEAN_TITLE

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return self.measure.with_conditions(
            self._row(panel, group, design)
            for panel in self.panels
            for group in self.groups
            for design in self.measure.designs
        )

    def _row(self, panel: Panel, group: str, design: str) -> dict[str, Any]:
        number = panel.numbers[design, group]
        row = self.measure.row(number, panel=panel.caption, workload=group, design=design)
        if number is None:
            return {**row, "absent": panel.reason(design, group)}
        return row | {f"of which {k}": v for k, v in (number.parts or {}).items()}

    @property
    def numbers(self) -> list[Number]:
        """Numbers of all panels."""
        return [n for panel in self.panels for n in panel.numbers.values() if n is not None]

    @property
    def absences(self) -> list[str]:
        """Reasons for all missing numbers."""
        found = {panel.reason(*key) for panel in self.panels for key in panel.numbers}
        return [reason for reason in _ABSENT if reason in found]

    @property
    def ends(self) -> dict[tuple[int, str], float]:
        """The end of the scale of each group of each panel."""
        least = 0.0 if self.measure.baseline is None else 1.0
        tops = {
            (at, group): max(
                [least, *(n.top for d in self.measure.designs if (n := panel.numbers[d, group]))]
            )
            for at, panel in enumerate(self.panels)
            for group in self.groups
        }
        found = ends(list(tops.values()), self.measure.scales)
        return {key: end or 1.0 for key, end in zip(tops, found, strict=True)}

    def _drawn(self, look: Look) -> Picture:
        return _Drawing(self, look).picture()


class _Drawing:
    """Layout of one picture."""

    def __init__(self, chart: Bars, look: Look) -> None:
        self.chart, self.look, self.measure = chart, look, chart.measure
        self.designs = self.measure.designs
        self.marked = look.marked(self.designs, self.measure.unsafe)
        self.ends = chart.ends
        tops = [*self.ends.values()]
        self.scale = self.measure.scale(tops)
        self.tick = text_size("xtick.labelsize")
        self.inner = room_beside(look.points, self.scale, tops)
        self.span = len(self.designs) + _GAP
        # Designs are named below their bars, or in the legend.
        self.named = chart.parts is not None or look.in_page
        self.labels = [self.measure.label(design) for design in self.designs]
        values = {self.measure.text(number.value) for number in chart.numbers}
        self.value_width = widest(list(values), 1.0) if look.in_page else 0.0
        self.tips: dict[str, Tip] = {}
        self.number = itertools.count()

    def _titles(self, groups: Sequence[str], room: float) -> list[str]:
        named = [self.chart.mean if group == MEAN else group for group in groups]
        return [wrapped(title, self.tick, room) for title in named]

    def across(self) -> int:
        """Returns the number of groups in one row."""
        least = _PITCH * self.tick if self.named else _BAR
        words = [word for group in self.chart.groups for word in pieces(group)]
        group = max(least * self.span, widest([*words, self.chart.mean], self.tick) + 5)
        most = max(1, int(self.inner / group))
        longest = max(len(groups) for _, groups, _ in self._scaled())
        rows = -(-longest // most)
        return -(-longest // rows)

    def _scaled(self) -> list[tuple[Panel, list[str], float]]:
        """Groups of each panel that share a scale, and its end; the largest values first."""
        found = []
        for at, panel in enumerate(self.chart.panels):
            of_panel = {group: self.ends[at, group] for group in self.chart.groups}
            for end in sorted(set(of_panel.values()), reverse=True):
                found.append((panel, [g for g in of_panel if of_panel[g] == end], end))
        return found

    def picture(self) -> Picture:
        chart, look = self.chart, self.look
        across = self.across()
        strips = [
            (panel, groups[at : at + across], end)
            for panel, groups, end in self._scaled()
            for at in range(0, len(groups), across)
        ]
        captions = {panel.caption: self._caption(panel) for panel in chart.panels}
        legend = self._legend()
        # Values of pages stand above the bars, and take half of the height at most.
        values = self._values_height(across)
        axes_height = look.height(88.0, 104.0) * (1.0 if len(strips) < 4 else 0.7)
        axes_height = max(axes_height, 2 * values)
        row = axes_height + self._below(across)
        row += self._above(across) if self.named else 0
        line = line_height(text_size("axes.titlesize"))
        above = sum(line * (text.count("\n") + 1) for text in captions.values() if text)
        made_with = self.measure.made_with if look.width >= 5 and not look.in_page else ""
        below = wrapped(made_with, SMALL, 0.97 * look.points) if made_with else ""
        room = line_height(SMALL) * (below.count("\n") + 1) if below else 0.0
        height = row * len(strips) + above + legend.height + 6 + room
        conditions = self.measure.made_with
        picture = Picture(look, height, chart.rows, conditions, layout="constrained")
        grid = picture.subplots(len(strips), 1, squeeze=False)
        before = None
        for axes, (panel, groups, end) in zip(grid[:, 0], strips, strict=True):
            self._strip(axes, panel, groups, across, end / (1 - values / axes_height))
            if panel.caption and panel is not before:
                pad = 4 + (self._above(across) if self.named else 0)
                axes.set_title(captions[panel.caption], loc="left", pad=pad)
            before = panel
        apart = "rows differ in scale" if len(set(self.ends.values())) > 1 else ""
        title = self.measure.axis_title(self.scale, apart)
        low = self._below(across) + room
        values_title(picture, title, low, height - legend.height, least=room)
        if below:
            colour = look.colours.soft
            picture.supxlabel(below, x=0.01, ha="left", fontsize=SMALL, color=colour)
        legend.draw(picture)
        picture.tips = self.tips
        return picture

    def _caption(self, panel: Panel) -> str:
        # Axes begin farther right than estimated where the numbers beside them are wide.
        room = 0.96 * self.inner - 4
        return listed(panel.caption, text_size("axes.titlesize"), room)

    def _above(self, across: int) -> float:
        """Returns the height of the names of groups, in points."""
        titles = self._titles(self.chart.groups, self.inner / across - 4)
        return line_height(self.tick) * max(title.count("\n") + 1 for title in titles) + 4

    def _below(self, across: int) -> float:
        """Returns the height of the texts below the axes, in points."""
        if not self.named:
            return self._above(across)
        return widest(self.labels, self._name_size(across)) + 4

    def _name_size(self, across: int) -> float:
        """Returns the size of names below bars: smaller if there is no room for one group."""
        return min(self.tick, self.inner / (across * self.span) / _PITCH)

    def _strip(
        self, axes: Axes, panel: Panel, groups: Sequence[str], across: int, end: float
    ) -> None:
        count = len(self.designs)
        ground = self.look.colours.page
        axes.set_xlim(-_GAP / 2 - 0.5, across * self.span - _GAP / 2 - 0.5)
        pitch, size = self._value_size(across)
        axes.set_ylim(0, 1.06 * end)
        if MEAN in groups:
            left = groups.index(MEAN) * self.span - 0.5 - _GAP / 2
            axes.axvspan(left, left + self.span, color=self.look.colours.band, lw=0, zorder=0)
        there = []
        for at, place in itertools.product(range(len(groups)), range(count)):
            design, group, x = self.designs[place], groups[at], at * self.span + place
            number = panel.numbers[design, group]
            if number is None:
                self._absent(axes, x, panel.reason(design, group), end)
                continue
            there.append((x, number))
            self._bar(axes, x, panel, design, group)
            if self.look.in_page:
                behind = self.look.colours.band if group == MEAN else ground
                self._value(axes, x, number, pitch, size, behind)
        self._whiskers(axes, there)
        number_axis(axes.yaxis, self.scale)
        ruled(axes, "y")
        if self.measure.baseline is not None:
            axes.axhline(1.0, color=self.look.colours.ink, lw=0.7, zorder=1.5)
        middles = [at * self.span + (count - 1) / 2 for at in range(len(groups))]
        axes.tick_params(axis="x", length=0, pad=2)
        titles = self._titles(groups, self.inner / across - 4)
        if not self.named:
            axes.set_xticks(middles, titles)
            return
        self._names(axes, len(groups), self._name_size(across))
        for centre, title in zip(middles, titles, strict=True):
            axes.annotate(
                title, (centre, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
                textcoords="offset points", ha="center", va="bottom", fontsize=self.tick,
            )  # fmt: skip

    def _names(self, axes: Axes, groups: int, size: float) -> None:
        """Writes the designs' names below their bars.

        Ticks, of which each has lines and texts that are not drawn, take minutes of a thousand.
        """
        axes.set_xticks([])
        for at in range(groups):
            for place, name in enumerate(self.labels):
                label = axes.annotate(
                    name, (at * self.span + place, 0.0), xycoords=axes.get_xaxis_transform(),
                    xytext=(0, -2), textcoords="offset points", ha="center", va="top",
                    rotation=90, fontsize=size, color=self.look.colours.ink, annotation_clip=False,
                )  # fmt: skip
                label.set_gid(f"xtick-{next(self.number)}")

    def _bar(self, axes: Axes, x: float, panel: Panel, design: str, group: str) -> None:
        number, base = panel.numbers[design, group], 0.0
        assert number is not None, "its number is there"
        for part, how in self._pieces(design).items():
            length = _length(number, part)
            bar = Rectangle(
                (x - 0.42, base), 0.84, length, facecolor=how.colour, hatch=how.hatch,
                hatchcolor=self.look.colours.page, linewidth=0, zorder=2,
            )  # fmt: skip
            base += length
            if length > 0.0:
                name = f"bar-{len(self.tips)}"
                bar.set_gid(name)
                self.tips[name] = self._tip(panel, design, group, number, part)
                axes.add_patch(bar)

    def _whiskers(self, axes: Axes, there: Sequence[tuple[float, Number]]) -> None:
        """Draws the intervals of numbers, and what a paper prints in their place."""
        spread = [(x, number) for x, number in there if number.spread is not None]
        if spread:
            below = [number.value - number.low for _, number in spread]
            above = [number.high - number.value for _, number in spread]
            axes.errorbar(
                [x for x, _ in spread], [number.value for _, number in spread],
                yerr=[below, above], fmt="none", ecolor=self.look.colours.ink, elinewidth=0.7,
                capsize=1.3, capthick=0.7, zorder=3,
            )  # fmt: skip
        printed = [(x, number.printed) for x, number in there if number.printed is not None]
        if printed:
            axes.add_line(printed_mark(self.look, printed))

    def _tip(self, panel: Panel, design: str, group: str, number: Number, part: str) -> Tip:
        show = self.measure.text
        where = ", ".join(text for text in (design, group, panel.caption) if text)
        over = "" if self.measure.baseline is None else f" × {self.measure.baseline}"
        words = [f"{where}: {show(number.value)}{over}"]
        if part:
            words.append(f"of which {part} {show(_length(number, part))}")
        if number.spread is not None:
            words.append(f"between {show(number.low)} and {show(number.high)}")
        said = ", ".join(words)
        paper = "" if number.printed is None else f"; the paper: {show(number.printed)}"
        return Tip(said + paper, number.simulation)

    def _absent(self, axes: Axes, at: float, reason: str, end: float) -> None:
        """Draws a mark in the place of a bar that is missing."""
        axes.plot([at], [0.04 * end], color=self.look.colours.ink, **_mark(reason))

    def _value_size(self, across: int) -> tuple[float, float]:
        """Returns the distance of bars and the size of values above them, in points."""
        pitch = self.inner / (across * self.span)
        return pitch, min(self.tick - 1.0, pitch / _PITCH)

    def _values_height(self, across: int) -> float:
        """Returns the height of the values above bars, in points; 0 where there are none."""
        if not self.look.in_page:
            return 0.0
        pitch, size = self._value_size(across)
        width = size * self.value_width
        return (size if width < 0.9 * pitch else width) + 9

    def _value(
        self, axes: Axes, at: float, number: Number, pitch: float, size: float, behind: str
    ) -> None:
        """Writes a value above its bar, on a ground that no line is drawn through."""
        text = self.measure.text(number.value)
        above = 7 if number.printed is not None else 4
        ground = {"boxstyle": "square,pad=0.12", "facecolor": behind, "edgecolor": "none"}
        axes.annotate(
            text, (at, number.top), xytext=(0, above), textcoords="offset points", ha="center",
            va="bottom", rotation=0 if text_width(text, size) < 0.9 * pitch else 90,
            fontsize=size, bbox={**ground, "linewidth": 0}, zorder=2.5,
        )  # fmt: skip

    def _pieces(self, design: str) -> dict[str, Marked]:
        if self.chart.parts is None:
            return {"": self.marked[design]}
        return part_marks(list(self.chart.parts))

    def _legend(self) -> Legend:
        chart, look = self.chart, self.look
        legend = Legend(look.points)
        if chart.parts is not None:
            marks = part_marks(list(chart.parts))
            for part, title in chart.parts.items():
                legend.add(sign(marks[part], look), title)
        elif not self.named:
            for design, label in zip(self.designs, self.labels, strict=True):
                legend.add(sign(self.marked[design], look), label)
        ink = look.colours.ink
        if any(number.spread for number in chart.numbers):
            line = Line2D([], [], color=ink, lw=0.7, marker="|", ms=4)
            legend.add(line, self.measure.spreads)
        if any(number.printed is not None for number in chart.numbers):
            legend.add(printed_mark(look), "the paper")
        for reason in chart.absences:
            legend.add(Line2D([], [], color=ink, **_mark(reason)), reason)
        for note in self.measure.notes:
            legend.say(note)
        return legend


def _mark(reason: str) -> dict[str, Any]:
    return {"marker": _ABSENT[reason], "ms": 3.4, "mew": 0.8, "ls": "none"}


def _length(number: Number, part: str) -> float:
    """Returns the length of a bar, or of a part of it."""
    return (number.parts or {}).get(part, 0.0) if part else number.value


def sign(how: Marked, look: Look) -> Patch:
    """Returns the sign of a bar in a legend."""
    return Patch(
        facecolor=how.colour, hatch=how.hatch * 2, hatchcolor=look.colours.page, linewidth=0
    )


_PART_COLOURS = (*KINDS.values(), "#56b4e9", "#d55e00")


def part_marks(parts: Sequence[str]) -> dict[str, Marked]:
    """Returns marks of parts of bars."""
    return {
        part: Marked(colour, colour, HATCHES[at], "o", "-")
        for at, part in enumerate(parts)
        for colour in [KINDS.get(part) or _PART_COLOURS[at]]
    }
