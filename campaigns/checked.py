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

TABLE = Table(
    "checked",
    (
        "bound", "design", "programs", "schedules", "failures", "plain", "torn", "landed",
        "recovery", "different", "lives", "crowded", "verdict",
    ),
    ("bound", "design"),
    lambda: product(BOUNDS, sound_designs()),
)  # fmt: skip


def measure(name: str, given: Given) -> Rows:
    """Executes all programs of a bound on a design."""
    bound, design = name.split("/")
    check = Check.prepare((design,), BOUNDS[bound])
    whole(*check.run(How(keep(), Local(given.jobs))))
    return {TABLE: [row_of(bound, *check.results)]}


def row_of(bound: str, result: Checked) -> Row:
    """Makes the row of a design at a bound."""
    plain = result.failures - result.torn - result.landed - result.recovery
    return TABLE.row(
        bound, result.design, result.programs, result.schedules, result.failures, plain,
        result.torn, result.landed, result.recovery, result.failures - result.equal, result.lives,
        result.crowded, "violated" if result.violation else "kept",
    )  # fmt: skip


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes a table for each bound."""
    out = []
    numbers = (
        "programs", "schedules", "plain", "torn", "landed", "recovery", "failures", "different",
        "lives",
    )  # fmt: skip
    head = (
        "design", "programs", "schedules", "plain", "torn", "landed", "in recovery",
        "power failures", "different", "second lives", "guarantee",
    )  # fmt: skip
    for name, bound in BOUNDS.items():
        of_bound = [row for row in rows if row["bound"] == name]
        failures, lives = (
            exact(sum(int(row[n]) for row in of_bound)) for n in ("failures", "lives")
        )
        command = (
            f"graven check all --transactions {bound.transactions} --departures {bound.departures}"
        )
        said = (
            f"**{str(bound)[0].upper()}{str(bound)[1:]}** (`{command}`): "
            f"{failures} power failures, {lives} second lives."
        )
        cells = (
            [row["design"], *(exact(int(row[name])) for name in numbers), row["verdict"]]
            for row in of_bound
        )
        out.append(f"{wrapped(said)}\n\n{table_of(head, cells)}")
    return ["\n".join(out)]


CAMPAIGN = Campaign(
    lambda _: map("/".join, product(BOUNDS, sound_designs())),
    measure,
    [TABLE],
    ROOT / "docs/results/checked.md",
    blocks,
)
