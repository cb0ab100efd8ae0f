"""`python -m tests.prose [PATH…] [--update]`; the README says more."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from . import baseline
from .rules import Finding, findings
from .texts import passages

ROOT = Path(__file__).parents[2]

FILES = (
    "*.md", "docs/**/*.md", "benches/*.md", "crates/*/*.md", "examples/**/*.md", "tests/*/*.md",
    "python/graven/**/*.py", "crates/*/src/**/*.rs",
)  # fmt: skip
NOT_CHECKED = ("CHANGELOG.md",)

SHOWN = 20
"""Most findings that are shown of a unit and rule whose count has risen."""


def main(arguments: Sequence[str], root: Path = ROOT, table: Path = baseline.PATH) -> int:
    """Checks everything, or lists all findings beneath paths; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose")
    what = "list all findings of these files and folders, whatever the baseline allows"
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=what)
    parser.add_argument("--update", action="store_true", help="write the baseline anew")
    given = parser.parse_args(arguments)
    found = sorted(_all(root))
    if given.paths:
        under = [path.resolve() for path in given.paths]
        listed = [each for each in found if any(map((root / each.path).is_relative_to, under))]
        print(*listed, sep="\n", end="\n" if listed else "")
        return 1 if listed else 0
    return _update(found, table) if given.update else _check(found, root, table)


def _all(root: Path) -> Iterator[Finding]:
    for pattern in FILES:
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            if name not in NOT_CHECKED:
                for each in passages(name, path.read_text(encoding="utf-8")):
                    yield from [each] if isinstance(each, Finding) else findings(each)


def _check(found: Sequence[Finding], root: Path, table: Path) -> int:
    try:
        allowed = baseline.read(table)
    except (OSError, tomllib.TOMLDecodeError) as error:
        print(f"{table.name}: {error}; --update writes it anew", file=sys.stderr)
        return 2
    now = baseline.counted(found)
    risen = fallen = False
    for name, rule in sorted(now.keys() | allowed.keys()):
        count, limit = now.get((name, rule), 0), allowed.get((name, rule), 0)
        if count > limit:
            risen = True
            of_unit = [
                each for each in found if (baseline.unit(each.path), each.rule) == (name, rule)
            ]
            _show(of_unit, baseline.new_lines(root, name, table), name)
            print(f"{name}: {rule}: {count} found, {limit} allowed")
        elif count < limit:
            fallen = True
            print(f"{name}: {rule}: {count} found, {limit} in the baseline", file=sys.stderr)
    if fallen:
        print("lower the baseline: python -m tests.prose --update", file=sys.stderr)
    return 1 if risen else 0


def _show(found: Sequence[Finding], new: Collection[tuple[str, int]], name: str) -> None:
    """Prints findings in lines that are newer than the baseline; all, if none of them is."""
    shown = [each for each in found if (each.path, each.line) in new] or found
    print(*shown[:SHOWN], sep="\n")
    if len(shown) > SHOWN:
        print(f"… and {len(shown) - SHOWN} more: python -m tests.prose {name}")


def _update(found: Sequence[Finding], table: Path) -> int:
    """Writes today's counts, also where the table cannot be read, and prints each change."""
    before: baseline.Counts = {}
    try:
        before = baseline.read(table)
    except (OSError, tomllib.TOMLDecodeError) as error:
        print(f"{table.name}: {error}", file=sys.stderr)
    now = baseline.counted(found)
    for name, rule in sorted(now.keys() | before.keys()):
        was, count = before.get((name, rule), 0), now.get((name, rule), 0)
        if count != was:
            change = "risen" if count > was else "fallen"
            print(f"{name}: {rule}: {count} found, {change} from {was}")
    baseline.write(now, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
