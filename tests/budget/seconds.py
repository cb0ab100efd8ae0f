"""CPU seconds of tests, from logs and from the committed table."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

PATH = Path(__file__).with_name("seconds.csv")

TIMES = 2
"""Limit of a tier, over its seconds in the table."""

TIMES_OF_FILE = 3
"""Limit of a file of tests: what several files need, the first that asks for it pays."""

FLOOR_SECONDS = 30
"""Seconds that either may take besides: busy hosts make CPU seconds longer, short ones most."""

LISTED_SECONDS = 2
"""Seconds from which on the table names a test; the others of its file are one row."""

OTHERS = "(others)"

Seconds = dict[tuple[str, str], float]
"""CPU seconds by file and test."""

_PROGRAM = re.compile(r"([\d.]+) ([\d.]+) \S*/([\w-]+)-[0-9a-f]{16}(?: .*?--exact (\S+))?.*")


def read(log: Iterable[str]) -> Seconds:
    """Adds up a log: what `measured` writes of programs, and `plugin` of tests in Python."""
    found: Seconds = defaultdict(float)
    for line in log:
        if " --list" in line:
            continue
        program = _PROGRAM.fullmatch(line.rstrip("\n"))
        if program:
            user, system, binary, test = program.groups()
            module, _, name = (test or "").rpartition("::")
            found[f"{binary}::{module}" if module else binary, name] += float(user) + float(system)
        elif "::" in line:
            seconds, _, test = line.rstrip("\n").partition(" ")
            file, _, name = test.partition("::")
            found[file, name] += float(seconds)
    return dict(found)


def table(seconds: Mapping[tuple[str, str], float]) -> Seconds:
    """Keeps the tests that take long by name, and sums up the others of each file.

    What rounds to nothing is left out.
    """
    rows: Seconds = defaultdict(float)
    for (file, test), each in seconds.items():
        rows[file, test if each >= LISTED_SECONDS else OTHERS] += each
    return {key: round(each, 1) for key, each in rows.items() if each >= 0.05}


def by_file(seconds: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Sums up the tests of each file."""
    files: dict[str, float] = defaultdict(float)
    for (file, _), each in seconds.items():
        files[file] += each
    return dict(files)


def exceeding(now: Mapping[str, float], allowed: Mapping[str, float]) -> list[str]:
    """Says which files take more than their budget, and whether all together do."""
    total = sum(now.values()), sum(allowed.get(file, 0) for file in now)
    sums = [("all files together", *total, TIMES)]
    sums += [
        (file, each, allowed.get(file, 0), TIMES_OF_FILE) for file, each in sorted(now.items())
    ]
    return [
        f"{what}: {each:.0f} CPU seconds, {of:.0f} in the table"
        for what, each, of, times in sums
        if each > times * of + FLOOR_SECONDS
    ]


def committed(path: Path = PATH) -> dict[str, Seconds]:
    """Reads the table, by tier."""
    tiers: dict[str, Seconds] = {}
    if path.exists():
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            tiers.setdefault(row["tier"], {})[row["file"], row["test"]] = float(row["seconds"])
    return tiers


def record(tier: str, now: Mapping[tuple[str, str], float], path: Path = PATH) -> None:
    """Replaces the rows that a tier has of these files; what takes longest comes first."""
    tiers = committed(path)
    measured = by_file(now)
    kept = {key: each for key, each in tiers.get(tier, {}).items() if key[0] not in measured}
    tiers[tier] = {**kept, **table(now)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("tier", "file", "test", "seconds"))
    for name, seconds in sorted(tiers.items()):
        files = by_file(seconds)
        for (file, test), each in sorted(
            seconds.items(), key=lambda row: (-files[row[0][0]], row[0][0], -row[1], row[0][1])
        ):
            writer.writerow((name, file, test, each))
    path.write_text(text.getvalue(), encoding="utf-8")
