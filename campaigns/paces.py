"""Paces of designs on workloads, by which `graven.executors.estimates` estimates.

For each design and workload, on the default machine and with one simulation at a time, `paces.csv`
has the seconds of a run besides its transactions and the microseconds of each transaction, from
runs of N and of N/10 transactions, in time of the processor. For each design, it also has the
microseconds of each transaction of `hash` that is crashed everywhere, which stand for all
workloads. Times are of one core of this host: they say how jobs relate.
"""

from __future__ import annotations

import argparse
import contextlib
import time

from graven import ConfigError, SimulationError
from graven.engine.catalogue import catalogue
from graven.engine.machine import DEFAULT, Machine
from graven.laboratory.crashes import CrashJob
from graven.running.job import Job

from .runner import Campaign, Given, Rows
from .tables import ROOT, Table

TABLE = Table(
    "paces",
    ("design", "workload", "start_s", "transaction_us", "crash_us"),
    ("design",),
    lambda: ((design.name,) for design in catalogue().designs),
    ROOT / "python/graven/executors",
)

CRASHED = 40
"""Transactions of a run that is crashed everywhere."""


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the size of runs."""
    parser.add_argument("--transactions", type=int, default=1_000, metavar="N")


def measure(design: str, given: Given) -> Rows:
    """Measures a design on all workloads."""
    many, few = given.transactions, given.transactions // 10
    crash = CrashJob(Job(design, "hash", Machine("cramped"), transactions=CRASHED))
    crash_us = _seconds(crash) / CRASHED * 1e6
    rows = []
    for workload in catalogue().workloads:
        long, short = (
            _seconds(Job(design, workload.name, Machine(DEFAULT), transactions=number))
            for number in (many, few)
        )
        pace = max(0.0, long - short) / (many - few)
        start = max(0.0, short - few * pace)
        numbers = (f"{start:.4f}", f"{pace * 1e6:.2f}", f"{crash_us:.0f}")
        rows.append(TABLE.row(design, workload.name, *numbers))
    return {TABLE: rows}


def _seconds(job: Job | CrashJob) -> float:
    """Returns the processor seconds of a job: other work on the host does not count."""
    started = time.thread_time()
    # A design that loses updates, as its paper has it, ends early; another needs a larger log.
    with contextlib.suppress(SimulationError, ConfigError):
        (job.simulation() if isinstance(job, Job) else job.campaign()).run()
    return time.thread_time() - started


CAMPAIGN = Campaign(
    lambda _: (design.name for design in catalogue().designs),
    measure,
    [TABLE],
    options=options,
    sizes=("transactions",),
)
