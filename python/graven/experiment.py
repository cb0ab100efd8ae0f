"""Experiments: a matrix of simulations, run several at a time.

The engine releases the interpreter's lock while it simulates, so a thread for each host core keeps
the host busy. Results come back in the order of the matrix, whichever finished first. An interrupt
cancels what is running at once and keeps what has finished.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

from graven import _engine
from graven.declarations import catalogue
from graven.errors import OutputError, StoreError
from graven.figures import exact
from graven.host_memory import Budget, refusal
from graven.machine import Machine
from graven.output import growing
from graven.records import KIND, STEADY, Record, parse_record
from graven.selection import Choice, Variation
from graven.variants import NO_VARIANTS, OPTION, Variant, pairs_of

POLL_SECONDS = 0.1
"""How often a waiting experiment looks at its simulations; also the longest wait after Ctrl-C."""

EARLY_SECONDS = 60.0
"""How long the pace of less than a hundredth of an experiment says nothing."""

GRACE_SECONDS = 2.0
"""How long a cancelled simulation may take to stop before it is left behind."""


TRACE_ENDING = ".gvt"
"""How the name of a program trace ends, which may stand for a workload."""


REQUESTS_ENDING = ".grt"
"""How the name of a binary trace of memory requests ends; others are NVMain's text."""


def is_binary(requests: str | PathLike[str]) -> bool:
    """Whether a trace of memory requests that is to be written is a binary one."""
    return fspath(requests).endswith(REQUESTS_ENDING)


def is_trace(workload: str) -> bool:
    """Whether a workload is a program trace: it has threads and transactions of its own."""
    return workload.endswith(TRACE_ENDING)


def workload_name(workload: str) -> str:
    """What records call a workload: of a program trace, the file's name without its ending."""
    return Path(workload).name.removesuffix(TRACE_ENDING) if is_trace(workload) else workload


class Task(Protocol):
    """What the engine runs: a simulation, a replay of a trace, a campaign of the laboratory."""

    def run(self) -> str:
        """Runs to the end."""

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""


def memory_need(task: Task) -> int:
    """Memory of the host that a task needs, at most, in bytes; 0 if it does not say."""
    say: Callable[[], int] | None = getattr(task, "memory_bytes", None)
    return 0 if say is None else say()


FILES = ("request_trace", "bank_loads", "timeline", "program_trace")
"""Attributes of jobs that name files which a simulation leaves beside its result."""


@dataclass(frozen=True)
class Job:
    """One simulation to run.

    Attributes:
        varied: Key, value and origin of what is varied.
        alias: The name that the design is compared under, if it is another.
        members: The number of designs that have that name: the fastest stands for it.
        own: What a variant of that name sets, beside what all designs have; nothing of others.
        timeline: A file for what happens while some transactions run.
        timeline_transactions: The numbers of the first and the last of these, in the order in which
            transactions of all threads begin; if not given, some in the middle of the run.
        binary_requests: Whether `request_trace` is to be binary, or NVMain's text.
    """

    design: str
    workload: str
    machine: Machine
    threads: int | None = None
    transactions: int | None = None
    seed: int = 1
    settings: tuple[tuple[str, str], ...] = ()
    request_trace: str | None = None
    bank_loads: str | None = None
    timeline: str | None = None
    timeline_transactions: tuple[int, int] | None = None
    varied: tuple[tuple[str, str, str], ...] = ()
    alias: str | None = None
    members: int = 1
    own: tuple[tuple[str, str], ...] | None = None
    program_trace: str | None = None
    binary_requests: bool = False

    @property
    def label(self) -> str:
        """How progress and failures call it."""
        threads = "" if self.threads is None else f" ×{self.threads}"
        varied = "".join(f", {key} = {value}" for key, value, _ in self.read)
        return f"{self._called} on {self.workload}{threads}{varied}"

    @property
    def name(self) -> str:
        """The name that the design is compared under."""
        return self.alias or self.design

    @property
    def _called(self) -> str:
        if self.own is None:
            return self.design
        return self.name if self.members == 1 else f"{self.name} ({self.design})"

    @property
    def read(self) -> tuple[tuple[str, str, str], ...]:
        """The varied values that the design reads; it runs the same whatever the others are."""
        reads = catalogue().reads
        return tuple(item for item in self.varied if reads(self.design, item[0]))

    @property
    def asked(self) -> Job:
        """The simulation that it asks for, whatever it is called and whatever it leaves beside.

        Two jobs that ask for one are run once. Whether a value is set or varied makes no
        difference, nor does a varied key that the design does not read.
        """
        return replace(
            self.without_files, settings=self.all_set, varied=(), alias=None, members=1, own=None
        )

    @property
    def all_set(self) -> tuple[tuple[str, str], ...]:
        """Every key that is set, varied and read, or the variant's own, once, by key."""
        varied = ((key, value) for key, value, _ in self.read)
        return tuple(sorted((dict(self.settings) | dict(varied) | dict(self.own or ())).items()))

    @property
    def files(self) -> dict[str, str]:
        """The files that it leaves, by the names of the attributes that name them."""
        named = {name: getattr(self, name) for name in FILES}
        return {name: path for name, path in named.items() if path is not None}

    @property
    def without_files(self) -> Job:
        """The same, for its result alone."""
        nothing: dict[str, Any] = dict.fromkeys((*FILES, "timeline_transactions"))
        return replace(self, **nothing)

    def spec_json(self) -> str:
        """As the engine takes it."""
        timeline = {"file": self.timeline, "transactions": self.timeline_transactions}
        spec: dict[str, Any] = {
            "design": self.design,
            "workload": self.workload,
            "machine": self.machine.spec(),
            "threads": self.threads,
            "transactions": self.transactions,
            "seed": self.seed,
            "set": [list(setting) for setting in self.settings],
            "vary": [list(varied) for varied in (*self.read, *self._own_as_varied)],
            "request_trace": self.request_trace,
            "bank_loads": self.bank_loads,
            "timeline": None if self.timeline is None else timeline,
            "program_trace": self.program_trace,
        }
        if self.request_trace is not None:
            spec["binary_requests"] = self.binary_requests
        return json.dumps(spec)

    @property
    def _own_as_varied(self) -> list[tuple[str, str, str]]:
        """What the variant sets, with its origin for messages."""
        return [(key, value, f"{OPTION} {self.alias}") for key, value in self.own or ()]

    def simulation(self) -> _engine.Simulation:
        """Hands the job to the engine, which checks it.

        Raises:
            ConfigError: the engine refuses it.
        """
        return _engine.Simulation(self.spec_json())


def matrix(
    designs: Sequence[str],
    workloads: Sequence[str],
    machine: Machine,
    *,
    threads: Sequence[int | None] = (None,),
    transactions: int | None = None,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    vary: Sequence[Variation] = (),
    variants: Mapping[str, Variant] = NO_VARIANTS,
) -> list[Job]:
    """All combinations, workloads first, so that early results already compare designs.

    A name that stands for others has a job for each of them; `Experiment.run` keeps the best. A
    program trace among the workloads is run once, with its own threads.
    """
    pairs = tuple((settings or {}).items())
    # The end of a trace is the end of its run.
    whole = tuple(pair for pair in pairs if pair != (KIND, STEADY))
    compared = [
        (name, catalogue().members(of.design), None if name not in variants else pairs_of(of))
        for name in designs
        for of in [variants.get(name, Variant(name))]
    ]
    choices = [[(item.key, value, item.origin) for value in item.values] for item in vary]
    return [
        Job(
            design,
            workload,
            machine,
            None if is_trace(workload) else count,
            None if is_trace(workload) else transactions,
            seed,
            whole if is_trace(workload) else pairs,
            varied=varied,
            alias=None if design == name else name,
            members=len(members),
            own=own,
        )
        for varied in itertools.product(*choices)
        for at, count in enumerate(threads)
        for workload in workloads
        if at == 0 or not is_trace(workload)
        for name, members, own in compared
        for design in members
    ]


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
    """What is raised for failures: the kind that all are of, or `SimulationError`.

    Args:
        failures: What did not end well.
        others: Kinds that are raised as they are, beside those of files and stores.
    """
    kinds: tuple[type[Exception], ...] = (OutputError, StoreError, *others)
    for kind in kinds:
        if all(isinstance(failure.error, kind) for failure in failures):
            return kind
    return _engine.SimulationError


@dataclass(frozen=True)
class Snapshot:
    """How far an experiment is.

    Attributes:
        done: Tasks that are done, in the units that the experiment counts in.
        total: All of them.
        fraction: How much is done, with a share of what is running.
        running: What is running.
        elapsed_seconds: Since it began or went on.
        fraction_before: How much was done then.
        checked: Power failures checked since then, where power fails.
        minimising: How many of those running have a violation, whose program they minimise.
    """

    done: int
    total: int
    fraction: float
    running: tuple[str, ...]
    elapsed_seconds: float
    fraction_before: float = 0.0
    checked: int | None = None
    minimising: int = 0

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
    """What came of an experiment: texts by position, failures, and whether it was interrupted."""

    texts: Mapping[int, str]
    failures: tuple[Failure, ...]
    interrupted: bool


WAITING_MOST = 64
"""So many tasks that wait for memory are passed over for one that fits."""


@dataclass
class Pool:
    """Runs tasks on a fixed number of threads; `tasks` may make each when it is taken.

    As one begins, those that come next are made, one for each thread: simulations that begin alike
    share what they begin with as long as one of them is there that has not begun.

    A task that says how much memory it needs begins when that is there, and others go before it as
    long as it is not. One that does not fit even alone is refused, and the others go on.

    Attributes:
        tasks: What progress calls each, and the task.
        workers: How many threads.
        budget: How much memory those that run may take together.
        costs: How long each takes, about, in any unit; all the same if nothing is said.
    """

    tasks: Sequence[tuple[str, Task]]
    workers: int
    budget: Budget = field(default_factory=Budget)
    costs: Sequence[float] = ()
    _cost_over: float = 0.0
    _next: int = 0
    _made: int = 0
    _stopping: bool = False
    _waiting: dict[int, tuple[str, Task, int]] = field(default_factory=dict)
    _running: dict[int, tuple[str, Task]] = field(default_factory=dict)
    _needs: dict[int, int] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _failures: dict[int, Failure] = field(default_factory=dict)
    _working: int = 0
    _idle: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def run(self, observe: Observer | None = None) -> Outcome:
        """Runs all tasks, or those that finish before an interrupt (Ctrl-C)."""
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
            except (_engine.SimulationError, _engine.ConfigError, _engine.TraceError) as error:
                failure = Failure(label, str(error), error)
            except (OutputError, StoreError) as error:
                failure = Failure(label, str(error), error)
            except MemoryError as error:
                failure = Failure(label, "out of memory", error)
            except BaseException as error:  # a panic in the engine is not an `Exception`
                failure = Failure(label, f"internal error of the engine: {error}", error)
            with self._lock:
                self._running.pop(index, None)
                self._needs.pop(index, None)
                self._lock.notify_all()
                if text is not None:
                    self._texts[index] = text
                    self._cost_over += self._cost(index)
                if failure is not None:
                    self._failed(index, failure)

    def _take(self) -> tuple[int, str, Task] | None:
        """The next task that fits, once there is one; `None` if there will be no more."""
        with self._lock:
            while not self._stopping:
                found = next((index for index in self._looked_at() if self._fits(index)), None)
                if found is not None:
                    label, task, need = self._waiting.pop(found)
                    self._running[found] = label, task
                    self._needs[found] = need
                    self._make_ahead()
                    return found, label, task
                if not self._waiting:
                    return None
                if not self._running:
                    self._refuse(next(iter(self._waiting)))
                else:
                    # Whoever ends makes room; what others leave on the host is not told.
                    self._lock.wait(POLL_SECONDS)
            return None

    def _looked_at(self) -> Iterator[int]:
        """The tasks that wait for memory, then others, each made when it is looked at."""
        yield from tuple(self._waiting)
        while self._next < len(self.tasks) and len(self._waiting) < WAITING_MOST:
            index = self._next
            self._next += 1
            label, task = self.tasks[index]
            self._waiting[index] = label, task, memory_need(task)
            yield index

    def _make_ahead(self) -> None:
        """Has those made that come next, each once: a task is made when it says what it needs."""
        first, end = max(self._next, self._made), self._next + self.workers
        for _, task in self.tasks[first:end]:
            memory_need(task)
        self._made = max(self._made, end)

    def _fits(self, index: int) -> bool:
        _, _, need = self._waiting[index]
        return need == 0 or self.budget.lacks(need, sum(self._needs.values())) is None

    def _refuse(self, index: int) -> None:
        """Refuses a task that does not fit alone, unless it does by now."""
        label, task, _ = self._waiting[index]
        need = memory_need(task)
        self._waiting[index] = label, task, need
        lacking = self.budget.lacks(need, 0)
        if lacking is not None:
            del self._waiting[index]
            message = refusal(need, lacking)
            self._failed(index, Failure(label, message, _engine.ConfigError(message)))

    @cached_property
    def _cost_of_all(self) -> float:
        return sum(self.costs) if self.costs else float(len(self.tasks))

    def _failed(self, index: int, failure: Failure) -> None:
        self._failures[index] = failure
        self._cost_over += self._cost(index)

    def _cost(self, index: int) -> float:
        return self.costs[index] if self.costs else 1.0

    def _snapshot(self, started: float) -> Snapshot:
        with self._lock:
            running = dict(self._running)
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
        )


class Keep(Protocol):
    """What keeps results, and finds those that are there (`graven.store.keeping.Keeper`)."""

    def found(self, job: Any) -> tuple[str, float | None] | None:  # noqa: ANN401 - any kind of job
        """The result of a job, if it is there, and how long it took, in seconds."""

    def kept(self, job: Any, task: Task) -> Task:  # noqa: ANN401 - any kind of job
        """A task that keeps its result as soon as it is there."""


class Timed:
    """A task with the host's time that it took, in seconds."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.host_s: float | None = None

    def run(self) -> str:
        """Runs to the end."""
        started = time.monotonic()
        text = self._task.run()
        self.host_s = time.monotonic() - started
        return text

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""
        return self._task.progress()

    def memory_bytes(self) -> int:
        """Memory of the host that it needs, at most."""
        return memory_need(self._task)


class Deferred:
    """A task that is made when it is looked at: what the engine has of a simulation is 20 KB."""

    def __init__(self, make: Callable[[], Task]) -> None:
        self._make = make
        self._task: Task | None = None
        self._is_cancelled = False

    def _made(self) -> Task:
        if self._task is None:
            self._task = self._make()
        return self._task

    def run(self) -> str:
        """Makes the task if it has not been, and runs it to the end."""
        task = self._made()
        if self._is_cancelled:
            task.cancel()
        try:
            return task.run()
        finally:
            self._task = None

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._is_cancelled = True
        if (task := self._task) is not None:
            task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all; nothing of nothing while there is no task."""
        return (0, 0) if (task := self._task) is None else task.progress()

    def memory_bytes(self) -> int:
        """Memory of the host that it needs, at most; nothing if the engine refuses it."""
        try:
            return memory_need(self._made())
        except (_engine.ConfigError, _engine.TraceError):
            return 0  # it is refused as it is run


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
    """This process, with a thread for each of so many simulations at a time.

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
"""Experiments of up to so many simulations are checked as a whole before the first one runs."""


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

    def run(
        self,
        *,
        keep: Keep | None = None,
        executor: Executor = HERE,
        observe: Observer | None = None,
    ) -> Result:
        """Runs those without a result; never raises for a failed or interrupted simulation."""
        ran = run_all(self.work(), keep=keep, executor=executor, observe=observe)
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


def covering(jobs: Iterable[Job]) -> list[Job]:
    """Some of many jobs: each pair of design and workload, and each value of each key, is there."""
    seen: set[object] = set()
    found = []
    for job in jobs:
        machine = job.machine.name
        facts = {
            (machine, job.name, job.design, job.workload),
            ("threads", machine, job.threads),
            ("transactions", job.transactions),
            *((machine, key, value) for key, value in job.settings),
            *((machine, job.name, key, value) for key, value in job.own or ()),
            *((machine, key, value) for key, value, _ in job.varied),
        }
        if not facts <= seen:
            seen |= facts
            found.append(job)
    return found


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
        result = experiment.run(keep=keep, executor=Local(1), observe=observe)
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


def chosen(
    choice: Choice, machine: Machine, *, seeds: Sequence[int], settings: Mapping[str, str]
) -> list[Job]:
    """All combinations of a choice, as `matrix` has them, seed by seed."""
    return [
        job
        for seed in seeds
        for job in matrix(
            choice.designs,
            choice.workloads,
            machine,
            threads=choice.threads,
            transactions=choice.transactions,
            seed=seed,
            settings=settings,
            vary=choice.vary,
            variants=choice.variants,
        )
    ]


def host_cores() -> int:
    """Host cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
