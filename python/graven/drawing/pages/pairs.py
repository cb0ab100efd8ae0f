"""The numbers that a paper prints about a figure, each beside ours, on one axis of multiples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from graven.basics.numbers import ratio
from graven.drawing.pages.svg import (
    NARROW,
    PRINTED,
    WIDE,
    as_files,
    as_svg,
    axes_of,
    look,
    text_width,
)
from graven.drawing.palette import INK, RULE, SOFT

_ROW, _ABOVE, _BELOW = 30.0, 8.0, 30.0
_OURS = "#0072b2"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class Pair:
    """A ratio that a paper prints, and ours.

    Attributes:
        label: What over what, and where.
        printed: The paper's.
        ours: Ours.
        spread: Between which values ours lies over what is left open.
    """

    label: str
    printed: float
    ours: float
    spread: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest of what is drawn."""
        values = (self.printed, self.ours, *(self.spread or ()))
        return min(values), max(values)


@dataclass(frozen=True)
class PairChart:
    """Rows of pairs, on a logarithmic axis: twice as much is as far from 1 as half as much."""

    key: str
    description: str
    pairs: Sequence[Pair]

    def wide(self) -> str:
        """Labels at the left of the rows."""
        with look():
            return as_svg(_draw(self, WIDE), f"{self.key}-wide", self.description, "wide", {})

    def narrow(self) -> str:
        """Labels above the rows."""
        with look():
            figure = _draw(self, NARROW, above=True)
            return as_svg(figure, f"{self.key}-narrow", self.description, "narrow", {})

    def files(self) -> dict[str, bytes]:
        """The wide drawing as files that stand alone, by their endings."""
        with look(embedded=False):
            return as_files(_draw(self, WIDE))


def _draw(chart: PairChart, width: float, *, above: bool = False) -> Figure:
    row = _ROW * 1.6 if above else _ROW
    height = row * len(chart.pairs) + _ABOVE + _BELOW
    labels = [pair.label for pair in chart.pairs]
    left = 14.0 if above else min(text_width(labels, 13.0) + 12, 0.42 * width)
    right = 118.0
    figure, axes = axes_of(width, height, left, right, _ABOVE, _BELOW)
    low = min([1.0, *(pair.ends[0] for pair in chart.pairs)]) / 1.25
    high = max([1.0, *(pair.ends[1] for pair in chart.pairs)]) * 1.25
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(len(chart.pairs) - 0.5, -0.5)
    axes.axvline(1.0, color=INK, lw=1.2, zorder=1)
    for number, pair in enumerate(chart.pairs):
        # Above its row, where there is no room at the left of it.
        place = number + 0.2 if above else number
        axes.plot([pair.ours, pair.printed], [place, place], color=RULE, lw=5, zorder=1)
        if pair.spread is not None:
            axes.plot(pair.spread, [place, place], color=_OURS, lw=1.6, zorder=2, marker="|")
        axes.plot(pair.ours, place, marker="o", ms=8, color=_OURS, zorder=3)
        axes.plot(pair.printed, place, **PRINTED)
        text = f"{ratio(pair.ours)}, paper {ratio(pair.printed)}"
        axes.annotate(
            text, (1.0, place), xycoords=("axes fraction", "data"), xytext=(8, 0),
            textcoords="offset points", va="center", fontsize=12, annotation_clip=False,
        )  # fmt: skip
        if above:
            axes.annotate(
                pair.label, (0.0, number - 0.25), xycoords=("axes fraction", "data"),
                va="center", fontsize=12.5, annotation_clip=False,
            )  # fmt: skip
    axes.set_yticks([] if above else range(len(labels)), [] if above else labels, fontsize=13)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g} ×" for tick in ticks], fontsize=11.5)
    axes.minorticks_off()
    axes.grid(axis="x", color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    return figure
