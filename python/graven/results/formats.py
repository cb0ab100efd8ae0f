"""Formats of results: JSON, CSV, Parquet, and tables of Arrow."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graven.basics.errors import OutputRefusedError
from graven.basics.numbers import Value
from graven.engine.catalogue import catalogue
from graven.results.record import IDENTITY, Record, config_column

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_PER_RECORD = 64 << 10
"""Room to ask for before a run, for one record in all formats together; several times its size."""

BYTES_PER_REPORT = 8 << 20
"""Room to ask for before a run, for one report."""

FORMATS = ("json", "csv", "parquet")


def encode(records: Sequence[Record], form: str, *, full: bool) -> bytes:
    """Records in one of `FORMATS`; `full` adds the configuration of each."""
    buffer = io.BytesIO()
    write_records(buffer, records, form, full=full)
    return buffer.getvalue()


@dataclass(frozen=True)
class Target:
    """A file to be written: `form` is one of `FORMATS`, or `html` for the report."""

    path: Path
    form: str


def targets(out: Path | None, report: Path | None) -> list[Target]:
    """The files that `--out` and `--report` ask for.

    Raises:
        OutputRefusedError: `out` is a file whose name does not say its format.
    """
    found: list[Target] = []
    if out is not None and (out.is_dir() or not out.suffix):
        found += [Target(out / f"results.{form}", form) for form in FORMATS]
        found.append(Target(out / "report.html", "html"))
    elif out is not None:
        form = out.suffix[1:].lower()
        if form not in FORMATS:
            allowed = ", ".join(f".{form}" for form in FORMATS)
            raise OutputRefusedError(
                f"--out: {out}: the name of a file must end in {allowed} "
                "(a name without an ending is a folder)"
            )
        found.append(Target(out, form))
    if report is not None:
        found = [target for target in found if target.form != "html"]
        found.append(Target(report, "html"))
    return found


def json_text(document: object) -> str:
    """One JSON document: indented, ASCII, same bytes for the same content, never NaN."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


class Sink(Protocol):
    """Receiver of bytes, such as a file."""

    def write(self, content: bytes, /) -> object:
        """Takes them."""


BATCH = 1024
"""Records of a group of rows in Parquet."""


def write_records(sink: Sink, records: Iterable[Record], form: str, *, full: bool) -> None:
    """Writes records in one of the formats, one after the other.

    Args:
        sink: Where to.
        records: The records; gone through twice, or three times, if the format needs to know all
            columns first.
        form: `json`, `csv` or `parquet`.
        full: Whether with the configuration of each.
    """
    {"json": _write_json, "csv": _write_csv, "parquet": _write_parquet}[form](sink, records, full)


def write_json_list(sink: Sink, documents: Iterable[object]) -> None:
    """Writes a JSON list of documents, one after the other: the bytes are those of `json_text`."""
    before = "[\n"
    for document in documents:
        text = json.dumps(document, indent=2, allow_nan=False).replace("\n", "\n  ")
        sink.write(f"{before}  {text}".encode())
        before = ",\n"
    sink.write(b"[]\n" if before == "[\n" else b"\n]\n")


def _write_json(sink: Sink, records: Iterable[Record], full: bool) -> None:
    write_json_list(sink, (record.to_dict(full=full) for record in records))


def _write_csv(sink: Sink, records: Iterable[Record], full: bool) -> None:
    names = list(_Columns.of(records, full=full).names) or IDENTITY
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: _csv_cell(v) for key, v in record.to_row(full=full).items()})
        if text.tell() > 1 << 16:
            sink.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
    sink.write(text.getvalue().encode())


def _csv_cell(value: Value) -> Value:
    return str(value).lower() if isinstance(value, bool) else value


def _write_parquet(sink: Sink, records: Iterable[Record], full: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _Columns.of(records, full=full)
    schema = columns.schema()
    rows = (record.to_row(full=full) for record in records)
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        empty = True
        while batch := list(islice(rows, BATCH)):
            writer.write_table(_table(batch, schema))
            empty = False
        if empty:
            writer.write_table(_table([], schema))


def to_arrow(records: Iterable[Record], *, full: bool = True) -> pa.Table:
    """An Arrow table; units and descriptions travel in the metadata of the columns."""
    records = list(records)
    schema = _Columns.of(records, full=full).schema()
    return _table([record.to_row(full=full) for record in records], schema)


def arrow_table(rows: Sequence[Mapping[str, Value]], varied: Sequence[str] = ()) -> pa.Table:
    """An Arrow table of flat rows; `varied` are columns, as in `columns`."""
    return _table(rows, _Columns.of_rows(rows, varied).schema())


def columns(rows: Iterable[Mapping[str, Value]], varied: Sequence[str] = ()) -> list[str]:
    """All columns of some rows, in order of first appearance.

    Configuration comes last, but for the columns of what is `varied`.
    """
    return _Columns.of_rows(rows, varied).names


@dataclass
class _Columns:
    """The columns of rows that were gone through, with the types of what is in them."""

    varied: dict[str, None] = field(default_factory=dict)
    types: dict[str, set[str]] = field(default_factory=dict)

    @staticmethod
    def of(records: Iterable[Record], *, full: bool) -> _Columns:
        """Returns the columns of some records."""
        found = _Columns()
        for record in records:
            found.varied |= dict.fromkeys(config_column(key) for key in record.varied)
            found.add(record.to_row(full=full))
        return found

    @staticmethod
    def of_rows(rows: Iterable[Mapping[str, Value]], varied: Sequence[str]) -> _Columns:
        """Returns the columns of some rows."""
        found = _Columns(dict.fromkeys(varied))
        for row in rows:
            found.add(row)
        return found

    def add(self, row: Mapping[str, Value]) -> None:
        """Takes in a row."""
        for name, value in row.items():
            kinds = self.types.setdefault(name, set())
            if value is not None:
                large = isinstance(value, int) and value >= 1 << 63
                kinds.add("large" if large else type(value).__name__)

    @property
    def names(self) -> list[str]:
        """In their order."""
        last = {n for n in self.types if n == "version" or n.startswith("config.")}
        return sorted(self.types, key=lambda name: name in last and name not in self.varied)

    def schema(self) -> pa.Schema:
        """As Arrow has it, with units and descriptions."""
        import pyarrow as pa

        known = catalogue()
        fields = []
        for name in self.names:
            statistic = known.described(name)
            metadata = {"unit": statistic.unit, "description": statistic.description}
            described = {key: text for key, text in metadata.items() if text}
            fields.append(pa.field(name, _arrow_type(self.types[name]), metadata=described or None))
        return pa.schema(fields)


def _arrow_type(kinds: set[str]) -> pa.DataType:
    """The type of a column in which there are values of these kinds."""
    import pyarrow as pa

    if "str" in kinds:
        return pa.string()
    if "float" in kinds:
        return pa.float64()
    if "large" in kinds:
        return pa.uint64()
    if "int" in kinds:
        return pa.int64()
    return pa.bool_() if "bool" in kinds else pa.null()


def _table(rows: Sequence[Mapping[str, Value]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; numbers are of the column's type."""
    import pyarrow as pa

    arrays = []
    for item in schema:
        values = [row.get(item.name) for row in rows]
        if pa.types.is_floating(item.type):
            values = [float(v) if isinstance(v, int) else v for v in values]
        arrays.append(pa.array(values, type=item.type))
    return pa.Table.from_arrays(arrays, schema=schema)
