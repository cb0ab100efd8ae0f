"""The page of what changed between two sets of results: one HTML file that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graven.drawing.pages.page import complete
from graven.results.changes import Change, Changes

SHOWN_MOST = 1000
"""Number of simulations that are shown of each metric at most: those that change most."""


def render(changes: Changes, names: tuple[str, str]) -> str:
    """Returns the page of changes between two sets of these names."""
    return complete(
        "changes.html", changes=changes, names=names, most=SHOWN_MOST, widest=_widest, bar=_bar
    )


def _widest(shown: Sequence[Change]) -> float:
    """Returns the size of the change that has the longest bar."""
    return max((change.size for change in shown if math.isfinite(change.size)), default=1.0)


def _bar(change: Change, widest: float) -> tuple[float, float]:
    """Returns where a bar begins and its length, in percent; its middle is no change."""
    length = 50.0 * min(change.size / widest, 1.0)
    begin = 50.0 if change.right > change.left else 50.0 - length
    return round(begin, 2), round(length, 2)
