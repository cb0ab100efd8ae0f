"""`graven mutants`: which mutants of a design the adversary kills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from graven.basics.numbers import exact
from graven.cli import options
from graven.cli.storing import conclude, say_found, show, watched
from graven.cli.tables import numbers, plain_table, whole
from graven.cli.terminal import REFUSED, complain, results_console
from graven.laboratory.adversary import Schedules
from graven.laboratory.crashes import CampaignResult
from graven.laboratory.mutants import (
    OWN,
    SMALL_BOUND,
    WAYS,
    Trial,
    check_mutants,
    mutants_of,
    show_mutants,
    try_mutants,
)
from graven.laboratory.programs import Program, program_files
from graven.running.work import How, Local

HELP = """Give mutants of a design to the adversary, and print which it kills, and by what.

A design has mutants of its own, and those that mutation operators make of it at its boundary with
the machine, as far as there is a place for them: writes that wait for nothing, that are reported
early, that lack a word or bits of a field; threads that are not made to wait; batteries that save
less; recovery that leaves something out. A mutant that survives is equivalent to the design, or
shows what the adversary does not draw.

\b
Examples:
  graven mutants silo                              its own and those of the operators
  graven mutants hoop --schedules 5000 --only "recovery"
  graven mutants lad --draw threads=64 --draw transactions=500
  graven mutants lad --schedules 200 --check       survivors meet all small programs
  graven mutants lad --programs litmus             and the litmus programs that are for them
  graven adversary --design silo --mutant "not-saved(last)"   one, with a timeline
  graven mutants lad --format json | jq '.[] | select(.kill == null) | .mutant'

The exit code is 0 if all were killed, 1 if not, 2 for refused input.
"""


@click.command(help=HELP)
@options.design_argument
@options.schedules("each mutant at most", 1000)
@click.option(
    "--only",
    metavar="TEXT",
    default="",
    help="Only mutants whose name or class has this in it; the class of the design's own is `own`.",
)
@click.option(
    "--programs",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Run the litmus programs there (a file or folder) that are for a mutant on it, if it "
    "survives the adversary.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Execute all small programs (two transactions, one departure) on those that survive.",
)
@options.keeping
@options.jobs("Mutants")
@options.form("table", "json")
def mutants(
    design: str,
    schedules: Schedules,
    only: str,
    programs: Path | None,
    check: bool,
    keeping: options.Keeping,
    jobs: int | None,
    form: str,
) -> int:
    """Asks which there are, runs, prints."""
    found = [m for m in mutants_of(design) if only in m.name or only in (m.class_ or OWN)]
    if not found:
        complain(f"no mutant of {design} has `{only}` in its name or class")
        return REFUSED
    library = [] if programs is None else list(map(Program.read, program_files([programs])))
    keep = keeping.keeper(len(found))
    with watched(keep, "mutants") as display:
        result = try_mutants(design, found, schedules, How(keep, Local(jobs), display))
    say_found(result.found, len(found))
    if library and not result.interrupted:
        shown = show_mutants(result.reports, library, How(keep, Local(jobs)))
        result = _with_failures_of(result, shown)
    if check and not result.interrupted:
        with watched(keep, "survivors") as display:
            how = How(keep, Local(jobs), display)
            checked = check_mutants(result.reports, SMALL_BOUND, how)
        result = _with_failures_of(result, checked)
    trials = result.reports
    show(form, trials, lambda: _print(results_console(), design, trials))
    done = f"{len(trials)} of {len(found)} mutants had been tried"
    interruption = done if result.interrupted else None
    is_fine = all(trial.kill is not None for trial in trials)
    return conclude(result.failures, interruption, is_kept=keep is not None, is_fine=is_fine)


def _with_failures_of(
    before: CampaignResult[Trial], after: CampaignResult[Trial]
) -> CampaignResult[Trial]:
    return replace(after, failures=before.failures + after.failures)


def _print(console: Console, design: str, trials: Sequence[Trial]) -> None:
    table = plain_table(whole("mutant"), "class", *numbers("schedules"), "killed by")
    for trial in trials:
        end = "[bold]SURVIVED[/]" if trial.kill is None else trial.kill.by
        table.add_row(trial.mutant.name, trial.mutant.class_ or OWN, exact(trial.schedules), end)
    console.print(f"Mutants of {design}", style="bold")
    console.print(table)
    counts = Counter((t.mutant.class_ or OWN, t.kill.by if t.kill else None) for t in trials)
    matrix = plain_table("class", *numbers("mutants", *WAYS, "survived"))
    for class_ in dict.fromkeys(trial.mutant.class_ or OWN for trial in trials):
        of_class = [counts[class_, by] for by in (*WAYS, None)]
        matrix.add_row(class_, exact(sum(of_class)), *(exact(n) for n in of_class))
    console.print("Kills by class, and by what", style="bold")
    console.print(matrix)
    killed = sum(trial.kill is not None for trial in trials)
    console.print(f"Killed {exact(killed)} of {exact(len(trials))}.")
