"""What becomes of every sound design when its machine does not work as it should.

python -m tests.campaigns.faults            run `graven faults`, and write table and page
python -m tests.campaigns.faults --stored   write the page from the table
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from tests.campaigns.tables import ROOT, Row, read_rows, table_of, write_page, write_rows

from graven.api.options import sound_designs
from graven.cli.faults import cell
from graven.laboratory.adversary import Schedules
from graven.laboratory.faults import Fate, FaultReport, survey

TABLE = Path(__file__).parent / "faults.csv"
PAGE = ROOT / "docs/results/faults.md"
SCHEDULES = 400

COLUMNS = ("design", "schedules", "fault", "kept", "reported", "lost")


def reports_of(rows: Iterable[Row]) -> list[FaultReport]:
    """What the rows of a table say."""
    found: dict[str, tuple[int, list[Fate]]] = {}
    for row in rows:
        _, fates = found.setdefault(row["design"], (int(row["schedules"]), []))
        counts = (int(row[name]) for name in ("kept", "reported", "lost"))
        fates.append(Fate(row["fault"], *counts))
    return [FaultReport(design, n, tuple(fates)) for design, (n, fates) in found.items()]


def rows_of(reports: Iterable[FaultReport]) -> list[Row]:
    """The rows of a table."""
    rows = []
    for report in reports:
        for fate in report.fates:
            counts = (fate.kept, fate.reported, fate.lost)
            values = (report.design, report.schedules, fate.fault, *counts)
            rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return rows


def shown(reports: list[FaultReport]) -> str:
    """What the page shows."""
    kinds = [fate.fault for fate in reports[0].fates]
    rows = ([report.design, *(cell(fate) for fate in report.fates)] for report in reports)
    return table_of(["design", *kinds], rows)


def main() -> int:
    """Runs, unless only what is stored is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="run nothing")
    if not parser.parse_args().stored:
        result = survey(sound_designs(), Schedules(SCHEDULES))
        if result.interrupted or result.failures:
            return 1
        write_rows(TABLE, COLUMNS, rows_of(result.reports))
    write_page(PAGE, shown(reports_of(read_rows(TABLE))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
