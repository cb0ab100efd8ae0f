"""What came out of a paper's experiments, and running what is not stored yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graven.campaign import CrashJob
from graven.experiment import (
    Failure,
    Job,
    Observer,
    Pool,
    Task,
    best_of_aliases,
    host_cores,
    record_of,
)
from graven.papers.data import Study
from graven.papers.laboratory import crash_jobs
from graven.papers.plan import AS_ASSUMED, Alternative, Wanted, jobs_of
from graven.papers.store import Store, Stored, digest
from graven.records import Record


@dataclass(frozen=True)
class Results:
    """The results of one experiment.

    Attributes:
        study: The experiment, sized.
        records: Its records by alternative, the first as assumed.
        missing: How many simulations have no result.
    """

    study: Study
    records: Mapping[str, Sequence[Record]]
    missing: int

    @property
    def assumed(self) -> Sequence[Record]:
        """The records with everything as assumed."""
        return self.records[AS_ASSUMED]


@dataclass(frozen=True)
class Reproduction:
    """The results of a paper's experiments.

    Attributes:
        wanted: What was asked for.
        results: By experiment.
    """

    wanted: Wanted
    results: Mapping[str, Results]


@dataclass(frozen=True)
class Run:
    """How running went.

    Attributes:
        new: Simulations that were run.
        stored: Those whose results were there.
        failures: Those that failed.
        interrupted: Whether it was interrupted.
    """

    new: int
    stored: int
    failures: tuple[Failure, ...]
    interrupted: bool


def needed(wanted: Sequence[Wanted]) -> dict[str, Job | CrashJob]:
    """Everything that has to have run, by digest."""
    simulations = jobs_of([found for item in wanted for found in item.alternatives()])
    crashed = [job for item in wanted if item.figures is None for job in crash_jobs(item.paper)]
    # A violation takes as long as its program takes to be minimised: not the last.
    jobs: list[Job | CrashJob] = [*crashed, *simulations]
    return {digest(job): job for job in jobs}


def missing(wanted: Sequence[Wanted], store: Store) -> int:
    """How much has no result yet."""
    return sum(store.get(name) is None for name in needed(wanted))


def run(
    wanted: Sequence[Wanted],
    store: Store,
    *,
    workers: int | None = None,
    observe: Observer | None = None,
) -> Run:
    """Runs what has no result yet, several at a time, and keeps each result as it comes.

    Raises:
        ConfigError: the engine refuses something; nothing has run.
    """
    everything = needed(wanted)
    left = {name: job for name, job in everything.items() if store.get(name) is None}
    stored = len(everything) - len(left)
    tasks = [(_label(job), Stored(_task(job), store, name)) for name, job in left.items()]
    if not tasks:
        return Run(0, stored, (), False)
    outcome = Pool(tasks, workers or host_cores()).run(observe)
    return Run(len(outcome.texts), stored, outcome.failures, outcome.interrupted)


def _label(job: Job | CrashJob) -> str:
    return job.label if isinstance(job, Job) else f"power failures: {job.job.label}"


def _task(job: Job | CrashJob) -> Task:
    return job.simulation() if isinstance(job, Job) else job.campaign()


def collect(wanted: Wanted, store: Store) -> Reproduction:
    """What is stored of it."""
    found: dict[str, dict[str, Sequence[Record]]] = {}
    missed: dict[str, int] = {}
    studies: dict[str, Study] = {}
    for item in wanted.alternatives():
        records, lacking = _records(item, store)
        studies[item.study.id] = item.study
        found.setdefault(item.study.id, {})[item.name] = records
        missed[item.study.id] = missed.get(item.study.id, 0) + lacking
    results = {name: Results(studies[name], found[name], missed[name]) for name in studies}
    return Reproduction(wanted, results)


def _records(item: Alternative, store: Store) -> tuple[tuple[Record, ...], int]:
    texts = [(job, store.get(digest(job))) for job in item.jobs]
    there = [(job, record_of(job, text)) for job, text in texts if text is not None]
    return best_of_aliases(there), len(texts) - len(there)
