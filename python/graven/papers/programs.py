"""Real programs in place of those of a paper: the simulations and numbers of a reading with such.

The programs that a paper measured are mostly not distributed with it. A reading with `programs`
names recipes of `graven capture` that stand in for them: of the experiments that it is about, each
design runs their traces. A mean over the paper's programs is then one over these. A number of one
of the paper's programs is one of those that stand in its place, if any do. What comes out says
something of other programs than the paper's: it stands beside the verdict, and decides none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from graven.capture import CaptureError
from graven.capture.recipes import capture_recipe
from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.papers.data import (
    AllAnswer,
    Answer,
    Claim,
    Measure,
    Measured,
    NumberAnswer,
    OrderAnswer,
    Paper,
    Study,
    TrendAnswer,
    measures_of,
)
from graven.papers.readings import Reading
from graven.running.job import TRACE_ENDING, Job, matrix
from graven.running.pool import Observer

One = NumberAnswer | OrderAnswer | TrendAnswer
"""An answer that is not several."""

THREADS, WORKLOAD = "threads", "workload"
"""Axes that real programs have of their own."""


def trace_of(program: str, folder: Path) -> Path:
    """The file of a program's trace."""
    return folder / f"{program}{TRACE_ENDING}"


def lacking(programs: Iterable[str], folder: Path) -> list[str]:
    """Programs whose trace is missing."""
    return [name for name in dict.fromkeys(programs) if not trace_of(name, folder).exists()]


def capture(program: str, folder: Path, observe: Observer | None = None) -> None:
    """Builds a program, runs it, and keeps its trace, whole or not at all.

    Raises:
        CaptureError: QEMU or a package is missing; or the trace does not explain what was loaded
            and what is in memory at the end.
        OutputError: the trace cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = trace_of(f"{program}.part", folder)
    # What is asked of them is asked of their persistent memory.
    report = capture_recipe(program, place, only_pm=True, observe=observe).report
    unexplained = report["bytes_unexplained"] + report["loads_unexplained"]
    if unexplained:
        place.unlink()
        raise CaptureError(f"{program}: {unexplained:,} bytes and loads are not explained")
    place.rename(trace_of(program, folder))


def jobs(paper: Paper, study: Study, reading: Reading, folder: Path) -> list[Job]:
    """The simulations of an experiment with these programs, whose traces are in a folder.

    A trace has threads, transactions and a size of its own, and nothing random: what the experiment
    says of these does not apply.
    """
    own = {key: value for key, value in study.settings if not _is_of_workloads(key)}
    return matrix(
        study.designs,
        [str(trace_of(name, folder)) for name in reading.programs],
        Machine(paper.machine),
        settings=own | dict(reading.settings),
        vary=[item for item in study.vary if not _is_of_workloads(item.key)],
    )


def _is_of_workloads(key: str) -> bool:
    """Whether a key is of the workloads that Graven has itself: of all, or of one."""
    own = (parameter.key for workload in catalogue().workloads for parameter in workload.parameters)
    return key.startswith(f"{WORKLOAD}.") or key in own


def answer_with(claim: Claim, reading: Reading) -> Measured | None:
    """The answer to a claim with these programs; `None` if they have nothing to say of it."""
    about = reading.studies or ()
    if any(name not in about for measure in claim.measures for name in measure.studies):
        return None
    return _with(claim.answer, reading)


def _with(answer: Answer, reading: Reading) -> Measured | None:
    match answer:
        case NumberAnswer() | OrderAnswer() | TrendAnswer():
            return _one_with(answer, reading)
        case AllAnswer():
            # Those that are about workloads in whose place a program stands.
            pairs = zip(answer.names, answer.answers, strict=True)
            found = [(name, _one_with(one, reading)) for name, one in pairs]
            names = tuple(name for name, one in found if one is not None)
            answers = tuple(one for _, one in found if one is not None)
            return AllAnswer(names, answers) if answers else None
        case _:
            return None


def _one_with(answer: One, reading: Reading) -> One | None:
    if isinstance(answer, TrendAnswer) and _is_programs_own(answer.along):
        return None
    found = [_measure(measure, reading) for measure in measures_of(answer)]
    measures = tuple(measure for measure in found if measure is not None)
    if len(measures) < len(found):
        return None
    if isinstance(answer, OrderAnswer):
        return replace(answer, measures=measures)
    return replace(answer, measure=measures[0])


def _measure(measure: Measure, reading: Reading) -> Measure | None:
    """The same number of these programs; `None` if it is of something else."""
    if any(_is_programs_own(axis) for axis in measure.over):
        return None
    at = {axis: value for axis, value in measure.at.items() if not _is_programs_own(axis)}
    if WORKLOAD in measure.at:
        of = measure.at[WORKLOAD]
        places = [of] if isinstance(of, str) else of
        names = [name for place in places for name in reading.in_place_of.get(place, ())]
        if not names:
            return None
        at[WORKLOAD] = names
    return replace(measure, at=at)


def _is_programs_own(axis: str) -> bool:
    """Whether a trace has this of its own."""
    return axis in (THREADS, WORKLOAD) or _is_of_workloads(axis)
