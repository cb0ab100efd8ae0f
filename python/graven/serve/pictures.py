"""Content of a view: a picture with its numbers, its simulations, and those that are missing."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graven.api.loading import varying
from graven.basics.numbers import Value, ratio, scaled
from graven.drawing.figures.comparisons import RELATIVE, Asked, chart
from graven.drawing.figures.picture import Chart, table
from graven.drawing.pages.page import Cell, NumberTable
from graven.engine.catalogue import catalogue
from graven.results.command_line import compare_command
from graven.results.comparison import Comparison
from graven.serve.contents import Entry, Run, Stock, run, settings_of
from graven.serve.view import ABSOLUTE, View

NAMED = 12
"""Number of missing simulations that are named."""

DATA = "csv"
"""The ending of what is drawn, as numbers."""

TYPES = {
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "png": "image/png",
    DATA: "text/csv",
}
"""Types of files of a view, by their endings."""

_DRAWING = threading.Lock()
"""The look of a picture is set in matplotlib as a whole: one is drawn at a time."""


@dataclass(frozen=True)
class Missing:
    """Simulations of a view that have no result: `count` of `total`.

    `names` has some of them, `commands` makes them all.
    """

    count: int
    total: int
    names: Sequence[str]
    commands: Sequence[str]


@dataclass(frozen=True)
class Found:
    """The results of a view, in the order of its designs and workloads, and those missing."""

    entries: Sequence[Entry]
    missing: Missing

    @staticmethod
    def of(view: View, stock: Stock) -> Found:
        """Finds the simulations of a view in the store."""
        there = stock.part(view.machine, view.build).by_run
        ordered = list(
            dict.fromkeys(
                run(settings, seed, view.transactions, threads, workload, design)
                for settings, seed, threads, workload, design in itertools.product(
                    view.set, view.seed, view.threads, view.workload, view.design
                )
            )
        )
        gone = [key for key in ordered if key not in there]
        names = [_label(key, view) for key in gone[:NAMED]]
        commands = _commands(gone, view, stock.folder)
        missing = Missing(len(gone), len(ordered), names, commands)
        return Found([there[key] for key in ordered if key in there], missing)


def _label(asked: Run, view: View) -> str:
    settings, seed, _, threads, workload, design = asked
    parts = [f"{design} on {workload}"]
    if threads is not None:
        parts[0] += f" ×{threads}"
    if len(view.seed) > 1:
        parts.append(f"seed {seed}")
    if settings and len(view.set) > 1:
        parts.append(settings)
    return ", ".join(parts)


def _commands(gone: Sequence[Run], view: View, store: Path) -> list[str]:
    """What makes the results that are missing: a command for each seed with each setting."""
    groups: dict[tuple[str, int | None], list[Run]] = {}
    for key in gone:
        groups.setdefault((key[0], key[1]), []).append(key)
    presets = {preset.name for preset in catalogue().machines}
    machine = view.machine if view.machine in presets else f"./{view.machine}"
    return [
        compare_command(
            {
                "designs": list(dict.fromkeys(design for *_, design in keys)),
                "workloads": list(dict.fromkeys(key[4] for key in keys)),
                "machine": machine,
                "threads": list(dict.fromkeys(key[3] for key in keys if key[3])) or None,
                "transactions": view.transactions or None,
                "seed": seed,
                "store": store,
            },
            settings=settings_of(settings),
            flags=["no-report"],
        )
        for (settings, seed), keys in groups.items()
    ]


def charted(view: View, found: Found, stock: Stock) -> Chart:
    """Returns the chart of the results.

    Raises:
        ConfigError: there are none, or they are not what the kind of plot needs.
    """
    records = varying(stock.records(found.entries))
    presets = {preset.name: preset for preset in catalogue().machines}
    preset = presets.get(view.machine)
    preferred = None if preset is None else preset.comparison.baseline
    comparison = Comparison(tuple(records), preferred)
    baseline: str | None = None
    if view.baseline not in ("", ABSOLUTE) or (not view.baseline and view.kind in RELATIVE):
        baseline = comparison.normalised(view.baseline or None).baseline
    return chart(view.kind, Asked(comparison, baseline, view.metric or None, view.over or None))


def encoded(drawn: Chart, view: View, form: str) -> bytes:
    """Returns a chart as one of `TYPES`."""
    if form == DATA:
        return table(drawn.rows).encode()
    with _DRAWING:
        return drawn.draw(view.look).encoded(form)


def tables_of(drawn: Chart) -> list[NumberTable]:
    """The numbers of a picture: a table for each panel, designs down."""
    panels: dict[str, dict[str, dict[str, Value]]] = {}
    unit = ""
    for row in drawn.rows:
        unit = str(row["unit"])
        place = row["workload"] if "workload" in row else row[_axis(row)]
        panel = panels.setdefault(str(row["panel"]), {})
        panel.setdefault(str(row["design"]), {})[str(place)] = row["value"]
    show = ratio if unit.startswith("multiples of") else scaled
    found = []
    for caption, designs in panels.items():
        columns = list(dict.fromkeys(name for cells in designs.values() for name in cells))
        rows = {
            design: [Cell(show(_number(cells.get(name)))) for name in columns]
            for design, cells in designs.items()
        }
        title = f"{caption}, {unit}" if caption else unit
        found.append(NumberTable(title, columns, rows))
    return found


def _axis(row: Mapping[str, Value]) -> str:
    """What the places of a line are called, which stand after the design."""
    names = list(row)
    return names[names.index("design") + 1]


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) else None
