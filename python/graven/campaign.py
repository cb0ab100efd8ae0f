"""Campaigns: runs that are crashed wherever they can be, and litmus programs, several at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Generic, TypeVar

from graven import _engine
from graven._engine import ConfigError
from graven.arguments import RECOVERY_DEPTH_MAX, integer
from graven.asked import Asked, run_asked
from graven.experiment import (
    HERE,
    Executor,
    Failure,
    Job,
    Keep,
    Local,
    Observer,
    Snapshot,
    Work,
    is_trace,
    run_all,
)
from graven.reports import CrashReport, LitmusReport, parse_crash_report, parse_litmus_report

R = TypeVar("R")

PROGRAMS = Path(__file__).with_name("litmus_programs")
"""The litmus programs that come with Graven, in a folder for each family of designs."""

TRANSACTIONS = 1000
"""Of one run, unless it is said otherwise."""


@dataclass(frozen=True)
class Shares:
    """How often the more expensive failure modes are checked; 0 is never.

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
        (256, 14466)
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
        lives: After some recoveries the workload begins again on what is there, and is crashed,
            too; so many times in a row at most.
        garbage: Whether the log region holds noise at first.
        violations: After so many, the run stops.
        verify: Of a captured program: a command that checks the recovered files, wherever
            structures are walked; `{image}` is the first file, `{folder}` where all are.
    """

    job: Job
    mutant: str | None = None
    every: int = 1
    shares: Shares = field(default_factory=Shares)
    lives: int = 1
    garbage: bool = False
    violations: int = 1
    verify: str | None = None

    def spec_json(self) -> str:
        """As the engine takes it."""
        job, shares = self.job, self.shares
        spec = {
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
        if self.verify is not None:
            spec["verify"] = self.verify
        return json.dumps(spec)

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
        return _engine.Campaign("run", self.spec_json())

    def report(self, text: str, seconds: float) -> CrashReport:
        """What came of it."""
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
    """How many had a result before."""


@dataclass(frozen=True)
class CrashCampaign:
    """Runs that the engine has checked and that have not been made yet."""

    jobs: tuple[CrashJob, ...]
    campaigns: tuple[_engine.Campaign, ...]

    @staticmethod
    def prepare(jobs: Sequence[CrashJob]) -> CrashCampaign:
        """Has the engine check every one before the first is run.

        Raises:
            ConfigError: the engine refuses one.
        """
        return CrashCampaign(tuple(jobs), tuple(job.campaign() for job in jobs))

    def run(
        self,
        *,
        keep: Keep | None = None,
        executor: Executor = HERE,
        observe: Observer | None = None,
    ) -> CampaignResult[CrashReport]:
        """Runs those without a result; never raises for one that failed or was interrupted."""
        work = [
            Work(job.job.label, job, campaign)
            for job, campaign in zip(self.jobs, self.campaigns, strict=True)
        ]
        watch = _judging(observe, self.campaigns)
        ran = run_all(work, keep=keep, executor=executor, observe=watch)
        reports = tuple(
            self.jobs[index].report(text, ran.host_s[index] or 0.0)
            for index, text in ran.texts.items()
        )
        return CampaignResult(reports, ran.failures, ran.interrupted, ran.found)


@dataclass(frozen=True)
class Program:
    """A litmus program: its text, and what messages call it."""

    file: str
    text: str

    @staticmethod
    def read(path: str | PathLike[str]) -> Program:
        """The program in a file; those that come with Graven are called by their names.

        Raises:
            ConfigError: the file cannot be read.
        """
        is_ours = Path(path).is_relative_to(PROGRAMS)
        name = Path(path).relative_to(PROGRAMS).as_posix() if is_ours else fspath(path)
        try:
            return Program(name, Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{name}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{name} is not UTF-8 text") from None

    @property
    def name(self) -> str:
        """What it is called, without its ending."""
        return self.file.removesuffix(".litmus")

    @property
    def title(self) -> str:
        """What it says of itself."""
        found = re.search(r'^title\s+"?(.*?)"?$', self.text, re.MULTILINE)
        return found[1] if found is not None else ""

    @property
    def designs(self) -> list[str]:
        """The designs that are to keep their guarantee in it; if it names none, all."""
        named = re.findall(r"^design\s+(.*)$", self.text, re.MULTILINE)
        return [name for line in named for name in line.split()]

    def asked(self, designs: Sequence[str] = ()) -> Asked:
        """Hands it to the engine, which checks it; `designs` instead of those that it names.

        Where its file is makes no difference to its result.

        Raises:
            ConfigError: the engine refuses it; a syntax error begins with FILE:LINE:COLUMN.
        """
        spec = {"file": self.file, "text": self.text, "designs": list(designs)}
        task = _engine.Campaign("litmus", json.dumps(spec))
        asked = {"workload": Path(self.file).name, "text": self.text, "designs": list(designs)}
        return Asked("litmus", self.file, task, asked)


def own_programs() -> list[Program]:
    """The programs that come with Graven, in the order of their names."""
    return [Program.read(path) for path in program_files([PROGRAMS])]


def program_file(path: str | PathLike[str]) -> Path:
    """A file or a folder; if there is none, the litmus programs of that name that come with Graven.

    `silo/undo-order` is one of these, `silo` and `any` are folders of them, `all` is all of them.
    """
    given = Path(path)
    if given.exists() or given.is_absolute() or ".." in given.parts:
        return given
    if given == Path("all"):
        return PROGRAMS
    ours = PROGRAMS / given
    return next((p for p in (ours, ours.with_name(f"{ours.name}.litmus")) if p.exists()), given)


def program_files(paths: Iterable[Path]) -> list[Path]:
    """Files, and of folders the litmus programs anywhere in them; also those with Graven's names.

    Raises:
        ConfigError: a folder without any.
    """
    found: list[Path] = []
    for path in map(program_file, paths):
        inside = sorted(path.rglob("*.litmus")) if path.is_dir() else [path]
        if not inside:
            raise ConfigError(f"{path}: there is no *.litmus in this folder")
        found += inside
    return list(dict.fromkeys(found))


def run_programs(
    programs: Sequence[Asked],
    *,
    keep: Keep | None = None,
    workers: int | None = None,
    observe: Observer | None = None,
) -> CampaignResult[LitmusReport]:
    """Runs litmus programs that the engine has checked and that have no result."""
    campaigns = [item.task for item in programs if isinstance(item.task, _engine.Campaign)]
    watch = _judging(observe, campaigns)
    ran = run_asked(programs, keep=keep, executor=Local(workers), observe=watch)
    reports = tuple(
        parse_litmus_report(text, programs[index].label) for index, text in ran.texts.items()
    )
    return CampaignResult(reports, ran.failures, ran.interrupted, ran.found)


def _judging(observe: Observer | None, campaigns: Sequence[_engine.Campaign]) -> Observer | None:
    """An observer that also learns how many power failures were checked, and what is minimised."""
    if observe is None:
        return None

    def watch(snapshot: Snapshot) -> None:
        checked = sum(campaign.checked() for campaign in campaigns)
        minimising = sum(campaign.minimising() for campaign in campaigns)
        observe(replace(snapshot, checked=checked, minimising=minimising))

    return watch
