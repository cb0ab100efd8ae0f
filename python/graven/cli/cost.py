"""`graven cost`: what designs cost in hardware."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click
from rich.console import Console

from graven.api.options import design_names
from graven.basics.numbers import MISSING, exact
from graven.cli import options
from graven.cli.tables import UNSAFE_NOTE, grouped_table, marked, plain_table, whole
from graven.cli.terminal import results_console
from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.results.costs import Cost, Item, derive, places, to_csv
from graven.results.formats import json_text

HELP = """Derive what the hardware of designs costs, beside what their papers print.

Every value has its formula, in terms of configured parameters. Where a paper prints a number for
the same, a verdict says whether it is what the parameters give; notes say why not.

\b
Examples:
  graven cost silo                            Tables I and IV of its paper
  graven cost silo --set silo.log_buffer_entries=40
  graven cost morlog,fwb --machine morlog     several, and their totals side by side
  graven cost lalea --verbose                 with what every item is
  graven cost hoop --format json
"""

ROLES = {
    "optional": "not in this configuration",
    "derived": "parts, and what follows",
    "reference": "for comparison",
}
"""Headings of what a design does not add by itself."""

COLUMNS = ("item", "value", "for each", "paper", "verdict", "formula")


@click.command(help=HELP)
@options.designs_argument("DESIGN...|all")
@options.optional_machine("that of each design's paper")
@options.settings
@click.option("--verbose", "-v", is_flag=True, help="With what every item is, and its claim.")
@options.form("table", "json", "csv")
def cost(
    designs: str, machine: str | None, settings: dict[str, str], verbose: bool, form: str
) -> int:
    """Derives everything, prints."""
    where = None if machine is None else Machine.find(machine)
    costs = [derive(name, where, settings) for name in design_names(designs)]
    if form == "json":
        sys.stdout.write(json_text([cost.to_dict() for cost in costs]))
    elif form == "csv":
        sys.stdout.write(to_csv(costs))
    else:
        _print(results_console(), costs, machine, verbose=verbose)
    return 0


def _print(console: Console, costs: Sequence[Cost], machine: str | None, *, verbose: bool) -> None:
    unsafe = {design.name for design in catalogue().designs if not design.safe}
    for cost in costs:
        where = "" if machine is not None else ", that of its paper"
        console.print(
            f"[bold]{marked(cost.design, unsafe)}[/] on machine [bold]{cost.machine}[/]{where}"
        )
        if cost.items:
            _print_items(console, cost, verbose=verbose)
        for remark in cost.remarks:
            console.print(remark, markup=False)
        console.print()
    if len(costs) > 1 and places(costs):
        _print_totals(console, costs, unsafe)
    if unsafe & {cost.design for cost in costs}:
        console.print(UNSAFE_NOTE)


def _print_items(console: Console, cost: Cost, *, verbose: bool) -> None:
    notes: dict[str, list[str]] = {}
    groups: dict[str, list[list[str]]] = {}
    built = [item for item in cost.items if item.role == "built"]
    order = [*(item.place for item in built), *ROLES.values()]
    for title in dict.fromkeys(order):
        of_title = [item for item in cost.items if _title(item) == title]
        if of_title:
            groups[title] = [_row(item, notes, verbose=verbose) for item in of_title]
    console.print(grouped_table(COLUMNS, groups, right=("value", "paper")))
    added = places([cost])
    if added:
        totals = ", ".join(f"{place} {exact(cost.totals[place])} B" for place in added)
        console.print(f"together: {totals}", markup=False, soft_wrap=True)
    for number, (text, names) in enumerate(notes.items(), 1):
        console.print(f"[{number}] {', '.join(names)}: {text}", markup=False)


def _title(item: Item) -> str:
    return ROLES.get(item.role, item.place)


def _row(item: Item, notes: dict[str, list[str]], *, verbose: bool) -> list[str]:
    paper, verdict = "", ""
    if item.printed is not None:
        paper = f"{item.printed.text} ({item.printed.paper} {item.printed.at})"
        verdict = item.printed.verdict.replace("-", " ")
    if item.note:
        notes.setdefault(item.note, []).append(item.name)
        verdict = f"{verdict} [{list(notes).index(item.note) + 1}]".strip()
    each = "" if item.per is None else f"{item.per.each} ({exact(item.per.count)})"
    shown = [item.name, f"{exact(item.value)} {item.unit}", each, paper, verdict]
    return [*shown, "\n".join(_formula(item, verbose=verbose))]


def _formula(item: Item, *, verbose: bool) -> Iterable[str]:
    if verbose:
        yield f"{item.what} ({item.claim})" if item.claim else item.what
    same = item.formula in (item.numbers, "reported")
    yield item.formula if same else f"{item.formula} = {item.numbers}"


def _print_totals(console: Console, costs: Sequence[Cost], unsafe: set[str]) -> None:
    console.print("Bytes that designs add, by place", style="bold")
    table = plain_table(whole("place"))
    for cost in costs:
        table.add_column(marked(cost.design, unsafe), justify="right", no_wrap=True)
    for place in places(costs):
        sizes = (cost.totals.get(place) for cost in costs)
        table.add_row(place, *(exact(size) if size else MISSING for size in sizes))
    console.print(table)
