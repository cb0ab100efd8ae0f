"""The look of pictures for papers: widths, themes, colours, hatches, markers.

A user's own settings prevail: values of matplotlibrc, `matplotlib.rcParams` or a style file that
differ from matplotlib's defaults stay. Pictures in pages have Graven's settings alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, cast

import matplotlib as mpl
from matplotlib import style as mpl_style

from graven._engine import ConfigError
from graven.basics.arguments import known
from graven.drawing import palette

WIDTHS = {"column": 3.3, "text": 7.0}
"""Widths of a column and of the text of a paper, in inches."""

WIDTH_LEAST, WIDTH_MOST = 2.0, 40.0
"""What widths in inches may be."""

SIZES = {"column": 7.0, "text": 8.0}
"""Size of the text, in points; of other widths that of the nearest."""


@dataclass(frozen=True)
class Theme:
    """Colours that do not stand for anything.

    Those of the page, of text (`ink`), of axes (`soft`), of grid lines (`rule`), and of the ground
    of a mean (`band`). Pages have style variables of the same names.
    """

    page: str
    ink: str
    soft: str
    rule: str
    band: str


THEMES = {
    "light": Theme("#ffffff", palette.INK, palette.SOFT, palette.RULE, "#eceff2"),
    "dark": Theme("#14181d", "#e8ecf0", "#b3bdc7", "#39424c", "#232a32"),
}

HATCHES = ("", "////", "xxxx", "\\\\\\\\", "----", "||||", "++++", "//", "--", "xx")
"""Hatches that tell bars apart in grey, by preference; dots would take a megabyte in SVG."""

MARKERS = "osD^vP*Xph<>"
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0.0, (4.0, 1.2)),
    (0.0, (1.4, 1.0)),
    (0.0, (5.0, 1.2, 1.2, 1.2)),
)

PRINTED = {"light": "#b3123f", "dark": "#ff7a9c"}
"""Colours of numbers that a paper prints, by theme."""

OURS = {"light": "#0072b2", "dark": "#56b4e9"}
"""Colours of our numbers beside those of a paper, by theme."""


@dataclass(frozen=True)
class Marked:
    """Marks of a series: `line` is its colour as a line."""

    line: str
    colour: str
    hatch: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """Look of a picture.

    Attributes:
        width: In inches.
        size: Of its text, in points.
        theme: `light` or `dark`.
        style: A style of the user's that applies on top, as `matplotlib.style.use` takes it.
        in_page: True for pictures in HTML pages: bars carry names, values and tips there, and only
            Graven's settings apply.
    """

    width: float = WIDTHS["column"]
    size: float = SIZES["column"]
    theme: str = "light"
    style: object = None
    in_page: bool = False

    @staticmethod
    def in_page_of(width: float) -> Look:
        """Returns the look of a picture in a page, `width` CSS pixels wide."""
        return Look(width / 72.0, 12.0, in_page=True)

    @staticmethod
    def of(width: str | float = "column", theme: str = "light", style: object = None) -> Look:
        """The look of a picture.

        Args:
            width: `column` (3.3 in), `text` (7 in), or inches.
            theme: `light` or `dark`.
            style: A style file, the name of a style of matplotlib, or settings.

        Raises:
            ConfigError: one of them is not allowed.
        """
        if theme not in THEMES:
            raise known("theme", str(theme), THEMES)
        if isinstance(width, str):
            if width not in WIDTHS:
                raise ConfigError(f"width: `{width}` is not {', '.join(WIDTHS)}, or inches")
            look = Look(WIDTHS[width], SIZES[width], theme, style)
        elif isinstance(width, bool) or not WIDTH_LEAST <= width <= WIDTH_MOST:
            raise ConfigError(
                f"width: {width} is not from {WIDTH_LEAST:g} to {WIDTH_MOST:g} inches"
            )
        else:
            nearest = min(WIDTHS, key=lambda name: abs(WIDTHS[name] - width))
            look = Look(float(width), SIZES[nearest], theme, style)
        with look.applied():
            return look

    @property
    def colours(self) -> Theme:
        """The colours of the theme."""
        return THEMES[self.theme]

    @property
    def points(self) -> float:
        """The width in points."""
        return 72.0 * self.width

    def height(self, column: float, text: float) -> float:
        """Returns a height in points: `column` of pictures one column wide, `text` of wider ones.

        Pictures in pages are 2.4 times as high as wide ones.
        """
        return 2.4 * text if self.in_page else column if self.width < 5 else text

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Draws and saves like this; what the user has set differently stays.

        Raises:
            ConfigError: there is no such style, or it is not one.
        """
        with mpl.rc_context():
            now, plain = settings(), cast("dict[str, Any]", mpl.rcParamsDefault)
            own = self._settings()
            now |= {k: own[k] for k in own if self.in_page or now[k] == plain[k]}
            self._use_style()
            yield

    def _use_style(self) -> None:
        if self.style is None:
            return
        given: Any = fspath(self.style) if isinstance(self.style, PathLike) else self.style
        try:
            mpl_style.use(given)
        except OSError:
            raise ConfigError(
                f"style: `{given}` is neither a style file nor one of {', '.join(_styles())}"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"style: {given}: {error}") from None

    def _settings(self) -> dict[str, Any]:
        theme, small = self.colours, self.size - 0.5
        page = {
            "lines.linewidth": 1.8,
            "lines.markersize": 5.5,
            "hatch.linewidth": 1.2,
            "figure.constrained_layout.h_pad": 0.08,
        }
        return {
            "font.family": ["sans-serif"],
            "font.size": self.size,
            "axes.labelsize": self.size,
            "axes.titlesize": self.size,
            "xtick.labelsize": small,
            "ytick.labelsize": small,
            "legend.fontsize": small,
            "legend.frameon": False,
            "legend.handlelength": 1.4,
            "legend.handleheight": 0.9,
            "legend.handletextpad": 0.5,
            "legend.columnspacing": 1.1,
            "legend.labelspacing": 0.3,
            "legend.borderpad": 0.2,
            "figure.facecolor": theme.page,
            "savefig.facecolor": theme.page,
            "axes.facecolor": "none",
            "axes.edgecolor": theme.soft,
            "axes.labelcolor": theme.ink,
            "axes.titlecolor": theme.ink,
            "axes.linewidth": 0.6,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.unicode_minus": False,
            "grid.color": theme.rule,
            "grid.linewidth": 0.5,
            "lines.linewidth": 1.2,
            "lines.markersize": 3.9,
            "text.color": theme.ink,
            "xtick.color": theme.soft,
            "ytick.color": theme.soft,
            "xtick.labelcolor": theme.ink,
            "ytick.labelcolor": theme.ink,
            "xtick.major.size": 2.0,
            "ytick.major.size": 0.0,
            "xtick.major.width": 0.6,
            "hatch.linewidth": 0.7,
            # Text is as wide in every format, and as wide as it is measured.
            "text.hinting": "none",
            "text.hinting_factor": 1,
            "pdf.fonttype": 42,
            "svg.fonttype": "none",
            "svg.hashsalt": "graven",
            "savefig.dpi": 300,
            "figure.constrained_layout.h_pad": 0.03,
            "figure.constrained_layout.w_pad": 0.03,
            **(page if self.in_page else {}),
        }

    def marked(self, designs: Sequence[str], unsafe: Collection[str] = ()) -> dict[str, Marked]:
        """Returns marks of designs that are shown together, which differ in grey, too."""
        found: dict[str, Marked] = {}
        taken: set[tuple[str, str]] = set()
        plain = 0
        for number, (name, own) in enumerate(palette.design_styles(designs, unsafe).items()):
            # Unsafe designs have one colour and are always hatched.
            first = 1 if own.hatched else plain % len(HATCHES)
            plain += not own.hatched
            order = HATCHES[first:] + HATCHES[own.hatched : first]
            hatch = next((h for h in order if (own.colour, h) not in taken), order[0])
            taken.add((own.colour, hatch))
            marker = MARKERS[number % len(MARKERS)]
            dashes = DASHES[(number + number // len(MARKERS)) % len(DASHES)]
            found[name] = Marked(own.line, own.colour, hatch, marker, dashes)
        return found


def settings() -> dict[str, Any]:
    """The settings of matplotlib that are in force, by any name."""
    return cast("dict[str, Any]", mpl.rcParams)


def _styles() -> list[str]:
    return [name for name in mpl_style.available if not name.startswith("_")]
