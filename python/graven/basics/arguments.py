"""Arguments of the Python interface: each is checked, and messages call it what Python calls it.

Where an integer is taken, so is everything that stands for one (`numpy.int64`, for example); where
a text is taken, so is a member of an enumeration that has one.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from os import PathLike, fspath
from typing import Any, ParamSpec, TypeVar

from graven._engine import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

SEED_MAX = (1 << 64) - 1
FIRST_SEED_MAX = 1 << 62
SCHEDULES_MAX = 100_000_000
RECOVERIES_MAX = 1000
RECOVERY_DEPTH_MAX = 100
LIVES_MAX = 8
VIOLATIONS_MAX = 1000
MINIMISE_MAX = 1_000_000
"""Bounds that hold at the command line, too."""

COUNT_MAX = (1 << 63) - 1

CALLED = {"set": "settings", "sample": "every", "draw": "draws", "design-as": "variants"}
"""Python's names of arguments that have another name at the command line."""

_OPTION = re.compile(r"(?<![\w-])--(?P<name>[a-z][a-z-]*)(?P<colon>:?)")


def integer(name: str, value: object, least: int = 1, most: int = COUNT_MAX) -> int:
    """An integer in a range.

    Raises:
        ConfigError: it is something else.
    """
    allowed = f"{least} or more" if most == COUNT_MAX else f"from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}: {_shown(value)} is not an integer; {allowed}") from None
    if not least <= number <= most:
        raise ConfigError(f"{name}: {number} is not allowed; {allowed}")
    return number


def integer_or_none(name: str, value: object, least: int = 1, most: int = COUNT_MAX) -> int | None:
    """The same, or nothing."""
    return None if value is None else integer(name, value, least, most)


def seed(value: object) -> int:
    """A seed."""
    return integer("seed", value, 0, SEED_MAX)


SEEDS_MAX = 1000
"""Seeds of one comparison at most, by their number."""


def seeds(value: object, one: object) -> tuple[int, ...]:
    """Seeds: several, those from 1 to N if it is a number, or without them the one given.

    Raises:
        ConfigError: it is something else, there is none, or both are given.
    """
    if value is None:
        return (seed(one),)
    if one != 1:
        raise ConfigError("seeds: not beside `seed`; one of them says which")
    if isinstance(value, str) or not isinstance(value, Iterable):
        return tuple(range(1, integer("seeds", value, 1, SEEDS_MAX) + 1))
    found = tuple(integer("seeds", item, 0, SEED_MAX) for item in value)
    if len(set(found)) < len(found):
        raise ConfigError("seeds: one stands there twice; each is run once")
    if not found:
        raise ConfigError("seeds: the list is empty")
    return found


def flag(name: str, value: object) -> bool:
    """Something that is, or is not."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise ConfigError(f"{name}: {_shown(value)} is neither True nor False")


def text(name: str, value: object) -> str:
    """A text, such as a name.

    Raises:
        ConfigError: it is something else.
    """
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, str):
        raise ConfigError(f"{name}: {_shown(value)} is not a text")
    return str(value)


def text_or_none(name: str, value: object) -> str | None:
    """The same, or nothing."""
    return None if value is None else text(name, value)


def setting_text(value: object) -> str:
    """A value of a configuration key as the text that `--set` takes."""
    value = value.value if isinstance(value, Enum) else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def path(name: str, value: object) -> str:
    """A path.

    Raises:
        ConfigError: it is something else, or empty.
    """
    try:
        found = fspath(value)  # type: ignore[call-overload]
    except TypeError:
        raise ConfigError(f"{name}: {_shown(value)} is not a path") from None
    if not isinstance(found, str) or not found or "\0" in found:
        raise ConfigError(f"{name}: {_shown(value)} is not a path")
    return found


def path_or_none(name: str, value: object) -> str | None:
    """The same, or nothing."""
    return None if value is None else path(name, value)


def paths(name: str, value: object) -> list[str]:
    """Several paths; one alone is not several.

    Raises:
        ConfigError: it is something else, or there is none.
    """
    if isinstance(value, str | PathLike | bytes):
        raise ConfigError(f"{name}: {_shown(value)} is one path; give a list, [{_shown(value)}]")
    found = [path(name, item) for item in _items(name, value)]
    if not found:
        raise ConfigError(f"{name}: the list is empty")
    return found


def names(name: str, value: object) -> str | list[str] | None:
    """One name, several separated by commas, a list of them, or nothing.

    Raises:
        ConfigError: it is something else.
    """
    if value is None:
        return None
    if isinstance(value, str | Enum):
        return text(name, value)
    return [text(name, item) for item in _items(name, value)]


def counts(name: str, value: object) -> tuple[int, ...] | None:
    """One count, several, or nothing.

    Raises:
        ConfigError: it is something else, or there is none.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (integer(name, value),)
    found = tuple(dict.fromkeys(integer(name, item) for item in _items(name, value)))
    if not found:
        raise ConfigError(f"{name}: the list is empty")
    return found


def range_or_none(name: str, value: object) -> tuple[int, int] | None:
    """The first and the last of some numbers from 0 on, or nothing.

    Raises:
        ConfigError: it is something else.
    """
    if value is None:
        return None
    items = [] if isinstance(value, str) else _items(name, value)
    if len(items) != 2:
        raise ConfigError(f"{name}: {_shown(value)} is not (FIRST, LAST)")
    first, last = (integer(name, item, 0) for item in items)
    return first, last


def mapping(name: str, value: object) -> dict[str, Any]:
    """Values by name, or nothing.

    Raises:
        ConfigError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name}: {_shown(value)} is not a mapping")
    return {text(name, key): item for key, item in value.items()}


def function_or_none(name: str, value: object) -> None:
    """Something that can be called, or nothing.

    Raises:
        ConfigError: it is something else.
    """
    if value is not None and not callable(value):
        raise ConfigError(f"{name}: {_shown(value)} cannot be called")


LISTED_MAX = 60
"""Names that a message lists at most."""


def known(what: str, name: str, names: Iterable[str]) -> ConfigError:
    """An error that a name is not known, with those that it may be meant for.

    Raises:
        ConfigError: it is no text, even.
    """
    name = text(what, name)
    return ConfigError(f"{what}: unknown name `{name}`; {meant(name, names)}")


def meant(name: str, names: Iterable[str]) -> str:
    """Names that one may be meant for, or all that are known, as the end of a message."""
    import difflib

    names = list(names)
    if close := difflib.get_close_matches(name, names, 3):
        return f"did you mean {' or '.join(close)}?"
    more = ", …" if len(names) > LISTED_MAX else ""
    return f"known are {', '.join(names[:LISTED_MAX])}{more}"


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors call arguments what Python calls them, not the command line."""

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        with _pythons_names():
            return function(*given, **named)

    return called


@contextmanager
def _pythons_names() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        said = str(error)
        changed = _OPTION.sub(_python_name, said)
        if changed == said:
            raise
        raise ConfigError(changed) from None


def _python_name(option: re.Match[str]) -> str:
    name = option["name"]
    return CALLED.get(name, name.replace("-", "_")) + option["colon"]


def _items(name: str, value: object) -> list[object]:
    try:
        return list(value)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise ConfigError(f"{name}: {_shown(value)} is neither one nor a list") from None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
