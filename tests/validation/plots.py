"""The drawings of docs/explanation/validation.md: Graven's time over the peer's, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graven.basics.numbers import ratio
from graven.drawing.figures.marks import Legend
from graven.drawing.figures.picture import Picture
from graven.drawing.figures.rows import Strip
from graven.drawing.figures.style import Look

from .peers import TOLERANCES
from .ratio import Ratio

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
_MARKERS = ("o", "s", "D", "^", "v", "P")


def png(ratios: Sequence[Ratio]) -> bytes:
    """Draws a row for each trace or program, a mark for each machine, scheduler or core."""
    times: dict[str, dict[str, float]] = {}
    for each in ratios:
        if each.quantity == "cycles":
            group, _, name = each.run.rpartition("/")
            times.setdefault(name, {})[group.replace("/", ", ")] = each.value
    look = Look.of("text")
    with look.applied():
        return _drawn(times, look).encoded("png")


def _drawn(times: dict[str, dict[str, float]], look: Look) -> Picture:
    groups = list(dict.fromkeys(group for found in times.values() for group in found))
    every = [value for found in times.values() for value in found.values()]
    marks: dict[str, dict[str, Any]] = {
        group: {"color": colour, "marker": marker, "markerfacecolor": "none", "ls": "none"}
        for group, colour, marker in zip(groups, _COLOURS * 2, _MARKERS * 2, strict=False)
    }
    legend = Legend(look.points)
    for group, mark in marks.items():
        legend.add(Line2D([], [], **mark), group)
    legend.add(Patch(facecolor=look.colours.rule, linewidth=0), "within 5 %")
    said = [f"{ratio(min(found.values()))} to {ratio(max(found.values()))}"
            for found in times.values()]  # fmt: skip
    ends = min(0.9, *every), max(1.1, *every)
    picture, axes = Strip(look, list(times), said, ends, legend).begin(
        [], "Graven's time over the peer's"
    )
    near = TOLERANCES["cycles"]
    axes.axvspan(1 - near, 1 + near, color=look.colours.rule, lw=0, zorder=0.5)
    for row, found in enumerate(times.values()):
        for group, value in found.items():
            axes.plot([value], [row], **marks[group])
    return picture
