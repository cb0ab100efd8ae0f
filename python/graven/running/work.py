"""Work: jobs with their tasks, run where an executor runs them; each result is kept as it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graven.running.pool import Failure, Observer, Pool, Task, Timed, host_cores


class Keep(Protocol):
    """Keeper of results, which finds those that it has (`graven.store.keeper.Keeper`)."""

    def found(self, job: Any) -> tuple[str, float | None] | None:  # noqa: ANN401 - any kind of job
        """The result of a job, if it is kept, and how long it took, in seconds."""

    def kept(self, job: Any, task: Task) -> Task:  # noqa: ANN401 - any kind of job
        """A task that keeps its result as soon as it has one."""


@dataclass(frozen=True)
class Work:
    """A job that can be run.

    Attributes:
        label: Name in progress and failures.
        job: The request, under which the result is kept.
        task: The task for the engine.
    """

    label: str
    job: Any
    task: Task


Sink = Callable[[int, str, float | None], None]
"""Takes a result as it comes: its position, its text, and how long it took in seconds."""


@dataclass(frozen=True)
class Todo:
    """Work that is left, and what becomes of its results.

    Attributes:
        work: All jobs.
        left: Positions of those that have no result.
        sink: Takes each result once, in any order, from any thread, one at a time.
        keep: Keeper of results, if they are kept.
        observe: Called with the progress several times a second.
    """

    work: Sequence[Work]
    left: Sequence[int]
    sink: Sink
    keep: Keep | None
    observe: Observer | None


@dataclass(frozen=True)
class Ended:
    """The end of some work: what did not end well, and whether it was interrupted."""

    failures: tuple[Failure, ...] = ()
    interrupted: bool = False


class Executor(Protocol):
    """A place where work is done: this host, or others (`graven.executors`)."""

    def run(self, todo: Todo) -> Ended:
        """Does what is left; of what fails it tells in the end, and does the rest."""


@dataclass(frozen=True)
class Local:
    """This process, with a thread for each of `workers` simulations at a time.

    Attributes:
        workers: Number of threads; one for each host core if not given.
    """

    workers: int | None = None

    def costs(self, todo: Todo) -> Sequence[float]:
        """About how long each takes that is left, in seconds; empty if nothing is known."""
        del todo
        return ()

    def run(self, todo: Todo) -> Ended:
        """Does it in the order of `left`."""
        one_at_a_time = threading.Lock()
        tasks: list[tuple[str, Task]] = []
        for at in todo.left:
            item = todo.work[at]
            task = item.task if todo.keep is None else todo.keep.kept(item.job, item.task)
            tasks.append((item.label, _HandedOver(task, at, todo.sink, one_at_a_time)))
        pool = Pool(tasks, self.workers or host_cores(), costs=self.costs(todo))
        outcome = pool.run(todo.observe)
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


@dataclass(frozen=True)
class How:
    """Way in which work is run.

    Attributes:
        keep: Finds results, and keeps new ones; without, no result is kept.
        executor: Place where it is run; this host, with all its cores, if not given.
        observe: Called with the progress several times a second.
    """

    keep: Keep | None = None
    executor: Executor = Local()
    observe: Observer | None = None


HERE = How()
"""On this host, with all its cores, without keeping anything."""


@dataclass(frozen=True)
class Ran:
    """Results of some work.

    Attributes:
        texts: Results by position.
        host_s: Host's time that each took, in seconds, if that is known.
        found: Number of results that were kept before.
        failures: Jobs that did not end well.
        interrupted: True if it was interrupted.
    """

    texts: Mapping[int, str]
    host_s: Mapping[int, float | None]
    found: int
    failures: tuple[Failure, ...]
    interrupted: bool


Came = Callable[[int, str], None]
"""Told of each result that is run, as it comes: its position and its text."""


def run_all(work: Sequence[Work], how: How = HERE, came: Came | None = None) -> Ran:
    """Runs what has no result yet, several at a time, and keeps each result as it comes."""
    keep = how.keep
    there = {} if keep is None else {at: keep.found(item.job) for at, item in enumerate(work)}
    results = {at: result for at, result in there.items() if result is not None}
    found = len(results)
    left = [at for at in range(len(work)) if at not in results]

    def sink(at: int, text: str, host_s: float | None) -> None:
        results[at] = (text, host_s)
        if came is not None:
            came(at, text)

    ended = Ended()
    if left:
        ended = how.executor.run(Todo(work, left, sink, keep, how.observe))
    ordered = dict(sorted(results.items()))
    return Ran(
        {at: text for at, (text, _) in ordered.items()},
        {at: seconds for at, (_, seconds) in ordered.items()},
        found,
        ended.failures,
        ended.interrupted,
    )
