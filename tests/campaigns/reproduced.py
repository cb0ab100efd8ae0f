"""The papers' figures and claims at the papers' sizes, beside those at quick sizes.

    python -m tests.campaigns.reproduced [PAPER ...] [--figures PATTERN] [--out FOLDER]
                                         [--readings none|authors|all] [--jobs N]
    python -m tests.campaigns.reproduced --stored   write the page from the tables

Simulates what `graven reproduce PAPER` and `graven reproduce PAPER --quick` do, one paper after the
other (all if none is named), keeps each result in FOLDER as it comes, goes on from there after an
interrupt, and writes two tables, in which rows of papers that were not named stay, and with
`--figures` those of figures whose names do not match and of claims that those do not answer:
`reproduced.csv` has every number of every figure at both sizes, with the least and the greatest of
its three seeds at full size and what the paper prints; `reproduced-claims.csv` what came of every
claim that simulations answer. `docs/results/full-sizes.md` shows what is in them, and names what a
quick size says otherwise than the paper's size by more than `APART`.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.campaigns.tables import ROOT, STATES, Row, read_rows, table_of, write_page, write_rows

from graven.papers.answers import Outcome
from graven.papers.counts import MEASURED
from graven.papers.data import Paper
from graven.papers.files import papers
from graven.papers.panels import Point, drawn
from graven.papers.plan import AUTHORS, DEFAULT, READINGS, Wanted
from graven.papers.reproduction import Reproduction, collect, needed, run
from graven.papers.rules import AGREES, DIRECTION
from graven.papers.verdicts import Verdict, verdicts
from graven.running.pool import host_cores
from graven.running.progress import Display
from graven.running.work import Local
from graven.store import Store

TABLE = Path(__file__).parent / "reproduced.csv"
CLAIMS = Path(__file__).parent / "reproduced-claims.csv"
PAGE = ROOT / "docs/results/full-sizes.md"

APART = 0.10
"""The share of the number at full size by which that at the quick size may differ."""

SHOWN = 40
"""What came out is shown up to so many characters; of orders and trends, the outcome."""

PLACE = ("paper", "figure", "panel", "design", "column")
COLUMNS = (*PLACE, "quick", "full", "least", "greatest", "printed", "claim")

CLAIM_COLUMNS = (
    "paper", "claim", "printed", "alternative", "quick_outcome", "quick", "full_outcome", "full",
    "apart",
)  # fmt: skip


def figure_rows(quick: Reproduction, full: Reproduction) -> Iterator[Row]:
    """Every wanted number at full size, with that at the quick size if it has one."""
    wanted = full.wanted
    names = wanted.paper.figures if wanted.figures is None else wanted.figures
    for figure in names:
        at_quick = dict(_points(quick, figure))
        for place, point in _points(full, figure):
            yield {
                **dict(zip(PLACE, (wanted.paper.name, figure, *place), strict=True)),
                "quick": _text(at_quick[place].value if place in at_quick else None),
                "full": _text(point.value),
                "least": _text(point.low),
                "greatest": _text(point.high),
                "printed": _text(point.printed),
                "claim": point.claim or "",
            }


def _points(found: Reproduction, figure: str) -> Iterator[tuple[tuple[str, str, str], Point]]:
    for panel in drawn(found.wanted.paper.figures[figure], found).panels:
        for design, points in panel.rows.items():
            for column, point in zip(panel.columns, points, strict=True):
                yield (panel.caption, design, column), point


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def claim_rows(quick: Sequence[Verdict], full: Sequence[Verdict]) -> Iterator[Row]:
    """What came of a paper's claims at both sizes, by default and by the paper's method."""
    at_quick = {verdict.claim.id: verdict for verdict in quick}
    for verdict in full:
        if verdict.kind != MEASURED:
            continue
        other = at_quick[verdict.claim.id]
        for name in (DEFAULT, AUTHORS):
            if name in verdict.outcomes and name in other.outcomes:
                ours, theirs = verdict.outcomes[name], other.outcomes[name]
                yield {
                    "claim": verdict.claim.id,
                    "printed": verdict.paper,
                    "alternative": name,
                    "quick_outcome": theirs.verdict,
                    "quick": theirs.ours,
                    "full_outcome": ours.verdict,
                    "full": ours.ours,
                    "apart": _text(farthest(theirs, ours)),
                }


def farthest(quick: Outcome, full: Outcome) -> float | None:
    """The largest share by which a number at the quick size differs from that at full size."""
    shares = [
        abs(quick.numbers[name].mean / sample.mean - 1)
        for name, sample in full.numbers.items()
        if name in quick.numbers and sample.mean
    ]
    return max(shares, default=None)


def apart(row: Row) -> float | None:
    """By which share of the full size's number the quick size's differs, in a row of a figure."""
    if not row["quick"] or not row["full"] or not float(row["full"]):
        return None
    return float(row["quick"]) / float(row["full"]) - 1


def is_apart(row: Row) -> bool:
    """Whether a quick size says otherwise: by more than `APART`, and not among the seeds."""
    share = apart(row)
    if share is None or abs(share) <= APART:
        return False
    return not float(row["least"]) <= float(row["quick"]) <= float(row["greatest"])


# ---- the page ----------------------------------------------------------------------------------


def blocks(rows: Sequence[Row], claims: Sequence[Row]) -> list[str]:
    """What the page shows, in its order: counts of claims, claims that differ, figures."""
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


def measure(wanted: Wanted, store: Store, workers: int) -> tuple[list[Row], list[Row]]:
    """Simulates what is not stored, at both sizes; returns the rows of both tables."""
    found = []
    for quick in (True, False):
        wanted = replace(wanted, quick=quick)
        with Display() as display:
            ran = run(needed([wanted]), store, executor=Local(workers), observe=display)
        if ran.failures or ran.interrupted:
            sys.exit(f"{wanted.paper.name} is not complete: {ran.failures or 'interrupted'}")
        found.append(collect(wanted, store))
    quick_size, full_size = found
    rows = list(figure_rows(quick_size, full_size))
    claims = claim_rows(verdicts(quick_size), verdicts(full_size))
    return rows, [{"paper": wanted.paper.name} | dict(row) for row in claims]


def with_rows(before: Iterable[Row], wanted: Wanted, rows: Sequence[Row], column: str) -> list[Row]:
    """A table with new rows of a paper, in the order of the papers and of their figures or claims.

    Args:
        before: The rows of the table.
        wanted: What was simulated; of a part, the other rows of the paper stay.
        rows: The new ones.
        column: What rows are of: `figure` or `claim`.
    """
    paper = wanted.paper
    order = [claim.id for claim in paper.claims] if column == "claim" else list(paper.figures)
    by_paper: dict[str, list[Row]] = {name: [] for name in papers()}
    for row in before:
        by_paper[row["paper"]].append(row)
    anew = {row[column] for row in rows}
    others = [] if wanted.figures is None else by_paper[paper.name]
    of_paper = [row for row in others if row[column] not in anew and row[column] in order]
    by_paper[paper.name] = sorted([*of_paper, *rows], key=lambda row: order.index(row[column]))
    return [row for of_paper in by_paper.values() for row in of_paper]


def figures_of(paper: Paper, pattern: str) -> tuple[str, ...] | None:
    """The figures of a paper that a glob matches; `None` if all are meant."""
    return None if pattern == "*" else tuple(fnmatch.filter(paper.figures, pattern))


def main(arguments: list[str]) -> int:
    """Simulates what is not stored, and writes tables and page; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.reproduced")
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(papers())}")
    what = "figures to measure, and the claims that they answer (a glob); other rows stay"
    parser.add_argument("--figures", default="*", metavar="PATTERN", help=what)
    parser.add_argument("--stored", action="store_true", help="run nothing")
    parser.add_argument("--out", type=Path, default=STATES / "reproduce")
    parser.add_argument(
        "--readings", choices=READINGS, default=READINGS[0], help="beside the default"
    )
    parser.add_argument("--jobs", type=int, default=host_cores(), help="simulations at a time")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.papers if name not in papers()]:
        parser.error(f"no paper is named {unknown[0]}: there are {', '.join(papers())}")
    chosen = [papers()[name] for name in given.papers or papers()]
    parts = [
        Wanted(paper, quick=True, figures=figures, readings=given.readings)
        for paper in chosen
        if (figures := figures_of(paper, given.figures)) != ()
    ]
    if not parts:
        among = ", ".join(figure for paper in chosen for figure in paper.figures)
        parser.error(f"no figure matches {given.figures}: there are {among}")
    if not given.stored:
        given.out.mkdir(parents=True, exist_ok=True)
        store = Store(given.out / "store")
        for wanted in parts:
            rows, claims = measure(wanted, store, given.jobs)
            write_rows(TABLE, COLUMNS, with_rows(read_rows(TABLE), wanted, rows, "figure"))
            write_rows(CLAIMS, CLAIM_COLUMNS, with_rows(read_rows(CLAIMS), wanted, claims, "claim"))
    rows, claims = read_rows(TABLE), read_rows(CLAIMS)
    write_page(PAGE, *blocks(rows, claims))
    print(f"{len(rows):,} numbers, {len(claims):,} outcomes: {TABLE.name}, {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
