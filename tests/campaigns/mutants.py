"""The kill matrix: which mutants of each sound design the laboratory kills, by what and how soon.

    python -m tests.campaigns.mutants [DESIGN …]    try what is left, and write table and page
    python -m tests.campaigns.mutants --survivors   run the litmus programs on those that survived
    python -m tests.campaigns.mutants --stored      write the page from the table

Each mutant of a design, its own and those of the mutation operators, meets schedules of the
adversary from seed 1 on; what survives them meets the litmus programs that are for it, and then all
small programs. The table is replaced after each design, so that an interrupted campaign goes on
with the next; `--anew` begins again. `survivors.toml` explains why mutants survive; the command
fails if one survives without an explanation.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.campaigns.tables import (
    ROOT,
    Row,
    read_rows,
    table_of,
    wrapped,
    write_page,
    write_rows,
)

from graven.api.options import sound_designs
from graven.basics.numbers import exact
from graven.laboratory.adversary import Schedules
from graven.laboratory.mutants import (
    OWN,
    SMALL_BOUND,
    WAYS,
    Mutant,
    Trial,
    check_mutants,
    mutants_of,
    show_mutants,
    try_mutants,
)
from graven.laboratory.programs import Program, program_files

TABLE = Path(__file__).parent / "mutants.csv"
REASONS = Path(__file__).parent / "survivors.toml"
PAGE = ROOT / "docs/results/mutants.md"

LIBRARY = ROOT / "litmus"
"""Programs of which some are for a mutant."""

SCHEDULES = 1000
"""Of the adversary for each mutant at most."""

COLUMNS = ("design", "class", "mutant", "schedules", "killed_by")


def trials_of(design: str) -> list[Trial]:
    """Tries all mutants of a design."""
    tried = try_mutants(design, mutants_of(design), Schedules(SCHEDULES))
    if tried.interrupted or tried.failures:
        raise SystemExit(f"{design}: {tried.failures}")
    checked = check_mutants(shown(tried.reports), SMALL_BOUND)
    if checked.interrupted or checked.failures:
        raise SystemExit(f"{design}: {checked.failures}")
    return list(checked.reports)


def shown(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Runs the library's programs on those that survived."""
    result = show_mutants(trials, list(map(Program.read, program_files([LIBRARY]))))
    if result.interrupted or result.failures:
        raise SystemExit(f"programs: {result.failures}")
    return result.reports


def again(rows: Iterable[Row]) -> list[Row]:
    """Rows, after the library's programs for those that survived."""
    all_rows = list(rows)
    places = [at for at, row in enumerate(all_rows) if not row["killed_by"]]
    for at, trial in zip(places, shown([trial_of(all_rows[at]) for at in places]), strict=True):
        all_rows[at] = row_of(trial)
    return all_rows


def trial_of(row: Row) -> Trial:
    """What a row of the table says of a mutant that survived."""
    mutant = Mutant(row["mutant"], None if row["class"] == OWN else row["class"])
    return Trial(row["design"], mutant, int(row["schedules"]), 0, None)


def row_of(trial: Trial) -> Row:
    """A row of the table."""
    values = (
        trial.design, trial.mutant.class_ or OWN, trial.mutant.name, trial.schedules,
        "" if trial.kill is None else trial.kill.by,
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def survivors(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Designs and mutants that nothing has killed."""
    return [(row["design"], row["mutant"]) for row in rows if not row["killed_by"]]


def read_reasons() -> dict[tuple[str, str], str]:
    """Why mutants survive, by design and name."""
    found: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivors"]:
        for design in entry["designs"]:
            for mutant in entry["mutants"]:
                if (design, mutant) in found:
                    raise SystemExit(f"{REASONS.name}: {design} {mutant} is there twice")
                found[design, mutant] = " ".join(entry["because"].split())
    return found


def _matrix(rows: Sequence[Row], key: str) -> str:
    """Kills by design or class, and by what."""
    names = list(dict.fromkeys(row[key] for row in rows))

    def cells(name: str, of: Sequence[Row]) -> list[str]:
        numbers = [sum(row["killed_by"] == way for row in of) for way in (*WAYS, "")]
        return [name, exact(len(of)), *map(exact, numbers)]

    lines = [cells(name, [row for row in rows if row[key] == name]) for name in names]
    head = (key, "mutants", *WAYS, "survive")
    return table_of(head, [*lines, cells("all", rows)])


def page_of(rows: Sequence[Row], reasons: dict[tuple[str, str], str]) -> str:
    """What the page shows."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for design, mutant in survivors(rows):
        why = reasons.get((design, mutant), "Not explained yet.")
        by_reason.setdefault(why, {}).setdefault(mutant, []).append(design)
    lines = []
    for why, mutants in by_reason.items():
        by_designs: dict[str, list[str]] = {}
        for mutant, designs in mutants.items():
            by_designs.setdefault(", ".join(designs), []).append(f"`{mutant}`")
        of = "; ".join(f"{', '.join(names)} of {designs}" for designs, names in by_designs.items())
        lines.append(wrapped(f"- {of}. {why}", indent="  "))
    return "\n".join(
        [
            "## By design",
            "",
            _matrix(rows, "design"),
            "## By class",
            "",
            _matrix(rows, "class"),
            "## Survivors",
            "",
            *lines,
            "",
        ]
    )


def main() -> int:
    """Tries what is left, unless only what is stored is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="try nothing")
    parser.add_argument("--survivors", action="store_true", help="try programs on survivors")
    parser.add_argument("--anew", action="store_true", help="try all again")
    parser.add_argument("designs", nargs="*", metavar="DESIGN", help="those, instead of all")
    given = parser.parse_args()
    rows: list[Row] = [] if given.anew and not given.designs else list(read_rows(TABLE))
    done = {row["design"] for row in rows}
    if given.survivors:
        rows = again(rows)
        write_rows(TABLE, COLUMNS, rows)
    for design in [] if given.stored or given.survivors else given.designs or sound_designs():
        if design in done and not given.anew:
            continue
        print(design, file=sys.stderr)
        rows = [row for row in rows if row["design"] != design]
        rows += map(row_of, trials_of(design))
        write_rows(TABLE, COLUMNS, rows)
    reasons = read_reasons()
    write_page(PAGE, page_of(rows, reasons))
    unexplained = [pair for pair in survivors(rows) if pair not in reasons]
    for design, mutant in unexplained:
        print(f"{design}: {mutant} survives, and nothing says why", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
