"""Properties of the workloads beside those that the papers print.

Each workload of a paper's machine runs once per seed under `ideal`, which adds nothing to what the
program does. `properties.csv` has the mean over the seeds and the largest difference between two of
them for every property. `PRINTED` has the values that a paper prints, with their places; nothing is
fitted to them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from graven.engine.machine import Machine
from graven.results.record import Record
from graven.running.experiment import record_of
from graven.running.job import matrix
from graven.running.pool import Pool

from .runner import Campaign, Given, Rows, whole
from .tables import ROOT, Row, Table, table_of

TABLE = Table(
    "properties",
    ("machine", "workload", "property", "mean", "spread", "transactions", "seeds"),
    ("machine", "workload"),
    lambda: ((machine, each) for machine, names in WORKLOADS.items() for each in names),
)


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
    """Value that a paper prints of a property.

    Attributes:
        machine: The paper's machine.
        workloads: The workloads that the paper says it of; none: all of its workloads.
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


def measure(machine: str, given: Given) -> Rows:
    """Runs the workloads of a machine."""
    jobs = [
        job
        for seed in range(1, given.seeds + 1)
        for job in matrix(
            ["ideal"],
            WORKLOADS[machine],
            Machine(machine),
            threads=[None],
            transactions=given.transactions,
            settings={"statistics.write_distances": "true"},
            vary=[],
            seed=seed,
        )
    ]
    outcome = Pool([(job.label, job.simulation()) for job in jobs], given.jobs).run()
    whole(outcome.failures, outcome.interrupted)
    found: dict[str, list[Record]] = {}
    for index, text in sorted(outcome.texts.items()):
        found.setdefault(jobs[index].workload, []).append(record_of(jobs[index], text))
    return {
        TABLE: [
            row_of(machine, workload, name, list(map(value, records)), given.transactions)
            for workload, records in found.items()
            for name, value in PROPERTIES.items()
        ]
    }


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the sizes of runs."""
    parser.add_argument("--transactions", type=int, default=10_000, help="of each run (10000)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each workload (3)")


def row_of(
    machine: str, workload: str, name: str, values: Sequence[float], transactions: int
) -> Row:
    """Makes the row of a property, of its values with each seed."""
    mean, spread = sum(values) / len(values), max(values) - min(values)
    sizes = (transactions, len(values))
    return TABLE.row(machine, workload, name, f"{mean:.4g}", f"{spread:.2g}", *sizes)


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the tables of workloads and of what is printed of them."""
    means = {(row["machine"], row["workload"], row["property"]): row["mean"] for row in rows}
    lines = [
        [
            machine,
            f"`{workload}`",
            *(means.get((machine, workload, name), "") for name in PROPERTIES),
        ]
        for machine, workloads in WORKLOADS.items()
        for workload in workloads
    ]
    printed = []
    for item in PRINTED:
        named = item.workloads or WORKLOADS[item.machine]
        of = ", ".join(f"`{name}`" for name in item.workloads) or "all"
        here = ", ".join(f"{name} {means[item.machine, name, item.name]}" for name in named)
        printed.append([f"{item.where}: {item.name}", of, item.value, here])
    head = ("machine", "workload", *PROPERTIES)
    heads = ("printed", "of", "value", "measured here")
    both = (table_of(head, lines, texts=len(head)), table_of(heads, printed, texts=len(heads)))
    return ["\n".join(both)]


CAMPAIGN = Campaign(
    lambda _: WORKLOADS,
    measure,
    [TABLE],
    ROOT / "docs/explanation/workloads.md",
    blocks,
    options=options,
    sizes=("transactions", "seeds"),
)
