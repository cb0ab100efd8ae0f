"""What comes of the papers' measured claims, and what moves each.

    python -m tests.campaigns.explained [--only PATTERN] [--full] [--out FOLDER] [--jobs N]
    python -m tests.campaigns.explained --programs [--only PATTERN] [--out FOLDER] [--jobs N]
    python -m tests.campaigns.explained --table

Every measured claim is tried by default, under each reading of its paper's text, under the
method that the paper describes, and with each other value of the keys that no sentence decides,
one at a time: what `graven explain` does for one claim. Results of simulations are kept in FOLDER,
with those of `graven reproduce`, and what is there does not run again. `reference.csv`,
which Graven ships (`graven.papers.reference`), has a line for each claim and alternative, the
largest effect first (what a reading is and sets is in `papers/*/experiments.toml`);
`docs/results/claims.md` has the tables that `--table` prints.

`--programs` tries the claims that readings with real programs have something to say of by default
and with these, at quick sizes, and writes `explained-programs.csv`; `reference.csv` stays as it is.
Traces are captured if they are not in FOLDER/captures.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from graven import _engine
from graven.basics import output
from graven.cli.programs import CAPTURES, capture_programs
from graven.laboratory.crashes import CrashJob
from graven.papers import reference
from graven.papers.counts import COLUMNS as COUNTS
from graven.papers.counts import COUNTED, Count, is_close, is_number
from graven.papers.data import Claim, Paper
from graven.papers.files import papers
from graven.papers.plan import (
    AUTHORS,
    BY_DEFAULT,
    COMBINATION,
    DEFAULT,
    PROGRAMS,
    READING,
    jobs_of,
)
from graven.papers.programs import answer_with
from graven.papers.reproduction import by_digest, run
from graven.papers.rules import (
    AGREES,
    CONTRADICTED,
    DEPENDS,
    DIFFERS,
    DIRECTION_DEPENDS,
    METHOD_MEANS,
    NOT_INDEPENDENT,
    OUTCOMES,
    READING_MEANS,
    legend,
)
from graven.papers.sensitivity import Sensitivity, alternatives_of, sensitivity
from graven.papers.verdicts import each_text
from graven.running.job import Job
from graven.running.pool import host_cores
from graven.running.progress import Display
from graven.running.work import Local
from graven.store import Store

RESULTS = reference.FILE
WITH_PROGRAMS = Path(__file__).parent / "explained-programs.csv"

PROGRAMS_COLUMNS = (
    "claim",
    "paper",
    "reading",
    "outcome",
    "ours",
    "each",
)

Row = dict[str, str]

SHOWN = 30
"""What came out is shown up to so many characters; of orders and trends, whether they hold."""


def measured(pattern: str = "*") -> list[tuple[Paper, Claim]]:
    """The claims that simulations answer, those whose names match."""
    return [
        (paper, claim)
        for paper in papers().values()
        for claim in paper.claims
        if claim.measures and fnmatchcase(claim.id, pattern)
    ]


def _run(everything: Mapping[str, Job | CrashJob], store: Store, workers: int) -> None:
    with Display() as display:
        ran = run(everything, store, executor=Local(workers), observe=display)
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
        "version": _engine.__version__,
    }
    default = {
        "alternative": DEFAULT,
        "kind": DEFAULT,
        "outcome": verdict.default.verdict,
        "ours": verdict.default.ours,
        "number": _number(verdict.value_of(verdict.default)),
        "rests on": " ".join(verdict.default.rests_on),
    }
    moved = [
        {
            "alternative": move.name,
            "kind": move.kind,
            "outcome": move.found.verdict,
            "ours": move.found.ours,
            "number": _number(verdict.value_of(move.found)),
            "rests on": " ".join(move.found.rests_on),
            "moves it by": "" if move.factor is None else f"{move.factor:.3f}",
        }
        for move in found.moves
    ]
    return [shared | each for each in [default, *moved]]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def explain(claims: Sequence[tuple[Paper, Claim]], store: Store, *, quick: bool) -> list[Row]:
    """The lines of all claims."""
    return [
        row
        for paper, claim in claims
        for row in rows(sensitivity(claim, paper, store, quick=quick), quick=quick)
    ]


def programs_rows(found: Sensitivity) -> list[Row]:
    """What real programs give for a claim."""
    verdict = found.verdict
    return [
        {
            "claim": verdict.claim.id,
            "paper": verdict.paper,
            "reading": move.name,
            "outcome": move.found.verdict,
            "ours": move.found.ours,
            "each": each_text(verdict.claim, move.found),
        }
        for move in found.programs
    ]


def stored(table: Path) -> list[Row]:
    """The lines of a file."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def tables(lines: Sequence[Row], with_programs: Sequence[Row]) -> str:
    """The tables of `docs/results/claims.md`, one or two for each paper."""
    found: dict[str, list[Row]] = {}
    for line in lines:
        found.setdefault(line["claim"], []).append(line)
    parts = [*_words(lines), *counts_table(found)]
    for paper in papers().values():
        parts.append(f"## {paper.title}\n")
        parts.append(
            "| claim | paper | ours, by default | paper's method | over all readings | verdict "
            "| largest effect |"
        )
        parts.append("|---|---|---|---|---|---|---|")
        parts += [_line(found[claim.id]) for claim in paper.claims if claim.id in found]
        parts.append("")
        names = {claim.id for claim in paper.claims}
        of_paper = [row for row in with_programs if row["claim"] in names]
        parts += _programs_table(
            paper, of_paper, {name: found[name][0] for name in names & {*found}}
        )
    return "\n".join(parts)


def _words(lines: Sequence[Row]) -> list[str]:
    """The words of the tables, explained."""
    used = {line["outcome"] for line in lines} | {DEPENDS, DIRECTION_DEPENDS, DIFFERS}
    said = [*legend(used), READING_MEANS, METHOD_MEANS]
    words = [text.partition(": ") for text in said]
    return ["| word | meaning |", "|---|---|", *(_cells(w, m) for w, _, m in words), ""]


def counts_table(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """How many claims came out how, by paper and under what."""
    heads = ("claims", "under", "met within 25 %", *("numbers", "as printed", "one workload"),
             "right in direction", "contradicted", "not independent")  # fmt: skip
    parts = ["## Counts\n", "| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    every = [(paper.title.split(":")[0], list(paper.claims)) for paper in papers().values()]
    for name, claims in [*every, ("all", [c for _, of in every for c in of])]:
        chosen = [(c, found[c.id]) for c in claims if c.id in found and c.restates is None]
        for number, count in enumerate(counted(chosen)):
            cells = [count.within, count.printed, count.close, count.rest_on_one, count.directed,
                     count.outcomes.get(CONTRADICTED, 0),
                     count.outcomes.get(NOT_INDEPENDENT, 0)]  # fmt: skip
            first = [name, str(len(chosen))] if number == 0 else ["", ""]
            parts.append(_cells(*first, count.name, *map(str, cells)))
    restated = [c.id for _, of in every for c in of if c.id in found and c.restates is not None]
    said = "; ".join(COUNTS)
    return [*parts, f"\n{said[0].upper()}{said[1:]}: {', '.join(f'`{n}`' for n in restated)}.\n"]


def counted(claims: Sequence[tuple[Claim, Sequence[Row]]]) -> list[Count]:
    """The counts of stored lines, as `graven.papers.counts` has those of results."""
    counts = []
    for name in COUNTED:
        chosen = [(claim, _chosen(lines, name)) for claim, lines in claims]
        outcomes = Counter(line["outcome"] for _, line in chosen)
        within = [(claim, line) for claim, line in chosen if line["outcome"] in AGREES]
        numbers = [(claim, line) for claim, line in within if is_number(claim)]
        close = sum(is_close(claim, float(line["number"])) for claim, line in numbers)
        rest = sum(bool(line["rests on"]) for _, line in within)
        counts.append(Count(name, dict(outcomes), 0, rest, len(numbers), close))
    return counts


def _chosen(lines: Sequence[Row], name: str) -> Row:
    """The line of a claim by default, by the paper's method, or under what fits best."""
    default = lines[0]
    deciding = [line for line in lines if line["kind"] in (DEFAULT, READING, COMBINATION)]
    if name == COUNTED[1]:
        return next((line for line in lines if line["alternative"] == AUTHORS), default)
    if name == COUNTED[2]:
        return min(deciding, key=lambda line: OUTCOMES.index(line["outcome"]))
    return default


def _programs_table(paper: Paper, rows: Sequence[Row], defaults: Mapping[str, Row]) -> list[str]:
    """What real programs give for the claims of a paper, beside what comes out by default.

    Nothing if they are of none.
    """
    parts: list[str] = []
    for reading in paper.readings.values():
        of_reading = [row for row in rows if row["reading"] == reading.name]
        if of_reading:
            parts += [
                f"With *{reading.name}* in place of the paper's, which decide no verdict "
                f"({', '.join(reading.programs)}):\n",
                "| claim | paper | ours, by default | real programs | outcome | each |",
                "|---|---|---|---|---|---|",
                *(_programs_line(row, defaults[row["claim"]]) for row in of_reading),
                "",
            ]
    return parts


def _programs_line(row: Row, default: Row) -> str:
    by_default = default["ours"] if 0 < len(default["ours"]) <= SHOWN else default["outcome"]
    ours = row["ours"] if len(row["ours"]) <= SHOWN else ""
    return _cells(f"`{row['claim']}`", row["paper"], by_default, ours, row["outcome"], row["each"])


def _line(lines: Sequence[Row]) -> str:
    default, *moves = lines
    authors = next((move for move in moves if move["alternative"] == AUTHORS), None)
    most = next((move for move in moves if move["moves it by"]), None)
    moved = "" if most is None else f"{most['alternative']} (× {float(most['moves it by']):.2f})"
    return _cells(
        f"`{default['claim']}`",
        default["paper"],
        _shown(default),
        "" if authors is None else _shown(authors),
        default["range"],
        default["verdict"],
        moved,
    )


def _cells(*cells: str) -> str:
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
    parser.add_argument("--programs", action="store_true", help="real programs alone; quick sizes")
    parser.add_argument("--out", type=Path, default=Path("graven-results") / "reproduce")
    parser.add_argument("--jobs", type=int, default=host_cores(), help="simulations at a time")
    parser.add_argument("--table", action="store_true", help="print what is stored")
    given = parser.parse_args(arguments)
    if given.table:
        print(tables(reference.lines(), stored(WITH_PROGRAMS)), end="")
        return 0
    quick, store = not given.full, Store(given.out / "store")
    if given.programs:
        explain_with_programs(given.only, given.out, store, given.jobs)
        return 0
    claims = measured(given.only)
    alternatives = [
        item for paper, claim in claims for item in alternatives_of(claim, paper, quick=quick)
    ]
    _run(by_digest(jobs_of(alternatives)), store, given.jobs)
    anew = {claim.id for _, claim in claims}
    others = (
        []
        if given.only == "*"
        else [line for line in reference.lines() if line["claim"] not in anew]
    )
    _write(RESULTS, reference.COLUMNS, [*others, *explain(claims, store, quick=quick)])
    print(f"{len(claims)} claims: {RESULTS.name}")
    return 0


def explain_with_programs(pattern: str, out: Path, store: Store, workers: int) -> None:
    """Simulates what is not stored of claims with real programs, and writes their file."""
    claims = [
        (paper, claim, reading)
        for paper, claim in measured(pattern)
        for reading in paper.readings.values()
        if reading.programs and answer_with(claim, reading) is not None
    ]
    captures = out / CAPTURES
    capture_programs((name for _, _, reading in claims for name in reading.programs), captures)
    alternatives = [
        item
        for paper, claim, _ in claims
        for item in alternatives_of(claim, paper, quick=True, captures=captures)
        if item.kind in (BY_DEFAULT, PROGRAMS)
    ]
    _run(by_digest(jobs_of(alternatives)), store, workers)
    rows = [
        row
        for paper, claim, _ in claims
        for row in programs_rows(sensitivity(claim, paper, store, quick=True, captures=captures))
    ]
    anew = {claim.id for _, claim, _ in claims}
    others = [row for row in stored(WITH_PROGRAMS) if row["claim"] not in anew]
    _write(WITH_PROGRAMS, PROGRAMS_COLUMNS, [*others, *rows])
    print(f"{len(claims)} claims with real programs: {WITH_PROGRAMS.name}")


def _write(table: Path, columns: Sequence[str], lines: Sequence[Row]) -> None:
    """Writes a file, in the order of the claims; claims that are no more are left out."""
    known: dict[str, list[Row]] = {claim.id: [] for _, claim in measured()}
    for line in lines:
        if line["claim"] in known:
            known[line["claim"]].append(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(line for of_claim in known.values() for line in of_claim)
    output.write(table, text.getvalue().encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
