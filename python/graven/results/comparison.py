"""Comparisons: the records of several designs side by side, and their values over a baseline's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graven._engine import ConfigError
from graven.basics import output
from graven.basics.arguments import integer, meant, text
from graven.basics.arguments import known as unknown
from graven.basics.arguments import path as path_text
from graven.basics.numbers import Value, caption, counted, scaled
from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.engine.variants import Variant
from graven.results.formats import FORMATS, arrow_table, encode, to_arrow
from graven.results.frames import Frames, dataset
from graven.results.intervals import (
    Interval,
    arithmetic,
    geometric,
    of_record,
    over_seeds,
    relative,
)
from graven.results.record import Record, config_column
from graven.results.views import Picture, backend

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

DEFAULT_BASELINE = "base"
DEFERRED = "residual_dirty_lines"
"""Changes that only the caches hold at the end of a run."""
MEAN = "mean"
"""The row or group that holds the geometric mean over the workloads."""


@dataclass(frozen=True)
class Metric:
    """A statistic that designs are compared by.

    Examples:
        >>> metric = graven.METRICS[0]
        >>> metric.stat, metric.unit
        ('throughput_tx_per_s', 'transactions/s')
        >>> metric.direction
        'higher is better'
    """

    stat: str
    title: str
    higher_is_better: bool

    @property
    def unit(self) -> str:
        """Unit of the absolute value."""
        return catalogue().statistic(self.stat).unit

    @property
    def direction(self) -> str:
        """Better direction, in words."""
        return "higher is better" if self.higher_is_better else "lower is better"


METRICS: tuple[Metric, ...] = (
    Metric("throughput_tx_per_s", "Throughput", True),
    Metric("media_write_requests", "Media writes", False),
    Metric("written_bytes_per_transaction", "Bytes written per transaction", False),
    Metric("transaction_latency_cycles_mean", "Mean transaction latency", False),
    Metric("write_energy_pj", "Write energy", False),
)
"""Metrics that designs are compared by, unless others are asked for.

Examples:
    >>> for metric in graven.METRICS:
    ...     print(metric.stat, metric.direction)
    throughput_tx_per_s higher is better
    media_write_requests lower is better
    written_bytes_per_transaction lower is better
    transaction_latency_cycles_mean lower is better
    write_energy_pj lower is better
"""


HIGHER_IS_BETTER = frozenset({"throughput_tx_per_s", "ipc"})
"""Statistics of which more is better; of all others less is, or neither is known."""


def metrics_of(stats: Sequence[str] | None) -> tuple[Metric, ...]:
    """The metrics of these statistics, or `METRICS`.

    Raises:
        ConfigError: there is no such statistic.
    """
    if stats is None:
        return METRICS
    titles = {metric.stat: metric for metric in METRICS}
    numbers = [
        item.name
        for item in catalogue().stats
        if "*" not in item.name and item.name != "image_digest"
    ]
    for stat in stats:
        if stat not in numbers:
            raise ConfigError(
                f"metrics: unknown statistic `{stat}`; {meant(stat, numbers)} "
                "(`graven list stats` shows all)"
            )
    return tuple(
        titles.get(stat) or Metric(stat, _title(stat), stat in HIGHER_IS_BETTER) for stat in stats
    )


_ABBREVIATIONS = {
    "ipc": "IPC", "pm": "PM", "dram": "DRAM", "l1": "L1", "l2": "L2", "llc": "LLC", "mshr": "MSHR",
    "clwb": "CLWB", "adr": "ADR",
}  # fmt: skip
_UNITS = frozenset({"pj", "ms", "cycles", "bytes"})
"""Last words of names that say the unit, which tables say anyway."""


def _title(stat: str) -> str:
    words = stat.split("_")
    if len(words) > 2 and words[-1] in _UNITS:
        words.pop()
    text = " ".join(_ABBREVIATIONS.get(word, word) for word in words)
    return text[:1].upper() + text[1:]


def _check_name(what: str, name: str, here: Sequence[str], anywhere: Sequence[str]) -> None:
    """Refuses a name that is neither one of those with a result nor any that there is.

    Raises:
        ConfigError: it is neither.
    """
    if name not in {*here, *anywhere}:
        raise unknown(what, name, here or anywhere)


class _Shown(Frames):
    """Base of results that are drawn, and shown in notebooks."""

    def plot(
        self,
        kind: str = "bars",
        metric: str | None = None,
        *,
        over: str | None = None,
        width: str | float = "column",
        theme: str = "light",
        style: object = None,
        scales: str = "auto",
    ) -> Picture:
        """Draws absolute values, or of a `Normalised` multiples of its baseline's.

        Args:
            kind: `bars`, `lines`, `traffic`, `energy` or `latency` (docs/guides/plots.md).
            metric: A statistic; the first of the comparison, or the usual one of the kind.
            over: Of lines, what they go over: `threads` or a varied key.
            width: `column` (3.3 in), `text` (7 in), or inches.
            theme: `light` or `dark`.
            style: A style of matplotlib that applies on top: a file, a name, or settings.
            scales: `auto` gives values that one scale would hide another one; `one` does not.

        Raises:
            ConfigError: one of them is not allowed, or the results are not what the kind needs.
        """
        return backend().picture(
            self, width, theme, style, kind=kind, metric=metric, over=over, scales=scales
        )

    def _repr_html_(self) -> str:
        return backend().html(self)


@dataclass(frozen=True, repr=False)
class Comparison(_Shown):
    """Results of an experiment, in the order in which they were asked for.

    If parameters were varied, single results are looked up in one combination of values (`at`).

    Attributes:
        records: The results.
        preferred_baseline: The machine's baseline, if it names one.
        metrics: What designs are compared by.
        whole: The comparison that this is one combination of; it says which designs and workloads
            there are.
        machine: The machine, if it is known.
        settings: What was set on it, by `SECTION.KEY`.

    Examples:
        >>> result = graven.compare(
        ...     "base,silo", "hash,queue", threads=[1, 4], transactions=200, from_start=True
        ... )
        >>> result
        <Comparison: 8 results of 2 designs on 2 workloads with 2 numbers of threads>
        >>> result.designs, result.workloads, result.threads
        (['base', 'silo'], ['hash', 'queue'], [1, 4])
        >>> [record.design for record in result][:2]
        ['base', 'silo']

        Single results, and some of them:

        >>> result.find("silo", "hash", threads=4)
        <Record: silo on hash, machine silo, threads 4, transactions 200, seed 1>
        >>> result.number("media_write_requests", "silo", "hash", threads=4)
        259
        >>> result["silo"].select(workloads="hash")
        <Comparison: 2 results of 1 design on 1 workload with 2 numbers of threads>
        >>> result.unsafe, result.variants
        (set(), {})
        >>> print(result.deferred_note())
        Lines that PM does not hold yet when a run ends (writes still to come), mean: base 0,
        silo 0.

        Multiples of a baseline's, a picture with its data, a report, and files:

        >>> result.default_baseline()
        'base'
        >>> round(result.normalised("base").value("cycles", "silo", "hash", 4), 2)
        0.49
        >>> [path.name for path in result.plot("lines").save("throughput.pdf")]
        ['throughput.pdf', 'throughput.csv']
        >>> result.report("report.html")
        >>> result.save("results.parquet")
        >>> graven.load("results.parquet")
        <Comparison: 8 results of 2 designs on 2 workloads with 2 numbers of threads>
        >>> result.to_arrow().select(["design", "workload", "cycles"]).to_pylist()[0]
        {'design': 'base', 'workload': 'hash', 'cycles': 254619}

        Of several seeds, numbers are means with half of their 95 % confidence interval:

        >>> several = graven.compare(
        ...     "base,silo", "hash", transactions=200, seeds=2, from_start=True
        ... )
        >>> several.seeds, several.find("silo", "hash", threads=8, seed=2).seed
        ([1, 2], 2)
        >>> several.interval("committed_transactions", "silo", "hash", threads=8).half_width
        0.0

        Of a key that varies, results are looked up in one combination of values:

        >>> writes = {"pm.write_ns": [150, 300]}
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, vary=writes, from_start=True
        ... )
        >>> result.varied
        {'pm.write_ns': [150.0, 300.0]}
        >>> result.combinations
        [{'pm.write_ns': 150.0}, {'pm.write_ns': 300.0}]
        >>> slow = result.at({"pm.write_ns": 300})
        >>> slow.caption
        'pm.write_ns = 300'
        >>> slow.number("cycles", "silo", "hash", 8)
        36284
    """

    records: tuple[Record, ...]
    preferred_baseline: str | None = None
    metrics: tuple[Metric, ...] = METRICS
    whole: Comparison | None = field(default=None, repr=False)
    machine: Machine | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)

    def __bool__(self) -> bool:
        return bool(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __add__(self, other: Comparison) -> Comparison:
        """The two put together, as `graven.combine` does it.

        Raises:
            ConfigError: they are not comparable.
        """
        from graven.results.combining import combine

        if not isinstance(other, Comparison):
            return NotImplemented
        return combine(self, other)

    def __getitem__(self, design: str) -> Comparison:
        return self.select(designs=design)

    def __repr__(self) -> str:
        designs = {record.design for record in self.records}
        workloads = {record.workload for record in self.records}
        parts = [counted(len(designs), "design"), f"on {counted(len(workloads), 'workload')}"]
        several = {"numbers of threads": self.threads, "seeds": self.seeds}
        found = [f"{len(values)} {what}" for what, values in several.items() if len(values) > 1]
        if found:
            parts.append(f"with {' and '.join(found)}")
        if len(self.combinations) > 1:
            parts.append(f"in {len(self.combinations)} combinations")
        return f"<Comparison: {counted(len(self), 'result')} of {' '.join(parts)}>"

    def select(
        self,
        designs: str | Iterable[str] | None = None,
        workloads: str | Iterable[str] | None = None,
    ) -> Comparison:
        """The results of some designs and workloads, as a comparison of their own.

        Args:
            designs: Names, or a list separated by commas; all if not given.
            workloads: The same of workloads.

        Raises:
            ConfigError: there is no result of one of them.
        """
        chosen = _chosen("design", designs, self.designs)
        of = _chosen("workload", workloads, self.workloads)
        records = tuple(r for r in self.records if r.design in chosen and r.workload in of)
        return replace(self, records=records, whole=None)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the results with their configuration: .json, .csv or .parquet, as named.

        `graven.load` reads them.

        Raises:
            ConfigError: the name has another ending.
            OutputError: the file cannot be written.
        """
        file = Path(path_text("path", path))
        form = file.suffix[1:].lower()
        if form not in FORMATS:
            allowed = ", ".join(f".{form}" for form in FORMATS)
            raise ConfigError(f"path: {file}: the name of a file must end in {allowed}")
        output.write(file, encode(self.records, form, full=True))

    def report(self, path: str | PathLike[str], baseline: str | None = None) -> None:
        """Writes the report, one HTML file that opens without a network.

        Args:
            path: The file.
            baseline: The design that others are relative to; the default one if not given.

        Raises:
            ConfigError: there are no results, the baseline is not among the designs, or the machine
                is not known: that of results which were loaded is, if it is a preset.
            OutputError: the file cannot be written.
        """
        if not self.records:
            raise ConfigError("there are no results to report")
        machine = self.machine or _machine_of(self.records)
        content = backend().page(self.normalised(baseline), machine, self.settings)
        output.write(Path(path_text("path", path)), content.encode())

    @property
    def _all(self) -> tuple[Record, ...]:
        return self.records if self.whole is None else self.whole.records

    @cached_property
    def designs(self) -> list[str]:
        """Designs with at least one result, in any combination."""
        return list(dict.fromkeys(record.design for record in self._all))

    @cached_property
    def workloads(self) -> list[str]:
        """Workloads with at least one result, in any combination."""
        return list(dict.fromkeys(record.workload for record in self._all))

    @cached_property
    def threads(self) -> list[int]:
        """Thread counts with at least one result."""
        return list(dict.fromkeys(record.threads for record in self.records))

    @cached_property
    def seeds(self) -> list[int]:
        """Seeds with at least one result."""
        return list(dict.fromkeys(record.seed for record in self._all))

    @cached_property
    def unsafe(self) -> set[str]:
        """Designs among the results that lose committed data at a power failure."""
        return {record.design for record in self._all if not record.safe}

    @cached_property
    def variants(self) -> dict[str, Variant]:
        """Names of designs that are variants, with the design that each is, and what it sets."""
        found: dict[str, Variant] = {}
        for record in self._all:
            is_known = record.design in catalogue().design_names
            if record.design != record.simulated and not is_known:
                found.setdefault(record.design, Variant(record.simulated, record.variant))
        return found

    @cached_property
    def combinations(self) -> list[Mapping[str, Value]]:
        """Combinations of varied values with at least one result; one, empty, if nothing varies."""
        found = {tuple(record.varied.items()): record.varied for record in self.records}
        return list(found.values())

    @cached_property
    def varied(self) -> dict[str, list[Value]]:
        """The values of each key that is varied."""
        found: dict[str, dict[Value, None]] = {}
        for combination in self.combinations:
            for key, value in combination.items():
                found.setdefault(key, {})[value] = None
        return {key: list(values) for key, values in found.items()}

    @property
    def caption(self) -> str:
        """The one combination of this comparison: `workload.element_bytes = 4 KB`; or nothing."""
        return caption(self.combinations[0]) if len(self.combinations) == 1 else ""

    def at(self, combination: Mapping[str, Value]) -> Comparison:
        """The results of one combination of varied values.

        Raises:
            ConfigError: there are none.
        """
        records = tuple(r for r in self.records if dict(r.varied) == dict(combination))
        if not records:
            raise ConfigError(
                f"no results with {caption(combination)}; there are: {self._choices()}"
            )
        return replace(self, records=records, whole=self.whole or self)

    def _choices(self) -> str:
        return "; ".join(caption(combination) for combination in self.combinations)

    @cached_property
    def _index(self) -> dict[tuple[str, str, int, int], Record]:
        return {(r.design, r.workload, r.threads, r.seed): r for r in self.records}

    def find(
        self, design: str, workload: str, threads: int, seed: int | None = None
    ) -> Record | None:
        """The record of one simulation, if it finished.

        Raises:
            ConfigError: there are several combinations of varied values, and `at` chooses one; or
                several seeds, and none is given; or there is no such design or workload, neither
                here nor anywhere.
        """
        if len(self.combinations) > 1:
            raise ConfigError(f"several combinations: choose with `at` from {self._choices()}")
        if seed is None and len(self.seeds) > 1:
            seeds = ", ".join(map(str, self.seeds))
            raise ConfigError(f"seed: there are results of several, {seeds}; choose one")
        design, workload = text("design", design), text("workload", workload)
        one = (self.seeds or [1])[0] if seed is None else integer("seed", seed, 0)
        record = self._index.get((design, workload, integer("threads", threads), one))
        if record is None:
            _check_name("design", design, self.designs, catalogue().design_names)
            _check_name("workload", workload, self.workloads, catalogue().workload_names)
        return record

    def number(self, stat: str, design: str, workload: str, threads: int) -> float | None:
        """A statistic; `None` if a simulation of it has not finished, or has no such number.

        Of several seeds it is the mean.

        Raises:
            ConfigError: there is no such statistic, design or workload; or as of `find`.
        """
        found = self.interval(stat, design, workload, threads)
        return None if found is None else found.mean

    def interval(self, stat: str, design: str, workload: str, threads: int) -> Interval | None:
        """The same with half of its confidence interval, if there is one.

        Raises:
            ConfigError: as of `number`.
        """
        return over_seeds(self._of_seeds(stat, design, workload, threads))

    def _of_seeds(
        self, stat: str, design: str, workload: str, threads: int
    ) -> list[Interval | None]:
        """A statistic of each seed."""
        found = []
        for seed in self.seeds or [1]:
            record = self.find(design, workload, threads, seed)
            if record is None:
                catalogue().statistic(text("stat", stat))
            found.append(None if record is None else of_record(record, stat))
        return found

    def deferred_note(self) -> str | None:
        """Counts the lines that each design left unwritten: media writes leave these out.

        Those of a region in steady state do not.
        """
        means: list[str] = []
        for design in self.designs:
            whole = [r for r in self.records if r.design == design and not r.measured]
            lines = [r.number(DEFERRED) for r in whole]
            known = [value for value in lines if value is not None]
            if known:
                means.append(f"{design} {scaled(math.fsum(known) / len(known))}")
        if not means:
            return None
        return (
            "Lines that PM does not hold yet when a run ends (writes still to come), mean: "
            + ", ".join(means)
            + "."
        )

    def default_baseline(self) -> str:
        """The machine's, or `base`, if it is among the results; else the first safe design."""
        if self.preferred_baseline is not None and self.preferred_baseline in self.designs:
            return self.preferred_baseline
        if DEFAULT_BASELINE in self.designs or not self.designs:
            return DEFAULT_BASELINE
        return next((d for d in self.designs if d not in self.unsafe), self.designs[0])

    def normalised(self, baseline: str | None = None) -> Normalised:
        """Every metric over the baseline's, workload by workload, and the geometric mean.

        Raises:
            ConfigError: no result is of that design.
        """
        chosen = baseline or self.default_baseline()
        if self.designs and chosen not in self.designs:
            known = ", ".join(self.designs)
            raise ConfigError(f"baseline `{chosen}` is not among the designs compared: {known}")
        return Normalised(self, chosen)

    def to_arrow(self) -> pa.Table:
        """One row for each simulation: identity, statistics, configuration."""
        return to_arrow(self.records)

    def to_xarray(self) -> xr.Dataset:
        """Every statistic that is a number, over design, workload, threads and what is varied.

        Of several seeds, they are an axis, too.

        Raises:
            ImportError: xarray is not installed.
            ConfigError: two results differ in something else, in their seed for example.

        Examples:
            >>> result = graven.compare(
            ...     "base,silo", "hash,queue", transactions=200, from_start=True
            ... )
            >>> cycles = result.to_xarray()["cycles"]
            >>> cycles.dims
            ('design', 'workload', 'threads')
            >>> ratio = cycles.sel(design="silo") / cycles.sel(design="base")
            >>> round(float(ratio.sel(workload="hash", threads=8)), 2)
            0.43
        """
        varied = [config_column(key) for key in self.varied]
        stats = dict.fromkeys(
            name
            for record in self.records
            for name, value in record.stats.items()
            if isinstance(value, int | float)
        )
        seeds = ["seed"] if len(self.seeds) > 1 else []
        axes = ["design", "workload", "threads", *seeds, *varied]
        return dataset(self.to_arrow(), axes, list(stats))


def _chosen(what: str, given: str | Iterable[str] | None, there: Sequence[str]) -> Sequence[str]:
    """Names that are asked for.

    Raises:
        ConfigError: one is not there.
    """
    if given is None:
        return there
    names = given.split(",") if isinstance(given, str) else list(given)
    chosen = [text(what, name).strip() for name in names]
    for name in chosen:
        if name not in there:
            raise unknown(what, name, there)
    return chosen


def _machine_of(records: Sequence[Record]) -> Machine:
    """The preset that records are of.

    Raises:
        ConfigError: they are of several machines, or of a file.
    """
    names = list(dict.fromkeys(record.machine for record in records))
    if len(names) > 1:
        raise ConfigError(f"the results are of several machines: {', '.join(names)}")
    catalogue().machine(names[0])
    return Machine(names[0])


@dataclass(frozen=True, repr=False)
class Normalised(_Shown):
    """A comparison in multiples of one design's results.

    Each is relative to the result with the same number of threads and the same varied values.

    Examples:
        >>> result = graven.compare(
        ...     "base,fwb,silo", "hash,queue", transactions=200, from_start=True
        ... )
        >>> relative = result.normalised("base")
        >>> relative
        <Normalised: <Comparison: 6 results of 3 designs on 2 workloads>, relative to base>

        The throughput of Silo, in multiples of the baseline's with as many threads: on one
        workload, and the geometric and the arithmetic mean over all:

        >>> round(relative.value("throughput_tx_per_s", "silo", "hash", threads=8), 2)
        2.32
        >>> round(relative.mean("throughput_tx_per_s", "silo", threads=8), 2)
        2.62
        >>> round(relative.arithmetic_mean("throughput_tx_per_s", "silo", threads=8), 2)
        2.64

        The same with half of the confidence interval, which one seed does not give:

        >>> relative.interval("throughput_tx_per_s", "silo", "hash", threads=8).half_width is None
        True
        >>> print(relative.mean_interval("throughput_tx_per_s", "silo", threads=8))
        2.62
        >>> print(relative.arithmetic_mean_interval("throughput_tx_per_s", "silo", threads=8))
        2.64

        All of it as rows, and as a picture:

        >>> row = relative.rows()[1]
        >>> row["workload"], row["design"], round(row["value"], 2)
        ('hash', 'fwb', 2.39)
        >>> relative.to_arrow().num_rows
        45
        >>> [path.name for path in relative.plot("bars", "media_write_requests").save("writes.svg")]
        ['writes.svg', 'writes.csv']

        If something was varied, each combination of values is by itself:

        >>> writes = {"pm.write_ns": [150, 300]}
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, vary=writes, from_start=True
        ... )
        >>> relative = result.normalised("base")
        >>> for part in relative.parts():
        ...     print(part.comparison.caption, round(part.value("cycles", "silo", "hash", 8), 2))
        pm.write_ns = 150 0.43
        pm.write_ns = 300 0.44
        >>> slow = relative.at({"pm.write_ns": 300})
        >>> round(slow.value("cycles", "silo", "hash", 8), 2)
        0.44
    """

    comparison: Comparison
    baseline: str

    def __repr__(self) -> str:
        return f"<Normalised: {self.comparison!r}, relative to {self.baseline}>"

    def at(self, combination: Mapping[str, Value]) -> Normalised:
        """One combination of varied values.

        Raises:
            ConfigError: it has no results.
        """
        return replace(self, comparison=self.comparison.at(combination))

    def parts(self) -> list[Normalised]:
        """Each combination by itself."""
        return [self.at(combination) for combination in self.comparison.combinations]

    def value(self, stat: str, design: str, workload: str, threads: int) -> float | None:
        """The ratio; `None` if either side is missing or the baseline's is zero.

        Of several seeds it is the mean of the ratios of each.

        Raises:
            ConfigError: as of `Comparison.number`.
        """
        found = self.interval(stat, design, workload, threads)
        return None if found is None else found.mean

    def interval(self, stat: str, design: str, workload: str, threads: int) -> Interval | None:
        """The ratio with half of its confidence interval, if there is one.

        Raises:
            ConfigError: as of `Comparison.number`.
        """
        return over_seeds(self._of_seeds(stat, design, workload, threads))

    def _of_seeds(
        self, stat: str, design: str, workload: str, threads: int
    ) -> list[Interval | None]:
        """The ratio of each seed."""
        of = self.comparison._of_seeds
        pairs = zip(
            of(stat, design, workload, threads),
            of(stat, self.baseline, workload, threads),
            strict=True,
        )
        is_itself = design == self.baseline
        return [relative(own, reference, is_itself=is_itself) for own, reference in pairs]

    def mean(self, stat: str, design: str, threads: int) -> float | None:
        """Geometric mean over all workloads; `None` unless every one of them has a ratio.

        Of several seeds it is the mean of the geometric means of each.
        """
        found = self.mean_interval(stat, design, threads)
        return None if found is None else found.mean

    def mean_interval(self, stat: str, design: str, threads: int) -> Interval | None:
        """The geometric mean with half of its confidence interval, if there is one."""
        return self._over_workloads(geometric, stat, design, threads)

    def arithmetic_mean(self, stat: str, design: str, threads: int) -> float | None:
        """Arithmetic mean of the same ratios: papers seldom say which of the two theirs is."""
        found = self.arithmetic_mean_interval(stat, design, threads)
        return None if found is None else found.mean

    def arithmetic_mean_interval(self, stat: str, design: str, threads: int) -> Interval | None:
        """The arithmetic mean with half of its confidence interval, if there is one."""
        return self._over_workloads(arithmetic, stat, design, threads)

    def _over_workloads(
        self,
        mean: Callable[[Sequence[Interval | None]], Interval | None],
        stat: str,
        design: str,
        threads: int,
    ) -> Interval | None:
        """Returns the mean over seeds of a mean over the workloads of each seed."""
        workloads = self.comparison.workloads
        of = [self._of_seeds(stat, design, workload, threads) for workload in workloads]
        return over_seeds([mean(ratios) for ratios in zip(*of, strict=True)])

    def rows(self) -> list[dict[str, Value]]:
        """Flat rows: metric, threads, workload (or `mean`), design, value.

        Of several seeds each has `half_width`, too.

        What is varied has columns `config.SECTION.KEY` of its own, after the threads.
        """
        parts = self.parts()
        return [
            row
            for metric in self.comparison.metrics
            for part in parts
            for row in part._metric_rows(metric.stat)
        ]

    def _metric_rows(self, stat: str) -> Iterator[dict[str, Value]]:
        comparison = self.comparison
        [combination] = comparison.combinations
        varied = {config_column(key): value for key, value in combination.items()}
        for threads in comparison.threads:
            for workload in [*comparison.workloads, MEAN]:
                for design in comparison.designs:
                    found = (
                        self.mean_interval(stat, design, threads)
                        if workload == MEAN
                        else self.interval(stat, design, workload, threads)
                    )
                    row: dict[str, Value] = {"metric": stat, "threads": threads, **varied}
                    row |= {"workload": workload, "design": design}
                    row["value"] = None if found is None else found.mean
                    if len(comparison.seeds) > 1:
                        row["half_width"] = None if found is None else found.half_width
                    yield row

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return arrow_table(self.rows(), [config_column(key) for key in self.comparison.varied])
