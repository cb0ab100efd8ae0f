"""What a result depends on, and tasks that keep theirs.

What is asked for has the specification as the engine takes it, the version, and the build: a digest
of the engine's sources, and of a module with designs of one's own the module itself. Names of
result files do not belong to it, nor where a program trace is: what it holds does.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from graven import _engine
from graven.campaign import CrashJob
from graven.engines import STOCK
from graven.experiment import Job, Task, is_trace
from graven.store.records import Request
from graven.store.store import Store

SIMULATION, CRASH = "simulation", "crash"


def request_of(job: Job | CrashJob) -> Request:
    """What a simulation or a run that is crashed asks for."""
    return _request(job, _trace_of(job if isinstance(job, Job) else job.job), build())


@cache
def _request(job: Job | CrashJob, trace: str | None, build: str) -> Request:
    kind = SIMULATION if isinstance(job, Job) else CRASH
    named = _named(job) if isinstance(job, Job) else replace(job, job=_named(job.job))
    spec: dict[str, Any] = json.loads(named.spec_json())
    asked = {"version": _engine.__version__, "build": build, "spec": _without_nothing(spec)}
    if trace is not None:
        asked["trace_sha256"] = trace
    return Request(kind, asked)


def _named(job: Job) -> Job:
    """A job as it is asked for: whether a value is set or varied, and by which file, is all one."""
    values = dict(job.settings) | {key: value for key, value, _ in job.varied}
    workload = Path(job.workload).name if is_trace(job.workload) else job.workload
    return replace(
        job,
        settings=tuple(sorted(values.items())),
        varied=(),
        workload=workload,
        request_trace=None,
        bank_loads=None,
        program_trace=None,
        alias=None,
    )


def _without_nothing(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification without what is not given, so that new options leave digests as they are."""
    return {key: value for key, value in spec.items() if value not in (None, [])}


def digest(job: Job | CrashJob) -> str:
    """What a simulation or a run that is crashed is found by: the same for the same result."""
    return request_of(job).digest


def _trace_of(job: Job) -> str | None:
    """A digest of the program trace that a simulation runs; of one that is not there, its name."""
    if not is_trace(job.workload):
        return None
    path = Path(job.workload)
    try:
        stat = path.stat()
    except FileNotFoundError:
        return path.name
    return _content(path, stat.st_mtime_ns, stat.st_size)


@cache
def _content(path: Path, _changed_ns: int, _size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def build() -> str:
    """What distinguishes the engine in use from others of the same version."""
    module = sys.modules.get(STOCK, _engine)
    if module.__name__ == STOCK or not module.__file__:
        return _engine.build()
    own = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
    return f"{_engine.build()}-{module.__name__}-{own[:16]}"


class Kept:
    """A task whose result is kept as it comes, and found if somebody else has kept it."""

    def __init__(self, task: Task, store: Store, request: Request, *, fresh: bool = False) -> None:
        self._task, self._store, self._request, self._fresh = task, store, request, fresh
        self.was_there = False

    def run(self) -> str:
        """Runs to the end, and keeps the result."""
        if not self._fresh:
            found = self._store.get(self._request.digest)
            if found is not None:
                self.was_there = True
                return found
        started = time.monotonic()
        text = self._task.run()
        self._store.put(self._request, text, time.monotonic() - started)
        return text

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""
        return self._task.progress()
