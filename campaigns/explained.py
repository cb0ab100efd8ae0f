"""Outcomes of the papers' measured claims, and what moves each.

Every measured claim is tried by default, under each reading of its paper's text, under the
method that the paper describes, and with each other value of the keys that no sentence decides,
one at a time: what `graven explain` does for one claim. Results of simulations are kept with those
of `graven reproduce`, and are not simulated again. `reference.csv`, which Graven ships
(`graven.papers.reference`), has a line for each claim and alternative, the largest effect first
(`papers/*/experiments.toml` has the readings and their settings). The default and the paper's
method, which decide verdicts, have three seeds; others have those of their size. `--method` runs
these two alone, and keeps what the file has of the others; `--judge` runs nothing, and judges what
the file has by the rules of today.

`--programs` tries the claims that readings with real programs have something to say of by default
and with these, at quick sizes, and writes `explained-programs.csv`; `reference.csv` stays as it is.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from graven import _engine
from graven.cli.programs import CAPTURES, capture_programs
from graven.laboratory.crashes import CrashJob
from graven.papers import reference
from graven.papers.answers import Outcome
from graven.papers.counts import (
    COLUMNS,
    COUNTED,
    HEADS,
    MEASURED,
    Count,
    Judged,
    counted,
    kind_of,
)
from graven.papers.data import SEEDS, Claim, NumberAnswer, Paper
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
from graven.papers.readings import Reading
from graven.papers.reproduction import by_digest, run
from graven.papers.rules import (
    DEPENDS,
    DIFFERS,
    DIRECTION_DEPENDS,
    METHOD_MEANS,
    NOT_RUN,
    OUTCOMES,
    READING_MEANS,
    legend,
    number_verdict,
)
from graven.papers.samples import Sample
from graven.papers.sensitivity import Sensitivity, alternatives_of, sensitivity
from graven.papers.verdicts import Verdict, decided, each_text, independent
from graven.running.job import Job
from graven.running.progress import Display
from graven.running.work import Local
from graven.store import Store

from .runner import STATES, Campaign, Given, Rows, whole
from .tables import ROOT, Row, Table, wrapped

CLAIMS = Table(
    reference.FILE.stem,
    reference.COLUMNS,
    ("claim",),
    lambda: ((claim.id,) for _, claim in measured()),
    reference.FILE.parent,
)
WITH_PROGRAMS = Table(
    "explained-programs",
    ("claim", "paper", "reading", "outcome", "ours", "each"),
    ("claim",),
    CLAIMS.order,
)

SHOWN = 30
"""Characters up to which a result is shown; of longer ones, the outcome alone."""


def measured() -> list[tuple[Paper, Claim]]:
    """Returns the claims that simulations answer."""
    return [
        (paper, claim) for paper in papers().values() for claim in paper.claims if claim.measures
    ]


def names(given: Given) -> Iterator[str]:
    """Yields the claims that are tried."""
    for paper, claim in measured():
        if not given.programs or _with_programs(paper, claim):
            yield claim.id


def _with_programs(paper: Paper, claim: Claim) -> list[Reading]:
    """Returns the readings with real programs that have something to say of a claim."""
    return [r for r in paper.readings.values() if r.programs and answer_with(claim, r)]


def options(parser: argparse.ArgumentParser) -> None:
    """Adds sizes, and the folder of results."""
    parser.add_argument("--full", action="store_true", help="the papers' sizes, three seeds")
    parser.add_argument("--programs", action="store_true", help="real programs alone; quick sizes")
    what = "the default and the paper's method alone; what else was tried stays as it is"
    parser.add_argument("--method", action="store_true", help=what)
    what = "judge stored numbers by the rules of today; simulate nothing"
    parser.add_argument("--judge", action="store_true", help=what)
    parser.add_argument("--out", type=Path, default=STATES / "reproduce", metavar="FOLDER")


def measure(name: str, given: Given) -> Rows:
    """Simulates a claim under all alternatives, or with real programs."""
    ((paper, claim),) = ((paper, claim) for paper, claim in measured() if claim.id == name)
    stored = [row for row in CLAIMS.read() if row["claim"] == name]
    if given.judge:
        return {CLAIMS: judged_again(claim, paper, stored)}
    store, quick = Store(given.out / "store"), given.programs or not given.full
    captures = given.out / CAPTURES if given.programs else None
    seeds = None if given.programs else SEEDS
    alternatives = alternatives_of(claim, paper, quick=quick, captures=captures, seeds=seeds)
    if captures is not None:
        readings = _with_programs(paper, claim)
        capture_programs((name for reading in readings for name in reading.programs), captures)
        alternatives = [item for item in alternatives if item.kind in (BY_DEFAULT, PROGRAMS)]
    if given.method:
        alternatives = [item for item in alternatives if item.name in (DEFAULT, AUTHORS)]
    _run(jobs_of(alternatives), store, given.jobs)
    found = sensitivity(claim, paper, store, quick=quick, captures=captures, seeds=seeds)
    if given.programs:
        return {WITH_PROGRAMS: programs_rows(found)}
    return {CLAIMS: rows(found, paper, stored if given.method else [], quick=quick)}


def _run(jobs: Iterable[Job | CrashJob], store: Store, workers: int) -> None:
    with Display() as display:
        ran = run(by_digest(jobs), store, executor=Local(workers), observe=display)
    whole(ran.failures, ran.interrupted)


def rows(found: Sensitivity, paper: Paper, kept: Sequence[Row] = (), *, quick: bool) -> list[Row]:
    """Makes the rows of a claim: by default, and with everything that may move it, most first.

    `kept` are rows of before, which stand for alternatives that have not run now. Their numbers are
    judged again.
    """
    verdict = found.verdict
    ran = [move for move in found.moves if move.found.verdict != NOT_RUN]
    names = {DEFAULT, *(move.name for move in ran)}
    known = {*paper.readings, *(move.name for move in found.moves)}
    others = [
        {**row, "outcome": _judged_again(verdict.claim, row)}
        for row in kept
        if row["alternative"] in known - names
    ]
    verdict = _with_others(verdict, others)
    shared = {
        "claim": verdict.claim.id,
        "where": verdict.claim.where,
        "paper": verdict.paper,
        "range": verdict.interval,
        "verdict": verdict.text,
    }
    now = {"sizes": "quick" if quick else "full", "version": _engine.__version__}

    def row(name: str, kind: str, came: Outcome, factor: float | None) -> Row:
        return now | {
            "alternative": name,
            "kind": kind,
            "outcome": came.verdict,
            "ours": came.ours,
            "number": _number(verdict.value_of(came)),
            "rests on": " ".join(came.rests_on),
            "moves it by": "" if factor is None else f"{factor:.3f}",
            "seeds": str(_seeds_of(came)),
        }

    default = row(DEFAULT, DEFAULT, verdict.default, None)
    moved = [row(move.name, move.kind, move.found, move.factor) for move in ran]
    by_effect = sorted([*moved, *others], key=lambda row: -_effect(row["moves it by"]))
    return [{**each, **shared} for each in [default, *by_effect]]


def judged_again(claim: Claim, paper: Paper, stored: Sequence[Row]) -> list[Row]:
    """Returns stored rows of a claim with outcomes and verdict by the rules of today.

    What is stored of several seeds was judged when it was made, with its interval.
    """
    again = [
        row
        if row.get("seeds", "") not in ("", "1")
        else {**row, "outcome": _judged_again(claim, row), "seeds": row.get("seeds") or "1"}
        for row in stored
    ]
    default, *others = again
    tried = alternatives_of(claim, paper, quick=True)
    bearing = tuple(dict.fromkeys(item.name for item in tried if item.kind == READING))
    numbers = {"": Sample((float(default["number"]),))} if default["number"] else {}
    outcomes = {DEFAULT: Outcome(default["outcome"], default["ours"], numbers)}
    alone = Verdict(claim, MEASURED, default["paper"], outcomes, "", "", "", bearing)
    verdict = _with_others(alone, others)
    return [{**row, "verdict": verdict.text, "range": verdict.interval} for row in again]


def _effect(factor: str) -> float:
    return abs(math.log(float(factor))) if factor and float(factor) > 0.0 else -1.0


def _seeds_of(found: Outcome) -> int:
    return max((len(number.values) for number in found.numbers.values()), default=0)


def _judged_again(claim: Claim, row: Row) -> str:
    """Returns the outcome of a stored row, of its number where it has one."""
    if not isinstance(claim.answer, NumberAnswer) or not row["number"]:
        return row["outcome"]
    ours = Sample((float(row["number"]),))
    outcome = Outcome(number_verdict(claim.answer, ours))
    return independent(claim, outcome).verdict


def _with_others(verdict: Verdict, others: Sequence[Row]) -> Verdict:
    """Returns the verdict with what stored rows say of readings."""
    readings = [row for row in others if row["kind"] in (READING, COMBINATION)]
    outcomes = dict(verdict.outcomes)
    for row in readings:
        numbers = {row["alternative"]: Sample((float(row["number"]),))} if row["number"] else {}
        outcomes[row["alternative"]] = Outcome(row["outcome"], row["ours"], numbers)
    word, decides = decided(outcomes, verdict.readings)
    return replace(verdict, outcomes=outcomes, verdict=word, decides=decides)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def programs_rows(found: Sensitivity) -> list[Row]:
    """Makes the rows of a claim with real programs."""
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


def blocks(lines: Sequence[Row], with_programs: Sequence[Row]) -> list[str]:
    """Makes the tables of the page: words, counts, one or two for each paper."""
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
    return ["\n".join(parts)]


def _words(lines: Sequence[Row]) -> list[str]:
    """The words of the tables, explained."""
    used = {line["outcome"] for line in lines} | {DEPENDS, DIRECTION_DEPENDS, DIFFERS}
    said = [*legend(used), READING_MEANS, METHOD_MEANS]
    words = [text.partition(": ") for text in said]
    return ["| word | meaning |", "|---|---|", *(_cells(w, m) for w, _, m in words), ""]


def counts_table(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Makes the tables of outcomes, by paper: printed numbers, orders and trends."""
    parts = ["## Counts\n"]
    every = [(paper.title.split(":")[0], list(paper.claims)) for paper in papers().values()]
    of_all = ("all", [claim for _, claims in every for claim in claims])
    for kind, heads in HEADS.items():
        parts.append(f"| {kind} | under | " + " | ".join(heads) + " |")
        parts.append("|---" * (len(heads) + 2) + "|")
        for name, claims in [*every, of_all]:
            chosen = [
                (claim, found[claim.id])
                for claim in claims
                if claim.id in found and claim.restates is None and kind_of(claim) == kind
            ]
            for number, count in enumerate(counts_of(kind, chosen)):
                cells = [str(cell or "") for cell in count.cells]
                parts.append(_cells("" if number else name, count.name, *cells))
        parts.append("")
    restated = [c.id for c in of_all[1] if c.id in found and c.restates is not None]
    said = "; ".join(COLUMNS)
    names = ", ".join(f"`{name}`" for name in restated)
    return [*parts, wrapped(f"{said[0].upper()}{said[1:]}: {names}."), ""]


def counts_of(kind: str, claims: Sequence[tuple[Claim, Sequence[Row]]]) -> list[Count]:
    """Counts stored lines of claims of one kind."""
    return [
        counted(
            name,
            kind,
            [
                Judged(claim, line["outcome"], bool(line["rests on"]))
                for claim, lines in claims
                for line in [_chosen(lines, name)]
            ],
        )
        for name in COUNTED
    ]


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
                wrapped(
                    f"With *{reading.name}* in place of the paper's programs; these results "
                    f"decide no verdict. Programs: {', '.join(reading.programs)}."
                ),
                "",
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


CAMPAIGN = Campaign(
    names,
    measure,
    [CLAIMS, WITH_PROGRAMS],
    ROOT / "docs/results/claims.md",
    blocks,
    options=options,
    sizes=("full", "programs", "method", "judge"),
)
