"""Experiments: simulations that the engine has checked, run several at a time.

The engine releases the interpreter's lock while it simulates, so a thread for each host core keeps
the host busy. Records come back in the order of the jobs, whichever finished first. An interrupt
cancels what is running at once and keeps what has finished.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graven.basics.numbers import exact
from graven.basics.output import growing
from graven.results.record import Record, parse_record
from graven.running.job import Job, covering
from graven.running.pool import Deferred, Failure, Observer
from graven.running.work import HERE, How, Keep, Local, Work, run_all


@dataclass(frozen=True)
class Result:
    """The records of an experiment in the order of its jobs, and what is missing."""

    records: tuple[Record, ...]
    failures: tuple[Failure, ...]
    interrupted: bool
    found: int = 0
    """Simulations that had a result before."""
    done: int = 0
    """Simulations with a result; records share some of them."""


CHECKED_WHOLE = 4096
"""Largest number of simulations that are all checked before the first one runs."""


@dataclass(frozen=True)
class Experiment:
    """Simulations that the engine has checked and that have not run yet."""

    jobs: tuple[Job, ...]

    @staticmethod
    def prepare(jobs: Sequence[Job]) -> Experiment:
        """Has the engine check jobs before the first one runs.

        Of more than `CHECKED_WHOLE` a part is checked that has every value of everything in it;
        what is refused of the rest fails when its turn comes.

        Raises:
            ConfigError: the engine refuses one.
        """
        checked = jobs if len(jobs) <= CHECKED_WHOLE else covering(jobs)
        for job in checked:
            job.simulation()
        return Experiment(tuple(jobs))

    @cached_property
    def _asked(self) -> list[Job]:
        return [job.asked if not job.files else job for job in self.jobs]

    @cached_property
    def simulations(self) -> list[Job]:
        """The jobs without those that ask for a simulation that one before them asks for."""
        first: dict[Job, Job] = {}
        for asked, job in zip(self._asked, self.jobs, strict=True):
            first.setdefault(asked, job)
        return list(first.values())

    @property
    def counted(self) -> str:
        """The number of simulations, and that of results which are another's: `6 (2 shared)`."""
        return counted_simulations(len(self.simulations), len(self.jobs))

    def work(self) -> list[Work]:
        """The simulations, to be run."""
        several = len({job.seed for job in self.jobs}) > 1
        return [
            Work(
                f"{job.label}, seed {job.seed}" if several else job.label,
                job,
                Deferred(job.simulation),
            )
            for job in self.simulations
        ]

    def run(self, how: How = HERE) -> Result:
        """Runs those without a result; never raises for a failed or interrupted simulation."""
        ran = run_all(self.work(), how)
        at = {asked: index for index, asked in enumerate(dict.fromkeys(self._asked))}
        records = (
            (job, record_of(job, ran.texts[at[asked]]))
            for job, asked in zip(self.jobs, self._asked, strict=True)
            if at[asked] in ran.texts
        )
        return Result(
            best_of_aliases(records), ran.failures, ran.interrupted, ran.found, len(ran.texts)
        )


def counted_simulations(simulations: int, results: int) -> str:
    """The number of simulations, and that of results that are another's: `6 (2 shared)`."""
    shared = f" ({exact(results - simulations)} shared)" if results > simulations else ""
    return f"{exact(simulations)}{shared}"


def run_one(job: Job, *, keep: Keep | None = None, observe: Observer | None = None) -> Result:
    """Runs one job; the files that it names are there only if there is a record.

    Raises:
        ConfigError: the engine refuses the job; nothing has run.
        OutputError: a file cannot be written.
    """
    with contextlib.suppress(_NothingToKeep), contextlib.ExitStack() as stack:
        places: dict[str, Any] = {
            name: str(stack.enter_context(growing(Path(path)))) for name, path in job.files.items()
        }
        experiment = Experiment.prepare([replace(job, **places)])
        result = experiment.run(How(keep, Local(), observe))
        if not result.records:
            raise _NothingToKeep
    return result


class _NothingToKeep(Exception):
    """Files are not to be kept."""


def record_of(job: Job, text: str) -> Record:
    """The record of a simulation, from the engine's JSON."""
    read = {key for key, _, _ in job.read}
    return parse_record(
        text,
        job.machine.name,
        [key for key, _, _ in job.varied],
        unread={key: value for key, value, _ in job.varied if key not in read},
        settings=[key for key, _ in job.settings],
        variant=[key for key, _ in job.own or ()],
    )


def best_of_aliases(found: Iterable[tuple[Job, Record]]) -> tuple[Record, ...]:
    """One record for each name: of those under an alias, the one with the highest throughput.

    An alias of which not every member has a record has none.
    """
    records: dict[Job, list[Record]] = {}
    for job, record in found:
        records.setdefault(replace(job, design=job.name), []).append(record)
    best: list[Record] = []
    for job, candidates in records.items():
        if len(candidates) == job.members:
            fastest = max(candidates, key=lambda r: r.number("throughput_tx_per_s") or 0.0)
            best.append(replace(fastest, design=job.design))
    return tuple(best)
