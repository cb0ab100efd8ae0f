"""`graven faults`: what becomes of designs when their machine does not work as it should."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console

from graven.cli import options
from graven.cli.storing import conclude, say_found, show, watched
from graven.cli.tables import numbers, plain_table, whole
from graven.cli.terminal import results_console
from graven.laboratory.adversary import Schedules
from graven.laboratory.faults import Fate, FaultReport, survey
from graven.running.work import How, Local

HELP = """Have power fail while the machine does not work as it should, and say what becomes of it.

No design promises anything then, and none says what it does. Faults: of the writes that the
controller has accepted, the newest one or four are not drained when power fails (the energy of ADR
has ended), or none to one bank is; a word of the log region, or of the programs' data, has an
uncorrectable error, which the machine reports to who reads it. Counted are faults that change what
survives, one of each kind at each crash point of schedules of the adversary.

\b
Examples:
  graven faults all                        all sound designs
  graven faults silo hoop --schedules 1000
  graven faults lad --draw threads=16      with more threads than usual
  graven faults all --format json

The exit code is 0: there is no promise to break.
"""


@click.command(help=HELP)
@options.designs_argument("DESIGN...|all")
@options.schedules("each design", 200)
@options.keeping
@options.jobs("Designs")
@options.form("table", "json")
def faults(
    designs: str, schedules: Schedules, keeping: options.Keeping, jobs: int | None, form: str
) -> int:
    """Runs, prints."""
    names = options.sound(designs)
    keep = keeping.keeper(len(names))
    with watched(keep, "designs") as display:
        result = survey(names, schedules, How(keep, Local(jobs), display))
    say_found(result.found, len(names))
    show(form, result.reports, lambda: _print(results_console(), result.reports))
    done = f"{len(result.reports)} of {len(names)} designs were done"
    interruption = done if result.interrupted else None
    return conclude(result.failures, interruption, is_kept=keep is not None)


def _print(console: Console, reports: Sequence[FaultReport]) -> None:
    table = plain_table(whole("design"), *numbers(*(fate.fault for fate in reports[0].fates)))
    for report in reports:
        table.add_row(report.design, *(cell(fate) for fate in report.fates))
    console.print(
        "Kept / reported / lost in silence, in % of the faults that changed what survived",
        style="bold",
    )
    console.print(table)


def cell(fate: Fate) -> str:
    """As the table has it."""
    if fate.total == 0:
        return "-"
    shares = (100 * count / fate.total for count in (fate.kept, fate.reported, fate.lost))
    return " / ".join(f"{share:.0f}" for share in shares)
