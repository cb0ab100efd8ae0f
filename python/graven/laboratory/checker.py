"""Checkers of captured programs: commands that judge recovered files.

A checker is believed if it can be: it must pass on the files with which the trace begins, and on
those after a run in which power does not fail, before it judges any others. What it then finds
wrong is kept, with a script that lets power fail at the same crash point again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graven import _engine
from graven._engine import ConfigError
from graven.basics import output
from graven.basics.folders import distinct
from graven.engine.variants import OPTION
from graven.running.pool import Pool, failures_text, kind_of

if TYPE_CHECKING:
    from graven.laboratory.crashes import CrashJob
    from graven.laboratory.reports import CrashReport, Violation

SECONDS = 60.0
"""Default limit of the time that a checker takes."""

SECONDS_MAX = 86_400.0
"""Longest limit that is allowed."""

SCRIPT, MACHINE = "replay.sh", "machine.toml"
"""Files beside kept ones: what lets power fail there again, and a machine of the user's own."""

NO_LIVES = (
    "with --verify there are no later lives (--lives 0): the trace would begin again with its "
    "first transaction, on files that have it already"
)
"""Note where a checker sets the default of later lives to none."""

WHEN = {"before": "with which the trace begins", "after": "after a run in which power did not fail"}
"""Files that are good, by the engine's word."""


def lives_of(lives: int | None, verify: str | None, default: int) -> int:
    """Number of later lives: by default none if a checker judges the files."""
    if lives is not None:
        return lives
    return default if verify is None else 0


def seconds_of(value: object) -> float:
    """Reads the limit of the time that a checker takes.

    Raises:
        ConfigError: it is no such time.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    seconds = float(value) if isinstance(value, int | float) else 0.0
    if not is_number or not 0 < seconds <= SECONDS_MAX:
        raise ConfigError(
            f"verify_seconds: {value!r} is not allowed; allowed: above 0, at most {SECONDS_MAX:g}"
        )
    return seconds


def believe(jobs: Iterable[CrashJob]) -> None:
    """Tries each checker on files that are good, once for each trace.

    A design that refuses the trace says nothing of the checker; the next one is asked.

    Raises:
        ConfigError: one cannot be run, or does not pass.
        KeyboardInterrupt: the user interrupted it.
    """
    asked: dict[tuple[str, str], list[CrashJob]] = {}
    for job in jobs:
        if job.verify is not None:
            asked.setdefault((job.job.workload, job.verify), []).append(job)
    for alike in asked.values():
        for job in alike:
            said = _tried(job)
            if said["failed"] is not None:
                raise ConfigError(_refusal(job, said))
            if said["refused"] is None:
                break


def _tried(job: CrashJob) -> Mapping[str, Any]:
    trial = _engine.Campaign("trial", json.dumps(job.spec()))
    outcome = Pool([(f"a trial of {job.verify}", trial)], workers=1).run(None)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.failures:
        raise kind_of(outcome.failures)(failures_text(outcome.failures))
    said: Mapping[str, Any] = json.loads(outcome.texts[0])
    return said


def _refusal(job: CrashJob, said: Mapping[str, Any]) -> str:
    failed = said["failed"]
    if failed["is_missing"]:
        return f"--verify: {failed['what']}"
    text = (
        f"--verify: the checker does not pass on the files of {job.job.workload} "
        f"{WHEN[failed['when']]}, which are good, so that it would say nothing of others: "
        f"{failed['what']}"
    )
    if failed["when"] == "before":
        text += " (--from and --skip of graven capture let a trace begin later)"
    elif said["threads"] > 1:
        text += f" ({of_threads(said['threads'])})"
    if not said["knows_lengths"]:
        text += (
            " (the trace is of a version that does not know how long files were: they have the "
            "length of their mapping; captured anew it does)"
        )
    return text


def of_threads(count: int) -> str:
    """Caveat for a trace of several threads."""
    return (
        f"the trace has {count} threads, which take turns in a run as the machine has them: what "
        "they share may hold what no run of the program would have left"
    )


def unjudged(reports: Iterable[CrashReport]) -> str | None:
    """Names runs that were too short for their checker to judge anything."""
    never = [
        report.name
        for report in reports
        if report.verdict == "kept" and not report.failure_modes["structures"]
    ]
    if not never:
        return None
    return (
        f"{', '.join(never)}: the checker has judged no recovered file, since there were so few "
        "power failures; --failure-modes structures=1 lets it judge all"
    )


def name_of(job: CrashJob) -> str:
    """Name of a run in messages and files, as `CrashReport.name`."""
    mutant = "" if job.mutant is None else f"-{job.mutant}"
    return f"{job.job.name}{mutant}-{Path(job.job.workload).stem}"


def keeping(jobs: Sequence[CrashJob], results: Path) -> list[CrashJob]:
    """Runs with a folder each for the recovered files of their first violation.

    The folder is named after the run; traces in different folders may have the same name.
    """
    names = distinct(name_of(job) for job in jobs)
    return [
        replace(job, keep=str(results / f"{name}.recovered"))
        for job, name in zip(jobs, names, strict=True)
    ]


@dataclass(frozen=True)
class Kept:
    """Files kept of a violation that a checker has found.

    Attributes:
        folder: The files as they were recovered, and what the checker said (`checker.txt`).
        command: Lets power fail there again.
        script: A file with that command.
        threads: Number of threads of the trace.
    """

    folder: Path
    command: str
    script: Path
    threads: int


def keep_replays(jobs: Sequence[CrashJob], reports: Sequence[CrashReport]) -> dict[int, Kept]:
    """Writes a script for each first violation that a checker has found; by the report's number.

    Args:
        jobs: The run of each report.
        reports: The reports.

    Raises:
        OutputError: it cannot be written.
    """
    kept: dict[int, Kept] = {}
    for number, (job, report) in enumerate(zip(jobs, reports, strict=True)):
        if job.keep is None or not report.violations:
            continue
        violation, folder = report.violations[0], Path(job.keep)
        if violation.replay is None and folder.is_dir():
            kept[number] = _kept(job, violation, folder, report.threads)
    return kept


def _kept(job: CrashJob, violation: Violation, folder: Path, threads: int) -> Kept:
    machine, script = job.job.machine, folder / SCRIPT
    if machine.text is not None:
        _write(folder / MACHINE, machine.text)
    command = shlex.join(command_of(job, violation.point, folder))
    lines = (
        "#!/bin/sh",
        "# Lets power fail at this crash point again, and asks the checker again.",
        f"cd {shlex.quote(str(Path.cwd()))} || exit 2",
        command,
    )
    _write(script, "".join(f"{line}\n" for line in lines))
    return Kept(folder, command, script, threads)


def _write(path: Path, text: str) -> None:
    output.check([path], len(text), make=path.parent)
    output.write(path, text.encode())


def command_of(job: CrashJob, point: int, folder: Path) -> list[str]:
    """The command that lets power fail plainly at one point of a run, and asks its checker."""
    of, machine = job.job, job.job.machine
    place = machine.name if machine.text is None else str(folder / MACHINE)
    words = ["graven", "crash", "--workload", of.workload, "--machine", place]
    if of.own is None:
        words += ["--design", of.design]
    else:
        words += [OPTION, ",".join([f"{of.name}={of.design}", *map("=".join, of.own)])]
    for setting in of.settings:
        words += ["--set", "=".join(setting)]
    if job.mutant is not None:
        words += ["--mutant", job.mutant]
    if of.seed != 1:
        words += ["--seed", str(of.seed)]
    if job.garbage:
        words.append("--garbage")
    words += ["--at", str(point), "--lives", "0", "--verify", job.verify or ""]
    if job.verify_seconds is not None:
        words += ["--verify-limit", f"{job.verify_seconds:g}"]
    return words
