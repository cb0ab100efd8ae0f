"""Properties of the workloads beside what the papers print of theirs.

    python -m tests.campaigns.properties [--transactions N] [--seeds N] [--jobs N]

Each workload of a paper's machine runs once per seed under `ideal`, which adds nothing to what the
program does. `properties.csv` has the mean over the seeds and the largest difference between two of
them for every property; `docs/explanation/workloads.md` shows the table that `--table` prints. What
a paper prints is in `PRINTED`, with where it stands; nothing is fitted to it.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graven.basics import output
from graven.engine.machine import Machine
from graven.results.record import Record
from graven.running.experiment import record_of
from graven.running.job import Job, matrix
from graven.running.pool import Pool

RESULTS = Path(__file__).parent / "properties.csv"


def _per(one: str, other: str) -> Callable[[Record], float]:
    return lambda record: _stat(record, one) / max(1.0, _stat(record, other))


def _stat(record: Record, name: str) -> float:
    value = record.stats[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is no number")
    return float(value)


def _clean_bytes(record: Record) -> float:
    stores = _stat(record, "transactional_stores")
    return 100.0 * _stat(record, "transactional_bytes_clean") / max(1.0, 8.0 * stores)


def _share(of: str, name: str) -> Callable[[Record], float]:
    return lambda record: 100.0 * _stat(record, name) / max(1.0, _stat(record, of))


PROPERTIES: Mapping[str, Callable[[Record], float]] = {
    "stores per transaction": _per("transactional_stores", "committed_transactions"),
    "write set, B": lambda record: _stat(record, "stored_bytes_per_transaction_mean"),
    "silent stores, %": _share("transactional_stores", "silent_stores"),
    "clean bytes, %": _clean_bytes,
    "stores to the same word again, %": lambda record: (
        100.0 - _share("transactional_stores", "write_distance_first")(record)
    ),
    "write distance above 31, %": _share("transactional_stores", "write_distance_over_31"),
    "instructions per store": _per("instructions", "transactional_stores"),
    "LLC misses, %": lambda record: 100.0 * _stat(record, "llc_miss_ratio"),
}


@dataclass(frozen=True)
class Printed:
    """What a paper prints of a property.

    Attributes:
        machine: The paper's machine.
        workloads: The workloads that it is said of; none: all of the paper.
        name: The property.
        value: As printed.
        where: Section or table.
    """

    machine: str
    workloads: tuple[str, ...]
    name: str
    value: str
    where: str


PRINTED = (
    Printed("hoop", ("vector", "hash"), "stores per transaction", "8", "HOOP Table III"),
    Printed("hoop", ("queue",), "stores per transaction", "4", "HOOP Table III"),
    Printed("hoop", ("rbtree",), "stores per transaction", "2 to 10", "HOOP Table III"),
    Printed("hoop", ("btree",), "stores per transaction", "2 to 12", "HOOP Table III"),
    Printed("hoop", ("ycsb",), "stores per transaction", "8 to 32", "HOOP Table III"),
    Printed("hoop", ("tpcc-new-order",), "stores per transaction", "10 to 35", "HOOP Table III"),
    Printed("silo", (), "write set, B", "below 0.5 KB in most", "Silo §II-E, Fig. 4"),
    Printed("morlog", (), "clean bytes, %", "70.5, of WHISPER", "MorLog §II-C, Fig. 5"),
    Printed("morlog", (), "write distance above 31, %", "44.8, of WHISPER", "MorLog §II-B, Fig. 3"),
)

WORKLOADS: Mapping[str, tuple[str, ...]] = {
    "silo": ("array", "btree", "hash", "queue", "rbtree", "tpcc-new-order", "ycsb"),
    "morlog": ("btree", "hash", "queue", "rbtree", "sdg", "sps"),
    "fwb": ("btree", "hash", "rbtree", "sps", "ssca2"),
    "hoop": ("vector", "hash", "queue", "rbtree", "btree", "ycsb", "tpcc-new-order"),
    "lalea": ("btree", "chain-queue", "hash", "rbtree", "tpcc", "tatp"),
}
"""Those of each paper's own evaluation."""

COLUMNS = ("machine", "workload", "property", "mean", "spread", "transactions", "seeds")

Row = Mapping[str, str]


def jobs(transactions: int, seeds: int) -> list[tuple[str, Job]]:
    """All runs, with the machine of each."""
    return [
        (machine, job)
        for machine, workloads in WORKLOADS.items()
        for seed in range(1, seeds + 1)
        for job in matrix(
            ["ideal"],
            workloads,
            Machine(machine),
            threads=[None],
            transactions=transactions,
            settings={"statistics.write_distances": "true"},
            vary=[],
            seed=seed,
        )
    ]


def measure(transactions: int, seeds: int, workers: int) -> list[Row]:
    """Runs everything and sums it up."""
    wanted = jobs(transactions, seeds)
    outcome = Pool([(job.label, job.simulation()) for _, job in wanted], workers).run()
    if outcome.failures or outcome.interrupted:
        sys.exit(f"not complete: {outcome.failures or 'interrupted'}")
    found: dict[tuple[str, str], list[Record]] = {}
    for index, text in sorted(outcome.texts.items()):
        machine, job = wanted[index]
        found.setdefault((machine, job.workload), []).append(record_of(job, text))
    return [
        _row(machine, workload, name, [of(record) for record in records], transactions)
        for (machine, workload), records in found.items()
        for name, of in PROPERTIES.items()
    ]


def _row(machine: str, workload: str, name: str, values: Sequence[float], transactions: int) -> Row:
    return {
        "machine": machine,
        "workload": workload,
        "property": name,
        "mean": f"{sum(values) / len(values):.4g}",
        "spread": f"{max(values) - min(values):.2g}",
        "transactions": str(transactions),
        "seeds": str(len(values)),
    }


def table(rows: Sequence[Row]) -> str:
    """The table of workloads and their properties in `docs/explanation/workloads.md`."""
    lines = [
        "| machine | workload | " + " | ".join(PROPERTIES) + " |",
        "|---|---|" + "---|" * len(PROPERTIES),
    ]
    for machine, workloads in WORKLOADS.items():
        for workload in workloads:
            means = {
                row["property"]: row["mean"]
                for row in rows
                if (row["machine"], row["workload"]) == (machine, workload)
            }
            cells = [means.get(name, "") for name in PROPERTIES]
            lines.append(f"| {machine} | `{workload}` | " + " | ".join(cells) + " |")
    lines += ["", "| printed | of | value | measured here |", "|---|---|---|---|"]
    for item in PRINTED:
        named = item.workloads or WORKLOADS[item.machine]
        values = [
            f"{row['workload']} {row['mean']}"
            for row in rows
            if row["machine"] == item.machine
            and row["workload"] in named
            and row["property"] == item.name
        ]
        of = ", ".join(f"`{name}`" for name in item.workloads) or "all"
        lines.append(f"| {item.where}: {item.name} | {of} | {item.value} | {', '.join(values)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Measures, or prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.properties")
    parser.add_argument("--transactions", type=int, default=10_000, help="of each run (10000)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each workload (3)")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time (2)")
    parser.add_argument("--table", action="store_true", help="print what properties.csv has")
    given = parser.parse_args(arguments)
    if not given.table:
        rows = measure(given.transactions, given.seeds, given.jobs)
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        output.write(RESULTS, text.getvalue().encode())
    with RESULTS.open(newline="") as file:
        print(table(list(csv.DictReader(file))), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
