"""`python -m tests.prose [PATH…]`; the README says more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .rules import Finding, findings
from .texts import passages

ROOT = Path(__file__).parents[2]

FILES = (
    "*.md", "docs/**/*.md", "benches/*.md", "crates/*/*.md", "examples/**/*.md", "tests/*/*.md",
    "python/graven/**/*.py", "crates/*/src/**/*.rs",
)  # fmt: skip
NOT_CHECKED = ("CHANGELOG.md",)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Prints all findings, or those beneath paths; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose")
    what = "print the findings of these files and folders alone"
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=what)
    under = [path.resolve() for path in parser.parse_args(arguments).paths] or [root]
    found = [each for each in _all(root) if any(map((root / each.path).is_relative_to, under))]
    print(*sorted(found), sep="\n", end="\n" if found else "")
    return 1 if found else 0


def _all(root: Path) -> Iterator[Finding]:
    for pattern in FILES:
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            if name not in NOT_CHECKED:
                for each in passages(name, path.read_text(encoding="utf-8")):
                    yield from [each] if isinstance(each, Finding) else findings(each)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
