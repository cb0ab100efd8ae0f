"""What moves a claim, most first: bars from its number by default to the one elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from graven.basics.numbers import ratio
from graven.drawing.pages.svg import WIDE, as_files, axes_of, look, text_width
from graven.drawing.palette import INK, RULE, SOFT
from graven.papers.data import NumberAnswer
from graven.papers.sensitivity import APART, Sensitivity

_ROW, _ABOVE, _BELOW = 28.0, 10.0, 46.0
_READING, _OPEN = "#0072b2", "#b9c2cb"
_TICKS = tuple(m * 10.0**e for e in range(-4, 5) for m in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))


@dataclass(frozen=True)
class Row:
    """An alternative.

    Attributes:
        label: Its name, and which number it moves if there are several.
        factor: That number over what it is by default.
        verdict: The outcome under it.
        reading: Whether a sentence allows it; else it decides no verdict.
    """

    label: str
    factor: float
    verdict: str
    reading: bool


@dataclass(frozen=True)
class Tornado:
    """Rows on a logarithmic axis of multiples of the default.

    Attributes:
        rows: The one that moves the claim most comes first.
        printed: What the paper prints over the default, if it prints a number.
    """

    rows: Sequence[Row]
    printed: float | None

    @staticmethod
    def of(found: Sensitivity) -> Tornado:
        """What moves a claim, of the alternatives under which its number has a sense."""
        several = len(found.verdict.default.numbers) > 1
        rows = [
            Row(
                f"{move.name}: {move.number}" if several else move.name,
                move.factor,
                move.found.verdict,
                move.kind not in APART,
            )
            for move in (*found.moves, *found.programs)
            if move.factor is not None
        ]
        answer, ours = found.verdict.claim.answer, found.verdict.value
        printed = None
        if isinstance(answer, NumberAnswer) and ours and answer.expect / ours > 0.0:
            printed = answer.expect / ours
        return Tornado(rows, printed)

    def files(self) -> dict[str, bytes]:
        """The drawing as SVG and PNG."""
        with look(embedded=False):
            return as_files(_draw(self))


def _draw(chart: Tornado) -> Figure:
    height = _ROW * max(1, len(chart.rows)) + _ABOVE + _BELOW
    labels = [row.label for row in chart.rows]
    left = min(text_width(labels, 12.0) + 12, 0.46 * WIDE)
    right = 40.0 + text_width([_said(row) for row in chart.rows], 11.0)
    figure, axes = axes_of(WIDE, height, left, right, _ABOVE, _BELOW)
    ends = [1.0, *(row.factor for row in chart.rows)]
    if chart.printed is not None:
        ends.append(chart.printed)
    low, high = min(ends) / 1.1, max(ends) * 1.1
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(max(1, len(chart.rows)) - 0.5, -0.5)
    for place, row in enumerate(chart.rows):
        colour = _READING if row.reading else _OPEN
        axes.plot([1.0, row.factor], [place, place], color=colour, lw=11, solid_capstyle="butt")
        axes.annotate(
            _said(row), (1.0, place), xycoords=("axes fraction", "data"), xytext=(8, 0),
            textcoords="offset points", va="center", fontsize=11, annotation_clip=False,
        )  # fmt: skip
    axes.axvline(1.0, color=INK, lw=1.2)
    if chart.printed is not None:
        axes.axvline(chart.printed, color="#b3123f", lw=1.6, ls="--")
    axes.set_yticks(range(len(labels)), labels, fontsize=12)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if math.log10(tick) % 1 < 1e-9 or tick == 1.0]
    axes.set_xticks(ticks, [f"{tick:g} ×" for tick in ticks], fontsize=11)
    axes.minorticks_off()
    text = "multiples of the default; blue: readings, grey: what decides no verdict"
    axes.set_xlabel(text + ("; dashed: the paper" if chart.printed is not None else ""))
    axes.grid(axis="x", color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    return figure


def _said(row: Row) -> str:
    return f"{ratio(row.factor)} ×, {row.verdict}"
