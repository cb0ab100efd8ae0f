"""Each claim beside what came out, and how far they agree.

The verdict is of the results as assumed; over the values of what the paper leaves open there is an
interval.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graven.catalogue import catalogue
from graven.figures import ratio
from graven.papers.costs import cost_of
from graven.papers.data import (
    AllAnswer,
    Claim,
    CostAnswer,
    MachineAnswer,
    Measure,
    NoAnswer,
    NumberAnswer,
    OrderAnswer,
    Printed,
    TestAnswer,
    TrendAnswer,
    as_printed,
)
from graven.papers.measures import describe, measured, same, series
from graven.papers.plan import AS_ASSUMED
from graven.papers.reproduction import Reproduction
from graven.papers.rules import (
    CONTRADICTED,
    MET,
    NOT_RUN,
    NOT_SIMULATED,
    UNMET,
    VERDICTS,
    number_verdict,
    order_verdict,
    shape_verdict,
)
from graven.records import Value, json_text


@dataclass(frozen=True)
class Verdict:
    """A claim and what came of it.

    Attributes:
        claim: The claim.
        paper: What the paper prints, as a person reads it.
        ours: What came out.
        interval: Between which values it lies over what is left open; empty if it is one value.
        ratio: What came out over what is printed, where both are numbers.
        verdict: One of `VERDICTS`.
        how: What answers it: a test, an item of cost, a key, an experiment.
        why: Why it is not met.
        value: What came out, where it is a number that is compared with a printed one.
        spread: Between which values that lies over what is left open, if over several.
    """

    claim: Claim
    paper: str
    ours: str
    interval: str
    ratio: float | None
    verdict: str
    how: str
    why: str
    value: float | None = None
    spread: tuple[float, float] | None = None

    def row(self) -> dict[str, Value]:
        """As one flat row."""
        return {
            "claim": self.claim.id,
            "where": self.claim.where,
            "says": self.claim.says,
            "paper": self.paper,
            "ours": self.ours,
            "interval": self.interval,
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "verdict": self.verdict,
            "how": self.how,
            "why": self.why,
        }


def verdicts(found: Reproduction) -> list[Verdict]:
    """Every claim of a paper, or those that its chosen figures can answer."""
    wanted = found.wanted
    chosen = [
        claim
        for claim in wanted.paper.claims
        if wanted.figures is None or (claim.measures and wanted.covers(claim.measures))
    ]
    return [_verdict(claim, found) for claim in chosen]


def _verdict(claim: Claim, found: Reproduction) -> Verdict:
    match claim.answer:
        case NumberAnswer():
            return _number(claim, claim.answer, found)
        case OrderAnswer():
            return _order(claim, claim.answer, found)
        case TrendAnswer():
            return _trend(claim, claim.answer, found)
        case AllAnswer(names=names, answers=answers):
            parts = [_verdict(replace(claim, answer=one), found) for one in answers]
            return _worst(claim, names, parts)
        case TestAnswer(tests=tests, verdict=verdict, ours=ours):
            said = ours or ("as printed" if verdict == MET else "")
            return _plain(claim, said, verdict, "test: " + ", ".join(map(_test_name, tests)))
        case CostAnswer(design=design):
            return _cost(claim, design)
        case MachineAnswer(values=values):
            return _machine(claim, values, found.wanted.paper.machine)
        case NoAnswer(why=why):
            return Verdict(claim, printed(claim), "", "", None, NOT_SIMULATED, "", why)


def _worst(claim: Claim, names: Sequence[str], parts: Sequence[Verdict]) -> Verdict:
    """The verdict of a claim that needs several: the worst, with what came out of each."""

    def together(texts: Iterable[str]) -> str:
        named = zip(names, texts, strict=True)
        all_of_them = (f"{name}: {text}" if name and text else text for name, text in named)
        return "; ".join(dict.fromkeys(text for text in all_of_them if text))

    ours = (f"{part.ours} ({part.verdict})" if part.ours else "" for part in parts)
    return replace(
        max(parts, key=lambda part: VERDICTS.index(part.verdict)),
        claim=claim,
        paper=printed(claim) or together(part.paper for part in parts),
        ours=together(ours),
        interval=together(part.interval for part in parts),
        ratio=None,
        how="; ".join(dict.fromkeys(part.how for part in parts)),
    )


def printed(claim: Claim) -> str:
    """What the paper prints, as a person reads it."""
    text = _text(claim.value)
    return f"{text} {claim.unit}" if claim.unit and text else text


def _text(value: Printed) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else str(value)


def _test_name(test: str) -> str:
    file, _, name = test.rpartition("::")
    return f"{name} ({file})"


def _plain(claim: Claim, ours: str, verdict: str, how: str) -> Verdict:
    return Verdict(claim, printed(claim), ours, "", None, verdict, how, claim.why or "")


def _cost(claim: Claim, design: str) -> Verdict:
    how = f"graven cost {design}"
    item = cost_of(design, claim.id, claim.value)
    if item is None:
        return _plain(claim, "", NOT_RUN, how)
    verdict = {True: MET, False: CONTRADICTED, None: NOT_SIMULATED}[item.agrees]
    why = claim.why or ("" if item.agrees else item.note)
    return Verdict(claim, printed(claim), item.ours, "", None, verdict, how, why)


def _machine(claim: Claim, values: Mapping[str, Any], machine: str) -> Verdict:
    preset = catalogue().machine(machine)
    there = {key: preset.value(key) for key in values}
    met = all(same(there[key], value) for key, value in values.items())
    ours = ", ".join(f"{key} = {value}" for key, value in there.items())
    return _plain(claim, ours, MET if met else CONTRADICTED, f"papers/{machine}/machine.toml")


def _value(measure: Measure, found: Reproduction, alternative: str = AS_ASSUMED) -> float | None:
    """The number in one alternative; an experiment that lacks it stays as assumed."""
    results = [found.results[name] for name in measure.studies]
    return measured(measure, *(item.records.get(alternative, item.assumed) for item in results))


def _alternatives(measures: Sequence[Measure], found: Reproduction) -> list[str]:
    """Those of all experiments that are needed, but for what is as assumed."""
    studies = dict.fromkeys(name for measure in measures for name in measure.studies)
    names = dict.fromkeys(name for study in studies for name in found.results[study].records)
    return [name for name in names if name != AS_ASSUMED]


def _number(claim: Claim, answer: NumberAnswer, found: Reproduction) -> Verdict:
    ours = _value(answer.measure, found)
    others = [
        _value(answer.measure, found, name) for name in _alternatives([answer.measure], found)
    ]
    known = [value for value in (ours, *others) if value is not None]
    how = describe(answer.measure)
    if ours is None:
        return _plain(claim, "", NOT_RUN, how)
    relative = ours / answer.expect if answer.expect else None
    return Verdict(
        claim,
        printed(claim),
        _shown(ours, answer.form),
        _interval(known, answer.form),
        relative,
        number_verdict(answer, ours),
        how,
        claim.why or "",
        ours,
        (min(known), max(known)) if len(known) > 1 else None,
    )


def _shown(number: float, form: str) -> str:
    if form == "cases":
        return f"in {100.0 * number:.0f} % of all cases"
    value = as_printed(number, form)
    if form in ("gain", "reduction", "percent"):
        return f"{round(value, 1) + 0.0:.1f} %"
    return f"{ratio(value)} ×" if form == "times" else f"{value:,.4g}"


def _interval(known: Sequence[float], form: str) -> str:
    if len(known) < 2:
        return ""
    low, high = _shown(min(known), form), _shown(max(known), form)
    if form == "reduction":
        low, high = high, low
    return "" if low == high else f"{low} to {high}"


def _order(claim: Claim, answer: OrderAnswer, found: Reproduction) -> Verdict:
    numbers = [_value(measure, found) for measure in answer.measures]
    how = describe(answer.measures[0])
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return _plain(claim, "", NOT_RUN, how)
    ours = " < ".join(
        f"{name} {ratio(number)}" for number, name in sorted(zip(known, answer.names, strict=True))
    )
    return Verdict(
        claim,
        " < ".join(answer.names),
        ours,
        _order_elsewhere(answer, found),
        None,
        order_verdict(known),
        how,
        claim.why or "",
    )


def _order_elsewhere(answer: OrderAnswer, found: Reproduction) -> str:
    """In how many of the other alternatives the order holds."""
    holding = 0
    counted = 0
    for name in _alternatives(answer.measures, found):
        numbers = [_value(measure, found, name) for measure in answer.measures]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            counted += 1
            holding += order_verdict(known) == MET
    return f"holds in {holding} of {counted} others" if counted else ""


def _trend(claim: Claim, answer: TrendAnswer, found: Reproduction) -> Verdict:
    points = series(answer.measure, answer.along, found.results[answer.measure.studies[0]].assumed)
    how = f"{describe(answer.measure)}, along {answer.along}"
    values = [value for _, value in points if value is not None]
    if len(values) < len(points) or len(values) < 2:
        return _plain(claim, "", NOT_RUN, how)
    ours = ", ".join(f"{place}: {ratio(value)}" for place, value in points)
    places = [place for place, _ in points]
    verdict = shape_verdict(answer, places, values)
    return Verdict(claim, printed(claim), ours, "", None, verdict, how, claim.why or "")


def unexplained(found: Sequence[Verdict]) -> list[Verdict]:
    """Claims that are not met, and for which no reason is given."""
    return [verdict for verdict in found if verdict.verdict in UNMET and not verdict.why]


def tally(found: Sequence[Verdict]) -> dict[str, int]:
    """How many claims have which verdict, best first."""
    return {name: n for name in VERDICTS if (n := sum(v.verdict == name for v in found))}


def to_csv(found: Sequence[Verdict]) -> str:
    """The table as CSV."""
    text = io.StringIO()
    rows = [verdict.row() for verdict in found]
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["claim"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_json(found: Sequence[Verdict]) -> str:
    """The table as JSON."""
    return json_text([verdict.row() for verdict in found])
