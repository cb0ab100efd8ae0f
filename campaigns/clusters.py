"""Sweeps of 2,000 simulations on a Dask cluster and on Slurm, and the scheduler at a million.

Runs the same sweep on this host, on four workers of Dask that are killed at random (each is
replaced), and on a Slurm of one node whose jobs are killed and requeued at random, and compares
what each writes, byte for byte. Then the scheduler alone, with times that are drawn: a million
simulations on a thousand workers that die now and then. Both clusters are started here, on the
loopback address, and stopped.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .runner import Campaign, Given, Rows
from .tables import ROOT, Row, Table, table_of

sys.path.append(str(ROOT / "python" / "tests"))

from clusters import dask_cluster, slurm_cluster

from graven.api.sweeps import Sweep
from graven.executors.dispatch import Dispatcher
from graven.executors.shards import Shard
from graven.store import Store
from graven.store.keeper import Keeper, digest

TABLE = Table(
    "clusters",
    ("what", "figure", "value", "unit"),
    ("what",),
    lambda: ((what,) for what in ("local", "dask", "slurm", MILLION_ROWS)),
)

SWEEP = """
designs = ["base", "fwb", "morlog-slde", "silo", "hoop"]
workloads = ["hash", "btree", "queue", "array"]
transactions = 1_000
seeds = [{seeds}]
set = {{ "workload.footprint_bytes" = "1 MB" }}
vary = {{ "pm.write_ns" = [100, 150, 200, 300] }}
"""

MILLION = 1_000_000

MILLION_ROWS = "a million"
"""Name that rows about the scheduler alone have."""

KILL_SECONDS = 1.5
"""Seconds between two kills, on average."""


def _sweep(simulations: int) -> str:
    seeds = max(1, simulations // (5 * 4 * 4))
    return SWEEP.format(seeds=", ".join(str(seed) for seed in range(1, seeds + 1)))


def _run(folder: Path, name: str, *on: str, **environment: str) -> tuple[bytes, float]:
    words = [sys.executable, "-m", "graven", "sweep", "sweep.toml", "--format", "json"]
    started = time.monotonic()
    done = subprocess.run(
        [*words, "--store", name, *on],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout, time.monotonic() - started


class _Killer(threading.Thread):
    """Does something unkind now and then, until it is told to stop."""

    def __init__(self, unkind: Callable[[random.Random], bool]) -> None:
        super().__init__(daemon=True)
        self._unkind, self._dice = unkind, random.Random(11)
        self.enough = threading.Event()
        self.times = 0

    def run(self) -> None:
        while not self.enough.wait(self._dice.expovariate(1 / KILL_SECONDS)):
            self.times += self._unkind(self._dice)


def _records(store: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in (store / "segments").glob("*.tsv"))


def _verified(folder: Path, name: str) -> bool:
    words = [sys.executable, "-m", "graven", "results", "verify", "--store", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(words, cwd=folder, env=environment, check=False)
    return done.returncode == 0


def _figures(what: str, folder: Path, came: tuple[bytes, float], same: bytes, kills: int) -> list:
    out, seconds = came
    return [
        (what, "wall time", f"{seconds:.0f}", "s"),
        (what, "killed", str(kills), "times"),
        (what, "the same bytes as on this host", "yes" if out == same else "NO", ""),
        (what, "records in the store", str(_records(folder / what)), ""),
        (what, "the store is sound", "yes" if _verified(folder, what) else "NO", ""),
    ]


def _on_dask(folder: Path, same: bytes) -> list:
    with dask_cluster(folder / "dask-cluster", 4) as cluster:

        def kill(dice: random.Random) -> bool:
            cluster.kill_worker(dice.randrange(len(cluster.workers)))
            cluster.add_worker()
            return True

        killer = _Killer(kill)
        killer.start()
        came = _run(folder, "dask", "--on", f"dask://{cluster.address}")
        killer.enough.set()
        killer.join()
    return _figures("dask", folder, came, same, killer.times)


def _on_slurm(folder: Path, same: bytes) -> list:
    with slurm_cluster(folder / "slurm-cluster", cpus=4) as cluster:

        def kill(dice: random.Random) -> bool:
            said = cluster.command("squeue", "--noheader", "--array", "--format=%i|%T").stdout
            running = [line.split("|")[0] for line in said.split() if line.endswith("RUNNING")]
            if not running:
                return False
            job = dice.choice(running)
            how = dice.choice((("scontrol", "requeue"), ("scancel", "--signal=KILL", "--full")))
            return cluster.command(*how, job).returncode == 0

        killer = _Killer(kill)
        killer.start()
        came = _run(folder, "slurm", "--on", "slurm", **cluster.environment)
        killer.enough.set()
        killer.join()
    return _figures("slurm", folder, came, same, killer.times)


# ---- the scheduler alone -----------------------------------------------------------------------


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _timed(rows: list, figure: str, work: Callable[[], object]) -> object:
    started = time.monotonic()
    result = work()
    rows.append((MILLION_ROWS, figure, f"{time.monotonic() - started:.1f}", "s"))
    return result


def _scheduler() -> list:
    """Planning a million simulations, and handing them out, without simulating."""
    rows: list = []
    values = ", ".join(str(100 + at) for at in range(2_000))
    text = f"""
designs = ["base", "fwb", "morlog-slde", "silo", "hoop"]
workloads = ["hash", "btree", "queue", "array", "rbtree"]
threads = [1, 2, 4, 8]
seeds = [1, 2, 3, 4, 5]
vary = {{ "pm.write_ns" = [{values}] }}
"""
    sweep = _timed(rows, "reading the sweep", lambda: Sweep.parse(text, "sweep.toml", Path()))
    assert isinstance(sweep, Sweep)
    assert len(sweep.jobs) == MILLION
    _timed(rows, "having the engine check it", sweep.check)
    costs = _timed(rows, "estimates", sweep.costs)
    assert isinstance(costs, list)
    _timed(rows, "digests", lambda: [digest(job) for job in sweep.jobs])
    with tempfile.TemporaryDirectory() as folder:
        keep = Keeper(Store(Path(folder) / "store"))
        keep.store.ensure()
        _timed(rows, "looking for each in an empty store", lambda: [*map(keep.has, sweep.jobs)])
    _timed(rows, "the first of a thousand shards", lambda: Shard(1, 1000).part(costs))
    rows.append((MILLION_ROWS, "memory of the plan, with the above", f"{_peak_mb():.0f}", "MB"))
    rows += _handed_out(costs)
    return rows


def _handed_out(costs: list[float], workers: int = 1_000) -> list:
    """Jobs on workers that die, in time that is drawn: each takes what it costs, more or less."""
    dice = random.Random(5)
    scale = 10.0 * len(costs) / sum(costs)
    dispatcher = Dispatcher(costs)
    events: list[tuple[float, int, bool]] = []
    executions = deaths = 0
    busy = 0.0
    started = time.monotonic()

    def begin(now: float) -> bool:
        nonlocal executions, busy
        at = dispatcher.take(now)
        if at is None:
            return False
        executions += 1
        seconds = costs[at] * scale * dice.lognormvariate(0.0, 0.5)
        dies = dice.random() < seconds / 100_000
        if dies:
            seconds *= dice.random()
        busy += seconds
        heapq.heappush(events, (now + seconds, at, dies))
        return True

    now = 0.0
    idle = workers - sum(begin(now) for _ in range(workers))
    while not dispatcher.is_over:
        now, at, dies = heapq.heappop(events)
        if dies:
            deaths += 1
            if not dispatcher.lose(at):
                dispatcher.finish(at, now)
        else:
            dispatcher.finish(at, now)
        idle += 1
        while idle and begin(now):
            idle -= 1
    return [
        (MILLION_ROWS, "workers, each with one at a time", str(workers), ""),
        (MILLION_ROWS, "workers that died", str(deaths), ""),
        (MILLION_ROWS, "executions", str(executions), ""),
        (MILLION_ROWS, "time on the cluster, drawn", f"{now / 3600:.2f}", "h"),
        (MILLION_ROWS, "time if all were shared out evenly", f"{busy / workers / 3600:.2f}", "h"),
        (MILLION_ROWS, "handing out", f"{time.monotonic() - started:.1f}", "s"),
    ]


def measure(name: str, given: Given) -> Rows:
    """Runs the sweep on clusters, or the scheduler alone."""
    return {TABLE: [TABLE.row(*row) for row in _NAMED[name](given)]}


def _on_clusters(given: Given) -> list:
    with tempfile.TemporaryDirectory(prefix="graven-clusters-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "sweep.toml").write_text(_sweep(given.simulations))
        out, seconds = _run(folder, "local")
        rows = [
            ("local", "simulations", str(_records(folder / "local")), ""),
            ("local", "wall time", f"{seconds:.0f}", "s"),
        ]
        for cluster in given.on:
            rows += _ON[cluster](folder, out)
        return rows


_NAMED = {"clusters": _on_clusters, "scheduler": lambda _: _scheduler()}
_ON = {"dask": _on_dask, "slurm": _on_slurm}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the size of the sweep, and the clusters."""
    parser.add_argument("--simulations", type=int, default=2_000, metavar="N")
    parser.add_argument("--on", nargs="+", choices=tuple(_ON), default=tuple(_ON))


def blocks(rows: Sequence[Row]) -> tuple[str, str]:
    """Makes the tables of the page: the scheduler at a million, and the clusters."""
    scheduler = [row for row in rows if row["what"] == MILLION_ROWS]
    tried: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["what"] != MILLION_ROWS:
            value = f"{row['value']} {row['unit']}".strip()
            tried.setdefault(row["figure"], {})[row["what"]] = value
    names = ("local", "dask", "slurm")
    return (
        table_of(("", ""), [(row["figure"], _grouped(row)) for row in scheduler]),
        table_of(
            ("", "this host", "Dask, 4 workers", "Slurm, 4 cores"),
            [(figure, *(of.get(name, "") for name in names)) for figure, of in tried.items()],
        ),
    )


def _grouped(row: Row) -> str:
    value = row["value"]
    number = f"{int(value):,}" if value.isdecimal() else value
    return f"{number} {row['unit']}".strip()


CAMPAIGN = Campaign(
    lambda _: _NAMED,
    measure,
    [TABLE],
    ROOT / "docs/guides/sweeps.md",
    blocks,
    options=options,
    sizes=("simulations", "on"),
)
