"""Three levels of caches without time: what both simulators' rules count, one access after another.

It shows what differences of counts come from. Two rules differ, and each can be chosen here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .programs import LINE_BYTES, Access

Line = int


@dataclass(frozen=True)
class Rules:
    """Rules in which both simulators differ."""

    inclusive: bool
    """True if a line that leaves a level leaves those above as well (Graven)."""
    stores_refresh: bool
    """True if a store that hits in the L1 makes its line the newest (Graven)."""


GRAVEN = Rules(inclusive=True, stores_refresh=True)
CHAMPSIM = Rules(inclusive=False, stores_refresh=False)


@dataclass
class Cache:
    """One level; sets hold lines from the oldest to the newest, each with whether it is dirty."""

    sets: int
    ways: int
    hits: int = 0
    asked: int = 0
    """Lines asked of the next level."""
    written: int = 0
    """Dirty lines given to the next level."""
    lines: list[dict[Line, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = [{} for _ in range(self.sets)]

    def of(self, line: Line) -> dict[Line, bool]:
        """The set of a line."""
        return self.lines[line % self.sets]

    def look(self, line: Line, refresh: bool = True) -> bool:
        """Returns True if the line is here; it is the newest then."""
        held = self.of(line)
        if line not in held:
            self.asked += 1
            return False
        if refresh:
            held[line] = held.pop(line)
        self.hits += 1
        return True


class Hierarchy:
    """The caches of the comparison."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.levels = [Cache(64, 8), Cache(512, 8), Cache(1024, 16)]

    def run(self, accesses: Iterable[Access]) -> list[Cache]:
        """Does all accesses; returns the levels."""
        for access in accesses:
            self._access(access.address // LINE_BYTES, access.write)
        return self.levels

    def _access(self, line: Line, write: bool) -> None:
        for level, cache in enumerate(self.levels):
            if cache.look(line, level > 0 or not write or self.rules.stores_refresh):
                break
        else:
            level = len(self.levels)
        for upper in reversed(range(level)):
            self._fill(upper, line, dirty=False)
        if write:
            self.levels[0].of(line)[line] = True

    def _fill(self, level: int, line: Line, dirty: bool) -> None:
        cache = self.levels[level]
        held = cache.of(line)
        if len(held) == cache.ways:
            victim, changed = next(iter(held.items()))
            del held[victim]
            if self.rules.inclusive:
                for upper in self.levels[:level]:
                    changed |= upper.of(victim).pop(victim, False)
            if changed:
                cache.written += 1
                self._write_back(level + 1, victim)
        held[line] = dirty

    def _write_back(self, level: int, line: Line) -> None:
        if level == len(self.levels):
            return
        held = self.levels[level].of(line)
        if line in held:
            held[line] = True
        else:
            self._fill(level, line, dirty=True)
