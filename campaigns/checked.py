"""All small programs on every sound design: verdicts of `graven check`, at several bounds.

The parts of each check are kept in `graven-results/campaigns`, so that an interrupted task
continues, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from graven.api.options import sound_designs
from graven.basics.numbers import exact
from graven.laboratory.check import Bound, Check, Checked
from graven.running.work import How, Local

from .runner import Campaign, Given, Rows, keep, whole
from .tables import ROOT, Row, Table, table_of, wrapped

BOUNDS = {
    "2": Bound(transactions=2),
    "3-0": Bound(departures=0),
    "3-1": Bound(departures=1),
    "3": Bound(),
}
"""Bounds by the names that the table has."""

SIZES = {
    "scaled": "Structures, logs and fields scaled down as each design declares",
    "full": "Structures, logs and fields of default size",
    "former": "Measured before designs declared small parameters: buffers of one entry, logs of 1 "
    "to 4 KB, which do not come round",
}
"""Sizes of structures by the names that the table has. The last is not measured again."""

FULL_BOUNDS = ("2",)
"""Bounds that are checked at full size, too."""

MEASURED = [("scaled", bound) for bound in BOUNDS] + [("full", bound) for bound in FULL_BOUNDS]

TABLE = Table(
    "checked",
    (
        "sizes", "bound", "design", "programs", "schedules", "failures", "plain", "torn", "landed",
        "recovery", "different", "lives", "crowded", "refused", "verdict",
    ),
    ("sizes", "bound", "design"),
    lambda: product(SIZES, BOUNDS, sound_designs()),
)  # fmt: skip


def measure(name: str, given: Given) -> Rows:
    """Executes all programs of a bound on a design."""
    sizes, bound, design = name.split("/")
    check = Check.prepare((design,), BOUNDS[bound], full_size=sizes == "full")
    whole(*check.run(How(keep(), Local(given.jobs))))
    return {TABLE: [row_of(sizes, bound, *check.results)]}


def row_of(sizes: str, bound: str, result: Checked) -> Row:
    """Makes the row of a design with structures of these sizes at a bound."""
    plain = result.failures - result.torn - result.landed - result.recovery
    return TABLE.row(
        sizes, bound, result.design, result.programs, result.schedules, result.failures, plain,
        result.torn, result.landed, result.recovery, result.failures - result.equal, result.lives,
        result.crowded, result.refused, "violated" if result.violation else "kept",
    )  # fmt: skip


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes a table for each bound at each of the sizes that was measured."""
    out = []
    numbers = (
        "programs", "schedules", "plain", "torn", "landed", "recovery", "failures", "different",
        "lives",
    )  # fmt: skip
    head = (
        "design", "programs", "schedules", "plain", "torn", "landed", "in recovery",
        "power failures", "different", "second lives", "guarantee",
    )  # fmt: skip
    for sizes, name in product(SIZES, BOUNDS):
        bound, of_bound = (
            BOUNDS[name],
            [row for row in rows if (row["sizes"], row["bound"]) == (sizes, name)],
        )
        if not of_bound:
            continue
        failures, lives, refused = (
            exact(sum(int(row[n] or 0) for row in of_bound))
            for n in ("failures", "lives", "refused")
        )
        command = (
            f"graven check all --transactions {bound.transactions} --departures {bound.departures}"
        ) + (" --full-size" if sizes == "full" else "")
        by = "" if sizes == "former" else f" (`{command}`)"
        said = (
            f"**{SIZES[sizes]}; {bound}**{by}: {failures} power failures, {lives} second lives"
            f"{'' if refused == '0' else f', {refused} runs refused by a log that was full'}."
        )
        cells = (
            [row["design"], *(exact(int(row[name])) for name in numbers), row["verdict"]]
            for row in of_bound
        )
        out.append(f"{wrapped(said)}\n\n{table_of(head, cells)}")
    return ["\n".join(out)]


CAMPAIGN = Campaign(
    lambda _: (
        f"{sizes}/{bound}/{design}" for sizes, bound in MEASURED for design in sound_designs()
    ),
    measure,
    [TABLE],
    ROOT / "docs/results/checked.md",
    blocks,
)
