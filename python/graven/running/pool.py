"""The pool: tasks of the engine that run on threads of this process, as far as memory goes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from graven import _engine
from graven.basics.errors import OutputError, StoreError
from graven.running.host_memory import Limit, limit, refusal

_KNOWN = (
    *(_engine.SimulationError, _engine.ConfigError, _engine.TraceError),
    *(OutputError, StoreError),
)
"""Errors whose text says what went wrong."""

POLL_SECONDS = 0.1
"""Time between two looks at simulations that run; also the longest wait after Ctrl-C."""

EARLY_SECONDS = 60.0
"""Time for which the pace of less than a hundredth of an experiment tells nothing."""

GRACE_SECONDS = 2.0
"""Longest time that a cancelled simulation takes to stop before it is left behind."""


class Task(Protocol):
    """Work of the engine: a simulation, a replay of a trace, a campaign of the laboratory."""

    def run(self) -> str:
        """Runs to the end."""

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""


def violations_found(task: Task) -> list[str]:
    """Violations that a task has found since the last call; nothing of one that looks for none."""
    say: Callable[[], list[str]] | None = getattr(task, "found", None)
    return [] if say is None else say()


def memory_need(task: Task) -> int:
    """Memory of the host that a task needs, at most, in bytes; 0 if it does not say."""
    say: Callable[[], int] | None = getattr(task, "memory_bytes", None)
    return 0 if say is None else say()


def lend(task: Task, threads: int) -> None:
    """Lets a task use a number of threads of the host at a time, if it can use several."""
    take: Callable[[int], None] | None = getattr(task, "lend", None)
    if take is not None:
        take(threads)


@dataclass(frozen=True)
class Failure:
    """A simulation that did not end well."""

    label: str
    message: str
    error: BaseException


def failures_text(failures: Sequence[Failure]) -> str:
    """One line for each failure."""
    return "\n".join(f"{failure.label}: {failure.message}" for failure in failures)


def kind_of(failures: Sequence[Failure], *others: type[Exception]) -> type[Exception]:
    """The error that is raised for failures: the kind that all are of, or `SimulationError`.

    Args:
        failures: Tasks that did not end well.
        others: Kinds that are raised as they are, beside those of files and stores.
    """
    kinds: tuple[type[Exception], ...] = (OutputError, StoreError, *others)
    for kind in kinds:
        if all(isinstance(failure.error, kind) for failure in failures):
            return kind
    return _engine.SimulationError


@dataclass(frozen=True)
class Snapshot:
    """Progress of an experiment.

    Attributes:
        done: Tasks that are done, in the units that the experiment counts in.
        total: All of them.
        fraction: Share that is done, with a part of what is running.
        running: Labels of the tasks that run.
        elapsed_seconds: Time since it began or continued.
        fraction_before: Share that was done then.
        checked: Power failures checked since then, where power fails.
        minimising: Number of those running that have a violation, whose program they minimise.
        parts: What each that runs has done, in words, where they count what the experiment counts.
        found: Violations that were found since the snapshot before, a line each, in that order.
    """

    done: int
    total: int
    fraction: float
    running: tuple[str, ...]
    elapsed_seconds: float
    fraction_before: float = 0.0
    checked: int | None = None
    minimising: int = 0
    parts: tuple[str, ...] = ()
    found: tuple[str, ...] = ()

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the pace so far; `None` before there is one."""
        came = self.fraction - self.fraction_before
        if came <= 0.0 or (came < 0.01 and self.elapsed_seconds < EARLY_SECONDS):
            return None
        return self.elapsed_seconds * (1.0 - self.fraction) / came


Observer = Callable[[Snapshot], None]


@dataclass(frozen=True)
class Outcome:
    """Result of an experiment: texts by position, failures, and whether it was interrupted."""

    texts: Mapping[int, str]
    failures: tuple[Failure, ...]
    interrupted: bool


@dataclass
class Pool:
    """Runs tasks on a fixed number of threads; `tasks` may make each when it is taken.

    As one begins, those that come next are made, one for each thread: simulations that begin alike
    share what they begin with as long as one of them is there that has not begun.

    Threads that are left where there are fewer tasks are lent to these, as many to each: a
    simulation in pieces uses them.

    A task that says how much memory it needs begins when the others leave as much. One that does
    not fit even alone is refused before it begins, and the others run.

    Attributes:
        tasks: Label and task of each.
        workers: Number of threads.
        find: Finds how much memory those that run may take together, before the first begins.
        costs: About how long each takes, in any unit; all the same if empty.
    """

    tasks: Sequence[tuple[str, Task]]
    workers: int
    find: Callable[[], Limit | None] = limit
    costs: Sequence[float] = ()
    _cost_over: float = 0.0
    _next: int = 0
    _made: int = 0
    _stopping: bool = False
    _running: dict[int, tuple[str, Task]] = field(default_factory=dict)
    _needs: dict[int, int] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _failures: dict[int, Failure] = field(default_factory=dict)
    _found: list[str] = field(default_factory=list)
    _working: int = 0
    _idle: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def run(self, observe: Observer | None = None) -> Outcome:
        """Runs all tasks, or those that finish before an interrupt (Ctrl-C).

        Raises:
            ConfigError: the variable for a limit of memory is no size; nothing has run.
        """
        self._limit = self.find()
        started = time.monotonic()
        count = max(1, min(self.workers, len(self.tasks)))
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        self._working = count
        interrupted = False
        try:
            self._start(threads)
            # Not by joining them: a join that is interrupted takes its thread for ended.
            idle = False
            while not idle:
                idle = self._idle.wait(POLL_SECONDS)
                if observe is not None:
                    observe(self._snapshot(started))
        except KeyboardInterrupt:
            interrupted = True
            self._stop()
            last = self._snapshot(started)
            if observe is not None and last.found:
                observe(last)
        with self._lock:
            failures = tuple(self._failures[index] for index in sorted(self._failures))
            return Outcome(dict(sorted(self._texts.items())), failures, interrupted)

    def _start(self, threads: Sequence[threading.Thread]) -> None:
        """Starts as many threads as there is memory for; without any nothing can run."""
        for started, thread in enumerate(threads):
            try:
                thread.start()
            except RuntimeError as error:
                with self._lock:
                    self._working -= len(threads) - started
                    if started == 0:
                        for index, (label, _) in enumerate(self.tasks):
                            self._failed(index, Failure(label, f"out of memory: {error}", error))
                    if self._working == 0:
                        self._idle.set()
                return

    def _stop(self) -> None:
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
            running = list(self._running.values())
        for _, task in running:
            task.cancel()
        try:
            self._idle.wait(GRACE_SECONDS)
        except KeyboardInterrupt:
            return  # asked twice: do not even wait

    def _work(self) -> None:
        try:
            self._work_off()
        finally:
            with self._lock:
                self._working -= 1
                if self._working == 0:
                    self._idle.set()

    def _work_off(self) -> None:
        while (taken := self._take()) is not None:
            index, label, task = taken
            text: str | None = None
            failure: Failure | None = None
            try:
                text = task.run()
            except _engine.Cancelled:
                pass
            except _KNOWN as error:
                failure = Failure(label, str(error), error)
            except MemoryError as error:
                failure = Failure(label, "out of memory", error)
            except BaseException as error:  # a panic in the engine is not an `Exception`
                failure = Failure(label, f"internal error of the engine: {error}", error)
            with self._lock:
                self._take_found(label, task)
                self._running.pop(index, None)
                self._needs.pop(index, None)
                self._lock.notify_all()
                if text is not None:
                    self._texts[index] = text
                    self._cost_over += self._cost(index)
                if failure is not None:
                    self._failed(index, failure)

    def _take(self) -> tuple[int, str, Task] | None:
        """The next task, once it fits; `None` if there will be no more."""
        with self._lock:
            while not self._stopping and self._next < len(self.tasks):
                index = self._next
                label, task = self.tasks[index]
                lend(task, self._threads_of_each)
                need = memory_need(task)
                if self._limit is None or need <= self._limit.bytes - sum(self._needs.values()):
                    self._next += 1
                    self._running[index] = label, task
                    self._needs[index] = need
                    self._make_ahead()
                    return index, label, task
                if self._running:
                    # A task that ends makes room.
                    self._lock.wait(POLL_SECONDS)
                else:
                    self._next += 1
                    message = refusal(need, self._limit)
                    self._failed(index, Failure(label, message, _engine.ConfigError(message)))
            return None

    def _make_ahead(self) -> None:
        """Has those made that come next, each once: a task is made when it says what it needs."""
        first, end = max(self._next, self._made), self._next + self.workers
        for _, task in self.tasks[first:end]:
            memory_need(task)
        self._made = max(self._made, end)

    @property
    def _threads_of_each(self) -> int:
        return max(1, self.workers // max(1, len(self.tasks)))

    @cached_property
    def _cost_of_all(self) -> float:
        return sum(self.costs) if self.costs else float(len(self.tasks))

    def _failed(self, index: int, failure: Failure) -> None:
        self._failures[index] = failure
        self._cost_over += self._cost(index)

    def _cost(self, index: int) -> float:
        return self.costs[index] if self.costs else 1.0

    def _take_found(self, label: str, task: Task) -> None:
        self._found += [
            f"{label} violates its guarantee: {text}" for text in violations_found(task)
        ]

    def _snapshot(self, started: float) -> Snapshot:
        with self._lock:
            running = dict(self._running)
            for label, task in running.values():
                self._take_found(label, task)
            found, self._found = tuple(self._found), []
            done = len(self._texts) + len(self._failures)
            over = self._cost_over
        parts = ((self._cost(index), *task.progress()) for index, (_, task) in running.items())
        over += sum(cost * part / whole for cost, part, whole in parts if whole > 0)
        total = len(self.tasks)
        return Snapshot(
            done,
            total,
            min(1.0, over / self._cost_of_all) if self._cost_of_all else 1.0,
            tuple(label for label, _ in running.values()),
            time.monotonic() - started,
            found=found,
        )


class Wrapped:
    """A task around another, which does what that one does."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def run(self) -> str:
        """Runs to the end."""
        return self._task.run()

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""
        return self._task.progress()

    def memory_bytes(self) -> int:
        """Memory of the host that it needs, at most."""
        return memory_need(self._task)

    def lend(self, threads: int) -> None:
        """Lets it use a number of threads of the host."""
        lend(self._task, threads)

    def found(self) -> list[str]:
        """Violations that it has found since the last call."""
        return violations_found(self._task)


class Timed(Wrapped):
    """A task with the host's time that it took, in seconds."""

    host_s: float | None = None

    def run(self) -> str:
        """Runs to the end."""
        started = time.monotonic()
        text = super().run()
        self.host_s = time.monotonic() - started
        return text


class Deferred:
    """A task that is made when it is looked at: what the engine has of a simulation is 20 KB."""

    def __init__(self, make: Callable[[], Task]) -> None:
        self._make = make
        self._task: Task | None = None
        self._is_cancelled = False
        self._threads = 1
        self._found: list[str] = []

    def _made(self) -> Task:
        if self._task is None:
            self._task = self._make()
            lend(self._task, self._threads)
        return self._task

    def lend(self, threads: int) -> None:
        """Lets it use a number of threads of the host."""
        self._threads = threads
        if (task := self._task) is not None:
            lend(task, threads)

    def run(self) -> str:
        """Makes the task if it has not been, and runs it to the end."""
        task = self._made()
        if self._is_cancelled:
            task.cancel()
        try:
            return task.run()
        finally:
            self._found += violations_found(task)
            self._task = None

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._is_cancelled = True
        if (task := self._task) is not None:
            task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all; nothing of nothing while there is no task."""
        return (0, 0) if (task := self._task) is None else task.progress()

    def found(self) -> list[str]:
        """Violations that it has found since the last call."""
        found, self._found = self._found, []
        return found + ([] if (task := self._task) is None else violations_found(task))

    def memory_bytes(self) -> int:
        """Memory of the host that it needs, at most; nothing if the engine refuses it."""
        try:
            return memory_need(self._made())
        except (_engine.ConfigError, _engine.TraceError):
            return 0  # it is refused as it is run


def host_cores() -> int:
    """Host cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
