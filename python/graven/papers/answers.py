"""Outcomes of answers under one alternative, with their numbers, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graven.basics.numbers import ratio
from graven.papers.data import (
    AllAnswer,
    Measure,
    Measured,
    NumberAnswer,
    OrderAnswer,
    TrendAnswer,
    as_printed,
)
from graven.papers.measures import brief, by_workload, mean, renamed, sample, series
from graven.papers.needs import lacking
from graven.papers.plan import DEFAULT
from graven.papers.reproduction import Results
from graven.papers.rules import (
    AGREES,
    MET,
    NOT_RUN,
    OUTCOMES,
    number_verdict,
    order_verdict,
    shape_verdict,
)
from graven.papers.samples import Sample
from graven.results.record import Record

RATIOS = ("times", "gain", "reduction")
"""Forms of numbers that are one result over another."""

RESTS = 0.25
"""A mean from which leaving out one workload takes more than this share rests on that workload."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of an answer under one alternative.

    Attributes:
        verdict: One of `rules.OUTCOMES`.
        ours: What came out, for a person.
        numbers: What the verdict is of, by what each is.
        workloads: Of a mean over several workloads, the number of each.
        rests_on: Workloads without any one of which the mean is another by more than 25 %, or is
            no longer within 25 % of what is printed, or no longer on its side of 1.
        missing: What has no result, if the verdict needs it.
    """

    verdict: str
    ours: str = ""
    numbers: Mapping[str, Sample] = field(default_factory=dict)
    workloads: Mapping[str, float] = field(default_factory=dict)
    rests_on: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """The results of all experiments under one alternative; one that lacks it is as by default."""

    results: Mapping[str, Results]
    name: str = DEFAULT

    def records(self, study: str) -> Sequence[Record]:
        """The records of an experiment."""
        of_study = self.results[study]
        return of_study.tried.get(self.name, of_study.default).records

    def meant(self, measure: Measure) -> Measure:
        """A measure of the statistics that this alternative has."""
        metrics = {
            old: new
            for study in measure.studies
            if self.name in self.results[study].tried
            for old, new in self.results[study].tried[self.name].metrics.items()
        }
        return renamed(measure, metrics)

    def number(self, measure: Measure) -> Sample | None:
        """A number; `None` if something is missing."""
        return sample(self.meant(measure), *(self.records(name) for name in measure.studies))


def outcome(answer: Measured, view: View) -> Outcome:
    """Judges an answer."""
    match answer:
        case NumberAnswer():
            return _number(answer, view)
        case OrderAnswer():
            return _order(answer, view)
        case TrendAnswer():
            return _trend(answer, view)
        case AllAnswer():
            return _all(answer, view)


def _missing(measures: Sequence[Measure], view: View) -> Outcome | None:
    missing = lacking(measures, view.results, view.name)
    return Outcome(NOT_RUN, missing=tuple(missing)) if missing else None


_NOTHING = Outcome(NOT_RUN, missing=("a number, as a statistic has none or a divisor is 0",))


def _number(answer: NumberAnswer, view: View) -> Outcome:
    measure = answer.measure
    missing = _missing([measure], view)
    if missing is not None:
        return missing
    ours = view.number(measure)
    if ours is None:
        return _NOTHING
    verdict = number_verdict(answer, ours)
    meant = view.meant(measure)
    workloads = by_workload(meant, *(view.records(name) for name in measure.studies))
    several = workloads if len(workloads) > 1 else {}
    return Outcome(
        verdict,
        shown_sample(ours, answer.form),
        {brief(measure): ours},
        several,
        _rests_on(answer, ours, several, verdict),
    )


def _rests_on(
    answer: NumberAnswer, ours: Sample, workloads: Mapping[str, float], verdict: str
) -> tuple[str, ...]:
    """Workloads without which a mean is another; of means only, extremes are what they are."""
    kind = answer.measure.mean
    if kind not in ("geometric", "arithmetic"):
        return ()
    found = []
    for name in workloads:
        without = mean([value for other, value in workloads.items() if other != name], kind)
        if without is None:
            continue
        change = without / ours.mean if ours.mean else math.inf
        if abs(change - 1.0) > RESTS:
            found.append(name)
            continue
        # As spread as all of them: what a seed does to one workload alone is not known here.
        others = Sample(tuple(change * value for value in ours.values))
        if _rank(number_verdict(answer, others)) > _rank(verdict):
            found.append(name)
    return tuple(found)


def _rank(verdict: str) -> int:
    """How good an outcome is, the best first; those within 25 % are alike."""
    return OUTCOMES.index(MET if verdict in AGREES else verdict)


def shown_sample(number: Sample, form: str) -> str:
    """A number in the form in which it is printed, with half of its interval over the seeds."""
    mean = shown(number.mean, form)
    if not number.half_width or form == "cases":
        return mean
    half = {"percent": f"{100.0 * number.half_width:.1f} %"}.get(form, ratio(number.half_width))
    return f"{mean} ±{half}"


def shown_interval(ends: tuple[float, float], form: str) -> str:
    """An interval in the form in which its ends are printed, empty if they are printed alike."""
    low, high = (shown(end, form) for end in ends)
    return f"{low} to {high}" if low != high else ""


def shown(number: float, form: str) -> str:
    """A number for a person: gains and reductions as ratios, as they are compared."""
    if form == "cases":
        return f"in {100.0 * number:.0f} % of all cases"
    if form == "percent":
        return f"{round(as_printed(number, form), 1) + 0.0:.1f} %"
    return f"{ratio(number)} ×" if form in RATIOS else f"{number:,.4g}"


def _order(answer: OrderAnswer, view: View) -> Outcome:
    missing = _missing(answer.measures, view)
    if missing is not None:
        return missing
    numbers = [view.number(measure) for measure in answer.measures]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return _NOTHING
    pairs = sorted(zip(known, answer.names, strict=True), key=lambda pair: pair[0].mean)
    ours = " < ".join(f"{name} {_with_spread(number)}" for number, name in pairs)
    named = dict(zip(answer.names, known, strict=True))
    return Outcome(order_verdict(known), ours, named)


def _with_spread(number: Sample) -> str:
    half = f" ±{ratio(number.half_width)}" if number.half_width else ""
    return f"{ratio(number.mean)}{half}"


def _trend(answer: TrendAnswer, view: View) -> Outcome:
    missing = _missing([answer.measure], view)
    if missing is not None:
        return missing
    points = series(
        view.meant(answer.measure), answer.along, view.records(answer.measure.studies[0])
    )
    values = [value for _, value in points if value is not None]
    if len(values) < len(points) or len(values) < 2:
        return _NOTHING
    named = {str(place): value for place, value in points if value is not None}
    ours = ", ".join(f"{place}: {_with_spread(value)}" for place, value in named.items())
    places = [place for place, _ in points]
    return Outcome(shape_verdict(answer, places, values), ours, named)


def _all(answer: AllAnswer, view: View) -> Outcome:
    """All answers that a claim needs: the worst of them, with what came out of each."""
    parts = [outcome(one, view) for one in answer.answers]
    missing = [text for part in parts for text in part.missing]
    if missing:
        return Outcome(NOT_RUN, missing=tuple(dict.fromkeys(missing)))
    worst = max(parts, key=lambda part: OUTCOMES.index(part.verdict))
    texts: list[str] = []
    numbers: dict[str, Sample] = {}
    workloads: dict[str, float] = {}
    for count, (name, part) in enumerate(zip(answer.names, parts, strict=True), 1):
        label = name or str(count)
        texts.append((f"{name}: " if name else "") + f"{part.ours} ({part.verdict})")
        numbers |= {f"{label}: {what}": number for what, number in part.numbers.items()}
        if part.rests_on:
            workloads |= {f"{label}: {what}": value for what, value in part.workloads.items()}
    rests_on = tuple(dict.fromkeys(one for part in parts for one in part.rests_on))
    ours = "; ".join(dict.fromkeys(texts))
    return Outcome(worst.verdict, ours, numbers, workloads, rests_on)
