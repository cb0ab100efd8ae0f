"""Results of files that Graven has written, and of stores."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graven._engine import ConfigError
from graven.basics import arguments
from graven.basics.numbers import Value
from graven.engine.catalogue import catalogue
from graven.results.comparison import Comparison
from graven.results.formats import FORMATS
from graven.results.record import DOCUMENTS, IDENTITY, Record, config_column, parse_record

if TYPE_CHECKING:
    from graven.store import StoredRecord

_CONFIG = config_column("")


def load(
    path: str | PathLike[str],
    *,
    machine: str | None = None,
    transactions: int | None = None,
    from_start: bool | None = None,
) -> Comparison:
    """Reads results that `Comparison.save`, `graven compare --out` or a store has.

    Of a store these are the simulations of this build of Graven. Settings in which they differ are
    what varies among them.

    Args:
        path: A file ending in .json, .csv or .parquet, or the folder of a store.
        machine: Only results of this machine.
        transactions: Only results of this number of transactions; 0: of regions in steady state
            that are as long as precision asks for.
        from_start: Only results of whole runs, or only of regions in steady state.

    Raises:
        ConfigError: it cannot be read, is not what Graven writes, or has no such results; or those
            of a store are of several machines or numbers of transactions, or of both whole runs and
            regions in steady state, of which to choose one.

    Examples:
        >>> result = graven.compare("base,silo", "hash", transactions=200, from_start=True)
        >>> result.save("results.json")
        >>> graven.load("results.json")
        <Comparison: 2 results of 2 designs on 1 workload>

        A store has whatever was kept in it, runs as well as comparisons:

        >>> record = graven.run("silo", "queue", transactions=200, store="kept")
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, store="kept", from_start=True
        ... )
        >>> graven.load("kept", machine="silo", transactions=200)
        <Comparison: 3 results of 2 designs on 2 workloads>
    """
    where = Path(arguments.path("path", path))
    count = arguments.integer_or_none("transactions", transactions, 0)
    is_store = where.is_dir()
    records = _stored(where) if is_store else _written(where)
    if machine is not None:
        records = [record for record in records if record.machine == machine]
    if from_start is not None:
        whole = arguments.flag("from_start", from_start)
        records = [record for record in records if whole != bool(record.measured)]
    if count is not None:
        records = [record for record in records if record.asked_transactions == count]
    if not records:
        raise ConfigError(f"there are no such results in {where}")
    if is_store:
        _require_one("machine", [record.machine for record in records])
        if len({bool(record.measured) for record in records}) > 1:
            raise ConfigError(
                "from_start: the store has results of whole runs and of regions in steady state; "
                "choose one"
            )
        _require_one("transactions", [record.asked_transactions for record in records])
        records = varying(records)
    return Comparison(tuple(records))


def simulation_of(record: StoredRecord) -> Record:
    """The record of a simulation that is in a store."""
    machine = record.request.asked["spec"]["machine"]
    return parse_record(record.result, machine.get("preset", machine.get("file")))


def _stored(folder: Path) -> list[Record]:
    from graven.store import Store
    from graven.store.keeper import SIMULATION, build

    store = Store(folder, lambda text: warnings.warn(text, RuntimeWarning, stacklevel=4))
    if not store.is_there:
        raise ConfigError(f"path: there is no store in {folder}")
    store.refresh()
    try:
        found = store.index.query(
            "SELECT digest FROM results WHERE kind = ? AND build = ? ORDER BY rowid",
            [SIMULATION, build()],
        )
        stored = [store.record(digest) for (digest,) in found.rows]
    finally:
        store.close()
    return [
        replace(simulation_of(record), varied=set_in(record))
        for record in stored
        if record is not None
    ]


def set_in(record: StoredRecord) -> dict[str, Value]:
    """Settings by `SECTION.KEY`, as the texts that were given."""
    return dict(record.request.asked["spec"].get("set", ()))


def varying(records: Iterable[Record]) -> list[Record]:
    """Records whose varied values are those of settings in which they differ.

    Args:
        records: Records whose `varied` is what was set (`set_in`).
    """
    records = list(records)
    keys = sorted({key for record in records for key in record.varied})
    differing = [key for key in keys if len({_value(record, key) for record in records}) > 1]
    return [replace(r, varied={key: _value(r, key) for key in differing}) for r in records]


def _value(record: Record, key: str) -> Value:
    section, _, name = key.partition(".")
    return record.config.get(section, {}).get(name)


def _require_one(what: str, values: Iterable[Value]) -> None:
    found = list(dict.fromkeys(map(str, values)))
    if len(found) > 1:
        raise ConfigError(f"{what}: the store has results of {', '.join(found)}; choose one")


def _written(file: Path) -> list[Record]:
    form = file.suffix[1:].lower()
    if form not in FORMATS:
        allowed = ", ".join(f".{form}" for form in FORMATS)
        raise ConfigError(
            f"path: {file}: it is not a store, and its name ends in none of {allowed}"
        )
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"path: cannot read {file}: {error.strerror or error}") from None
    try:
        if form == "json":
            return [_of_document(item) for item in json.loads(content)]
        rows = _csv_rows(content) if form == "csv" else _parquet_rows(content)
        return [_of_row(row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        raise ConfigError(
            f"path: {file} is not what Graven writes with the configuration"
        ) from None


def _of_document(item: Mapping[str, Any]) -> Record:
    return Record(
        **{name: item[name] for name in IDENTITY},
        version=item["version"],
        config=item["config"],
        stats=item["stats"],
        varied=item.get("varied", {}),
        simulated=item.get("simulated", ""),
        variant=item.get("variant", {}),
        settings=item.get("settings", {}),
        measured=item.get("measured", {}),
    )


def _of_row(row: Mapping[str, Value]) -> Record:
    """A record of a flat row; what was varied stands before the statistics."""
    names = list(row)
    end = names.index("version")
    config: dict[str, dict[str, Value]] = {}
    for name in names:
        if name.startswith(_CONFIG) and row[name] is not None:
            section, _, key = name.removeprefix(_CONFIG).partition(".")
            config.setdefault(section, {})[key] = row[name]
    varied = {
        name.removeprefix(_CONFIG): row[name] for name in names[:end] if name.startswith(_CONFIG)
    }
    stats = {
        name: row[name]
        for name in names[:end]
        if name not in _NO_STATISTICS
        and not name.startswith(_CONFIG)
        and _is_there(name, row[name])
    }
    identity: dict[str, Any] = {name: row[name] for name in IDENTITY}
    own, settings, measured = (json.loads(str(row.get(name) or "{}")) for name in DOCUMENTS)
    return Record(
        **identity,
        version=str(row["version"]),
        config=config,
        stats=stats,
        varied=varied,
        simulated=str(row.get("simulated") or ""),
        variant=own,
        settings=settings,
        measured=measured,
    )


def _is_there(name: str, value: Value) -> bool:
    """Whether a record has a statistic: an empty cell of what other designs count is none."""
    return value is not None or not catalogue().described(name).designs


_TEXTS = ("design", "workload", "machine", "version", "simulated", *DOCUMENTS)

_NO_STATISTICS = frozenset({*IDENTITY, "simulated", *DOCUMENTS})


def _csv_rows(content: bytes) -> list[dict[str, Value]]:
    rows = csv.DictReader(io.StringIO(content.decode()))
    return [
        {name: cell if name in _TEXTS else _cell(cell) for name, cell in row.items()}
        for row in rows
    ]


def _cell(cell: str) -> Value:
    """What a cell stands for."""
    words: dict[str, Value] = {"": None, "true": True, "false": False}
    if cell in words:
        return words[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _parquet_rows(content: bytes) -> list[dict[str, Value]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found: list[dict[str, Value]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    return found
