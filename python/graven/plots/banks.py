"""The load of every PM bank over time, as `graven run --bank-loads` writes it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator

from graven._engine import ConfigError
from graven.figures import Scale, scale
from graven.plots.parts import line_height, number_axis, text_size, wrapped
from graven.plots.picture import Picture, Rows
from graven.plots.style import Look

_BANK = {"column": 5.0, "text": 6.0}
"""How high a bank is, in points."""

_LEAST, _MOST = 84.0, 240.0
"""How high all of them are."""

COLOURS = "cividis"
"""From dark to light, for every kind of colour vision, and in grey."""


@dataclass(frozen=True)
class BankLoads:
    """Mean numbers of pending requests.

    Attributes:
        cycles: Where each interval ends.
        loads: By bank, then by interval.
    """

    cycles: tuple[float, ...]
    loads: tuple[tuple[float, ...], ...]

    @staticmethod
    def read(file: Path) -> BankLoads:
        """The loads in a file.

        Raises:
            ConfigError: it cannot be read, or is not what `--bank-loads` writes.
        """
        wrong = ConfigError(f"{file} is not what `graven run --bank-loads` writes")
        try:
            with file.open(newline="", encoding="utf-8") as text:
                header, *rows = csv.reader(text)
            numbers = [[float(cell) for cell in row] for row in rows]
        except OSError as error:
            raise ConfigError(f"cannot read {file}: {error.strerror or error}") from None
        except ValueError:
            raise wrong from None
        if header[:1] != ["cycle"] or any(len(row) != len(header) for row in numbers):
            raise wrong
        if len(header) < 2 or not numbers:
            raise ConfigError(f"{file} has no intervals; its run ended before the first was over")
        return BankLoads(
            tuple(row[0] for row in numbers),
            tuple(tuple(row[bank] for row in numbers) for bank in range(1, len(header))),
        )

    @property
    def rows(self) -> Rows:
        """What is drawn, as flat rows: a column for each bank."""
        return [
            {"cycle": cycle, **{f"bank{b}": loads[at] for b, loads in enumerate(self.loads)}}
            for at, cycle in enumerate(self.cycles)
        ]

    def draw(self, look: Look) -> Picture:
        """The picture."""
        with look.applied():
            return self._drawn(look)

    def _drawn(self, look: Look) -> Picture:
        values: npt.NDArray[np.float64] = np.array(self.loads)
        bank = _BANK["column" if look.width < 5 else "text"]
        inner = min(max(bank * len(self.loads), _LEAST), _MOST)
        size = text_size("axes.labelsize")
        picture = Picture(look, inner + 2.8 * line_height(size), self.rows, layout="constrained")
        axes = picture.subplots()
        first = 2 * self.cycles[0] - self.cycles[1] if len(self.cycles) > 1 else 0.0
        time = scale("cycles", self.cycles[-1])
        image = axes.imshow(
            values, cmap=COLOURS, vmin=0.0, aspect="auto", interpolation="nearest",
            extent=(max(first, 0.0), self.cycles[-1], len(self.loads) - 0.5, -0.5),
        )  # fmt: skip
        axes.spines[:].set_visible(False)
        number_axis(axes.xaxis, time)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.set_xlabel(f"Time, {time.unit}")
        axes.set_ylabel("PM bank")
        bar = picture.colorbar(image, ax=axes, pad=0.01, fraction=0.06)
        bar.outline.set_visible(False)
        number_axis(bar.ax.yaxis, Scale(1.0, ""))
        bar.set_label(wrapped("Pending requests, mean", size, 0.9 * inner), size=size)
        return picture
