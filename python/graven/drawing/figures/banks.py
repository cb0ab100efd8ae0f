"""The load of every PM bank over time, as `graven run --bank-loads` writes it."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator

from graven._engine import ConfigError
from graven.basics.numbers import Scale, scale
from graven.drawing.figures.marks import line_height, number_axis, text_size, wrapped
from graven.drawing.figures.picture import Chart, Picture, Rows
from graven.drawing.figures.style import Look

_BANK = {"column": 5.0, "text": 6.0}
"""How high a bank is, in points."""

_LEAST, _MOST = 84.0, 240.0
"""How high all of them are."""

COLOURS = "cividis"
"""From dark to light, for every kind of colour vision, and in grey."""


def _wrong(file: Path, line: int, what: str) -> ConfigError:
    return ConfigError(
        f"{file}, line {line}: {what}; this is not what `graven run --bank-loads` writes"
    )


def _row(
    file: Path, line: int, header: Sequence[str], cells: Sequence[str]
) -> tuple[list[float], int]:
    """The numbers of a line, and its place.

    Raises:
        ConfigError: it has not as many as the header, or one is no finite number from 0 on.
    """
    if len(cells) != len(header):
        raise _wrong(file, line, f"{len(cells)} values under {len(header)} headings")
    row = []
    for name, cell in zip(header, cells, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0.0:
            raise _wrong(file, line, f"{name} is `{cell}`, not a finite number from 0 on")
        row.append(value)
    return row, line


@dataclass(frozen=True)
class BankLoads(Chart):
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
        try:
            with file.open(newline="", encoding="utf-8") as text:
                reader = csv.reader(text)
                header = next(reader, [])
                if header[:1] != ["cycle"]:
                    raise _wrong(file, 1, "the header does not begin with `cycle`")
                numbers = [_row(file, reader.line_num, header, cells) for cells in reader]
        except OSError as error:
            raise ConfigError(f"cannot read {file}: {error.strerror or error}") from None
        except (csv.Error, UnicodeDecodeError):
            raise ConfigError(f"{file} is not what `graven run --bank-loads` writes") from None
        if len(header) < 2 or not numbers:
            raise ConfigError(f"{file} has no intervals; its run ended before the first was over")
        for (before, _), (row, line) in itertools.pairwise(numbers):
            if row[0] <= before[0]:
                said = f"cycle {row[0]:,.15g} does not come after {before[0]:,.15g}"
                raise _wrong(file, line, said)
        return BankLoads(
            tuple(row[0] for row, _ in numbers),
            tuple(tuple(row[bank] for row, _ in numbers) for bank in range(1, len(header))),
        )

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows: a column for each bank."""
        return [
            {"cycle": cycle, **{f"bank{b}": loads[at] for b, loads in enumerate(self.loads)}}
            for at, cycle in enumerate(self.cycles)
        ]

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
