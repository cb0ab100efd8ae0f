"""All small programs on every sound design: what `graven check` says, at several bounds.

    python -m tests.campaigns.checked            run what is left, and write table and page
    python -m tests.campaigns.checked --stored   write them from what is done

States are in `graven-results`, so that an interrupted campaign goes on where it was. A design is in
the table at a bound when all of its programs were executed.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from graven.api import sound_designs
from graven.check import Bound, Check, Checked, read_state, write_state

HERE = Path(__file__).parent
TABLE = HERE / "checked.csv"
PAGE = HERE.parents[1] / "docs/checked.md"
STATES = HERE.parents[1] / "graven-results"

BOUNDS = {"2": Bound(transactions=2), "3": Bound()}
"""By what the files of their states are called."""

COLUMNS = (
    "bound", "design", "programs", "schedules", "failures", "plain", "torn", "landed", "recovery",
    "different", "lives", "crowded", "verdict",
)  # fmt: skip

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def row_of(bound: str, result: Checked) -> dict[str, str]:
    """A row of the table."""
    plain = result.failures - result.torn - result.landed - result.recovery
    values = (
        bound, result.design, result.programs, result.schedules, result.failures, plain,
        result.torn, result.landed, result.recovery, result.failures - result.equal, result.lives,
        result.crowded, "violated" if result.violation else "kept",
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def page_table(rows: list[dict[str, str]]) -> str:
    """The tables of the page."""
    out = []
    for name, bound in BOUNDS.items():
        of_bound = [row for row in rows if row["bound"] == name]
        if not of_bound:
            continue
        total = sum(int(row["failures"]) for row in of_bound)
        lives = sum(int(row["lives"]) for row in of_bound)
        out += [
            f"**{str(bound)[0].upper()}{str(bound)[1:]}** "
            f"(`graven check all --transactions {bound.transactions}`):"
            f" {total:,} power failures, {lives:,} second lives.",
            "",
            "| design | programs | schedules | plain | torn | landed | in recovery "
            "| power failures | different | second lives | guarantee |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        ]
        numbers = (
            "programs", "schedules", "plain", "torn", "landed", "recovery", "failures",
            "different", "lives",
        )  # fmt: skip
        for row in of_bound:
            cells = [row["design"], *(f"{int(row[name]):,}" for name in numbers), row["verdict"]]
            out.append("| " + " | ".join(cells) + " |")
        out.append("")
    return "\n".join(out)


def page_with(rows: list[dict[str, str]], page: str) -> str:
    """The page with these tables."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{page_table(rows)}\n{END}{after}"


def read_rows() -> list[dict[str, str]]:
    """The table as it is stored."""
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    """Runs what is left, unless only what is done is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="run nothing")
    stored = parser.parse_args().stored
    rows, interrupted = [], False
    for name, bound in BOUNDS.items():
        path = STATES / f"check-{name}.json"
        for design in sound_designs():
            check = Check.prepare((design,), bound, state=read_state(path))
            if not stored and not interrupted:
                print(f"bound {name}: {design}", file=sys.stderr)
                _, interrupted = check.run(save=lambda text, path=path: write_state(path, text))
            (result,) = check.results
            if result.is_complete or result.violation is not None:
                rows.append(row_of(name, result))
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    PAGE.write_text(page_with(rows, PAGE.read_text()))
    return 130 if interrupted else 0


if __name__ == "__main__":
    raise SystemExit(main())
