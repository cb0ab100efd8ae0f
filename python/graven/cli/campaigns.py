"""Campaigns of `graven crash` and `graven adversary`: how they are run and shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from graven.basics import output
from graven.basics.folders import RESULTS, distinct
from graven.basics.numbers import exact, scaled
from graven.cli.storing import ROOM, conclude, show, watched
from graven.cli.terminal import REFUSED, note, refusing, results_console
from graven.cli.verdicts import print_campaigns
from graven.laboratory.checker import Kept
from graven.laboratory.reports import Campaign
from graven.running.pool import Failure, Observer
from graven.running.work import Executor
from graven.store.keeper import Keeper


@dataclass(frozen=True)
class Done:
    """The result of a campaign.

    Attributes:
        reports: What came of each design, or of each run.
        failures: Those that did not end well.
        checked: Power failures of this run of the command.
        interruption: How much had been done, if the campaign was interrupted.
    """

    reports: Sequence[Campaign]
    failures: Sequence[Failure]
    checked: int
    interruption: str | None


class Task:
    """One of the two kinds of campaign."""

    noun: str

    @property
    def is_kept(self) -> bool:
        """Tells whether the campaign continues where it was interrupted."""
        raise NotImplementedError

    def run(self, executor: Executor, display: Observer) -> Done:
        """Runs it."""
        raise NotImplementedError

    def recovered(self, done: Done) -> Mapping[int, Kept]:
        """Returns what there is of violations that checkers have found, by the report's number.

        Raises:
            OutputError: what repeats one cannot be written.
        """
        del done
        return {}

    def remark(self, done: Done) -> str | None:
        """Returns what else is to be said of the result, if anything."""
        del done
        return None


def carry_out(
    task: Task,
    executor: Executor,
    *,
    keep: Keeper | None,
    campaigns: int,
    replay: Path | None,
    mutant: str | None,
    form: str,
) -> int:
    """Runs campaigns, writes what replays their violations, prints; returns the exit code.

    Args:
        task: Campaigns to run.
        executor: Place where they run.
        keep: Keeper of the results, if they are kept.
        campaigns: The number of reports that are to come.
        replay: The file of the one violation, if it is not to be named after its campaign.
        mutant: The mutant that must be killed, if there is one.
        form: `table` or `json`.
    """
    if replay is not None:
        if campaigns != 1:
            raise click.UsageError(
                "--replay is for one design and one workload; without it, every violated one "
                f"has a file of its own in {RESULTS}"
            )
        with refusing("--replay: "):
            output.check([replay], ROOM)
    started = time.monotonic()
    with watched(keep, task.noun) as display:
        done = task.run(executor, display)
    seconds = time.monotonic() - started
    kept: Mapping[int, Kept] = {}
    replays: Mapping[int, Path] = {}
    try:
        kept = task.recovered(done)
        replays = _write(done.reports, replay)
    finally:
        show(
            form,
            done.reports,
            lambda: print_campaigns(results_console(), done.reports, replays, kept),
        )
    if done.checked:
        note(
            f"{exact(done.checked)} power failures in {seconds:.2f} s of host time: "
            f"{scaled(done.checked / seconds)}/s"
        )
    if (remark := task.remark(done)) is not None:
        note(remark)
    violated = [report for report in done.reports if report.violations]
    missed = mutant is not None and not violated
    is_fine = not missed and not any(report.claims_safety for report in violated)
    status = conclude(done.failures, done.interruption, is_kept=task.is_kept, is_fine=is_fine)
    is_refused = any(report.verdict == "refused" for report in done.reports)
    return REFUSED if status == 0 and is_refused else status


def _write(reports: Sequence[Campaign], replay: Path | None) -> dict[int, Path]:
    """Writes the program of each report's first violation; the files by the report's number."""
    written: dict[int, Path] = {}
    names = distinct(report.name for report in reports)
    for number, (name, report) in enumerate(zip(names, reports, strict=True)):
        text = report.violations[0].replay if report.violations else None
        if text is None:
            continue
        path = RESULTS / f"{name}.litmus" if replay is None else replay
        output.check([path], len(text), make=RESULTS)
        output.write(path, text.encode())
        written[number] = path
    return written
