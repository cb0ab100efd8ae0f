"""A running cluster of Dask: `--on dask://HOST:PORT`.

Jobs go to the scheduler a few at a time, as many as its workers can have begun soon: what a worker
that dies takes with it is little, and the order stays with us. A worker that sees the store keeps
the result in it before it answers, so that nothing is lost with a worker or with this process;
otherwise the result comes with the answer, and is kept here.

Dask runs what a lost worker had again by itself, and gives up on a job after some workers that
died; then it is begun anew from here, until it has been begun `dispatch.TRIES` times.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from graven._engine import ConfigError
from graven.executors import estimates, units
from graven.executors.dispatch import TRIES, Dispatcher
from graven.executors.units import Shared, Unit
from graven.running.pool import POLL_SECONDS, Failure, Snapshot
from graven.running.work import Ended, Todo
from graven.store.keeper import Keeper

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_SECONDS = 10.0
"""Longest time until the scheduler answers at first, and a worker hands a result over."""

LOOK_SECONDS = 1.0
"""Time between two questions to the cluster for its workers."""

AHEAD = 2
"""Jobs of each of a worker's threads that are with the cluster: one runs, and the others wait."""

SHOWN = 4
"""Running jobs that progress names, at most."""


def _distributed() -> Any:  # noqa: ANN401 - a module that may not be there
    try:
        import distributed
    except ImportError as error:
        raise ConfigError(
            f"--on dask: the package `distributed` is needed ({error}): pip install 'graven[dask]'"
        ) from None
    # Lost workers and their work are dealt with here, and a line for each helps nobody.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


@dataclass(frozen=True)
class Dask:
    """The workers of a Dask scheduler.

    Attributes:
        address: Where the scheduler listens, HOST:PORT.
    """

    address: str

    @contextlib.contextmanager
    def _client(self) -> Iterator[Client]:
        distributed = _distributed()
        try:
            client = distributed.Client(
                f"tcp://{self.address}", timeout=ANSWER_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"--on dask://{self.address}: no scheduler of Dask answers there: {error}"
            ) from None
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):
                client.close(timeout=ANSWER_SECONDS)

    def run(self, todo: Todo) -> Ended:
        """Does what is left of some work.

        Raises:
            ConfigError: no scheduler answers, a worker has another build, or a job cannot be sent.
        """
        keeper = todo.keep if isinstance(todo.keep, Keeper) else None
        fresh = keeper is not None and keeper.fresh
        sent = [Unit.of(todo.work[at], fresh=fresh) for at in todo.left]
        with self._client() as client:
            return _Run(client, self.address, todo, sent, keeper).all()


@dataclass
class _Run:
    """One list of jobs on a cluster."""

    client: Client
    address: str
    todo: Todo
    units: Sequence[Unit]
    keeper: Keeper | None
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _failures: list[Failure] = field(default_factory=list)
    _events: SimpleQueue[tuple[int, Future]] = field(default_factory=SimpleQueue)
    _futures: dict[str, tuple[int, Future]] = field(default_factory=dict)
    _number: int = 0
    _capacity: int = 0
    _memory: int | None = None
    _declares_memory: bool = False
    _looked: float = 0.0
    _checked: set[str] = field(default_factory=set)

    def all(self) -> Ended:
        self._shared = None if self.keeper is None else Shared.of(self.keeper.store)
        self._dispatcher = Dispatcher(estimates.of_all(self.todo))
        self._started = time.monotonic()
        interrupted = False
        try:
            while not self._dispatcher.is_over:
                self._look()
                if self.client.status == "closed":
                    self._failures.append(self._gone())
                    break
                self._submit()
                self._take_in()
                self._tell()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._cancel()
        return Ended(tuple(self._failures), interrupted=interrupted)

    def _gone(self) -> Failure:
        missing = len(self.units) - self._dispatcher.done
        return units.gone("Dask", f"the scheduler at {self.address} is gone, and", missing)

    # ---- what the cluster has ---------------------------------------------------------------

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS and self._looked:
            return
        self._looked = now
        try:
            found = self._workers()
        except Exception:  # between two connections; `status` says when it is for good
            return
        self._check([worker for worker in found if worker not in self._checked])
        workers = found.values()
        self._capacity = AHEAD * sum(worker["nthreads"] for worker in workers)
        limits = [worker["memory_limit"] for worker in workers]
        self._memory = max(limits) if limits and all(limits) else None
        self._declares_memory = bool(workers) and all(
            estimates.RESOURCE in worker["resources"] for worker in workers
        )

    def _workers(self) -> dict[str, Any]:
        """What the scheduler says of each, by its address."""
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def _check(self, new: Sequence[str]) -> None:
        """Refuses workers that would give results of another engine, whenever they come."""
        if not new:
            return
        said = self.client.run(units.about, workers=list(new), on_error="return")
        mine = units.about()
        for worker, theirs in said.items():
            if isinstance(theirs, BaseException):
                if worker not in self._workers():
                    continue  # it has gone again
                raise ConfigError(
                    f"--on dask://{self.address}: the worker {worker} cannot run Graven: {theirs}; "
                    "workers need the same wheel as this host"
                )
            if tuple(theirs) != mine:
                raise ConfigError(
                    f"--on dask://{self.address}: the worker {worker} has Graven {theirs[0]} of "
                    f"build {theirs[1]}, and this host {mine[0]}, build {mine[1]}: install the "
                    "same wheel on both"
                )
            self._checked.add(worker)

    # ---- to the cluster ---------------------------------------------------------------------

    def _submit(self) -> None:
        while len(self._futures) < self._capacity:
            at = self._dispatcher.take(time.monotonic())
            if at is None:
                return
            need = estimates.memory_bytes(self.todo.work[self.todo.left[at]].job)
            if need is not None and self._memory is not None and need > self._memory:
                self._fail(
                    at,
                    f"it needs {need >> 20:,} MB of memory, and the largest worker may have "
                    f"{self._memory >> 20:,} MB",
                )
                continue
            declared = {}
            if need is not None and self._declares_memory:
                declared = {"resources": {estimates.RESOURCE: need}}
            self._number += 1
            key = f"graven-{self._name}-{self._number}"
            future = self.client.submit(
                units.execute,
                self.units[at].line(),
                self._shared,
                self._name,
                key=key,
                pure=False,
                priority=-self._number,
                **declared,
            )
            self._futures[key] = (at, future)
            future.add_done_callback(lambda done, at=at: self._events.put((at, done)))

    # ---- from the cluster -------------------------------------------------------------------

    def _take_in(self) -> None:
        """What has come: waits for the first of it, but not for long."""
        wait: float | None = POLL_SECONDS
        while True:
            try:
                at, future = self._events.get(timeout=wait) if wait else self._events.get_nowait()
            except Empty:
                return
            wait = None
            self._futures.pop(future.key, None)
            self._came(at, future)

    def _came(self, at: int, future: Future) -> None:
        try:
            if future.status != "finished":
                why = future.exception(timeout=ANSWER_SECONDS) if future.status == "error" else ""
                self._lost(at, str(why or "its worker is gone"))
                return
            came = future.result(timeout=ANSWER_SECONDS)
        except KeyboardInterrupt:
            raise
        except Exception as error:  # a worker that died with the result, or a scheduler
            self._lost(at, str(error) or type(error).__name__)
            return
        finally:
            future.release()
        if "failure" in came:
            if came["misplaced"]:
                self._lost(at, came["failure"])
            else:
                self._fail(at, came["failure"])
        elif "text" not in came:
            self._lost(at, "it was stopped")
        elif self._dispatcher.finish(at, time.monotonic(), came["host_s"]):
            if self.keeper is not None and not came["kept"]:
                self.keeper.keep(self.units[at].request, came["text"], came["host_s"])
            self.todo.sink(self.todo.left[at], came["text"], came["host_s"])

    def _lost(self, at: int, why: str) -> None:
        if not self._dispatcher.lose(at):
            self._fail(at, f"it was begun {TRIES} times and lost each time: {why}")

    def _fail(self, at: int, message: str) -> None:
        if self._dispatcher.finish(at, time.monotonic()):
            self._failures.append(units.failure_of(self.units[at], message))

    # ---- the rest ---------------------------------------------------------------------------

    def _tell(self) -> None:
        if self.todo.observe is None:
            return
        running = self._dispatcher.running[:SHOWN]
        labels = tuple(self.units[at].label for at in running)
        if not self._capacity:
            labels = ("no worker is there",)
        self.todo.observe(
            Snapshot(
                self._dispatcher.done,
                len(self.units),
                self._dispatcher.fraction,
                labels,
                time.monotonic() - self._started,
            )
        )

    def _cancel(self) -> None:
        """Takes back what is still there: what is begun stops, and what waits never begins."""
        if not self._futures or self.client.status != "running":
            return
        with contextlib.suppress(Exception):
            self.client.cancel([future for _, future in self._futures.values()], force=True)
            self.client.run(units.stop, self._name, on_error="ignore")
