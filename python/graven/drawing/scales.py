"""Scales of axes that are shown together: one for all, or several where one would hide results."""

from __future__ import annotations

from collections.abc import Sequence

AUTO, ONE = "auto", "one"

SCALES = (AUTO, ONE)
"""Choices of scales: `auto` gives groups that one scale would hide another one."""

APART = 8.0
"""A group whose highest value is less than this part of the scale's end has another scale."""


def ends(tops: Sequence[float], scales: str = AUTO) -> list[float]:
    """The end of the scale of each group, from the highest value of each.

    Groups share a scale if their highest values are within a factor of `APART`.
    """
    if scales == ONE:
        return [max(tops, default=0.0)] * len(tops)
    found: list[float] = []
    for top in sorted(set(tops), reverse=True):
        if not found or 0.0 < top < found[-1] / APART:
            found.append(top)
    return [min(end for end in found if end >= top) for top in tops]


def middle(tops: Sequence[float]) -> float:
    """A value whose prefix suits all of some scales: the geometric middle of their ends."""
    known = [top for top in tops if top > 0.0]
    return (max(known) * min(known)) ** 0.5 if known else 0.0
