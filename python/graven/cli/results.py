"""`graven results`: what is in the store."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.text import Text

from graven._engine import ConfigError
from graven.api.loading import simulation_of
from graven.basics import output
from graven.basics.numbers import size_text
from graven.cli import options
from graven.cli.files import Writers, Written
from graven.cli.stored import opened, stored
from graven.cli.tables import plain_table
from graven.cli.terminal import note, refusing, results_console
from graven.results import formats
from graven.results.formats import json_text
from graven.store import Store, StoredRecord
from graven.store.index import Answer, QueryError
from graven.store.keeper import SIMULATION, build
from graven.store.upkeep import clean, merge, verify

F = TypeVar("F", bound=Callable[..., Any])

HELP = """Look into the store of results, clean it, check it, take results out.

`graven run`, `compare`, `crash`, `check`, `litmus`, `mutants`, `faults`, `memory` and the Python
interface keep what they simulate in a folder, graven-results/store by default (--store, or the
variable GRAVEN_STORE), under a digest of all that the result depends on:
configuration, programs, version and build of the engine and of designs of your own. The same
command finds it there. `graven reproduce` has a store of its own in FOLDER/store.

\b
Examples:
  graven results list --design silo
  graven results show 3f9a
  graven results query "SELECT design, avg(value) FROM statistics WHERE name = 'ipc' GROUP BY 1"
  graven results export all.parquet --build all
  graven results verify
  graven results gc --other-builds
  graven results merge ../elsewhere/graven-results/store
"""

FILTERS = ("kind", "design", "workload", "machine")

SHOWN = ("digest", "kind", "design", "workload", "machine", "threads", "transactions", "seed",
         "settings", "written_at", "host_s")  # fmt: skip
"""Columns of the list."""

SHORT = tuple(
    {
        "digest": "substr(digest, 1, 12) AS digest",
        "written_at": "replace(substr(written_at, 1, 16), 'T', ' ') AS written",
        "settings": "nullif(settings, '{}') AS settings",
    }.get(name, name)
    for name in SHOWN
)
"""The same in the terminal."""

CURRENT = "current"


@click.group(cls=Writers, help=HELP)
def results() -> None:
    """The group of these commands."""


def _filters(command: F) -> F:
    """Options that say which results."""
    command = click.option(
        "--build",
        "which",
        default="all",
        show_default=True,
        metavar="BUILD|current|all",
        help="Only results of one build of the engine.",
    )(command)
    for name in reversed(FILTERS):
        command = click.option(f"--{name}", metavar="NAME", help=f"Only results of this {name}.")(
            command
        )
    return command


@results.command("list")
@_filters
@options.number("--limit", "No more than the N newest; 0 is all.", least=0, default=50)
@options.store
@options.form("table", "csv", "json")
def list_(limit: int, folder: Path, form: str, which: str, **filters: str | None) -> int:
    """Show which results there are, the newest first."""
    store = opened(folder)
    where, values = _where(filters, which)
    total = store.index.query(f"SELECT count(*) FROM results {where}", values).rows[0][0]
    columns = ", ".join(SHORT if form == "table" else SHOWN)
    order = "ORDER BY results.written_at DESC, results.digest LIMIT ?"
    found = store.index.query(
        f"SELECT {columns} FROM results {where} {order}", [*values, limit or -1]
    )
    _print(found, form)
    if len(found.rows) < total:
        note(f"{len(found.rows):,} of {total:,} results; --limit 0 shows all")
    return 0


@results.command()
@click.argument("digests", metavar="DIGEST...", nargs=-1, required=True)
@options.store
def show(digests: tuple[str, ...], folder: Path) -> int:
    """Print results whole, as JSON: what was asked for, and what came.

    DIGEST may be the first digits, four at least, of that of one result.
    """
    store = opened(folder)
    found = [stored(store, digest) for digest in digests]
    sys.stdout.write(json_text([_document(record) for record in found]))
    return 0


@results.command()
@click.argument("sql")
@options.store
@options.form("table", "csv", "json")
def query(sql: str, folder: Path, form: str) -> int:
    """Ask in SQL, as SQLite has it.

    `results` has a row for each result: digest, kind, design, workload, machine, threads,
    transactions, seed, settings (JSON), version, build, written_at, host_s, statistics (JSON).
    `statistics` has a row for each number of a simulation: name and value, beside digest, design,
    workload, machine, threads, transactions, seed.
    """
    store = opened(folder)
    try:
        answer = store.index.query(sql)
    except QueryError as error:
        raise ConfigError(f"SQL: {error}") from None
    _print(answer, form)
    return 0


@results.command()
@click.argument("file", type=Written(dir_okay=False))
@_filters
@options.store
def export(file: Path, folder: Path, which: str, **filters: str | None) -> int:
    """Write simulations with statistics and configuration to FILE.parquet, .csv or .json."""
    store = opened(folder)
    with refusing():
        [target] = [t for t in formats.targets(file, None) if t.form in formats.FORMATS]
    where, values = _where({**filters, "kind": SIMULATION}, which)
    answer = store.index.query(f"SELECT digest FROM results {where} ORDER BY rowid", values)
    with refusing():
        output.check([target.path], len(answer.rows) * formats.BYTES_PER_RECORD)
    found = (store.record(digest) for (digest,) in answer.rows)
    records = [simulation_of(record) for record in found if record is not None]
    output.write(target.path, formats.encode(records, target.form, full=True))
    note(f"wrote {len(records):,} simulations to {target.path}")
    return 0


@results.command("verify")
@options.store
def verify_(folder: Path) -> int:
    """Read all of the store, and check every record.

    The exit code is 1 if one is damaged, or if two results of the same differ.
    """
    store = opened(folder)
    found = verify(store)
    size = size_text(found.size_bytes)
    print(f"{found.records:,} results in {found.segments:,} segments, {size}")
    if found.again:
        print(f"{found.again:,} records are there more than once; `graven results gc` drops them")
    for name in found.cut_off:
        print(f"{name}: the last record is cut off, or being written")
    if found.newer:
        print(f"{found.newer:,} records are of a newer version of Graven")
    for place, why in found.damaged:
        print(f"{place.segment}: the record at byte {place.offset} is damaged: {why}")
    for digest in found.contradictions:
        print(f"{digest} has two results that differ: equal runs gave different results")
    return 0 if found.is_sound else 1


@results.command()
@click.option("--other-builds", is_flag=True, help="Drop results of other builds of the engine.")
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="N",
    help="Drop results that were written N days ago, or longer.",
)
@options.store
def gc(other_builds: bool, older_than: int | None, folder: Path) -> int:
    """Put segments together that no command writes, each record once.

    Damaged records go to the folder `damaged`; results that are asked to go are dropped.
    """
    store = opened(folder)
    done = clean(store, _keeps(other_builds=other_builds, older_than=older_than))
    sizes = (size_text(done.bytes_before), size_text(done.bytes_after))
    counts = f"{done.kept:,} results kept, {done.dropped:,} records dropped"
    print(f"{counts}: {' to '.join(sizes)}")
    if done.set_aside:
        print(f"{done.set_aside:,} damaged records are in {folder / 'damaged'}")
    if done.left_behind:
        print(f"{done.left_behind:,} files of processes that were killed are removed")
    if done.left_alone:
        print(f"{done.left_alone:,} segments are being written, and were left alone")
    return 0


@results.command("merge")
@click.argument(
    "others",
    metavar="FOLDER...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
)
@options.store
def merge_(others: tuple[Path, ...], folder: Path) -> int:
    """Take what other stores have."""
    for other in others:
        new, known = merge(Store(folder, note), opened(other))
        print(f"{other}: {new:,} new results, {known:,} were there already")
    return 0


# ---- helpers -----------------------------------------------------------------------------------


def _where(filters: dict[str, str | None], which: str) -> tuple[str, list[object]]:
    given: dict[str, object] = {name: text for name, text in filters.items() if text is not None}
    if which != "all":
        given["build"] = build() if which == CURRENT else which
    terms = " AND ".join(f"{name} = ?" for name in given)
    return (f"WHERE {terms}" if terms else ""), list(given.values())


def _document(record: StoredRecord) -> dict[str, Any]:
    return {
        "digest": record.request.digest,
        "kind": record.request.kind,
        "written_at": record.written_at,
        "host_s": record.host_s,
        "asked": record.request.asked,
        "result": json.loads(record.result, parse_constant=lambda _: None),
    }


def _keeps(*, other_builds: bool, older_than: int | None) -> Callable[[StoredRecord], bool]:
    current = build()
    oldest = None if older_than is None else datetime.now(UTC) - timedelta(days=older_than)

    def keeps(record: StoredRecord) -> bool:
        if other_builds and record.request.asked.get("build") != current:
            return False
        return oldest is None or datetime.fromisoformat(record.written_at) > oldest

    return keeps


def _print(answer: Answer, form: str) -> None:
    if form == "json":
        rows = [dict(zip(answer.columns, _values(row), strict=True)) for row in answer.rows]
        sys.stdout.write(json_text(rows))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        table = plain_table()
        for number, column in enumerate(answer.columns):
            is_number = all(isinstance(row[number], int | float) for row in answer.rows)
            table.add_column(column, justify="right" if is_number and answer.rows else "left")
        for row in answer.rows:
            table.add_row(*(Text("" if value is None else _short(value)) for value in row))
        results_console().print(table)


def _values(row: Sequence[Any]) -> Iterator[Any]:
    """Values of a row; what is JSON in the database as such."""
    for value in row:
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                yield json.loads(value)
                continue
            except ValueError:
                pass
        yield value


def _short(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
