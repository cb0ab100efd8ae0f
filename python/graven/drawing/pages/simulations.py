"""Pages of single simulations within a report: what they show is there once, packed.

A report of hundreds of simulations would be tens of megabytes with a page of HTML for each. So the
report has for each of them a section with its title alone, which an address with its fragment
shows, and what all sections show in one JSON document: texts that recur stand there once, and the
document is compressed (zlib) and written in base 64. A script fills a section when it is shown.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graven.basics.numbers import Value, exact, scaled
from graven.drawing.pages.simulation import changed_of, facts_of
from graven.results.comparison import Comparison
from graven.results.headings import Headings
from graven.results.record import Record

Run: TypeAlias = tuple[str, str, int, tuple[tuple[str, Value], ...]]
"""Design, workload, threads, and what is varied."""


@dataclass(frozen=True)
class Simulations:
    """All simulations of a report, in the order of their places.

    Attributes:
        columns: Titles of the cells: threads, seed, what is varied, metrics.
        rows: Each simulation with its cells.
        data: Content of their pages, packed.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Record, Sequence[str]]]
    data: str

    @staticmethod
    def of(comparison: Comparison) -> Simulations:
        """Lists the simulations of a comparison."""
        rows = []
        columns: dict[str, None] = {}
        for record in comparison.records:
            cells = {"threads": str(record.threads)}
            if len(comparison.seeds) > 1:
                cells["seed"] = str(record.seed)
            cells |= {key: str(record.varied.get(key, "")) for key in comparison.varied}
            for metric in comparison.metrics:
                cells[f"{metric.title}, {metric.unit}"] = scaled(record.value(metric.stat))
            columns |= dict.fromkeys(cells)
            rows.append((record, list(cells.values())))
        return Simulations(list(columns), rows, packed(comparison.records))


def places_of(comparison: Comparison) -> Mapping[Run, int]:
    """The places of all simulations in the list of a comparison; of several seeds the first's."""
    places: dict[Run, int] = {}
    for place, r in enumerate(comparison.records):
        places.setdefault((r.design, r.workload, r.threads, tuple(r.varied.items())), place)
    return places


class _Texts:
    """Texts that stand once, by their places."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, ...], int] = {}

    def place(self, *texts: str) -> int:
        return self.places.setdefault(texts, len(self.places))

    @property
    def all(self) -> list[tuple[str, ...]]:
        return list(self.places)


def packed(records: Sequence[Record]) -> str:
    """Returns the content of the pages of some simulations, as base 64 of compressed JSON."""
    headings, statistics, parameters = _Texts(), _Texts(), _Texts()
    pages: list[dict[str, Any]] = []
    for record in records:
        counted = {name: value for name, value in record.stats.items() if value}
        groups = []
        for title, rows in Headings.of(counted, design=record.simulated).groups.items():
            cells: list[int | str] = []
            for item, value in rows:
                cells += [statistics.place(item.name, item.unit, item.description), exact(value)]
            groups.append([headings.place(title), cells])
        changed: list[int | str] = []
        for setting in changed_of(record):
            place = parameters.place(setting.key, setting.unit, setting.default, setting.doc)
            changed += [place, setting.value]
        pages.append(
            {
                "facts": list(facts_of(record).items()),
                "groups": groups,
                "zero": len(record.stats) - len(counted),
                "changed": changed,
            }
        )
    document = {
        "headings": headings.all,
        "statistics": statistics.all,
        "parameters": parameters.all,
        "pages": pages,
    }
    text = json.dumps(document, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
