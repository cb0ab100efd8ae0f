"""Regions in steady state against 400,000 transactions: do comparisons say what those say?

    python -m tests.campaigns.steady [--workloads NAMES] [--designs NAMES] [--jobs N]
    python -m tests.campaigns.steady --stored   write the page from the table

Every design is compared with `base` on every workload three times on Silo's machine: as `graven
compare` does it by default, in a region whose length precision decides; in a region of `LONG`
transactions; and in whole runs of as many from empty caches on. The ratios, and half of the
interval that the comparison states, are rows of `steady.csv`, and `docs/steady.md` shows them.

The campaign keeps results in the store `graven-results/steady`, and simulates only what is missing
there after an interrupt. It writes a workload's rows when all its designs are through.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.campaigns.tables import (
    ROOT,
    STATES,
    Row,
    read_rows,
    replaced,
    table_of,
    write_page,
    write_rows,
)

import graven
from graven.api import design_names, workload_names
from graven.comparison import Normalised
from graven.region import growth

TABLE = Path(__file__).parent / "steady.csv"
PAGE = ROOT / "docs/steady.md"
STORE = STATES / "steady"

MACHINE = "silo"
LONG = 400_000
"""Transactions of a long region, and of a whole run."""
BASELINE = "base"

FAST_FORWARD = "region.fast_forward_transactions"
EARLIER = 50_000
"""Transactions without time before the long region of structures that grow, in place of 200,000:
the structures are then as large in its middle as in that of the short region."""

METRICS = {
    "throughput_tx_per_s": "throughput",
    "media_write_requests": "media writes",
    "write_energy_pj": "write energy",
}
COLUMNS = (
    "workload",
    "design",
    "metric",
    "region",
    "half_width",
    "long",
    "long_half_width",
    "whole",
    "grows",
    "why_not_steady",
)

WITHIN = 0.05
"""How far the two may be apart, over the long run's."""


def compared(workload: str, designs: Sequence[str], jobs: int | None) -> tuple[Normalised, ...]:
    """A workload's comparison in regions, in long ones, and in whole runs."""
    usual = {"machine": MACHINE, "store": STORE, "jobs": jobs}
    of = [name for name in designs if name != BASELINE]
    regions = graven.compare([BASELINE, *of], workload, **usual)
    earlier = {FAST_FORWARD: EARLIER} if growth(regions) else {}
    long = graven.compare([BASELINE, *of], workload, transactions=LONG, settings=earlier, **usual)
    whole = graven.compare([BASELINE, *of], workload, transactions=LONG, from_start=True, **usual)
    return tuple(each.normalised(BASELINE) for each in (regions, long, whole))


def rows_of(workload: str, designs: Sequence[str], jobs: int | None) -> list[Row]:
    """What came out of a workload."""
    regions, long, whole = compared(workload, designs, jobs)
    (threads,) = regions.comparison.threads
    grows = "yes" if growth(regions.comparison) else ""
    rows = []
    for design in regions.comparison.designs:
        record = regions.comparison.find(design, workload, threads)
        if design == BASELINE or record is None:
            continue
        for metric in METRICS:
            here = regions.interval(metric, design, workload, threads)
            there = long.interval(metric, design, workload, threads)
            beside = whole.value(metric, design, workload, threads)
            if here is None or there is None or beside is None:
                continue
            values = (
                workload, design, metric, f"{here.mean:.5g}", f"{here.half_width or 0.0:.3g}",
                f"{there.mean:.5g}", f"{there.half_width or 0.0:.3g}", f"{beside:.5g}",
                grows, "; ".join(record.why_not_steady),
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def apart(row: Row, which: str = "long") -> float:
    """How far the region is from the long one, over that."""
    return float(row["region"]) / float(row[which]) - 1.0


def is_inside(row: Row) -> bool:
    """Whether the long region is in the interval that the short one states."""
    return abs(float(row["region"]) - float(row["long"])) <= float(row["half_width"])


def overlaps(row: Row) -> bool:
    """Whether the intervals of the two have a value in common."""
    both = float(row["half_width"]) + float(row["long_half_width"])
    return abs(float(row["region"]) - float(row["long"])) <= both


def counted(rows: Sequence[Row]) -> str:
    """How many regions hold what they say, a sentence for each metric."""
    said = []
    for metric, title in METRICS.items():
        of = [row for row in rows if row["metric"] == metric]
        steady = [row for row in of if not row["why_not_steady"]]
        near = sum(abs(apart(row)) <= WITHIN for row in steady)
        inside = sum(map(is_inside, steady))
        common = sum(map(overlaps, steady))
        whole = sum(abs(apart(row, "whole")) <= WITHIN for row in steady)
        said.append(
            f"{title.capitalize()}: {len(steady)} of {len(of)} regions are in steady state; of "
            f"these, {near} are within {100 * WITHIN:.0f} % of the long region, {inside} state an "
            f"interval that it is in, and {common} one that overlaps with its own; {whole} are "
            f"within {100 * WITHIN:.0f} % of the whole run."
        )
    level = [row for row in rows if not row["grows"] and not row["why_not_steady"]]
    workloads = ", ".join(dict.fromkeys(f"`{row['workload']}`" for row in level))
    said.append(
        f"Of what does not grow ({workloads}), {sum(map(is_inside, level))} of {len(level)} state "
        "an interval that the long region is in."
    )
    return "\n\n".join(said)


def shown(rows: Sequence[Row]) -> str:
    """The table of the page: throughput, and how far the others are from the long region's."""
    by = {(row["workload"], row["design"], row["metric"]): row for row in rows}
    head = ["workload", "design", "region", "±", "long region", "apart", "whole run"]
    head += [f"{title}, apart" for title in list(METRICS.values())[1:]]
    first, *others = METRICS
    lines = []
    for (workload, design, metric), row in by.items():
        if metric != first:
            continue
        beside = [by.get((workload, design, other)) for other in others]
        mark = "" if is_inside(row) else " *"
        lines.append(
            [
                workload,
                f"`{design}`" + (" (not steady)" if row["why_not_steady"] else ""),
                f"{float(row['region']):.3f}",
                f"{float(row['half_width']):.3f}",
                f"{float(row['long']):.3f} ±{float(row['long_half_width']):.3f}",
                f"{100 * apart(row):+.1f} %{mark}",
                f"{float(row['whole']):.3f}",
                *("" if other is None else f"{100 * apart(other):+.1f} %" for other in beside),
            ]
        )
    return table_of(head, lines, texts=2)


def main() -> None:
    """Runs what is missing, writes table and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", default="micro", help="names or groups, with commas")
    parser.add_argument("--designs", help="names, with commas [default: as of compare]")
    parser.add_argument("--jobs", type=int, help="simulations at a time")
    parser.add_argument("--stored", action="store_true", help="write the page from the table")
    asked = parser.parse_args()
    if not asked.stored:
        warnings.simplefilter("ignore")
        for workload in workload_names(asked.workloads):
            rows = rows_of(workload, design_names(asked.designs), asked.jobs)
            before = read_rows(TABLE)
            write_rows(TABLE, COLUMNS, replaced(before, rows, COLUMNS[:3]))
            print(workload, flush=True)
            print(counted(rows), flush=True)
    rows = read_rows(TABLE)
    write_page(PAGE, counted(rows), shown(rows))


if __name__ == "__main__":
    main()
