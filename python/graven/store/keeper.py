"""Requests under which results are kept, and tasks that keep theirs.

A request has the specification as the engine takes it, the version, and the build: a digest
of the engine's sources, and of a module with designs of one's own the module itself. Names of
result files do not belong to it, nor where a program trace is: what it holds does.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from graven import _engine
from graven.engine.native import STOCK
from graven.running.job import Job, is_trace
from graven.running.pool import Task, Timed
from graven.running.requests import Asked
from graven.store.store import Store
from graven.store.stored import Request, one_line

if TYPE_CHECKING:
    from graven.laboratory.adversary import AdversaryRequest
    from graven.laboratory.crashes import CrashJob

SIMULATION, CRASH, SCHEDULES = "simulation", "crash", "schedules"

Kept: TypeAlias = "Job | CrashJob | Asked"
"""Jobs whose results are kept."""


def request_of(job: Kept) -> Request:
    """The request of a simulation, a run that is crashed, or anything else."""
    if isinstance(job, Asked):
        return _asked(job.kind, job.spec)
    return _request(job, _trace_of(job if isinstance(job, Job) else job.job), build())


@lru_cache(maxsize=1 << 14)
def _request(job: Job | CrashJob, trace: str | None, build: str) -> Request:
    kind = SIMULATION if isinstance(job, Job) else CRASH
    named = _named(job) if isinstance(job, Job) else replace(job, job=_named(job.job))
    spec = _without_nothing(named.spec())
    asked = {"version": _engine.__version__, "build": build, "spec": spec}
    if trace is not None:
        asked["trace_sha256"] = trace
    return Request(kind, asked)


def _asked(kind: str, spec: Mapping[str, Any]) -> Request:
    """A request that has all of its specification, the version and the build."""
    asked = {"version": _engine.__version__, "build": build(), "spec": _without_nothing(spec)}
    return Request(kind, asked)


def _named(job: Job) -> Job:
    """A job as it is asked for: whether a value is set or varied, and by which file, is all one."""
    workload = Path(job.workload).name if is_trace(job.workload) else job.workload
    return replace(job.asked, workload=workload)


def _without_nothing(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without what is not given, so that new options leave digests as they are."""
    return {key: value for key, value in spec.items() if value not in (None, [])}


def digest(job: Kept) -> str:
    """The digest that a result is found by: the same for the same result."""
    return request_of(job).digest


def _trace_of(job: Job) -> str | None:
    """A digest of the program trace that a simulation runs; of one that is not there, its name."""
    if not is_trace(job.workload):
        return None
    path = Path(job.workload)
    return content_of(path) or path.name


def content_of(path: Path) -> str | None:
    """A digest of what a file holds; none if it is not there."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return _content(path, stat.st_mtime_ns, stat.st_size)


@cache
def _content(path: Path, _changed_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build() -> str:
    """A text that distinguishes the engine in use from others of the same version."""
    module = sys.modules.get(STOCK, _engine)
    if module.__name__ == STOCK or not module.__file__:
        return _engine.build()
    path = Path(module.__file__)
    stat = path.stat()
    own = _content(path, stat.st_mtime_ns, stat.st_size)
    return f"{_engine.build()}-{module.__name__}-{own[:16]}"


class Keeper:
    """Finds results in a store, and has tasks keep theirs there.

    Attributes:
        store: Where results are.
        fresh: True to run again what the store has.
    """

    def __init__(self, store: Store, *, fresh: bool = False) -> None:
        self.store = store
        self.fresh = fresh

    def found(self, job: Kept) -> tuple[str, float | None] | None:
        """The result of a job, if the store has it, and the seconds that it took."""
        if self.fresh or _has_to_run(job):
            return None
        record = self.store.record(digest(job))
        return None if record is None else (record.result, record.host_s)

    def has(self, job: Kept) -> bool:
        """Tells whether the store has the result of a job, by its index."""
        return not (self.fresh or _has_to_run(job)) and self.store.has(digest(job))

    def keep(self, request: Request, text: str, host_s: float | None) -> None:
        """Keeps a result that was made elsewhere, unless the store has it."""
        if self.store.get(request.digest) != one_line(text):
            self.store.put(request, text, host_s)

    def kept(self, job: Kept, task: Task) -> Task:
        """A task that keeps its result as soon as it has one."""
        return _Kept(task, self.store, request_of(job), anew=self.fresh or _has_to_run(job))


def request_of_schedules(plan: AdversaryRequest) -> Request:
    """The request of a campaign of the adversary."""
    return _asked(SCHEDULES, plan.spec())


def _has_to_run(job: Kept) -> bool:
    """Whether a run is for more than its result: files, or a command that checks what is there."""
    if isinstance(job, Asked):
        return False
    if not isinstance(job, Job):
        return job.verify is not None
    return bool(job.files)


class _Kept(Timed):
    def __init__(self, task: Task, store: Store, request: Request, *, anew: bool) -> None:
        super().__init__(task)
        self._store, self._request, self._anew = store, request, anew
        self._is_cancelled = False

    def run(self) -> str:
        # Another process may have been faster.
        there = self._store.get(self._request.digest)
        if there is not None and not self._anew:
            return there
        text = super().run()
        # What was cut short may have less in it: a program that could have been made smaller.
        if one_line(text) != there and not self._is_cancelled:
            self._store.put(self._request, text, self.host_s)
        return text

    def cancel(self) -> None:
        self._is_cancelled = True
        super().cancel()
