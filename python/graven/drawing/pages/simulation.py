"""What a page shows of one simulation: what was run, what is not as usual, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from graven.basics.numbers import Value, exact
from graven.engine.catalogue import Statistic, catalogue
from graven.results.headings import Headings
from graven.results.record import Record


@dataclass(frozen=True)
class Shown:
    """A statistic and its value, as a page has it."""

    name: str
    value: str
    unit: str
    description: str


@dataclass(frozen=True)
class Changed:
    """A value of the configuration, beside the default.

    Attributes:
        key: `SECTION.KEY`.
        value: What it was.
        default: What it is where nothing says otherwise; empty if it was that.
        unit: Of both.
        doc: What it is.
    """

    key: str
    value: str
    default: str
    unit: str
    doc: str


@dataclass(frozen=True)
class SimulationPage:
    """One simulation.

    Attributes:
        title: What was run.
        facts: The rest of what identifies it, by name.
        groups: Statistics under their headings.
        left_out: How many statistics are in none: they are zero, or of single cores and banks.
        changed: Configuration that is not the default.
        configuration: All of it, by section.
    """

    title: str
    facts: Mapping[str, str]
    groups: Mapping[str, Sequence[Shown]]
    left_out: int
    changed: Sequence[Changed]
    configuration: Mapping[str, Sequence[Changed]]


def simulation_page(record: Record, *, every: bool = False) -> SimulationPage:
    """What a page shows of a simulation.

    Args:
        record: Its record.
        every: Whether with statistics that are zero, and those of single cores and banks.
    """
    headings = Headings.of(record.stats, design=record.simulated, every=every)
    configuration = {
        section: [_changed(f"{section}.{key}", value) for key, value in values.items()]
        for section, values in record.config.items()
    }
    return SimulationPage(
        f"{record.design} on {record.workload}",
        facts_of(record),
        {
            title: [shown(item, value) for item, value in rows]
            for title, rows in headings.groups.items()
        },
        headings.left_out,
        changed_of(record),
        configuration,
    )


def facts_of(record: Record) -> dict[str, str]:
    """What identifies a simulation besides its design and workload."""
    return {
        "machine": record.machine,
        "threads": exact(record.threads),
        "transactions": exact(record.transactions),
        "seed": str(record.seed),
        **{key: exact(value) for key, value in record.varied.items()},
        "version": record.version,
    }


def shown(item: Statistic, value: Value) -> Shown:
    """A statistic as a page has it."""
    return Shown(item.name, exact(value), item.unit, item.description)


def changed_of(record: Record) -> list[Changed]:
    """Configuration that is not the default."""
    every = (
        _changed(f"{section}.{key}", value)
        for section, values in record.config.items()
        for key, value in values.items()
    )
    return [item for item in every if item.default]


def _changed(key: str, value: Value) -> Changed:
    parameter = catalogue().parameters.get(key)
    if parameter is None:
        return Changed(key, exact(value), "", "", "")
    default = _literal(parameter.default)
    usual = "" if default == value else exact(default)
    return Changed(key, exact(value), usual, parameter.unit, parameter.doc)


@cache
def _literal(text: str) -> Value:
    """The value that a default stands for, which is written as in a machine's file."""
    try:
        found: Value = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, int | float | str | bool | None) else text
