"""Crash campaigns: runs that are crashed wherever they can be, several at a time."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

from graven import _engine
from graven.basics.arguments import RECOVERY_DEPTH_MAX, integer
from graven.laboratory.checker import believe
from graven.laboratory.fitting import Fitting
from graven.laboratory.reports import CrashReport, parse_crash_report, parse_violations
from graven.running.job import Job, is_trace
from graven.running.pool import Failure, Snapshot
from graven.running.work import HERE, How, Local, Ran, Work, run_all

R = TypeVar("R")

TRANSACTIONS = 1000
"""Default number of transactions of a run."""


@dataclass(frozen=True)
class Shares:
    """Shares of crash points at which expensive failure modes are checked; 0 is never.

    Attributes:
        torn: Every n-th write of several words is also torn.
        in_flight: At every n-th crash point, writes on their way have also arrived in part.
        recovery: At every n-th crash point, power also fails at each write of recovery.
        recovery_depth: How often in a row power fails in recovery then.
        structures: At every n-th crash point, the workload's structures are also walked.

    Examples:
        Power also fails during recovery, at every eighth crash point instead of every 256th, and
        the queue is walked at every hundredth:

        >>> often = graven.Shares(recovery=8, structures=100)
        >>> few = graven.crash("silo", "queue", machine="cramped", transactions=50)
        >>> more = graven.crash("silo", "queue", machine="cramped", transactions=50, shares=often)
        >>> few.failure_modes["recovery"], more.failure_modes["recovery"]
        (291, 14310)
        >>> few.failure_modes["structures"], more.failure_modes["structures"]
        (0, 18)
    """

    torn: int = 1
    in_flight: int = 4
    recovery: int = 256
    recovery_depth: int = 2
    structures: int = 65_536

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ConfigError: one is not allowed.
        """
        for name in ("torn", "in_flight", "recovery", "structures"):
            value = integer(f"shares, {name}", getattr(self, name), 0)
            object.__setattr__(self, name, value)
        depth = integer("shares, recovery_depth", self.recovery_depth, 1, RECOVERY_DEPTH_MAX)
        object.__setattr__(self, "recovery_depth", depth)


@dataclass(frozen=True)
class CrashJob:
    """One run to be crashed.

    Attributes:
        job: What is run.
        mutant: A mutant of the design that is put in force.
        every: Power fails at every n-th crash point; the shares are of those.
        shares: How often the more expensive failure modes are checked.
        lives: Times in a row that the workload begins again after a recovery, on what recovery
            left, and is crashed, too.
        garbage: Whether the log region holds noise at first.
        violations: Number of violations after which the run stops.
        verify: Of a captured program: a command that checks the recovered files, wherever
            structures are walked; `{image}` is the first file, `{folder}` where all are.
        verify_seconds: Limit of its time; a minute by default.
        keep: The folder where the files of the first violation that it finds are kept.
        at: The only crash point at which power fails, and only plainly; everywhere if not given.
        minimise: Most runs in which the program of the first violation is minimised; with 0, it
            stays as it was found. As many as the engine takes by default, if not given.
    """

    job: Job
    mutant: str | None = None
    every: int = 1
    shares: Shares = field(default_factory=Shares)
    lives: int = 1
    garbage: bool = False
    violations: int = 1
    verify: str | None = None
    verify_seconds: float | None = None
    keep: str | None = None
    at: int | None = None
    minimise: int | None = None

    @property
    def label(self) -> str:
        """Name in progress and failures."""
        return self.job.label if self.mutant is None else f"{self.job.label} with {self.mutant}"

    def spec(self) -> dict[str, Any]:
        """Returns the specification that the engine takes."""
        job, shares = self.job, self.shares
        spec: dict[str, Any] = {
            "design": job.design,
            "workload": job.workload,
            "machine": job.machine.spec(),
            "threads": job.threads,
            "transactions": self._transactions(),
            "seed": job.seed,
            "set": [list(setting) for setting in self._set()],
            "mutant": self.mutant,
            "every": self.every,
            "torn_every": shares.torn * self.every,
            "in_flight_every": shares.in_flight * self.every,
            "recovery_every": shares.recovery * self.every,
            "recovery_depth": shares.recovery_depth,
            # Counted by the engine among the crash points that are taken.
            "structures_every": shares.structures,
            "lives": self.lives,
            "garbage": self.garbage,
            "violations": self.violations,
        }
        checked = {
            "verify": self.verify,
            "verify_seconds": self.verify_seconds,
            "keep": self.keep,
            "at": self.at,
            "minimise": self.minimise,
        }
        return spec | {key: value for key, value in checked.items() if value is not None}

    def _set(self) -> tuple[tuple[str, str], ...]:
        """All that is set; of a variant, with what it sets itself."""
        return self.job.settings if self.job.own is None else self.job.all_set

    def _transactions(self) -> int | None:
        if is_trace(self.job.workload):
            return None
        return TRANSACTIONS if self.job.transactions is None else self.job.transactions

    def campaign(self) -> _engine.Campaign:
        """Hands it to the engine, which checks it.

        Raises:
            ConfigError: the engine refuses it.
            TraceError: the workload is a trace, and broken.
        """
        if self.job.own:
            # It names the variant where it refuses what the variant sets.
            self.job.simulation()
        return _engine.Campaign("run", json.dumps(self.spec()))

    def report(self, text: str, seconds: float) -> CrashReport:
        """Reads the engine's report of the run."""
        return parse_crash_report(
            text,
            machine=self.job.machine.name,
            settings=dict(self._set()),
            variant=None if self.job.own is None else self.job.name,
            shares=asdict(self.shares),
            lives=self.lives,
            garbage=self.garbage,
            seconds=round(seconds, 3),
        )


def task_of(job: Job | CrashJob) -> _engine.Simulation | _engine.Campaign:
    """Hands a simulation, or a run that is crashed, to the engine, which checks it.

    Raises:
        ConfigError: the engine refuses it.
    """
    return job.simulation() if isinstance(job, Job) else job.campaign()


@dataclass(frozen=True)
class CampaignResult(Generic[R]):
    """Reports in the order of what was asked for, and what is missing."""

    reports: tuple[R, ...]
    failures: tuple[Failure, ...]
    interrupted: bool
    found: int = 0
    """Number of runs that had a result before."""
    numbers: tuple[int, ...] = ()
    """Numbers of the reported runs among all that were asked for, from 0."""

    @staticmethod
    def of(ran: Ran, report: Callable[[int, str], R]) -> CampaignResult[R]:
        """Makes a `report` of each result, of its position and text."""
        reports = tuple(report(at, text) for at, text in ran.texts.items())
        numbers = tuple(ran.texts)
        return CampaignResult(reports, ran.failures, ran.interrupted, ran.found, numbers)


@dataclass(frozen=True)
class CrashCampaign:
    """Runs that the engine has checked and that have not been made yet."""

    jobs: tuple[CrashJob, ...]
    campaigns: tuple[_engine.Campaign, ...]
    left_out: tuple[str, ...] = ()
    """Reasons for which the engine refused others."""

    @staticmethod
    def prepare(jobs: Sequence[CrashJob], *, leave_out: bool = False) -> CrashCampaign:
        """Has the engine check every one before the first is run, and tries checkers.

        Args:
            jobs: The runs that are crashed.
            leave_out: True to leave out those that the engine refuses, if it takes any.

        Raises:
            ConfigError: the engine refuses one, or a checker does not pass on files that are good.
        """
        asked = [(job.label, job) for job in jobs]
        fitting = Fitting.of(asked, lambda job: (job, job.campaign()), leave_out=leave_out)
        kept = tuple(job for job, _ in fitting.taken)
        believe(kept)
        return CrashCampaign(kept, tuple(of for _, of in fitting.taken), fitting.left_out)

    def run(self, how: How = HERE) -> CampaignResult[CrashReport]:
        """Runs those without a result; never raises for one that failed or was interrupted."""
        pairs = zip(self.jobs, self.campaigns, strict=True)
        work = [Work(job.label, job, campaign) for job, campaign in pairs]
        with Told(how, lambda at, text: first_violation(self.jobs[at].label, text)) as told:
            ran = run_all(work, judging(told.how, self.campaigns), told.came)
        return CampaignResult.of(
            ran, lambda at, text: self.jobs[at].report(text, ran.host_s[at] or 0.0)
        )


def first_violation(label: str, text: str) -> str | None:
    """The first violation of a report, in a line; none if there is none.

    Args:
        label: What was tried.
        text: The engine's report.
    """
    violations = parse_violations(text)
    return f"{label} violates its guarantee: {violations[0].line}" if violations else None


class Told:
    """Lets an observer learn of violations as results come, and not at the end only.

    Results of this host are left out unless `here`: the engine tells of their violations before.

    Attributes:
        how: The way in which work is run, with an observer that is told.
        came: Is told of each result.
    """

    def __init__(
        self, how: How, line: Callable[[int, str], str | None], *, here: bool = False
    ) -> None:
        self._observe, self._line = how.observe, line
        self._is_told = how.observe is not None and (here or not isinstance(how.executor, Local))
        self._found: deque[str] = deque()
        self._last: Snapshot | None = None
        self.how = replace(how, observe=self._watch) if self._is_told else how

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        if self._found and self._last is not None:
            self._watch(replace(self._last, found=()))

    def came(self, at: int, text: str) -> None:
        """Takes a result."""
        if self._is_told and (line := self._line(at, text)) is not None:
            self._found.append(line)

    def _watch(self, snapshot: Snapshot) -> None:
        assert self._observe is not None
        found = tuple(self._found.popleft() for _ in range(len(self._found)))
        self._last = snapshot
        self._observe(replace(snapshot, found=(*snapshot.found, *found)))


def judging(how: How, campaigns: Sequence[_engine.Campaign]) -> How:
    """Lets the observer also learn how many power failures were checked, and what is minimised."""
    observe = how.observe
    if observe is None:
        return how

    def watch(snapshot: Snapshot) -> None:
        checked = sum(campaign.checked() for campaign in campaigns)
        minimising = sum(campaign.minimising() for campaign in campaigns)
        observe(replace(snapshot, checked=checked, minimising=minimising))

    return replace(how, observe=watch)
