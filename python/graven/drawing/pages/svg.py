"""What all drawings have in common: their look, their measures, and how they leave matplotlib.

The drawings are SVG with real text, so that they take the page's font, can be searched, and stay
small. Equal content gives equal bytes: no dates, no random identifiers.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graven.drawing.palette import INK, RULE, SOFT

WIDE, NARROW = 1060.0, 380.0
"""Widths in CSS pixels."""

POINTS = 72.0

PRINTED: dict[str, Any] = {
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "#ffffff",
    "markeredgecolor": "#b3123f",
    "markeredgewidth": 1.6,
    "ls": "none",
    "zorder": 4,
    "clip_on": False,
}
"""What a paper prints, wherever it is drawn."""


@contextmanager
def look(*, embedded: bool = True) -> Iterator[None]:
    """The look of all drawings. Embedded ones have text; others have outlines, in any viewer."""
    settings: dict[Any, Any] = {
        "svg.fonttype": "none" if embedded else "path",
        "svg.hashsalt": "graven",
        "font.family": "sans-serif",
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": RULE,
        "axes.labelcolor": SOFT,
        "text.color": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "hatch.linewidth": 1.6,
        "hatch.color": "#ffffff",
        "axes.unicode_minus": False,
    }
    with mpl.rc_context(settings):
        yield


def axes_of(
    width: float, height: float, left: float, right: float, top: float, bottom: float
) -> tuple[Figure, Axes]:
    """A figure of a size in pixels, with axes inset by margins in pixels."""
    figure = Figure(figsize=(width / POINTS, height / POINTS), dpi=POINTS)
    inner = (width - left - right) / width, (height - top - bottom) / height
    axes = figure.add_axes((left / width, bottom / height, *inner))
    return figure, axes


def text_width(texts: Sequence[str], size: float) -> float:
    """A safe estimate, in pixels, for whatever sans-serif font the reader has."""
    return max((len(text) for text in texts), default=0) * size * 0.6


def folded(text: str, size: float, room: float) -> list[str]:
    """A text in lines that fit into `room` pixels, in whatever sans-serif font the reader has."""
    return textwrap.wrap(text, max(1, int(room / text_width(["x"], size)))) or [""]


def behind(colour: str) -> dict[str, Any]:
    """A ground behind a text, so that no line is drawn through it."""
    return {"boxstyle": "square,pad=0.12", "facecolor": colour, "edgecolor": "none", "linewidth": 0}


def as_files(figure: Figure) -> dict[str, bytes]:
    """A drawing as SVG and PNG."""
    found: dict[str, bytes] = {}
    for form in ("svg", "png"):
        nothing = dict.fromkeys(("Date", "Creator") if form == "svg" else ("Software",))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=2 * POINTS, facecolor="white", metadata=nothing)
        found[form] = buffer.getvalue()
    return found


@dataclass(frozen=True)
class Tip:
    """What a part of a drawing says when it is pointed at.

    Attributes:
        text: What it says.
        simulation: The simulation that it is of, by its place in the report's list.
    """

    text: str
    simulation: int | None = None

    def element(self, gid: str) -> str:
        """The beginning of the element."""
        link = "" if self.simulation is None else f' data-simulation="{self.simulation}"'
        return f'<g id="{gid}"{link}><title>{html.escape(self.text)}</title>'


def as_svg(figure: Figure, key: str, description: str, kind: str, tips: Mapping[str, Tip]) -> str:
    """The drawing as an element of a page, with identifiers that are unique in that page."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(
        r'<g id="([^"]*)">',
        lambda found: tips[found[1]].element(found[1]) if found[1] in tips else found[0],
        text,
    )
    text = re.sub(r'\bid="', f'id="{key}-', text)
    text = re.sub(r"url\(#", f"url(#{key}-", text)
    text = re.sub(r'xlink:href="#', f'href="#{key}-', text)
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None, "every drawing has a view box"
    opening = (
        f'<svg class="{kind}" role="img" aria-label="{html.escape(description, quote=True)}" '
        f"{view.group(0)}>"
    )
    text = re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1)
    return re.sub(r"\s*\n\s*", "\n", text).strip()
