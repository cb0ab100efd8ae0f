"""The drawings of docs/explanation/validation.md: Graven's time over the peer's, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from graven.drawing.pages.svg import WIDE, as_files, axes_of, look, text_width
from graven.drawing.palette import INK, RULE, SOFT

from .peers import TOLERANCE
from .ratio import Ratio

_ROW, _ABOVE, _BELOW, _SIDE = 22.0, 34.0, 46.0, 24.0
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
_MARKERS = ("o", "s", "D", "^", "v", "P")
_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 2.5)


def png(ratios: Sequence[Ratio]) -> bytes:
    """Draws a row for each trace or program, a mark for each machine, scheduler or core."""
    times: dict[str, dict[str, float]] = {}
    for each in ratios:
        if each.quantity == "cycles":
            group, _, name = each.run.rpartition("/")
            times.setdefault(name, {})[group.replace("/", ", ")] = each.value
    with look(embedded=False):
        return as_files(_draw(times))["png"]


def _draw(times: dict[str, dict[str, float]]) -> Figure:
    names = list(times)
    groups = list(dict.fromkeys(group for found in times.values() for group in found))
    height = _ROW * len(names) + _ABOVE + _BELOW
    left = text_width(names, 12.0) + 12
    figure, axes = axes_of(WIDE, height, left, _SIDE, _ABOVE, _BELOW)
    every = [value for found in times.values() for value in found.values()]
    low, high = min(0.9, *every) / 1.04, max(1.1, *every) * 1.04
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvspan(1 - TOLERANCE, 1 + TOLERANCE, color=RULE, lw=0)
    axes.axvline(1.0, color=INK, lw=1.0)
    for number, group in enumerate(groups):
        places = [(found[group], row) for row, found in enumerate(times.values()) if group in found]
        axes.plot(
            [value for value, _ in places],
            [row for _, row in places],
            _MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            markerfacecolor="none",
            markersize=7,
            label=group,
        )
    axes.set_yticks(range(len(names)), names, fontsize=12)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=11)
    axes.minorticks_off()
    axes.set_xlabel("Graven's time over the peer's; grey: within 5 %")
    axes.grid(axis="y", color=RULE, lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False, fontsize=11)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    return figure
