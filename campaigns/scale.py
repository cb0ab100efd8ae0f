"""Costs of simulations to the host against their size: time and memory.

A point is a size on an axis: transactions, footprint, lines that are touched, threads, channels,
bytes of the log. Each is simulated in a process of its own, which tells how long building and
populating and the threads' programs took of the host's processor, without the orderly shutdown, and
how much memory the process had at most. Points that take less than `AGAIN_BELOW` are measured
again; the shortest time and the largest memory count.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.counts.table import Table as Counts

from graven.basics.numbers import exact

from .host_cost import Driver
from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

PLOTS = ROOT / "docs/performance"

MACHINE = "silo"

AGAIN_BELOW = 5.0
"""Seconds; what takes less is measured `TIMES` times."""

TIMES = 3

EXPONENT_MAX = 1.15
"""Power of the growth of time: 1 is linear; caches of the host account for some more."""

SHORTEST = 0.02
"""Seconds; what takes less says nothing about growth."""

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30

MEASURED = (
    "build_seconds", "run_seconds", "start_kb", "built_kb", "peak_kb", "actions", "operations",
    "transactions", "cycles", "populated_bytes",
)  # fmt: skip
KEY = ("axis", "series", "size")
TABLE = Table("scale", (*KEY, *MEASURED), KEY, lambda: (point.key for point in points()))

UPDATES = {"workload.insert_percent": "0"}
"""Elements are updated, so that a longer run has no more of them."""


@dataclass(frozen=True)
class Point:
    """Simulation whose cost is measured."""

    axis: str
    series: str
    size: int
    design: str
    workload: str
    threads: int
    transactions: int
    settings: Mapping[str, str]
    machine: str = MACHINE

    @property
    def name(self) -> str:
        """Name that `--only` matches."""
        return f"{self.axis}/{self.series}/{self.size}"

    @property
    def key(self) -> tuple[str, ...]:
        """Key of the row in the table."""
        return (self.axis, self.series, str(self.size))


@dataclass(frozen=True)
class Axis:
    """Quantity that varies, and how it is shown.

    Attributes:
        title: Title of the sizes, with their unit.
        bytes: True if sizes are bytes.
        unit: Unit of work by which times in the table are divided, in the singular.
    """

    name: str
    title: str
    bytes: bool = False
    unit: str = "transaction"


AXES = (
    Axis("transactions", "transactions"),
    Axis("footprint", "footprint, bytes", bytes=True),
    Axis("touched", "lines touched", unit="line"),
    Axis("threads", "threads"),
    Axis("channels", "channels"),
    Axis("log", "log, bytes", bytes=True),
)


def sizes(first: int, last: int, times: int) -> list[int]:
    """Returns sizes from the first to the last, each a multiple of the one before."""
    found = [first]
    while found[-1] * times <= last:
        found.append(found[-1] * times)
    return found


def points() -> Iterator[Point]:
    """Yields all points, axis by axis, series by series, ascending."""

    def point(
        design: str,
        workload: str,
        transactions: int,
        threads: int = 8,
        settings: Mapping[str, str] | None = None,
    ) -> Point:
        return Point(axis, series, size, design, workload, threads, transactions, settings or {})

    axis = "transactions"
    for design in ("silo", "hoop"):
        series = f"{design}, hash"
        for size in sizes(10**3, 10**8, 10):
            yield point(design, "hash", size, settings=UPDATES)
    series = "silo, hash, insertions"
    for size in sizes(10**3, 10**7, 10):
        yield point("silo", "hash", size)

    axis, series = "footprint", "silo, sparse"
    capacity = {"pm.capacity_bytes": "128 GB"}
    for size in sizes(MB, 64 * GB, 4):
        settings = {**capacity, "workload.footprint_bytes": str(size)}
        yield point("silo", "sparse", 20_000, settings=settings)
    series = "array, populating"
    for size in sizes(MB, 4 * GB, 4):
        yield point("silo", "array", 1000, settings={"workload.footprint_bytes": str(size)})

    axis, series = "touched", "silo, sparse in 64 GB"
    for size in sizes(1 << 10, 1 << 16, 4):
        settings = {
            **capacity,
            "workload.footprint_bytes": str(64 * GB),
            "sparse.lines": str(size),
        }
        yield point("silo", "sparse", size // 2, settings=settings)

    for design in ("silo", "hoop"):
        axis, series = "threads", f"{design}, hash"
        for size in sizes(1, 128, 2):
            cores = {"core.count": str(min(size, 64)), "core.threads_per_core": str(-(-size // 64))}
            yield point(design, "hash", 100_000, size, {**UPDATES, **cores})

    for design in ("silo", "hoop"):
        axis, series = "channels", f"{design}, hash"
        for size in sizes(1, 16, 2):
            channels = {"controller.channels": str(size)}
            yield point(design, "hash", 100_000, settings={**UPDATES, **channels})

    axis = "log"
    region = {**UPDATES, "pm.log_region_bytes": "1 GB"}
    for design, key, least in (
        ("silo", "silo.log_bytes_per_thread", 8 * KB),
        ("fwb", "fwb.log_bytes", 128 * KB),
    ):
        series = f"{design}, hash"
        for size in sizes(least, 512 * MB, 4):
            # Silo has a log for each thread.
            bytes_ = size // 8 if design == "silo" else size
            yield point(design, "hash", 100_000, settings={**region, key: str(bytes_)})


def simulate(of: Point) -> dict[str, float]:
    """Simulates a point once, in a process of its own.

    Raises:
        Failed: The simulation did not end well.
    """
    driver = Driver()
    found = driver.measure(
        design=of.design,
        workload=of.workload,
        machine=of.machine,
        threads=of.threads,
        transactions=of.transactions,
        set=of.settings,
    )
    driver.close()
    if found["outcome"] != "ended":
        raise Failed(found.get("why", found["outcome"]))
    return found


def measure(of: Point) -> dict[str, float]:
    """Measures a point, a short one several times: the shortest times and the largest memory."""
    runs = [simulate(of)]
    while len(runs) < TIMES and sum(seconds(runs[0])) < AGAIN_BELOW:
        runs.append(simulate(of))
    for name in ("actions", "operations", "transactions", "cycles"):
        assert len({run[name] for run in runs}) == 1, f"{of.name}: {name} differ"
    shortest = ("build_seconds", "run_seconds")
    return {
        name: (min if name in shortest else max)(run[name] for run in runs) for name in MEASURED
    }


def seconds(run: Mapping[str, float]) -> tuple[float, float]:
    """Returns the seconds of building, and of the threads' programs."""
    return run["build_seconds"], run["run_seconds"]


def row_of(of: Point, found: Mapping[str, float]) -> Row:
    """Makes the row of a point."""
    texts = (
        f"{found[name]:.3f}" if name.endswith("_seconds") else int(found[name]) for name in MEASURED
    )
    return TABLE.row(*of.key, *texts)


Series = dict[str, list[Row]]


def by_series(rows: Sequence[Row], axis: Axis) -> Series:
    """Returns the rows of an axis, by series."""
    found: Series = {}
    for row in rows:
        if row["axis"] == axis.name:
            found.setdefault(row["series"], []).append(row)
    return found


def time_of(row: Row) -> float:
    """Returns the seconds that a plot shows: of the threads' programs, or of populating alone."""
    return float(row["build_seconds" if row["series"].endswith("populating") else "run_seconds"])


def work_of(row: Row) -> str:
    """Names the column of the work by which a time is divided."""
    if row["series"].endswith("populating"):
        return "size"
    return "size" if row["axis"] == "touched" else "transactions"


def megabytes(row: Row) -> float:
    """Returns the most memory that the process had."""
    return int(row["peak_kb"]) / 1024


def exponent(rows: Sequence[Row]) -> float | None:
    """Returns the slope of a line through times and sizes, both logarithmic."""
    long = [row for row in rows if time_of(row) >= SHORTEST]
    if len(long) < 3:
        return None
    xs = [math.log(int(row["size"])) for row in long]
    ys = [math.log(time_of(row)) for row in long]
    return statistics.linear_regression(xs, ys).slope


def size_text(axis: Axis, size: int) -> str:
    """Shows a size with its unit."""
    if not axis.bytes:
        return exact(size)
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def figure(value: float) -> str:
    """Shows a measured number in three digits; at most three behind the point."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def table(axis: Axis, series: Series) -> str:
    """Makes the table of an axis: time for each unit of work, actions for each, memory.

    The time itself is in it where the work grows with the size.
    """
    head = [axis.title.split(",")[0]]
    shows_seconds = {
        name: len({row[work_of(row)] for row in of}) > 1 for name, of in series.items()
    }
    for name in series:
        populating = name.endswith("populating")
        unit = "MB" if populating else axis.unit
        columns = ["s"] if shows_seconds[name] else []
        columns += [f"ms/{unit}", "MB"] if populating else [f"µs/{unit}", f"actions/{unit}", "MB"]
        head += [f"{name}: {columns[0]}", *columns[1:]]
    lines = []
    for size in sorted({int(row["size"]) for rows in series.values() for row in rows}):
        cells = [size_text(axis, size)]
        for name, rows in series.items():
            row = next((row for row in rows if int(row["size"]) == size), None)
            populating = name.endswith("populating")
            if row is None:
                cells += [""] * (3 - populating + shows_seconds[name])
                continue
            work = int(row[work_of(row)])
            each = 1e3 * MB * time_of(row) / work if populating else 1e6 * time_of(row) / work
            cells += [figure(time_of(row))] if shows_seconds[name] else []
            cells.append(figure(each))
            cells += [] if populating else [figure(int(row["actions"]) / work)]
            cells.append(figure(megabytes(row)))
        lines.append(cells)
    return table_of(head, lines)


def growth(series: Series) -> str:
    """Says in one sentence how times grow."""
    found = {name: exponent(rows) for name, rows in series.items()}
    parts = [f"{value:.2f} (`{name}`)" for name, value in found.items() if value is not None]
    return f"Time grows with the size to the power of {', '.join(parts)}." if parts else ""


def block(axis: Axis, rows: Sequence[Row]) -> str:
    """Makes the part of the page about an axis."""
    series = by_series(rows, axis)
    plot = f"![Host time and memory against {axis.title}](../performance/{axis.name}.svg)"
    return f"{plot}\n\n{table(axis, series)}\n{growth(series)}\n"


BEFORE = ROOT / "benches/counts-before.toml"
"""The counts with which the page compares."""


def instructions(counts: Counts, before: Counts) -> str:
    """Counts of host instructions, beside those before: ranges of groups, then each workload."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, count in sorted(counts.counts.items()):
        groups.setdefault((name.split("/")[0], count.unit), []).append(name)
    lines = [
        (f"`{group}`", unit, exact(len(names)), *_ranges(counts, before, names))
        for (group, unit), names in groups.items()
    ]
    ranges = table_of(("benchmarks", "for each", "number", "now", "now / before"), lines, texts=2)
    names = [name.split("/") for name in counts.counts if name.startswith("workload/")]
    designs = sorted({design for _, _, design in names})
    cells = [
        (f"`{each}`", *(_beside(counts, before, f"workload/{each}/{name}") for name in designs))
        for each in sorted({workload for _, workload, _ in names})
    ]
    return f"{ranges}\n{table_of(('`workload`', *(f'`{each}`' for each in designs)), cells)}"


def _ranges(counts: Counts, before: Counts, names: Sequence[str]) -> tuple[str, str]:
    """The least and the greatest count, and ratio to the one before."""
    found = sorted(counts.counts[name].per_unit for name in names)
    changes = (_change(counts, before, name) for name in names)
    ratios = sorted(change for change in changes if change is not None)
    return _span([exact(round(each)) for each in found]), _span([f"{each:.2f}" for each in ratios])


def _span(texts: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else ""


def _change(counts: Counts, before: Counts, name: str) -> float | None:
    was = before.counts.get(name)
    return None if was is None else counts.counts[name].per_unit / was.per_unit


def _beside(counts: Counts, before: Counts, name: str) -> str:
    """A count, and in brackets its ratio to the one before."""
    count = counts.counts.get(name)
    if count is None:
        return ""
    ratio = _change(counts, before, name)
    return exact(round(count.per_unit)) + ("" if ratio is None else f" ({ratio:.2f})")


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the parts of the page, in its order."""
    return [*(block(axis, rows) for axis in AXES), instructions(Counts.read(), Counts.read(BEFORE))]


def plots(rows: Sequence[Row]) -> dict[Path, bytes]:
    """Draws the plots; returns them by file."""
    # A measuring campaign needs no drawings until its end.
    from .scale_plots import Curve, drawn

    found = {}
    for axis in AXES:
        curves = [
            Curve(
                name,
                [int(row["size"]) for row in of],
                [time_of(row) for row in of],
                [megabytes(row) for row in of],
            )
            for name, of in by_series(rows, axis).items()
        ]
        found[PLOTS / f"{axis.name}.svg"] = drawn(curves, axis.title, binary=axis.bytes)
    return found


def too_steep(rows: Sequence[Row]) -> list[str]:
    """Names the series whose time grows faster than their size, one line for each."""
    found = []
    for axis in AXES:
        for name, of in by_series(rows, axis).items():
            slope = exponent(of)
            if slope is not None and slope > EXPONENT_MAX:
                found.append(f"{axis.name}/{name}: time grows with the power of {slope:.2f}")
    return found


def run(name: str, _: Given) -> Rows:
    """Measures a point by its name."""
    (point,) = (point for point in points() if point.name == name)
    return {TABLE: [row_of(point, measure(point))]}


CAMPAIGN = Campaign(
    lambda _: (point.name for point in points()),
    run,
    [TABLE],
    ROOT / "docs/explanation/performance.md",
    blocks,
    too_steep,
    plots,
)
