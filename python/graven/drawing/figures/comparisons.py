"""Pictures of comparisons: what of the records is drawn, by kind."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from graven._engine import ConfigError
from graven.basics.arguments import known, text
from graven.basics.numbers import Value, caption, exact, steps
from graven.drawing.figures.bars import MEAN_TITLE, Bars, Panel
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.picture import Chart
from graven.drawing.figures.values import Number, Place, Source, Take, stat, total
from graven.drawing.palette import KIND_TITLES
from graven.drawing.scales import AUTO, SCALES
from graven.engine.catalogue import catalogue
from graven.results.comparison import MEAN, Comparison, Metric, metrics_of
from graven.results.conditions import Conditions
from graven.results.record import Record

THREADS = "threads"


@dataclass(frozen=True)
class Asked:
    """Request for a picture of a comparison.

    Attributes:
        comparison: The results.
        baseline: The design that numbers are multiples of; nothing for absolute numbers.
        metric: The statistic, or nothing for the usual one of the kind.
        over: What lines go over: `threads` or a varied key; nothing for the one that varies.
        scales: One of `scales.SCALES`.
    """

    comparison: Comparison
    baseline: str | None = None
    metric: str | None = None
    over: str | None = None
    scales: str = AUTO

    def chosen(self, usual: str) -> Metric:
        """The metric, or the usual one of the kind.

        Raises:
            ConfigError: there is no such statistic.
        """
        [metric] = metrics_of([usual if self.metric is None else text("metric", self.metric)])
        return metric

    def measure(self, name: str, title: str, metric: Metric) -> Measure:
        """Returns the head of a chart of a statistic, or of a sum, with the unit of a metric."""
        source = Source(self.comparison, self.baseline)
        return Measure(
            name,
            title,
            metric.unit,
            metric.direction,
            self.comparison.designs,
            self.baseline,
            self.comparison.unsafe,
            source.what_spreads_are,
            self.scales,
            Conditions.of(self.comparison).line,
        )


def bars(asked: Asked) -> Bars:
    """Grouped bars of one statistic."""
    return bars_of(asked, asked.chosen(asked.comparison.metrics[0].stat))


def bars_of(asked: Asked, metric: Metric, *, by_kind: bool = False) -> Bars:
    """Grouped bars of a metric, divided by kinds of writes if asked for."""
    measure = asked.measure(metric.stat, metric.title, metric)
    return _bars(asked, measure, stat(metric.stat), _kinds(metric.stat) if by_kind else None)


def _kinds(name: str) -> dict[str, str]:
    """Titles of kinds of writes, with the statistics that count them."""
    return {title: f"{name}_{kind}" for kind, title in KIND_TITLES.items()}


TRAFFIC = ("media_write_requests", "controller_write_requests", "written_bytes")
"""Statistics that are counted by kind of write."""


def traffic(asked: Asked) -> Bars:
    """Writes in stacks: data, log, metadata, garbage collection."""
    name = asked.metric or TRAFFIC[0]
    if name not in TRAFFIC:
        raise known("metric of kinds of writes", name, TRAFFIC)
    parts = _kinds(name)
    titles = {
        "media_write_requests": "Media writes",
        "controller_write_requests": "Writes accepted by the controller",
        "written_bytes": "Bytes written",
    }
    metric = Metric(next(iter(parts.values())), titles[name], higher_is_better=False)
    return _bars(asked, asked.measure(name, metric.title, metric), total([*parts.values()]), parts)


ENERGY = {
    "PM writes": "write_energy_pj",
    "PM reads": "read_energy_pj",
    "processor": "processor_energy_pj",
}
"""Energies that add up: nothing is in two of them."""


def energy(asked: Asked) -> Bars:
    """Energy in stacks: of PM writes and reads, and of the processor where that is asked for."""
    names = dict(ENERGY)
    if asked.metric is None:
        names.pop("processor")
    elif asked.metric != names["processor"]:
        raise ConfigError(
            f"metric: energy is stacked without one, or with {names['processor']} besides"
        )
    title = "Energy of PM" if len(names) == 2 else "Energy of PM and processor"
    metric = Metric("write_energy_pj", title, higher_is_better=False)
    whole = "pm_energy_pj" if len(names) == 2 else "pm_energy_pj + processor_energy_pj"
    return _bars(asked, asked.measure(whole, title, metric), total([*names.values()]), names)


def _bars(
    asked: Asked, measure: Measure, take: Take, parts: Mapping[str, str] | None = None
) -> Bars:
    """Bars of what is taken of records; `parts` has statistics that they are divided by."""
    source = Source(asked.comparison, asked.baseline)
    keys = list(itertools.product(measure.designs, source.groups))
    panels = [
        Panel(
            place_caption(place, source.places),
            {key: _in_parts(source, take, parts, *key, place) for key in keys},
            {key: source.absence(take, *key, place) for key in keys},
        )
        for place in source.places
    ]
    return Bars(measure, source.groups, panels, parts and {part: part for part in parts})


def _in_parts(
    source: Source,
    take: Take,
    parts: Mapping[str, str] | None,
    design: str,
    group: str,
    place: Place,
) -> Number | None:
    number = source.number(take, design, group, place)
    if number is None or parts is None:
        return number
    whole = total([*parts.values()])
    shares = {
        part: source.share(number.value, stat(name), whole, design, group, place)
        for part, name in parts.items()
    }
    return replace(number, parts=shares)


def place_caption(place: Place, places: Sequence[Place]) -> str:
    """Returns the conditions that tell a place from the others."""
    threads, varied = place
    texts = []
    if len({other[0] for other in places}) > 1:
        texts.append("1 thread" if threads == 1 else f"{threads} threads")
    several = {
        key: value
        for key, value in varied
        if len({dict(other[1]).get(key) for other in places}) > 1
    }
    return ", ".join([*texts, *([caption(several)] if several else [])])


# ---- lines -------------------------------------------------------------------------------------


def lines(asked: Asked) -> Lines:
    """One statistic over the number of threads, or over a key that is varied."""
    comparison = asked.comparison
    metric = asked.chosen(comparison.metrics[0].stat)
    source = Source(comparison, asked.baseline)
    over = _axis(asked, source)
    values = list(dict.fromkeys(_coordinate(place, over) for place in source.places))
    if all(isinstance(value, int | float) for value in values):
        values.sort(key=lambda value: float(value or 0))
    rest = list(dict.fromkeys(_without(place, over) for place in source.places))
    take = stat(metric.stat)
    points = {other: [(take, _at(other, over, value)) for value in values] for other in rest}
    return Lines(
        asked.measure(metric.stat, metric.title, metric),
        _axis_title(over),
        positions(values),
        [exact(value) for value in values],
        _panels(source, points),
        absent=_absences(source, [take]),
    )


def _panels(
    source: Source, points: Mapping[Place, Sequence[tuple[Take, Place]]]
) -> dict[str, dict[str, list[Number | None]]]:
    """Numbers of lines by panel and design: a panel for each group at each of the places."""
    panels = {}
    for group in source.groups:
        for place, along in points.items():
            name = MEAN_TITLE if group == MEAN else group
            said = place_caption(place, list(points))
            panels[f"{name}, {said}" if said else name] = {
                design: [source.number(take, design, group, at) for take, at in along]
                for design in source.comparison.designs
            }
    return panels


def _absences(source: Source, takes: Sequence[Take]) -> list[str]:
    """Returns the reasons for which numbers are missing."""
    designs = source.comparison.designs
    every = itertools.product(takes, designs, source.groups, source.places)
    return list(dict.fromkeys(reason for one in every if (reason := source.absence(*one))))


def _axis(asked: Asked, source: Source) -> str:
    """What lines go over.

    Raises:
        ConfigError: that does not vary.
    """
    axes = [THREADS, *asked.comparison.varied]
    several = [
        axis for axis in axes if len({_coordinate(place, axis) for place in source.places}) > 1
    ]
    if asked.over is None and several:
        return several[0]
    if asked.over in several:
        return str(asked.over)
    if not several:
        raise ConfigError(
            "lines: neither the number of threads nor a key varies; give several threads, or "
            "values to vary"
        )
    raise ConfigError(f"over: `{asked.over}` does not vary; {', '.join(several)} do")


def _axis_title(over: str) -> str:
    if over == THREADS:
        return "Threads"
    parameter = catalogue().parameters.get(over)
    return f"{over}, {parameter.unit}" if parameter is not None and parameter.unit else over


def _coordinate(place: Place, axis: str) -> Value:
    threads, varied = place
    return threads if axis == THREADS else dict(varied).get(axis)


def _without(place: Place, axis: str) -> Place:
    threads, varied = place
    if axis == THREADS:
        return 0, varied
    return threads, tuple(pair for pair in varied if pair[0] != axis)


def _at(rest: Place, axis: str, value: Value) -> Place:
    """A place of an axis, with the order of the keys that records have."""
    threads, varied = rest
    if axis == THREADS:
        assert isinstance(value, int), "threads are counted"
        return value, varied
    return threads, tuple(sorted((*varied, (axis, value))))


def positions(values: Sequence[Value]) -> list[float]:
    """Positions of values: numbers that grow by factors by their logarithms, others one by one."""
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or isinstance(values[0], bool):
        return [float(at) for at in range(len(values))]
    if len(numbers) > 1 and numbers[0] > 0 and numbers[-1] >= 4 * numbers[0]:
        return [math.log2(number) for number in numbers]
    return numbers


# ---- latencies ---------------------------------------------------------------------------------

LATENCY = "transaction_latency_cycles"
_PERCENTILE = re.compile(r"(?P<of>\w+)_p(?P<whole>\d\d)(?P<rest>\d*)")


def latency(asked: Asked) -> Lines:
    """The distribution of a latency by the percentiles that records have."""
    comparison = asked.comparison
    name = LATENCY if asked.metric is None else text("metric", asked.metric)
    found = _percentiles(name)
    if not found:
        having = dict.fromkeys(
            match["of"] for s in catalogue().stats if (match := _PERCENTILE.fullmatch(s.name))
        )
        raise known("metric with percentiles", name, having)
    source = Source(comparison, asked.baseline)
    places = [-math.log10(1.0 - share) for share in found.values()]
    labels = [f"{steps([100 * share])[0]} %" for share in found.values()]
    takes = [stat(each) for each in found]
    if any(item.name == f"{name}_max" for item in catalogue().stats):
        # The largest of n is where all but one in n take less.
        fewest = min(record.transactions for record in comparison.records)
        places.append(max(math.log10(fewest), places[-1] + 1.0))
        labels.append("all")
        takes.append(stat(f"{name}_max"))
    points = {place: [(take, place) for take in takes] for place in source.places}
    [metric] = metrics_of([next(iter(found))])
    words = name.replace("_cycles", "").replace("_", " ").capitalize()
    return Lines(
        asked.measure(name, words, metric),
        "Share of them that take no longer",
        places,
        labels,
        _panels(source, points),
        log=True,
        joined=False,
        absent=_absences(source, takes),
    )


def _percentiles(name: str) -> dict[str, float]:
    """The statistics with percentiles of another, and the share that each is of."""
    found = {}
    for item in catalogue().stats:
        match = _PERCENTILE.fullmatch(item.name)
        if match is not None and match["of"] == name:
            found[item.name] = float(f"0.{match['whole']}{match['rest']}")
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


KINDS: Mapping[str, Callable[[Asked], Bars | Lines]] = {
    "bars": bars,
    "lines": lines,
    "traffic": traffic,
    "energy": energy,
    "latency": latency,
}
"""Kinds of pictures of a comparison."""

RELATIVE = frozenset({"bars", "traffic", "energy"})
"""Kinds that show multiples of a baseline's values by default."""


def chart(kind: str, asked: Asked) -> Chart:
    """Returns the chart of a comparison.

    Raises:
        ConfigError: there is no such kind, the comparison has no results, or not what the kind
            needs.
    """
    if text("kind", kind) not in KINDS:
        raise known("kind", kind, KINDS)
    if not asked.comparison.records:
        raise ConfigError("there are no results to draw")
    if text("scales", asked.scales) not in SCALES:
        raise known("scales", asked.scales, SCALES)
    _require_one_of_each(asked.comparison.records)
    return KINDS[kind](asked)


def is_one_of_each(records: Sequence[Record]) -> bool:
    """Tells whether a picture can tell all results apart."""
    try:
        _require_one_of_each(records)
    except ConfigError:
        return False
    return True


def _require_one_of_each(records: Sequence[Record]) -> None:
    """Refuses results that a picture could not tell apart.

    Raises:
        ConfigError: two are of the same design, workload, threads, seed and varied values.
    """
    seen: dict[tuple[object, ...], Record] = {}
    for record in records:
        key = (record.design, record.workload, record.threads, record.seed, *record.varied.items())
        other = seen.setdefault(key, record)
        if other is not record:
            raise ConfigError(
                f"there are two results of {record.design} on {record.workload} with "
                f"{record.threads} threads and seed {record.seed}; they differ in what is not "
                "varied, such as the machine or the number of transactions"
            )
