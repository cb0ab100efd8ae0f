"""Costs of each combination of design, workload, machine and thread count to the host.

A cost is the host time for each simulated memory operation, of the threads' programs alone:
building the machine, populating and the orderly shutdown are not counted. A run that takes longer
than `--seconds` is cut. Combinations of one workload are compared with their median; none may take
more than `SLOW` times as long. One that seems to is measured again, alone, before it is called
slow, and the shortest time counts: the host has other things to do, too.

A task has all combinations of a workload. Of a part of them, or at other sizes, costs are printed,
and the table stays as it is.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from queue import SimpleQueue
from zlib import crc32

from graven.engine.catalogue import MachinePreset, catalogue

from .host_cost import Driver, threads_most
from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

SLOW = 10.0
"""Times the median of its workload that no combination may take."""

TRANSACTIONS = 5000
SECONDS = 60.0
"""Host time after which a run is cut."""

THREADS = (1, 4, 8)
"""Thread counts of each machine that has as many, beside all that it has."""

REPEATS = 2
"""Number of times that a combination that seems slow is measured again."""

TABLE = Table(
    "corners",
    (
        "workload", "transactions", "combinations", "not_run", "cut", "median_ns", "worst",
        "worst_ns", "times_median", "above",
    ),
    ("workload",),
    lambda: ((workload.name,) for workload in catalogue().workloads),
)  # fmt: skip


@dataclass(frozen=True)
class Combination:
    """Simulation whose cost is measured."""

    design: str
    workload: str
    machine: str
    threads: int

    @property
    def name(self) -> str:
        """Name that `--of` matches."""
        return f"{self.design}/{self.workload}/{self.machine}/{self.threads}"


@dataclass(frozen=True)
class Cost:
    """Cost of simulating a combination, or why it does not run.

    Attributes:
        outcome: `ended`, `cut`, `refused` (what the workload needs does not fit), `violated` (a
            load did not return what was stored, as with some designs as printed), or an error.
        seconds: Of the host's processor.
        actions: Of the simulation: instructions, events, notices.
        operations: Loads and stores of the programs.
    """

    outcome: str
    seconds: float = 0.0
    actions: int = 0
    operations: int = 0

    @property
    def ran(self) -> bool:
        """True if the cost says something about speed."""
        return self.outcome in ("ended", "cut")

    @property
    def failed(self) -> bool:
        """True if the engine failed."""
        return not self.ran and self.outcome not in ("refused", "violated")

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds of the host for each simulated memory operation."""
        return 1e9 * self.seconds / max(self.operations, 1)


def combinations(workload: str) -> Iterator[Combination]:
    """Yields all combinations of a workload."""
    for machine in catalogue().machines:
        for threads in threads_of(machine):
            for design in catalogue().designs:
                yield Combination(design.name, workload, machine.name, threads)


def threads_of(machine: MachinePreset) -> list[int]:
    """Returns the thread counts that are tried on a machine."""
    most = threads_most(machine)
    return sorted({n for n in THREADS if n < most} | {most})


def cost_of(driver: Driver, of: Combination, given: Given) -> Cost:
    """Simulates a combination."""
    sizes = {"transactions": given.transactions, "seconds": given.seconds}
    found = driver.measure(**vars(of), **sizes)
    names = ("run_seconds", "actions", "operations")
    return Cost(found["outcome"], *(found.get(name, 0) for name in names))


def measured(wanted: Sequence[Combination], given: Given) -> dict[Combination, Cost]:
    """Measures combinations, and again, one at a time, those that seem slow."""
    drivers: SimpleQueue[Driver] = SimpleQueue()
    for _ in range(given.jobs):
        drivers.put(Driver())

    def cost(of: Combination) -> Cost:
        driver = drivers.get()
        try:
            return cost_of(driver, of, given)
        finally:
            drivers.put(driver)

    with ThreadPoolExecutor(given.jobs) as pool:
        costs = dict(zip(wanted, pool.map(cost, wanted), strict=True))
    for _ in range(REPEATS):
        for each in slow(costs):
            costs[each] = min(costs[each], cost(each), key=lambda cost: cost.nanoseconds)
    for _ in range(given.jobs):
        drivers.get().close()
    return costs


Costs = Mapping[Combination, Cost]


def ratios(costs: Costs) -> dict[Combination, float]:
    """Returns the times that each combination of a workload takes, over their median."""
    ran = {each: cost.nanoseconds for each, cost in costs.items() if cost.ran}
    median = statistics.median(ran.values()) if ran else 0.0
    return {each: nanoseconds / median for each, nanoseconds in ran.items()}


def slow(costs: Costs) -> list[Combination]:
    """Returns the combinations that take too long, the slowest first."""
    found = {each: times for each, times in ratios(costs).items() if times > SLOW}
    return sorted(found, key=lambda each: -found[each])


def row_of(costs: Costs, transactions: int) -> Row:
    """Makes the row of a workload."""
    times = ratios(costs)
    worst = max(times, key=lambda each: times[each])
    return TABLE.row(
        worst.workload,
        transactions,
        len(times),
        len(costs) - len(times),
        sum(cost.outcome == "cut" for cost in costs.values()),
        f"{statistics.median(costs[each].nanoseconds for each in times):.0f}",
        worst.name,
        f"{costs[worst].nanoseconds:.0f}",
        f"{times[worst]:.1f}",
        " ".join(sorted(each.name for each in slow(costs))),
    )


def is_whole(given: Given) -> bool:
    """Returns True if the table is of what is measured."""
    return (given.of, given.every, given.transactions) == ("*", 1, TRANSACTIONS)


def measure(workload: str, given: Given) -> Rows:
    """Measures the combinations of a workload."""
    wanted = [
        each
        for each in combinations(workload)
        if fnmatchcase(each.name, given.of) and crc32(each.name.encode()) % given.every == 0
    ]
    costs = measured(wanted, given)
    failed = [f"{each.name}: {cost.outcome}" for each, cost in costs.items() if cost.failed]
    if failed:
        raise Failed("; ".join(failed))
    if is_whole(given):
        return {TABLE: [row_of(costs, given.transactions)]}
    for each, times in ratios(costs).items():
        print(f"{each.name}: {costs[each].nanoseconds:.0f} ns, {times:.1f} times the median")
    return {}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds sizes, and parts of the combinations."""
    what = "a glob of DESIGN/WORKLOAD/MACHINE/THREADS"
    parser.add_argument("--of", default="*", metavar="PATTERN", help=what)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th one (1)")
    what = f"of each run ({TRANSACTIONS})"
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, metavar="N", help=what)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="to cut a run after")


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the table of the page."""
    counted = ("combinations", "not_run")
    times = ("median_ns", "worst_ns", "times_median")
    head = (
        "workload",
        "slowest combination",
        "run",
        "do not",
        "median, ns",
        "slowest, ns",
        "times",
    )
    cells = [
        [f"`{row['workload']}`", f"`{row['worst']}`", *(row[name] for name in (*counted, *times))]
        for row in rows
    ]
    sums = [f"{sum(int(row[name]) for row in rows):,}" for name in counted]
    slowest = max(rows, key=lambda row: float(row["times_median"]), default=None)
    if slowest is not None:
        cells.append(["all", f"`{slowest['worst']}`", *sums, "", "", slowest["times_median"]])
    return [table_of(head, cells, texts=2)]


def wrong(rows: Sequence[Row]) -> list[str]:
    """Names the workloads that have slow combinations, and these."""
    return [f"{row['workload']}: slow are {row['above']}" for row in rows if row["above"]]


CAMPAIGN = Campaign(
    lambda _: (workload.name for workload in catalogue().workloads),
    measure,
    [TABLE],
    ROOT / "docs/results/combinations.md",
    blocks,
    wrong,
    options=options,
    sizes=("transactions", "seconds"),
    repeats=lambda _, given: not is_whole(given),
)
