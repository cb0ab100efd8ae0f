"""Regions in steady state against 400,000 transactions: do the stated intervals hold?

The campaign compares every design with `base` on every workload three times on Silo's machine: as
`graven compare` does by default, in a region whose length precision decides; in a region of `LONG`
transactions; and in whole runs of `LONG` transactions from empty caches on. A structure that grows
is larger in a long region, so seven seeds are measured there: the regions of the other six, with as
many transactions at the same size, judge the interval of each. `steady.csv` has the ratios and half
of the stated intervals.

The campaign keeps results in the store `graven-results/steady`, and simulates only those that are
missing there after an interrupt.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import graven
from graven.api.options import design_names, workload_names
from graven.results.comparison import Normalised
from graven.results.region import growth

from .runner import STATES, Campaign, Given, Rows
from .tables import ROOT, Row, Table, table_of, wrapped

STORE = STATES / "steady"

MACHINE = "silo"
LONG = 400_000
"""Transactions of a long region, and of a whole run."""
BASELINE = "base"

FAST_FORWARD = "region.fast_forward_transactions"
EARLIER = 50_000
"""Transactions without time before the long region of structures that grow, in place of 200,000:
the structures are then as large in its middle as in that of the short region."""

SEEDS = (1, 2, 3, 4, 5, 6, 7)
"""The seeds of the regions of structures that grow; of others it is the first one."""

METRICS = {
    "throughput_tx_per_s": "throughput",
    "media_write_requests": "media writes",
    "write_energy_pj": "write energy",
}
TABLE = Table(
    "steady",
    (
        "workload", "design", "metric", "region", "half_width", "long", "long_half_width", "others",
        "others_half_width", "inside", "seeds", "whole", "why_not_steady",
    ),
    ("workload", "design"),
)  # fmt: skip

WITHIN = 0.05
"""Distance that the two may have, over the long run's."""


@dataclass(frozen=True)
class Compared:
    """A workload's comparisons, relative to the baseline."""

    regions: tuple[Normalised, ...]
    """One for each seed: of structures that do not grow, one alone."""
    long: Normalised
    whole: Normalised

    @property
    def grows(self) -> bool:
        """True if the structure is another one in the course of a long region."""
        return len(self.regions) > 1


def compared(workload: str, designs: Sequence[str], jobs: int | None) -> Compared:
    """Compares a workload in regions, in long ones, and in whole runs."""
    usual = {"machine": MACHINE, "store": STORE, "jobs": jobs}
    names = [BASELINE, *(name for name in designs if name != BASELINE)]
    regions = [graven.compare(names, workload, **usual)]
    earlier = {}
    if growth(regions[0]):
        earlier = {FAST_FORWARD: EARLIER}
        regions += [graven.compare(names, workload, seed=seed, **usual) for seed in SEEDS[1:]]
    long = graven.compare(names, workload, transactions=LONG, settings=earlier, **usual)
    whole = graven.compare(names, workload, transactions=LONG, from_start=True, **usual)
    return Compared(
        tuple(each.normalised(BASELINE) for each in regions),
        long.normalised(BASELINE),
        whole.normalised(BASELINE),
    )


def rows_of(workload: str, designs: Sequence[str], jobs: int | None) -> list[Row]:
    """Makes the rows of a workload."""
    all_of = compared(workload, designs, jobs)
    comparison = all_of.regions[0].comparison
    (threads,) = comparison.threads
    rows = []
    for design in comparison.designs:
        record = comparison.find(design, workload, threads)
        if design == BASELINE or record is None:
            continue
        for metric in METRICS:
            cell = (metric, design, workload, threads)
            each = [one.interval(*cell) for one in all_of.regions]
            known = [interval for interval in each if interval is not None]
            long, whole = all_of.long.interval(*cell), all_of.whole.value(*cell)
            if len(known) < len(each) or long is None or whole is None:
                continue
            others = graven.Interval.of([one.mean for one in known[1:]])
            inside = holding(known) if all_of.grows else holds(known[0], long.mean)
            values = (
                workload, design, metric, *written(known[0]), *written(long), *written(others),
                int(inside), len(known), f"{whole:.5g}", "; ".join(record.why_not_steady),
            )  # fmt: skip
            rows.append(TABLE.row(*values))
    return rows


def holds(interval: graven.Interval, value: float) -> bool:
    """Returns True if a value is in an interval."""
    return interval.low <= value <= interval.high


def holding(intervals: Sequence[graven.Interval]) -> int:
    """Counts the intervals, of several of the same, that contain the mean of the others."""
    total = sum(one.mean for one in intervals)
    beside = len(intervals) - 1
    return sum(holds(one, (total - one.mean) / beside) for one in intervals)


def written(interval: graven.Interval | None) -> tuple[str, str]:
    """Returns mean and half-width as the table has them."""
    if interval is None:
        return "", ""
    return f"{interval.mean:.5g}", f"{interval.half_width or 0.0:.3g}"


def apart(row: Row, which: str) -> float:
    """Returns the distance of the region from another value, over that."""
    return float(row["region"]) / float(row[which]) - 1.0


def judge(row: Row) -> str:
    """Returns the column that tells if the stated interval of the first seed holds."""
    return "others" if row["others"] else "long"


def is_inside(row: Row) -> bool:
    """Returns True if the region's stated interval contains the value of many more transactions."""
    return abs(float(row["region"]) - float(row[judge(row)])) <= float(row["half_width"])


def counted(rows: Sequence[Row]) -> str:
    """Counts the regions that hold what they state, in a sentence for each metric."""
    said = []
    share = f"{100 * WITHIN:.0f} %"
    for metric, title in METRICS.items():
        of = [row for row in rows if row["metric"] == metric]
        steady = [row for row in of if not row["why_not_steady"]]
        inside, seeds = (sum(int(row[column]) for row in steady) for column in ("inside", "seeds"))
        near = {
            which: sum(abs(apart(row, which)) <= WITHIN for row in steady if row[which])
            for which in ("long", "others", "whole")
        }
        growing = sum(bool(row["others"]) for row in steady)
        said.append(
            wrapped(
                f"{title.capitalize()}: {len(steady)} of {len(of)} regions are in steady state. "
                f"Of the {seeds} intervals of all seeds {inside} ({100 * inside / seeds:.0f} %) "
                f"contain the value of many more transactions. With seed 1, {near['long']} are "
                f"within {share} of the long region, {near['others']} of {growing} within {share} "
                f"of the other seeds, and {near['whole']} within {share} of the whole run."
            )
        )
    return "\n\n".join(said)


def shown(rows: Sequence[Row]) -> str:
    """Makes the table of the page: throughput, and distances from many more transactions."""
    by = {(row["workload"], row["design"], row["metric"]): row for row in rows}
    head = ["workload", "design", "region", "long region", "other seeds", "apart", "whole run"]
    head += [f"{title}, apart" for title in list(METRICS.values())[1:]]
    first, *others = METRICS
    lines = []
    for (workload, design, metric), row in by.items():
        if metric != first:
            continue
        beside = [by.get((workload, design, other)) for other in others]
        lines.append(
            [
                workload,
                f"`{design}`" + (" (not steady)" if row["why_not_steady"] else ""),
                with_half_width(row, "region", "half_width"),
                with_half_width(row, "long", "long_half_width"),
                with_half_width(row, "others", "others_half_width") if row["others"] else "",
                difference(row),
                f"{float(row['whole']):.3f}",
                *("" if other is None else difference(other) for other in beside),
            ]
        )
    return table_of(head, lines, texts=2)


def with_half_width(row: Row, column: str, half_width: str) -> str:
    """Shows a value and half of its interval."""
    return f"{float(row[column]):.3f} ±{float(row[half_width]):.3f}"


def difference(row: Row) -> str:
    """Shows the distance from many more transactions, marked if it is outside the interval."""
    return f"{100 * apart(row, judge(row)):+.1f} %" + ("" if is_inside(row) else " *")


def measure(workload: str, given: Given) -> Rows:
    """Compares the designs on a workload."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {TABLE: rows_of(workload, design_names(given.designs), given.jobs)}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds what is compared."""
    parser.add_argument("--workloads", default="micro", help="names or groups, with commas")
    parser.add_argument("--designs", help="names, with commas [default: as of compare]")


CAMPAIGN = Campaign(
    lambda given: workload_names(given.workloads),
    measure,
    [TABLE],
    ROOT / "docs/results/steady.md",
    lambda rows: [counted(rows), shown(rows)],
    options=options,
    sizes=("designs",),
)
