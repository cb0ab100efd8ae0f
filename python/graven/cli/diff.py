"""`graven diff`: in what two results differ, or two machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from graven._engine import ConfigError
from graven.cli import completions, options
from graven.cli.stored import opened, stored
from graven.cli.tables import plain_table
from graven.cli.terminal import results_console
from graven.differences import Difference, of_configuration, of_identity, of_statistics
from graven.experiment import Job
from graven.figures import MISSING, exact, ratio
from graven.loading import simulation_of
from graven.machine import Machine
from graven.records import Record, Value, json_text, parse_record
from graven.store.keeping import SIMULATION

HELP = """Show in what A and B differ: two results of simulations, or two machines.

A and B are digests of results in the store (`graven results list`; the first digits do), or files
with one record as `graven run --format json` writes it, or machines: presets, or TOML files.

\b
Examples:
  graven diff 3f9a 71c0                     configuration and statistics of two results
  graven diff 3f9a 71c0 --least 10          statistics that differ by 10 % or more
  graven diff before.json after.json
  graven diff silo lalea                    two machines, key by key
  graven diff silo mine.toml --format json
"""


@dataclass(frozen=True)
class Side:
    """One of two: a record, or a machine's configuration alone."""

    name: str
    config: Mapping[str, Mapping[str, Value]]
    record: Record | None = None


@click.command(help=HELP)
@click.argument("left", metavar="A", shell_complete=completions.machine)
@click.argument("right", metavar="B", shell_complete=completions.machine)
@click.option(
    "--least",
    type=click.FloatRange(0, 100),
    default=0.0,
    show_default=True,
    metavar="PERCENT",
    help="Leave out statistics that differ by less, of the larger of the two.",
)
@options.store
@options.form("table", "json")
def diff(left: str, right: str, least: float, folder: Path, form: str) -> int:
    """Finds both, and prints what is not the same."""
    sides = _found(left, folder), _found(right, folder)
    if (sides[0].record is None) != (sides[1].record is None):
        kinds = ["a machine" if side.record is None else "a result" for side in sides]
        raise ConfigError(f"A is {kinds[0]} and B is {kinds[1]}; two of a kind are compared")
    parts: dict[str, list[Difference]] = {}
    one, other = sides[0].record, sides[1].record
    if one is not None and other is not None:
        parts["run"] = of_identity(one, other)
    parts["configuration"] = of_configuration(sides[0].config, sides[1].config)
    if one is not None and other is not None:
        parts["statistics"] = of_statistics(one.stats, other.stats, least_percent=least)
    if form == "json":
        document = {name: [item.to_dict() for item in items] for name, items in parts.items()}
        sys.stdout.write(json_text(document))
    else:
        _print(results_console(), [side.name for side in sides], parts)
    return 0


def _found(given: str, folder: Path) -> Side:
    path = Path(given)
    if path.suffix == ".json":
        record = _in_file(path)
        return Side(path.name, record.config, record)
    if _is_digest(given):
        found = stored(opened(folder), given)
        if found.request.kind != SIMULATION:
            raise ConfigError(f"{given} is a result of another kind: {found.request.kind}")
        record = simulation_of(found)
        return Side(given[:12], record.config, record)
    machine = Machine.find(given)
    # A simulation of next to nothing says every value of its machine, the defaults included.
    job = Job("ideal", "array", machine, threads=1, transactions=1)
    return Side(machine.name, parse_record(job.simulation().run(), machine.name).config)


def _is_digest(given: str) -> bool:
    return len(given) >= 4 and all(letter in "0123456789abcdef" for letter in given)


def _in_file(path: Path) -> Record:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON document: {error}") from None
    records = document if isinstance(document, list) else [document]
    if len(records) != 1:
        raise ConfigError(f"{path} has {len(records)} records; one is compared with one")
    try:
        raw = {"config": {}, "version": "", **records[0]}
        return parse_record(json.dumps(raw), raw["machine"])
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{path}: no record of a simulation ({error})") from None


def _print(console: Console, names: Sequence[str], parts: Mapping[str, list[Difference]]) -> None:
    table = plain_table()
    table.add_column("")
    for name in names:
        table.add_column(Text(name), justify="right")
    table.add_column("B/A", justify="right")
    table.add_column("unit")
    for title, items in parts.items():
        table.add_row(Text(title, style="bold"))
        for item in items:
            values = [exact(value) for value in (item.left, item.right)]
            part = "" if item.ratio is None else ratio(item.ratio)
            table.add_row(f"  {item.name}", *map(Text, values), part, item.unit)
        if not items:
            table.add_row(f"  {MISSING}", "the same", "", "", "")
        table.add_row()
    console.print(table)
