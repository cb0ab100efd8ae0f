"""The papers' figures and claims at the papers' sizes, beside those at quick sizes.

The campaign simulates what `graven reproduce PAPER` and `graven reproduce PAPER --quick` do, a task
for each paper, and keeps each result as it comes. `reproduced.csv` has every number of every figure
at both sizes, with the least and the greatest of its three seeds at full size and what the paper
prints; `reproduced-claims.csv` has the outcome of every claim that simulations answer. The page
names results at a quick size that differ from those at the paper's size by more than `APART`.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from graven.papers.answers import Outcome
from graven.papers.counts import MEASURED
from graven.papers.data import Paper
from graven.papers.files import papers
from graven.papers.panels import Point, drawn
from graven.papers.plan import AUTHORS, DEFAULT, READINGS, Wanted
from graven.papers.reproduction import Reproduction, collect, needed, run
from graven.papers.rules import AGREES, DIRECTION
from graven.papers.verdicts import Verdict, verdicts
from graven.running.progress import Display
from graven.running.work import Local
from graven.store import Store

from .runner import STATES, Campaign, Failed, Given, Rows, whole
from .tables import ROOT, Row, Table, table_of

APART = 0.10
"""The share of the number at full size by which that at the quick size may differ."""

SHOWN = 40
"""Characters up to which a result is shown; of longer ones, the outcome alone."""

PLACE = ("paper", "figure", "panel", "design", "column")
TABLE = Table(
    "reproduced",
    (*PLACE, "quick", "full", "least", "greatest", "printed", "claim"),
    ("paper", "figure"),
    lambda: ((paper.name, figure) for paper in papers().values() for figure in paper.figures),
)
CLAIMS = Table(
    "reproduced-claims",
    (
        "paper", "claim", "printed", "alternative", "quick_outcome", "quick", "full_outcome",
        "full", "apart",
    ),
    ("paper", "claim"),
    lambda: (
        (paper.name, claim.id)
        for paper in papers().values()
        for claim in paper.claims
        if claim.measures
    ),
)  # fmt: skip


def figure_rows(quick: Reproduction, full: Reproduction) -> Iterator[Row]:
    """Yields every wanted number at full size, with that at the quick size if it has one."""
    wanted = full.wanted
    figures = wanted.paper.figures if wanted.figures is None else wanted.figures
    for figure in figures:
        at_quick = dict(_points(quick, figure))
        for place, point in _points(full, figure):
            at_quick_size = at_quick[place].value if place in at_quick else None
            values = (at_quick_size, point.value, point.low, point.high, point.printed)
            names = (wanted.paper.name, figure, *place)
            yield TABLE.row(*names, *map(_text, values), point.claim or "")


def _points(found: Reproduction, figure: str) -> Iterator[tuple[tuple[str, str, str], Point]]:
    for panel in drawn(found.wanted.paper.figures[figure], found).panels:
        for design, points in panel.rows.items():
            for column, point in zip(panel.columns, points, strict=True):
                yield (panel.caption, design, column), point


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def claim_rows(paper: str, quick: Sequence[Verdict], full: Sequence[Verdict]) -> Iterator[Row]:
    """Yields outcomes of a paper's claims at both sizes, by default and by the paper's method."""
    at_quick = {verdict.claim.id: verdict for verdict in quick}
    for verdict in full:
        if verdict.kind != MEASURED:
            continue
        other = at_quick[verdict.claim.id]
        for name in (DEFAULT, AUTHORS):
            if name in verdict.outcomes and name in other.outcomes:
                ours, theirs = verdict.outcomes[name], other.outcomes[name]
                sizes = (theirs.verdict, theirs.ours, ours.verdict, ours.ours)
                of = (paper, verdict.claim.id, verdict.paper, name)
                yield CLAIMS.row(*of, *sizes, _text(farthest(theirs, ours)))


def farthest(quick: Outcome, full: Outcome) -> float | None:
    """Returns the largest share by which a number differs at the quick size."""
    shares = [
        abs(quick.numbers[name].mean / sample.mean - 1)
        for name, sample in full.numbers.items()
        if name in quick.numbers and sample.mean
    ]
    return max(shares, default=None)


def apart(row: Row) -> float | None:
    """Returns the share of the full size's number by which the quick size's differs."""
    if not row["quick"] or not row["full"] or not float(row["full"]):
        return None
    return float(row["quick"]) / float(row["full"]) - 1


def is_apart(row: Row) -> bool:
    """Returns True if a quick size differs by more than `APART`, and from all seeds."""
    share = apart(row)
    if share is None or abs(share) <= APART:
        return False
    return not float(row["least"]) <= float(row["quick"]) <= float(row["greatest"])


# ---- the page ----------------------------------------------------------------------------------


def blocks(rows: Sequence[Row], claims: Sequence[Row]) -> list[str]:
    """Makes the parts of the page: counts of claims, claims that differ, figures."""
    return [_counts(claims), _differing(claims), _figures(rows)]


def _counts(claims: Sequence[Row]) -> str:
    lines = []
    names = list(dict.fromkeys(row["paper"] for row in claims))
    for name in [*names, "all"]:
        of_paper = [row for row in claims if name in (row["paper"], "all")]
        default = [row for row in of_paper if row["alternative"] == DEFAULT]
        cells = [name, str(len(default))]
        for size in ("quick", "full"):
            cells += _within(default, size)
        cells.append(str(sum(row["quick_outcome"] != row["full_outcome"] for row in default)))
        lines.append(cells)
    head = (
        "", "claims", "within 25 %, quick", "right in direction, quick", "within 25 %, full",
        "right in direction, full", "other outcome",
    )  # fmt: skip
    return table_of(head, lines)


def _within(rows: Iterable[Row], size: str) -> list[str]:
    outcomes = [row[f"{size}_outcome"] for row in rows]
    within = sum(outcome in AGREES for outcome in outcomes)
    return [str(within), str(within + outcomes.count(DIRECTION))]


def _differing(claims: Sequence[Row]) -> str:
    lines = [
        (
            f"`{row['claim']}`",
            row["printed"].replace("|", "\\|"),
            _shown(row, "quick"),
            _shown(row, "full"),
            f"{float(row['apart']):.0%}" if row["apart"] else "",
        )
        for row in claims
        if row["alternative"] == DEFAULT
        and (
            row["quick_outcome"] != row["full_outcome"]
            or (row["apart"] and float(row["apart"]) > APART)
        )
    ]
    return table_of(("claim", "printed", "quick", "full", "farthest number"), lines, texts=4)


def _shown(row: Row, size: str) -> str:
    text = row[size] if len(row[size]) <= SHOWN else ""
    return f"{row[f'{size}_outcome']}: {text}" if text else row[f"{size}_outcome"]


def _figures(rows: Sequence[Row]) -> str:
    lines = []
    by_figure: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_figure.setdefault((row["paper"], row["figure"]), []).append(row)
    for (paper, figure), of_figure in by_figure.items():
        shares = [abs(share) for row in of_figure if (share := apart(row)) is not None]
        beyond = [row for row in of_figure if is_apart(row)]
        worst = max(beyond, key=lambda row: abs(apart(row) or 0.0), default=None)
        lines.append(
            (
                f"{paper} `{figure}`",
                "" if worst is None else f"{_place(worst)}: {worst['quick']} for {worst['full']}",
                str(len(of_figure)),
                str(len(shares)),
                f"{statistics.median(shares):.1%}" if shares else "",
                str(len(beyond)),
            )
        )
    head = (
        "figure", "farthest apart: quick for full", "numbers", "with a quick one",
        "median difference", "apart",
    )  # fmt: skip
    return table_of(head, lines, texts=2)


def _place(row: Row) -> str:
    return ", ".join(text for text in (row["panel"], row["design"], row["column"]) if text)


# ---- running -----------------------------------------------------------------------------------


def measure(wanted: Wanted, store: Store, workers: int) -> Rows:
    """Simulates what is not stored, at both sizes; returns the rows of both tables."""
    found = []
    for quick in (True, False):
        wanted = replace(wanted, quick=quick)
        with Display() as display:
            ran = run(needed([wanted]), store, executor=Local(workers), observe=display)
        whole(ran.failures, ran.interrupted)
        found.append(collect(wanted, store))
    quick_size, full_size = found
    claims = claim_rows(wanted.paper.name, verdicts(quick_size), verdicts(full_size))
    return {TABLE: list(figure_rows(quick_size, full_size)), CLAIMS: list(claims)}


def figures_of(paper: Paper, pattern: str) -> tuple[str, ...] | None:
    """Returns the figures of a paper that a glob matches; `None` if all are meant.

    Raises:
        Failed: No figure matches.
    """
    if pattern == "*":
        return None
    figures = tuple(fnmatch.filter(paper.figures, pattern))
    if not figures:
        raise Failed(f"no figure matches {pattern}: there are {', '.join(paper.figures)}")
    return figures


def run_paper(name: str, given: Given) -> Rows:
    """Simulates a paper, or some of its figures."""
    paper = papers()[name]
    figures = figures_of(paper, given.figures)
    wanted = Wanted(paper, quick=True, figures=figures, readings=given.readings)
    return measure(wanted, Store(given.out / "store"), given.jobs)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds figures, readings, and the folder of results."""
    what = "figures to measure, and the claims that they answer (a glob); other rows stay"
    parser.add_argument("--figures", default="*", metavar="PATTERN", help=what)
    parser.add_argument("--out", type=Path, default=STATES / "reproduce", metavar="FOLDER")
    what = "beside the default"
    parser.add_argument("--readings", choices=READINGS, default=READINGS[0], help=what)


CAMPAIGN = Campaign(
    lambda _: papers(),
    run_paper,
    [TABLE, CLAIMS],
    ROOT / "docs/results/full-sizes.md",
    blocks,
    options=options,
    sizes=("readings",),
    repeats=lambda _, given: given.figures != "*",
)
