"""Reading tables of TOML: every key is known, and has the type that it must have."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from graven._engine import ConfigError

T = TypeVar("T")


class Table:
    """A table of a file, read key by key; what was not read is refused in the end.

    Each method raises `ConfigError` if a value is not as it says; the message has the place, the
    value, and what is allowed.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.where = where

    def refusal(self, key: str, allowed: str) -> ConfigError:
        """Says that a value is not taken, and what is allowed."""
        value = self._values.get(key)
        return ConfigError(f"{self.where}: `{key}` = {value!r} is not allowed; {allowed}")

    def has(self, key: str) -> bool:
        """Tells whether the table has a key."""
        return key in self._values

    def any(self, key: str) -> Any:  # noqa: ANN401 - any TOML value
        """A value of any type; `None` without the key."""
        self._known.append(key)
        return self._values.get(key)

    def _checked(self, key: str, is_right: Callable[[Any], bool], allowed: str) -> Any:  # noqa: ANN401
        value = self.any(key)
        if value is not None and not is_right(value):
            raise self.refusal(key, allowed)
        return value

    def _needed(self, key: str, value: T | None) -> T:
        if value is None:
            raise ConfigError(f"{self.where}: `{key}` is missing")
        return value

    def text(self, key: str) -> str:
        """A text that must be there."""
        return self._needed(key, self.optional_text(key))

    def optional_text(self, key: str) -> str | None:
        """A text."""
        found: str | None = self._checked(key, lambda value: isinstance(value, str), "a text")
        return found

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of several words."""
        allowed = f"one of {', '.join(choices)}"
        found: str | None = self._checked(key, lambda value: value in choices, allowed)
        return self._needed(key, default if found is None else found)

    def number(self, key: str) -> float | None:
        """A number."""
        found = self._checked(key, lambda value: type(value) in (int, float), "a number")
        return None if found is None else float(found)

    def count(self, key: str, least: int = 1, most: int | None = None) -> int | None:
        """A whole number in a range."""
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        found: int | None = self._checked(
            key,
            lambda value: (
                type(value) is int and least <= value <= (value if most is None else most)
            ),
            f"a whole number, {allowed}",
        )
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """Yes or no."""
        found = self._checked(key, lambda value: isinstance(value, bool), "true or false")
        return default if found is None else bool(found)

    def _several(self, key: str, kind: type[T], what: str) -> tuple[T, ...] | None:
        found = self._checked(
            key,
            lambda items: (
                isinstance(items, list) and bool(items) and all(type(i) is kind for i in items)
            ),
            f"a list of at least one {what}",
        )
        return None if found is None else tuple(found)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Several texts, at least one."""
        return self._several(key, str, "text")

    def counts(self, key: str) -> tuple[int, ...] | None:
        """Several whole numbers."""
        return self._several(key, int, "whole number")

    def table(self, key: str) -> Table | None:
        """A table within this one."""
        found = self._checked(key, lambda value: isinstance(value, dict), "a table")
        return None if found is None else Table(found, f"{self.where}, {key}")

    def inner(self, key: str) -> Table:
        """A table within this one; an empty one without the key."""
        return self.table(key) or Table({}, f"{self.where}, {key}")

    def tables(self, key: str, name: str = "id") -> list[Table]:
        """Several tables, which say by `name` what they are called."""
        found = self._checked(
            key,
            lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value),
            f"tables, [[{key}]]",
        )
        return [
            Table(item, f"{self.where}, {key} {item.get(name, number)}")
            for number, item in enumerate(found or (), 1)
        ]

    def named(self, allowed: str = "a table") -> list[tuple[str, Table]]:
        """Tables of a table whose keys are names."""
        for name, value in self.items():
            if not isinstance(value, dict):
                raise self.refusal(name, allowed)
        return [(name, Table(value, f"{self.where}, {name}")) for name, value in self.items()]

    def settings(self, key: str = "set") -> tuple[tuple[str, str], ...]:
        """A table of configuration, by `SECTION.KEY`, with values as `--set` takes them."""
        found = self.table(key)
        if found is None:
            return ()
        return tuple((name, found.setting(name, value)) for name, value in found.items())

    def variations(self, key: str = "vary") -> dict[str, tuple[str, ...]] | None:
        """A table of configuration keys with several values each, each value once."""
        found = self.table(key)
        if found is None:
            return None
        varied = {}
        for name, values in found.items():
            if not isinstance(values, list) or not values:
                raise found.refusal(name, "a list of at least one value")
            varied[name] = tuple(found.setting(name, value) for value in values)
            found.check_each_once(name, varied[name])
        return varied

    def setting(self, key: str, value: object) -> str:
        """A value of a configuration key as `--set` takes it."""
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, str | int | float):
            raise self.refusal(key, "a text, a number, true or false")
        return str(value)

    def check_each_once(self, key: str, values: Sequence[Hashable]) -> None:
        """Refuses a list that has a value twice."""
        if len(set(values)) < len(values):
            raise self.refusal(key, "each value once")

    def items(self) -> list[tuple[str, Any]]:
        """All keys and values of a table whose keys are free."""
        self._known += self._values
        return list(self._values.items())

    def end(self) -> None:
        """Refuses a key that has not been read."""
        unknown = [key for key in self._values if key not in self._known]
        if unknown:
            known = ", ".join(dict.fromkeys(self._known))
            raise ConfigError(f"{self.where}: unknown key `{unknown[0]}`; known are {known}")
