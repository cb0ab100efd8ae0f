"""What becomes of every sound design when its machine does not work as it should.

python -m tests.campaigns.faults            run `graven faults`, and write table and page
python -m tests.campaigns.faults --stored   write the page from the table
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from graven.api import sound_designs
from graven.cli.faults import cell
from graven.faults import Fate, FaultReport, survey

HERE = Path(__file__).parent
TABLE = HERE / "faults.csv"
PAGE = HERE.parents[1] / "docs/faults.md"
SCHEDULES = 400

COLUMNS = ("design", "schedules", "fault", "kept", "reported", "lost")

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def read_reports() -> list[FaultReport]:
    """The table as it is stored."""
    found: dict[str, tuple[int, list[Fate]]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            _, fates = found.setdefault(row["design"], (int(row["schedules"]), []))
            counts = (int(row[name]) for name in ("kept", "reported", "lost"))
            fates.append(Fate(row["fault"], *counts))
    return [FaultReport(design, n, tuple(fates)) for design, (n, fates) in found.items()]


def write_reports(reports: list[FaultReport]) -> None:
    """Replaces the table."""
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for report in reports:
            for fate in report.fates:
                counts = (fate.kept, fate.reported, fate.lost)
                writer.writerow((report.design, report.schedules, fate.fault, *counts))


def page_with(reports: list[FaultReport], page: str) -> str:
    """The page with this table."""
    kinds = [fate.fault for fate in reports[0].fates]
    lines = ["| design | " + " | ".join(kinds) + " |", "|---|" + "---:|" * len(kinds)]
    for report in reports:
        cells = [report.design, *(cell(fate) for fate in report.fates)]
        lines.append("| " + " | ".join(cells) + " |")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def main() -> int:
    """Runs, unless only what is stored is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="run nothing")
    if not parser.parse_args().stored:
        result = survey(sound_designs(), SCHEDULES)
        if result.interrupted or result.failures:
            return 1
        write_reports(list(result.reports))
    PAGE.write_text(page_with(read_reports(), PAGE.read_text()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
