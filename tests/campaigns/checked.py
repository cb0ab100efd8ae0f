"""All small programs on every sound design: what `graven check` says, at several bounds.

    python -m tests.campaigns.checked            run what is left, and write table and page
    python -m tests.campaigns.checked --stored   write them from what is done

States are in `graven-results`, so that an interrupted campaign goes on where it was. A design is in
the table at a bound when all of its programs were executed, and its row stays until they have been
executed anew.
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
from graven.laboratory.check import Bound, Check, Checked
from graven.laboratory.state_file import StateFile

TABLE = Path(__file__).parent / "checked.csv"
PAGE = ROOT / "docs/results/checked.md"

BOUNDS = {
    "2": Bound(transactions=2),
    "3-0": Bound(departures=0),
    "3-1": Bound(departures=1),
    "3": Bound(),
}
"""By what the files of their states are called."""

COLUMNS = (
    "bound", "design", "programs", "schedules", "failures", "plain", "torn", "landed", "recovery",
    "different", "lives", "crowded", "verdict",
)  # fmt: skip


def row_of(bound: str, result: Checked) -> Row:
    """A row of the table."""
    plain = result.failures - result.torn - result.landed - result.recovery
    values = (
        bound, result.design, result.programs, result.schedules, result.failures, plain,
        result.torn, result.landed, result.recovery, result.failures - result.equal, result.lives,
        result.crowded, "violated" if result.violation else "kept",
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def shown(rows: list[Row]) -> str:
    """What the page shows."""
    out = []
    for name, bound in BOUNDS.items():
        of_bound = [row for row in rows if row["bound"] == name]
        if not of_bound:
            continue
        failures, lives = (
            exact(sum(int(row[n]) for row in of_bound)) for n in ("failures", "lives")
        )
        command = (
            f"graven check all --transactions {bound.transactions} --departures {bound.departures}"
        )
        numbers = (
            "programs", "schedules", "plain", "torn", "landed", "recovery", "failures",
            "different", "lives",
        )  # fmt: skip
        head = (
            "design", "programs", "schedules", "plain", "torn", "landed", "in recovery",
            "power failures", "different", "second lives", "guarantee",
        )  # fmt: skip
        cells = (
            [row["design"], *(exact(int(row[name])) for name in numbers), row["verdict"]]
            for row in of_bound
        )
        out += [
            f"**{str(bound)[0].upper()}{str(bound)[1:]}** (`{command}`): "
            f"{failures} power failures, {lives} second lives.",
            "",
            table_of(head, cells),
        ]
    return "\n".join(out)


def main() -> int:
    """Runs what is left, unless only what is done is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="run nothing")
    stored = parser.parse_args().stored
    done: list[Row] = []
    interrupted = False
    for name, bound in BOUNDS.items():
        state = StateFile(state_file(f"check-{name}"))
        for design in sound_designs():
            check = Check.prepare((design,), bound, state=state.read())
            if not stored and not interrupted:
                print(f"bound {name}: {design}", file=sys.stderr)
                _, interrupted = check.run(save=state.write)
            (result,) = check.results
            if result.is_complete or result.violation is not None:
                done.append(row_of(name, result))
    names, designs = list(BOUNDS), sound_designs()
    rows = sorted(
        replaced(read_rows(TABLE), done, ("bound", "design")),
        key=lambda row: (names.index(row["bound"]), designs.index(row["design"])),
    )
    write_rows(TABLE, COLUMNS, rows)
    write_page(PAGE, shown(rows))
    return 130 if interrupted else 0


if __name__ == "__main__":
    raise SystemExit(main())
