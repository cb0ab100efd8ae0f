"""What each combination of design, workload, machine and thread count costs the host to simulate.

    python -m tests.campaigns.corners [--only PATTERN] [--transactions N] [--every N] [--jobs N]
    python -m tests.campaigns.corners --stored   write the page from the table
    python -m tests.campaigns.corners --list     name what it would measure

Host time for each simulated memory operation, of the threads' programs alone: building the machine,
populating and the orderly shutdown are not counted. A run that takes longer than `--seconds` is cut
there. Combinations of one workload are compared with their median; none may take more than
`SLOW` times as long. One that seems to is measured again, alone, before it is called slow, and the
shortest time counts: the host has other things to do, too.

Results are in `graven-results/corners`, so that an interrupted campaign goes on where it was; those
of another build or of other sizes are measured anew. `--only` takes what matches a glob of
`DESIGN/WORKLOAD/MACHINE/THREADS`, `--every` each so many-th combination; table and page are of what
has been measured in all.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from zlib import crc32

from tests.campaigns.tables import (
    ROOT,
    STATES,
    Row,
    read_rows,
    table_of,
    write_page,
    write_rows,
)

from graven import _engine
from graven.basics import output
from graven.engine.catalogue import MachinePreset, catalogue

TABLE = Path(__file__).parent / "corners.csv"
PAGE = ROOT / "docs/results/combinations.md"

SLOW = 10.0
"""Times the median of its workload that no combination may take."""

TRANSACTIONS = 5000
SECONDS = 60.0
"""Of the host's time, after which a run is cut."""

THREADS = (1, 4, 8)
"""Of each machine that has so many, and all that it has."""

REPEATS = 2
"""How often a combination that seems slow is measured again."""

DRIVER = ("cargo", "run", "--quiet", "--locked", "--release", "--package", "graven",
          "--example", "corners")  # fmt: skip

COLUMNS = (
    "workload", "transactions", "combinations", "not_run", "cut", "median_ns", "worst", "worst_ns",
    "times_median", "above",
)  # fmt: skip


@dataclass(frozen=True)
class Combination:
    """What is simulated."""

    design: str
    workload: str
    machine: str
    threads: int

    @property
    def name(self) -> str:
        """As `--only` matches it."""
        return f"{self.design}/{self.workload}/{self.machine}/{self.threads}"


@dataclass(frozen=True)
class Cost:
    """What simulating a combination took, or why it does not run.

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
        """Whether it says something about speed."""
        return self.outcome in ("ended", "cut")

    @property
    def failed(self) -> bool:
        """Whether something is wrong."""
        return not self.ran and self.outcome not in ("refused", "violated")

    @property
    def nanoseconds(self) -> float:
        """Of the host's time for each simulated memory operation."""
        return 1e9 * self.seconds / max(self.operations, 1)


def combinations() -> Iterator[Combination]:
    """All of them, those of one workload and machine together."""
    known = catalogue()
    for workload in known.workloads:
        for machine in known.machines:
            for threads in threads_of(machine):
                for design in known.designs:
                    yield Combination(design.name, workload.name, machine.name, threads)


def threads_of(machine: MachinePreset) -> list[int]:
    """The thread counts that are tried on a machine."""
    values = (machine.value("core.count"), machine.value("core.threads_per_core"))
    most = math.prod(int(str(value)) for value in values)
    return sorted({n for n in THREADS if n < most} | {most})


class Driver:
    """A process that runs one combination after the other (`crates/graven/examples/corners.rs`)."""

    def __init__(self) -> None:
        self._process = self._started()

    @staticmethod
    def _started() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(DRIVER, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def cost(self, of: Combination, transactions: int, seconds: float) -> Cost:
        """Runs a combination."""
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None
        assert answers is not None
        to.write(f"{of.design} {of.workload} {of.machine} {of.threads} {transactions} {seconds}\n")
        to.flush()
        line = answers.readline()
        if not line:
            self._process.wait()
            self._process = self._started()
            return Cost("the process died")
        answer = json.loads(line)
        if "refused" in answer:
            return Cost("refused")
        names = ("seconds", "actions", "operations")
        return Cost(answer["outcome"], *(answer.get(name, 0) for name in names))

    def close(self) -> None:
        """Lets it end."""
        self._process.communicate()


class Store:
    """Costs as they are measured: a file for each workload and machine, written whole."""

    def __init__(self, folder: Path, build: str, transactions: int) -> None:
        self._folder = folder
        self._head = {"build": build, "transactions": transactions}
        self._files: dict[Path, dict[str, Cost]] = {}
        self._lock = threading.Lock()

    def _costs(self, of: Combination) -> tuple[Path, dict[str, Cost]]:
        path = self._folder / f"{of.workload}-{of.machine}.json"
        if path not in self._files:
            self._files[path] = self._read(path)
        return path, self._files[path]

    def _read(self, path: Path) -> dict[str, Cost]:
        if not path.exists():
            return {}
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["of"] != self._head:
            return {}
        return {name: Cost(**cost) for name, cost in stored["costs"].items()}

    def get(self, of: Combination) -> Cost | None:
        """What a combination cost, if it has been measured."""
        with self._lock:
            return self._costs(of)[1].get(of.name)

    def put(self, of: Combination, cost: Cost) -> None:
        """Keeps what a combination cost."""
        with self._lock:
            path, costs = self._costs(of)
            costs[of.name] = cost
            kept = {"of": self._head, "costs": {name: vars(cost) for name, cost in costs.items()}}
            path.parent.mkdir(parents=True, exist_ok=True)
            output.write(path, json.dumps(kept).encode())


def measure(wanted: Sequence[Combination], store: Store, given: argparse.Namespace) -> None:
    """Measures what is not stored yet."""
    missing = [each for each in wanted if store.get(each) is None]
    left, lock, done = iter(missing), threading.Lock(), 0

    def work() -> None:
        nonlocal done
        driver = Driver()
        while True:
            with lock:
                each = next(left, None)
            if each is None:
                driver.close()
                return
            store.put(each, driver.cost(each, given.transactions, given.seconds))
            with lock:
                done += 1
                if done % 100 == 0:
                    print(f"{done} of {len(missing)} combinations", file=sys.stderr)

    with ThreadPoolExecutor(given.jobs) as pool:
        for future in [pool.submit(work) for _ in range(given.jobs)]:
            future.result()


Costs = Mapping[Combination, Cost]


def by_workload(costs: Costs) -> dict[str, dict[Combination, Cost]]:
    """Those of each workload."""
    found: dict[str, dict[Combination, Cost]] = {}
    for each, cost in costs.items():
        found.setdefault(each.workload, {})[each] = cost
    return found


def ratios(costs: Costs) -> dict[Combination, float]:
    """How many times the median of its workload each combination takes."""
    found = {}
    for of_workload in by_workload(costs).values():
        ran = {each: cost.nanoseconds for each, cost in of_workload.items() if cost.ran}
        if ran:
            median = statistics.median(ran.values())
            found |= {each: nanoseconds / median for each, nanoseconds in ran.items()}
    return found


def slow(costs: Costs) -> list[Combination]:
    """Combinations that take too long, the slowest first."""
    found = {each: times for each, times in ratios(costs).items() if times > SLOW}
    return sorted(found, key=lambda each: -found[each])


def measured(wanted: Iterable[Combination], store: Store) -> dict[Combination, Cost]:
    """What is stored of these."""
    costs = ((each, store.get(each)) for each in wanted)
    return {each: cost for each, cost in costs if cost is not None}


def repeat(costs: dict[Combination, Cost], store: Store, given: argparse.Namespace) -> None:
    """Measures again, one at a time, what seems slow; the shortest time is kept."""
    driver = Driver()
    for _ in range(REPEATS):
        for each in slow(costs):
            again = driver.cost(each, given.transactions, given.seconds)
            if again.nanoseconds < costs[each].nanoseconds:
                costs[each] = again
                store.put(each, again)
    driver.close()


def rows_of(costs: Costs, transactions: int) -> list[Row]:
    """The rows of the table, one for each workload."""
    times = ratios(costs)
    rows = []
    for workload, of_workload in by_workload(costs).items():
        ran = {each: cost for each, cost in of_workload.items() if cost.ran}
        if not ran:
            continue
        worst = max(ran, key=lambda each: times[each])
        values = (
            workload,
            transactions,
            len(ran),
            len(of_workload) - len(ran),
            sum(cost.outcome == "cut" for cost in ran.values()),
            f"{statistics.median(cost.nanoseconds for cost in ran.values()):.0f}",
            worst.name,
            f"{ran[worst].nanoseconds:.0f}",
            f"{times[worst]:.1f}",
            " ".join(sorted(each.name for each in ran if times[each] > SLOW)),
        )
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return rows


def shown(rows: Sequence[Row]) -> str:
    """What the page shows."""
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
    return table_of(head, cells, texts=2)


def main(arguments: list[str]) -> int:
    """Measures what is left, unless only what is stored is wanted; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.corners")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    parser.add_argument("--list", action="store_true", help="run nothing, name combinations")
    what = "combinations to measure (a glob of DESIGN/WORKLOAD/MACHINE/THREADS)"
    parser.add_argument("--only", default="*", metavar="PATTERN", help=what)
    help_ = f"of each run ({TRANSACTIONS}); the table is of these alone"
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, help=help_)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="to cut a run after")
    parser.add_argument("--every", type=int, default=1, help="each so many-th combination (1)")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time (2)")
    given = parser.parse_args(arguments)
    if given.stored:
        write_page(PAGE, shown(read_rows(TABLE)))
        return 0
    everything = list(combinations())
    folder = STATES / "corners" / str(given.transactions)
    store = Store(folder, _engine.build(), given.transactions)
    wanted = [
        each
        for each in everything
        if fnmatchcase(each.name, given.only) and crc32(each.name.encode()) % given.every == 0
    ]
    if given.list:
        print(*(each.name for each in wanted), sep="\n")
        return 0
    measure(wanted, store, given)
    costs = measured(everything, store)
    repeat(costs, store, given)
    failed = [each for each, cost in costs.items() if cost.failed]
    for each in failed:
        print(f"{each.name}: {costs[each].outcome}")
    times = ratios(costs)
    for each in slow(costs):
        print(f"{each.name}: {times[each]:.1f} times the median, {costs[each]}")
    if given.transactions == TRANSACTIONS:
        rows = rows_of(costs, given.transactions)
        write_rows(TABLE, COLUMNS, rows)
        write_page(PAGE, shown(rows))
    return 1 if failed or slow(costs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
