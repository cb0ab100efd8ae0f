"""Pictures of comparisons: what of the records is drawn, by kind."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from graven._engine import ConfigError
from graven.basics.arguments import known, text
from graven.basics.numbers import Value, caption, exact, steps
from graven.drawing.figures.bars import MEAN_TITLE, Bars, Panel
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.picture import Picture, Rows
from graven.drawing.figures.style import Look
from graven.drawing.figures.values import Number, Place, Source, Take, stat, total
from graven.drawing.palette import KIND_TITLES
from graven.drawing.scales import AUTO, SCALES
from graven.engine.catalogue import catalogue
from graven.results.comparison import MEAN, Comparison, Metric, metrics_of
from graven.results.conditions import Conditions
from graven.results.record import Record

THREADS = "threads"


class Chart(Protocol):
    """What can be drawn."""

    @property
    def rows(self) -> Rows:
        """What is drawn, as flat rows."""

    def draw(self, look: Look) -> Picture:
        """The picture."""


@dataclass(frozen=True)
class Asked:
    """What is to be drawn of a comparison.

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


def bars(asked: Asked) -> Bars:
    """Grouped bars of one statistic."""
    usual = asked.comparison.metrics[0].stat
    metric = asked.chosen(usual)
    return _bars(asked, metric.stat, metric, stat(metric.stat), None)


TRAFFIC = ("media_write_requests", "controller_write_requests", "written_bytes")
"""Statistics that are counted by kind of write."""


def traffic(asked: Asked) -> Bars:
    """Writes in stacks: data, log, metadata, garbage collection."""
    name = asked.metric or TRAFFIC[0]
    if name not in TRAFFIC:
        raise known("metric of kinds of writes", name, TRAFFIC)
    parts = {f"{name}_{kind}": title for kind, title in KIND_TITLES.items()}
    titles = {
        "media_write_requests": "Media writes",
        "controller_write_requests": "Writes accepted by the controller",
        "written_bytes": "Bytes written",
    }
    metric = Metric(next(iter(parts)), titles[name], higher_is_better=False)
    kinds = {title: stat(part) for part, title in parts.items()}
    return _bars(asked, name, metric, total(list(parts)), kinds)


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
    parts = {title: stat(name) for title, name in names.items()}
    whole = "pm_energy_pj" if len(names) == 2 else "pm_energy_pj + processor_energy_pj"
    return _bars(asked, whole, metric, total(list(names.values())), parts)


def _bars(
    asked: Asked, name: str, metric: Metric, take: Take, parts: Mapping[str, Take] | None
) -> Bars:
    source = Source(asked.comparison, asked.baseline)
    places = source.places
    panels = [
        Panel(
            place_caption(place, places),
            {
                (design, group): _in_parts(source, take, parts, design, group, place)
                for group in source.groups
                for design in asked.comparison.designs
            },
            {
                (design, group): source.absence(take, design, group, place)
                for group in source.groups
                for design in asked.comparison.designs
            },
        )
        for place in places
    ]
    return Bars(
        name,
        metric.title,
        metric.unit,
        metric.direction,
        source.groups,
        asked.comparison.designs,
        panels,
        asked.baseline,
        asked.comparison.unsafe,
        None if parts is None else {part: part for part in parts},
        source.what_spreads_are,
        asked.scales,
    )


def _in_parts(
    source: Source,
    take: Take,
    parts: Mapping[str, Take] | None,
    design: str,
    group: str,
    place: Place,
) -> Number | None:
    number = source.number(take, design, group, place)
    if number is None or parts is None:
        return number
    shares = {part: source.share(of, take, design, group, place) for part, of in parts.items()}
    return replace(number, parts={part: share or 0.0 for part, share in shares.items()})


def place_caption(place: Place, places: Sequence[Place]) -> str:
    """What tells a place from the others."""
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
    panels: dict[str, dict[str, list[Number | None]]] = {}
    for group in source.groups:
        for other in rest:
            name = MEAN_TITLE if group == MEAN else group
            said = place_caption(other, rest)
            panels[f"{name}, {said}" if said else name] = {
                design: [
                    source.number(take, design, group, _at(other, over, value)) for value in values
                ]
                for design in comparison.designs
            }
    return Lines(
        metric.stat,
        metric.title,
        metric.unit,
        metric.direction,
        _axis_title(over),
        _positions(values),
        [exact(value) for value in values],
        comparison.designs,
        panels,
        asked.baseline,
        comparison.unsafe,
        source.what_spreads_are,
        scales=asked.scales,
        absent=_absences(source, [take]),
    )


def _absences(source: Source, takes: Sequence[Take]) -> list[str]:
    """The reasons for which numbers are not there."""
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


def _positions(values: Sequence[Value]) -> list[float]:
    """Where values stand: numbers that grow by factors as their logarithms, others one by one."""
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
    panels: dict[str, dict[str, list[Number | None]]] = {}
    for group in source.groups:
        for place in source.places:
            title = MEAN_TITLE if group == MEAN else group
            said = place_caption(place, source.places)
            panels[f"{title}, {said}" if said else title] = {
                design: [source.number(take, design, group, place) for take in takes]
                for design in comparison.designs
            }
    first = next(iter(found))
    [metric] = metrics_of([first])
    words = name.replace("_cycles", "").replace("_", " ").capitalize()
    return Lines(
        name,
        words,
        metric.unit,
        metric.direction,
        "Share of them that take no longer",
        places,
        labels,
        comparison.designs,
        panels,
        asked.baseline,
        comparison.unsafe,
        source.what_spreads_are,
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
"""Kinds that are of multiples of a baseline's values if nothing else is said."""


def chart(kind: str, asked: Asked) -> Chart:
    """What is drawn of a comparison.

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
    made_with = Conditions.of(asked.comparison).line
    return replace(KINDS[kind](asked), made_with=made_with)


def is_one_of_each(records: Sequence[Record]) -> bool:
    """Whether no two results are of the same as far as pictures can tell."""
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
