"""Mutants by someone who had not read what the adversary draws, and how soon it kills them.

`unseen.patch` puts sixty faults into the sources of the designs; the number in `GRAVEN_UNSEEN` says
which one is in force. Each breaks the guarantee of its design in a litmus program that its author
has written. `unseen.csv` says what each does. The patched engine is built in a copy of the
repository's last commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from .runner import Failed
from .tables import ROOT, Row, Table, table_of

PATCH = Path(__file__).with_suffix(".patch")

SCHEDULES = 1000
"""Schedules of the adversary for each mutant at most."""

FIRST_SEEDS = {"schedules": 1, "again": 250_001}
"""Seeds at which the columns' schedules begin. The adversary was changed after the survivors of the
first column were looked at, and not after those of the second."""

TABLE = Table(
    "unseen", ("number", "design", "kind", "what", "before", "schedules", "again"), ("number",)
)

KINDS = {
    "a": "capacities met exactly",
    "b": "numbers that come round",
    "c": "a write or read later than all else",
    "d": "two passes",
    "e": "three threads or more",
    "f": "more entries than places",
    "g": "recovery and later lives",
    "h": "others",
}


def measured() -> list[Row]:
    """Gives each mutant to the adversary."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _build(folder)
        return [{**row, **_kills(folder, row)} for row in TABLE.read()]


def _build(folder: Path) -> None:
    """Builds the patched engine in a folder."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    if subprocess.run(["git", "apply", PATCH], cwd=folder, check=False).returncode:
        raise Failed(
            f"{PATCH.name} no longer fits the designs: put its faults where they belong now"
        )
    target = ROOT / "target" / "unseen"
    build = ["cargo", "build", "--locked", "--release", "-p", "graven-native"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(build, cwd=folder, env=environment, check=True)
    engine = folder / "python/graven/_engine.abi3.so"
    engine.write_bytes((target / "release/lib_engine.so").read_bytes())


def _kills(folder: Path, row: Row) -> Row:
    """Returns the schedule with which each column's seeds kill a mutant; nothing if none does."""
    found = {}
    for column, first in FIRST_SEEDS.items():
        command = [
            sys.executable, "-m", "graven", "adversary", "--design", row["design"],
            "--schedules", str(SCHEDULES), "--first-seed", str(first), "--minimise", "0",
            "--no-store", "--format", "json",
        ]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(folder / "python"),
                "GRAVEN_UNSEEN": row["number"],
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode > 1:
            raise Failed(f"mutant {row['number']}: {done.stderr}")
        (report,) = json.loads(done.stdout)
        violations = report["violations"]
        found[column] = str(violations[0]["seed"] - first + 1) if violations else ""
    return found


def block(rows: Sequence[Row]) -> str:
    """Makes the tables of the page: kills by kind and by design, and what survived."""
    columns = ("before", *FIRST_SEEDS)

    def cells(name: str, of: Sequence[Row]) -> list[str]:
        killed = [sum(row[column] != "" for row in of) for column in columns]
        return [name, str(len(of)), *map(str, killed)]

    def matrix(key: str, names: dict[str, str]) -> str:
        lines = [
            cells(shown, [row for row in rows if row[key] == name]) for name, shown in names.items()
        ]
        head = (key, "mutants", "before", "seeds 1 to 1,000", "seeds 250,001 to 251,000")
        return table_of(head, [*lines, cells("all", rows)])

    designs = dict.fromkeys(sorted(row["design"] for row in rows))
    missed = [row for row in rows if not all(row[column] for column in FIRST_SEEDS)]
    survivors = "".join(f"- {row['design']}: {row['what']}\n" for row in missed)
    return "\n".join(
        [
            matrix("kind", KINDS),
            matrix("design", {name: name for name in designs}),
            "Missed by one of the two:\n",
            survivors or "- none\n",
        ]
    )
