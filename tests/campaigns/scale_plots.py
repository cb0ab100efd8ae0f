"""Plots of what simulations cost the host: time and memory beside each other, both logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from graven.report.drawing import as_files, look
from graven.report.palette import SOFT

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
    with look():
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
            _linear(axes, curves, values)
        figure.legend(loc="outside upper center", ncols=len(curves) + 1, frameon=False)
        return as_files(figure)["svg"]


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
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bytes(size: int) -> str:
    unit, name = next((each for each in _UNITS if size >= each[0]), (1, "B"))
    return f"{size // unit} {name}"


def _linear(axes: Axes, curves: Sequence[Curve], values: Sequence[Sequence[float]]) -> None:
    """A line of slope 1 through the last point of the highest curve, as far as the curves go."""
    ends = [(of[-1], curve.sizes[-1]) for curve, of in zip(curves, values, strict=True) if of]
    if not ends:
        return
    highest, size = max(ends)
    lowest = min(min(of) for of in values if of)
    first = min(curve.sizes[0] for curve in curves)
    begin = max(first, size * lowest / highest)
    if begin < size:
        line = ([begin, size], [highest * begin / size, highest])
        axes.plot(*line, color=SOFT, linewidth=1, linestyle=":", zorder=1, label="linear")
