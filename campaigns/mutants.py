"""The kill matrix: which mutants of each sound design the laboratory kills, by what and how soon.

Each mutant of a design, its own and those of the mutation operators, meets schedules of the
adversary from seed 1 on; what survives them meets the litmus programs that are for it, and then all
small programs. `--survivors` runs the litmus programs alone, on the mutants that have survived.
`--unseen` gives the adversary the mutants of an outsider (`campaigns.unseen`).
`survivors.toml` explains why mutants survive; the command fails if one survives without an
explanation.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from graven.api.options import sound_designs
from graven.basics.numbers import exact
from graven.laboratory.adversary import Schedules
from graven.laboratory.crashes import CampaignResult
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
from graven.running.work import How, Local

from . import unseen
from .runner import Campaign, Failed, Given, Rows, keep, whole
from .tables import ROOT, Row, Table, table_of, wrapped

REASONS = Path(__file__).parent / "survivors.toml"

LIBRARY = ROOT / "litmus"
"""Folder of litmus programs; a program may name the mutant that it is for."""

SCHEDULES = 1000
"""Schedules of the adversary for each mutant at most."""

TABLE = Table(
    "mutants",
    ("design", "class", "mutant", "schedules", "killed_by"),
    ("design",),
)

SURVIVORS = "survivors"
"""Name of the task that tries programs on mutants that survived."""

UNSEEN = "unseen"
"""Name of the task that tries the mutants of an outsider."""

Trials = CampaignResult[Trial]


def measure(name: str, given: Given) -> Rows:
    """Tries the mutants of a design, programs on all that survived, or an outsider's mutants."""
    if name == SURVIVORS:
        return {TABLE: again(TABLE.read())}
    if name == UNSEEN:
        return {unseen.TABLE: unseen.measured()}
    how = How(keep(), Local(given.jobs))
    trials = reports(try_mutants(name, mutants_of(name), Schedules(SCHEDULES), how))
    trials = reports(check_mutants(shown(trials), SMALL_BOUND, how))
    return {TABLE: list(map(row_of, trials))}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this campaign."""
    parser.add_argument("--survivors", action="store_true", help="try programs on survivors")
    parser.add_argument("--unseen", action="store_true", help="try the mutants of an outsider")


def reports(result: Trials) -> Sequence[Trial]:
    """Returns the trials, if all were made."""
    whole(result.failures, result.interrupted)
    return result.reports


def shown(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Runs the library's programs on those that survived."""
    return reports(show_mutants(trials, list(map(Program.read, program_files([LIBRARY])))))


def again(rows: Iterable[Row]) -> list[Row]:
    """Returns rows after the library's programs for those that survived."""
    all_rows = list(rows)
    places = [at for at, row in enumerate(all_rows) if not row["killed_by"]]
    for at, trial in zip(places, shown([trial_of(all_rows[at]) for at in places]), strict=True):
        all_rows[at] = row_of(trial)
    return all_rows


def trial_of(row: Row) -> Trial:
    """Returns the trial of a mutant that survived, from its row."""
    mutant = Mutant(row["mutant"], None if row["class"] == OWN else row["class"])
    return Trial(row["design"], mutant, int(row["schedules"]), 0, None)


def row_of(trial: Trial) -> Row:
    """Makes a row of the table."""
    mutant, kill = trial.mutant, trial.kill
    return TABLE.row(
        trial.design,
        mutant.class_ or OWN,
        mutant.name,
        trial.schedules,
        "" if kill is None else kill.by,
    )


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
                    raise Failed(f"{REASONS.name} has {design} {mutant} twice")
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


def blocks(rows: Sequence[Row], of_outsider: Sequence[Row]) -> list[str]:
    """Makes the tables of the page, and the list of survivors."""
    reasons = read_reasons()
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
    matrices = f"## By design\n\n{_matrix(rows, 'design')}\n## By class\n\n{_matrix(rows, 'class')}"
    own = f"{matrices}\n## Survivors\n\n" + "\n".join([*lines, ""])
    return [own, unseen.block(of_outsider)]


def wrong(rows: Sequence[Row], _of_outsider: Sequence[Row]) -> list[str]:
    """Names survivors without an explanation."""
    reasons = read_reasons()
    return [
        f"{design}: {mutant} survives, and nothing says why"
        for design, mutant in survivors(rows)
        if (design, mutant) not in reasons
    ]


CAMPAIGN = Campaign(
    lambda given: [SURVIVORS] if given.survivors else [UNSEEN] if given.unseen else sound_designs(),
    measure,
    [TABLE, unseen.TABLE],
    ROOT / "docs/results/mutants.md",
    blocks,
    wrong,
    options=options,
    repeats=lambda name, _: name in {SURVIVORS, UNSEEN},
)
