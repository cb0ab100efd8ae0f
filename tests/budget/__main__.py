"""`python -m tests.budget check|record LOG...`; CONTRIBUTING.md says more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import seconds

SHOWN = 20
"""Number of the tests that take longest that are shown."""


def main(arguments: Sequence[str]) -> int:
    """Does what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.budget")
    what = "compare with the table, or replace its rows of the files in the logs"
    parser.add_argument("command", choices=("check", "record"), help=what)
    what = "what tests took (GRAVEN_CPU_LOG); its name is that of a tier in the table"
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=what)
    given = parser.parse_args(arguments)
    exceeding: list[str] = []
    for log in given.logs:
        now = seconds.read(log.read_text(encoding="utf-8").splitlines())
        if given.command == "record":
            seconds.record(log.stem, now)
        else:
            exceeding += _check(log.stem, now)
    for line in exceeding:
        print(line)
    if exceeding:
        print("if that is meant: `python -m tests.budget record` writes the table anew")
    return 1 if exceeding else 0


def _check(tier: str, now: seconds.Seconds) -> list[str]:
    """Prints the tests that take longest; returns what exceeds the budget."""
    for (file, test), each in sorted(now.items(), key=lambda row: -row[1])[:SHOWN]:
        print(f"{each:8.1f} CPU s  {file}  {test}")
    files = seconds.by_file(now)
    print(f"{sum(files.values()):8.1f} CPU s  {tier}: {len(now)} tests")
    allowed = seconds.committed().get(tier)
    if allowed is None:
        print(f"{tier}: the table has no such tier yet")
        return []
    return [f"{tier}: {line}" for line in seconds.exceeding(files, seconds.by_file(allowed))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
