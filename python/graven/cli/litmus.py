"""`graven litmus`: programs of a few steps that ask one question of a design."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from graven import _engine
from graven.api.options import design_names, split_names
from graven.cli import completions, options
from graven.cli.storing import conclude, say_found, show, watched
from graven.cli.terminal import REFUSED, complain, note, results_console
from graven.cli.verdicts import print_litmus
from graven.laboratory.programs import Program, of_kind, program_files, run_programs
from graven.running.work import How, Local

HELP = """Run litmus programs: what they do, where power fails, and what may be there afterwards.

A program names the designs that must keep their guarantee in it, and those that
must violate it; or persistency models, and the images that they allow and forbid. A program that
names neither is for all sound designs; those that it does not fit are left out, and told.
docs/explanation/laboratory.md describes the format by example; `graven crash` writes such programs.
What is no file or folder is the name of programs that come with Graven: `graven list litmus`.

\b
Examples:
  graven litmus all                          all programs that come with Graven
  graven litmus silo/undo-order --design silo-literal
  graven litmus mine                         all *.litmus in a folder and the folders in it
  graven litmus graven-results/silo-literal-btree.litmus --timeline
  graven litmus persistency                  the programs for persistency models
  graven litmus mine/log.litmus --model x86-adr,x86-eadr --timeline
  graven litmus all --format json | jq '.[].results[] | [.design, .as_expected]'

The exit code is 0 if everything came out as expected, 1 if not, 2 if a program cannot be read.
"""


@click.command(help=HELP)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE|FOLDER|NAME...",
    type=click.Path(path_type=Path),
    shell_complete=completions.litmus,
)
@options.designs("those that a program names; one that it does not is to keep its guarantee")
@options.models
@click.option(
    "--timeline/--no-timeline",
    default=None,
    help="Print the timeline of every violation, or of none; for models, the execution that leaves "
    "an image.  [default: of unexpected ones, and with --design of all]",
)
@options.keeping
@options.jobs("Programs")
@options.form("table", "json")
def litmus(
    files: Sequence[Path],
    designs: str | None,
    models: str | None,
    timeline: bool | None,
    keeping: options.Keeping,
    jobs: int | None,
    form: str,
) -> int:
    """Reads everything, runs, prints."""
    names = design_names(designs) if designs else []
    asked_models = split_names(models) if models else []
    checked, refusals = [], []
    for program in of_kind(
        list(map(Program.read_or_why, program_files(files))), names, asked_models
    ):
        try:
            if isinstance(program, _engine.ConfigError):
                raise program
            checked.append(program.asked(names, asked_models))
        except _engine.ConfigError as error:
            refusals.append(str(error))
    if refusals:
        for refusal in refusals:
            complain(refusal)
        return REFUSED
    keep = keeping.keeper(len(checked))
    with watched(keep, "programs") as display:
        results = run_programs(checked, How(keep, Local(jobs), display))
    say_found(results.found, len(checked))
    if timeline is None and names:
        timeline = True
    reports = results.reports
    for report in reports:
        for design, why in report.left_out.items():
            note(f"left out: {design} in {report.file}: {why}")
    show(form, reports, lambda: print_litmus(results_console(), reports, timelines=timeline))
    done = f"{len(reports)} of {len(checked)} programs had finished"
    interruption = done if results.interrupted else None
    is_fine = all(report.as_expected for report in reports)
    return conclude(results.failures, interruption, is_kept=keep is not None, is_fine=is_fine)
