"""Statistics under headings: what a design counts itself, then the catalogue's groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graven.basics.numbers import Value
from graven.engine.catalogue import Statistic, catalogue


@dataclass(frozen=True)
class Headings:
    """Statistics of one run.

    Attributes:
        groups: By heading: what is counted, and its value; no heading is empty.
        left_out: How many are in none.
    """

    groups: Mapping[str, list[tuple[Statistic, Value]]]
    left_out: int

    @staticmethod
    def of(
        stats: Mapping[str, Value], *, design: str | None = None, every: bool = True
    ) -> Headings:
        """Statistics under their headings.

        Args:
            stats: The statistics.
            design: The design, whose own come first under a heading with its name.
            every: All of them; otherwise without those of single cores and banks, and without what
                is zero and is not the design's own.
        """
        known = catalogue()
        own = "" if design is None else f"What {design} did"
        order = list(dict.fromkeys([own, *(statistic.group for statistic in known.stats)]))
        groups: dict[str, list[tuple[Statistic, Value]]] = {group: [] for group in order}
        left_out = 0
        for name, value in stats.items():
            statistic = known.described(name)
            is_own = design is not None and design in statistic.designs
            if not (every or is_own or (value and "." not in name)):
                left_out += 1
                continue
            groups.setdefault(own if is_own else statistic.group, []).append((statistic, value))
        return Headings({title: rows for title, rows in groups.items() if rows}, left_out)
