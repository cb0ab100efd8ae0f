"""Ways of keeping results, and their times: segments, as the store has them, against others.

The campaign keeps N results of about 8 KB, each durable before the next one, in one process and in
four at once, on the file system of FOLDER; then finds all of them in a new process's place, with
and without an index. docs/guides/store.md has the tables that it prints.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

from graven.store import Request, Store, StoredRecord
from graven.store.index import file_of

from .runner import Campaign, Failed, Given, Rows
from .tables import table_of

PROCESSES = 4


def request(number: int) -> Request:
    """Makes the request of a result."""
    settings = [[f"section.key{at}", "1"] for at in range(10)]
    spec = {"design": "silo", "workload": "btree", "machine": {"preset": "silo"}, "set": settings}
    return Request("simulation", {"version": "0", "build": "0", "spec": {**spec, "seed": number}})


def result(number: int) -> str:
    """Makes a result of 220 statistics, about as long as those of simulations."""
    draw = random.Random(number)
    stats = {f"a_statistic_with_a_name_{at}": draw.getrandbits(30) for at in range(220)}
    return json.dumps({"threads": 8, "transactions": 10_000, "stats": stats})


def in_segments(folder: Path, numbers: range) -> None:
    """Keeps results as the store does."""
    store = Store(folder)
    for number in numbers:
        store.put(request(number), result(number), 1.0)


def in_sqlite(folder: Path, numbers: range) -> None:
    """Keeps rows of a database with a write-ahead log, synchronised at each commit."""
    connection = sqlite3.connect(folder / "results.sqlite", timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS results (digest TEXT PRIMARY KEY, line BLOB)")
    for number in numbers:
        of = request(number)
        line = StoredRecord.now(of, result(number), 1.0).line()
        connection.execute("INSERT OR IGNORE INTO results VALUES (?, ?)", (of.digest, line))


def in_files(folder: Path, numbers: range) -> None:
    """Keeps a file for each result, which bears its name once it is whole; then the folder."""
    for number in numbers:
        of = request(number)
        path = folder / of.digest
        descriptor = os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, StoredRecord.now(of, result(number), 1.0).line())
        os.fsync(descriptor)
        os.close(descriptor)
        Path(f"{path}.new").replace(path)
        of_folder = os.open(folder, os.O_RDONLY)
        os.fsync(of_folder)
        os.close(of_folder)


WAYS: dict[str, Callable[[Path, range], None]] = {
    "segments, one for each writer": in_segments,
    "SQLite, write-ahead log": in_sqlite,
    "a file for each result": in_files,
}


def seconds(what: Callable[[], object]) -> float:
    """Returns the seconds that something takes."""
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


def at_once(way: Callable[[Path, range], None], folder: Path, count: int, processes: int) -> None:
    """Keeps results in several processes, each its part."""
    part = count // processes
    context = get_context("fork")
    parts = [range(first * part, (first + 1) * part) for first in range(processes)]
    running = [context.Process(target=way, args=(folder, numbers)) for numbers in parts]
    for process in running:
        process.start()
    for process in running:
        process.join()
        if process.exitcode != 0:
            raise Failed(f"{way.__name__} failed")


def rows(count: int, root: Path) -> Iterator[tuple[str, str, str]]:
    """Yields each way with the results that it keeps in a second, by one process and by several."""
    for name, way in WAYS.items():
        cells = []
        for processes in (1, PROCESSES):
            with tempfile.TemporaryDirectory(dir=root) as folder:
                took = seconds(lambda: at_once(way, Path(folder), count, processes))  # noqa: B023
            cells.append(f"{count / took:,.0f}")
        yield (name, *cells)


def reading(count: int, root: Path) -> Iterator[tuple[str, str]]:
    """Yields times of finding results in a store, and sizes."""
    with tempfile.TemporaryDirectory(dir=root) as name:
        folder = Path(name)
        at_once(in_segments, folder, count, PROCESSES)
        digests = [request(number).digest for number in range(count)]
        yield "make the index", f"{seconds(lambda: Store(folder).refresh()):.2f} s"
        yield (
            "look for what is new, if nothing is",
            f"{seconds(lambda: Store(folder).refresh()):.4f} s",
        )
        store = Store(folder)
        found = seconds(lambda: [store.get(digest) for digest in digests])
        yield "find a result, read it and check it", f"{found / count * 1e6:.0f} µs"
        ask = "SELECT design, avg(value) FROM statistics WHERE name = 'a_statistic_with_a_name_7'"
        yield "a mean over all results, in SQL", f"{seconds(lambda: store.index.query(ask)):.2f} s"
        size = sum(path.stat().st_size for path in (folder / "segments").iterdir())
        yield "bytes of a result", f"{size / count:,.0f}"
        yield "of the index", f"{file_of(folder).stat().st_size / count:,.0f}"


def measure(_: str, given: Given) -> Rows:
    """Prints both tables."""
    head = ("", "one process, results/s", f"{PROCESSES} processes, results/s")
    print(table_of(head, rows(given.records, given.folder)))
    print(table_of(("of the store", ""), reading(given.records, given.folder)))
    return {}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the number of results, and the file system on which they are kept."""
    parser.add_argument("--records", type=int, default=4000, metavar="N")
    parser.add_argument("--folder", type=Path, default=Path.cwd())


CAMPAIGN = Campaign(lambda _: ["all"], measure, options=options, repeats=lambda *_: True)
