"""Tables in the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from graven.basics.numbers import MISSING, Value, exact
from graven.results.comparison import MEAN, Metric, Normalised
from graven.results.conditions import Conditions
from graven.results.headings import Headings
from graven.results.intervals import Interval, best_of, explained, ratio_text, scaled_text
from graven.results.region import notes

UNSAFE_MARK = "†"
UNSAFE_NOTE = (
    f"{UNSAFE_MARK} unsafe: loses committed data at a power failure; a reference, not a contender."
)

_CELL = 9
"""Columns of the terminal that one workload takes."""

_SPREAD = 6
"""As many more where numbers have a spread."""


def plain_table(*columns: Column | str) -> Table:
    """A table with these columns, and the look of every table."""
    return Table(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)


def whole(name: str) -> Column:
    """A column whose cells are not wrapped."""
    return Column(name, no_wrap=True)


def numbers(*names: str) -> list[Column]:
    """Columns of numbers; names are shown as they are."""
    return [Column(Text(name), justify="right") for name in names]


def folded(*names: str) -> list[Column]:
    """Columns in which a word that is longer than the column is broken."""
    return [Column(name, overflow="fold") for name in names]


def print_comparison(console: Console, normalised: Normalised) -> None:
    """Tables for each metric: designs down, workloads across, the geometric mean last.

    Each combination of varied values has tables of its own, and each table says what it was made
    with.
    """
    comparison = normalised.comparison
    names = max((len(design) for design in comparison.designs), default=0) + 12
    several = len(comparison.seeds)
    has_spread = several > 1 or any(record.measured for record in comparison)
    room = max(1, (console.width - names) // (_CELL + (_SPREAD if has_spread else 0)) - 1)
    workloads = comparison.workloads
    chunks = [workloads[i : i + room] for i in range(0, len(workloads), room)]
    parts = normalised.parts()
    made_with = [Conditions.of(part.comparison).line for part in parts]
    for metric in comparison.metrics:
        title = f"{metric.title}, relative to {normalised.baseline} ({metric.direction})"
        for (number_of, part), (number, chunk) in itertools.product(
            enumerate(parts), enumerate(chunks)
        ):
            last = number == len(chunks) - 1
            console.print(title, style="bold")
            if part.comparison.caption:
                console.print(part.comparison.caption, markup=False)
            console.print(made_with[number_of], style="dim", markup=False, highlight=False)
            console.print(_metric_table(part, metric, chunk, with_mean=last))
    console.print(
        f"mean: geometric mean over the workloads. Last lines: {normalised.baseline}'s own value."
    )
    zero = [
        metric.title
        for metric in comparison.metrics
        if any(r.design == normalised.baseline and r.number(metric.stat) == 0.0 for r in comparison)
    ]
    if zero:
        said = f"{normalised.baseline}'s value, of which others are multiples, is 0"
        console.print(f"{MISSING}: {said} ({', '.join(zero)}).", markup=False)
    if several > 1:
        console.print(explained(several))
    for part in parts:
        deferred = part.comparison.deferred_note()
        if deferred is not None:
            where = part.comparison.caption
            console.print(f"{where}: {deferred}" if where else deferred, markup=False)
    for line in notes(comparison, several=several > 1):
        console.print(line, markup=False)
    if comparison.unsafe:
        console.print(UNSAFE_NOTE)


def _metric_table(
    normalised: Normalised, metric: Metric, workloads: Iterable[str], *, with_mean: bool
) -> Table:
    comparison, baseline = normalised.comparison, normalised.baseline
    workloads = list(workloads)
    several = len(comparison.threads) > 1
    table = plain_table(whole("design"), *numbers(*(["threads"] if several else [])))
    for name in [*workloads, *([MEAN] if with_mean else [])]:
        table.add_column(name, justify="right", no_wrap=True, min_width=_CELL - 3)
    for threads in comparison.threads:
        rows = _ratios(normalised, metric, workloads, threads, with_mean=with_mean)
        best = _best(metric, rows, comparison.unsafe)
        for design, values in rows.items():
            cells = [
                Text(ratio_text(value), style="bold green" if design in tops else "")
                for value, tops in zip(values, best, strict=True)
            ]
            table.add_row(
                marked(design, comparison.unsafe), *([str(threads)] if several else []), *cells
            )
        own = [comparison.interval(metric.stat, baseline, name, threads) for name in workloads]
        table.add_row(
            f"{baseline}, {metric.unit}",
            *([str(threads)] if several else []),
            *(scaled_text(value) for value in own),
            *([""] if with_mean else []),
            style="dim",
            end_section=several,
        )
    return table


def _ratios(
    normalised: Normalised, metric: Metric, workloads: list[str], threads: int, *, with_mean: bool
) -> dict[str, list[Interval | None]]:
    rows: dict[str, list[Interval | None]] = {}
    for design in normalised.comparison.designs:
        values = [normalised.interval(metric.stat, design, name, threads) for name in workloads]
        if with_mean:
            values.append(normalised.mean_interval(metric.stat, design, threads))
        rows[design] = values
    return rows


def _best(
    metric: Metric, rows: Mapping[str, list[Interval | None]], unsafe: set[str]
) -> list[set[str]]:
    """The designs of each column that are marked as the best of the safe ones."""
    safe = {design: values for design, values in rows.items() if design not in unsafe} or rows
    columns = zip(*safe.values(), strict=True)
    return [
        best_of(dict(zip(safe, column, strict=True)), higher=metric.higher_is_better)
        for column in columns
    ]


def marked(design: str, unsafe: set[str]) -> str:
    """A design's name, with a mark if it is unsafe."""
    return f"{design} {UNSAFE_MARK}" if design in unsafe else design


def grouped_table(
    columns: Sequence[str],
    groups: Mapping[str, Sequence[Sequence[str]]],
    *,
    right: Sequence[str] = (),
) -> Table:
    """One table with a heading for each group of rows, so that columns line up throughout.

    Columns in `right` are numbers; the last one takes all the room that is left.
    """
    *first, last = columns
    table = plain_table(
        *(Column(n, justify="right" if n in right else "left", no_wrap=True) for n in first),
        Column(last, ratio=1, overflow="fold"),
    )
    table.expand = True
    for title, rows in groups.items():
        table.add_row(Text(title, style="bold"))
        for name, *rest in rows:
            table.add_row(Text(f"  {name}"), *(Text(cell) for cell in rest))
        table.add_row()
    return table


def print_statistics(
    console: Console, stats: Mapping[str, Value], *, design: str | None = None, every: bool = True
) -> None:
    """Statistics under their headings: what the design itself counts, then the catalogue's order.

    Args:
        console: Where.
        stats: The statistics.
        design: The design, whose own come first under a heading with its name.
        every: All of them; otherwise without those of single cores and banks, and without what is
            zero and is not the design's own, and with a line that says how many these are.
    """
    found = Headings.of(stats, design=design, every=every)
    groups = {
        title: [(item.name, exact(value), item.unit, item.description) for item, value in rows]
        for title, rows in found.groups.items()
    }
    columns = ("statistic", "value", "unit", "description")
    console.print(grouped_table(columns, groups, right=("value",)))
    if found.left_out:
        console.print(
            f"{found.left_out} statistics are left out, which are zero, or of single cores and "
            "banks: --all shows them."
        )
