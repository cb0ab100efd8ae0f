"""Pieces of pictures: text that is measured, legends, axes of numbers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator, Formatter, MaxNLocator, NullLocator

from graven.basics.numbers import Scale, steps
from graven.drawing.figures.picture import Picture
from graven.drawing.figures.style import PRINTED, Look, settings

SMALL = 5.0
"""The size of the line that says what a picture was made with, in points."""


def printed_mark(look: Look, places: Sequence[tuple[float, float]] = ()) -> Line2D:
    """Returns the diamonds of numbers that a paper prints, at places in axes."""
    return Line2D(
        [x for x, _ in places], [y for _, y in places], color=PRINTED[look.theme], marker="D",
        ms=6.0 if look.in_page else 3.6, markerfacecolor=look.colours.page, markeredgewidth=1.0,
        ls="none", zorder=4,
    )  # fmt: skip


def text_size(name: str) -> float:
    """A size of text that the style sets, in points."""
    return FontProperties(size=settings()[name]).get_size_in_points()


def text_width(text: str, size: float) -> float:
    """Returns the width of a text in the font that is set, in points."""
    width, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=size), ismath=False
    )
    return float(width)


def widest(texts: Sequence[str], size: float) -> float:
    """Returns the width of the widest of some texts, in points."""
    return max((text_width(text, size) for text in texts), default=0.0)


def pieces(text: str) -> list[str]:
    """Returns the pieces that a line may end after: words, and parts of names."""
    return [piece for word in text.split() for piece in re.findall(r"[^-]*-|[^-]+", word)]


def wrapped(text: str, size: float, room: float) -> str:
    """Returns a text in lines of at most `room` points; longer words are divided."""
    lines = [""]
    glue = ""
    for word in text.split():
        for piece in pieces(word):
            joined = lines[-1] + glue + piece
            if not lines[-1] or text_width(joined, size) <= room:
                lines[-1] = joined
            else:
                lines.append(piece)
            glue = ""
        glue = " "
    return "\n".join(part for line in lines for part in _divided(line, size, room))


def listed(text: str, size: float, room: float) -> str:
    """A list separated by commas, in lines that end with an item where the items fit."""
    lines: list[str] = []
    for item in text.split(", "):
        joined = f"{lines[-1]}, {item}" if lines else item
        if lines and text_width(joined + ",", size) > room:
            lines[-1] += ","
            lines.append(item)
        else:
            lines[-1:] = [joined]
    return "\n".join(wrapped(line, size, room) for line in lines)


def titled(text: str, size: float, room: float) -> str:
    """A text in as few lines; a remark in brackets at its end begins one, if that takes no more."""
    lines = wrapped(text, size, room)
    head, bracket, remark = text.rpartition(" (")
    if "\n" not in lines or not bracket:
        return lines
    apart = "\n".join(wrapped(part, size, room) for part in (head, f"({remark}"))
    return min(apart, lines, key=lambda found: found.count("\n"))


def _divided(line: str, size: float, room: float) -> list[str]:
    """A line in parts, if it does not fit."""
    parts = [""]
    for letter in line if text_width(line, size) > room else ():
        if parts[-1] and text_width(parts[-1] + letter, size) > room:
            parts.append("")
        parts[-1] += letter
    return parts if parts[-1] else [line]


def line_height(size: float) -> float:
    """Returns the height of a line of text, with the space above it."""
    return 1.25 * size


class Numbers(Formatter):
    """Numbers along an axis, divided by its scale."""

    def __init__(self, scale: Scale, *, alike: bool = True) -> None:
        """Numbers with equally many digits after the point, or each with as many as it needs."""
        self._scale = scale
        self._alike = alike

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's
        """One of them by itself."""
        return steps([x / self._scale.factor])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """All of them."""
        if not self._alike:
            return [self(value) for value in values]
        return steps([value / self._scale.factor for value in values])


def number_axis(axis: Axis, scale: Scale) -> None:
    """Few round numbers along an axis."""
    axis.set_major_locator(_round_numbers())
    axis.set_major_formatter(Numbers(scale))


def _round_numbers() -> MaxNLocator:
    return MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10])


def room_beside(points: float, scale: Scale, tops: Sequence[float]) -> float:
    """Returns the least width of axes, beside their numbers and a title of two lines.

    `tops` are the ends of the scales.
    """
    numbers = numbers_width(scale, tops)
    return points - numbers - 2 * line_height(text_size("axes.labelsize")) - 14


def numbers_width(scale: Scale, tops: Sequence[float]) -> float:
    """Returns the width of the widest number along axes from 0 to one of `tops`, in points."""
    texts = [
        text
        for top in set(tops)
        for text in steps([v / scale.factor for v in _round_numbers().tick_values(0.0, top)])
    ]
    return widest(texts, text_size("ytick.labelsize"))


_STEPS = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
    (1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.2, 9.4, 9.6, 9.8),
)
"""First digits of the numbers along a logarithmic axis, from few to many."""

_STRIDES = (6, 3, 2)
"""Where there is no room for every power of ten: every which."""

MOST_NUMBERS = 7
"""Along an axis."""


def log_axis(
    axis: Axis,
    scale: Scale,
    ends: tuple[float, float],
    room: float,
    size: float,
    zero: float | None = None,
) -> None:
    """Round numbers along a logarithmic axis of `room` points, as many as fit.

    `zero` is the place that stands for 0, if one does; the scale begins above it.
    """
    low, high = ends
    span = math.log(high / low)
    first = math.floor(math.log10(low / scale.factor)) - 1
    chosen: list[float] = []
    for mantissas, stride in [
        *(((1.0,), stride) for stride in _STRIDES),
        *((m, 1) for m in _STEPS),
    ]:
        powers = [power for power in range(first, first + 36) if power % stride == 0]
        ticks = [m * 10.0**p * scale.factor for p in powers for m in mantissas]
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        places = [room * math.log(tick / low) / span for tick in inside]
        texts = [steps([tick / scale.factor])[0] for tick in inside]
        is_across = isinstance(axis, XAxis)
        sizes = [text_width(text, size) if is_across else size for text in texts]
        gaps = [
            b - a - (m + n) / 2
            for a, b, m, n in zip(places, places[1:], sizes, sizes[1:], strict=False)
        ]
        fits = min(gaps, default=math.inf) >= 0.7 * size and len(inside) <= MOST_NUMBERS
        if fits and len(inside) >= len(chosen):
            chosen = inside
    if zero is None:
        axis.set_major_locator(FixedLocator(chosen))
        axis.set_major_formatter(Numbers(scale, alike=False))
    else:
        texts = [steps([tick / scale.factor])[0] for tick in chosen]
        axis.set_ticks([zero, *chosen], ["0", *texts])
    axis.set_minor_locator(NullLocator())


def apart(places: Sequence[float], texts: Sequence[str], size: float) -> list[str]:
    """Texts at places along a line, in points; those that would run into others are left out.

    The first and the last stay.
    """
    kept = list(texts)
    if not kept:
        return kept
    widths = [text_width(text, size) for text in texts]
    gap = 0.6 * size
    last = len(kept) - 1
    end = places[0] + widths[0] / 2
    for at in range(1, last + 1):
        begin = places[at] - widths[at] / 2
        before_last = places[last] - widths[last] / 2
        fits = begin >= end + gap
        if at < last:
            fits = fits and places[at] + widths[at] / 2 + gap <= before_last
        if not fits:
            kept[at] = ""
        else:
            end = places[at] + widths[at] / 2
    return kept


def _split(labels: Sequence[str], columns: int) -> list[Sequence[str]]:
    """Labels by column, as matplotlib has them: the first columns have one more."""
    least, more = divmod(len(labels), columns)
    ends = [at * least + min(at, more) for at in range(columns + 1)]
    return [labels[begin:end] for begin, end in itertools.pairwise(ends)]


class Legend:
    """Signs and what they stand for, above the axes and inside the picture."""

    def __init__(self, room: float) -> None:
        """A legend that is at most so many points wide."""
        self._room = room
        self._handles: list[Artist] = []
        self._labels: list[str] = []

    def add(self, handle: Artist, label: str) -> None:
        """Adds a sign."""
        self._handles.append(handle)
        self._labels.append(label)

    def say(self, text: str) -> None:
        """Adds a text without a sign."""
        self.add(Line2D([], [], ls="none"), text)

    @property
    def _size(self) -> float:
        return text_size("legend.fontsize")

    def _columns(self) -> int:
        """As many columns as fit, balanced; matplotlib makes each as wide as its widest text."""
        rc, size, count = settings(), self._size, len(self._labels)
        sign = (rc["legend.handlelength"] + rc["legend.handletextpad"]) * size
        for columns in range(min(count, 8), 1, -1):
            if -(-count // -(-count // columns)) < columns:
                continue  # fewer columns have as few rows
            groups = _split(self._labels, columns)
            width = sum(widest(group, size) + sign for group in groups)
            width += (len(groups) - 1) * rc["legend.columnspacing"] * size
            width += 2 * (rc["legend.borderpad"] + rc["legend.borderaxespad"]) * size
            if width <= 0.97 * self._room:
                return columns
        return 1

    @property
    def height(self) -> float:
        """Height of the legend, in points."""
        if not self._labels:
            return 0.0
        rows = -(-len(self._labels) // self._columns())
        spacing = float(settings()["legend.labelspacing"]) * self._size
        return rows * (1.15 * self._size + spacing) + 0.8 * self._size

    def draw(self, picture: Picture) -> None:
        """Puts it above the axes."""
        if self._labels:
            picture.legend(
                self._handles, self._labels, loc="outside upper left", ncols=self._columns()
            )

    def draw_at(self, picture: Picture, corner: tuple[float, float]) -> None:
        """Puts its upper left corner at a place in a picture whose axes are placed by hand."""
        picture.legend(
            self._handles,
            self._labels,
            loc="upper left",
            bbox_to_anchor=corner,
            borderaxespad=0.0,
            ncols=self._columns(),
        )


def values_title(picture: Picture, title: str, low: float, high: float, least: float = 0.0) -> None:
    """The title of the axes of values, between two heights of the picture in points.

    A title that has no room there begins at `least`.
    """
    size = text_size("axes.labelsize")
    whole = 72.0 * picture.get_figheight()
    text = titled(title, size, 0.96 * (high - low))
    if text.count("\n") > 1:
        low = least
        text = titled(title, size, 0.96 * (high - low))
    picture.supylabel(text, y=(low + high) / 2 / whole, fontsize=size)


def ruled(axes: Axes, direction: str) -> None:
    """Light lines at the numbers of the axis of values, and no line beside them."""
    axes.grid(axis="y" if direction == "y" else "x")
    axes.spines["left" if direction == "y" else "bottom"].set_visible(False)
