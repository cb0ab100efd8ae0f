"""Readings that are asked for by name, and the traces of the real programs that some have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.text import Text

from graven.capture import CaptureError
from graven.cli.tables import folded, plain_table
from graven.cli.terminal import Refusal, note, refusing, results_console
from graven.papers.data import Paper
from graven.papers.plan import READINGS
from graven.papers.programs import capture, lacking
from graven.papers.verdicts import Verdict, each_text, missing_text
from graven.running.progress import Display

CAPTURES = "captures"
"""The folder of traces, beside the store of results."""


def check_readings(names: Iterable[str], papers: Sequence[Paper]) -> None:
    """Refuses a reading that none of these papers has.

    Raises:
        UsageError: there is one.
    """
    known = list(dict.fromkeys(name for paper in papers for name in paper.readings))
    for name in names:
        if name not in known:
            of = ", ".join(paper.name for paper in papers)
            raise click.UsageError(
                f"--reading: {of} has no reading `{name}`; there are {', '.join(known) or 'none'}"
            )


def readings_of(named: Sequence[str], papers: Sequence[Paper]) -> tuple[str, tuple[str, ...]]:
    """Reads `--reading`: one of `READINGS`, and names of single readings.

    Raises:
        UsageError: two of `READINGS` are given, or a reading that none of these papers has.
    """
    modes = [name for name in named if name in READINGS]
    if len(modes) > 1:
        raise click.UsageError(f"--reading: {' and '.join(modes)} exclude each other")
    single = tuple(name for name in named if name not in READINGS)
    check_readings(single, papers)
    return (modes or READINGS)[0], single


def capture_programs(programs: Iterable[str], folder: Path) -> None:
    """Captures the programs whose traces are not there; they are kept.

    Raises:
        Refusal: QEMU or a package is missing, or a program cannot be captured.
    """
    left = lacking(programs, folder)
    if not left:
        return
    note(f"captures {', '.join(left)}; their traces are kept in {folder}")
    with refusing(), Display("captures") as display:
        for name in left:
            try:
                capture(name, folder, display)
            except CaptureError as error:
                raise Refusal(f"--reading: {error}") from None


def print_programs(title: str, assessed: Sequence[Verdict]) -> None:
    """Prints the results of real programs for the claims of a paper, if there are any."""
    columns = ("claim", "paper", "default", "programs", "ours", "outcome", "each")
    table = plain_table(*folded(*columns))
    for verdict in assessed:
        for name, found in verdict.programs.items():
            table.add_row(
                verdict.claim.id,
                Text(verdict.paper),
                Text(f"{verdict.ours} ({verdict.default.verdict})"),
                name,
                Text(found.ours or missing_text(found.missing)),
                found.verdict,
                Text(each_text(verdict.claim, found)),
            )
    if table.row_count:
        console = results_console()
        console.print(Text(f"{title}: other programs than the paper's", style="bold"))
        console.print(table)
        console.print("Other programs decide no verdict.", markup=False)
