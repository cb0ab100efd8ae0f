"""Experiments and claims of a paper, as `files` reads them.

An experiment is a matrix of simulations: designs, workloads, threads, and keys that are set or
varied for all of them alike. A figure draws one statistic of an experiment as the paper draws it. A
claim says what the paper prints, and what answers it here. `docs/guides/reproduce.md` has all keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from graven.engine.selection import Variation
from graven.papers.parts import Part
from graven.papers.readings import Question, Reading

Printed: TypeAlias = "int | float | str | list[Any] | None"
"""A printed value: a number, a text, or several."""

SHARES = ("above", "below")
MEANS = ("geometric", "arithmetic", "median", "max", "min", *SHARES)
FORMS = ("times", "gain", "reduction", "percent", "value", "cases")
SHAPES = ("rises", "falls", "flat", "peaks", "saturates")
BOUNDS = ("at most", "at least", "about")
KINDS = ("bars", "lines", "table")
ABOUT = ("mechanism", "parameters")
SEEDS = 3
"""Seeds of an experiment at its full size, unless it says otherwise; quick sizes have one."""


@dataclass(frozen=True)
class OpenKey:
    """A parameter that no sentence of a paper decides: a sensitivity, which decides no verdict.

    Attributes:
        key: SECTION.KEY.
        values: Other values than the assumed one, as `--set` takes them.
        why: What makes them sensible.
    """

    key: str
    values: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Study:
    """An experiment of a paper: a matrix of simulations.

    Attributes:
        id: What claims and figures call it.
        what: One line about it.
        designs: Names of designs.
        workloads: Names of workloads.
        threads: Numbers of program threads; `None` for one per core.
        transactions: Of one simulation, over all threads.
        baseline: The design that figures are relative to.
        settings: Keys that are set, for all simulations alike.
        vary: Keys whose values are combined with each other.
        open: Keys left open, whose other values `graven explain` tries one at a time.
        seeds: How many seeds each simulation runs with: 1 to that number.
        readings: Readings that are tried; `None` for all that bear on it.
        quick: What takes the place of the above when there are minutes only.
        parts: Workloads whose keys have values of their own.
    """

    id: str
    what: str
    designs: tuple[str, ...]
    workloads: tuple[str, ...]
    threads: tuple[int | None, ...]
    transactions: int
    baseline: str
    settings: tuple[tuple[str, str], ...]
    vary: tuple[Variation, ...]
    open: tuple[str, ...]
    seeds: int = SEEDS
    readings: tuple[str, ...] | None = None
    quick: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def sized(self, *, quick: bool) -> Study:
        """The experiment at its full size, or at the one that takes minutes."""
        own = replace(self, **{"seeds": 1, **self.quick}) if quick else self
        return replace(own, parts=tuple(p.sized(own.workloads, quick=quick) for p in self.parts))


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper, drawn from an experiment.

    Attributes:
        id: What the command line calls it.
        where: What the paper calls it.
        title: What it shows.
        study: The experiment.
        metric: A statistic, or an expression of several.
        kind: `bars` over workloads, `lines` over `x`, or a `table`.
        x: What the horizontal axis of lines is: `threads` or a varied key.
        panels: What has a panel for each of its values: `threads`, `workload` or a varied key.
        relative: To the baseline; else absolute.
        baseline: The design that it is relative to.
        first: Lines begin at 1: each is relative to its own first point.
        mean: Which mean over workloads is shown.
        higher_is_better: Or lower; `None` if neither.
        note: What there is to say about the drawing.
    """

    id: str
    where: str
    title: str
    study: str
    metric: str
    kind: str
    x: str | None
    panels: tuple[str, ...]
    relative: bool
    baseline: str
    first: bool
    mean: str
    higher_is_better: bool | None
    note: str | None


@dataclass(frozen=True)
class Measure:
    """A number of an experiment's results.

    Attributes:
        studies: The experiments, mostly one; a mean is over the results of all of them.
        metric: A statistic, or an expression of several.
        of: The designs, mostly one.
        over: What it is divided by: another design, or the same with other coordinates. Of several
            designs it is the one with the highest throughput, each time anew.
        at: Which results: `threads`, `workload` (one or several), varied keys. What is left open
            has the mean taken over it.
        mean: Which one; or the one in the middle, the largest, the smallest; or the share of the
            ratios above 1, or below it.
    """

    studies: tuple[str, ...]
    metric: str
    of: tuple[str, ...]
    over: Mapping[str, Any]
    at: Mapping[str, Any]
    mean: str


@dataclass(frozen=True)
class NumberAnswer:
    """A measured number beside a printed one.

    Attributes:
        measure: What is measured.
        expect: What the paper prints, as the same number.
        form: How the paper prints it: a multiple, a gain or reduction in percent, a share, or
            `cases` where it says that something is so in all of them.
        bound: Whether it is a limit.
    """

    measure: Measure
    expect: float
    form: str
    bound: str


@dataclass(frozen=True)
class OrderAnswer:
    """Measured numbers that ascend: each below the next, `names` for a person."""

    names: tuple[str, ...]
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class TrendAnswer:
    """Change of a number along an axis.

    Attributes:
        measure: What is measured, at each value of the axis.
        along: `threads` or a varied key.
        shape: What the paper says of it.
        within: Share by which flat may differ, and by which steps may go the wrong way.
        between: Where the peak is, or from where it is flat.
    """

    measure: Measure
    along: str
    shape: str
    within: float
    between: tuple[float, float] | None


@dataclass(frozen=True)
class AllAnswer:
    """Several answers, all of which the claim needs, with names for a person or without."""

    names: tuple[str, ...]
    answers: tuple[NumberAnswer | OrderAnswer | TrendAnswer, ...]


@dataclass(frozen=True)
class TestAnswer:
    """Tests that hold what is found; `ours` and `verdict` where that is not what is printed.

    `about` says whether they are about a mechanism, or about parameters and arithmetic.
    """

    tests: tuple[str, ...]
    verdict: str
    ours: str | None
    about: str = "mechanism"


@dataclass(frozen=True)
class CostAnswer:
    """An item of a design's cost that bears the claim's id."""

    design: str


@dataclass(frozen=True)
class MachineAnswer:
    """Values of the paper's machine."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class NoAnswer:
    """Why nothing answers it."""

    why: str


Answer: TypeAlias = (
    NumberAnswer
    | OrderAnswer
    | TrendAnswer
    | AllAnswer
    | TestAnswer
    | CostAnswer
    | MachineAnswer
    | NoAnswer
)

Measured: TypeAlias = "NumberAnswer | OrderAnswer | TrendAnswer | AllAnswer"
"""Answers that simulations give."""


@dataclass(frozen=True)
class Claim:
    """Something that a paper claims.

    Attributes:
        id: Its name, the paper's first.
        where: Section, table, figure.
        says: It, in one sentence.
        value: What is printed.
        unit: Its unit.
        answer: What answers it.
        why: Why it is not met, if so.
        restates: The claim that says the same of the same number, with which it is counted once.
        circular: How the model was made with the printed number, if it was: agreement with it
            counts for nothing.
    """

    id: str
    where: str
    says: str
    value: Printed
    unit: str | None
    answer: Answer
    why: str | None
    restates: str | None = None
    circular: str | None = None

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Numbers that have to be simulated for it."""
        return measures_of(self.answer)


def measures_of(answer: Answer) -> tuple[Measure, ...]:
    """The numbers that an answer is made of."""
    match answer:
        case NumberAnswer(measure=one) | TrendAnswer(measure=one):
            return (one,)
        case OrderAnswer(measures=several):
            return several
        case AllAnswer(answers=answers):
            return tuple(one for item in answers for one in measures_of(item))
        case _:
            return ()


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        name: What the command line calls it.
        title: Its title and venue.
        machine: The preset that its experiments run on.
        assumed: What was assumed, in sentences.
        open: Parameters that it leaves open, and no sentence decides.
        questions: What its text allows more than one reading of, by name.
        readings: The readings beside the default ones, by name.
        studies: Its experiments, by id.
        figures: Its figures, by id.
        claims: Its claims.
    """

    name: str
    title: str
    machine: str
    assumed: tuple[str, ...]
    open: Mapping[str, OpenKey]
    questions: Mapping[str, Question]
    readings: Mapping[str, Reading]
    studies: Mapping[str, Study]
    figures: Mapping[str, Figure]
    claims: tuple[Claim, ...]


def as_number(printed: float, form: str) -> float:
    """The measured number that is printed so, in some form."""
    share = printed / 100.0
    return {"gain": 1.0 + share, "reduction": 1.0 - share, "percent": share}.get(form, printed)


def as_printed(number: float, form: str) -> float:
    """A measured number as it is printed, the reverse of `as_number`."""
    shown = {"gain": number - 1.0, "reduction": 1.0 - number, "percent": number}.get(form)
    return number if shown is None else 100.0 * shown
