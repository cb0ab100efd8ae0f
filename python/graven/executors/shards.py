"""Parts of a list of jobs, for who starts one command on each of several hosts.

Which jobs a part has depends on the list and on what jobs are expected to take, and on nothing that
differs from host to host: parts that are made on different hosts have each job once.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from graven._engine import ConfigError


@dataclass(frozen=True)
class Shard:
    """One of several parts.

    Attributes:
        number: Which, from 1.
        of: How many there are.
    """

    number: int
    of: int

    @staticmethod
    def parse(text: str, name: str = "--shard") -> Shard:
        """Reads `I/N`.

        Raises:
            ConfigError: it is something else.
        """
        number, _, of = text.partition("/")
        if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return Shard(int(number), int(of))
        raise ConfigError(f"{name}: `{text}` is not a part such as 1/8, the first of eight")

    def part(self, costs: Sequence[float]) -> list[int]:
        """The jobs of this part, in order: parts take equally long, as far as that is known."""
        loads = [(0.0, shard) for shard in range(1, self.of + 1)]
        mine = []
        for at in sorted(range(len(costs)), key=lambda at: (-costs[at], at)):
            load, shard = heapq.heappop(loads)
            if shard == self.number:
                mine.append(at)
            heapq.heappush(loads, (load + costs[at], shard))
        return sorted(mine)

    def __str__(self) -> str:
        """As it was given."""
        return f"{self.number}/{self.of}"
