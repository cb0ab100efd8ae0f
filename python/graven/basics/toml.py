"""Reading tables of TOML: every key is known, and has the type that it must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graven._engine import ConfigError


class Table:
    """A table of a file, read key by key; what was not read is refused in the end."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.where = where

    def refusal(self, key: str, allowed: str) -> ConfigError:
        """Why a value is not taken."""
        value = self._values.get(key)
        return ConfigError(f"{self.where}: `{key}` = {value!r} is not allowed; {allowed}")

    def has(self, key: str) -> bool:
        """Whether the table says something about it."""
        return key in self._values

    def _take(self, key: str) -> Any:  # noqa: ANN401 - any TOML value
        self._known.append(key)
        return self._values.get(key)

    def any(self, key: str) -> Any:  # noqa: ANN401 - any TOML value
        """A value of any type; `None` if it is not there."""
        return self._take(key)

    def text(self, key: str) -> str:
        """A text that must be there."""
        found = self.optional_text(key)
        if found is None:
            raise self._missing(key)
        return found

    def optional_text(self, key: str) -> str | None:
        """A text."""
        value = self._take(key)
        if value is not None and not isinstance(value, str):
            raise self.refusal(key, "a text")
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of several words."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if value is None:
            raise self._missing(key)
        if value not in choices:
            raise self.refusal(key, f"one of {', '.join(choices)}")
        return str(value)

    def number(self, key: str) -> float | None:
        """A number."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(key, "a number")
        return float(value)

    def count(self, key: str) -> int | None:
        """A whole number, at least 1."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refusal(key, "a whole number, at least 1")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Yes or no."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refusal(key, "true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Several texts, at least one."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise self.refusal(key, "a list of at least one text")
        return tuple(value)

    def counts(self, key: str) -> tuple[int, ...] | None:
        """Several whole numbers."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(type(v) is int for v in value):
            raise self.refusal(key, "a list of at least one whole number")
        return tuple(value)

    def table(self, key: str) -> Table | None:
        """A table within this one."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refusal(key, "a table")
        return Table(value, f"{self.where}, {key}")

    def tables(self, key: str, name: str = "id") -> list[Table]:
        """Several tables, which say by `name` what they are called."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.refusal(key, f"tables, [[{key}]]")
        return [
            Table(item, f"{self.where}, {key} {item.get(name, number + 1)}")
            for number, item in enumerate(value)
        ]

    def items(self) -> list[tuple[str, Any]]:
        """All keys and values of a table whose keys are free."""
        self._known += self._values
        return list(self._values.items())

    def end(self) -> None:
        """Refuses what nobody has read."""
        unknown = [key for key in self._values if key not in self._known]
        if unknown:
            known = ", ".join(dict.fromkeys(self._known))
            raise ConfigError(f"{self.where}: unknown key `{unknown[0]}`; known are {known}")

    def _missing(self, key: str) -> ConfigError:
        return ConfigError(f"{self.where}: `{key}` is missing")
