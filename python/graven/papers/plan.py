"""From experiments to simulations: sizes, seeds, and the alternatives that are tried.

An experiment is a matrix of simulations under each alternative: the default; each reading of the
paper's text that bears on it, alone; the readings of the paper's method, together; and, where the
sensitivity of a claim is asked for, each other value of what no sentence decides. Simulations that
do not depend on what an alternative sets are the default's. A reading with real programs is an
experiment of its own beside these, with the same designs on other programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graven.basics.arguments import setting_text
from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.papers.data import Measure, Paper, Study
from graven.papers.measures import same
from graven.papers.parts import Part
from graven.papers.programs import jobs as jobs_with_programs
from graven.papers.readings import Reading
from graven.results.record import KIND, STEADY
from graven.running.job import Job, matrix

DEFAULT = "default"
"""The alternative in which every question has its default choice."""

AUTHORS = "paper's method"
"""The alternative with all readings that belong to the methodology that a paper describes."""

BY_DEFAULT, READING, COMBINATION, OPEN = "default", "reading", "combination", "open key"
PROGRAMS = "other programs"
"""Kinds of alternatives."""

READINGS = ("none", "authors", "all")
"""Readings that are tried: none, the paper's method, or each alone and the combination."""

EVERYTHING = "everything"
"""All readings, and the other values of open keys."""

_TRIED = {
    "none": (BY_DEFAULT,),
    "authors": (BY_DEFAULT, COMBINATION),
    "all": (BY_DEFAULT, READING, COMBINATION),
    EVERYTHING: (BY_DEFAULT, READING, COMBINATION, OPEN),
}


@dataclass(frozen=True)
class Alternative:
    """An experiment under one alternative.

    Attributes:
        study: The experiment, sized.
        name: `default`, a reading, the paper's method, or a value of an open key.
        kind: Which of these.
        jobs: Its simulations.
        changed: The default's simulations whose place others take.
        metrics: Statistics that take the place of others.
    """

    study: Study
    name: str
    kind: str
    jobs: tuple[Job, ...]
    changed: frozenset[Job] = frozenset()
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """The part of a paper that is to be reproduced: experiments, sized, and figures to draw.

    Attributes:
        paper: The paper.
        quick: True for sizes for minutes.
        figures: Names of figures; `None` for all, and for all claims.
        readings: Readings that are tried, one of `READINGS`, or `EVERYTHING`.
        named: Readings that are tried whatever that says.
        captures: Folder of the traces of real programs; without it they are in no alternative.
        seeds: Seeds of each simulation; `None` for as many as the experiments have.
    """

    paper: Paper
    quick: bool
    figures: tuple[str, ...] | None = None
    readings: str = READINGS[0]
    named: tuple[str, ...] = ()
    captures: Path | None = None
    seeds: int | None = None

    @property
    def studies(self) -> list[Study]:
        """The experiments that this needs."""
        if self.figures is None:
            names = list(self.paper.studies)
        else:
            names = list(dict.fromkeys(self.paper.figures[name].study for name in self.figures))
        return [
            seeded(self.paper.studies[name].sized(quick=self.quick), self.seeds) for name in names
        ]

    def known(self) -> list[Alternative]:
        """The default and all readings, whether they are tried or not."""
        opened = self.readings == EVERYTHING
        return [
            found
            for study in self.studies
            for found in alternatives(self.paper, study, opened=opened, captures=self.captures)
        ]

    def tries(self, alternative: Alternative) -> bool:
        """Tells whether an alternative is among those that are wanted."""
        if alternative.name in self.named:
            return True
        if alternative.kind not in _TRIED[self.readings]:
            return False
        # `graven explain` asks for everything, of one claim, which needs few simulations.
        reading = self.paper.readings.get(alternative.name)
        takes_hours = reading is not None and not reading.quick and self.readings != EVERYTHING
        return not (self.quick and takes_hours)

    def programs(self) -> tuple[str, ...]:
        """The real programs that what is wanted runs."""
        chosen = (self.paper.readings[name] for name in self.named if name in self.paper.readings)
        about = [reading for reading in chosen if any(_bears_on(reading, s) for s in self.studies)]
        return tuple(dict.fromkeys(name for reading in about for name in reading.programs))

    def alternatives(self) -> list[Alternative]:
        """All matrices of simulations that are wanted."""
        return [found for found in self.known() if self.tries(found)]

    def covers(self, measures: Iterable[Measure]) -> bool:
        """Tells whether these can be derived from the experiments that this needs."""
        names = {study.id for study in self.studies}
        return all(name in names for measure in measures for name in measure.studies)


def seeded(study: Study, seeds: int | None) -> Study:
    """The experiment with another number of seeds, if one is given."""
    return study if seeds is None else replace(study, seeds=seeds)


def alternatives(
    paper: Paper, study: Study, *, opened: bool = False, captures: Path | None = None
) -> list[Alternative]:
    """An experiment by default and under its readings.

    Args:
        paper: The paper.
        study: The experiment, sized.
        opened: With values of open keys, too.
        captures: Folder with traces, for the real programs of readings, too.
    """
    default = _default(paper, study)
    known = [reading for reading in paper.readings.values() if _bears_on(reading, study)]
    bearing = [reading for reading in known if not reading.programs]
    found = [Alternative(study, DEFAULT, BY_DEFAULT, tuple(job for job, _ in default))]
    found += [_under(paper, study, default, one.name, READING, [one]) for one in bearing]
    theirs = [reading for reading in bearing if reading.authors]
    if theirs:
        found.append(_under(paper, study, default, AUTHORS, COMBINATION, theirs))
    if opened:
        found += [
            _under(paper, study, default, name, OPEN, [reading])
            for name, reading in _open_values(paper, study)
        ]
    if captures is not None:
        for one in known:
            if one.programs:
                jobs = jobs_with_programs(paper, study, one, captures)
                found.append(Alternative(study, one.name, PROGRAMS, tuple(jobs)))
    return found


def _bears_on(reading: Reading, study: Study) -> bool:
    """Whether a reading is of an experiment, which fixes none of its keys."""
    if study.readings is not None and reading.name not in study.readings:
        return False
    if reading.studies is not None and study.id not in reading.studies:
        return False
    # What is set for the paper's programs need not suit others.
    fixed = {item.key for item in study.vary} if reading.programs else _fixed(study)
    return not reading.keys.intersection(fixed)


def _fixed(study: Study) -> set[str]:
    return {key for key, _ in study.settings} | {item.key for item in study.vary}


def _open_values(paper: Paper, study: Study) -> list[tuple[str, Reading]]:
    """Each other value of a key that no sentence decides, as if it were a reading."""
    found = []
    for key in study.open:
        if key in _fixed(study):
            continue
        for value in paper.open[key].values:
            name = f"{key} = {value}"
            pairs = ((key, value),)
            why = paper.open[key].why
            found.append(
                (name, Reading(name, "", why, "", "", pairs, {}, None, None, False, False))
            )
    return found


Planned = Sequence[tuple[Job, Part]]
"""Simulations, each with the part of its experiment that it is of."""


def _default(paper: Paper, study: Study) -> Planned:
    apart = [name for part in study.parts for name in part.workloads]
    common = tuple(name for name in study.workloads if name not in apart)
    groups = [Part(common, None, None, (), ()), *study.parts]
    return [
        (job, part)
        for seed in range(1, study.seeds + 1)
        for part in groups
        for job in matrix(
            study.designs,
            part.workloads,
            Machine(paper.machine),
            threads=part.threads or study.threads,
            transactions=part.transactions or study.transactions,
            seed=seed,
            settings=dict(study.settings) | dict(part.settings),
            vary=part.varied(study.vary),
        )
    ]


def _under(
    paper: Paper, study: Study, default: Planned, name: str, kind: str, readings: Sequence[Reading]
) -> Alternative:
    """The same simulations with what some readings set."""
    owners = {key: _owners(key) for reading in readings for key in reading.keys}
    jobs = []
    for job, part in default:
        fixed = {key for key, _ in part.settings} | {key for key, _, _ in job.varied}
        now = dict(job.settings)
        extra = {
            key: value
            for reading in readings
            if reading.workloads is None or job.workload in reading.workloads
            for key, value in reading.settings
            if key not in fixed
            and (not owners[key] or owners[key].intersection((job.design, job.workload)))
            and not _has(job, key, value, paper.machine)
        }
        under = _changed(job, now | extra) if extra else job
        if any(reading.per_thread for reading in readings) and job.transactions is not None:
            threads = job.threads or catalogue().machine(paper.machine).value("core.count")
            under = replace(under, transactions=job.transactions * int(str(threads)))
        jobs.append(under)
    metrics = {old: new for reading in readings for old, new in reading.metrics.items()}
    pairs = zip(default, jobs, strict=True)
    changed = frozenset(before for (before, _), after in pairs if before is not after)
    return Alternative(study, name, kind, tuple(jobs), changed, metrics)


def _changed(job: Job, settings: Mapping[str, str]) -> Job:
    """The same with other settings. A region in steady state is as long as its precision asks."""
    transactions = None if settings.get(KIND) == STEADY else job.transactions
    return replace(job, settings=tuple(settings.items()), transactions=transactions)


def _has(job: Job, key: str, value: str, machine: str) -> bool:
    """Whether a simulation has a value of a key already."""
    now = _value(key, job, machine)
    return now is not None and same(now.strip('"'), value.strip('"'))


def _value(key: str, job: Job, machine: str) -> str | None:
    """What a key has in a simulation, whoever says so; `None` if that is not known."""
    if key in dict(job.settings):
        return dict(job.settings)[key]
    known = catalogue()
    named = known.design(job.design).settings
    of_design = [one.partition("=")[2] for one in named if one.partition("=")[0] == key]
    of_machine = known.machine(machine).value(key)
    if of_machine is not None:
        return None if of_design else setting_text(of_machine)
    if of_design:
        return of_design[0]
    own = known.design(job.design).parameters
    sections = (parameter for section in known.sections for parameter in section.parameters)
    return next((p.default for p in (*own, *sections) if p.key == key), None)


def _owners(key: str) -> set[str]:
    """The designs and workloads that a key is of; it concerns no other. Empty for the machine's."""
    known = catalogue()
    workloads = {w.name for w in known.workloads if any(p.key == key for p in w.parameters)}
    return workloads | {design.name for design in known.designs if key in design.keys}


def jobs_of(alternatives: Sequence[Alternative]) -> list[Job]:
    """All simulations, each once."""
    return list(dict.fromkeys(job for item in alternatives for job in item.jobs))
