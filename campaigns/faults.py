"""Fates of every sound design when its machine does not work as it should (`graven faults`)."""

from __future__ import annotations

from collections.abc import Sequence

from graven.api.options import sound_designs
from graven.cli.faults import cell
from graven.laboratory.adversary import Schedules
from graven.laboratory.faults import Fate, FaultReport, survey
from graven.running.work import How, Local

from .runner import Campaign, Given, Rows, keep, whole
from .tables import ROOT, Row, Table, table_of

SCHEDULES = 400
COUNTS = ("kept", "reported", "lost")
TABLE = Table("faults", ("design", "schedules", "fault", *COUNTS), ("design",))


def measure(_: str, given: Given) -> Rows:
    """Has power fail with faults in all designs, and keeps each design as it comes."""
    found = survey(sound_designs(), Schedules(SCHEDULES), How(keep(), Local(given.jobs)))
    whole(found.failures, found.interrupted)
    return {TABLE: [row for report in found.reports for row in rows_of(report)]}


def rows_of(report: FaultReport) -> list[Row]:
    """Makes the rows of a design."""
    return [
        TABLE.row(report.design, report.schedules, fate.fault, fate.kept, fate.reported, fate.lost)
        for fate in report.fates
    ]


def blocks(rows: Sequence[Row]) -> list[str]:
    """Makes the table of the page."""
    fates: dict[str, list[Fate]] = {}
    for row in rows:
        fate = Fate(row["fault"], *(int(row[name]) for name in COUNTS))
        fates.setdefault(row["design"], []).append(fate)
    kinds = dict.fromkeys(row["fault"] for row in rows)
    return [table_of(["design", *kinds], ([name, *map(cell, of)] for name, of in fates.items()))]


CAMPAIGN = Campaign(lambda _: ["all"], measure, [TABLE], ROOT / "docs/results/faults.md", blocks)
