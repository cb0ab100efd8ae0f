"""The adversary on every sound design: how many power failures were judged, of which kinds.

    python -m tests.campaigns.soaked            run what is left, and write table and page
    python -m tests.campaigns.soaked --stored   write the page from the table

States are in `graven-results`, so that an interrupted campaign goes on where it was. A design's row
stays until it has been soaked anew.
"""

from __future__ import annotations

import argparse
import sys
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

from graven.api.options import sound_designs
from graven.basics.numbers import exact
from graven.laboratory.adversary import AdversaryCampaign, AdversaryRequest, Schedules
from graven.laboratory.reports import AdversaryReport
from graven.laboratory.state_file import StateFile
from graven.running.progress import Display

TABLE = Path(__file__).parent / "soaked.csv"
PAGE = ROOT / "docs/results/soaked.md"

SCHEDULES = 3000
"""Of each design, from seed 1 on."""

MORE = {"lad": 6000, "lalea-lad": 6000}
"""Designs that leave less to a second life in small programs, and so have more schedules here."""

MODES = ("plain", "torn", "in_flight", "recovery")
COLUMNS = (
    "design", "version", "first_seed", "schedules", "refused", "crash_points", *MODES, "recoveries",
    "lives", "verdict",
)  # fmt: skip


def row_of(report: AdversaryReport) -> Row:
    """A row of the table."""
    values = (
        report.design, report.version, report.first_seed, report.schedules, report.refused,
        report.crash_points, *(report.failure_modes[mode] for mode in MODES), report.recoveries,
        report.failure_modes["lives"], report.verdict,
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def shown(rows: list[Row]) -> str:
    """What the page shows."""
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
    return table_of(head, [*cells, ["all", *sums, ""]])


def main() -> int:
    """Runs what is left, unless only what is stored is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="run nothing")
    if parser.parse_args().stored:
        write_page(PAGE, shown(read_rows(TABLE)))
        return 0
    rows = read_rows(TABLE)
    for design in sound_designs():
        state = StateFile(state_file(f"soak-{design}"))
        request = AdversaryRequest((design,), Schedules(MORE.get(design, SCHEDULES)))
        campaign = AdversaryCampaign.prepare(request, state.read())
        print(design, file=sys.stderr)
        with Display("schedules") as display:
            result = campaign.run(observe=display)
        state.write(campaign.state())
        if result.interrupted or result.failures:
            return 130
        rows = replaced(rows, map(row_of, result.reports), ("design",))
        write_rows(TABLE, COLUMNS, rows)
    write_page(PAGE, shown(rows))
    return 0 if all(row["verdict"] == "kept" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
