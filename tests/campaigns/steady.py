"""Regions in steady state against 400,000 transactions: do comparisons say what those say?

    python -m tests.campaigns.steady [--workloads NAMES] [--designs NAMES] [--jobs N]
    python -m tests.campaigns.steady --stored   write the page from the table

Every design is compared with `base` on every workload three times on Silo's machine: as `graven
compare` does it by default, in a region whose length precision decides; in a region of `LONG`
transactions; and in whole runs of as many from empty caches on. A structure that grows is another
one in a long region. There seven seeds are measured, and the regions of six, which are as many
transactions at the same size, say of each one whether the interval that it states holds. The
ratios, and half of the interval that the comparison states, are rows of `steady.csv`, and
`docs/results/steady.md` shows them.

The campaign keeps results in the store `graven-results/steady`, and simulates only what is missing
there after an interrupt. It writes a workload's rows when all its designs are through.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
from graven.api.options import design_names, workload_names
from graven.results.comparison import Normalised
from graven.results.region import growth

TABLE = Path(__file__).parent / "steady.csv"
PAGE = ROOT / "docs/results/steady.md"
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
COLUMNS = (
    "workload",
    "design",
    "metric",
    "region",
    "half_width",
    "long",
    "long_half_width",
    "others",
    "others_half_width",
    "inside",
    "seeds",
    "whole",
    "why_not_steady",
)

WITHIN = 0.05
"""How far the two may be apart, over the long run's."""


@dataclass(frozen=True)
class Compared:
    """A workload's comparisons, relative to the baseline."""

    regions: tuple[Normalised, ...]
    """One for each seed: of structures that do not grow, one alone."""
    long: Normalised
    whole: Normalised

    @property
    def grows(self) -> bool:
        """Whether the structure is another one in the course of a long region."""
        return len(self.regions) > 1


def compared(workload: str, designs: Sequence[str], jobs: int | None) -> Compared:
    """A workload's comparison in regions, in long ones, and in whole runs."""
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
    """What came out of a workload."""
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
                str(int(inside)), str(len(known)), f"{whole:.5g}", "; ".join(record.why_not_steady),
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def holds(interval: graven.Interval, value: float) -> bool:
    """Whether a value is in an interval."""
    return interval.low <= value <= interval.high


def holding(intervals: Sequence[graven.Interval]) -> int:
    """How many of several intervals of the same have the mean of the others in them."""
    total = sum(one.mean for one in intervals)
    beside = len(intervals) - 1
    return sum(holds(one, (total - one.mean) / beside) for one in intervals)


def written(interval: graven.Interval | None) -> tuple[str, str]:
    """Mean and half-width, as the table has them."""
    if interval is None:
        return "", ""
    return f"{interval.mean:.5g}", f"{interval.half_width or 0.0:.3g}"


def apart(row: Row, which: str) -> float:
    """How far the region is from another value, over that."""
    return float(row["region"]) / float(row[which]) - 1.0


def judge(row: Row) -> str:
    """The column that says whether the stated interval of the first seed holds."""
    return "others" if row["others"] else "long"


def is_inside(row: Row) -> bool:
    """Whether the interval that the region states has the value of many more transactions in it."""
    return abs(float(row["region"]) - float(row[judge(row)])) <= float(row["half_width"])


def counted(rows: Sequence[Row]) -> str:
    """How many regions hold what they say, a sentence for each metric."""
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
            f"{title.capitalize()}: {len(steady)} of {len(of)} regions are in steady state. With "
            f"all seeds they state {seeds} intervals, and {inside} ({100 * inside / seeds:.0f} %) "
            f"have the value of many more transactions in them. Of seed 1, {near['long']} are "
            f"within {share} of the long region, {near['others']} of {growing} within {share} of "
            f"the other seeds, and {near['whole']} within {share} of the whole run."
        )
    return "\n\n".join(said)


def shown(rows: Sequence[Row]) -> str:
    """The table of the page: throughput, and how far the others are from many more transactions."""
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
    """A value and half of its interval."""
    return f"{float(row[column]):.3f} ±{float(row[half_width]):.3f}"


def difference(row: Row) -> str:
    """How far the region is from many more transactions; marked if its interval does not say so."""
    return f"{100 * apart(row, judge(row)):+.1f} %" + ("" if is_inside(row) else " *")


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
