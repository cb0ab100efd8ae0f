"""Values of a paper's machine."""

from __future__ import annotations

from graven.catalogue import catalogue


def value(machine: str, key: str) -> object:
    """A value of a preset, as its file writes it; `None` if it has no such key."""
    preset = next(item for item in catalogue().machines if item.name == machine)
    return next((item.value for item in preset.values if item.key == key), None)


def same(found: object, expected: object) -> bool:
    """Whether two values are one, whether they are numbers or texts."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return float(found) == float(expected)
    return str(found) == str(expected)
