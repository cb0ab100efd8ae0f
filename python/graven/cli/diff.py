"""`graven diff`: in what two results differ, or two machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from graven._engine import ConfigError
from graven.api.loading import load, simulation_of
from graven.api.options import split_names
from graven.basics import output
from graven.basics.numbers import MISSING, Value, exact, ratio, scaled
from graven.cli import completions, options
from graven.cli.files import Writer
from graven.cli.stored import opened, stored
from graven.cli.tables import numbers, plain_table
from graven.cli.terminal import note, refusing, results_console
from graven.engine.machine import Machine
from graven.results.changes import Changes
from graven.results.comparison import Comparison, metrics_of
from graven.results.differences import Difference, of_configuration, of_identity, of_statistics
from graven.results.formats import json_text
from graven.results.record import Record, parse_record
from graven.running.job import Job
from graven.store.keeper import SIMULATION

HELP = """Show in what A and B differ: two results of simulations, two sets of them, two machines.

A and B are digests of results in the store (`graven results list`; the first digits do), or files
with one record as `graven run --format json` writes it, or machines: presets, or TOML files. Or
they are sets of results: files of several records that `graven compare` and `graven sweep` write
(.json, .csv, .parquet), or folders of stores. Of sets, what changed is shown simulation by
simulation, what changes most first, and --report writes it as a page.

\b
Examples:
  graven diff 3f9a 71c0                     configuration and statistics of two results
  graven diff 3f9a 71c0 --least 10          statistics that differ by 10 % or more
  graven diff before.json after.json
  graven diff silo lalea                    two machines, key by key
  graven diff silo mine.toml --format json
  graven diff before.csv after.csv --report changed.html
"""


@dataclass(frozen=True)
class Side:
    """One of two: a record, or a machine's configuration alone."""

    name: str
    config: Mapping[str, Mapping[str, Value]]
    record: Record | None = None


@click.command(cls=Writer, help=HELP)
@click.argument("left", metavar="A", shell_complete=completions.machine)
@click.argument("right", metavar="B", shell_complete=completions.machine)
@click.option(
    "--least",
    type=click.FloatRange(0, 100),
    default=0.0,
    show_default=True,
    metavar="PERCENT",
    help="Leave out statistics that differ by less, of the larger of the two; of sets of results "
    "they are in the means all the same.",
)
@options.written("--report", "Write what changed between two sets of results, as one HTML file.")
@options.metrics("five; only of two sets of results")
@options.store
@options.form("table", "json")
def diff(
    left: str,
    right: str,
    least: float,
    report: Path | None,
    metrics: str | None,
    folder: Path,
    form: str,
) -> int:
    """Finds both, and prints what is not the same."""
    sets = _set(left), _set(right)
    if sets[0] is not None and sets[1] is not None:
        chosen = metrics_of(None if metrics is None else split_names(metrics))
        found = Changes.of(sets[0], sets[1], chosen, least)
        return _show(found, (Path(left).name, Path(right).name), report, form)
    if sets != (None, None):
        kinds = ["none" if each is None else "a set of results" for each in sets]
        raise ConfigError(f"A is {kinds[0]} and B is {kinds[1]}; two of a kind are compared")
    if report is not None:
        raise click.UsageError("--report is of two sets of results; A and B are single ones")
    if metrics is not None:
        raise click.UsageError("--metrics is of two sets of results; A and B are single ones")
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


SHOWN_MOST = 20
"""Changes of each metric that the terminal shows, at most."""


def _set(given: str) -> Comparison | None:
    """Several results, if they are some."""
    path = Path(given)
    is_several = path.suffix in (".csv", ".parquet") or path.is_dir()
    if path.suffix == ".json":
        is_several = len(_documents(path)) != 1
    return load(path) if is_several else None


def _show(found: Changes, names: tuple[str, str], report: Path | None, form: str) -> int:
    """Prints what changed between two sets, and writes its page."""
    if not found.both:
        raise ConfigError("A and B have no simulation in common")
    if report is not None:
        from graven.drawing.pages.changes import render

        with refusing("--report: "):
            output.check([report], 0)
        output.write(report, render(found, names).encode())
        note(f"wrote {report}")
    if form == "json":
        sys.stdout.write(json_text(found.to_dict()))
        return 0
    console = results_console()
    console.print(f"{found.both:,} simulations are in both")
    for which, only in (("A", found.only_left), ("B", found.only_right)):
        if only:
            console.print(f"{len(only):,} only in {which}: {'; '.join(only[:3])}", markup=False)
    table = plain_table("", *numbers(*names, "B/A", "unit", "simulations"))
    table.add_row(Text("configuration", style="bold"))
    for item in found.configuration:
        one = item.difference
        part = "" if one.ratio is None else ratio(one.ratio)
        values = [Text(exact(value)) for value in (one.left, one.right)]
        table.add_row(f"  {one.name}", *values, part, one.unit, exact(item.simulations))
    if not found.configuration:
        table.add_row(f"  {MISSING}", "the same")
    for metric in found.metrics:
        table.add_row()
        title = f"{metric.title} ({metric.direction})"
        mean = ratio(found.mean(metric))
        table.add_row(Text(title, style="bold"), "", "", Text(mean, style="bold"), "mean", "")
        shown = found.shown(metric)
        for change in shown[:SHOWN_MOST]:
            values = [Text(scaled(value)) for value in (change.left, change.right)]
            table.add_row(f"  {change.simulation}", *values, ratio(change.factor), metric.unit, "")
        if not shown:
            alike = f"within {exact(found.least_percent)} %" if found.least_percent else "the same"
            table.add_row(f"  {MISSING}", alike)
        elif len(shown) > SHOWN_MOST:
            table.add_row(f"  and {len(shown) - SHOWN_MOST:,} more")
    console.print(table)
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


def _documents(path: Path) -> list[Any]:
    """The records in a file of JSON, as documents."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON document: {error}") from None
    return document if isinstance(document, list) else [document]


def _in_file(path: Path) -> Record:
    [document] = _documents(path)
    try:
        raw = {"config": {}, "version": "", **document}
        return parse_record(json.dumps(raw), raw["machine"])
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{path}: no record of a simulation ({error})") from None


def _print(console: Console, names: Sequence[str], parts: Mapping[str, list[Difference]]) -> None:
    table = plain_table("", *numbers(*names, "B/A"), "unit")
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
