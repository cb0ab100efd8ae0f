"""Facts and configuration of one simulation, as pages show them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from graven.basics.numbers import Value, exact
from graven.engine.catalogue import catalogue
from graven.results.record import Record


@dataclass(frozen=True)
class Setting:
    """A value of the configuration, with the parameter's unit and description.

    Attributes:
        key: `SECTION.KEY`.
        value: The value.
        default: The parameter's default; empty if the value is the default.
        unit: Unit of both.
        doc: Description of the parameter.
    """

    key: str
    value: str
    default: str
    unit: str
    doc: str


def facts_of(record: Record) -> dict[str, str]:
    """Returns the conditions of a simulation besides its design and workload."""
    return {
        "machine": record.machine,
        "threads": exact(record.threads),
        "transactions": exact(record.transactions),
        "seed": str(record.seed),
        **{key: exact(value) for key, value in record.varied.items()},
        "version": record.version,
    }


def configuration_of(record: Record) -> dict[str, list[Setting]]:
    """Returns the whole configuration by section."""
    return {
        section: [_setting(f"{section}.{key}", value) for key, value in values.items()]
        for section, values in record.config.items()
    }


def changed_of(record: Record) -> list[Setting]:
    """Returns the configuration that is not the default."""
    every = configuration_of(record).values()
    return [item for values in every for item in values if item.default]


def _setting(key: str, value: Value) -> Setting:
    parameter = catalogue().parameters.get(key)
    if parameter is None:
        return Setting(key, exact(value), "", "", "")
    default = _literal(parameter.default)
    usual = "" if default == value else exact(default)
    return Setting(key, exact(value), usual, parameter.unit, parameter.doc)


@cache
def _literal(text: str) -> Value:
    """Returns the value of a default, which is written as in a machine's file."""
    try:
        found: Value = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, int | float | str | bool | None) else text
