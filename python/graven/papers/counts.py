"""Counts of claims, by class and verdict.

A printed parameter that the machine has, a mechanism that a unit test holds, and a figure that was
measured are not the same kind of agreement; they are counted apart, and so is what is not
simulated. Of measured figures, printed numbers are counted apart from orders and trends, which are
easier to meet: by default, by the paper's method, and under whichever reading fits each claim best.
A claim that restates another is counted with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graven.papers.data import AllAnswer, Answer, Claim, NumberAnswer
from graven.papers.rules import (
    AGREES,
    CONTRADICTED,
    DIRECTION,
    MET_10,
    NOT_INDEPENDENT,
    NOT_RUN,
    OUTCOMES,
    UNDECIDED,
    VERDICTS,
)

if TYPE_CHECKING:
    from graven.papers.verdicts import Verdict

PARAMETERS = "parameters and arithmetic"
MECHANISMS = "mechanisms (unit tests)"
MEASURED = "measured figures"
NOTHING = "not simulated"

CLASSES = (PARAMETERS, MECHANISMS, MEASURED, NOTHING)
"""Every class of claims."""

COUNTED = ("default alone", "the paper's method", "each claim's best reading")
"""The three counts of measured figures."""

NUMBERS = "printed numbers"
ORDERS = "orders and trends"

KINDS = (NUMBERS, ORDERS)
"""The two kinds of measured figures."""

HEADS: Mapping[str, tuple[str, ...]] = {
    NUMBERS: (
        *("claims", "within 10 %", "within 25 %", "direction only", "undecided", "contradicted"),
        *("not independent", "on one workload", "not tried"),
    ),
    ORDERS: ("claims", "hold", "in part", "undecided", "contradicted", "not tried"),
}
"""The columns of the counts of each kind."""

COLUMNS = (
    "within 25 %: those within 10 % among them",
    "on one workload: of those within 25 %, claims whose mean one workload decides",
    "orders and trends: limits and what holds in all cases, too",
    "a claim that restates another is counted with it",
)
"""The columns of the counts, explained."""


@dataclass(frozen=True)
class Count:
    """Outcomes of the measured figures of one kind under one of `COUNTED`.

    Attributes:
        name: Which of `COUNTED`.
        kind: Which of `KINDS`.
        outcomes: Counts of claims by outcome, best first; those without a result among them.
        untried: Claims for which it was not tried.
        rest_on_one: Of those within 25 %, the ones whose mean rests on single workloads.
    """

    name: str
    kind: str
    outcomes: Mapping[str, int]
    untried: int
    rest_on_one: int

    @property
    def judged(self) -> int:
        """Claims that were judged."""
        return sum(count for name, count in self.outcomes.items() if name != NOT_RUN)

    @property
    def within(self) -> int:
        """Claims within 25 %; orders and trends that hold."""
        return sum(self.outcomes.get(name, 0) for name in AGREES)

    @property
    def cells(self) -> tuple[int, ...]:
        """The counts under `HEADS`."""
        of = self.outcomes
        partly, undecided = of.get(DIRECTION, 0), of.get(UNDECIDED, 0)
        contradicted = of.get(CONTRADICTED, 0)
        untried = self.untried + of.get(NOT_RUN, 0)
        if self.kind == ORDERS:
            return (self.judged, self.within, partly, undecided, contradicted, untried)
        return (
            *(self.judged, of.get(MET_10, 0), self.within, partly, undecided, contradicted),
            *(of.get(NOT_INDEPENDENT, 0), self.rest_on_one, untried),
        )


@dataclass(frozen=True)
class Judged:
    """A claim as the counts see it: its outcome, and if its mean rests on one workload."""

    claim: Claim
    outcome: str
    rests: bool


def counted(name: str, kind: str, judged: Iterable[Judged | None]) -> Count:
    """Counts claims of one kind; `None` where the alternative was not tried."""
    known = list(judged)
    there = [item for item in known if item is not None]
    outcomes = [item.outcome for item in there]
    return Count(
        name,
        kind,
        {name: n for name in OUTCOMES if (n := outcomes.count(name))},
        len(known) - len(there),
        sum(item.rests and item.outcome in AGREES for item in there),
    )


def tally(found: Iterable[Verdict]) -> dict[str, int]:
    """Counts of claims by verdict, best first."""
    verdicts = [verdict.verdict for verdict in found]
    return {name: n for name in VERDICTS if (n := verdicts.count(name))}


def by_class(found: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """The same for each class."""
    return {kind: tally(v for v in found if v.kind == kind) for kind in CLASSES}


def three_counts(found: Iterable[Verdict]) -> dict[str, list[Count]]:
    """The measured figures by kind: by default, by the paper's method, under the best reading."""
    measured = [v for v in found if v.kind == MEASURED and v.claim.restates is None]
    counts: dict[str, list[Count]] = {}
    for kind in KINDS:
        of_kind = [verdict for verdict in measured if kind_of(verdict.claim) == kind]
        chosen = zip(COUNTED, ("default", "authors", "best"), strict=True)
        counts[kind] = [
            counted(name, kind, [_judged(v, attribute) for v in of_kind])
            for name, attribute in chosen
        ]
    return counts


def _judged(verdict: Verdict, attribute: str) -> Judged | None:
    found = getattr(verdict, attribute)
    return None if found is None else Judged(verdict.claim, found.verdict, bool(found.rests_on))


def kind_of(claim: Claim) -> str:
    """Tells whether a measured claim is of printed numbers alone, or of an order or a trend."""
    return NUMBERS if _is_number(claim.answer) else ORDERS


def _is_number(answer: Answer) -> bool:
    if isinstance(answer, AllAnswer):
        return all(_is_number(one) for one in answer.answers)
    return isinstance(answer, NumberAnswer) and answer.form != "cases" and answer.bound == "about"
