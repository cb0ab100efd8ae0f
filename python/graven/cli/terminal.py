"""The two streams: results on standard output, everything said to a person on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from graven.basics.errors import OutputRefusedError

if TYPE_CHECKING:
    from rich.console import Console

REFUSED = 2
"""Exit code: input was refused."""


class Refusal(click.ClickException):
    """Something that was asked for cannot be done."""

    exit_code = REFUSED


@contextmanager
def refusing(prefix: str = "") -> Iterator[None]:
    """Turns what is found wrong with files before a run into refused input."""
    try:
        yield
    except OutputRefusedError as error:
        raise Refusal(f"{prefix}{error}") from None


PLAIN_WIDTH = 132
"""Columns of a table that does not go to a terminal: the same everywhere, so that runs compare."""


def results_console() -> Console:
    """Standard output."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return Console(width=width, highlight=False)


def note(text: str) -> None:
    """Says something that is not a result."""
    print(f"graven: {text}", file=sys.stderr)


def complain(text: str) -> None:
    """Says in one line what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    print(f"graven: error: {'; '.join(lines)}", file=sys.stderr)
