"""Results of simulations on disk, by the digest of what was simulated.

A result is found again if the same is asked of the same engine: the digest is over design,
workload, machine, threads, transactions, seed, settings, version and build. Each is a file of its
own, written whole or not at all, so that what an interrupt or a failure leaves is what had
finished.
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
from graven.experiment import Job, Task


def digest(job: Job | CrashJob) -> str:
    """What a simulation or a run that is crashed is known by: the same for the same result."""
    return _digest(job, _engine.__version__, _engine.build())


@cache
def _digest(job: Job | CrashJob, version: str, build: str) -> str:
    if isinstance(job, Job):
        # Whether a value is set or varied, and by which file, makes no difference.
        values = dict(job.settings) | {key: value for key, value, _ in job.varied}
        settings = tuple(sorted(values.items()))
        job = replace(job, settings=settings, varied=(), request_trace=None, bank_loads=None)
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
