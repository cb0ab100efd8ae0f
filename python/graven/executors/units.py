"""Jobs as they are sent to other processes, and what those do with them."""

from __future__ import annotations

import json
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graven import _engine
from graven.basics.errors import OutputError, StoreError
from graven.laboratory import adversary
from graven.laboratory.crashes import CrashJob
from graven.running.job import Job, is_trace
from graven.running.pool import Failure, Task
from graven.running.requests import Asked
from graven.running.work import Work
from graven.store import Store
from graven.store.keeper import CRASH, SIMULATION, build, content_of, request_of
from graven.store.store import identity_of
from graven.store.stored import Request


class Misplaced(Exception):
    """A job cannot run in this process, though it may in another; the message says why."""


@dataclass(frozen=True)
class Unit:
    """A job with all that another process needs to run it, and to keep its result.

    Attributes:
        label: Name in progress and failures.
        request: The request that its result is found by.
        spec: As the engine takes it, in JSON.
        fresh: True to run even if the store has its result.
    """

    label: str
    request: Request
    spec: str
    fresh: bool = False

    @staticmethod
    def of(work: Work, *, fresh: bool = False) -> Unit:
        """A simulation, or a run that is crashed, to be sent.

        Raises:
            ConfigError: it leaves files beside its result, which would be on another host.
        """
        job: Job | CrashJob | Asked = work.job
        if isinstance(job, Asked):
            return Unit(work.label, request_of(job), json.dumps(job.spec), fresh)
        run = job if isinstance(job, Job) else job.job
        if run.files or (isinstance(job, CrashJob) and job.verify is not None):
            raise _engine.ConfigError(
                f"{work.label}: what leaves files, or is checked by a command, runs on this host "
                "alone (--on local)"
            )
        spec = job.spec()
        if is_trace(run.workload):
            spec["workload"] = str(Path(run.workload).absolute())
        return Unit(work.label, request_of(job), json.dumps(spec), fresh)

    def line(self) -> str:
        """As a line of a file."""
        document = {
            "label": self.label,
            "kind": self.request.kind,
            "asked": self.request.asked,
            "spec": self.spec,
            "fresh": self.fresh,
        }
        return json.dumps(document, separators=(",", ":"))

    @staticmethod
    def parse(line: str) -> Unit:
        """Reads what `line` gave."""
        raw = json.loads(line)
        return Unit(raw["label"], Request(raw["kind"], raw["asked"]), raw["spec"], raw["fresh"])

    def task(self) -> Task:
        """The task that the engine of this process runs for it.

        Raises:
            Misplaced: this process has another build, or cannot read a trace.
            ConfigError: the engine refuses it.
        """
        here = platform.node()
        asked = self.request.asked
        mine = {"version": _engine.__version__, "build": build()}
        wanted = {key: asked.get(key) for key in mine}
        if wanted != mine:
            raise Misplaced(
                f"{here} has Graven {mine['version']} of build {mine['build']}, and the job is of "
                f"{wanted['version']}, build {wanted['build']}: install the same wheel on both"
            )
        if (content := asked.get("trace_sha256")) is not None:
            path = Path(json.loads(self.spec)["workload"])
            if content_of(path) != content:
                raise Misplaced(
                    f"{here} does not have the trace {path} that the job runs; traces have to be "
                    "where all hosts see them, under one name"
                )
        return _made(self.request.kind, self.spec)


def _made(kind: str, spec: str) -> Task:
    """What the engine runs for a kind of job."""
    if kind == SIMULATION:
        return _engine.Simulation(spec)
    if kind == adversary.KIND:
        return adversary.Block(spec)
    return _engine.Campaign("run" if kind == CRASH else "check", spec)


@dataclass(frozen=True)
class Shared:
    """A store that other processes may see, too.

    Attributes:
        folder: The folder, from the root.
        identity: Identity in `store.json`; another store in that place has another one.
    """

    folder: str
    identity: str

    @staticmethod
    def of(store: Store) -> Shared:
        """This one."""
        store.ensure()
        return Shared(str(store.folder.absolute()), identity_of(store.folder) or "")

    def store(self) -> Store | None:
        """The store as this process sees it; nothing if it does not see it."""
        if not self.identity or identity_of(Path(self.folder)) != self.identity:
            return None
        with _lock:
            found = _stores.get(self)
            if found is None:
                found = _stores[self] = Store(Path(self.folder))
            return found


_stores: dict[Shared, Store] = {}
_lock = threading.Lock()


def about() -> tuple[str, str]:
    """Version and build of the engine of this process."""
    return _engine.__version__, build()


def execute(line: str, shared: Shared | None, run: str) -> dict[str, Any]:
    """Runs a unit in this process, and keeps its result if the store is seen from here.

    Args:
        line: The unit.
        shared: The store; nothing if results are not kept.
        run: What the command is called that has asked, for `stop`.

    Returns:
        `text` and `host_s` of the result, and whether it is `kept`; or `failure`, a sentence, and
        whether the job may run elsewhere, `misplaced`; or nothing, if it was stopped.
    """
    unit = Unit.parse(line)
    store = None if shared is None else shared.store()
    try:
        if store is not None and not unit.fresh:
            there = store.record(unit.request.digest)
            if there is not None:
                return {"text": there.result, "host_s": there.host_s, "kept": True}
        task = unit.task()
        started = time.monotonic()
        with _stoppable(run, task):
            text = task.run()
        host_s = time.monotonic() - started
    except _engine.Cancelled:
        return {}
    except Misplaced as error:
        return {"failure": str(error), "misplaced": True}
    except (_engine.SimulationError, _engine.ConfigError, _engine.TraceError) as error:
        return {"failure": str(error), "misplaced": False}
    except Exception as error:
        return {"failure": f"internal error of the engine: {error}", "misplaced": False}
    kept = False
    if store is not None:
        try:
            store.put(unit.request, text, host_s)
            kept = True
        except (OutputError, StoreError):
            kept = False  # who has asked keeps it
    return {"text": text, "host_s": host_s, "kept": kept}


_running: dict[str, set[Task]] = {}
_stopped: set[str] = set()


@contextmanager
def _stoppable(run: str, task: Task) -> Iterator[None]:
    with _lock:
        if run in _stopped:
            raise _engine.Cancelled("stopped before it began")
        _running.setdefault(run, set()).add(task)
    try:
        yield
    finally:
        with _lock:
            _running[run].discard(task)


def stop(run: str) -> None:
    """Stops what this process runs, and will be given to run, for a command."""
    with _lock:
        _stopped.add(run)
        running = list(_running.pop(run, ()))
        _running[run] = set()
    for task in running:
        task.cancel()


def gone(what: str, why: str, missing: int) -> Failure:
    """The failure of jobs whose cluster is gone."""
    message = f"{why} {missing:,} simulations were not done; the same command goes on"
    return Failure(what, message, ConnectionError(message))


def failure_of(unit: Unit, message: str) -> Failure:
    """A job that did not end well, with its configuration."""
    return Failure(unit.label, message, _engine.SimulationError(message))
