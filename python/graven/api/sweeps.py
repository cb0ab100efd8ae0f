"""Sweeps: many simulations, or many runs that are crashed, as a file says.

A file in TOML names designs, workloads, machines, threads, transactions, seeds, settings, and what
is varied; all combinations are run. `[[part]]` tables each are a sweep of their own that has what
the file says besides them, but for what they say themselves. docs/guides/sweeps.md has the keys.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

from graven._engine import ConfigError
from graven.api.options import Folder, choose, executor_of, keeper_of, observer
from graven.basics import arguments
from graven.basics.arguments import (
    LIVES_MAX,
    MINIMISE_MAX,
    RECOVERY_DEPTH_MAX,
    SEED_MAX,
    VIOLATIONS_MAX,
    path,
)
from graven.basics.errors import StoreError
from graven.basics.toml import Table
from graven.engine.machine import DEFAULT, Machine
from graven.engine.variants import Variant, checked
from graven.executors import estimates
from graven.executors.shards import Shard
from graven.laboratory.crashes import CrashJob, Shares, task_of
from graven.laboratory.reports import CrashReport
from graven.results.record import Record
from graven.results.region import with_region
from graven.running.experiment import CHECKED_WHOLE, best_of_aliases, counted_simulations, record_of
from graven.running.job import Job, chosen, covering
from graven.running.pool import Deferred, Observer, failures_text, kind_of
from graven.running.work import Ended, Executor, Todo, Work
from graven.store.keeper import Keeper, digest

SEEN_SECONDS = 60.0
"""Longest time that a shared file system takes to show what another host has written."""


Sized = Job | CrashJob
"""Jobs of a sweep."""


KEYS_OF_CRASH = ("torn", "in_flight", "recovery", "structures")


@dataclass(frozen=True)
class Sweep:
    """Jobs that a file asks for.

    Attributes:
        name: The file's name.
        jobs: Simulations, or runs that are crashed, each once, in the order of the file.
    """

    name: str
    jobs: tuple[Sized, ...]

    @staticmethod
    def read(file: str | PathLike[str]) -> Sweep:
        """The sweep in a file.

        Raises:
            ConfigError: the file cannot be read, or says something that is not allowed; the message
                names file and table.
        """
        where = Path(path("sweep", file))
        try:
            text = where.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot read {where}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{where} is not UTF-8 text") from None
        return Sweep.parse(text, where.name, where.parent)

    @staticmethod
    def parse(text: str, name: str, folder: Path) -> Sweep:
        """The sweep in a text; machines and traces that it names are looked for from `folder`.

        Raises:
            ConfigError: it says something that is not allowed.
        """
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: not TOML: {error}") from None
        if not raw:
            raise ConfigError(f'{name}: it says nothing; `designs = ["silo"]` is a sweep')
        parts = raw.pop("part", None)
        if parts is None:
            parts = [{}]
        elif (
            not isinstance(parts, list)
            or not parts
            or not all(isinstance(part, dict) for part in parts)
        ):
            raise ConfigError(f"{name}: `part` is for tables, [[part]]")
        jobs: list[Sized] = []
        for number, part in enumerate(parts):
            where = name if len(parts) == 1 and not part else f"{name}, part {number + 1}"
            try:
                jobs += _part(Table({**raw, **part}, where), folder)
            except ConfigError as error:
                said = str(error)
                raise ConfigError(said if said.startswith(name) else f"{where}: {said}") from None
        return Sweep(name, tuple(dict.fromkeys(jobs)))

    def check(self) -> None:
        """Has the engine check the jobs, or of very many a part that has each value of everything.

        Raises:
            ConfigError: one is refused.
        """
        jobs: Sequence[Sized] = self.jobs
        if len(jobs) > CHECKED_WHOLE:
            jobs = covering_of(jobs)
        for job in jobs:
            try:
                task_of(job)
            except ConfigError as error:
                raise ConfigError(f"{self.name}: {label_of(job)}: {error}") from None

    def costs(self) -> list[float]:
        """Seconds that each job is expected to take."""
        return [estimates.seconds(job) for job in self.jobs]

    def part(self, shard: Shard) -> Sweep:
        """The jobs of a part; those that ask for one simulation are in one part."""
        costs = self.costs()
        chosen = shard.part([costs[at] for at in self.simulations])
        asked = {_asked(self.jobs[self.simulations[at]]) for at in chosen}
        return replace(self, jobs=tuple(job for job in self.jobs if _asked(job) in asked))

    @cached_property
    def simulations(self) -> list[int]:
        """Places of the jobs without those that ask for what one before them asks for."""
        first: dict[Sized, int] = {}
        for at, job in enumerate(self.jobs):
            first.setdefault(_asked(job), at)
        return list(first.values())

    @property
    def counted(self) -> str:
        """The number of simulations, and that of results which are another's."""
        return counted_simulations(len(self.simulations), len(self.jobs))

    def complete(self, keep: Keeper, executor: Executor, observe: Observer | None) -> Completed:
        """Runs what has no result; results are in the store, and only there."""
        left = [at for at in self.simulations if not keep.has(self.jobs[at])]
        ended = Ended()
        came = 0

        def sink(_at: int, _text: str, _host_s: float | None) -> None:
            nonlocal came
            came += 1

        if left:
            work = [Work(label_of(job), job, Deferred(partial(task_of, job))) for job in self.jobs]
            ended = executor.run(Todo(work, left, sink, keep, observe))
            self._await_results(keep, left, came)
        return Completed(len(self.simulations) - len(left), came, ended)

    def _await_results(self, keep: Keeper, left: Sequence[int], came: int) -> None:
        """Waits until what others have kept is seen here: a shared file system may take a while.

        Raises:
            StoreError: it is not seen.
        """
        end = time.monotonic() + SEEN_SECONDS
        while True:
            keep.store.refresh()
            seen = sum(keep.store.has(digest(self.jobs[at])) for at in left)
            if seen >= came:
                return
            if time.monotonic() > end:
                raise StoreError(
                    f"{came - seen:,} results that were kept in {keep.store.folder} on other hosts "
                    "are not seen from here; is it on a file system that they share?"
                )
            time.sleep(0.2)

    def records(self, keep: Keeper) -> Stored:
        """The results of simulations that are in the store, in the order of the jobs."""
        return Stored(self.jobs, keep)

    def reports(self, keep: Keeper) -> Iterator[CrashReport]:
        """The results of runs that are crashed, in the order of the jobs, one after the other."""
        reader = Keeper(keep.store)
        for job in self.jobs:
            if isinstance(job, CrashJob) and (found := reader.found(job)) is not None:
                yield job.report(found[0], found[1] or 0.0)

    @property
    def is_crash(self) -> bool:
        """True if it has runs that are crashed."""
        return any(isinstance(job, CrashJob) for job in self.jobs)


@dataclass(frozen=True)
class Stored:
    """Records of simulations that are in a store, read again whenever they are gone through.

    Of designs under an alias there is one, the best of all, if every one has a result.
    """

    jobs: Sequence[Job | CrashJob]
    keep: Keeper

    def __iter__(self) -> Iterator[Record]:
        groups: dict[Job, list[Job]] = {}
        for job in self.jobs:
            if isinstance(job, Job):
                groups.setdefault(replace(job, design=job.name), []).append(job)
        for members in groups.values():
            yield from best_of_aliases(self._found(members))

    def _found(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Record]]:
        reader = Keeper(self.keep.store)
        for job in jobs:
            if (found := reader.found(job)) is not None:
                yield job, record_of(job, found[0])


@dataclass(frozen=True)
class Completed:
    """End of a sweep.

    Attributes:
        found: Number of results that were in the store.
        came: Number of results that have come.
        ended: Jobs that failed, and whether it was interrupted.
    """

    found: int
    came: int
    ended: Ended


def _asked(job: Sized) -> Sized:
    """What a job asks for, whatever it is called."""
    return job.asked if isinstance(job, Job) else job


def label_of(job: Sized) -> str:
    """Name of a job in progress and failures: all that is set, and the seed if it is not 1."""
    run = job if isinstance(job, Job) else job.job
    settings = "".join(f", {key} = {value}" for key, value in run.settings)
    seed = "" if run.seed == 1 else f", seed {run.seed}"
    mutant = "" if isinstance(job, Job) or job.mutant is None else f" with {job.mutant}"
    return f"{run.label}{mutant}{settings}{seed}"


def covering_of(jobs: Sequence[Sized]) -> list[Sized]:
    """As `covering`, of both kinds of job."""
    simulations = [job for job in jobs if isinstance(job, Job)]
    crashed = {job.job: job for job in jobs if isinstance(job, CrashJob)}
    return [*covering(simulations), *(crashed[run] for run in covering(crashed))]


def _part(table: Table, folder: Path) -> list[Sized]:
    designs = table.texts("designs")
    workloads = table.texts("workloads")
    machines = table.texts("machines") or (table.optional_text("machine") or DEFAULT,)
    if table.has("machine") and table.has("machines"):
        raise table.refusal("machine", "not beside `machines`")
    threads = table.counts("threads")
    if threads is not None and min(threads) < 1:
        raise table.refusal("threads", "whole numbers, at least 1")
    transactions = table.count("transactions")
    seeds = _seeds(table)
    settings = dict(table.settings())
    vary = table.variations()
    points = _points(table)
    variants = _variants(table)
    crash = table.table("crash")
    how = None if crash is None else _crash(crash)
    from_start = table.flag("from_start", default=False)
    table.end()

    jobs: list[Sized] = []
    for given in machines:
        machine = Machine.find(_from(folder, given, ".toml"))
        choice = choose(
            designs,
            None if workloads is None else [_from(folder, name, ".gvt") for name in workloads],
            machine,
            settings,
            vary,
            threads=threads,
            transactions=transactions,
            variants=variants,
        )
        usual = _as_usual(machine, settings, points)
        varied = [*(item.key for item in choice.vary), *(key for key, _, _ in usual[0])]
        # Power fails in runs from their beginning.
        whole = from_start or how is not None
        measured = with_region(settings, machine, varied, from_start=whole)
        for seed in seeds:
            for point in usual:
                found = chosen(choice, machine, seeds=[seed], settings=measured)
                jobs += [
                    replace(job, varied=(*job.varied, *point)) if point else job for job in found
                ]
    if how is None:
        return jobs
    return [
        replace(how, job=replace(job, settings=_all_set(job), varied=()))
        for job in jobs
        if isinstance(job, Job)
    ]


def _all_set(job: Job) -> tuple[tuple[str, str], ...]:
    """What is varied, too, as settings."""
    return (*job.settings, *((key, value) for key, value, _ in job.varied))


def _from(folder: Path, name: str, ending: str) -> str:
    """A file that a sweep names, from the sweep's folder; anything else is a name."""
    is_file = name.endswith(ending) or len(Path(name).parts) > 1
    return str(folder / name) if is_file else name


def _seeds(table: Table) -> tuple[int, ...]:
    if table.has("seeds") and table.has("seed"):
        raise table.refusal("seed", "not beside `seeds`")
    seeds = table.counts("seeds")
    if seeds is None:
        given = table.any("seed")
        seeds = (1 if given is None else given,)
    if any(type(seed) is not int or not 0 <= seed <= SEED_MAX for seed in seeds):
        raise table.refusal("seeds" if table.has("seeds") else "seed", f"from 0 to {SEED_MAX}")
    table.check_each_once("seeds", seeds)
    return seeds


def _variants(table: Table) -> dict[str, Variant]:
    """Variants: a table for each, with its `design`, and what it sets in a table `set`."""
    variants: dict[str, Variant] = {}
    wanted = "tables, [variants.NAME], each with a `design`"
    for name, own in table.inner("variants").named(wanted):
        variant = Variant(own.text("design"), dict(own.settings()))
        own.end()
        variants[name] = checked(name, variant)
    return variants


def _points(table: Table) -> list[Point]:
    """Values of several keys that go together: key, value and origin of each."""
    given = table.any("points")
    if given is None:
        return [()]
    if not isinstance(given, list) or not given or not all(isinstance(p, dict) for p in given):
        raise table.refusal("points", "a list of tables, each with values of the same keys")
    keys = list(given[0])
    points = []
    for point in given:
        if list(point) != keys or not keys:
            raise table.refusal("points", "a list of tables, each with values of the same keys")
        where = f"{table.where}, points"
        own = Table(point, where)
        points.append(tuple((key, own.setting(key, point[key]), where) for key in keys))
    return points


Point = tuple[tuple[str, str, str], ...]


def _as_usual(machine: Machine, settings: dict[str, str], points: list[Point]) -> list[Point]:
    """Points with their values as variations have them: `150` is `150.0` if it is a number."""
    keys = [key for key, _, _ in points[0]]
    usual: dict[tuple[str, str], str] = {}
    for at, key in enumerate(keys):
        given = list(dict.fromkeys(point[at][1] for point in points))
        [item] = machine.comparison(settings, {key: given}).vary or ()
        usual |= {(key, value): said for value, said in zip(given, item.values, strict=True)}
    return [
        tuple((key, usual[key, value], where) for key, value, where in point) for point in points
    ]


def _crash(table: Table) -> CrashJob:
    """A template of runs that are crashed, without the job itself."""
    shares = {key: table.count(key, 0) for key in KEYS_OF_CRASH}
    shares["recovery_depth"] = table.count("recovery_depth", 1, RECOVERY_DEPTH_MAX)
    how: dict[str, Any] = {
        "every": table.count("every"),
        "lives": table.count("lives", 0, LIVES_MAX),
        "violations": table.count("violations", 1, VIOLATIONS_MAX),
        "minimise": table.count("minimise", 0, MINIMISE_MAX),
    }
    job = CrashJob(
        Job("", "", Machine(DEFAULT)),
        table.optional_text("mutant"),
        shares=Shares(**{key: value for key, value in shares.items() if value is not None}),
        garbage=table.flag("garbage", default=False),
    )
    table.end()
    return replace(job, **{key: value for key, value in how.items() if value is not None})


@arguments.in_python
def sweep(
    file: str | PathLike[str],
    *,
    jobs: int | None = None,
    on: str = "local",
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
) -> list[Record] | list[CrashReport]:
    """Runs all that a file asks for, as `graven sweep` does (docs/guides/sweeps.md).

    Args:
        file: A sweep in TOML.
        jobs: Simulations at a time on this host; its cores if not given.
        on: Where simulations run: `local`, `local:N`, `dask://HOST:PORT`, `slurm`.
        observe: Called with the progress several times a second.
        store: A folder where each result is kept as it comes, and found if it is asked for again.
        fresh: True to run even what the store has.

    Returns:
        The results in the order of the file: records, or reports of runs that were crashed.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: a simulation failed; the results of the others are in the store.
        KeyboardInterrupt: Ctrl-C; what had finished is in the store.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        >>> from pathlib import Path
        >>> text = '''
        ... designs = ["base", "silo"]
        ... workloads = ["hash"]
        ... threads = [1, 4]
        ... transactions = 200
        ... from_start = true
        ... vary = { "pm.write_ns" = [150, 300] }
        ... '''
        >>> written = Path("sweep.toml").write_text(text)
        >>> records = graven.sweep("sweep.toml")
        >>> len(records)
        8
        >>> records[0].design, records[0].threads, records[0].varied
        ('base', 1, {'pm.write_ns': 150.0})

        The results are in the store now, so that the same sweep takes no time. As a comparison they
        can be drawn:

        >>> result = graven.Comparison(tuple(records))
        >>> result.varied
        {'pm.write_ns': [150.0, 300.0]}
        >>> picture = result.plot("lines", over="pm.write_ns")
        >>> [path.name for path in picture.save("sweep.pdf")]
        ['sweep.pdf', 'sweep.csv']
    """
    from graven.api.sweeps import Sweep
    from graven.store.keeper import Keeper

    found = Sweep.read(arguments.path("file", file))
    executor = executor_of(on, jobs)
    shown_by = observer(observe)
    keep = keeper_of(store, fresh=fresh)
    if not isinstance(keep, Keeper):
        raise ConfigError("store: a sweep keeps its results in one; None is not allowed")
    found.check()
    done = found.complete(keep, executor, shown_by)
    if done.ended.interrupted:
        raise KeyboardInterrupt
    if done.ended.failures:
        raise kind_of(done.ended.failures)(failures_text(done.ended.failures))
    return list(found.reports(keep)) if found.is_crash else list(found.records(keep))
