"""When a number, an order or a trend is as a paper says, and what readings make of it.

A number is met within 10 or 25 % of what the paper prints: of a gain that is the gain itself, so
that 14.7 % is half of 28.7 %. Beyond that a ratio may still be right in direction: at least three
seeds ran, a tenth of the printed effect or more came out, and the interval over the seeds leaves
out 1. What the seeds do not tell decides nothing.

What holds under one alternative is an outcome; the verdict on a claim is made of its outcomes by
default, under each reading alone, and under the paper's method, all readings that belong to it.

`MEANINGS` defines every word that verdicts, terminals, reports and documents use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from graven.basics.numbers import Value
from graven.papers.data import NumberAnswer, TrendAnswer, as_printed
from graven.papers.samples import Sample, compare, differ

MET = "met"
MET_10 = "met within 10%"
MET_25 = "met within 25%"
DEPENDS = "met under a reading"
DIRECTION = "direction only"
DIRECTION_DEPENDS = "direction only under a reading"
UNDECIDED = "undecided"
NOT_INDEPENDENT = "not independent"
"""Agreement with a number from which the model was made: it confirms nothing."""
BY_DEFAULT = "contradicted by default"
CONTRADICTED = "contradicted"
DIFFERS = "differs"
"""Outcome that would contradict a paper if the programs were its own, and of others does not."""
NOT_SIMULATED = "not simulated"
NOT_RUN = "no result"

OUTCOMES = (
    MET,
    MET_10,
    MET_25,
    DIRECTION,
    UNDECIDED,
    NOT_INDEPENDENT,
    CONTRADICTED,
    NOT_SIMULATED,
    NOT_RUN,
)
"""Every outcome under one alternative, best first."""

VERDICTS = (
    MET,
    MET_10,
    MET_25,
    DEPENDS,
    DIRECTION,
    DIRECTION_DEPENDS,
    UNDECIDED,
    NOT_INDEPENDENT,
    BY_DEFAULT,
    CONTRADICTED,
    NOT_SIMULATED,
    NOT_RUN,
)
"""Every verdict, best first."""

MEANINGS = {
    MET: "an order, a trend, a limit, a value or a test is as the paper says",
    MET_10: "the number is at most 10 % from the printed one; of a gain or loss, the gain itself",
    MET_25: "the number is at most 25 % from the printed one; of a gain or loss, the gain itself",
    DEPENDS: "not met by default, but if the paper's text is read in another way, which is named",
    DIRECTION: "a ratio is farther off, but a tenth of the printed effect or more came out, and "
    "the interval over three seeds or more leaves out 1; an order or a trend holds at its ends "
    "and for most pairs",
    DIRECTION_DEPENDS: "contradicted by default, direction only under the reading that is named",
    UNDECIDED: "the interval over the seeds holds both answers, or the direction is right and "
    "fewer than three seeds ran",
    NOT_INDEPENDENT: "it agrees with a number that the model was made with: not counted as met",
    BY_DEFAULT: "contradicted by default; readings that may change that were not tried",
    CONTRADICTED: "none of these, by default and under every reading",
    DIFFERS: "programs other than the paper's give another number, which contradicts nothing",
    NOT_SIMULATED: "Graven has no simulation for it",
    NOT_RUN: "simulations that it needs have not run",
}
"""The meaning of each outcome and verdict, in the words of a legend."""

READING_MEANS = (
    "reading: another choice where the paper's text leaves something open or says two things"
)
METHOD_MEANS = (
    "paper's method: all readings that belong to the method that the paper describes, together"
)
"""The other two words of tables of verdicts."""


def legend(words: Iterable[str]) -> list[str]:
    """A line for each of some outcomes or verdicts, best first, that says what it means."""
    used = set(words)
    return [f"{word}: {meaning}" for word, meaning in MEANINGS.items() if word in used]


EFFECT_LEAST = 0.1
"""The least share of a printed effect that is a direction."""

SEEDS_LEAST = 3
"""The least number of seeds that decide a direction."""

AGREES = (MET, MET_10, MET_25)
"""Outcomes within 25 %."""

UNMET = (DIRECTION, DIRECTION_DEPENDS, NOT_INDEPENDENT, CONTRADICTED, NOT_SIMULATED)
"""Verdicts that need a reason."""


def combined(default: str, others: Mapping[str, str], untried: int) -> tuple[str, tuple[str, ...]]:
    """The verdict on a claim, and the names of what decides it, best first.

    Args:
        default: The outcome by default.
        others: Outcomes under what was tried beside it, by name.
        untried: How many readings that bear on the claim were not tried.
    """
    if default in (*AGREES, NOT_INDEPENDENT, NOT_SIMULATED, NOT_RUN):
        return default, ()
    for better, verdict in ((AGREES, DEPENDS), ((DIRECTION,), DIRECTION_DEPENDS)):
        if default in better:
            return default, ()
        deciding = [name for name, outcome in others.items() if outcome in better]
        if deciding:
            deciding.sort(key=lambda name: OUTCOMES.index(others[name]))
            return verdict, tuple(deciding)
    if UNDECIDED in (default, *others.values()):
        return UNDECIDED, ()
    return (BY_DEFAULT if untried else CONTRADICTED), ()


def number_verdict(answer: NumberAnswer, ours: Sample) -> str:
    """The outcome of a number beside the printed one."""
    value = ours.mean
    if answer.form == "cases" and value == answer.expect:
        return MET
    if answer.bound == "at most" and value <= answer.expect:
        return MET
    if answer.bound == "at least" and value >= answer.expect:
        return MET
    away = _away(answer, value)
    if away <= 0.10:
        return MET_10
    if away <= 0.25:
        return MET_25
    if answer.form == "cases":
        undecided = UNDECIDED if value + ours.tied > 0.5 else CONTRADICTED
        return DIRECTION if value > 0.5 else undecided
    if len(ours.values) > 1 and ours.against(answer.expect) == 0:
        return UNDECIDED
    if answer.measure.over and answer.bound == "about" and answer.expect != 1.0:
        return _direction(answer, ours)
    return CONTRADICTED


def _direction(answer: NumberAnswer, ours: Sample) -> str:
    """The outcome of a ratio that is far from the printed one, by the share that came out."""
    shares = sorted((end - 1.0) / (answer.expect - 1.0) for end in (ours.low, ours.high))
    if shares[1] < EFFECT_LEAST:
        return CONTRADICTED
    came = (ours.mean - 1.0) / (answer.expect - 1.0)
    decided = len(ours.values) >= SEEDS_LEAST and shares[0] > 0.0 and came >= EFFECT_LEAST
    return DIRECTION if decided else UNDECIDED


def _away(answer: NumberAnswer, ours: float) -> float:
    """Returns the share of the printed number by which ours, in the same form, differs."""
    printed = as_printed(answer.expect, answer.form)
    if not printed:
        return math.inf
    return abs(as_printed(ours, answer.form) / printed - 1.0)


def order_verdict(numbers: Sequence[Sample]) -> str:
    """The outcome of numbers that are to ascend: all do, most do, or neither.

    Numbers that their seeds do not tell apart are neither in order nor out of it.
    """
    if all(compare(b, a) > 0 for a, b in itertools.pairwise(numbers)):
        return MET
    # Not each below the next, but the first below the last, and more pairs in order than not.
    pairs = [compare(b, a) for n, a in enumerate(numbers) for b in numbers[n + 1 :]]
    right, wrong = pairs.count(1), pairs.count(-1)
    ends = compare(numbers[-1], numbers[0])
    if len(numbers) > 2 and ends > 0 and right > wrong:
        return DIRECTION
    return UNDECIDED if wrong == 0 else CONTRADICTED


def shape_verdict(answer: TrendAnswer, places: Sequence[Value], values: Sequence[Sample]) -> str:
    """The outcome of a series that is to have a shape: it has it, its ends have, or neither."""
    means = [value.mean for value in values]
    slack = 1.0 + answer.within
    if answer.shape == "flat":
        if max(means) <= min(means) * slack:
            return MET
        return CONTRADICTED if differ(values) else UNDECIDED
    if answer.shape == "peaks":
        return _peak(answer, places, values)
    ends = compare(values[-1], values[0])
    if answer.shape == "saturates":
        rises = means[-1] > means[0] * slack and ends > 0
        flat = means[-1] <= means[-2] * slack or compare(values[-1], values[-2]) == 0
        if not rises:
            return UNDECIDED if ends == 0 and means[-1] != means[0] else CONTRADICTED
        return MET if flat else DIRECTION
    way = 1 if answer.shape == "rises" else -1
    if ends == 0 and means[-1] != means[0]:
        return UNDECIDED
    if ends != way:
        return CONTRADICTED
    steady = all(
        (b.mean * slack >= a.mean if way > 0 else b.mean <= a.mean * slack) or compare(b, a) == 0
        for a, b in itertools.pairwise(values)
    )
    return MET if steady else DIRECTION


def _peak(answer: TrendAnswer, places: Sequence[Value], values: Sequence[Sample]) -> str:
    best = max(range(len(values)), key=lambda n: values[n].mean)
    if not 0 < best < len(values) - 1:
        # An inner point that the seeds do not tell from the highest end may be the peak.
        highest = values[best]
        ties = any(compare(v, highest) == 0 and v.mean != highest.mean for v in values[1:-1])
        return UNDECIDED if ties else CONTRADICTED
    if any(compare(values[best], values[end]) <= 0 for end in (0, -1)):
        return UNDECIDED
    if answer.between is None:
        return MET
    place = float(str(places[best]).split()[0])
    return MET if answer.between[0] <= place <= answer.between[1] else DIRECTION
