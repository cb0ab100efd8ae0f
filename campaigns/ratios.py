"""Ratios of all designs over `base` by two builds: what did changes of the simulator move?

`--before` and `--after` name two checkouts, each with an environment that `make install` made. Both
run the same comparisons, in steady state with seed 1, and keep their results in the folder
`graven-results/ratios` of each.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

BASELINE = "base"

METRICS = {"throughput_tx_per_s": "throughput", "media_write_requests": "media writes"}

UNSAFE = ("ideal", "hw-rlog", "hw-ulog", "unsafe-redo", "unsafe-undo")
"""Designs that lose data, and are compared as references."""


@dataclass(frozen=True)
class Compared:
    """Comparison on a machine.

    Attributes:
        designs: Names of the designs, the baseline first.
        workloads: Names of the workloads; each is a task.
        threads: Threads of the program.
        settings: Keys that the machine's file would vary.
        transactions: Length of regions; `None` is the machine's, or as precision asks.
    """

    designs: tuple[str, ...]
    workloads: tuple[str, ...]
    threads: int = 8
    settings: Mapping[str, str] = field(default_factory=dict)
    transactions: int | None = None


COMPARED = {
    "silo": Compared(
        (
            BASELINE, "fwb", "fwb-crade", "fwb-slde", "hwl", "hoop", "lad", "lalea-lad", "lsm",
            "morlog", "morlog-crade", "morlog-slde", "morlog-dp", "opt-redo", "opt-undo", "osp",
            "redu", "lalea", "blom", "lalea-blom", "silo", "redo-clwb", "undo-clwb", *UNSAFE,
        ),
        ("array", "hash", "queue"),
    ),
    "morlog": Compared(
        (BASELINE, "fwb-crade", "fwb-slde", "morlog-crade", "morlog-slde", "morlog-dp"),
        ("btree", "hash"),
        settings={"workload.element_bytes": "64 B"},
    ),
    "hoop": Compared(
        (BASELINE, "opt-redo", "opt-undo", "osp", "lsm", "lad", "hoop", "ideal"),
        ("hash",),
        settings={"workload.element_bytes": "64 B"},
        transactions=64_000,
    ),
    "fwb": Compared(
        (BASELINE, "redo-clwb", "undo-clwb", "hwl", "fwb", "hw-rlog", "hw-ulog", "ideal"),
        ("hash",),
        settings={"workload.element_bytes": "8 B", "controller.interleave": "page"},
    ),
    "lalea": Compared(
        (BASELINE, "redu", "lalea", "blom", "lalea-blom", "lad", "lalea-lad"),
        ("hash",),
        threads=4,
        settings={"controller.interleave": "page"},
    ),
}  # fmt: skip
"""Comparison on each machine."""

MOVED = 0.05
"""Least change of a geometric mean that a page marks."""

TABLE = Table(
    "ratios",
    (
        "machine", "workload", "design", "metric", "before", "before_half_width", "after",
        "after_half_width", "itself_before", "itself_after", "not_steady",
    ),
    ("machine", "workload"),
    lambda: ((machine, each) for machine, of in COMPARED.items() for each in of.workloads),
)  # fmt: skip

PROGRAM = """
import json, sys, warnings
import graven

asked = json.load(sys.stdin)
warnings.simplefilter("ignore")
compared = graven.compare(
    asked["designs"], asked["workload"], machine=asked["machine"], threads=asked["threads"],
    settings=asked["settings"], transactions=asked["transactions"], jobs=asked["jobs"],
    store="graven-results/ratios",
)
ratios = compared.normalised(asked["baseline"])
found = []
for design in asked["designs"]:
    record = compared.find(design, asked["workload"], asked["threads"])
    for metric in asked["metrics"]:
        cell = metric, design, asked["workload"], asked["threads"]
        ratio, itself = ratios.interval(*cell), compared.interval(*cell)
        found.append({
            "design": design, "metric": metric, "ratio": ratio.mean,
            "half_width": ratio.half_width, "itself": itself.mean,
            "is_steady": not record.why_not_steady,
        })
print(json.dumps(found))
"""
"""Program that each build runs. It uses names that both have."""

Found = Sequence[Mapping[str, Any]]


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the two checkouts."""
    for name in ("before", "after"):
        parser.add_argument(
            f"--{name}", type=Path, default=ROOT, metavar="FOLDER", help="checkout of that build"
        )


def names(given: Given) -> Iterator[str]:
    """Names the tasks."""
    del given
    for machine, of in COMPARED.items():
        yield from (f"{machine}/{workload}" for workload in of.workloads)


def measure(name: str, given: Given) -> Rows:
    """Compares the designs on a workload by both builds."""
    machine, workload = name.split("/")
    before, after = (
        compared(folder, machine, workload, given.jobs) for folder in (given.before, given.after)
    )
    return {TABLE: list(rows_of(machine, workload, before, after))}


def compared(checkout: Path, machine: str, workload: str, jobs: int) -> Found:
    """Returns ratios and values of all designs by the build of a checkout."""
    of = COMPARED[machine]
    asked = {
        "machine": machine,
        "designs": of.designs,
        "workload": workload,
        "threads": of.threads,
        "settings": dict(of.settings),
        "transactions": of.transactions,
        "jobs": jobs,
        "baseline": BASELINE,
        "metrics": list(METRICS),
    }
    command = [str(checkout.absolute() / ".venv/bin/python"), "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=checkout, input=json.dumps(asked), stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise Failed(f"{machine}/{workload}: exit code {done.returncode} in {checkout}")
    found: Found = json.loads(done.stdout)
    return found


def rows_of(machine: str, workload: str, before: Found, after: Found) -> Iterator[Row]:
    """Makes the rows of a workload."""
    for one, other in zip(before, after, strict=True):
        unsteady = [
            when for when, found in (("before", one), ("after", other)) if not found["is_steady"]
        ]
        yield TABLE.row(
            machine, workload, one["design"], one["metric"],
            *(written(found[of]) for found in (one, other) for of in ("ratio", "half_width")),
            written(one["itself"]), written(other["itself"]), " ".join(unsteady),
        )  # fmt: skip


def written(value: float | None) -> str:
    """Returns a number as the table has it."""
    return "" if value is None else f"{value:.5g}"


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes a table of geometric means for each machine, and one of its workloads."""
    made = []
    for machine, compared_on in COMPARED.items():
        of = [row for row in rows if row["machine"] == machine]
        made.append(means(of))
        if len(compared_on.workloads) > 1:
            made.append(by_workload(of))
    return made


def means(rows: Sequence[Row]) -> str:
    """Makes the table of geometric means over workloads."""
    lines = []
    for design in designs_of(rows):
        is_unsteady = any(row["not_steady"] for row in rows if row["design"] == design)
        marks = (" †" if design in UNSAFE else "") + (" ~" if is_unsteady else "")
        cells = [f"`{design}`{marks}"]
        for metric in METRICS:
            of = [row for row in rows if row["design"] == design and row["metric"] == metric]
            before, after = (geometric([float(row[when]) for row in of]) for when in WHEN)
            cells += [f"{before:.3f}", f"{after:.3f}", change(after / before)]
        itself = [
            float(row["itself_after"]) / float(row["itself_before"])
            for row in rows
            if row["design"] == design and row["metric"] == next(iter(METRICS))
        ]
        lines.append([*cells, change(geometric(itself))])
    head = ["design"]
    for title in METRICS.values():
        head += [f"{title}, before", "after", "change"]
    return table_of([*head, "itself"], lines)


def by_workload(rows: Sequence[Row]) -> str:
    """Makes the table of each workload's ratio of throughput, before and after."""
    first = next(iter(METRICS))
    by = {(row["design"], row["workload"]): row for row in rows if row["metric"] == first}
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    lines = [
        [f"`{design}`", *(both(by[design, workload]) for workload in workloads)]
        for design in designs_of(rows)
    ]
    return table_of(["design", *workloads], lines)


WHEN = ("before", "after")


def designs_of(rows: Sequence[Row]) -> list[str]:
    """Names the designs, in the order of the rows."""
    return list(dict.fromkeys(row["design"] for row in rows))


def both(row: Row) -> str:
    """Shows a ratio before and after, marked where one is of no steady state or intervals part."""
    before, after = (float(row[when]) for when in WHEN)
    widths = [float(row[f"{when}_half_width"] or 0) for when in WHEN]
    apart = abs(after - before) > sum(widths)
    marks = (" *" if apart else "") + (" ~" if row["not_steady"] else "")
    return f"{before:.3f} → {after:.3f}{marks}"


def geometric(values: Sequence[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def change(ratio: float) -> str:
    """Shows a change in percent, in bold from `MOVED` on."""
    said = f"{100 * (ratio - 1):+.1f} %"
    return f"**{said}**" if abs(ratio - 1) > MOVED else said


CAMPAIGN = Campaign(
    names,
    measure,
    [TABLE],
    ROOT / "docs/results/ratios.md",
    blocks,
    options=options,
    sizes=("before", "after"),
)
