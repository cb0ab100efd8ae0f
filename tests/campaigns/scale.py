"""What simulations cost the host against their size: time and memory.

    python -m tests.campaigns.scale [--only PATTERN] [--anew]
    python -m tests.campaigns.scale --stored   draw the plots and write the page from the table
    python -m tests.campaigns.scale --list     name what it would measure

A point is a size on an axis: transactions, footprint, lines that are touched, threads, channels,
bytes of the log. Each is simulated in a process of its own (`crates/graven/examples/scale.rs`),
which says how long building and populating and the threads' programs took of the host's processor,
without the orderly shutdown, and how much memory the process had at most. What takes less than
`AGAIN_BELOW` is measured again; the shortest time and the largest memory count.

What has been measured is in `graven-results/scale.json`, so that an interrupted campaign goes on
with the next point; points of another build are measured again, and with `--anew` all. `--only`
takes what matches a glob of `AXIS/SERIES/SIZE`. Table, plots and page are of what has been measured
in all.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.campaigns.tables import (
    ROOT,
    Row,
    read_rows,
    replaced,
    state_file,
    table_of,
    write_page,
    write_rows,
)
from tests.counts.callgrind import Count
from tests.counts.table import Table

from graven import _engine
from graven.basics import output
from graven.basics.numbers import exact

TABLE = Path(__file__).parent / "scale.csv"
PAGE = ROOT / "docs/explanation/performance.md"
PLOTS = ROOT / "docs/performance"

DRIVER = ("cargo", "run", "--quiet", "--locked", "--release", "--package", "graven",
          "--example", "scale", "--")  # fmt: skip

MACHINE = "silo"

AGAIN_BELOW = 5.0
"""Seconds; what takes less is measured `TIMES` times."""

TIMES = 3

EXPONENT_MAX = 1.15
"""Of the growth of time with the size: 1 is linear; caches of the host account for some more."""

SHORTEST = 0.02
"""Seconds; what takes less says nothing about growth."""

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30

MEASURED = (
    "build_seconds", "run_seconds", "start_kb", "built_kb", "peak_kb", "actions", "operations",
    "transactions", "cycles", "populated_bytes",
)  # fmt: skip
COLUMNS = ("axis", "series", "size", *MEASURED)
KEY = COLUMNS[:3]

UPDATES = {"workload.insert_percent": "0"}
"""Elements are updated, so that a longer run has no more of them."""


@dataclass(frozen=True)
class Point:
    """What is simulated."""

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
        """As `--only` matches it."""
        return f"{self.axis}/{self.series}/{self.size}"

    @property
    def key(self) -> tuple[str, ...]:
        """As the table knows it."""
        return (self.axis, self.series, str(self.size))

    def arguments(self) -> list[str]:
        """What the driver is told."""
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        numbers = [str(self.threads), str(self.transactions)]
        return [self.design, self.workload, self.machine, *numbers, *settings]


@dataclass(frozen=True)
class Axis:
    """What varies, and how it is shown.

    Attributes:
        title: Of the sizes, with their unit.
        bytes: Whether sizes are bytes.
        unit: What times in the table are divided by, in the singular.
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
    """From the first to the last, each so many times the one before."""
    found = [first]
    while found[-1] * times <= last:
        found.append(found[-1] * times)
    return found


def points() -> Iterator[Point]:
    """All of them, axis by axis, series by series, ascending."""

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
    """Runs a point once, in a process of its own.

    Raises:
        RuntimeError: it did not end well.
    """
    done = subprocess.run(
        [*DRIVER, *of.arguments()], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{of.name}: exit code {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(of: Point) -> dict[str, float]:
    """Measures a point: the shortest times and the largest memory of what is short."""
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
    """Of building, and of the threads' programs."""
    return run["build_seconds"], run["run_seconds"]


def row_of(of: Point, found: Mapping[str, float]) -> Row:
    """A row of the table."""
    texts = (
        f"{found[name]:.3f}" if name.endswith("_seconds") else str(int(found[name]))
        for name in MEASURED
    )
    return dict(zip(COLUMNS, (*of.key, *texts), strict=True))


class Store:
    """What has been measured of one build, written after each point."""

    def __init__(self, path: Path, build: str) -> None:
        self._path, self._build = path, build
        self.rows: list[Row] = []
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            self.rows = stored["rows"] if stored["build"] == build else []

    def has(self, of: Point) -> bool:
        """Whether a point has been measured."""
        return any(tuple(row[name] for name in KEY) == of.key for row in self.rows)

    def put(self, row: Row) -> None:
        """Keeps a row."""
        self.rows = replaced(self.rows, [row], KEY)
        kept = {"build": self._build, "rows": self.rows}
        output.write(self._path, json.dumps(kept, indent=0).encode())


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows in the order of the points; those of no point are left out."""
    by_key = {tuple(row[name] for name in KEY): row for row in rows}
    return [by_key[point.key] for point in points() if point.key in by_key]


Series = dict[str, list[Row]]


def by_series(rows: Sequence[Row], axis: Axis) -> Series:
    """The rows of an axis, by series."""
    found: Series = {}
    for row in rows:
        if row["axis"] == axis.name:
            found.setdefault(row["series"], []).append(row)
    return found


def time_of(row: Row) -> float:
    """Seconds that a plot shows: of the threads' programs, or of populating alone."""
    return float(row["build_seconds" if row["series"].endswith("populating") else "run_seconds"])


def work_of(row: Row) -> str:
    """In which column of the table the work is that a time is divided by."""
    if row["series"].endswith("populating"):
        return "size"
    return "size" if row["axis"] == "touched" else "transactions"


def megabytes(row: Row) -> float:
    """The most memory that the process had."""
    return int(row["peak_kb"]) / 1024


def exponent(rows: Sequence[Row]) -> float | None:
    """How time grows with the size: the slope of a line through the points, both logarithmic."""
    long = [row for row in rows if time_of(row) >= SHORTEST]
    if len(long) < 3:
        return None
    xs = [math.log(int(row["size"])) for row in long]
    ys = [math.log(time_of(row)) for row in long]
    return statistics.linear_regression(xs, ys).slope


def size_text(axis: Axis, size: int) -> str:
    """A size as a person says it."""
    if not axis.bytes:
        return exact(size)
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def figure(value: float) -> str:
    """A measured number in three digits; at most three behind the point."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def table(axis: Axis, series: Series) -> str:
    """The table of an axis: time, time for each unit of work, actions for each, memory."""
    head = [axis.title.split(",")[0]]
    for name in series:
        populating = name.endswith("populating")
        unit = "MB" if populating else axis.unit
        per = "ms" if populating else "µs"
        head += [f"{name}: s", f"{per}/{unit}"]
        head += ["MB"] if populating else [f"actions/{unit}", "MB"]
    lines = []
    for size in sorted({int(row["size"]) for rows in series.values() for row in rows}):
        cells = [size_text(axis, size)]
        for name, rows in series.items():
            row = next((row for row in rows if int(row["size"]) == size), None)
            populating = name.endswith("populating")
            if row is None:
                cells += [""] * (3 if populating else 4)
                continue
            work = int(row[work_of(row)])
            each = 1e3 * MB * time_of(row) / work if populating else 1e6 * time_of(row) / work
            cells += [figure(time_of(row)), figure(each)]
            cells += [] if populating else [figure(int(row["actions"]) / work)]
            cells.append(figure(megabytes(row)))
        lines.append(cells)
    return table_of(head, lines)


def growth(series: Series) -> str:
    """In one sentence, how times grow."""
    found = {name: exponent(rows) for name, rows in series.items()}
    parts = [f"{value:.2f} (`{name}`)" for name, value in found.items() if value is not None]
    return f"Time grows with the size to the power of {', '.join(parts)}." if parts else ""


def block(axis: Axis, rows: Sequence[Row]) -> str:
    """What the page shows of an axis."""
    series = by_series(rows, axis)
    plot = f"![Host time and memory against {axis.title}](performance/{axis.name}.svg)"
    return f"{plot}\n\n{table(axis, series)}\n{growth(series)}\n"


BEFORE = ROOT / "benches/counts-before.toml"
"""The counts with which the page compares."""


def instructions(counts: Table, before: Table) -> str:
    """What the page shows of the counts of host instructions, beside what they were."""
    head = ("benchmark", "for each", "before", "now", "now / before")
    cells = [
        [f"`{name}`", count.unit, *_beside(count, before.counts.get(name))]
        for name, count in sorted(counts.counts.items())
    ]
    return table_of(head, cells, texts=2)


def _beside(now: Count, before: Count | None) -> tuple[str, str, str]:
    count = exact(round(now.per_unit))
    if before is None:
        return "", count, ""
    return exact(round(before.per_unit)), count, f"{now.per_unit / before.per_unit:.2f}"


def blocks(rows: Sequence[Row]) -> list[str]:
    """What the page shows, in its order."""
    return [*(block(axis, rows) for axis in AXES), instructions(Table.read(), Table.read(BEFORE))]


def plots(rows: Sequence[Row]) -> dict[Path, bytes]:
    """The plots, by file."""
    # A measuring campaign needs no drawings until its end.
    from tests.campaigns.scale_plots import Curve, drawn

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


def write(rows: Sequence[Row]) -> None:
    """Draws the plots, and writes the page."""
    PLOTS.mkdir(exist_ok=True)
    for path, content in plots(rows).items():
        output.write(path, content)
    write_page(PAGE, *blocks(rows))


def too_steep(rows: Sequence[Row]) -> list[str]:
    """Series whose time grows faster than their size, one line for each."""
    found = []
    for axis in AXES:
        for name, of in by_series(rows, axis).items():
            slope = exponent(of)
            if slope is not None and slope > EXPONENT_MAX:
                found.append(f"{axis.name}/{name}: time grows with the power of {slope:.2f}")
    return found


def main(arguments: list[str]) -> int:
    """Measures what is left, unless only what is stored is wanted; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.scale")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    parser.add_argument("--list", action="store_true", help="run nothing, name points")
    what = "points to measure (a glob of AXIS/SERIES/SIZE)"
    parser.add_argument("--only", default="*", metavar="PATTERN", help=what)
    parser.add_argument("--anew", action="store_true", help="measure again what this build has")
    given = parser.parse_args(arguments)
    if given.stored:
        write(in_order(read_rows(TABLE)))
        return 0
    wanted = [point for point in points() if fnmatchcase(point.name, given.only)]
    if given.list:
        print(*(point.name for point in wanted), sep="\n")
        return 0
    store = Store(state_file("scale"), _engine.build())
    failed: list[str] = []
    left = [point for point in wanted if given.anew or not store.has(point)]
    for number, point in enumerate(left):
        print(f"{number} of {len(left)}: {point.name}", file=sys.stderr)
        try:
            store.put(row_of(point, measure(point)))
        except RuntimeError as error:
            failed.append(str(error))
            continue
        rows = in_order(replaced(read_rows(TABLE), store.rows, KEY))
        write_rows(TABLE, COLUMNS, rows)
    rows = in_order(read_rows(TABLE))
    write(rows)
    wrong = [*failed, *too_steep(rows)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
