"""The reference: pages made of what commands, parameters, statistics and so on declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

import graven
from graven.basics import errors
from graven.basics.numbers import exact
from graven.cli.group import COMMANDS, cli
from graven.engine.catalogue import MachineValue, Named, Parameter, catalogue
from graven.laboratory.programs import own_programs


def pages() -> dict[str, str]:
    """Returns every page of the reference, by its path."""
    return {
        "reference/command-line.md": command_line(),
        "reference/python.md": python(),
        "reference/rust.md": rust(),
        "reference/designs.md": designs(),
        "reference/workloads.md": workloads(),
        "reference/machines.md": machines(),
        "reference/parameters.md": parameters(),
        "reference/statistics.md": statistics(),
        "reference/litmus.md": litmus(),
    }


def cell(text: object) -> str:
    """A text as a cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").strip()


def code(text: object) -> str:
    """A text as code in a cell of a table; nothing stays nothing."""
    return f"`{cell(text)}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing if it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) + "\n\n"


# ---- commands ----------------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its help, which is what `--help` prints."""
    parts = [
        "# Command line\n",
        "What `graven --help` and `graven COMMAND --help` print.\n",
        _help(cli, ["graven"]),
    ]
    for name in COMMANDS:
        _, command, _ = cli.resolve_command(click.Context(cli), [name])
        assert command is not None, "every command that is listed is there"
        parts += _of_command(command, ["graven", name])
    return "\n".join(parts)


def _of_command(command: click.Command, names: list[str]) -> list[str]:
    title = " ".join(names)
    parts = [f"{'#' * len(names)} {title}\n", _help(command, names)]
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            parts += _of_command(part, [*names, name])
    return parts


def _help(command: click.Command, names: Sequence[str]) -> str:
    context = click.Context(command, info_name=" ".join(names), max_content_width=100)
    context.terminal_width = 100
    return f"```text\n{command.get_help(context)}\n```\n"


# ---- Python ------------------------------------------------------------------------------------

KINDS: tuple[tuple[str, Callable[[object], bool]], ...] = (
    ("Functions", lambda item: callable(item) and not isinstance(item, type)),
    ("Classes", lambda item: isinstance(item, type) and not issubclass(item, BaseException)),
    ("Errors", lambda item: isinstance(item, type) and issubclass(item, BaseException)),
    ("Constants", lambda item: not callable(item)),
)


def python() -> str:
    """Every public name."""
    parts = ["# Python\n", "All names of the package `graven`.\n"]
    names = [name for name in graven.__all__ if not name.startswith("_")]
    for title, is_of in KINDS:
        parts.append(f"## {title}\n")
        for name in names:
            item = getattr(graven, name)
            if is_of(item):
                parts.append(f"::: {_path(name, item)}\n    options:\n      heading: {name}\n")
    return "\n".join(parts)


def _path(name: str, item: object) -> str:
    """Where a public name is documented."""
    if not callable(item):
        return f"graven.{graven._HOMES[name]}.{name}"
    # Errors are said to be the package's. They are documented where they are defined, those of the
    # native module in its stub.
    if item.__module__ == "graven":
        own = hasattr(errors, name)
        return f"graven.basics.errors.{name}" if own else f"graven._engine.{name}"
    return f"{item.__module__}.{name}"


RUST = "rust"
"""The folder of the site with the crates' documentation."""


def rust() -> str:
    """Lists the crates, with links to their documentation."""
    crates = (
        ("graven", "all designs, workloads and presets; what a design's crate depends on"),
        ("graven-base", "addresses, images of memory, codecs, configuration"),
        ("graven-machine", "the machine: interfaces of designs and workloads, simulations"),
        ("graven-designs", "the designs"),
        ("graven-workloads", "the workloads"),
        ("graven-trace", "program traces"),
        ("graven-lab", "the crash laboratory"),
        ("graven-python", "what makes a native module of designs and workloads"),
    )
    # Written out: these pages are not made of Markdown.
    rows = [
        (f'<a href="../{RUST}/{name.replace("-", "_")}/index.html"><code>{name}</code></a>', what)
        for name, what in crates
    ]
    return (
        "# Rust\n\n"
        "[Designs](../guides/designs.md) and [Workloads](../explanation/workloads.md) say what to "
        "implement; the documentation of every type is here, crate by crate.\n\n"
        + table(("crate", "what it has"), rows)
    )


# ---- the catalogue -----------------------------------------------------------------------------

GUARANTEES = {
    "none": "nothing",
    "prefix": "a prefix of the transactions in commit order is there",
    "durable": "every acknowledged transaction is there",
}


def designs() -> str:
    """Every design, with what it promises and what can be set."""
    parts = ["# Designs\n", "What `graven list designs --verbose` shows.\n"]
    for design in catalogue().designs:
        mark = "" if design.safe else " †"
        parts.append(f"## {design.name}{mark}\n")
        parts.append(f"{cell(design.summary)} ({cell(design.paper)})\n")
        parts.append(f"After a power failure: {GUARANTEES[design.guarantee]}.\n")
        if design.settings:
            parts.append(f"Stands for {', '.join(code(text) for text in design.settings)}.\n")
        parts.append(_parameters(design.parameters))
        parts.append(_named("mutant", design.mutants))
        parts.append(_named("state worth reaching", design.cover_points))
    parts.append("† loses committed data at a power failure: a reference, not a contender.\n")
    for alias in catalogue().aliases:
        parts.append(f"## {alias.name}\n\n{cell(alias.summary)} ({cell(alias.paper)})\n")
    return "\n".join(parts)


def _named(what: str, names: Sequence[Named]) -> str:
    return table((what, "meaning"), [(code(item.name), cell(item.summary)) for item in names])


def _parameters(declared: Sequence[Parameter]) -> str:
    rows = [
        (code(item.key), code(item.default), item.unit, cell(item.allowed), cell(item.doc))
        for item in declared
    ]
    return table(("key", "default", "unit", "allowed", "meaning"), rows)


def workloads() -> str:
    """Every workload."""
    parts = ["# Workloads\n", "What `graven list workloads --verbose` shows.\n"]
    for workload in catalogue().workloads:
        parts.append(f"## {workload.name}\n\n{cell(workload.summary)} Group: {workload.group}.\n")
        parts.append(_parameters(workload.parameters))
    return "\n".join(parts)


def machines() -> str:
    """Every value of every preset, with where it is from."""
    parts = ["# Machines\n", "What `graven list machines --verbose` shows.\n", _side_by_side()]
    for machine in catalogue().machines:
        parts.append(f"## {machine.name}\n\n{cell(machine.title)}\n")
        rows = []
        for value in machine.values:
            origin = value.source or "Graven's default"
            if value.assumed is not None:
                origin = f"assumed: {value.assumed}"
            rows.append((code(value.key), code(_shown(value)), value.unit, cell(origin)))
        parts.append(table(("key", "value", "unit", "where it is from"), rows))
    return "\n".join(parts)


def _shown(value: MachineValue) -> object:
    """A value as machine files have it."""
    return str(value.value).lower() if isinstance(value.value, bool) else value.value


def _side_by_side() -> str:
    """What the machines of papers set, one column for each."""

    def set_by_paper(value: MachineValue) -> str:
        if value.assumed is not None:
            return f"*{cell(_shown(value))}*"
        return cell(_shown(value)) if value.source is not None else ""

    papers = [machine for machine in catalogue().machines if machine.file.startswith("papers/")]
    rows = []
    for values in zip(*(machine.values for machine in papers), strict=True):
        cells = [set_by_paper(value) for value in values]
        if any(cells):
            rows.append((code(values[0].key), values[0].unit, *cells))
    return (
        "## Machines of papers side by side\n\n"
        "Assumed values are in italics. An empty cell stands for Graven's default.\n\n"
        + table(("key", "unit", *(machine.name for machine in papers)), rows)
    )


def parameters() -> str:
    """Lists every key of the machine's sections; pages of designs and workloads have theirs."""
    parts = [
        "# Parameters\n",
        "What `--set SECTION.KEY=VALUE` and machine files take. Those of a design are with the "
        "[design](designs.md), those of a workload with the [workload](workloads.md).\n",
    ]
    for section in catalogue().sections:
        parts.append(f"## {section.name}\n\n{cell(section.doc)}\n")
        parts.append(_parameters(section.parameters))
    return "\n".join(parts)


def statistics() -> str:
    """Every statistic, under its heading."""
    parts = [
        "# Statistics\n",
        "What `graven list stats` shows; [Statistics](../explanation/statistics.md) explains what "
        "they mean.\n",
    ]
    groups: dict[str, list[tuple[str, ...]]] = {}
    for item in catalogue().stats:
        of = "every one" if not item.designs else ", ".join(item.designs)
        row = (code(item.name), item.unit, item.kind, cell(item.description), cell(of))
        groups.setdefault(item.group, []).append(row)
    for title, rows in groups.items():
        parts.append(f"## {title}\n")
        parts.append(table(("statistic", "unit", "kind", "description", "of designs"), rows))
    return "\n".join(parts)


def litmus() -> str:
    """Every litmus program that comes with Graven, whole."""
    programs = own_programs()
    parts = [
        "# Litmus programs\n",
        f"The {exact(len(programs))} programs that `graven litmus all` runs; "
        "[the crash laboratory](../explanation/laboratory.md#litmus-programs) has their "
        "language.\n",
    ]
    for program in programs:
        parts.append(f"## {program.name}\n\n```text\n{program.text.rstrip()}\n```\n")
    return "\n".join(parts)
