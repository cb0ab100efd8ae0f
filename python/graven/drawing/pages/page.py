"""The page: from a comparison to one HTML text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources

from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from graven import _engine
from graven.basics.numbers import Value, caption, exact, ratio, scaled
from graven.drawing.figures.bars import Bars
from graven.drawing.figures.comparisons import Asked, bars_of, positions
from graven.drawing.figures.embedded import Drawing
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.values import Number
from graven.drawing.pages.simulations import Run, Simulations, places_of
from graven.drawing.palette import KINDS, design_styles
from graven.engine.catalogue import Design, catalogue
from graven.engine.machine import Machine
from graven.results.command_line import compare_command
from graven.results.comparison import MEAN, METRICS, Comparison, Metric, Normalised
from graven.results.conditions import Conditions
from graven.results.intervals import (
    best_of,
    explained,
    ratio_text,
    rivals_of,
    scaled_text,
)
from graven.results.region import notes

ARITHMETIC = "arithmetic mean"
"""The last column of a table of ratios."""

KIND_STAT = "media_write_requests"
"""The statistic that is split by kind: `_data`, `_log`, `_metadata`, `_gc`."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table of numbers."""

    text: str
    best: bool = False
    simulation: int | None = None
    """The simulation that it is of, by its place in the report's list."""


@dataclass(frozen=True)
class NumberTable:
    """Designs down, workloads across."""

    caption: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True)
class Group:
    """Content of a section for one combination of varied values, which `caption` names."""

    caption: str
    drawing: Drawing
    table: NumberTable | None = None
    other_threads: Sequence[NumberTable] = ()
    absolute: Sequence[NumberTable] = ()
    deferred: str | None = None


@dataclass(frozen=True)
class Part:
    """A section of the page about one metric."""

    key: str
    title: str
    lead: str
    kinds: bool
    groups: Sequence[Group]


@dataclass(frozen=True)
class Highlight:
    """The best safe design by one metric."""

    title: str
    design: str
    value: str


@dataclass(frozen=True)
class Setting:
    """A configuration value and where it is from."""

    key: str
    value: str
    unit: str
    origin: str
    kind: str


HERE = "graven.drawing.pages"
"""The package whose files pages are made of."""


def text(name: str, package: str = HERE) -> str:
    """A file of a package's folder."""
    return resources.files(package).joinpath(name).read_text("utf-8")


@cache
def environment(package: str = HERE) -> Environment:
    """Returns the templates of a package's files, which may use those of this package."""
    loaders = [FunctionLoader(partial(_text_or_none, package=each)) for each in (package, HERE)]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(exact=exact, ratio=ratio, scaled=scaled)
    return made


def complete(
    name: str,
    *,
    styles: Sequence[str] = ("page.css",),
    scripts: Sequence[str] = ("tables.js",),
    **content: object,
) -> str:
    """Returns a page that loads nothing: a template with its content, styles and scripts."""
    content = {
        "version": _engine.__version__,
        "build": _engine.build(),
        "unsafe": catalogue().unsafe_designs(),
        "style": Markup("".join(map(text, styles))),
        "script": Markup("".join(map(text, scripts))),
        **content,
    }
    return environment().get_template(name).render(content) + "\n"


def _text_or_none(name: str, package: str) -> str | None:
    try:
        return text(name, package)
    except FileNotFoundError:
        return None


def render(normalised: Normalised, machine: Machine, settings: Mapping[str, str]) -> str:
    """The whole report."""
    comparison = normalised.comparison
    styles = design_styles(comparison.designs, comparison.unsafe)
    places = places_of(comparison)
    best = [(part.comparison.caption, _highlights(part)) for part in normalised.parts()]
    return complete(
        "page.html",
        scripts=("tables.js", "simulations.js"),
        comparison=comparison,
        unsafe=comparison.unsafe,
        baseline=normalised.baseline,
        record=comparison.records[0],
        facts=Conditions.of(comparison).facts,
        transactions=_range([record.transactions for record in comparison.records]),
        most_threads=_threads(max(comparison.threads)),
        varied={key: _values(values) for key, values in comparison.varied.items()},
        designs=[(_described(comparison, name), styles[name]) for name in comparison.designs],
        workloads=[w for w in catalogue().workloads if w.name in comparison.workloads],
        highlights=[(caption, found) for caption, found in best if found],
        parts=[part_of(normalised, metric, places) for metric in comparison.metrics],
        simulations=Simulations.of(comparison),
        scaling=_scaling(normalised),
        missing=_missing(comparison),
        notes=notes(comparison, several=len(comparison.seeds) > 1),
        settings=_settings(comparison, machine, settings),
        command=_command(normalised, machine, settings),
    )


def _described(comparison: Comparison, name: str) -> Design:
    """The declaration of a design; of a variant that of its design, and what the variant sets."""
    own = comparison.variants.get(name)
    if own is None:
        return catalogue().design(name)
    design = catalogue().design(own.design)
    sets = caption(dict(own.settings)) or "nothing set"  # type: ignore[arg-type]
    return replace(design, name=name, summary=f"{own.design} with {sets}: {design.summary}")


def _range(values: Sequence[int]) -> str:
    low, high = exact(min(values)), exact(max(values))
    return low if low == high else f"{low} to {high}"


def _values(values: Sequence[Value]) -> str:
    return ", ".join(exact(value) for value in values)


def _with(text: str, caption: str) -> str:
    """A text, and a combination if there are several to distinguish."""
    return f"{text}, {caption}" if caption else text


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _missing(comparison: Comparison) -> list[str]:
    """Simulations of the matrix that have no result."""
    return [
        _with(f"{design} on {workload}, {_threads(threads)}{_seed(part, seed)}", part.caption)
        for part in map(comparison.at, comparison.combinations)
        for threads in part.threads
        for workload in part.workloads
        for design in part.designs
        for seed in part.seeds
        if part.find(design, workload, threads, seed) is None
    ]


def _seed(comparison: Comparison, seed: int) -> str:
    """A seed, if there are several."""
    return f", seed {seed}" if len(comparison.seeds) > 1 else ""


def _highlights(normalised: Normalised) -> list[Highlight]:
    comparison = normalised.comparison
    threads = max(comparison.threads)
    safe = [d for d in comparison.designs if d not in comparison.unsafe]
    found: list[Highlight] = []
    for metric in comparison.metrics:
        means = {design: normalised.mean_interval(metric.stat, design, threads) for design in safe}
        valid = {design: value for design, value in means.items() if value is not None}
        if valid:
            first, *others = rivals_of(valid, higher=metric.higher_is_better)
            # Of equal ones without intervals the first stands for all.
            told_apart = valid[first].half_width is None
            names = first if told_apart else " or ".join([first, *others])
            which = "Highest" if metric.higher_is_better else "Lowest"
            title = f"{which} {metric.title.lower()}"
            found.append(Highlight(title, names, f"{ratio(valid[first].mean)}×"))
    return found


NOWHERE: Mapping[Run, int] = {}
"""The places of simulations in a report that has no list of them."""


def part_of(normalised: Normalised, metric: Metric, places: Mapping[Run, int] = NOWHERE) -> Part:
    """The section about one metric, with links to the simulations that have a place."""
    parts = normalised.parts()
    lead = (
        f"{catalogue().statistic(metric.stat).description.rstrip('.')}. "
        f"Relative to {normalised.baseline}; {metric.direction}; the mean is geometric."
    )
    if (seeds := len(normalised.comparison.seeds)) > 1:
        lead += f" {explained(seeds)}"
    counts = {max(part.comparison.threads) for part in parts}
    if len(counts) == 1 and any(len(part.comparison.threads) > 1 for part in parts):
        lead += f" The chart shows {max(counts)} threads."
    groups = [_group(part, metric, number, places) for number, part in enumerate(parts)]
    return Part(metric.stat, metric.title, lead, metric.stat == KIND_STAT, groups)


def _group(normalised: Normalised, metric: Metric, number: int, places: Mapping[Run, int]) -> Group:
    comparison = normalised.comparison
    threads = max(comparison.threads)
    kinds = metric.stat == KIND_STAT
    description = (
        f"{metric.title} of each design on each workload, relative to {normalised.baseline}, with "
        f"{_with(_threads(threads), comparison.caption)}. The table below has the same numbers."
    )
    chart = _bars(normalised, metric, threads, places)
    return Group(
        comparison.caption,
        Drawing.of(chart, _key(metric.stat, number), description),
        _ratio_table(normalised, metric, threads, places),
        [_ratio_table(normalised, metric, n, places) for n in comparison.threads if n != threads],
        _absolute_tables(comparison, metric, places, kinds=kinds),
        comparison.deferred_note() if kinds else None,
    )


def _bars(normalised: Normalised, metric: Metric, threads: int, places: Mapping[Run, int]) -> Bars:
    """The bars of one combination and number of threads, each with the place of its simulation."""
    comparison = normalised.comparison
    records = tuple(r for r in comparison.records if r.threads == threads)
    counted = [r.number(f"{KIND_STAT}_{kind}") for kind in KINDS for r in records]
    asked = Asked(replace(comparison, records=records), normalised.baseline)
    by_kind = metric.stat == KIND_STAT and any(counted)
    chart = bars_of(asked, metric, by_kind=by_kind)
    [panel] = chart.panels
    numbers = {
        (design, group): number
        and replace(number, simulation=_place(comparison, places, design, group, threads))
        for (design, group), number in panel.numbers.items()
    }
    return replace(chart, panels=[replace(panel, caption="", numbers=numbers)], mean=MEAN)


def _key(stat: str, number: int) -> str:
    """What the drawings of one combination are called in the page."""
    return f"{stat}-{number}" if number else stat


def _place(
    comparison: Comparison, places: Mapping[Run, int], design: str, workload: str, threads: int
) -> int | None:
    """The place of a simulation of one combination in the report's list."""
    [combination] = comparison.combinations
    return places.get((design, workload, threads, tuple(combination.items())))


def _ratio_table(
    normalised: Normalised, metric: Metric, threads: int, places: Mapping[Run, int]
) -> NumberTable:
    comparison = normalised.comparison
    values = {
        design: [
            *(normalised.interval(metric.stat, design, w, threads) for w in comparison.workloads),
            normalised.mean_interval(metric.stat, design, threads),
            normalised.arithmetic_mean_interval(metric.stat, design, threads),
        ]
        for design in comparison.designs
    }
    safe = {design: row for design, row in values.items() if design not in comparison.unsafe}
    columns = list(zip(*safe.values(), strict=True)) or [()] * (len(comparison.workloads) + 2)
    best = [
        best_of(dict(zip(safe, column, strict=False)), higher=metric.higher_is_better)
        for column in columns
    ]
    names = [*comparison.workloads, MEAN, ARITHMETIC]
    rows = {
        design: [
            Cell(ratio_text(v), design in tops, _place(comparison, places, design, column, threads))
            for v, tops, column in zip(row, best, names, strict=True)
        ]
        for design, row in values.items()
    }
    caption = _with(f"Relative to {normalised.baseline}, {_threads(threads)}", comparison.caption)
    return NumberTable(caption, names, rows)


def _absolute_tables(
    comparison: Comparison, metric: Metric, places: Mapping[Run, int], *, kinds: bool
) -> list[NumberTable]:
    stats = [metric.stat, *(f"{KIND_STAT}_{kind}" for kind in KINDS if kinds)]
    if metric.stat.endswith("_mean"):
        stats += [metric.stat.removesuffix("mean") + end for end in ("p50", "p99", "max")]
    present = {name for record in comparison.records for name in record.stats}
    return [
        _absolute_table(comparison, stat, threads, places)
        for stat in stats
        if stat in present
        for threads in comparison.threads
    ]


def _absolute_table(
    comparison: Comparison, stat: str, threads: int, places: Mapping[Run, int]
) -> NumberTable:
    rows = {
        design: [
            Cell(
                scaled_text(comparison.interval(stat, design, workload, threads)),
                simulation=_place(comparison, places, design, workload, threads),
            )
            for workload in comparison.workloads
        ]
        for design in comparison.designs
    }
    caption = _with(
        f"{stat}, {catalogue().statistic(stat).unit}, {_threads(threads)}", comparison.caption
    )
    return NumberTable(caption, comparison.workloads, rows)


def _scaling(normalised: Normalised) -> Part | None:
    """Throughput over threads, if there are several counts of them."""
    parts = [part for part in normalised.parts() if len(part.comparison.threads) > 1]
    if not parts:
        return None
    fewest = {min(part.comparison.threads) for part in parts}
    first = _threads(min(fewest)) if len(fewest) == 1 else "the fewest threads"
    reference = f"{normalised.baseline} with {first}"
    groups = [_scaling_group(part, reference, number) for number, part in enumerate(parts)]
    return Part("scaling", "Scaling", f"Throughput relative to {reference}.", False, groups)


def _scaling_group(normalised: Normalised, reference: str, number: int) -> Group:
    comparison = normalised.comparison
    counts = sorted(comparison.threads)
    metric = METRICS[0]
    panels: dict[str, dict[str, list[Number | None]]] = {}
    for workload in comparison.workloads:
        first = comparison.number(metric.stat, normalised.baseline, workload, counts[0])
        panels[workload] = {}
        for design in comparison.designs:
            own = [comparison.number(metric.stat, design, workload, count) for count in counts]
            ratios = [None if v is None or not first else v / first for v in own]
            panels[workload][design] = [Number.known(value) for value in ratios]
    measure = replace(
        Asked(comparison, reference).measure(metric.stat, metric.title, metric), spreads=""
    )
    chart = Lines(measure, "Threads", positions(counts), [str(n) for n in counts], panels)
    where = f" {comparison.caption}." if comparison.caption else ""
    description = f"Throughput relative to {reference}.{where} One panel for each workload."
    return Group(comparison.caption, Drawing.of(chart, _key("scaling", number), description))


def _settings(
    comparison: Comparison, machine: Machine, settings: Mapping[str, str]
) -> dict[str, list[Setting]]:
    """The whole configuration by section; values that differ between runs show as such."""
    sources = machine.values()
    units = {
        parameter.key: parameter.unit
        for section in catalogue().sections
        for parameter in section.parameters
    }
    found: dict[str, list[Setting]] = {}
    for section, values in comparison.records[0].config.items():
        for key, value in values.items():
            path = f"{section}.{key}"
            origin, kind = "default", "default"
            if path in settings:
                origin, kind = f"set to {settings[path]} for this comparison", "set"
            elif path in sources and sources[path].assumed is not None:
                origin, kind = f"assumed: {sources[path].assumed}", "assumed"
            elif path in sources and sources[path].source is not None:
                origin, kind = str(sources[path].source), "source"
            same = all(r.config.get(section, {}).get(key) == value for r in comparison.records)
            shown = exact(value) if same else "differs between runs"
            if path in comparison.varied:
                shown = _values(comparison.varied[path])
                origin, kind = "varied in this comparison", "set"
            setting = Setting(path, shown, units.get(path, ""), origin, kind)
            found.setdefault(section, []).append(setting)
    return found


def _command(normalised: Normalised, machine: Machine, settings: Mapping[str, str]) -> str:
    """The command that gives the same results."""
    comparison = normalised.comparison
    record = comparison.records[0]
    counts = {tuple(comparison.at(varied).threads) for varied in comparison.combinations}
    # Without one count for all there was one thread per core, and the cores are varied.
    threads = comparison.threads if len(counts) == 1 else None
    has_one = len({r.asked_transactions for r in comparison.records}) == 1
    usual = comparison.metrics == METRICS
    asked: dict[str, object] = {
        "designs": comparison.designs,
        "workloads": comparison.workloads,
        "machine": machine.name if machine.text is None else f"./{machine.name}",
        "threads": threads,
        "transactions": (record.asked_transactions or None) if has_one else None,
        "seed": record.seed if len(comparison.seeds) == 1 else None,
        "seeds": comparison.seeds if len(comparison.seeds) > 1 else None,
        "baseline": normalised.baseline,
        "metrics": None if usual else [metric.stat for metric in comparison.metrics],
    }
    return compare_command(
        asked, settings=settings, vary=comparison.varied, variants=comparison.variants
    )
