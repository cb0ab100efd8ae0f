"""How many claims came out how, by class.

A printed parameter that the machine has, a mechanism that a unit test holds, and a figure that was
measured are not the same kind of agreement; they are counted apart, and so is what is not
simulated. Measured figures are counted three times: by default, as the authors had it, and under
whichever reading fits best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graven.papers.rules import AGREES, DIRECTION, NOT_RUN, OUTCOMES, VERDICTS

if TYPE_CHECKING:
    from graven.papers.verdicts import Verdict

PARAMETERS = "parameters and arithmetic"
MECHANISMS = "mechanisms (unit tests)"
MEASURED = "measured figures"
NOTHING = "not simulated"

CLASSES = (PARAMETERS, MECHANISMS, MEASURED, NOTHING)
"""Every class of claims."""

COUNTED = ("default alone", "the authors' combination", "any reading")
"""The three counts of measured figures."""


@dataclass(frozen=True)
class Count:
    """Outcomes of the measured figures under one of `COUNTED`.

    Attributes:
        name: Which.
        outcomes: How many claims have which outcome, best first; none where it was not tried.
        untried: Claims for which it was not tried.
        rest_on_one: Of those within 25 %, the ones whose mean rests on single workloads.
    """

    name: str
    outcomes: dict[str, int]
    untried: int
    rest_on_one: int

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
    """How many claims have which verdict, best first."""
    verdicts = [verdict.verdict for verdict in found]
    return {name: n for name in VERDICTS if (n := verdicts.count(name))}


def by_class(found: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """The same for each class."""
    return {kind: tally(v for v in found if v.kind == kind) for kind in CLASSES}


def three_counts(found: Iterable[Verdict]) -> list[Count]:
    """The measured figures by default, as the authors had it, and under any reading."""
    measured = [verdict for verdict in found if verdict.kind == MEASURED]
    counts = []
    for name in COUNTED:
        chosen = [
            {
                COUNTED[0]: verdict.default,
                COUNTED[1]: verdict.authors,
                COUNTED[2]: verdict.best,
            }[name]
            for verdict in measured
        ]
        known = [item for item in chosen if item is not None]
        verdicts = [item.verdict for item in known]
        outcomes = {name: n for name in OUTCOMES if (n := verdicts.count(name))}
        single = sum(bool(item.rests_on) and item.verdict in AGREES for item in known)
        counts.append(Count(name, outcomes, len(chosen) - len(known), single))
    return counts


def share(part: int, whole: int) -> str:
    """A share for a person: `31 of 181 (17 %)`."""
    percent = f" ({100.0 * part / whole:.0f} %)" if whole else ""
    return f"{part} of {whole}{percent}"
