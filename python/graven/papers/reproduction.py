"""Results of a paper's experiments, and running what is not stored yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graven.laboratory.crashes import CrashJob, task_of
from graven.papers.data import Study
from graven.papers.laboratory import crash_jobs
from graven.papers.plan import BY_DEFAULT, DEFAULT, PROGRAMS, Alternative, Wanted, jobs_of
from graven.results.record import Record
from graven.running.experiment import best_of_aliases, record_of
from graven.running.job import Job
from graven.running.pool import Failure, Observer
from graven.running.work import Executor, How, Work, run_all
from graven.store import Store
from graven.store.keeper import Keeper, digest


@dataclass(frozen=True)
class Tried:
    """The results of an experiment under one alternative.

    Attributes:
        kind: Kind of alternative, as in `plan`.
        records: Its records.
        missing: Its simulations that have no result.
        changed: The default's simulations whose place others take.
        metrics: Statistics that take the place of others.
    """

    kind: str
    records: Sequence[Record]
    missing: Sequence[Job] = ()
    changed: frozenset[Job] = frozenset()
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The results of one experiment.

    Attributes:
        study: The experiment, sized.
        jobs: Its simulations by default.
        tried: Its results by alternative, the default first.
        untried: Readings that were not asked for, by name, with what they would change.
    """

    study: Study
    jobs: Sequence[Job]
    tried: Mapping[str, Tried]
    untried: Mapping[str, Alternative] = field(default_factory=dict)

    @property
    def default(self) -> Tried:
        """The results by default."""
        return self.tried[DEFAULT]

    @property
    def missing(self) -> int:
        """Number of simulations without a result."""
        return len({job for item in self.tried.values() for job in item.missing})


@dataclass(frozen=True)
class Reproduction:
    """The results of a paper's experiments.

    Attributes:
        wanted: The request.
        results: By experiment.
        programs: Under readings with real programs, those of each experiment that they are about.
    """

    wanted: Wanted
    results: Mapping[str, Results]
    programs: Mapping[str, Mapping[str, Results]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """End of a run.

    Attributes:
        new: Simulations that were run.
        stored: Simulations whose results were stored before.
        failures: Those that failed.
        interrupted: True if it was interrupted.
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
    return by_digest([*crashed, *simulations])


def by_digest(jobs: Iterable[Job | CrashJob]) -> dict[str, Job | CrashJob]:
    """Simulations and runs that are crashed, by digest."""
    return {digest(job): job for job in jobs}


def run(
    everything: Mapping[str, Job | CrashJob],
    store: Store,
    *,
    executor: Executor,
    observe: Observer | None = None,
) -> Run:
    """Runs what has no result yet, several at a time, and keeps each result as it comes.

    Raises:
        ConfigError: the engine refuses something; nothing has run.
    """
    left = [job for name, job in everything.items() if store.get(name) is None]
    work = [Work(_label(job), job, task_of(job)) for job in left]
    ran = run_all(work, How(Keeper(store), executor, observe))
    stored = len(everything) - len(left)
    return Run(len(ran.texts), stored, ran.failures, ran.interrupted)


def _label(job: Job | CrashJob) -> str:
    return job.label if isinstance(job, Job) else f"power failures: {job.job.label}"


def collect(wanted: Wanted, store: Store) -> Reproduction:
    """Collects what is stored of all alternatives that are known."""
    return gather(wanted, wanted.known(), store)


def gather(wanted: Wanted, known: Sequence[Alternative], store: Store) -> Reproduction:
    """Collects what is stored of some alternatives; those not wanted say what they would change."""
    records: dict[Job, Record | None] = {}
    tried: dict[str, dict[str, Tried]] = {}
    untried: dict[str, dict[str, Alternative]] = {}
    defaults: dict[str, Alternative] = {}
    programs: dict[str, dict[str, Results]] = {}
    for item in known:
        name = item.study.id
        if item.kind == PROGRAMS:
            if wanted.tries(item):
                alone = {DEFAULT: _tried(item, store, records)}
                programs.setdefault(item.name, {})[name] = Results(item.study, item.jobs, alone)
            continue
        if item.kind == BY_DEFAULT:
            defaults[name] = item
        if wanted.tries(item):
            tried.setdefault(name, {})[item.name] = _tried(item, store, records)
        else:
            untried.setdefault(name, {})[item.name] = item
    results = {
        name: Results(item.study, item.jobs, tried[name], untried.get(name, {}))
        for name, item in defaults.items()
    }
    return Reproduction(wanted, results, programs)


def _tried(item: Alternative, store: Store, known: dict[Job, Record | None]) -> Tried:
    for job in item.jobs:
        if job not in known:
            text = store.get(digest(job))
            known[job] = None if text is None else record_of(job, text)
    found = [(job, known[job]) for job in item.jobs]
    there = [(job, record) for job, record in found if record is not None]
    lacking = tuple(job for job, record in found if record is None)
    return Tried(item.kind, best_of_aliases(there), lacking, item.changed, item.metrics)
