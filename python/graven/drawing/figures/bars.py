"""Grouped bars: workloads, then their mean, and a bar for each design; whole or in parts.

Where there are more bars than fit side by side, the groups go on in further rows. Rows have one
scale, unless it would hide groups whose values are much smaller; these have rows of their own then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graven.basics.numbers import Scale, Value, scale
from graven.drawing.figures.marks import (
    SMALL,
    UNSAFE_MARK,
    UNSAFE_NOTE,
    Legend,
    line_height,
    listed,
    number_axis,
    pieces,
    room_beside,
    ruled,
    text_size,
    values_title,
    widest,
    wrapped,
)
from graven.drawing.figures.picture import Picture, Rows, said_in
from graven.drawing.figures.style import HATCHES, Look, Marked
from graven.drawing.figures.values import BASELINE_IS_0, NO_RESULT, VALUE_IS_0, Number
from graven.drawing.palette import KINDS
from graven.drawing.scales import AUTO, ends, middle
from graven.results.comparison import MEAN

MEAN_TITLE = "geomean"
"""What stands under the mean of multiples, which is the geometric one."""

_GAP = 1.2
"""Space between two groups, in bars."""

_BAR = 1.9
"""How wide a bar is with what is left beside it, at least, in points."""

_PITCH = 1.12
"""How far names below bars are apart, in sizes of their letters."""

_ABSENT = {NO_RESULT: "x", BASELINE_IS_0: "+", VALUE_IS_0: "1"}
"""Marks in the place of bars that are not there, by the reason."""

_ROW = {"column": 88.0, "text": 104.0}


@dataclass(frozen=True)
class Panel:
    """Bars that belong together.

    Attributes:
        caption: What they have in common, if there are several panels: `8 threads`.
        numbers: By design and group; nothing where there is no number.
        absent: The reasons for numbers that are not there; a missing result if none is given.
    """

    caption: str
    numbers: Mapping[tuple[str, str], Number | None]
    absent: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def reason(self, design: str, group: str) -> str:
        """The reason for which a number is not there; empty if it is."""
        if self.numbers[design, group] is not None:
            return ""
        return self.absent.get((design, group)) or NO_RESULT


@dataclass(frozen=True)
class Bars:
    """Groups of bars.

    Attributes:
        metric: The statistic, or what the parts add up to.
        title: The same in words.
        unit: Its unit, absolute.
        direction: Which way is better, in words.
        groups: Workloads, and `MEAN`.
        designs: A bar in each group.
        panels: One or several.
        baseline: The design that numbers are multiples of.
        unsafe: Designs that are marked.
        parts: Names of the parts with their titles, if bars have some.
        spreads: What whiskers are, in words; empty if there are none.
        scales: One of `scales.SCALES`.
        made_with: What the numbers were made with, in one line.
    """

    metric: str
    title: str
    unit: str
    direction: str
    groups: Sequence[str]
    designs: Sequence[str]
    panels: Sequence[Panel]
    baseline: str | None = None
    unsafe: Collection[str] = ()
    parts: Mapping[str, str] | None = None
    spreads: str = ""
    scales: str = AUTO
    made_with: str = ""

    @property
    def rows(self) -> Rows:
        """What is drawn, as flat rows."""
        rows = [
            row
            for panel in self.panels
            for group in self.groups
            for design in self.designs
            for row in self._rows(panel, group, design)
        ]
        return said_in(rows, self.made_with)

    def _rows(self, panel: Panel, group: str, design: str) -> Rows:
        number = panel.numbers[design, group]
        row: dict[str, Value] = {
            "metric": self.metric,
            "unit": self.unit if self.baseline is None else f"multiples of {self.baseline}",
            "panel": panel.caption,
            "workload": group,
            "design": design,
        }
        if number is None:
            return [{**row, "value": None, "absent": panel.reason(design, group)}]
        row |= {"value": number.value, "low": number.low, "high": number.high}
        return [row | {f"of which {k}": v for k, v in (number.parts or {}).items()}]

    @property
    def _numbers(self) -> list[Number]:
        return [n for panel in self.panels for n in panel.numbers.values() if n is not None]

    @property
    def _absences(self) -> list[str]:
        """The reasons for all numbers that are not there."""
        found = {panel.reason(*key) for panel in self.panels for key in panel.numbers}
        return [reason for reason in _ABSENT if reason in found]

    @property
    def ends(self) -> dict[tuple[int, str], float]:
        """The end of the scale of each group of each panel."""
        least = 0.0 if self.baseline is None else 1.0
        tops = {
            (at, group): max(
                [least, *(n.high for d in self.designs if (n := panel.numbers[d, group]))]
            )
            for at, panel in enumerate(self.panels)
            for group in self.groups
        }
        found = ends(list(tops.values()), self.scales)
        return {key: end or 1.0 for key, end in zip(tops, found, strict=True)}

    def draw(self, look: Look) -> Picture:
        """The picture."""
        with look.applied():
            return _Drawing(self, look).picture()


class _Drawing:
    """One picture, as it is laid out."""

    def __init__(self, chart: Bars, look: Look) -> None:
        self.chart = chart
        self.look = look
        self.marked = look.marked(chart.designs, chart.unsafe)
        self.ends = chart.ends
        tops = [*self.ends.values()]
        absolute = chart.baseline is None
        self.scale = scale(chart.unit, middle(tops)) if absolute else Scale(1.0, "")
        self.tick = text_size("xtick.labelsize")
        self.inner = room_beside(look.points, self.scale, tops)
        self.span = len(chart.designs) + _GAP

    @property
    def label_of_designs(self) -> bool:
        """Whether designs are named below their bars; otherwise the legend has them."""
        return self.chart.parts is not None

    def _titles(self, groups: Sequence[str], room: float) -> list[str]:
        named = [MEAN_TITLE if group == MEAN else group for group in groups]
        return [wrapped(title, self.tick, room) for title in named]

    def across(self) -> int:
        """Groups in one row."""
        least = _PITCH * self.tick if self.label_of_designs else _BAR
        words = [word for group in self.chart.groups for word in pieces(group)]
        group = max(least * self.span, widest([*words, MEAN_TITLE], self.tick) + 5)
        most = max(1, int(self.inner / group))
        longest = max(len(groups) for _, groups, _ in self._scaled())
        rows = -(-longest // most)
        return -(-longest // rows)

    def _scaled(self) -> list[tuple[Panel, list[str], float]]:
        """The groups of each panel that share a scale, and its end; the largest values first."""
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
        first = [
            panel is not before
            for (panel, *_), (before, *_) in zip(strips[1:], strips[:-1], strict=True)
        ]
        captions = {panel.caption: self._caption(panel) for panel in chart.panels}
        legend = self._legend()
        row = _ROW["column" if look.width < 5 else "text"]
        row = (row if len(strips) < 4 else 0.7 * row) + self._below(across)
        row += self._above(across) if self.label_of_designs else 0
        line = line_height(text_size("axes.titlesize"))
        above = sum(line * (text.count("\n") + 1) for text in captions.values() if text)
        below = wrapped(chart.made_with, SMALL, 0.97 * look.points) if look.width >= 5 else ""
        room = line_height(SMALL) * (below.count("\n") + 1) if below else 0.0
        height = row * len(strips) + above + legend.height + 6 + room
        picture = Picture(look, height, chart.rows, chart.made_with, layout="constrained")
        grid = picture.subplots(len(strips), 1, squeeze=False)
        places = zip(grid[:, 0], strips, [True, *first], strict=True)
        for axes, (panel, groups, end), is_first in places:
            self._strip(axes, panel, groups, across, end)
            if panel.caption and is_first:
                pad = 4 + (self._above(across) if self.label_of_designs else 0)
                axes.set_title(captions[panel.caption], loc="left", pad=pad)
        title = value_title(chart, self.scale, several=len(set(self.ends.values())) > 1)
        low = self._below(across) + room
        values_title(picture, title, low, height - legend.height, least=room)
        if below:
            colour = look.colours.soft
            picture.supxlabel(below, x=0.01, ha="left", fontsize=SMALL, color=colour)
        legend.draw(picture)
        return picture

    def _caption(self, panel: Panel) -> str:
        return listed(panel.caption, text_size("axes.titlesize"), self.inner - 4)

    def _above(self, across: int) -> float:
        """How high the names of groups are."""
        titles = self._titles(self.chart.groups, self.inner / across - 4)
        return line_height(self.tick) * max(title.count("\n") + 1 for title in titles) + 4

    def _below(self, across: int) -> float:
        """How high what stands below the axes is, in points."""
        if not self.label_of_designs:
            return self._above(across)
        return widest(self._designs(), self._name_size(across)) + 4

    def _name_size(self, across: int) -> float:
        """The size of names below bars: smaller if there is no room for one group."""
        return min(self.tick, self.inner / (across * self.span) / _PITCH)

    def _designs(self) -> list[str]:
        unsafe = self.chart.unsafe
        return [f"{d} {UNSAFE_MARK}" if d in unsafe else d for d in self.chart.designs]

    def _strip(
        self, axes: Axes, panel: Panel, groups: Sequence[str], across: int, end: float
    ) -> None:
        count = len(self.chart.designs)
        if MEAN in groups:
            left = groups.index(MEAN) * self.span - 0.5 - _GAP / 2
            axes.axvspan(left, left + self.span, color=self.look.colours.band, lw=0, zorder=0)
        for place, design in enumerate(self.chart.designs):
            places = [at * self.span + place for at in range(len(groups))]
            self._bars(axes, design, places, [panel.numbers[design, group] for group in groups])
            for at, group in zip(places, groups, strict=True):
                self._absent(axes, at, panel.reason(design, group), end)
        axes.set_xlim(-_GAP / 2 - 0.5, across * self.span - _GAP / 2 - 0.5)
        axes.set_ylim(0, 1.06 * end)
        number_axis(axes.yaxis, self.scale)
        ruled(axes, "y")
        if self.chart.baseline is not None:
            axes.axhline(1.0, color=self.look.colours.ink, lw=0.7, zorder=1.5)
        middles = [at * self.span + (count - 1) / 2 for at in range(len(groups))]
        axes.tick_params(axis="x", length=0, pad=2)
        titles = self._titles(groups, self.inner / across - 4)
        if not self.label_of_designs:
            axes.set_xticks(middles, titles)
            return
        every = [at * self.span + place for at in range(len(groups)) for place in range(count)]
        size = self._name_size(across)
        axes.set_xticks(every, self._designs() * len(groups), rotation=90, fontsize=size)
        for centre, title in zip(middles, titles, strict=True):
            axes.annotate(
                title, (centre, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
                textcoords="offset points", ha="center", va="bottom", fontsize=self.tick,
            )  # fmt: skip

    def _bars(
        self, axes: Axes, design: str, places: Sequence[float], numbers: Sequence[Number | None]
    ) -> None:
        ink = self.look.colours.ink
        there = [(at, number) for at, number in zip(places, numbers, strict=True) if number]
        bases = [0.0] * len(there)
        for part, how in self._pieces(design).items():
            lengths = [_length(number, part) for _, number in there]
            axes.bar(
                [at for at, _ in there], lengths, 0.84, bases, color=how.colour, hatch=how.hatch,
                hatchcolor=self.look.colours.page, linewidth=0, zorder=2,
            )  # fmt: skip
            bases = [base + length for base, length in zip(bases, lengths, strict=True)]
        whiskers = [(at, number) for at, number in there if number.spread is not None]
        if whiskers:
            below = [number.value - number.low for _, number in whiskers]
            above = [number.high - number.value for _, number in whiskers]
            axes.errorbar(
                [at for at, _ in whiskers], [number.value for _, number in whiskers],
                yerr=[below, above], fmt="none", ecolor=ink, elinewidth=0.7, capsize=1.3,
                capthick=0.7, zorder=3,
            )  # fmt: skip

    def _absent(self, axes: Axes, at: float, reason: str, end: float) -> None:
        """A mark where a bar is not there."""
        if reason:
            axes.plot([at], [0.04 * end], color=self.look.colours.ink, **_mark(reason))

    def _pieces(self, design: str) -> dict[str, Marked]:
        if self.chart.parts is None:
            return {"": self.marked[design]}
        return part_marks(list(self.chart.parts))

    def _legend(self) -> Legend:
        chart, look = self.chart, self.look
        legend = Legend(look.points)
        if chart.parts is None:
            for design, label in zip(chart.designs, self._designs(), strict=True):
                legend.add(sign(self.marked[design], look), label)
        else:
            marks = part_marks(list(chart.parts))
            for part, title in chart.parts.items():
                legend.add(sign(marks[part], look), title)
        ink = look.colours.ink
        if any(number.spread for number in chart._numbers):
            legend.add(Line2D([], [], color=ink, lw=0.7, marker="|", ms=4), chart.spreads)
        for reason in chart._absences:
            legend.add(Line2D([], [], color=ink, **_mark(reason)), reason)
        if set(chart.unsafe).intersection(chart.designs):
            legend.say(UNSAFE_NOTE)
        return legend


def _mark(reason: str) -> dict[str, Any]:
    return {"marker": _ABSENT[reason], "ms": 3.4, "mew": 0.8, "ls": "none"}


def _length(number: Number, part: str) -> float:
    """Of a bar, or of a part of it."""
    return (number.parts or {}).get(part, 0.0) if part else number.value


def sign(how: Marked, look: Look) -> Patch:
    """What stands for a bar in a legend."""
    return Patch(
        facecolor=how.colour, hatch=how.hatch * 2, hatchcolor=look.colours.page, linewidth=0
    )


_PART_COLOURS = (*KINDS.values(), "#56b4e9", "#d55e00")


def part_marks(parts: Sequence[str]) -> dict[str, Marked]:
    """How parts of bars are drawn."""
    return {
        part: Marked(colour, colour, HATCHES[at], "o", "-")
        for at, part in enumerate(parts)
        for colour in [KINDS.get(part) or _PART_COLOURS[at]]
    }


def value_title(chart: Bars, scale: Scale, *, several: bool) -> str:
    """The title of an axis of values: its unit or the baseline, which way is better, its scales."""
    apart = "; rows differ in scale" if several else ""
    if chart.baseline is not None:
        return f"{chart.title}, relative to {chart.baseline} ({chart.direction}{apart})"
    unit = f", {scale.unit}" if scale.unit else ""
    return f"{chart.title}{unit} ({chart.direction}{apart})"
