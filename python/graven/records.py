"""Records: what one simulation returns, and the formats that records are written in."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from graven.arguments import text
from graven.catalogue import catalogue

if TYPE_CHECKING:
    import pyarrow as pa

Value: TypeAlias = int | float | str | bool | None
"""A statistic (numbers; the image's digest is text) or a configuration value."""

IDENTITY = ("design", "workload", "machine", "threads", "transactions", "seed", "safe")
"""What distinguishes one simulation from another; every format starts with these."""


@dataclass(frozen=True, repr=False)
class Record:
    """The result of one simulation, with everything needed to repeat it.

    `varied` holds what a comparison varied, by `SECTION.KEY`; the same stands in `config`.
    """

    design: str
    workload: str
    machine: str
    threads: int
    transactions: int
    seed: int
    safe: bool
    version: str
    config: Mapping[str, Mapping[str, Value]]
    stats: Mapping[str, Value]
    varied: Mapping[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        varied = "".join(f", {key} = {value}" for key, value in self.varied.items())
        return (
            f"<Record: {self.design} on {self.workload}, machine {self.machine}, "
            f"threads {self.threads}, transactions {self.transactions:,}, seed {self.seed}{varied}>"
        )

    def _repr_html_(self) -> str:
        from graven.plots.notebook import record_html

        return record_html(self)

    def number(self, stat: str) -> float | None:
        """A statistic as a number; `None` if this run has no such number.

        Of what other designs count and this one has no mechanism for, there is none: 0.

        Raises:
            ConfigError: there is no such statistic.
        """
        stat = text("stat", stat)
        if stat not in self.stats:
            declared = catalogue().statistic(stat)
            return 0 if declared.designs else None
        value = self.stats[stat]
        return value if isinstance(value, int | float) else None

    def to_dict(self, *, full: bool = True) -> dict[str, Any]:
        """As a document: identity and statistics, and when `full` the configuration too.

        `varied` is there if something is.
        """
        document: dict[str, Any] = {name: getattr(self, name) for name in IDENTITY}
        if self.varied:
            document["varied"] = dict(self.varied)
        if full:
            document |= {"version": self.version, "config": self.config}
        return document | {"stats": dict(self.stats)}

    def to_row(self, *, full: bool = True) -> dict[str, Value]:
        """As one flat row: statistics by name, configuration as `config.SECTION.KEY`.

        What is varied comes before the statistics, `full` or not.
        """
        row: dict[str, Value] = {name: getattr(self, name) for name in IDENTITY}
        row |= {config_column(key): value for key, value in self.varied.items()}
        row |= self.stats
        if full:
            row["version"] = self.version
            for section, values in self.config.items():
                row |= {config_column(f"{section}.{key}"): v for key, v in values.items()}
        return row


@dataclass(frozen=True)
class MemoryRecord:
    """The result of replaying a request trace."""

    machine: str
    config: Mapping[str, Mapping[str, Value]]
    stats: Mapping[str, Value]
    requests: int
    host_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As a document; without the host's time, so that equal runs give equal bytes."""
        return {"machine": self.machine, "stats": dict(self.stats)}


def config_column(key: str) -> str:
    """The column of a configuration value."""
    return f"config.{key}"


def _varied_columns(records: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(config_column(key) for record in records for key in record.varied))


def parse_record(text: str, machine: str, varied: Iterable[str] = ()) -> Record:
    """Reads the engine's JSON.

    Args:
        text: The document.
        machine: The name under which results are filed.
        varied: Configuration keys that the comparison varies.
    """
    raw = _finite(json.loads(text))
    config = raw["config"]
    paths = [(key, *key.split(".", 1)) for key in varied]
    return Record(
        design=raw["design"],
        workload=raw["workload"],
        machine=machine,
        threads=raw["threads"],
        transactions=raw["transactions"],
        seed=raw["seed"],
        safe=raw["safe"],
        version=raw["version"],
        config=config,
        stats=raw["stats"],
        varied={key: config[section][name] for key, section, name in paths},
    )


def parse_memory_record(text: str, machine: str, host_seconds: float) -> MemoryRecord:
    """Reads the engine's JSON of a replay."""
    raw = _finite(json.loads(text))
    stats = raw["stats"]
    return MemoryRecord(machine, raw.get("config", {}), stats, stats["requests"], host_seconds)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replaces what JSON cannot say (not a number, infinite) by null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(document: object) -> str:
    """One JSON document: indented, ASCII, same bytes for the same content, never NaN."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_json(records: Iterable[Record], *, full: bool) -> str:
    """A JSON list of records."""
    return json_text([record.to_dict(full=full) for record in records])


def columns(rows: Sequence[Mapping[str, Value]], varied: Sequence[str] = ()) -> list[str]:
    """All columns of some rows, in order of first appearance.

    Configuration comes last, but for the columns of what is `varied`.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    last = {name for name in names if name == "version" or name.startswith("config.")}
    return sorted(names, key=lambda name: name in last and name not in varied)


def to_csv(records: Iterable[Record], *, full: bool) -> str:
    """CSV with a header; a statistic that a run does not have is an empty cell."""
    records = list(records)
    rows = [record.to_row(full=full) for record in records]
    text = io.StringIO()
    names = columns(rows, _varied_columns(records)) or IDENTITY
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _csv_cell(v) for k, v in row.items()} for row in rows)
    return text.getvalue()


def _csv_cell(value: Value) -> Value:
    return str(value).lower() if isinstance(value, bool) else value


def to_arrow(records: Iterable[Record], *, full: bool = True) -> pa.Table:
    """An Arrow table; units and descriptions travel in the metadata of the columns."""
    records = list(records)
    rows = [record.to_row(full=full) for record in records]
    return arrow_table(rows, _varied_columns(records))


def arrow_table(rows: Sequence[Mapping[str, Value]], varied: Sequence[str] = ()) -> pa.Table:
    """An Arrow table of flat rows; `varied` are columns, as in `columns`."""
    import pyarrow as pa

    known = catalogue()
    fields, arrays = [], []
    for name in columns(rows, varied):
        values = [row.get(name) for row in rows]
        numbers = [v for v in values if isinstance(v, int | float)]
        if any(isinstance(v, float) for v in numbers):
            values = [float(v) if isinstance(v, int) else v for v in values]
        large = any(isinstance(v, int) and v >= 1 << 63 for v in numbers)
        array = pa.array(values, type=pa.uint64() if large else None)
        statistic = known.described(name)
        metadata = {"unit": statistic.unit, "description": statistic.description}
        described = {key: text for key, text in metadata.items() if text}
        fields.append(pa.field(name, array.type, metadata=described or None))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_parquet(records: Iterable[Record], *, full: bool) -> bytes:
    """A Parquet file, in memory."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(to_arrow(records, full=full), buffer, compression="zstd")
    return buffer.getvalue()
