"""The tables of docs/explanation/validation.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from .peers import TOLERANCES, MemoryPeer
from .ratio import Ratio

Rows: TypeAlias = dict[str, dict[str, Ratio]]
"""Quantities of traces or programs, by name."""

HEADINGS = {
    "cycles": "cycles",
    "read_mean": "mean latency of reads",
    "read_p99": "99th percentile",
}
"""Quantities of memory in the tables of one peer."""

QUANTITIES = {**HEADINGS, "row_hits": "row hits"}
"""Quantities in the table of all references."""

SHARES = (0.05, 0.1, 0.25)
"""Shares by which ratios differ, in the table of all references."""

COUNTS = {
    "l1_hits": "L1 hits",
    "l1_misses": "lines from the L2",
    "l2_misses": "lines from the LLC",
    "llc_misses": "lines from memory",
    "l2_writebacks": "dirty lines to the LLC",
    "llc_writebacks": "dirty lines to memory",
}
"""Quantities of ChampSim in the table of counts."""

APART = 0.01
"""Share by which a count must differ to be in that table."""


def references_markdown(compared: Sequence[tuple[MemoryPeer, Sequence[Ratio]]]) -> str:
    """Counts the runs of each reference that are near, and lists the others with their reasons."""
    counted: dict[tuple[str, str], list[Ratio]] = {}
    apart = []
    for peer, ratios in compared:
        for each in ratios:
            counted.setdefault((peer.title(each.run), each.quantity), []).append(each)
            if not _is_near(each):
                apart.append((peer.document["peer"]["name"], each))
    within = [f"within {share:.0%}" for share in SHARES]
    lines = [_line("reference", "quantity", "runs", *within), "|---" * 6 + "|"]
    for (title, quantity), ratios in counted.items():
        near = [sum(_differs(each) <= share for each in ratios) for share in SHARES]
        cells = [f"{one} ({one / len(ratios):.0%})" for one in near]
        lines.append(_line(title, QUANTITIES[quantity], len(ratios), *cells))
    listed = [_line("reference", "run", "quantity", "value", "reason"), "|---" * 5 + "|"]
    for name, each in apart:
        heading, reason = QUANTITIES[each.quantity], each.reason or ""
        listed.append(_line(name, each.run, heading, _cell(each), reason))
    return "\n\n".join(["\n".join(lines), "\n".join(listed)])


def _differs(ratio: Ratio) -> float:
    """Returns the share by which a quantity differs; few row hits differ only by chance."""
    by_chance = ratio.quantity == "row_hits" and _is_small(ratio)
    return 0.0 if by_chance else abs(ratio.value - 1)


def _is_near(ratio: Ratio) -> bool:
    """Returns True if a ratio needs no reason."""
    return _is_small(ratio) or abs(ratio.value - 1) <= TOLERANCES[ratio.quantity]


def _is_small(ratio: Ratio) -> bool:
    return ratio.few is not None and abs(ratio.ours - ratio.peer) <= ratio.few


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def champsim_markdown(ratios: Sequence[Ratio]) -> str:
    """Makes a table of the cycles of both core models, and one of the counts that differ."""
    cycles: Rows = {}
    cores: dict[str, str] = {}
    counts = ["| program | core | count | value |", "|---|---|---|---|"]
    for each in ratios:
        core, program = each.run.split("/")
        cores[core] = core
        if each.quantity == "cycles":
            cycles.setdefault(program, {})[core] = each
        elif abs(each.value - 1) > APART:
            cells = (program, core, COUNTS[each.quantity], _cell(each))
            counts.append(f"| {' | '.join(cells)} |")
    return "\n\n".join([_table("cycles", cores, cycles), "\n".join(counts)])


def markdown(ratios: Sequence[Ratio]) -> str:
    """Makes a table for each machine and scheduler: the peer's value, and Graven's over it.

    Rows of a machine's later scheduler that repeat those of an earlier one are left out.
    """
    groups: dict[str, Rows] = {}
    for each in ratios:
        group, _, trace = each.run.rpartition("/")
        groups.setdefault(group, {}).setdefault(trace, {})[each.quantity] = each
    shown: set[tuple[str, str]] = set()
    tables = []
    for group, rows in groups.items():
        machine = group.split("/")[0]
        new = {
            trace: of
            for trace, of in rows.items()
            if (machine, _row(HEADINGS, trace, of)) not in shown
        }
        shown.update((machine, _row(HEADINGS, trace, of)) for trace, of in new.items())
        tables.append(_table(group.replace("/", ", "), HEADINGS, new))
    return "\n\n".join(tables)


def _table(name: str, headings: Mapping[str, str], rows: Rows) -> str:
    """A row for each trace or program; a column for each quantity that some of them have."""
    shown = [each for each in headings if any(each in found for found in rows.values())]
    heading = " | ".join(headings[each] for each in shown)
    lines = [f"| {name} | {heading} |", "|---" * (len(shown) + 1) + "|"]
    return "\n".join([*lines, *(_row(shown, of, found) for of, found in rows.items())])


def _row(shown: Iterable[str], name: str, found: Mapping[str, Ratio]) -> str:
    """The row of a trace or program, with these quantities."""
    return f"| {name} | {' | '.join(_cell(found.get(each)) for each in shown)} |"


def _cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    value = f"{ratio.peer:,.0f}" if ratio.peer >= 100 else f"{ratio.peer:.3g}"
    if ratio.peer == 0:
        return f"0, {ratio.ours:g}"
    shown = f"{value}, {ratio.value:.2f}"
    return shown if 0.95 <= ratio.value <= 1.05 else f"{value}, **{ratio.value:.2f}**"
