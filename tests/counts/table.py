"""The committed counts, and what a run makes of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graven.basics import output

from .callgrind import ROOT, Count

PATH = ROOT / "benches/counts.toml"

LIMIT = 0.05
"""The part by which a count may grow."""

SHORT_INSTRUCTIONS = 500_000_000
"""Limit of a short benchmark, for which Valgrind takes some ten seconds."""

HEAD = """\
# Host instructions of each benchmark in benches/counts, all units of it together.
# Written by `python -m tests.counts record`.
"""


@dataclass(frozen=True)
class Table:
    """Counts by benchmark, and the compiler of which they are."""

    compiler: str
    counts: Mapping[str, Count]

    @classmethod
    def read(cls, path: Path = PATH) -> Table:
        """The committed one."""
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
        counts = {name: Count(**entry) for name, entry in stored["counts"].items()}
        return cls(stored["compiler"], counts)

    def long(self) -> set[str]:
        """The benchmarks that are not short."""
        return {n for n, each in self.counts.items() if each.instructions > SHORT_INSTRUCTIONS}

    def write(self, path: Path = PATH) -> None:
        """Writes it, sorted by benchmark."""
        lines = [HEAD, f'compiler = "{self.compiler}"\n', "\n[counts]\n"]
        for name, each in sorted(self.counts.items()):
            values = (
                f'unit = "{each.unit}", units = {each.units}, instructions = {each.instructions}'
            )
            lines.append(f'"{name}" = {{ {values} }}\n')
        output.write(path, "".join(lines).encode())


@dataclass(frozen=True)
class Verdict:
    """Judgement of a benchmark.

    Attributes:
        line: The judgement in one line.
        fails: True if it has grown too much, or has no counterpart.
    """

    line: str
    fails: bool


def verdict(name: str, before: Count | None, now: Count | None) -> Verdict:
    """Compares a benchmark's count with the committed one, each for one unit."""
    if now is None:
        return Verdict(f"{name}: in the table, but there is no such benchmark", True)
    shown = f"{name}: {now.per_unit:,.0f} per {now.unit}"
    if before is None:
        return Verdict(f"{shown}, which is not in the table", True)
    if before.unit != now.unit:
        return Verdict(f"{shown}, in the table it is per {before.unit}", True)
    change = now.per_unit / before.per_unit - 1
    line = f"{shown}, {100 * change:+.1f} % of {before.per_unit:,.0f}"
    if change > LIMIT:
        return Verdict(f"{line}: more than {100 * LIMIT:.0f} % above the table", True)
    return Verdict(f"{line}: worth recording" if change < -LIMIT else line, False)
