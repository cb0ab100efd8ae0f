"""Views of results: pictures, pages, tables of notebooks.

Results say what is to be shown, and a backend shows it. It is the module that `BACKEND` names,
imported when something is shown for the first time, as pandas imports its plotting backend: what
draws knows results, and results do not know what draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from graven.basics.numbers import Value
from graven.engine.machine import Machine

BACKEND = "graven.drawing.backend"

Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
"""Names of files, one or more."""


if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = object
    """A backend's pictures are figures; results do not import matplotlib to say so."""


class Picture(Figure):
    """A figure of matplotlib with its data, which can be changed as any other.

    Attributes:
        rows: The data that are drawn, as flat rows.
    """

    rows: Sequence[Mapping[str, Value]]

    def save(self, paths: Paths) -> list[Path]:
        """Writes it by the endings of the names (.pdf, .svg, .png), and its data as CSV.

        Returns:
            The files that were written.

        Raises:
            ConfigError: a name has another ending.
            OutputError: a file cannot be written.
        """
        raise NotImplementedError

    def encoded(self, form: str) -> bytes:
        """The picture as `pdf`, `svg` or `png`."""
        raise NotImplementedError


class Backend(Protocol):
    """Functions of a backend; each takes results of any kind that can be shown so."""

    def picture(
        self, of: object, width: str | float, theme: str, style: object, **asked: object
    ) -> Picture:
        """A picture of results.

        Raises:
            ConfigError: there is nothing to draw, or something is asked that is not allowed.
        """

    def html(self, of: object) -> str:
        """Returns the HTML that a notebook shows of results."""

    def page(self, of: object, machine: Machine, settings: Mapping[str, str]) -> str:
        """A report in one file of HTML."""


def backend() -> Backend:
    """The backend, imported if it is not yet."""
    return cast("Backend", import_module(BACKEND))
