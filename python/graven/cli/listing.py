"""`graven list`: everything that can be named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Column
from rich.text import Text

from graven.basics.numbers import exact
from graven.cli import options
from graven.cli.tables import UNSAFE_NOTE, grouped_table, marked, numbers, plain_table, whole
from graven.cli.terminal import results_console
from graven.engine.catalogue import Named, Parameter, catalogue
from graven.results.formats import json_text

HELP = """List designs, workloads, machines, statistics, parameters, and so on.

\b
LIST is designs, workloads, machines, stats, parameters, mutants, states,
draws, litmus, models or orders.

\b
Examples:
  graven list designs                 what can be compared, and from which paper
  graven list designs --verbose       with guarantee, mutants, cover_points and parameters of each
  graven list machines --verbose      every value, with its source or the reason it was assumed
  graven list parameters --verbose    every key that --set and machine files take, and its range
  graven list mutants                 what `graven crash --mutant` takes
  graven list states                  what a campaign of `graven crash` should reach
  graven list draws                   bounds of what `graven adversary` draws
  graven list litmus                  litmus programs that come with Graven
  graven list models --verbose        persistency models of processors, with their rules
  graven list orders --verbose        orders of stores that designs promise, with sources
  graven list stats --format json     for a script
"""


def _designs(console: Console, *, verbose: bool) -> None:
    known = catalogue()
    unsafe = known.unsafe_designs()
    table = plain_table(whole("design"), "paper", "what it does")
    for design in known.designs:
        table.add_row(marked(design.name, unsafe), Text(design.paper), Text(design.summary))
    for alias in known.aliases:
        table.add_row(marked(alias.name, unsafe), Text(alias.paper), Text(alias.summary))
    console.print(table)
    if unsafe:
        console.print(UNSAFE_NOTE)
    if verbose:
        orders = {order.name: f"{order.name}: {order.summary}" for order in known.orders}
        guarantees = _GUARANTEES | orders
        for design in known.designs:
            heading = Text(design.name, style="bold")
            guarantee = guarantees[design.guarantee]
            console.print(heading + Text(f" guarantees: {guarantee}", "not bold"))
            if design.settings:
                console.print(Text(f"Stands for {', '.join(design.settings)}"))
            _names(console, f"Mutants of {design.name}", design.mutants)
            _names(console, f"States of {design.name} worth reaching", design.cover_points)
            _parameters(console, Text(f"Parameters of {design.name}"), design.parameters)


_GUARANTEES = {
    "none": "nothing",
    "prefix": "after a power failure, the first transactions in commit order survive",
    "durable": "after a power failure, every acknowledged transaction survives",
}


def _names(console: Console, heading: str, names: Sequence[Named]) -> None:
    if not names:
        return
    console.print(heading, style="bold")
    table = plain_table(whole("name"), "meaning")
    for item in names:
        table.add_row(item.name, Text(item.summary))
    console.print(table)


def _mutants(console: Console, **_: bool) -> None:
    _grouped(console, "mutant", {item.name: item.mutants for item in catalogue().designs})


def _states(console: Console, **_: bool) -> None:
    known = catalogue()
    cover_points = {item.name: item.cover_points for item in known.designs}
    _grouped(console, "state", {"Any design": known.states} | cover_points)


def _grouped(console: Console, what: str, groups: Mapping[str, Sequence[Named]]) -> None:
    rows = {title: [(item.name, item.summary) for item in of] for title, of in groups.items() if of}
    console.print(grouped_table((what, "meaning"), rows))


def _workloads(console: Console, *, verbose: bool) -> None:
    table = plain_table(whole("workload"), whole("group"), "what it does")
    for workload in catalogue().workloads:
        table.add_row(workload.name, workload.group, Text(workload.summary))
    console.print(table)
    if verbose:
        for section, parameters in _sections_of_workloads().items():
            using = [w.name for w in catalogue().workloads if set(parameters) <= set(w.parameters)]
            everyone = len(using) == len(catalogue().workloads)
            heading = "all workloads" if everyone else ", ".join(using)
            _parameters(console, Text(f"Parameters of {heading}: {section}"), parameters)


def _sections_of_workloads() -> dict[str, tuple[Parameter, ...]]:
    """The parameters of workloads by section, in the order in which workloads need them."""
    found: dict[str, dict[Parameter, None]] = {}
    for workload in catalogue().workloads:
        for parameter in workload.parameters:
            section = parameter.key.partition(".")[0]
            found.setdefault(section, {})[parameter] = None
    return {section: tuple(parameters) for section, parameters in found.items()}


def _machines(console: Console, *, verbose: bool) -> None:
    table = plain_table(whole("machine"), "what it is", "file")
    for machine in catalogue().machines:
        table.add_row(machine.name, Text(machine.title), Text(machine.file))
    console.print(table)
    table = plain_table(whole("part"), "DRAM that machines extend", "file")
    for part in catalogue().parts:
        table.add_row(part.name, Text(part.title), Text(part.file))
    console.print(table)
    for machine in catalogue().machines:
        lines = machine.comparison.lines()
        if lines:
            console.print(f"Compared on {machine.name} by default:", style="bold")
            console.print(Text("\n".join(f"  {line}" for line in lines)))
    if not verbose:
        return
    for said in (*catalogue().machines, *catalogue().parts):
        console.print(f"{said.name} ({said.file})", style="bold")
        value_column = Column("value", justify="right", no_wrap=True)
        values = plain_table(whole("key"), value_column, whole("unit"), "where it is from")
        for value in said.values:
            origin = Text(value.source or "", style="green")
            if value.assumed is not None:
                origin = Text(f"assumed: {value.assumed}", style="yellow")
            elif value.source is None:
                origin = Text("Graven's default", style="dim")
            values.add_row(value.key, Text(_toml(value.value)), value.unit, origin)
        console.print(values)


def _stats(console: Console, *, verbose: bool) -> None:
    groups: dict[str, list[list[str]]] = {}
    for item in catalogue().stats:
        kind = [item.kind] if verbose else []
        row = [item.name, item.unit, *kind, item.description]
        groups.setdefault(item.group, []).append(row)
    names = ["statistic", "unit", *(["kind"] if verbose else []), "description"]
    console.print(grouped_table(names, groups))


def _sections(console: Console, *, verbose: bool) -> None:
    for section in catalogue().sections:
        heading = Text(f"[{section.name}]") + Text(f"  {section.doc}", style="not bold")
        _parameters(console, heading, section.parameters, with_allowed=verbose)


def _parameters(
    console: Console, heading: Text, parameters: Sequence[Parameter], *, with_allowed: bool = True
) -> None:
    if not parameters:
        return
    console.print(heading, style="bold")
    default = Column("default", justify="right", no_wrap=True)
    columns = [*(["allowed"] if with_allowed else []), "meaning"]
    table = plain_table(whole("key"), default, whole("unit"), *columns)
    for item in parameters:
        allowed = [item.allowed] if with_allowed else []
        texts = (item.key, item.default, item.unit, *allowed, item.doc)
        table.add_row(*(Text(text) for text in texts))
    console.print(table)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _draws(console: Console, *, verbose: bool) -> None:
    del verbose
    table = plain_table(
        whole("bound"), *numbers("default"), "allowed", "of what the adversary draws"
    )
    for draw in catalogue().draws:
        allowed = f"{exact(draw.least)} to {exact(draw.most)}"
        table.add_row(draw.name, exact(draw.default), allowed, Text(draw.summary))
    console.print(table)


def _models(console: Console, *, verbose: bool) -> None:
    table = plain_table(whole("model"), "platform", "source")
    for model in catalogue().models:
        table.add_row(model.name, Text(model.summary), Text(model.source))
    console.print(table)
    for model in catalogue().models if verbose else ():
        console.print(f"Order of a thread's steps under {model.name}", style="bold")
        rules = plain_table(whole("rule"), "in a sentence", "source")
        for rule in model.rules:
            rules.add_row(rule.name, Text(rule.sentence), Text(rule.source))
        console.print(rules)


def _litmus_programs() -> list[dict[str, Any]]:
    from graven.laboratory.programs import own_programs

    return [
        {"name": program.name, "title": program.title, "designs": program.designs}
        | ({"models": program.models} if program.models else {})
        for program in own_programs()
    ]


def _litmus(console: Console, **_: bool) -> None:
    programs = _litmus_programs()
    groups: dict[str, list[tuple[str, str]]] = {}
    for program in programs:
        groups.setdefault(program["name"].partition("/")[0], []).append(
            (program["name"], program["title"])
        )
    console.print(grouped_table(("program", "what it asks"), groups))


def _orders(console: Console, *, verbose: bool) -> None:
    table = plain_table(whole("order"), "what survives", *(["source"] if verbose else []))
    for order in catalogue().orders:
        table.add_row(order.name, order.summary, *([Text(order.source)] if verbose else []))
    console.print(table)


_LISTS: dict[str, Callable[..., None]] = {
    "designs": _designs,
    "workloads": _workloads,
    "machines": _machines,
    "stats": _stats,
    "parameters": _sections,
    "mutants": _mutants,
    "states": _states,
    "draws": _draws,
    "litmus": _litmus,
    "models": _models,
    "orders": _orders,
}


_COMPLETED = {"machines": "values", "workloads": "parameters"}
"""Of what in these lists the engine says a part elsewhere, once for all entries."""


def _document(what: str) -> object:
    raw = catalogue().raw
    if what == "litmus":
        return _litmus_programs()
    if what in _COMPLETED:
        part, named = _COMPLETED[what], getattr(catalogue(), what)
        return [
            {**said, part: [asdict(one) for one in getattr(item, part)]}
            for said, item in zip(raw[what], named, strict=True)
        ]
    if what == "mutants":
        return _of_designs("mutants")
    if what == "states":
        return [{"design": None, **state} for state in raw["states"]] + _of_designs("cover_points")
    return raw["sections" if what == "parameters" else what]


def _of_designs(key: str) -> list[dict[str, Any]]:
    designs = catalogue().raw["designs"]
    return [{"design": design["name"], **item} for design in designs for item in design[key]]


@click.command("list", help=HELP)
@click.argument("what", metavar="LIST", type=click.Choice(list(_LISTS)))
@click.option("--verbose", "-v", is_flag=True, help="With parameters, sources and assumptions.")
@options.form("table", "json")
def list_(what: str, verbose: bool, form: str) -> int:
    """Prints one part of the catalogue."""
    if form == "json":
        sys.stdout.write(json_text(_document(what)))
    else:
        _LISTS[what](results_console(), verbose=verbose)
    return 0
