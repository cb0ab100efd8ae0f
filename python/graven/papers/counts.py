"""Counts of claims, by class and verdict.

A printed parameter that the machine has, a mechanism that a unit test holds, and a figure that was
measured are not the same kind of agreement; they are counted apart, and so is what is not
simulated. Measured figures are counted three times: by default, by the paper's
method, and under whichever reading fits best; a claim that restates another is counted with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graven.papers.data import Claim, NumberAnswer, as_printed
from graven.papers.rules import AGREES, DIRECTION, NOT_RUN, OUTCOMES, VERDICTS

if TYPE_CHECKING:
    from graven.papers.verdicts import Verdict

PARAMETERS = "parameters and arithmetic"
MECHANISMS = "mechanisms (unit tests)"
MEASURED = "measured figures"
NOTHING = "not simulated"

CLASSES = (PARAMETERS, MECHANISMS, MEASURED, NOTHING)
"""Every class of claims."""

COUNTED = ("default alone", "the paper's method", "any reading")
"""The three counts of measured figures."""


COLUMNS = (
    "numbers: of those within 25 %, claims with a printed number; others are orders and trends",
    "as printed: of these, claims within 25 % of the number as it is printed, of a gain itself",
    "one workload: of those within 25 %, claims whose mean one workload decides",
    "a claim that restates another is counted with it",
)
"""The columns of the counts, explained."""


@dataclass(frozen=True)
class Count:
    """Outcomes of the measured figures under one of `COUNTED`.

    Attributes:
        name: Which.
        outcomes: Counts of claims by outcome, best first, without those for which it was not tried.
        untried: Claims for which it was not tried.
        rest_on_one: Of those within 25 %, the ones whose mean rests on single workloads.
        printed: Of those within 25 %, the ones with a printed number; others are orders or trends.
        close: Of these, the ones that are within 25 % of the number as it is printed: of a gain or
            a reduction itself, and not of the ratio.
    """

    name: str
    outcomes: dict[str, int]
    untried: int
    rest_on_one: int
    printed: int = 0
    close: int = 0

    @property
    def judged(self) -> int:
        """Claims that were judged."""
        return sum(count for name, count in self.outcomes.items() if name != NOT_RUN)

    @property
    def within(self) -> int:
        """Claims within 25 %."""
        return sum(self.outcomes.get(name, 0) for name in AGREES)

    @property
    def directed(self) -> int:
        """Claims that are right in direction, those within 25 % among them."""
        return self.within + self.outcomes.get(DIRECTION, 0)


def tally(found: Iterable[Verdict]) -> dict[str, int]:
    """Counts of claims by verdict, best first."""
    verdicts = [verdict.verdict for verdict in found]
    return {name: n for name in VERDICTS if (n := verdicts.count(name))}


def by_class(found: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """The same for each class."""
    return {kind: tally(v for v in found if v.kind == kind) for kind in CLASSES}


def three_counts(found: Iterable[Verdict]) -> list[Count]:
    """The measured figures by default, by the paper's method, and under any reading."""
    measured = [v for v in found if v.kind == MEASURED and v.claim.restates is None]
    counts = []
    of_each = ([getattr(v, name) for v in measured] for name in ("default", "authors", "best"))
    for name, chosen in zip(COUNTED, of_each, strict=True):
        known = [item for item in chosen if item is not None]
        verdicts = [item.verdict for item in known]
        outcomes = {name: n for name in OUTCOMES if (n := verdicts.count(name))}
        single = sum(bool(item.rests_on) and item.verdict in AGREES for item in known)
        pairs = zip(measured, chosen, strict=True)
        values = [
            is_close(verdict.claim, verdict.value_of(item))
            for verdict, item in pairs
            if item is not None and item.verdict in AGREES and is_number(verdict.claim)
        ]
        untried = len(chosen) - len(known)
        counts.append(Count(name, outcomes, untried, single, len(values), sum(values)))
    return counts


def is_number(claim: Claim) -> bool:
    """Tells whether a claim is about one printed number, not an order, a trend or all cases."""
    return isinstance(claim.answer, NumberAnswer) and claim.answer.form != "cases"


def is_close(claim: Claim, ours: float | None) -> bool:
    """Tells whether ours is within 25 % of the number as it is printed, a gain for example."""
    answer = claim.answer
    if ours is None or not isinstance(answer, NumberAnswer):
        return False
    printed = as_printed(answer.expect, answer.form)
    if answer.bound != "about" and (ours <= answer.expect) == (answer.bound == "at most"):
        return True
    return bool(printed) and abs(as_printed(ours, answer.form) / printed - 1.0) <= 0.25


def share(part: int, whole: int) -> str:
    """A share for a person: `31 of 181 (17 %)`."""
    percent = f" ({100.0 * part / whole:.0f} %)" if whole else ""
    return f"{part} of {whole}{percent}"
