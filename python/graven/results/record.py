"""Records: the results of single simulations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graven.basics.arguments import text
from graven.basics.numbers import Value, counted
from graven.engine.catalogue import catalogue
from graven.results.views import backend

IDENTITY = ("design", "workload", "machine", "threads", "transactions", "seed", "safe")
"""Fields that distinguish simulations; every format starts with these."""

NOTHING: Mapping[str, str] = {}

KIND = "region.kind"
"""The key that says what statistics are of: `STEADY`, or `WHOLE`, which it is if not set."""

STEADY = "steady"

WHOLE = "whole"

SET = ("variant", "settings")
"""Tables of settings, for a variant alone and for all; each is left out if it is empty."""

DOCUMENTS = (*SET, "measured")
"""Attributes that are tables of their own, which a flat row has as JSON."""


@dataclass(frozen=True, repr=False)
class Record:
    """The result of one simulation, with everything needed to repeat it.

    `varied` holds what a comparison varied, by `SECTION.KEY`, `settings` what was set for all of
    it, and `variant` what a variant sets itself; the same values stand in `config`. `design` is the
    name under which the result was compared, and `simulated` the design that was simulated: they
    differ for variants, and for names that stand for several designs.

    Examples:
        >>> record = graven.run("silo", "hash", threads=2, transactions=100)
        >>> record
        <Record: silo on hash, machine silo, threads 2, transactions 100, seed 1>
        >>> record.config["pm"]["write_ns"], record.safe
        (150.0, True)
        >>> graven.run("silo", "hash", threads=2, transactions=100, pm__write_ns=300).settings
        {'pm.write_ns': 300.0}

        Statistics by name. Those that only other designs have are zero:

        >>> record.stats["committed_transactions"]
        100
        >>> record.number("checkpoints")
        0

        As a document with the configuration or without it, and as one flat row:

        >>> list(record.to_dict(full=False))
        ['design', 'workload', 'machine', 'threads', 'transactions', 'seed', 'safe', 'stats']
        >>> record.to_row()["config.pm.write_ns"]
        150.0
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
    simulated: str = ""
    variant: Mapping[str, Value] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fills in the design that was simulated, which usually has the name itself."""
        if not self.simulated:
            object.__setattr__(self, "simulated", self.design)

    def __repr__(self) -> str:
        varied = "".join(f", {key} = {value}" for key, value in self.varied.items())
        return (
            f"<Record: {self.design} on {self.workload}, machine {self.machine}, "
            f"threads {self.threads}, transactions {self.transactions:,}, seed {self.seed}{varied}>"
        )

    def _repr_html_(self) -> str:
        return backend().html(self)

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

    @property
    def asked_transactions(self) -> int:
        """The number of transactions that was asked for.

        Of a region in steady state it is its length, or 0 if it is as long as precision asks for.

        Examples:
            >>> graven.run("fwb", "queue", transactions=400).asked_transactions
            400
        """
        if not self.measured:
            return self.transactions
        return int(self.config["region"]["transactions"] or 0)

    def value(self, stat: str) -> float | None:
        """A statistic as comparisons show it: of a region in steady state its estimate.

        Raises:
            ConfigError: there is no such statistic.

        Examples:
            >>> record = graven.run("fwb", "queue", transactions=400)
            >>> record.value("committed_transactions")
            400
        """
        estimate = self.estimate(stat)
        return self.number(stat) if estimate is None else estimate[0]

    @property
    def why_not_steady(self) -> list[str]:
        """Reasons why a region that was to be in steady state is not.

        Examples:
            >>> short = graven.run("fwb", "queue", transactions=400)
            >>> short.why_not_steady  # a whole run does not claim to be
            []
        """
        return list(self.measured.get("reasons", []))

    def estimate(self, stat: str) -> tuple[float, float | None] | None:
        """A statistic of a region in steady state, and half of its 95 % interval if there is one.

        What adds up with time is per transaction, since regions differ in length. Nothing if the
        record is of a whole run, or has no such number.

        Raises:
            ConfigError: there is no such statistic.

        Examples:
            >>> print(graven.run("silo", "hash", transactions=400).estimate("ipc"))
            None
        """
        value = self.number(stat)
        if not self.measured or value is None:
            return None
        found = self.measured["estimates"].get(_ESTIMATES.get(stat, stat))
        if found is None:
            return (value / self.transactions if adds_up(stat) else value), None
        mean, relative = found
        if stat == "throughput_tx_per_s":
            mean = float(self.config["core"]["frequency_mhz"]) * 1e6 / mean  # type: ignore[arg-type]
        elif stat.endswith("_pj"):
            mean /= 1000.0  # estimates of energy are in femtojoule
        return mean, mean * relative

    def to_dict(self, *, full: bool = True) -> dict[str, Any]:
        """As a document: identity and statistics, and when `full` the configuration too.

        `simulated` is there if it is not the design's name; `variant`, `settings` and `varied` are
        if something is in them.
        """
        document: dict[str, Any] = {name: getattr(self, name) for name in IDENTITY}
        if self.simulated != self.design:
            document["simulated"] = self.simulated
        document |= {name: dict(getattr(self, name)) for name in SET if getattr(self, name)}
        if self.varied:
            document["varied"] = dict(self.varied)
        if full:
            document |= {"version": self.version, "config": self.config}
        if self.measured:
            document["measured"] = dict(self.measured)
        return document | {"stats": dict(self.stats)}

    def to_row(self, *, full: bool = True) -> dict[str, Value]:
        """As one flat row: statistics by name, configuration as `config.SECTION.KEY`.

        What is varied comes before the statistics, `full` or not. `variant`, `settings` and
        `measured` are JSON.
        """
        row: dict[str, Value] = {name: getattr(self, name) for name in IDENTITY}
        if self.simulated != self.design:
            row["simulated"] = self.simulated
        row |= {name: json.dumps(getattr(self, name)) for name in DOCUMENTS if getattr(self, name)}
        row |= {config_column(key): value for key, value in self.varied.items()}
        row |= self.stats
        if full:
            row["version"] = self.version
            for section, values in self.config.items():
                row |= {config_column(f"{section}.{key}"): v for key, v in values.items()}
        return row


@dataclass(frozen=True, repr=False)
class MemoryRecord:
    """The result of replaying a request trace.

    Attributes:
        machine: The machine's name.
        config: The whole configuration.
        stats: Every statistic.
        requests: Requests of the trace.
        host_seconds: The time that the replay took.
        notes: Sentences about what was odd in the trace.

    Examples:
        >>> run = graven.run("silo", "hash", transactions=100, request_trace="requests.nvt")
        >>> record = graven.memory("requests.nvt", pm__write_ns=300)
        >>> record
        <MemoryRecord: 1,538 requests, machine silo>
        >>> record.config["pm"]["write_ns"]
        300.0
        >>> record.stats["cycles"]
        15223
        >>> list(record.to_dict())
        ['machine', 'stats']
    """

    machine: str
    config: Mapping[str, Mapping[str, Value]]
    stats: Mapping[str, Value]
    requests: int
    host_seconds: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<MemoryRecord: {counted(self.requests, 'request')}, machine {self.machine}>"

    def to_dict(self) -> dict[str, Any]:
        """As a document; without the host's time, so that equal runs give equal bytes."""
        return {"machine": self.machine, "stats": dict(self.stats)}


def config_column(key: str) -> str:
    """The column of a configuration value."""
    return f"config.{key}"


def parse_record(
    text: str,
    machine: str,
    varied: Iterable[str] = (),
    *,
    unread: Mapping[str, str] = NOTHING,
    settings: Iterable[str] = (),
    variant: Iterable[str] = (),
) -> Record:
    """Reads the engine's JSON.

    Args:
        text: The document.
        machine: The name under which results are filed.
        varied: The keys that the comparison varies.
        unread: Those of them that the design does not read, with their values: it was simulated
            without them, and they are put into its configuration.
        settings: Keys that are set for all of it.
        variant: Keys that a variant sets.
    """
    raw = _finite(json.loads(text))
    config = raw["config"]
    for key, said in unread.items():
        section, name = key.split(".", 1)
        config[section][name] = _as(said, config[section][name])
    own = list(variant)

    def values(keys: Iterable[str]) -> dict[str, Value]:
        paths = [(key, *key.split(".", 1)) for key in keys]
        return {key: config[section][name] for key, section, name in paths}

    def is_there(key: str) -> bool:
        section, name = key.split(".", 1)
        return name in config.get(section, {})

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
        varied=values(varied),
        settings=values(key for key in settings if key not in (*own, KIND) and is_there(key)),
        variant=values(own),
        measured=region_of(raw),
    )


def region_of(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what the engine measured of a region in steady state; empty for a whole run."""
    found: Mapping[str, Any] = raw.get("measured", {})
    return found if found.get("kind") == STEADY else {}


_ESTIMATES = {"throughput_tx_per_s": "cycles"}
"""The estimate that a statistic follows from, where that has another name."""


def adds_up(stat: str) -> bool:
    """Tells whether a statistic grows with the length of a run: a count, or an energy."""
    return catalogue().statistic(stat).kind == "count" or stat.endswith("_pj")


def _as(said: str, usual: Value) -> Value:
    """A value as the engine writes it: of the type that the key has."""
    if isinstance(usual, bool):
        return said == "true"
    if isinstance(usual, float):
        return float(said)
    return int(said) if isinstance(usual, int) else said


def parse_memory_record(text: str, machine: str, host_seconds: float) -> MemoryRecord:
    """Reads the engine's JSON of a replay."""
    raw = _finite(json.loads(text))
    stats = raw["stats"]
    notes = tuple(raw.get("notes", ()))
    config = raw.get("config", {})
    return MemoryRecord(machine, config, stats, stats["requests"], host_seconds, notes)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replaces what JSON cannot say (not a number, infinite) by null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
