"""When a number, an order or a trend is as a paper says.

A number is met within 10 or 25 % of what the paper prints; beyond that it may still lie on the same
side of 1, which is the direction. So may a gain of which less than half came out, or more than
twice as much, however near to 1 both are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from graven.papers.data import NumberAnswer, TrendAnswer
from graven.records import Value

MET = "met"
MET_10 = "met within 10%"
MET_25 = "met within 25%"
DIRECTION = "direction only"
CONTRADICTED = "contradicted"
NOT_SIMULATED = "not simulated"
NOT_RUN = "no result"

VERDICTS = (MET, MET_10, MET_25, DIRECTION, CONTRADICTED, NOT_SIMULATED, NOT_RUN)
"""Every verdict, best first."""

UNMET = (DIRECTION, CONTRADICTED, NOT_SIMULATED)
"""Verdicts that need a reason."""


def number_verdict(answer: NumberAnswer, ours: float) -> str:
    """How far a number agrees with the printed one."""
    if answer.form == "cases" and ours == answer.expect:
        return MET
    if answer.bound == "at most" and ours <= answer.expect:
        return MET
    if answer.bound == "at least" and ours >= answer.expect:
        return MET
    away = _away(answer, ours)
    if away <= 0.10:
        return MET_10
    if away <= 0.25:
        return MET_25
    if answer.form == "cases":
        return DIRECTION if ours > 0.5 else CONTRADICTED
    directed = bool(answer.measure.over) and answer.bound == "about"
    if directed and (ours - 1.0) * (answer.expect - 1.0) > 0.0:
        return DIRECTION
    return CONTRADICTED


def _away(answer: NumberAnswer, ours: float) -> float:
    """By what share ours differs; of a gain or reduction half of it to twice as much is it."""
    if not answer.expect:
        return math.inf
    if answer.form in ("gain", "reduction") and answer.expect != 1.0:
        part_of_it = (ours - 1.0) / (answer.expect - 1.0)
        if not 0.5 <= part_of_it <= 2.0:
            return math.inf
    return abs(ours / answer.expect - 1.0)


def order_verdict(numbers: Sequence[float]) -> str:
    """Whether numbers ascend, most of them do, or neither."""
    if all(a < b for a, b in itertools.pairwise(numbers)):
        return MET
    # Not each below the next, but the first below the last, and most of all pairs in order.
    pairs = [(a, b) for n, a in enumerate(numbers) for b in numbers[n + 1 :]]
    right = sum(a < b for a, b in pairs)
    if len(numbers) > 2 and numbers[0] < numbers[-1] and 2 * right > len(pairs):
        return DIRECTION
    return CONTRADICTED


def shape_verdict(answer: TrendAnswer, places: Sequence[Value], values: Sequence[float]) -> str:
    """Whether a series has the shape that a paper says, its ends only, or another."""
    steps = list(itertools.pairwise(values))
    slack = 1.0 + answer.within
    if answer.shape == "flat":
        return MET if max(values) <= min(values) * slack else CONTRADICTED
    if answer.shape == "peaks":
        best = max(range(len(values)), key=lambda n: values[n])
        inside = 0 < best < len(values) - 1
        if answer.between is None or not inside:
            return MET if inside else CONTRADICTED
        place = float(str(places[best]).split()[0])
        return MET if answer.between[0] <= place <= answer.between[1] else DIRECTION
    if answer.shape == "saturates":
        rises = values[-1] > values[0] * slack
        flat = values[-1] <= values[-2] * slack
        return MET if rises and flat else DIRECTION if rises else CONTRADICTED
    up = answer.shape == "rises"
    right = values[-1] > values[0] if up else values[-1] < values[0]
    steady = all(b * slack >= a if up else b <= a * slack for a, b in steps)
    return MET if right and steady else DIRECTION if right else CONTRADICTED
