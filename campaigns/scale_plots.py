"""Plots of what simulations cost the host: time and memory beside each other, both logarithmic."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from graven.drawing.figures.style import Look
from graven.drawing.palette import SOFT

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
MARKERS = ("o", "s", "^", "D")
INCHES = (9.6, 3.9)

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


@dataclass(frozen=True)
class Curve:
    """Points of one series.

    Attributes:
        seconds: Of the host's processor, of each size.
        megabytes: The most memory of the host, of each size.
    """

    name: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    megabytes: Sequence[float]


def drawn(curves: Sequence[Curve], title: str, *, binary: bool) -> bytes:
    """A plot as SVG; equal curves give equal bytes.

    Args:
        curves: What is drawn.
        title: Of the sizes, with their unit.
        binary: Whether sizes are bytes.
    """
    with Look(INCHES[0], 11.0).applied():
        figure = Figure(figsize=INCHES, layout="constrained")
        time, memory = figure.subplots(1, 2)
        for axes, name in ((time, "host time, s"), (memory, "host memory, MB")):
            _dress(axes, title, name, curves, binary)
        for curve, colour, marker in zip(curves, COLOURS, MARKERS, strict=False):
            how = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5}
            time.plot(curve.sizes, curve.seconds, label=curve.name, **how)
            memory.plot(curve.sizes, curve.megabytes, **how)
        for axes, values in (
            (time, [curve.seconds for curve in curves]),
            (memory, [curve.megabytes for curve in curves]),
        ):
            _whole_decades(axes, values)
            _linear(axes, curves, values)
        if curves:
            figure.legend(loc="outside upper center", ncols=len(curves) + 1, frameon=False)
        buffer = io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator"))
        figure.savefig(buffer, format="svg", facecolor="white", metadata=nothing)
        return buffer.getvalue()


def _dress(axes: Axes, title: str, name: str, curves: Sequence[Curve], binary: bool) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(title)
    axes.set_ylabel(name)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    sizes = sorted({size for curve in curves for size in curve.sizes})
    if binary:
        every = max(1, -(-len(sizes) // 5))
        axes.set_xticks(sizes[::every])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _bytes(int(size))))
    elif sizes and sizes[-1] <= 128:
        axes.set_xticks(sizes)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: str(int(size))))
    else:
        axes.xaxis.set_major_locator(LogLocator(base=10))
    axes.minorticks_off()


def _bytes(size: int) -> str:
    unit, name = next((each for each in _UNITS if size >= each[0]), (1, "B"))
    return f"{size // unit} {name}"


def _whole_decades(axes: Axes, values: Sequence[Sequence[float]]) -> None:
    """From one power of ten to another, at least two apart, so that a flat curve looks flat."""
    all_values = [max(value, 1e-4) for of in values for value in of]
    if not all_values:
        return
    low = math.floor(math.log10(min(all_values)))
    high = math.ceil(math.log10(max(all_values)))
    axes.set_ylim(10.0 ** min(low, high - 2), 10.0**high)
    axes.yaxis.set_major_locator(LogLocator(base=10))


def _linear(axes: Axes, curves: Sequence[Curve], values: Sequence[Sequence[float]]) -> None:
    """A line of slope 1 through the last point of the highest curve, as far as the curves go."""
    ends = [(of[-1], curve.sizes[-1]) for curve, of in zip(curves, values, strict=True) if of]
    if not ends:
        return
    highest, size = max(ends)
    lowest = axes.get_ylim()[0]
    first = min(curve.sizes[0] for curve in curves)
    begin = max(first, size * lowest / highest)
    if begin < size:
        line = ([begin, size], [highest * begin / size, highest])
        name = "linear" if axes.get_ylabel().startswith("host time") else None
        axes.plot(*line, color=SOFT, linewidth=1, linestyle=":", zorder=1, label=name)
