"""What comes of the papers' measured claims, and what moves each.

    python -m tests.campaigns.explained [--only PATTERN] [--full] [--out FOLDER] [--jobs N]
    python -m tests.campaigns.explained --table

Every measured claim is tried by default, under each reading of its paper's text, under the
combination that its authors had, and with each other value of the keys that no sentence decides,
one at a time: what `graven explain` does for one claim. Results of simulations are kept in FOLDER,
with those of `graven reproduce`, and what is there does not run again. `explained.csv` has a line
for each claim and alternative, what moves a claim most first (what a reading is and sets is in
`papers/*/experiments.toml`); `docs/claims.md` has the tables that `--table` prints.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from graven import output
from graven.campaign import CrashJob
from graven.cli.terminal import person_console
from graven.experiment import Job, host_cores
from graven.papers.data import Claim, Paper
from graven.papers.files import papers
from graven.papers.plan import AUTHORS, DEFAULT, jobs_of
from graven.papers.reproduction import by_digest, run
from graven.papers.sensitivity import Sensitivity, alternatives_of, sensitivity
from graven.papers.store import Store
from graven.progress import Display

RESULTS = Path(__file__).parent / "explained.csv"

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
    "rests on",
    "moves it by",
    "sizes",
)

Row = dict[str, str]


def measured(pattern: str = "*") -> list[tuple[Paper, Claim]]:
    """The claims that simulations answer, those whose names match."""
    return [
        (paper, claim)
        for paper in papers().values()
        for claim in paper.claims
        if claim.measures and fnmatchcase(claim.id, pattern)
    ]


def _run(everything: Mapping[str, Job | CrashJob], store: Store, workers: int) -> None:
    with Display(person_console()) as display:
        ran = run(everything, store, workers=workers, observe=display)
    if ran.failures or ran.interrupted:
        sys.exit(f"not complete: {ran.failures or 'interrupted'}")


def rows(found: Sensitivity, *, quick: bool) -> list[Row]:
    """What came of a claim by default, and of everything that may move it, most first."""
    verdict = found.verdict
    shared = {
        "claim": verdict.claim.id,
        "where": verdict.claim.where,
        "paper": verdict.paper,
        "range": verdict.interval,
        "verdict": verdict.text,
        "sizes": "quick" if quick else "full",
    }
    default = {
        "alternative": DEFAULT,
        "kind": DEFAULT,
        "outcome": verdict.default.verdict,
        "ours": verdict.default.ours,
        "rests on": " ".join(verdict.default.rests_on),
    }
    moved = [
        {
            "alternative": move.name,
            "kind": move.kind,
            "outcome": move.found.verdict,
            "ours": move.found.ours,
            "rests on": " ".join(move.found.rests_on),
            "moves it by": "" if move.factor is None else f"{move.factor:.3f}",
        }
        for move in found.moves
    ]
    return [shared | each for each in [default, *moved]]


def explain(claims: Sequence[tuple[Paper, Claim]], store: Store, *, quick: bool) -> list[Row]:
    """The lines of all claims."""
    return [
        row
        for paper, claim in claims
        for row in rows(sensitivity(claim, paper, store, quick=quick), quick=quick)
    ]


def stored() -> list[Row]:
    """The lines of the file."""
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def tables(lines: Sequence[Row]) -> str:
    """The tables of `docs/claims.md`, one for each paper."""
    found: dict[str, list[Row]] = {}
    for line in lines:
        found.setdefault(line["claim"], []).append(line)
    parts = []
    for paper in papers().values():
        parts.append(f"## {paper.title}\n")
        parts.append(
            "| claim | printed | by default | as its authors had it | over all readings | verdict "
            "| moves it most |"
        )
        parts.append("|---|---|---|---|---|---|---|")
        parts += [_line(found[claim.id]) for claim in paper.claims if claim.id in found]
        parts.append("")
    return "\n".join(parts)


SHOWN = 30
"""What came out is shown up to so many characters; of orders and trends, whether they hold."""


def _line(lines: Sequence[Row]) -> str:
    default, *moves = lines
    authors = next((move for move in moves if move["alternative"] == AUTHORS), None)
    most = next((move for move in moves if move["moves it by"]), None)
    moved = "" if most is None else f"{most['alternative']} (× {float(most['moves it by']):.2f})"
    cells = (
        f"`{default['claim']}`",
        default["paper"],
        _shown(default),
        "" if authors is None else _shown(authors),
        default["range"],
        default["verdict"],
        moved,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _shown(line: Row) -> str:
    if not 0 < len(line["ours"]) <= SHOWN:
        return line["outcome"]
    rests = ", ".join(line["rests on"].split())
    return f"{line['ours']} (rests on {rests})" if rests else line["ours"]


def main(arguments: list[str]) -> int:
    """Simulates what is not stored, and writes the file; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.explained")
    what = "claims to measure anew (a glob); lines of others stay"
    parser.add_argument("--only", default="*", metavar="PATTERN", help=what)
    parser.add_argument("--full", action="store_true", help="the papers' sizes, three seeds")
    parser.add_argument("--out", type=Path, default=Path("graven-results") / "reproduce")
    parser.add_argument("--jobs", type=int, default=host_cores(), help="simulations at a time")
    parser.add_argument("--table", action="store_true", help="print what explained.csv has")
    given = parser.parse_args(arguments)
    if given.table:
        print(tables(stored()), end="")
        return 0
    quick, store = not given.full, Store(given.out / "store")
    claims = measured(given.only)
    alternatives = [
        item for paper, claim in claims for item in alternatives_of(claim, paper, quick=quick)
    ]
    _run(by_digest(jobs_of(alternatives)), store, given.jobs)
    anew = {claim.id for _, claim in claims}
    others = [] if given.only == "*" else [line for line in stored() if line["claim"] not in anew]
    known: dict[str, list[Row]] = {claim.id: [] for _, claim in measured()}
    for line in [*others, *explain(claims, store, quick=quick)]:
        known[line["claim"]].append(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(line for lines in known.values() for line in lines)
    output.write(RESULTS, text.getvalue().encode())
    print(f"{len(claims)} claims: {RESULTS.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
