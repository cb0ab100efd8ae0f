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
class Row:
    """A simulation in the list of all.

    Attributes:
        place: Its place in the list, by which its section is called.
        design: Its design.
        title: What was run.
        cells: Threads, what is varied, and the metrics that designs are compared by.
    """

    place: int
    design: str
    title: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Simulations:
    """All simulations of a report.

    Attributes:
        columns: What the cells of rows are.
        rows: One for each.
        data: What their pages show, packed.
    """

    columns: Sequence[str]
    rows: Sequence[Row]
    data: str

    @staticmethod
    def of(comparison: Comparison) -> Simulations:
        """Those of a comparison."""
        metrics = comparison.metrics
        several = len(comparison.seeds) > 1
        columns = [
            "threads",
            *(["seed"] if several else []),
            *comparison.varied,
            *(f"{m.title}, {m.unit}" for m in metrics),
        ]
        rows = [
            Row(
                place,
                record.design,
                f"{record.design} on {record.workload}",
                [
                    str(record.threads),
                    *([str(record.seed)] if several else []),
                    *(str(record.varied.get(key, "")) for key in comparison.varied),
                    *(scaled(record.value(metric.stat)) for metric in metrics),
                ],
            )
            for place, record in enumerate(comparison.records)
        ]
        return Simulations(columns, rows, packed(comparison.records))


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
    """What the pages of some simulations show, as base 64 of compressed JSON."""
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
