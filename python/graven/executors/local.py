"""This host: `--on local`, the default."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import frexp

from graven.executors import estimates
from graven.laboratory.crashes import CrashJob
from graven.running.job import Job
from graven.running.pool import host_cores
from graven.running.requests import Asked
from graven.running.work import Ended, Local, Todo


@dataclass(frozen=True)
class LongestFirst(Local):
    """This host, with what takes longest begun first: at the end no core waits for another long.

    Simulations that begin alike come one after another, since the engine does once what they have
    in common; as many such groups as there are threads take turns, so that no thread waits for
    another's beginning. Jobs that take about as long, within a factor of two or so, stay in the
    order of the work.
    """

    def costs(self, todo: Todo) -> Sequence[float]:
        """About how long each takes, in seconds."""
        return estimates.of_all(todo)

    def run(self, todo: Todo) -> Ended:
        """Does what is left of some work."""
        order = self.ordered({at: todo.work[at].job for at in todo.left})
        return super().run(replace(todo, left=order))

    def ordered(self, jobs: Mapping[int, Job | CrashJob | Asked]) -> list[int]:
        """Places of jobs, in the order in which they are begun."""
        scale = {at: frexp(estimates.seconds(job))[1] for at, job in jobs.items()}
        groups: dict[Hashable, list[int]] = {}
        for at in sorted(jobs, key=lambda at: -scale[at]):
            groups.setdefault(_beginning(at, jobs[at]), []).append(at)
        of_all, threads = list(groups.values()), self.workers or host_cores()
        together = (of_all[first : first + threads] for first in range(0, len(of_all), threads))
        turns = (turn for several in together for turn in zip_longest(*several))
        return [at for turn in turns for at in turn if at is not None]


def _beginning(at: int, job: Job | CrashJob | Asked) -> Hashable:
    """About what jobs have in common that begin alike; the place of a job that is unknown."""
    run = job.job if isinstance(job, CrashJob) else job
    if not isinstance(run, Job):
        return at
    return run.workload, run.threads, run.transactions, run.seed
