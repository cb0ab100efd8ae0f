"""Estimates of the time that a job will take, and of the memory that it needs.

Times are for putting the longest first and for saying how much is left; nothing is decided by them
that shows in a result. They are of `paces.csv`, which `python -m campaigns paces` measures:
for each design and workload the time of a transaction, and what a run takes besides. A design or
workload of one's own counts as the median of the others.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from statistics import median

from graven import _engine
from graven._engine import ConfigError
from graven.laboratory.crashes import CrashJob, task_of
from graven.results.record import KIND, STEADY
from graven.results.recovery import POINTS
from graven.running.job import Job, is_trace
from graven.running.pool import memory_need
from graven.running.requests import Asked
from graven.running.work import Todo

PACES = "paces.csv"

PACES_VARIABLE = "GRAVEN_PACES"
"""The environment variable that names a table of one's own, as the campaign writes it."""

TRANSACTIONS = 10_000
"""Transactions of a simulation, if none are given."""

REGION_TRANSACTIONS = 160_000
"""Transactions of a region in steady state that is as long as its precision asks, with all before
it; those without time count for less."""

TRACE_BYTES = 64
"""Bytes of a program trace that count as a transaction."""

RESOURCE = "MEMORY"
"""Resource by which Dask's workers declare their memory, in bytes."""


@dataclass(frozen=True)
class Pace:
    """Time of a design on a workload.

    Attributes:
        start_s: Seconds of a run without transactions.
        transaction_us: Microseconds of each transaction.
        crash_us: Microseconds of each transaction of a run that is crashed everywhere.
    """

    start_s: float
    transaction_us: float
    crash_us: float


ANY = Pace(0.01, 10.0, 1000.0)
"""Time of anything if nothing is known."""


@cache
def paces() -> dict[tuple[str, str], Pace]:
    """By design and workload.

    Raises:
        ConfigError: the table that `GRAVEN_PACES` names is no such table.
    """
    own = os.environ.get(PACES_VARIABLE)
    try:
        where = resources.files(__package__).joinpath(PACES) if own is None else Path(own)
        rows = csv.DictReader(io.StringIO(where.read_text(encoding="utf-8")))
        return {
            (row["design"], row["workload"]): Pace(
                float(row["start_s"]), float(row["transaction_us"]), float(row["crash_us"])
            )
            for row in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{PACES_VARIABLE}: {own} is no table of paces: {error}") from None


@cache
def pace_of(design: str, workload: str) -> Pace:
    """Time of a design on a workload, or on the median one; or of the median design."""
    known = paces()
    if (design, workload) in known:
        return known[design, workload]
    for likes in (
        [pace for (_, other), pace in known.items() if other == workload],
        [pace for (other, _), pace in known.items() if other == design],
    ):
        if likes:
            return _median(likes)
    return _median(known.values()) if known else ANY


def _median(paces: Iterable[Pace]) -> Pace:
    several = list(paces)
    return Pace(
        median(pace.start_s for pace in several),
        median(pace.transaction_us for pace in several),
        median(pace.crash_us for pace in several),
    )


def seconds(job: Job | CrashJob | Asked) -> float:
    """Seconds of a job on a core like that of the paces; one, if nothing is known."""
    if isinstance(job, Asked):
        return 1.0
    run = job if isinstance(job, Job) else job.job
    pace = pace_of(run.design, run.workload)
    if is_trace(run.workload):
        transactions = _size(run.workload) / TRACE_BYTES
    elif isinstance(job, Job):
        transactions = run.transactions or _unsaid(run)
    else:
        transactions = run.transactions or 1000
    if isinstance(job, Job):
        if recoveries := int(dict(run.all_set).get(POINTS, 0)):
            transactions = 2 * transactions + _engine.RECOVERY_TRANSACTIONS * recoveries
        return pace.start_s + transactions * pace.transaction_us / 1e6
    return pace.start_s + transactions * pace.crash_us / 1e6 / job.every


def of_all(todo: Todo) -> list[float]:
    """Seconds of each job that is left."""
    return [seconds(todo.work[at].job) for at in todo.left]


def _unsaid(job: Job) -> int:
    """Transactions of a simulation for which no number is given."""
    is_steady = dict(job.settings).get(KIND) == STEADY
    return REGION_TRANSACTIONS if is_steady else TRANSACTIONS


def _size(trace: str) -> int:
    try:
        return Path(trace).stat().st_size
    except OSError:
        return 0


def memory_bytes(job: Job | CrashJob | Asked) -> int | None:
    """Bytes of memory that a job needs at most; `None` if the engine does not say.

    Raises:
        ConfigError: the engine refuses it.
    """
    return memory_need(job.task) or None if isinstance(job, Asked) else _memory_bytes(job)


@lru_cache(maxsize=1 << 14)
def _memory_bytes(job: Job | CrashJob) -> int | None:
    return task_of(job).memory_bytes() or None
