"""Results of simulations on disk, by the digest of what was simulated.

A result is found again if the same is asked of the same engine: the digest is over design,
workload, machine, threads, transactions, seed, settings, version and build; of a workload that is a
program trace, over what it holds and not where it is. Each is a file of its own, written whole or
not at all, so that what an interrupt or a failure leaves is what had finished.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from graven import _engine, output
from graven.campaign import CrashJob
from graven.experiment import TRACE_ENDING, Job, Task, is_trace


def digest(job: Job | CrashJob) -> str:
    """What a simulation or a run that is crashed is known by: the same for the same result."""
    trace = _trace_of(job) if isinstance(job, Job) else None
    return _digest(job, _engine.__version__, _engine.build(), trace)


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
def _digest(job: Job | CrashJob, version: str, build: str, trace: str | None) -> str:
    if isinstance(job, Job):
        # Whether a value is set or varied, and by which file, makes no difference.
        values = dict(job.settings) | {key: value for key, value, _ in job.varied}
        settings = tuple(sorted(values.items()))
        job = replace(job, settings=settings, varied=(), request_trace=None, bank_loads=None)
        job = job if trace is None else replace(job, workload=f"{trace}{TRACE_ENDING}")
    document = {
        "version": version,
        "build": build,
        type(job).__name__: json.loads(job.spec_json()),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"

    def get(self, name: str) -> str | None:
        """The engine's JSON of a simulation, if it is there."""
        if name not in self._known:
            try:
                self._known[name] = self._path(name).read_text(encoding="utf-8")
            except FileNotFoundError:
                return None
        return self._known[name]

    def missing(self, names: Iterable[str]) -> int:
        """How many of these are not there."""
        return sum(self.get(name) is None for name in names)

    def put(self, name: str, text: str) -> None:
        """Keeps it.

        Raises:
            OutputError: it cannot be written.
        """
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write(path, text.encode(), durable=False)
        self._known[name] = text


class Stored:
    """A task whose result is kept as soon as it is there."""

    def __init__(self, task: Task, store: Store, name: str) -> None:
        self._task, self._store, self._name = task, store, name

    def run(self) -> str:
        """Runs to the end, and keeps the result."""
        text = self._task.run()
        self._store.put(self._name, text)
        return text

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._task.cancel()

    def progress(self) -> tuple[int, int]:
        """Done, and in all."""
        return self._task.progress()
