"""Sensitivity of claims: the outcome under each reading and with each value of an open key.

One thing is changed at a time. How far an alternative moves a claim is how far it moves the one of
its numbers that moves most, as a factor; twice as much is as far as half as much. Readings may
decide a verdict; open keys, for which no sentence speaks, and real programs in place of the paper's
are shown apart and decide none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graven import _engine
from graven.papers.answers import Outcome, View, outcome
from graven.papers.data import Claim, NumberAnswer, Paper, Study, measures_of
from graven.papers.needs import bearing, needs
from graven.papers.plan import (
    AUTHORS,
    DEFAULT,
    EVERYTHING,
    OPEN,
    PROGRAMS,
    Alternative,
    Wanted,
    alternatives,
    seeded,
)
from graven.papers.programs import answer_with
from graven.papers.reproduction import Reproduction, gather
from graven.papers.samples import Sample
from graven.papers.verdicts import Verdict, assess, independent
from graven.results.formats import json_text
from graven.running.job import Job
from graven.store import Store

APART = (OPEN, PROGRAMS)
"""Alternatives that decide no verdict."""


@dataclass(frozen=True)
class Move:
    """Effect of an alternative on a claim.

    Attributes:
        name: A reading, the paper's method, or a value of an open key.
        kind: Which of these, as in `plan`.
        found: What came out.
        number: Which of the claim's numbers moves most; empty if none is known.
        before: That number by default.
        after: That number under the alternative.
        sentence: The sentence that allows it; of an open key, what makes the value sensible.
        changes: What it sets.
    """

    name: str
    kind: str
    found: Outcome
    number: str
    before: float | None
    after: float | None
    sentence: str
    changes: str

    @property
    def factor(self) -> float | None:
        """The number over what it is by default; `None` if it has no sense."""
        if self.before is None or self.after is None or self.before * self.after <= 0.0:
            return None
        return self.after / self.before

    @property
    def size(self) -> float:
        """Size of the effect: the logarithm of the factor, without its sign."""
        return math.inf if self.factor is None else abs(math.log(self.factor))


@dataclass(frozen=True)
class Sensitivity:
    """A claim and everything that may move it, most first.

    Attributes:
        verdict: The claim with its verdict, over its readings alone.
        moves: What each alternative does to it; those without a result come last.
        programs: What real programs in place of the paper's give.
    """

    verdict: Verdict
    moves: tuple[Move, ...]
    programs: tuple[Move, ...] = ()


def alternatives_of(
    claim: Claim,
    paper: Paper,
    *,
    quick: bool,
    captures: Path | None = None,
    seeds: int | None = None,
) -> list[Alternative]:
    """The default and all that may move a claim, each with the simulations that it needs alone.

    Args:
        claim: The claim.
        paper: Its paper.
        quick: True for the quick size.
        captures: Folder with traces, for real programs, too.
        seeds: Seeds by default and by the paper's method, which decide verdicts; `None` for as
            many as the experiments have.
    """
    studies = dict.fromkeys(name for measure in claim.measures for name in measure.studies)
    return [
        _only(claim, paper, item.study, item)
        for name in studies
        for item in _tried(paper, paper.studies[name].sized(quick=quick), captures, seeds)
    ]


def _tried(
    paper: Paper, study: Study, captures: Path | None, seeds: int | None
) -> list[Alternative]:
    found = alternatives(paper, study, opened=True, captures=captures)
    if seeds is None:
        return found
    more = {item.name: item for item in alternatives(paper, seeded(study, seeds))}
    return [more[item.name] if item.name in (DEFAULT, AUTHORS) else item for item in found]


def _only(claim: Claim, paper: Paper, study: Study, item: Alternative) -> Alternative:
    measures = [measure for measure in claim.measures if study.id in measure.studies]
    if item.kind == PROGRAMS:
        answer = answer_with(claim, paper.readings[item.name])
        measures = [] if answer is None else list(measures_of(answer))

    def wanted(job: Job) -> bool:
        return any(needs(measure, job) for measure in measures)

    jobs = tuple(job for job in item.jobs if wanted(job))
    changed = frozenset(job for job in item.changed if wanted(job))
    return Alternative(item.study, item.name, item.kind, jobs, changed, item.metrics)


def sensitivity(
    claim: Claim,
    paper: Paper,
    store: Store,
    *,
    quick: bool,
    captures: Path | None = None,
    seeds: int | None = None,
) -> Sensitivity:
    """Collects what is stored of all that may move a claim, with real programs if `captures`."""
    named = () if captures is None else tuple(paper.readings)
    wanted = Wanted(paper, quick, readings=EVERYTHING, named=named, captures=captures)
    known = alternatives_of(claim, paper, quick=quick, captures=captures, seeds=seeds)
    found = gather(wanted, known, store)
    verdict = assess(claim, found)
    default = verdict.default
    names = bearing(claim.measures, found.results)
    moves = [_move(name, claim, paper, found, default) for name in names]
    ordered = sorted(moves, key=lambda move: (move.factor is None, -move.size))
    programs = [
        _moved(name, PROGRAMS, came, paper, default) for name, came in verdict.programs.items()
    ]
    return Sensitivity(verdict, tuple(ordered), tuple(programs))


def _move(name: str, claim: Claim, paper: Paper, found: Reproduction, default: Outcome) -> Move:
    kind = next(r.tried[name].kind for r in found.results.values() if name in r.tried)
    came = outcome(claim.answer, View(found.results, name))  # type: ignore[arg-type]
    came = independent(claim, came)
    return _moved(name, kind, came, paper, default)


def _moved(name: str, kind: str, came: Outcome, paper: Paper, default: Outcome) -> Move:
    number, before, after = _farthest(default.numbers, came.numbers)
    return Move(name, kind, came, number, before, after, *_grounds(name, kind, paper))


def _grounds(name: str, kind: str, paper: Paper) -> tuple[str, str]:
    """The sentence for an alternative, and what it sets."""
    if kind == OPEN:
        return paper.open[name.split(" = ")[0]].why, name
    if name == AUTHORS:
        theirs = [reading for reading in paper.readings.values() if reading.authors]
        names = ", ".join(reading.name for reading in theirs)
        return f"together: {names}", "; ".join(reading.changes for reading in theirs)
    reading = paper.readings[name]
    return f"“{reading.quote}” ({reading.where})", reading.changes


def _farthest(
    default: Mapping[str, Sample], other: Mapping[str, Sample]
) -> tuple[str, float | None, float | None]:
    """The number that moves most, by default and otherwise."""
    best: tuple[str, float | None, float | None] = ("", None, None)
    size = -1.0
    for name in default.keys() & other.keys():
        # Of the seeds that both have: an alternative is tried with fewer.
        seeds = min(len(default[name].values), len(other[name].values))
        before, after = (math.fsum(of[name].values[:seeds]) / seeds for of in (default, other))
        moved = abs(math.log(after / before)) if before * after > 0.0 else math.inf
        if moved > size or (moved == size and name < best[0]):
            best, size = (name, before, after), moved
    return best


def document(found: Sensitivity, *, quick: bool) -> str:
    """The whole as JSON."""
    verdict = found.verdict
    answer = verdict.claim.answer
    return json_text(
        {
            "claim": verdict.claim.id,
            "says": verdict.claim.says,
            "where": verdict.claim.where,
            "paper": verdict.paper,
            "expect": answer.expect if isinstance(answer, NumberAnswer) else None,
            "verdict": verdict.text,
            "readings_tried": verdict.tried,
            "sizes": "quick" if quick else "full",
            "version": _engine.__version__,
            "build": _engine.build(),
            DEFAULT: _outcome(verdict.default),
            "alternatives": [
                {
                    "name": move.name,
                    "kind": move.kind,
                    "sets": move.changes,
                    "grounds": move.sentence,
                    "moves": move.number,
                    "factor": None if move.factor is None else round(move.factor, 6),
                    **_outcome(move.found),
                }
                for move in (*found.moves, *found.programs)
            ],
        }
    )


def _outcome(found: Outcome) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "ours": found.ours,
        "numbers": {name: list(number.values) for name, number in found.numbers.items()},
        "workloads": dict(found.workloads),
        "missing": list(found.missing),
    }
