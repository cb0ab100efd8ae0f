"""Results of the papers' measured claims that Graven ships, so that they can be shown at once.

`reference.csv` has a line for each claim and each alternative that was tried for it, the default
first and then what changes the claim's number most first. `python -m campaigns explained`
makes it by simulation, with the version that did so, its seeds and the size (`quick` or `full`) in
each line.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("reference.csv")

COLUMNS = (
    "claim",
    "where",
    "paper",
    "range",
    "verdict",
    "alternative",
    "kind",
    "outcome",
    "ours",
    "number",
    "rests on",
    "moves it by",
    "seeds",
    "sizes",
    "version",
)
"""Columns of the file. `number` is `ours` as a plain number, where the claim is about one."""

Line = dict[str, str]


@cache
def lines() -> tuple[Line, ...]:
    """Every line of the file."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def of_claim(claim: str) -> list[Line]:
    """The lines of a claim, the default first; none if it has not been simulated."""
    return [line for line in lines() if line["claim"] == claim]
