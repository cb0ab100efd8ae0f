"""Jobs: simulations to be run, and the matrix of a comparison."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from graven import _engine
from graven.engine.catalogue import catalogue
from graven.engine.choice import Choice
from graven.engine.machine import Machine
from graven.engine.selection import Variation
from graven.engine.variants import NO_VARIANTS, OPTION, Variant, pairs_of
from graven.results.record import KIND, STEADY

TRACE_ENDING = ".gvt"
"""End of the name of a program trace, which may stand for a workload."""

REQUESTS_ENDING = ".grt"
"""End of the name of a binary trace of memory requests; others are NVMain's text."""


def is_binary(requests: str | PathLike[str]) -> bool:
    """Tells whether a trace of memory requests that is to be written is a binary one."""
    return fspath(requests).endswith(REQUESTS_ENDING)


def is_trace(workload: str) -> bool:
    """Tells whether a workload is a program trace, with threads and transactions of its own."""
    return workload.endswith(TRACE_ENDING)


def workload_name(workload: str) -> str:
    """Name of a workload in records: of a program trace, the file's name without its ending."""
    return Path(workload).name.removesuffix(TRACE_ENDING) if is_trace(workload) else workload


FILES = ("request_trace", "bank_loads", "timeline", "program_trace")
"""Attributes of jobs that name files which a simulation leaves beside its result."""


@dataclass(frozen=True)
class Job:
    """One simulation to run.

    Attributes:
        varied: Key, value and origin of what is varied.
        alias: The name that the design is compared under, if it is another.
        members: The number of designs that have that name: the fastest stands for it.
        own: What a variant of that name sets, beside what all designs have; nothing of others.
        timeline: A file for what happens while some transactions run.
        timeline_transactions: The numbers of the first and the last of these, in the order in which
            transactions of all threads begin; if not given, some in the middle of the run.
        binary_requests: True if `request_trace` is to be binary, and not NVMain's text.
    """

    design: str
    workload: str
    machine: Machine
    threads: int | None = None
    transactions: int | None = None
    seed: int = 1
    settings: tuple[tuple[str, str], ...] = ()
    request_trace: str | None = None
    bank_loads: str | None = None
    timeline: str | None = None
    timeline_transactions: tuple[int, int] | None = None
    varied: tuple[tuple[str, str, str], ...] = ()
    alias: str | None = None
    members: int = 1
    own: tuple[tuple[str, str], ...] | None = None
    program_trace: str | None = None
    binary_requests: bool = False

    @property
    def label(self) -> str:
        """Name in progress and failures."""
        threads = "" if self.threads is None else f" ×{self.threads}"
        varied = "".join(f", {key} = {value}" for key, value, _ in self.read)
        return f"{self._called} on {self.workload}{threads}{varied}"

    @property
    def name(self) -> str:
        """The name that the design is compared under."""
        return self.alias or self.design

    @property
    def _called(self) -> str:
        if self.own is None:
            return self.design
        return self.name if self.members == 1 else f"{self.name} ({self.design})"

    @property
    def read(self) -> tuple[tuple[str, str, str], ...]:
        """The varied values that the design reads; it runs the same whatever the others are."""
        reads = catalogue().reads
        return tuple(item for item in self.varied if reads(self.design, item[0]))

    @property
    def asked(self) -> Job:
        """The simulation that it asks for, whatever it is called and whatever it leaves beside.

        Two jobs that ask for one are run once. Whether a value is set or varied makes no
        difference, nor does a varied key that the design does not read.
        """
        return replace(
            self.without_files, settings=self.all_set, varied=(), alias=None, members=1, own=None
        )

    @property
    def all_set(self) -> tuple[tuple[str, str], ...]:
        """Every key that is set, varied and read, or the variant's own, once, by key."""
        varied = ((key, value) for key, value, _ in self.read)
        return tuple(sorted((dict(self.settings) | dict(varied) | dict(self.own or ())).items()))

    @property
    def files(self) -> dict[str, str]:
        """The files that it leaves, by the names of the attributes that name them."""
        named = {name: getattr(self, name) for name in FILES}
        return {name: path for name, path in named.items() if path is not None}

    @property
    def inputs(self) -> list[tuple[str, Path]]:
        """The files that it reads, by the names of the arguments that name them."""
        named = [("machine", self.machine.path)]
        named.append(("workload", Path(self.workload) if is_trace(self.workload) else None))
        return [(name, path) for name, path in named if path is not None]

    @property
    def without_files(self) -> Job:
        """The same, for its result alone."""
        nothing: dict[str, Any] = dict.fromkeys((*FILES, "timeline_transactions"))
        return replace(self, **nothing)

    def spec(self) -> dict[str, Any]:
        """Returns the specification that the engine takes."""
        timeline = {"file": self.timeline, "transactions": self.timeline_transactions}
        spec: dict[str, Any] = {
            "design": self.design,
            "workload": self.workload,
            "machine": self.machine.spec(),
            "threads": self.threads,
            "transactions": self.transactions,
            "seed": self.seed,
            "set": [list(setting) for setting in self.settings],
            "vary": [list(varied) for varied in (*self.read, *self._own_as_varied)],
            "request_trace": self.request_trace,
            "bank_loads": self.bank_loads,
            "timeline": None if self.timeline is None else timeline,
            "program_trace": self.program_trace,
        }
        if self.request_trace is not None:
            spec["binary_requests"] = self.binary_requests
        return spec

    @property
    def _own_as_varied(self) -> list[tuple[str, str, str]]:
        """What the variant sets, with its origin for messages."""
        return [(key, value, f"{OPTION} {self.alias}") for key, value in self.own or ()]

    def simulation(self) -> _engine.Simulation:
        """Hands the job to the engine, which checks it.

        Raises:
            ConfigError: the engine refuses it.
        """
        return _engine.Simulation(json.dumps(self.spec()))


def matrix(
    designs: Sequence[str],
    workloads: Sequence[str],
    machine: Machine,
    *,
    threads: Sequence[int | None] = (None,),
    transactions: int | None = None,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    vary: Sequence[Variation] = (),
    variants: Mapping[str, Variant] = NO_VARIANTS,
) -> list[Job]:
    """All combinations, workloads first, so that early results already compare designs.

    A name that stands for others has a job for each of them; `Experiment.run` keeps the best. A
    program trace among the workloads is run once, with its own threads.
    """
    pairs = tuple((settings or {}).items())
    # The end of a trace is the end of its run.
    whole = tuple(pair for pair in pairs if pair != (KIND, STEADY))
    compared = [
        (name, catalogue().members(of.design), None if name not in variants else pairs_of(of))
        for name in designs
        for of in [variants.get(name, Variant(name))]
    ]
    choices = [[(item.key, value, item.origin) for value in item.values] for item in vary]
    return [
        Job(
            design,
            workload,
            machine,
            None if is_trace(workload) else count,
            None if is_trace(workload) else transactions,
            seed,
            whole if is_trace(workload) else pairs,
            varied=varied,
            alias=None if design == name else name,
            members=len(members),
            own=own,
        )
        for varied in itertools.product(*choices)
        for at, count in enumerate(threads)
        for workload in workloads
        if at == 0 or not is_trace(workload)
        for name, members, own in compared
        for design in members
    ]


def covering(jobs: Iterable[Job]) -> list[Job]:
    """Some of many jobs, with each pair of design and workload, and each value of each key."""
    seen: set[object] = set()
    found = []
    for job in jobs:
        machine = job.machine.name
        facts = {
            (machine, job.name, job.design, job.workload),
            ("threads", machine, job.threads),
            ("transactions", job.transactions),
            *((machine, key, value) for key, value in job.settings),
            *((machine, job.name, key, value) for key, value in job.own or ()),
            *((machine, key, value) for key, value, _ in job.varied),
        }
        if not facts <= seen:
            seen |= facts
            found.append(job)
    return found


def chosen(
    choice: Choice, machine: Machine, *, seeds: Sequence[int], settings: Mapping[str, str]
) -> list[Job]:
    """All combinations of a choice, as `matrix` has them, seed by seed."""
    return [
        job
        for seed in seeds
        for job in matrix(
            choice.designs,
            choice.workloads,
            machine,
            threads=choice.threads,
            transactions=choice.transactions,
            seed=seed,
            settings=settings,
            vary=choice.vary,
            variants=choice.variants,
        )
    ]
