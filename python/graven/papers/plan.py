"""From experiments to simulations.

What a paper leaves open is tried with each of its other sensible values, one at a time: an
experiment is as many matrices of simulations, of which the first is as assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graven.catalogue import catalogue
from graven.experiment import Job, matrix
from graven.machine import Machine
from graven.papers.data import Measure, Paper, Study
from graven.papers.parts import Part

AS_ASSUMED = "as assumed"
"""The alternative in which nothing is but as the machine's file has it."""


@dataclass(frozen=True)
class Alternative:
    """An experiment with one value of what is left open.

    Attributes:
        study: The experiment, sized.
        name: `as assumed`, or the value.
        jobs: Its simulations.
    """

    study: Study
    name: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Wanted:
    """What is to be reproduced of a paper: experiments, sized, and which figures to draw.

    Attributes:
        paper: The paper.
        quick: Whether sizes are for minutes.
        figures: Names of figures; `None` for all, and for all claims.
    """

    paper: Paper
    quick: bool
    figures: tuple[str, ...] | None = None

    @property
    def studies(self) -> list[Study]:
        """The experiments that this needs."""
        if self.figures is None:
            names = list(self.paper.studies)
        else:
            names = list(dict.fromkeys(self.paper.figures[name].study for name in self.figures))
        return [self.paper.studies[name].sized(quick=self.quick) for name in names]

    def alternatives(self) -> list[Alternative]:
        """All matrices of simulations."""
        return [found for study in self.studies for found in _alternatives(self.paper, study)]

    def covers(self, measures: Iterable[Measure]) -> bool:
        """Whether these can be distinguished from the experiments that this needs."""
        names = {study.id for study in self.studies}
        return all(name in names for measure in measures for name in measure.studies)


def _alternatives(paper: Paper, study: Study) -> list[Alternative]:
    fixed = {key for key, _ in study.settings} | {item.key for item in study.vary}
    machine = catalogue().machine(paper.machine)
    others = [
        (f"{key} = {value}", key, value)
        for key in study.open
        if key not in fixed
        for value in paper.open[key].values
        if value != str(machine.value(key))
    ]
    return [
        Alternative(study, AS_ASSUMED, _jobs(paper, study, study.designs, {})),
        *(Alternative(study, name, _with(paper, study, key, value)) for name, key, value in others),
    ]


def _with(paper: Paper, study: Study, key: str, value: str) -> tuple[Job, ...]:
    """Simulations with another value; those of designs that it is none of stay as assumed."""
    own = {design.name for design in catalogue().designs if key in design.keys}
    concerned = [d for d in study.designs if not own or own.intersection(catalogue().members(d))]
    others = [design for design in study.designs if design not in concerned]
    return (
        *_jobs(paper, study, concerned, {key: value}),
        *_jobs(paper, study, others, {}),
    )


def _jobs(
    paper: Paper, study: Study, designs: Sequence[str], extra: Mapping[str, str]
) -> tuple[Job, ...]:
    apart = [name for part in study.parts for name in part.workloads]
    common = tuple(name for name in study.workloads if name not in apart)
    groups = [Part(common, None, None, (), ()), *study.parts]
    return tuple(
        job
        for part in groups
        for job in matrix(
            designs,
            part.workloads,
            Machine(paper.machine),
            threads=part.threads or study.threads,
            transactions=part.transactions or study.transactions,
            settings=dict(study.settings) | dict(extra) | dict(part.settings),
            vary=part.varied(study.vary),
        )
    )


def jobs_of(alternatives: Sequence[Alternative]) -> list[Job]:
    """All simulations, each once."""
    return list(dict.fromkeys(job for item in alternatives for job in item.jobs))
