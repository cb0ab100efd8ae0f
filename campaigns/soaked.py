"""The adversary on every sound design: the numbers of power failures judged, by kind.

Schedules are kept in `graven-results/campaigns`, so that an interrupted task continues, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from graven.api.options import sound_designs
from graven.basics.numbers import exact
from graven.laboratory.adversary import AdversaryRequest, Blocks, Schedules
from graven.laboratory.reports import AdversaryReport
from graven.running.progress import Display
from graven.running.work import How, Local

from .runner import Campaign, Given, Rows, keep, whole
from .tables import ROOT, Row, Table, table_of

SCHEDULES = 3000
"""Schedules of each design, from seed 1 on."""

MORE = {"lad": 6000, "lalea-lad": 6000}
"""Designs that leave less to a second life in small programs, and so have more schedules here."""

MODES = ("plain", "torn", "in_flight", "recovery")
TABLE = Table(
    "soaked",
    (
        "design", "version", "first_seed", "schedules", "refused", "crash_points", *MODES,
        "recoveries", "lives", "verdict",
    ),
    ("design",),
    lambda: ((design,) for design in sound_designs()),
)  # fmt: skip


def measure(design: str, given: Given) -> Rows:
    """Runs the schedules of a design."""
    wanted = Blocks.of(AdversaryRequest((design,), Schedules(MORE.get(design, SCHEDULES))))
    with Display("schedules") as display:
        found = wanted.run(How(keep(), Local(given.jobs), display))
    whole(found.failures, found.interrupted)
    return {TABLE: list(map(row_of, found.reports))}


def row_of(report: AdversaryReport) -> Row:
    """Makes the row of a design."""
    return TABLE.row(
        report.design, report.version, report.first_seed, report.schedules, report.refused,
        report.crash_points, *(report.failure_modes[mode] for mode in MODES), report.recoveries,
        report.failure_modes["lives"], report.verdict,
    )  # fmt: skip


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the table of the page."""
    numbers = ("schedules", "crash_points", *MODES, "recoveries", "lives")
    head = (
        "design", "schedules", "crash points", "plain", "torn", "in flight", "in recovery",
        "power failures", "lives after a recovery", "guarantee",
    )  # fmt: skip
    cells = [
        [row["design"], *(exact(int(row[name])) for name in numbers), row["verdict"]]
        for row in rows
    ]
    sums = [exact(sum(int(row[name]) for row in rows)) for name in numbers]
    return [table_of(head, [*cells, ["all", *sums, ""]])]


def wrong(rows: Sequence[Row]) -> list[str]:
    """Names the designs that break their guarantee."""
    return [f"{row['design']}: {row['verdict']}" for row in rows if row["verdict"] != "kept"]


CAMPAIGN = Campaign(
    lambda _: sound_designs(), measure, [TABLE], ROOT / "docs/results/soaked.md", blocks, wrong
)
