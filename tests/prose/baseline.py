"""Counts of findings that are left, by crate, package or page: they may fall, and never rise."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from .rules import Finding

PATH = Path(__file__).with_name("baseline.toml")

HEAD = """\
# Findings that are left, by crate, package or page. `python -m tests.prose --update` writes them.
"""

Counts = Mapping[tuple[str, str], int]
"""Number of findings by unit and rule; a unit without findings is absent."""


def unit(path: str) -> str:
    """Returns the crate, the package of Python or the page that a file counts for."""
    match = re.match(r"crates/[^/]+(?=/src/)|python/graven(?:/[^/]+(?=/))?", path)
    return match[0] if match else path


def counted(findings: Iterable[Finding]) -> Counts:
    """Counts findings."""
    return Counter((unit(each.path), each.rule) for each in findings)


def read(path: Path = PATH) -> Counts:
    """Reads the committed counts.

    Raises:
        tomllib.TOMLDecodeError: the file has marks of a merge conflict, for example.
    """
    stored = tomllib.loads(path.read_text(encoding="utf-8"))
    return {(name, rule): count for name, of in stored.items() for rule, count in of.items()}


def write(counts: Counts, path: Path = PATH) -> None:
    """Writes counts, sorted; those of units that do not exist any more are gone."""
    lines = [HEAD]
    for name in sorted({name for name, _ in counts}):
        rules = sorted((rule, count) for (of, rule), count in counts.items() if of == name)
        lines.append(f'\n["{name}"]\n')
        lines += (f"{rule} = {count}\n" for rule, count in rules)
    path.write_text("".join(lines), encoding="utf-8")


def new_lines(root: Path, name: str, table: Path) -> set[tuple[str, int]]:
    """Returns path and number of each line of a unit that is newer than the committed counts.

    The set is empty outside a checkout.
    """
    since = _git(root, "log", "-1", "--format=%H", "--", str(table)).strip()
    if not since:
        return set()
    found: set[tuple[str, int]] = set()
    for path in _git(root, "ls-files", "--others", "--exclude-standard", "--", name).splitlines():
        lines = (root / path).read_text(encoding="utf-8").splitlines()
        found.update((path, number) for number in range(1, len(lines) + 1))
    path = ""
    for line in _git(root, "diff", "--unified=0", "--no-color", since, "--", name).splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.update((path, number) for number in range(first, first + count))
    return found


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ("git", *arguments), cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
