"""Each claim beside what came out: by default, by the paper's method, and under every reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graven.basics.numbers import Value, ratio
from graven.engine.catalogue import catalogue
from graven.papers.answers import Outcome, View, outcome, shown, shown_interval
from graven.papers.costs import cost_of
from graven.papers.counts import MEASURED, MECHANISMS, NOTHING, PARAMETERS
from graven.papers.data import (
    AllAnswer,
    Claim,
    CostAnswer,
    MachineAnswer,
    Measured,
    NoAnswer,
    NumberAnswer,
    OrderAnswer,
    Printed,
    TestAnswer,
)
from graven.papers.measures import describe, same
from graven.papers.needs import bearing
from graven.papers.plan import AUTHORS, DEFAULT
from graven.papers.programs import answer_with
from graven.papers.reproduction import Reproduction
from graven.papers.rules import (
    AGREES,
    CONTRADICTED,
    DIFFERS,
    DIRECTION,
    DIRECTION_DEPENDS,
    MET,
    NOT_INDEPENDENT,
    NOT_RUN,
    NOT_SIMULATED,
    OUTCOMES,
    UNMET,
    combined,
)
from graven.results.formats import json_text

NAMED = 3
"""Missing simulations that a verdict names, at most."""


@dataclass(frozen=True)
class Verdict:
    """A claim and what came of it.

    Attributes:
        claim: The claim.
        kind: Its class, one of `counts.CLASSES`.
        paper: What the paper prints, as a person reads it.
        outcomes: Outcomes by alternative, the default first; of a claim that nothing is simulated
            for, the default only.
        readings: The readings that bear on it, whether they were tried or not.
        bears: True if the paper's method differs from the default for it.
        verdict: One of `rules.VERDICTS`.
        decides: The alternatives that decide it, if the default does not, best first.
        how: Source of the answer: a test, an item of cost, a key, an experiment.
        why: Reason why it is not met.
        programs: Outcomes with real programs in place of the paper's, by reading; they decide
            nothing.
    """

    claim: Claim
    kind: str
    paper: str
    outcomes: Mapping[str, Outcome]
    verdict: str
    how: str
    why: str
    readings: tuple[str, ...] = ()
    bears: bool = False
    decides: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def default(self) -> Outcome:
        """The outcome by default."""
        return self.outcomes[DEFAULT]

    @property
    def ours(self) -> str:
        """The same, for a person."""
        return self.default.ours

    @property
    def text(self) -> str:
        """The verdict with the reading that it depends on."""
        if not self.decides:
            return self.verdict
        word = DIRECTION if self.verdict == DIRECTION_DEPENDS else MET
        name = self.decides[0]
        return f"{word} under " + (f"the {AUTHORS}" if name == AUTHORS else f"reading {name}")

    @property
    def authors(self) -> Outcome | None:
        """The outcome by the paper's method; `None` if it was not tried."""
        return self.outcomes.get(AUTHORS, None if self.bears else self.default)

    @property
    def best(self) -> Outcome:
        """The best of what came out."""
        ran = [item for item in self.outcomes.values() if item.verdict != NOT_RUN]
        return min(ran or [self.default], key=lambda item: OUTCOMES.index(item.verdict))

    @property
    def tried(self) -> int:
        """Number of readings that were tried, each alone."""
        return sum(
            name in self.outcomes and self.outcomes[name].verdict != NOT_RUN
            for name in self.readings
        )

    @property
    def value(self) -> float | None:
        """The number by default, where it is compared with a printed one."""
        return self.value_of(self.default)

    def value_of(self, found: Outcome) -> float | None:
        """The number of an outcome, where it is compared with a printed one."""
        if not isinstance(self.claim.answer, NumberAnswer):
            return None
        return next((number.mean for number in found.numbers.values()), None)

    @property
    def ratio(self) -> float | None:
        """Our number over the printed one, where both are numbers."""
        answer = self.claim.answer
        if self.value is None or not isinstance(answer, NumberAnswer) or not answer.expect:
            return None
        return self.value / answer.expect

    @property
    def range(self) -> tuple[float, float] | None:
        """Between which values a number lies over all that was tried, if over several."""
        known = [v for item in self.outcomes.values() if (v := self.value_of(item)) is not None]
        return (min(known), max(known)) if len(known) > 1 else None

    @property
    def interval(self) -> str:
        """The same, for a person; of orders and trends, in how many alternatives they hold."""
        answer = self.claim.answer
        if isinstance(answer, NumberAnswer):
            return "" if self.range is None else shown_interval(self.range, answer.form)
        others = [v for name, v in self.outcomes.items() if name != DEFAULT]
        judged = [item for item in others if item.verdict != NOT_RUN]
        holds = sum(item.verdict in AGREES for item in judged)
        return f"holds in {holds} of {len(judged)} others" if judged else ""

    @property
    def authors_text(self) -> str:
        """The outcome by the paper's method, for a person."""
        if self.kind != MEASURED:
            return ""
        if not self.bears:
            return "as by default"
        found = self.authors
        if found is None or found.verdict == NOT_RUN:
            return "not tried"
        return outcome_text(found)

    @property
    def tried_text(self) -> str:
        """Number of readings that were tried, in words."""
        if self.kind != MEASURED:
            return ""
        if not self.readings:
            return "no reading bears on it"
        return f"{self.tried} of {len(self.readings)} readings tried"

    @property
    def note(self) -> str:
        """Why it is so: what is missing, the reading that decides, or why it is not met."""
        if self.verdict == NOT_RUN and self.default.missing:
            return missing_text(self.default.missing)
        if self.decides:
            return self.reasons.get(self.decides[0], "")
        # Why a figure was not met says nothing where it is.
        return "" if self.kind == MEASURED and self.verdict in AGREES else self.why

    @property
    def mark(self) -> str:
        """That the mean rests on single workloads, and what all of them are; or nothing."""
        if not self.default.rests_on:
            return ""
        each = ", ".join(f"{name} {ratio(v)}" for name, v in self.default.workloads.items())
        return f"rests on {', '.join(self.default.rests_on)}: {each}"

    def row(self) -> dict[str, Value]:
        """As one flat row."""
        workloads = self.default.workloads
        return {
            "claim": self.claim.id,
            "where": self.claim.where,
            "says": self.claim.says,
            "class": self.kind,
            "paper": self.paper,
            "default": self.ours,
            "default_verdict": self.default.verdict,
            "authors": self.authors_text,
            "range": self.interval,
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "verdict": self.text,
            "decides": "; ".join(self.decides),
            "readings_tried": self.tried if self.kind == MEASURED else None,
            "readings": len(self.readings) if self.kind == MEASURED else None,
            "rests_on": ", ".join(self.default.rests_on),
            "workloads": ", ".join(f"{name} {ratio(value)}" for name, value in workloads.items()),
            "missing": len(self.default.missing),
            "programs": "; ".join(
                f"{name}: {outcome_text(item)}" for name, item in self.programs.items()
            ),
            "how": self.how,
            "why": self.note,
        }


def each_text(claim: Claim, found: Outcome) -> str:
    """The number of each workload of a mean; the name of a single number."""
    answer = claim.answer
    if not isinstance(answer, NumberAnswer):
        return ""
    each = [f"{name} {shown(value, answer.form)}" for name, value in found.workloads.items()]
    return ", ".join(each or found.numbers)


def outcome_text(found: Outcome) -> str:
    """An outcome for a person, or what is missing for it."""
    return f"{found.ours} ({found.verdict})" if found.ours else missing_text(found.missing)


def missing_text(missing: Sequence[str]) -> str:
    """The missing simulations: their number, and the first by name."""
    more = len(missing) - NAMED
    rest = f", and {more:,} more" if more > 0 else ""
    return f"missing: {'; '.join(missing[:NAMED])}{rest}"


def verdicts(found: Reproduction) -> list[Verdict]:
    """Every claim of a paper, or those that its chosen figures can answer."""
    wanted = found.wanted
    chosen = [
        claim
        for claim in wanted.paper.claims
        if wanted.figures is None or (claim.measures and wanted.covers(claim.measures))
    ]
    return [assess(claim, found) for claim in chosen]


def assess(claim: Claim, found: Reproduction) -> Verdict:
    """One claim."""
    match claim.answer:
        case TestAnswer(tests=tests, verdict=verdict, ours=ours, about=about):
            said = ours or ("as printed" if verdict == MET else "")
            kind = PARAMETERS if about == "parameters" else MECHANISMS
            return _plain(claim, kind, said, verdict, "test: " + ", ".join(map(_test_name, tests)))
        case CostAnswer(design=design):
            return _cost(claim, design)
        case MachineAnswer(values=values):
            return _machine(claim, values, found.wanted.paper.machine)
        case NoAnswer(why=why):
            return _plain(claim, NOTHING, "", NOT_SIMULATED, "", why)
        case _:
            return _measured(claim, claim.answer, found)


def _measured(claim: Claim, answer: Measured, found: Reproduction) -> Verdict:
    results = {name: found.results[name] for m in claim.measures for name in m.studies}
    bear = bearing(claim.measures, results)
    tried = {name for item in results.values() for name in item.tried}
    known = found.wanted.paper.readings
    # Values of open keys, for which no sentence speaks, may have been tried as well.
    may_decide = [name for name in bear if name in tried and (name in known or name == AUTHORS)]
    outcomes = {
        name: independent(claim, outcome(answer, View(results, name)))
        for name in (DEFAULT, *may_decide)
    }
    readings = tuple(name for name in bear if name in known)
    verdict, decides = decided(outcomes, readings)
    reasons = {name: f"{name}: {known[name].what} ({known[name].where})" for name in readings}
    theirs = [name for name in readings if known[name].authors]
    reasons[AUTHORS] = f"{AUTHORS}: {', '.join(theirs)}"
    return Verdict(
        claim,
        MEASURED,
        _printed_or_order(claim),
        outcomes,
        verdict,
        describe(claim.measures[0]),
        claim.circular or claim.why or "",
        readings,
        AUTHORS in bear,
        decides,
        reasons,
        with_programs(claim, found),
    )


def decided(
    outcomes: Mapping[str, Outcome], readings: Collection[str]
) -> tuple[str, tuple[str, ...]]:
    """The verdict on a claim of which there are these outcomes, and the readings that decide it.

    Readings without an outcome, or with one that was not run, are untried.
    """
    judged = {
        name: item.verdict
        for name, item in outcomes.items()
        if name != DEFAULT and item.verdict != NOT_RUN
    }
    untried = sum(name not in judged for name in readings)
    return combined(outcomes[DEFAULT].verdict, judged, untried)


def independent(claim: Claim, found: Outcome) -> Outcome:
    """An outcome; agreement with a number that the model was made with is none."""
    if claim.circular is None or found.verdict not in AGREES:
        return found
    return replace(found, verdict=NOT_INDEPENDENT)


def with_programs(claim: Claim, found: Reproduction) -> dict[str, Outcome]:
    """Outcomes with real programs, by the readings that have something to say of a claim."""
    outcomes = {}
    for name, results in found.programs.items():
        answer = answer_with(claim, found.wanted.paper.readings[name])
        there = all(study in results for one in claim.measures for study in one.studies)
        if answer is not None and there:
            outcomes[name] = _of_others(outcome(answer, View(results)))
    return outcomes


def _of_others(found: Outcome) -> Outcome:
    """What came out with other programs than the paper's, which they do not contradict."""
    verdict = DIFFERS if found.verdict == CONTRADICTED else found.verdict
    return replace(
        found, verdict=verdict, ours=found.ours.replace(f"({CONTRADICTED})", f"({DIFFERS})")
    )


def _printed_or_order(claim: Claim) -> str:
    if isinstance(claim.answer, OrderAnswer):
        return " < ".join(claim.answer.names)
    return printed(claim)


def printed(claim: Claim) -> str:
    """The paper's value, as a person reads it."""
    text = _text(claim.value)
    text = f"{text} {claim.unit}" if claim.unit and text else text
    ratios = _ratios(claim)
    if not ratios:
        return text
    return f"{ratios} ({text.replace(' (', ', ').removesuffix(')')})"


def _ratios(claim: Claim) -> str:
    """What is printed as gains or reductions, as the ratios that ours are compared with."""
    answers = claim.answer.answers if isinstance(claim.answer, AllAnswer) else (claim.answer,)
    numbers = [one for one in answers if isinstance(one, NumberAnswer)]
    if not numbers or any(one.form not in ("gain", "reduction") for one in numbers):
        return ""
    return ", ".join(shown(one.expect, one.form) for one in numbers)


def _text(value: Printed) -> str:
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return "" if value is None else str(value)


def _test_name(test: str) -> str:
    file, _, name = test.rpartition("::")
    return f"{name} ({file})"


def _plain(
    claim: Claim, kind: str, ours: str, verdict: str, how: str, why: str | None = None
) -> Verdict:
    """A claim that nothing is simulated for."""
    came = {DEFAULT: Outcome(verdict, ours)}
    said = (claim.why or "") if why is None else why
    return Verdict(claim, kind, printed(claim), came, verdict, how, said)


def _cost(claim: Claim, design: str) -> Verdict:
    how = f"graven cost {design}"
    item = cost_of(design, claim.id, claim.value)
    if item is None:
        return _plain(claim, PARAMETERS, "", NOT_RUN, how)
    verdict = {True: MET, False: CONTRADICTED, None: NOT_SIMULATED}[item.agrees]
    kind = NOTHING if item.agrees is None else PARAMETERS
    why = claim.why or ("" if item.agrees else item.note)
    return _plain(claim, kind, item.ours, verdict, how, why)


def _machine(claim: Claim, values: Mapping[str, Any], machine: str) -> Verdict:
    preset = catalogue().machine(machine)
    there = {key: preset.value(key) for key in values}
    met = all(same(there[key], value) for key, value in values.items())
    ours = ", ".join(f"{key} = {value}" for key, value in there.items())
    how = f"papers/{machine}/machine.toml"
    return _plain(claim, PARAMETERS, ours, MET if met else CONTRADICTED, how)


def unexplained(found: Iterable[Verdict]) -> list[Verdict]:
    """Claims that are met under no reading, and for which no reason is given."""
    return [verdict for verdict in found if verdict.verdict in UNMET and not verdict.why]


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
