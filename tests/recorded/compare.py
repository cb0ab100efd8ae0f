"""Compares documents as parsed, and tells every place where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .store import Json

IDENTITIES = ("name", "key")
"""Keys that tell the items of a list from each other, where all of them have one."""

SHOWN_MAX = 300
"""Characters that are shown of an object or a list."""

ABSENT = "absent"


@dataclass(frozen=True)
class Difference:
    """One place where two documents differ.

    Attributes:
        place: Keys, and indices of lists or names of their items, between slashes.
        recorded: Text of what is expected in that place.
        now: Text of what stands there.
    """

    place: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, now {self.now}"


def _shown(value: Json) -> str:
    """Returns a value as JSON; of a large object or list, the beginning."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict | list) and len(text) > SHOWN_MAX:
        return f"{text[:SHOWN_MAX]}… ({len(text)} characters)"
    return text


def differences(recorded: Json, now: Json, place: str = "") -> Iterator[Difference]:
    """Yields all differences, in the order of what was recorded."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        yield from _objects(recorded, now, place)
    elif isinstance(recorded, list) and isinstance(now, list):
        yield from _lists(recorded, now, place)
    elif isinstance(recorded, bool) != isinstance(now, bool) or recorded != now:
        yield Difference(place, _shown(recorded), _shown(now))


def _objects(
    recorded: Mapping[str, Json], now: Mapping[str, Json], place: str
) -> Iterator[Difference]:
    for key in (*recorded, *(key for key in now if key not in recorded)):
        there = f"{place}/{key}" if place else key
        if key in recorded and key in now:
            yield from differences(recorded[key], now[key], there)
        else:
            texts = (_shown(side[key]) if key in side else ABSENT for side in (recorded, now))
            yield Difference(there, *texts)


def _lists(recorded: Sequence[Json], now: Sequence[Json], place: str) -> Iterator[Difference]:
    for identity in IDENTITIES:
        old, new = _by_name(recorded, identity), _by_name(now, identity)
        if old is not None and new is not None:
            yield from _objects(old, new, place)
            orders = [name for name in old if name in new], [name for name in new if name in old]
            if orders[0] != orders[1]:
                yield Difference(place, *(f"order {', '.join(names)}" for names in orders))
            return
    if len(recorded) != len(now):
        yield Difference(place, *(f"{len(items)} items" for items in (recorded, now)))
    for at, (one, other) in enumerate(zip(recorded, now, strict=False)):
        yield from differences(one, other, f"{place}/{at}" if place else str(at))


def _by_name(items: Sequence[Json], identity: str) -> dict[str, Json] | None:
    """Returns the items by their names, if all have names of their own."""
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    named = {item[identity]: item for item in items if isinstance(item.get(identity), str)}
    return named if len(named) == len(items) else None
