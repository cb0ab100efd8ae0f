"""Compares documents as parsed, and tells every place where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .mapping import MayGo
from .store import Json

Steps = tuple[str, ...]
"""Where something is in a document: keys of objects, and indices or names of a list's items."""

IDENTITIES = ("name", "key")
"""What tells the items of a list from each other, where all of them have it."""


SHOWN_MAX = 300
"""Characters that are shown of an object or a list."""


@dataclass(frozen=True)
class Difference:
    """One place where two documents differ.

    Attributes:
        steps: Keys and indices that lead there; of a list with names, the names.
        recorded: What is expected there; none: nothing.
        now: What is there; none: nothing.
        what: What differs if it is not the value.
        is_new: Something is there that was not recorded.
        is_order: The order of named items differs, and nothing else of the list.
    """

    steps: Steps
    recorded: Json = None
    now: Json = None
    what: str = ""
    is_new: bool = False
    is_order: bool = False

    def __str__(self) -> str:
        what = self.what or f"recorded {_shown(self.recorded)}, now {_shown(self.now)}"
        return f"{'/'.join(self.steps)}: {what}"


def _shown(value: Json) -> str:
    """A value as JSON; of a large object or list, the beginning."""
    value = value.value if isinstance(value, MayGo) else value
    text = json.dumps(value, ensure_ascii=False, default=lambda may_go: may_go.value)
    if isinstance(value, dict | list) and len(text) > SHOWN_MAX:
        return f"{text[:SHOWN_MAX]}… ({len(text)} characters)"
    return text


def differences(recorded: Json, now: Json, steps: Steps = ()) -> Iterator[Difference]:
    """All differences, in the order of what was recorded."""
    if isinstance(recorded, MayGo):
        recorded = recorded.value
    if isinstance(recorded, dict) and isinstance(now, dict):
        yield from _objects(recorded, now, steps)
    elif isinstance(recorded, list) and isinstance(now, list):
        yield from _lists(recorded, now, steps)
    elif isinstance(recorded, bool) != isinstance(now, bool) or recorded != now:
        yield Difference(steps, recorded, now)


def _objects(
    recorded: Mapping[str, Json], now: Mapping[str, Json], steps: Steps
) -> Iterator[Difference]:
    for key, value in recorded.items():
        there = (*steps, key)
        if key in now:
            yield from differences(value, now[key], there)
        elif not isinstance(value, MayGo):
            yield Difference(there, what=f"recorded {_shown(value)}, now absent")
    for key, value in now.items():
        if key not in recorded:
            what = f"not recorded, now {_shown(value)}"
            yield Difference((*steps, key), what=what, is_new=True)


def _lists(recorded: Sequence[Json], now: Sequence[Json], steps: Steps) -> Iterator[Difference]:
    for identity in IDENTITIES:
        old, new = _by_name(recorded, identity), _by_name(now, identity)
        if old is not None and new is not None:
            yield from _objects(old, new, steps)
            if [name for name in old if name in new] != [name for name in new if name in old]:
                yield Difference(steps, what="the order differs", is_order=True)
            return
    if len(recorded) != len(now):
        yield Difference(steps, what=f"recorded {len(recorded)} items, now {len(now)}")
    for at, (one, other) in enumerate(zip(recorded, now, strict=False)):
        yield from differences(one, other, (*steps, str(at)))


def _by_name(items: Sequence[Json], identity: str) -> dict[str, Json] | None:
    """The items by their names, if all have names of their own."""
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    named = {item[identity]: item for item in items if isinstance(item.get(identity), str)}
    return named if len(named) == len(items) else None
