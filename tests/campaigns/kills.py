"""The kill matrix: how soon the adversary finds a violation in each mutant of each design.

    python -m tests.campaigns.kills [--seeds N] [--out FILE]

Each mutant gets schedules from seed 1 on until one violates the design's guarantee. The table is
written after each mutant, whole or not at all, so that an interrupted campaign goes on where it
was; rows of another build of the engine are made anew. The command exits with 1 if a mutant
survives all of its schedules.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path

from graven import _engine, output
from graven.api import adversary
from graven.catalogue import catalogue

COLUMNS = (
    "design",
    "mutant",
    "killed",
    "schedules",
    "crash_points",
    "failure_mode",
    "seconds",
    "build",
)
"""`schedules` include the one that violates; `crash_points` are those of the whole campaign."""

RESULTS = Path(__file__).parent / "kills.csv"

Row = Mapping[str, str]


def main(arguments: list[str]) -> int:
    """Runs what is missing; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.kills", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="schedules for each (20000)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the table (kills.csv)")
    given = parser.parse_args(arguments)
    build = _engine.build()
    mutants = [(d.name, m.name) for d in catalogue().designs if d.safe for m in d.mutants]
    rows = {key: row for key, row in _read(given.out).items() if row["build"] == build}
    for number, (design, mutant) in enumerate(mutants, start=1):
        if (design, mutant) not in rows:
            rows[design, mutant] = _kill(design, mutant, given.seeds, build)
            output.write(given.out, _table([rows[key] for key in mutants if key in rows]))
        row = rows[design, mutant]
        what = f"{row['schedules']} schedules" if row["killed"] == "yes" else "SURVIVES"
        print(f"{number:4}/{len(mutants)}  {design}  {mutant}  {what}", flush=True)
    survivors = [key for key in mutants if rows[key]["killed"] == "no"]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants are killed")
    return 1 if survivors else 0


def _kill(design: str, mutant: str, seeds: int, build: str) -> Row:
    report = adversary(design, seeds=seeds, mutant=mutant)
    violation = report.violations[0] if report.violations else None
    seed = None if violation is None else violation.seed
    last = report.schedules if seed is None else seed - report.first_seed + 1
    values = (
        design,
        mutant,
        "no" if violation is None else "yes",
        last,
        report.crash_points,
        "" if violation is None else violation.failure_mode,
        f"{report.seconds:.1f}",
        build,
    )
    return dict(zip(COLUMNS, map(str, values), strict=True))


def _read(path: Path) -> dict[tuple[str, str], Row]:
    """The rows of a table; none if there is no such file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["design"], row["mutant"]): row for row in csv.DictReader(file)}


def _table(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
