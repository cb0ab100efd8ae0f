"""Contents of a store: a line for each result, kept up as writers add some."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from graven.api.loading import set_in, simulation_of
from graven.results.record import Record
from graven.running.job import is_trace
from graven.store import Store, StoredRecord
from graven.store.keeper import SIMULATION, build
from graven.store.store import REFRESH_SECONDS, Warn

CACHED = 1024
"""Number of records that are held once they have been read: a record is 60 KB."""


class Entry(NamedTuple):
    """A row of the store's index: a result, without what came of it.

    Fields that its kind does not have are `None`. `settings` is text, as
    `pm.write_ns=300; pm.read_ns=50`; `written_at` is UTC, ISO 8601; `host_s` is in seconds.
    """

    digest: str
    kind: str
    design: str | None
    workload: str | None
    machine: str | None
    threads: int | None
    transactions: int | None
    seed: int | None
    settings: str
    version: str | None
    build: str | None
    written_at: str
    host_s: float | None


Run: TypeAlias = tuple[str, int | None, int | None, int | None, str | None, str | None]
"""Settings, seed, transactions, threads, workload, design. A trace has its own of the third and the
fourth, which are left out."""


def run_of(entry: Entry) -> Run:
    """Returns what a result is of, besides the machine and the build."""
    size = (entry.transactions, entry.threads)
    return run(entry.settings, entry.seed, *size, entry.workload, entry.design)


def run(
    settings: str,
    seed: int | None,
    transactions: int | None,
    threads: int | None,
    workload: str | None,
    design: str | None,
) -> Run:
    """The same of what is asked for."""
    if is_trace(workload or ""):
        return settings, seed, None, None, workload, design
    return settings, seed, transactions, threads, workload, design


_COLUMNS = ", ".join(Entry._fields)

_NEWEST = attrgetter("written_at", "digest")


def _entry(row: Sequence[Any]) -> Entry:
    """A result as a row of the index has it."""
    return Entry._make((*row[:7], _integer(row[7]), _settings_text(row[8]), *row[9:]))


def _integer(seed: object) -> int | None:
    """A seed, which the index has as text if it is very large."""
    return None if seed is None else int(str(seed))


@lru_cache(1 << 12)
def _settings_text(document: str | None) -> str:
    return settings_text(json.loads(document or "{}"))


def narrowed(entries: Iterable[Entry], **wanted: object) -> list[Entry]:
    """The results that have these values, in the same order."""
    found = list(entries)
    for name, value in wanted.items():
        at = Entry._fields.index(name)
        found = [entry for entry in found if entry[at] == value]
    return found


class Part:
    """Some of the results.

    Attributes:
        entries: The results, the newest first.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self._counts: dict[str, Mapping[object, int]] = {}

    def counts(self, name: str) -> Mapping[object, int]:
        """Counts the results by the values of a field, in the order of the values."""
        if name not in self._counts:
            self._counts[name] = counts(self.entries, name)
        return self._counts[name]

    @cached_property
    def by_run(self) -> Mapping[Run, Entry]:
        """The results by what was run."""
        return {run_of(entry): entry for entry in reversed(self.entries)}


class Stock:
    """The results of a store; it is looked at anew when a second has gone by.

    Attributes:
        folder: Where the store is.
        every: Its results.
        simulations: Those of them that are simulations.
    """

    def __init__(self, folder: Path, warn: Warn | None = None) -> None:
        """Reads what is there.

        Raises:
            StoreError: the folder is something else, or of a schema that is not known.
        """
        self.folder = folder
        self.every = Part(())
        self.simulations = Part(())
        self._parts: dict[tuple[str, str], Part] = {}
        self._store = Store(folder, warn, read_only=True)
        self._lock = threading.Lock()
        self._looked = -REFRESH_SECONDS
        self._seen: dict[str, Entry] = {}
        self._rows, self._last = 0, 0
        self._record = lru_cache(CACHED)(self._read)
        self.refresh()

    @property
    def is_there(self) -> bool:
        """True if the folder has a store."""
        return self._store.is_there

    def refresh(self) -> None:
        """Looks for what has been added, if it has not just been done."""
        with self._lock:
            if time.monotonic() - self._looked < REFRESH_SECONDS:
                return
            self._store.refresh()
            self._looked = time.monotonic()
            if self._store.is_there:
                self._follow()

    def _follow(self) -> None:
        ask = self._store.index.ask
        [(rows, last)] = ask("SELECT count(*), coalesce(max(rowid), 0) FROM records")
        if (rows, last) == (self._rows, self._last):
            return
        new = ask(f"SELECT {_COLUMNS} FROM records WHERE rowid > ? ORDER BY rowid", [self._last])
        if self._rows + len(new) != rows:
            # Segments have been put together, or records were damaged: nothing is where it was.
            self._seen = {}
            new = ask(f"SELECT {_COLUMNS} FROM records ORDER BY rowid")
        for row in new:
            if row[0] not in self._seen:
                self._seen[row[0]] = _entry(row)
        self.every = Part(sorted(self._seen.values(), key=_NEWEST, reverse=True))
        self.simulations = Part(narrowed(self.every.entries, kind=SIMULATION))
        self._parts = {}
        self._rows, self._last = rows, last

    def part(self, machine: str, build: str) -> Part:
        """The simulations of a machine that a build of the engine made."""
        parts = self._parts
        if (machine, build) not in parts:
            entries = narrowed(self.simulations.entries, machine=machine, build=build)
            parts[machine, build] = Part(entries)
        return parts[machine, build]

    def entry(self, digest: str) -> Entry | None:
        """Returns a result, if the store has it."""
        return self._seen.get(digest)

    def stored(self, digest: str) -> StoredRecord | None:
        """Returns a whole result, if the store has it."""
        return self._store.record(digest)

    def records(self, entries: Iterable[Entry]) -> list[Record]:
        """The records of simulations; what was set is what varies in them (`loading.varying`)."""
        found = (self._record(entry.digest) for entry in entries)
        return [record for record in found if record is not None]

    def _read(self, digest: str) -> Record | None:
        stored = self._store.record(digest)
        if stored is None:
            return None
        return replace(simulation_of(stored), varied=set_in(stored))

    def close(self) -> None:
        """Closes the store."""
        self._store.close()


def counts(entries: Iterable[Entry], name: str) -> dict[object, int]:
    """Counts results by the values of a field, in the order of the values."""
    at = Entry._fields.index(name)
    found = Counter(entry[at] for entry in entries if entry[at] is not None)
    return dict(sorted(found.items(), key=_order))


def _order(item: tuple[object, int]) -> tuple[bool, float, str]:
    value = item[0]
    if isinstance(value, int):
        return False, value, ""
    return True, 0.0, str(value)


def settings_text(settings: dict[str, str]) -> str:
    """Settings in one line."""
    return "; ".join(f"{key}={value}" for key, value in sorted(settings.items()))


def settings_of(text: str) -> dict[str, str]:
    """The settings that a line says; what has no `=` is a key without a value."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}


def preferred_build(entries: Sequence[Entry]) -> str | None:
    """The build of this engine if there are results of it, else that of the newest."""
    current = build()
    if any(entry.build == current for entry in entries):
        return current
    return entries[0].build if entries else None
