"""The tables of docs/explanation/validation.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from . import champsim, dramsim
from .comparison import Run
from .ratio import Ratio

Rows: TypeAlias = dict[str, dict[str, Ratio[Any]]]
"""Quantities of traces or programs, by name."""

HEADINGS = {
    "cycles": "cycles",
    "read_mean": "mean latency of reads",
    "read_p99": "99th percentile",
    "row_hits": "row hits",
}


CHAMPSIM_HEADINGS = {
    "cycles": "cycles",
    "l1_hits": "L1 hits",
    "l1_misses": "lines from the L2",
    "l2_misses": "from the LLC",
    "llc_misses": "from memory",
    "l2_writebacks": "dirty lines to the LLC",
    "llc_writebacks": "to memory",
}


def champsim_markdown(ratios: Sequence[Ratio[champsim.Run]]) -> str:
    """One table for each core model: the peer's value, and Graven's over it."""
    cores: dict[str, Rows] = {}
    for each in ratios:
        rows = cores.setdefault(each.run.core, {})
        rows.setdefault(each.run.program, {})[each.quantity] = each
    return "\n\n".join(_table(core, CHAMPSIM_HEADINGS, rows) for core, rows in cores.items())


def markdown(ratios: Sequence[Ratio[Run]]) -> str:
    """One table for each machine and scheduler: the peer's value, and Graven's over it."""
    groups: dict[str, Rows] = {}
    for each in ratios:
        rows = groups.setdefault(f"{each.run.machine}, {each.run.scheduler}", {})
        rows.setdefault(each.run.trace, {})[each.quantity] = each
    return "\n\n".join(_table(name, HEADINGS, rows) for name, rows in groups.items())


def dramsim_markdown(ratios: Sequence[Ratio[dramsim.Run]]) -> str:
    """One table for each machine: the peer's value, and Graven's over it."""
    machines: dict[str, Rows] = {}
    for each in ratios:
        rows = machines.setdefault(each.run.machine, {})
        rows.setdefault(each.run.trace, {})[each.quantity] = each
    return "\n\n".join(_table(name, HEADINGS, rows) for name, rows in machines.items())


def _table(name: str, headings: Mapping[str, str], rows: Rows) -> str:
    """A row for each trace or program; a column for each quantity that some of them have."""
    shown = [each for each in headings if any(each in found for found in rows.values())]
    heading = " | ".join(headings[each] for each in shown)
    lines = [f"| {name} | {heading} |", "|---" * (len(shown) + 1) + "|"]
    for of, found in rows.items():
        cells = " | ".join(_cell(found.get(each)) for each in shown)
        lines.append(f"| {of} | {cells} |")
    return "\n".join(lines)


def _cell(ratio: Ratio[Any] | None) -> str:
    if ratio is None:
        return ""
    value = f"{ratio.peer:,.0f}" if ratio.peer >= 100 else f"{ratio.peer:.3g}"
    if ratio.peer == 0:
        return f"0, {ratio.ours:g}"
    shown = f"{value}, {ratio.value:.2f}"
    return shown if 0.95 <= ratio.value <= 1.05 else f"{value}, **{ratio.value:.2f}**"
