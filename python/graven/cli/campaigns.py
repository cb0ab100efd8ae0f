"""What `graven crash` and `graven adversary` have in common: how a campaign is run and shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from graven.basics import output
from graven.basics.errors import OutputError
from graven.basics.folders import RESULTS, distinct
from graven.basics.numbers import exact, scaled
from graven.cli.storing import watched
from graven.cli.terminal import REFUSED, complain, note, refusing, results_console
from graven.cli.verdicts import print_campaigns
from graven.laboratory.checker import Kept
from graven.laboratory.reports import Campaign
from graven.results.formats import json_text
from graven.running.pool import Failure, Observer, failures_text
from graven.running.work import Executor
from graven.store.keeper import Keeper

ROOM = 4 << 20
"""Room to ask for before a campaign, for a program or a state."""


@dataclass(frozen=True)
class Done:
    """The result of a campaign; `checked` are the power failures of this run of the command."""

    reports: Sequence[Campaign]
    failures: Sequence[Failure]
    checked: int
    interruption: str | None


class Task:
    """One of the two kinds of campaign."""

    noun: str

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
        task: What is run.
        executor: Where.
        keep: What keeps the results, if anything does.
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
    try:
        kept = task.recovered(done)
        replays = _write(done.reports, replay)
    except OutputError:
        _print(done.reports, {}, kept, form)
        raise
    _print(done.reports, replays, kept, form)
    if done.checked:
        note(
            f"{exact(done.checked)} power failures in {seconds:.2f} s of host time: "
            f"{scaled(done.checked / seconds)}/s"
        )
    remark = task.remark(done)
    if remark is not None:
        note(remark)
    return _status(done, mutant)


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


def _print(
    reports: Sequence[Campaign],
    replays: Mapping[int, Path],
    kept: Mapping[int, Kept],
    form: str,
) -> None:
    if form == "json":
        sys.stdout.write(json_text([report.to_dict() for report in reports]))
    else:
        print_campaigns(results_console(), reports, replays, kept)
    sys.stdout.flush()


def _status(done: Done, mutant: str | None) -> int:
    for failure in done.failures:
        complain(failures_text([failure]))
    if done.interruption is not None:
        note(done.interruption)
        return 130
    violated = [report for report in done.reports if report.violations]
    missed = mutant is not None and not violated
    if done.failures or missed or any(report.claims_safety for report in violated):
        return 1
    return REFUSED if any(report.verdict == "refused" for report in done.reports) else 0
