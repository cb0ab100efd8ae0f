"""Work: jobs with their tasks, run where an executor runs them; each result is kept as it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graven.running.pool import (
    Failure,
    Observer,
    Pool,
    Task,
    Timed,
    host_cores,
)


class Keep(Protocol):
    """What keeps results, and finds those that are there (`graven.store.keeper.Keeper`)."""

    def found(self, job: Any) -> tuple[str, float | None] | None:  # noqa: ANN401 - any kind of job
        """The result of a job, if it is there, and how long it took, in seconds."""

    def kept(self, job: Any, task: Task) -> Task:  # noqa: ANN401 - any kind of job
        """A task that keeps its result as soon as it is there."""


@dataclass(frozen=True)
class Work:
    """A job that can be run.

    Attributes:
        label: How progress and failures call it.
        job: What it was asked for.
        task: What the engine runs.
    """

    label: str
    job: Any
    task: Task


Sink = Callable[[int, str, float | None], None]
"""Takes a result as it comes: its position, its text, and how long it took in seconds."""


@dataclass(frozen=True)
class Ended:
    """How work ended: what did not end well, and whether it was interrupted."""

    failures: tuple[Failure, ...] = ()
    interrupted: bool = False


class Executor(Protocol):
    """Where work is done: on this host, or on others (`graven.executors`)."""

    def run(
        self,
        work: Sequence[Work],
        left: Sequence[int],
        *,
        keep: Keep | None,
        sink: Sink,
        observe: Observer | None,
    ) -> Ended:
        """Does what is left of some work, and hands each result over once; keeps them, too.

        Results come in any order, from any thread, one at a time. What fails is in what is
        returned, and the rest goes on.
        """


@dataclass(frozen=True)
class Local:
    """This process, with a thread for each of `workers` simulations at a time.

    Attributes:
        workers: How many; one for each host core if nothing is said.
    """

    workers: int | None = None

    def costs(self, work: Sequence[Work], left: Sequence[int]) -> Sequence[float]:
        """How long each takes, about; nothing if nothing is known."""
        del work, left
        return ()

    def run(
        self,
        work: Sequence[Work],
        left: Sequence[int],
        *,
        keep: Keep | None,
        sink: Sink,
        observe: Observer | None,
    ) -> Ended:
        """Does it in the order of `left`."""
        one_at_a_time = threading.Lock()
        tasks: list[tuple[str, Task]] = []
        for at in left:
            item = work[at]
            task = item.task if keep is None else keep.kept(item.job, item.task)
            tasks.append((item.label, _HandedOver(task, at, sink, one_at_a_time)))
        costs = self.costs(work, left)
        outcome = Pool(tasks, self.workers or host_cores(), costs=costs).run(observe)
        return Ended(outcome.failures, outcome.interrupted)


class _HandedOver(Timed):
    """A task whose result goes to a sink, and is not held any longer."""

    def __init__(self, task: Task, at: int, sink: Sink, lock: threading.Lock) -> None:
        super().__init__(task)
        self._at, self._sink, self._lock = at, sink, lock

    def run(self) -> str:
        text = super().run()
        with self._lock:
            self._sink(self._at, text, self.host_s)
        return ""


HERE = Local()
"""This host, with all its cores."""


@dataclass(frozen=True)
class Ran:
    """What came of some work.

    Attributes:
        texts: Results by position.
        host_s: How long each took, in seconds, if that is known.
        found: How many results were there before.
        failures: What did not end well.
        interrupted: Whether it was interrupted.
    """

    texts: Mapping[int, str]
    host_s: Mapping[int, float | None]
    found: int
    failures: tuple[Failure, ...]
    interrupted: bool


def run_all(
    work: Sequence[Work],
    *,
    keep: Keep | None = None,
    executor: Executor = HERE,
    observe: Observer | None = None,
) -> Ran:
    """Runs what has no result yet, several at a time, and keeps each result as it comes."""
    there = {} if keep is None else {at: keep.found(item.job) for at, item in enumerate(work)}
    results = {at: result for at, result in there.items() if result is not None}
    found = len(results)
    left = [at for at in range(len(work)) if at not in results]

    def sink(at: int, text: str, host_s: float | None) -> None:
        results[at] = (text, host_s)

    ended = Ended()
    if left:
        ended = executor.run(work, left, keep=keep, sink=sink, observe=observe)
    came = dict(sorted(results.items()))
    return Ran(
        {at: text for at, (text, _) in came.items()},
        {at: seconds for at, (_, seconds) in came.items()},
        found,
        ended.failures,
        ended.interrupted,
    )
