"""Simulations that a number needs, and readings that bear on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graven.papers.data import Measure
from graven.papers.measures import same
from graven.papers.plan import Alternative
from graven.papers.reproduction import Results, Tried
from graven.running.job import Job, workload_name


def needs(measure: Measure, job: Job) -> bool:
    """Tells whether a number is of a simulation, or is divided by it."""
    name = job.name
    if name in measure.of and _lies_at(job, measure.at):
        return True
    if not measure.over:
        return False
    divisor = measure.over.get("design", measure.of)
    if name not in ((divisor,) if isinstance(divisor, str) else divisor):
        return False
    return _lies_at(job, {**measure.at, **measure.over})


def _lies_at(job: Job, at: Mapping[str, Any]) -> bool:
    return all(
        _alike(_coordinate(job, axis), value) for axis, value in at.items() if axis != "design"
    )


def _coordinate(job: Job, axis: str) -> object:
    if axis == "workload":
        return workload_name(job.workload)
    if axis == "threads":
        return job.threads
    return next((value for key, value, _ in job.varied if key == axis), None)


def _alike(own: object, given: object) -> bool:
    """Tells whether the value of a simulation, if it has one, is what a claim names."""
    return own is None or same(own, given)


def lacking(measures: Iterable[Measure], results: Mapping[str, Results], name: str) -> list[str]:
    """Simulations without a result under one alternative, and places that are left out."""
    found: dict[str, None] = {}
    for measure in measures:
        for study in measure.studies:
            of_study = results[study]
            for place in _left_out(measure, of_study.jobs):
                found[f"{place} ({study}, which leaves it out at this size)"] = None
            tried = of_study.tried.get(name, of_study.default)
            for job in tried.missing:
                if needs(measure, job):
                    seed = f", seed {job.seed}" if job.seed > 1 else ""
                    found[f"{job.label}{seed} ({study})"] = None
    return list(found)


def _left_out(measure: Measure, jobs: Sequence[Job]) -> list[str]:
    """Designs and coordinates that a number names, and an experiment does not run."""
    over = measure.over.get("design", ())
    designs = (*measure.of, *([over] if isinstance(over, str) else over))
    names = {job.name for job in jobs}
    found = [design for design in designs if design not in names]
    axes = [*measure.at.items(), *((a, v) for a, v in measure.over.items() if a != "design")]
    for axis, value in axes:
        for one in value if isinstance(value, list | tuple) else [value]:
            if not any(_alike(_coordinate(job, axis), one) for job in jobs):
                found.append(f"{axis} = {one}")
    return found


def bearing(measures: Sequence[Measure], results: Mapping[str, Results]) -> tuple[str, ...]:
    """The alternatives beside the default that change something which these numbers need."""
    found: dict[str, None] = {}
    for measure in measures:
        for study in measure.studies:
            of_study = results[study]
            known: list[tuple[str, Tried | Alternative]] = [
                *of_study.tried.items(),
                *of_study.untried.items(),
            ]
            for name, item in known:
                renames = any(old in measure.metric for old in item.metrics)
                if name not in found and (
                    renames or any(needs(measure, job) for job in item.changed)
                ):
                    found[name] = None
    order = [n for r in results.values() for n in (*r.tried, *r.untried)]
    return tuple(name for name in dict.fromkeys(order) if name in found)
