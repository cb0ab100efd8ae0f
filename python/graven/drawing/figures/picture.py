"""Pictures: figures of matplotlib that know their data, and how they are saved."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from graven._engine import ConfigError
from graven.basics import arguments, output
from graven.basics.numbers import Value
from graven.drawing.figures.style import Look
from graven.results import views
from graven.results.formats import columns

FORMATS = {
    "pdf": ("CreationDate", "ModDate", "Creator", "Producer"),
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
}
"""Formats of files, with the metadata that are left out, so that equal content is equal bytes."""

DESCRIBED = {"pdf": "Subject", "svg": "Description", "png": "Description"}
"""Metadata of files that hold the conditions of the numbers."""

Rows: TypeAlias = Sequence[Mapping[str, Value]]


class Chart(ABC):
    """Base of all that can be drawn."""

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""

    def draw(self, look: Look) -> Picture:
        """Returns the picture, in a look."""
        with look.applied():
            return self._drawn(look)

    @abstractmethod
    def _drawn(self, look: Look) -> Picture:
        """Returns the picture; the look applies already."""


@dataclass(frozen=True)
class Tip:
    """Text that a part of a picture shows when a reader points at it.

    Attributes:
        text: The text.
        simulation: Place of the simulation that the part shows in the report's list.
    """

    text: str
    simulation: int | None = None


class Picture(views.Picture, Figure):
    """A figure of matplotlib, which can be changed as any other.

    Attributes:
        rows: The data that are drawn, as flat rows.
        look: How it looks; it applies as the picture is saved, too.
        made_with: What the numbers were made with; it is in the metadata of files.
        tips: Tips of parts, by their names in SVG (`Artist.set_gid`).
    """

    def __init__(
        self,
        look: Look,
        height: float,
        rows: Rows,
        made_with: str = "",
        **how: Any,  # noqa: ANN401 - as matplotlib has it
    ) -> None:
        """A picture that is `height` points high; `how` is for matplotlib."""
        super().__init__(figsize=(look.width, height / 72.0), **how)
        FigureCanvasAgg(self)
        self.rows = rows
        self.look = look
        self.made_with = made_with
        self.tips: dict[str, Tip] = {}

    def savefig(self, fname: Any, **how: Any) -> None:  # noqa: ANN401 - as matplotlib has it
        """As of any figure, in its own look and without a date.

        Args:
            fname: A file or its name.
            **how: As matplotlib takes it.
        """
        form = str(how.get("format") or Path(str(fname)).suffix[1:]).lower()
        metadata: dict[str, str | None] = dict.fromkeys(FORMATS.get(form, ()))
        if self.made_with and form in DESCRIBED:
            metadata[DESCRIBED[form]] = self.made_with
        how.setdefault("metadata", metadata or None)
        with self.look.applied():
            super().savefig(fname, **how)

    def encoded(self, form: str) -> bytes:
        """The picture in one of `FORMATS`."""
        buffer = io.BytesIO()
        self.savefig(buffer, format=form)
        return buffer.getvalue()

    def save(self, paths: views.Paths) -> list[Path]:
        """Saves the picture, as `save` does."""
        return save(self, paths)

    def _repr_svg_(self) -> str:
        return self.encoded("svg").decode()


def save(picture: Picture, paths: views.Paths) -> list[Path]:
    """Writes a picture by the endings of the names, and its data beside it, as CSV.

    Args:
        picture: What is written.
        paths: One or more names, each with an ending of `FORMATS`.

    Returns:
        What was written.

    Raises:
        ConfigError: a name has no such ending.
        OutputError: a file cannot be written.
    """
    named = checked([paths] if isinstance(paths, str | PathLike) else paths)
    written = []
    for path in named:
        output.write(path, picture.encoded(_ending(path)))
        written.append(path)
    for path in tables(named):
        output.write(path, table(picture.rows).encode())
        written.append(path)
    return written


def checked(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    """Names of files for a picture.

    Raises:
        ConfigError: one has no ending of `FORMATS`, or there is none.
    """
    named = list(dict.fromkeys(Path(arguments.path("path", path)) for path in paths))
    for path in named:
        if _ending(path) not in FORMATS:
            allowed = ", ".join(f".{form}" for form in FORMATS)
            raise ConfigError(f"{path}: the name of a picture must end in {allowed}")
    if not named:
        raise ConfigError("path: no file is named")
    return named


def tables(pictures: Sequence[Path]) -> list[Path]:
    """Returns the files for the data of pictures: beside those that are regular files."""
    regular = [path for path in pictures if output.Destination.of(path).file is not None]
    return list(dict.fromkeys(path.with_suffix(".csv") for path in regular))


def table(rows: Rows) -> str:
    """Data as CSV; nothing is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _ending(path: Path) -> str:
    return path.suffix[1:].lower()
