"""An index of a store's segments, in SQLite: where each record is, and what queries ask for.

It has nothing that the segments do not have, and can be deleted at any time: whoever reads the
store makes it anew. It is only ever asked where a record is; what is read there is checked. Each
host has its own, since locks of SQLite are not to be relied on between machines.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from graven.results.record import region_of
from graven.store import segments
from graven.store.segments import Place
from graven.store.stored import DamagedRecord, NewerRecord, StoredRecord

VERSION = 2
"""Version of the tables below; an index of another version is made anew."""

TABLES = """
CREATE TABLE segments (
    name    TEXT PRIMARY KEY,
    indexed INTEGER NOT NULL    -- bytes that have been looked at
) WITHOUT ROWID;

CREATE TABLE records (
    segment      TEXT NOT NULL,
    offset       INTEGER NOT NULL,  -- bytes
    length       INTEGER NOT NULL,  -- bytes
    digest       TEXT NOT NULL,
    kind         TEXT NOT NULL,     -- simulation, crash, check, litmus, mutant, faults, memory
    design       TEXT,
    workload     TEXT,
    machine      TEXT,              -- preset, or the name of a file
    threads      INTEGER,
    transactions INTEGER,
    seed,               -- an integer; from 2^63 on the text of one
    settings     TEXT,              -- JSON: what was set, by SECTION.KEY
    version      TEXT,
    build        TEXT,
    written_at   TEXT,              -- UTC, ISO 8601
    host_s       REAL,              -- seconds that the host took
    statistics   TEXT,              -- JSON: statistics of a simulation or a replay, by name
    PRIMARY KEY (segment, offset)
);
CREATE INDEX records_by_digest ON records (digest);

CREATE TABLE damaged (
    segment TEXT NOT NULL,
    offset  INTEGER NOT NULL,
    length  INTEGER NOT NULL,
    why     TEXT NOT NULL,
    PRIMARY KEY (segment, offset)
) WITHOUT ROWID;

CREATE VIEW results AS
    SELECT digest, kind, design, workload, machine, threads, transactions, seed, settings, version,
           build, written_at, host_s, statistics
    FROM records WHERE rowid IN (SELECT min(rowid) FROM records GROUP BY digest);

CREATE VIEW statistics AS
    SELECT digest, design, workload, machine, threads, results.transactions, seed,
           each.key AS name, each.value AS value
    FROM results, json_each(results.statistics) AS each
    WHERE results.kind = 'simulation';
"""

COLUMNS = (
    "segment", "offset", "length", "digest", "kind", "design", "workload", "machine", "threads",
    "transactions", "seed", "settings", "version", "build", "written_at", "host_s", "statistics",
)  # fmt: skip

BUSY_SECONDS = 30.0
"""Longest wait for another process of this host that writes the index."""


BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Errors of an index that is damaged; SQLite's message may quote what is no text."""


_REFUSED = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError)


class QueryError(Exception):
    """SQLite refuses a query; the message is its own."""


@dataclass(frozen=True)
class Answer:
    """Answer to a query: names of columns, and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Index:
    """Places of the records in a folder of segments."""

    def __init__(self, folder: Path, file: Path, *, read_only: bool = False) -> None:
        """`folder` has the segments; the index is in `file`, or in memory if that cannot be.

        One that is `read_only` is in memory, begins with what the file has, and leaves it as it is.
        It has no statistics, which are nearly all of an index.
        """
        self._folder = folder
        self._file = file
        self._read_only = read_only
        self._takes_over = read_only
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    # ---- asking ----------------------------------------------------------------------------

    def places_of(self, digest: str) -> list[Place]:
        """Places of a digest's records, as far as is known: one, but for those made twice."""
        where = "SELECT segment, offset, length FROM records WHERE digest = ? ORDER BY rowid"
        return self._places(where, [digest])

    def places(self) -> list[Place]:
        """Places of all records, one for each digest, in the order of the segments."""
        first = "SELECT min(rowid) FROM records GROUP BY digest"
        return self._places(
            f"SELECT segment, offset, length FROM records WHERE rowid IN ({first}) ORDER BY 1, 2"
        )

    def damaged(self) -> list[tuple[Place, str]]:
        """Lines that are not what was written, and how that shows."""
        query = "SELECT segment, offset, length, why FROM damaged ORDER BY 1, 2"
        rows = self.ask(query)
        if not all(_is_place(row[:3]) and isinstance(row[3], str) for row in rows):
            self.forget()
            rows = self.ask(query)
        return [(Place(*place), why) for *place, why in rows]

    def _places(self, query: str, values: Sequence[object] = ()) -> list[Place]:
        """The places that a query answers; an index that has none in their stead is made anew."""
        rows = self.ask(query, values)
        if not all(map(_is_place, rows)):
            self.forget()
            rows = self.ask(query, values)
        return [Place(*row) for row in rows]

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Asks a query of the index's own; an index that is broken is made anew."""
        with self._lock:
            try:
                return self._connected().execute(query, values).fetchall()
            except BROKEN:
                self._make_anew()
                self.refresh()
                return self._connected().execute(query, values).fetchall()

    def query(self, sql: str, values: Sequence[object] = ()) -> Answer:
        """Asks a query of the user's, which may change nothing.

        A query that SQLite understands and that fails all the same is asked of an index that has
        been made anew: what was in the old one may have been damaged.

        Raises:
            QueryError: SQLite refuses it.
        """
        with self._lock:
            try:
                return self._answer(sql, values)
            except _REFUSED as error:
                if not self._is_understood(sql, values, error):
                    raise QueryError(str(error)) from None
            self.forget()
            try:
                return self._answer(sql, values)
            except _REFUSED as error:
                raise QueryError(str(error)) from None

    def _answer(self, sql: str, values: Sequence[object]) -> Answer:
        connection = self._connected()
        connection.execute("PRAGMA query_only = ON")
        try:
            cursor = connection.execute(sql, values)
            names = [column[0] for column in cursor.description or ()]
            return Answer(tuple(names), cursor.fetchall())
        finally:
            connection.execute("PRAGMA query_only = OFF")

    def _is_understood(self, sql: str, values: Sequence[object], error: Exception) -> bool:
        """Whether it is not the query that is at fault, as far as SQLite can tell."""
        if getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY":
            return False
        try:
            self._connected().execute(f"EXPLAIN {sql}", values).fetchall()
        except (sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.Warning):
            return False
        except BROKEN:
            pass
        return True

    # ---- keeping up ------------------------------------------------------------------------

    def refresh(self) -> list[tuple[Place, str]]:
        """Looks at what the segments have got since; returns the lines that were found damaged."""
        with self._lock:
            try:
                return self._refresh()
            except BROKEN:
                self._make_anew()
                return self._refresh()

    def set_aside(self, place: Place, why: str) -> None:
        """Takes a record out that is not what was written."""
        with self._lock, contextlib.suppress(*BROKEN), self._writing() as connection:
            where = (place.segment, place.offset)
            connection.execute("DELETE FROM records WHERE segment = ? AND offset = ?", where)
            self._note_damage(connection, [(place, why)])

    def forget(self) -> None:
        """Throws away all that is known, and looks at the segments anew."""
        with self._lock:
            self._make_anew()
            self.refresh()

    def _refresh(self) -> list[tuple[Place, str]]:
        there = segments.names(self._folder)
        known = _sizes(self._connected())
        grown = {name: size for name, size in there.items() if size > known.get(name, 0)}
        # A segment that is shorter than it was is not the one that was looked at.
        gone = [name for name, size in known.items() if there.get(name, -1) < size]
        if not grown and not gone:
            return []
        found: list[tuple[Place, str]] = []
        with self._writing() as connection:
            for name in gone:
                for table, column in _OF_SEGMENT:
                    connection.execute(f"DELETE FROM {table} WHERE {column} = ?", [name])
            # Another process may have been at it in the meantime.
            known = _sizes(connection)
            for name in [name for name, size in there.items() if size > known.get(name, 0)]:
                found += self._look_at(connection, name, known.get(name, 0))
        return found

    def _look_at(
        self, connection: sqlite3.Connection, name: str, start: int
    ) -> list[tuple[Place, str]]:
        rows, damaged, end = [], [], start
        with contextlib.suppress(FileNotFoundError):
            for offset, line in segments.lines(self._folder / name, start):
                if not line.endswith(b"\n"):
                    break  # it is being written, or was cut off: nothing follows
                place = Place(name, offset, len(line))
                end = offset + len(line)
                try:
                    row = row_of(StoredRecord.parse(line), place)
                    rows.append((*row[:-1], None) if self._read_only else row)
                except DamagedRecord as error:
                    damaged.append((place, str(error)))
                except (ValueError, TypeError, AttributeError, RecursionError):
                    damaged.append((place, "it has not what a result has"))
                except NewerRecord:
                    continue
        self._enter(connection, rows)
        self._note_damage(connection, damaged)
        self._looked_at(connection, name, end)
        return damaged

    # ---- the database ----------------------------------------------------------------------

    @staticmethod
    def _enter(connection: sqlite3.Connection, rows: Iterable[Sequence[object]]) -> None:
        places = ", ".join("?" for _ in COLUMNS)
        connection.executemany(
            f"INSERT OR IGNORE INTO records ({', '.join(COLUMNS)}) VALUES ({places})", rows
        )

    @staticmethod
    def _note_damage(connection: sqlite3.Connection, found: Iterable[tuple[Place, str]]) -> None:
        rows = [(place.segment, place.offset, place.length, why) for place, why in found]
        connection.executemany("INSERT OR REPLACE INTO damaged VALUES (?, ?, ?, ?)", rows)

    @staticmethod
    def _looked_at(connection: sqlite3.Connection, name: str, end: int) -> None:
        connection.execute("INSERT OR REPLACE INTO segments VALUES (?, ?)", [name, end])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None and self._read_only:
            self._connection = _opened(":memory:", uri=True)
            if self._takes_over:
                with contextlib.suppress(*BROKEN):
                    _take_over(self._connection, self._file)
        if self._connection is None:
            try:
                self._connection = _opened(str(self._file))
            except sqlite3.OperationalError:
                # A folder that may only be read, for example.
                self._connection = _opened(":memory:")
            except BROKEN:
                self._file.unlink(missing_ok=True)
                self._connection = _opened(str(self._file))
        return self._connection

    def _make_anew(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
        if self._read_only:
            self._takes_over = False
            return
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._file.with_name(self._file.name + ending).unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the database."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


def _sizes(connection: sqlite3.Connection) -> dict[str, int]:
    """Up to where each segment has been looked at.

    Raises:
        DatabaseError: the index is damaged inside.
    """
    found = dict(connection.execute("SELECT name, indexed FROM segments"))
    if not all(isinstance(n, str) and isinstance(size, int) for n, size in found.items()):
        raise sqlite3.DatabaseError("sizes of segments are no numbers")
    return found


def _is_place(row: Sequence[object]) -> bool:
    """Whether this may be a place: what is in an index that is damaged inside may be anything."""
    match row:
        case (str(segment), int(offset), int(length)):
            return segments.is_name(segment) and offset >= 0 < length <= segments.LONGEST_LINE
    return False


_OF_SEGMENT = (("records", "segment"), ("damaged", "segment"), ("segments", "name"))


def _take_over(connection: sqlite3.Connection, file: Path) -> None:
    """Copies what an index in a file knows, but for statistics; the file is only read.

    Raises:
        DatabaseError: it is not there, or is no index of this version.
    """
    connection.execute("ATTACH ? AS known", [f"{file.absolute().as_uri()}?mode=ro"])
    try:
        if connection.execute("PRAGMA known.user_version").fetchone()[0] != VERSION:
            return
        columns = ", ".join(COLUMNS[:-1])
        connection.execute("BEGIN")
        try:
            connection.execute("INSERT INTO segments SELECT name, indexed FROM known.segments")
            connection.execute(
                f"INSERT INTO records ({columns}) SELECT {columns} FROM known.records "
                "ORDER BY known.records.rowid"
            )
            connection.execute(
                "INSERT INTO damaged SELECT segment, offset, length, why FROM known.damaged"
            )
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
    finally:
        connection.execute("DETACH known")


def _opened(where: str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        where, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri
    )
    try:
        # What a power failure takes from the index is looked for again in the segments.
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_as_declared(connection):
            connection.execute("BEGIN EXCLUSIVE")
            if not _is_as_declared(connection):
                _make_tables(connection)
            connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def _is_as_declared(connection: sqlite3.Connection) -> bool:
    """Whether a database has the tables of this version, whole."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return version == VERSION and _declarations(connection) == _declared()


@cache
def _declared() -> list[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _make_tables(connection)
        return _declarations(connection)
    finally:
        connection.close()


def _declarations(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()


def _make_tables(connection: sqlite3.Connection) -> None:
    old = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY type DESC"
    ).fetchall()
    for kind, name in old:
        connection.execute(f"DROP {kind} IF EXISTS {name}")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def file_of(folder: Path) -> Path:
    """The file of this host's index of a store."""
    return folder / f"index-{segments.host(64)}.sqlite"


def row_of(record: StoredRecord, place: Place) -> tuple[object, ...]:
    """The row of a record, in the order of `COLUMNS`."""
    asked = record.request.asked
    spec: Mapping[str, Any] = asked.get("spec", {})
    machine: Mapping[str, Any] = spec.get("machine", {})
    settings = {key: value for key, value, *_ in spec.get("set", [])}
    # A statistic that is no number (0/0) is null here, as SQLite knows no other.
    ran = json.loads(record.result, parse_constant=lambda _: None, parse_float=_finite)
    ran = ran if isinstance(ran, dict) else {}
    statistics = ran.get("stats")
    return (
        place.segment,
        place.offset,
        place.length,
        record.request.digest,
        record.request.kind,
        spec.get("design"),
        spec.get("workload"),
        machine.get("preset", machine.get("file")),
        ran.get("threads", spec.get("threads")),
        _transactions(ran, spec),
        _text(spec.get("seed")),
        json.dumps(settings),
        asked.get("version"),
        asked.get("build"),
        record.written_at,
        record.host_s,
        None if statistics is None else json.dumps(statistics),
    )


def _transactions(ran: Mapping[str, Any], spec: Mapping[str, Any]) -> object:
    """Of all threads; of a region in steady state what was asked for, 0 if precision decides."""
    if region_of(ran):
        return ran["config"]["region"]["transactions"]
    return ran.get("transactions", spec.get("transactions"))


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _text(number: object) -> object:
    """A number that SQLite can hold; larger ones as text, without loss."""
    return str(number) if isinstance(number, int) and number >= 1 << 63 else number
