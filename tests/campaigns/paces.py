"""How long designs take on workloads: what `graven.executors.estimates` goes by.

    python -m tests.campaigns.paces [--transactions N]

Writes `python/graven/executors/paces.csv`: for each design and workload, on the default machine and
with one simulation at a time, the seconds of a run besides its transactions and the microseconds of
each transaction, from runs of N and of N/10 transactions, in time of the processor. For each
design, also the microseconds of each transaction of `hash` that is crashed everywhere, which stand
for all workloads. Times are of one core of this host: they say how jobs relate.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import time

from tests.campaigns.tables import ROOT

from graven import ConfigError, SimulationError
from graven.basics import output
from graven.engine.catalogue import catalogue
from graven.engine.machine import DEFAULT, Machine
from graven.laboratory.crashes import CrashJob
from graven.running.job import Job

RESULTS = ROOT / "python" / "graven" / "executors" / "paces.csv"

COLUMNS = ("design", "workload", "start_s", "transaction_us", "crash_us")

CRASHED = 40
"""Transactions of a run that is crashed everywhere."""


def _seconds(job: Job | CrashJob) -> float:
    """Seconds of this thread: other work on the host does not count."""
    started = time.thread_time()
    # A design that loses updates, as its paper has it, ends early; another needs a larger log.
    with contextlib.suppress(SimulationError, ConfigError):
        (job.simulation() if isinstance(job, Job) else job.campaign()).run()
    return time.thread_time() - started


def main() -> None:
    """Measures, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.paces")
    parser.add_argument("--transactions", type=int, default=1_000, metavar="N")
    many = parser.parse_args().transactions
    few = many // 10
    machine = Machine(DEFAULT)
    rows = []
    for design in catalogue().designs:
        crash = CrashJob(Job(design.name, "hash", Machine("cramped"), transactions=CRASHED))
        crash_us = _seconds(crash) / CRASHED * 1e6
        for workload in catalogue().workloads:
            long, short = (
                _seconds(Job(design.name, workload.name, machine, transactions=number))
                for number in (many, few)
            )
            pace = max(0.0, long - short) / (many - few)
            start = max(0.0, short - few * pace)
            numbers = (f"{start:.4f}", f"{pace * 1e6:.2f}", f"{crash_us:.0f}")
            rows.append((design.name, workload.name, *numbers))
        print(design.name, flush=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    output.write(RESULTS, text.getvalue().encode())


if __name__ == "__main__":
    main()
