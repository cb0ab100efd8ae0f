"""The Python interface: simulations, comparisons, replays; crash laboratory; hardware cost.

Configuration keys are given as keyword arguments with two underscores for the dot,
`pm__write_ns=300`, or as a mapping, `settings={"pm.write_ns": 300}`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from graven import _engine, arguments
from graven._engine import Cancelled, ConfigError, TraceError
from graven.comparison import Comparison
from graven.declarations import catalogue
from graven.experiment import (
    Executor,
    Experiment,
    Job,
    Keep,
    Local,
    Observer,
    Result,
    chosen,
    failures_text,
    is_binary,
    kind_of,
    run_one,
)
from graven.figures import counted
from graven.folders import store_folder
from graven.machine import DEFAULT, Machine
from graven.output import check
from graven.records import MemoryRecord, Record, parse_memory_record
from graven.recovery import is_asked, shown, with_recovery
from graven.region import with_region
from graven.selection import Choice
from graven.variants import NO_VARIANTS, OPTION, Variant, given

if TYPE_CHECKING:
    from graven.campaign import CampaignResult, Shares
    from graven.costs import Cost
    from graven.reports import AdversaryReport, CrashReport, LitmusReport

Names: TypeAlias = str | Iterable[str] | None
"""One name, a list separated by commas, several names, or nothing for the default."""

Variations: TypeAlias = Mapping[str, str | Iterable[object]] | None
"""Values by `SECTION.KEY`, several or a list separated by commas; or nothing for the default."""

Variants: TypeAlias = Mapping[str, Variant | tuple[str, Mapping[str, object]]] | None
"""Designs of the caller's making, by name; or nothing."""

Folder: TypeAlias = str | PathLike[str] | EllipsisType | None
"""A folder with a store of results, `...` for that of the command (`graven-results/store`, or what
`GRAVEN_STORE` names), or nothing, and then no result is kept or found."""

R = TypeVar("R")


class Interrupted(KeyboardInterrupt):
    """An interrupt stopped an experiment; `comparison` holds what had finished.

    Examples:
        Ctrl-C stops an experiment, and so does the function that is told of its progress. Of the
        two runs that are compared here one is in the store already:

        >>> def enough(progress):
        ...     raise KeyboardInterrupt
        >>> first = graven.run("silo", "hash", transactions=30_000)
        >>> try:
        ...     graven.compare(
        ...     "base,silo", "hash", transactions=30_000, observe=enough, from_start=True
        ... )
        ... except graven.Interrupted as interrupted:
        ...     print(interrupted)
        ...     print(interrupted.comparison.designs)
        interrupted after 1 finished simulation
        ['silo']
    """

    def __init__(self, comparison: Comparison) -> None:
        done = counted(len(comparison.records), "finished simulation")
        super().__init__(f"interrupted after {done}")
        self.comparison = comparison


@arguments.in_python
def run(
    design: str,
    workload: str,
    *,
    machine: str | PathLike[str] = DEFAULT,
    threads: int | None = None,
    transactions: int | None = None,
    seed: int = 1,
    recovery: int | None = None,
    request_trace: str | PathLike[str] | None = None,
    bank_loads: str | PathLike[str] | None = None,
    timeline: str | PathLike[str] | None = None,
    timeline_transactions: tuple[int, int] | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Record:
    """Simulates one design on one workload.

    Args:
        design: Name of a design.
        workload: Name of a workload.
        machine: Name of a preset, or path of a TOML file.
        threads: Program threads; the machine's cores if not given.
        transactions: Transactions over all threads; 10,000 if not given.
        seed: Seed of everything random.
        recovery: Power failures, evenly spaced over the run; the recovery after each is timed
            (statistics `recovery_*`). The keys `recovery.at_cycle` and `recovery.at_percent` place
            a single one.
        request_trace: A file for the memory requests of the run: a binary trace if its name ends in
            `.grt`, otherwise NVMain's text.
        bank_loads: A file for the mean load of every PM bank, interval by interval, as CSV.
        timeline: A file for what happens while some transactions run: what threads wait for, writes
            until they are durable, work of the PM's banks, the design's notes; JSON for
            `graven.Timeline`, and for Perfetto.
        timeline_transactions: Numbers of the first and the last of these transactions, from 0 in
            the order in which those of all threads begin; two of each thread in the middle of the
            run if not given.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: Whether to simulate even if the result is there.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: the run failed, for example a load that returned stale data.
        OutputError: a file or the result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        >>> record = graven.run("silo", "btree", threads=4, transactions=500)
        >>> record
        <Record: silo on btree, machine silo, threads 4, transactions 500, seed 1>
        >>> record.stats["committed_transactions"], record.stats["cycles"]
        (500, 246376)

        A PM with slower writes, 300 ns each, takes longer:

        >>> slow = graven.run("silo", "btree", threads=4, transactions=500, pm__write_ns=300)
        >>> round(slow.stats["cycles"] / record.stats["cycles"], 2)
        1.25

        How long recovery takes after a power failure, in milliseconds (the mean of three):

        >>> failed = graven.run("silo", "btree", transactions=500, recovery=3)
        >>> round(failed.stats["recovery_ms"], 5)
        0.00045

        The requests to memory, as a file for other simulators:

        >>> record = graven.run("silo", "hash", transactions=100, request_trace="requests.nvt")
        >>> graven.memory("requests.nvt").requests
        1538
    """
    trace = arguments.path_or_none("request_trace", request_trace)
    loads = arguments.path_or_none("bank_loads", bank_loads)
    line = arguments.path_or_none("timeline", timeline)
    window = arguments.range_or_none("timeline_transactions", timeline_transactions)
    if line is None and window is not None:
        raise ConfigError("timeline_transactions: is for timeline, which is not given")
    failures = arguments.integer_or_none("recovery", recovery, 1, arguments.RECOVERIES_MAX)
    pairs = tuple(with_recovery(setting_texts(settings, overrides), failures).items())
    job = replace(
        checked_job(design, _workload(workload), machine, threads, transactions, seed, pairs),
        request_trace=trace,
        bank_loads=loads,
        timeline=line,
        timeline_transactions=window,
        binary_requests=trace is not None and is_binary(trace),
    )
    check([Path(file) for file in job.files.values()], 0)
    result = run_one(job, keep=_keeper(store, fresh=fresh))
    _raise_unless_whole(result)
    return result.records[0]


@arguments.in_python
def compare(
    designs: Names = None,
    workloads: Names = None,
    *,
    machine: str | PathLike[str] = DEFAULT,
    threads: int | Iterable[int] | None = None,
    transactions: int | None = None,
    seed: int = 1,
    seeds: int | Iterable[int] | None = None,
    vary: Variations = None,
    variants: Variants = None,
    from_start: bool = False,
    recovery: int | None = None,
    metrics: Names = None,
    jobs: int | None = None,
    on: str = "local",
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Comparison:
    """Simulates every design on every workload, several simulations at a time.

    What is not given is as the machine's file says, if that has a table `[comparison]`.

    Args:
        designs: Names of designs; `all`, or nothing for those compared by default. A name that
            stands for several shows the one with the highest throughput.
        workloads: Names of workloads or of the groups `micro` (the default), `macro`, `all`.
        machine: Name of a preset, or path of a TOML file.
        threads: Program threads, or several counts to compare; the machine's cores if neither is
            given.
        transactions: Transactions over all threads that are measured of one simulation; if neither
            is given, as many as precision asks for, and 10,000 of whole runs.
        seed: Seed of everything random.
        seeds: Several seeds, or so many from 1 on: every number is a mean over them then, with half
            of its 95 % confidence interval, and ratios are paired by seed.
        vary: Several values of configuration keys; all their combinations are compared.
        variants: Designs of your own making, by name: a `Variant`, or a design and what it sets.
            They come after the designs, unless `designs` names them.
        from_start: Whether to measure whole runs, from empty caches to their end. Otherwise a
            region in steady state of each is measured, after a warm-up: counts and energies are per
            transaction, and `Record.why_not_steady` says why one is not steady. Runs whose recovery
            is timed, and program traces, are always whole.
        recovery: Power failures, evenly spaced over each run, after which recovery is timed; the
            time is one of the default metrics then.
        metrics: Names of the statistics that designs are compared by.
        jobs: Simulations at a time on this host; its cores if not given.
        on: Where simulations run: `local`, `local:N`, `dask://HOST:PORT`, `slurm`.
        observe: Called with the progress several times a second.
        store: A folder where each result is kept as it comes, and found if it is asked for again;
            or nothing.
        fresh: Whether to simulate even what is there.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: a simulation failed; its `comparison` holds the ones that did not.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.
        Interrupted: Ctrl-C; its `comparison` holds the simulations that had finished.

    Examples:
        >>> result = graven.compare("base,silo", "queue", transactions=2000)
        >>> relative = result.normalised("base")
        >>> relative.interval("throughput_tx_per_s", "silo", "queue", 8).kind
        'windows'
        >>> result.find("silo", "queue", threads=8).why_not_steady
        []

        Whole runs from their start take less time; the other examples are of these:

        >>> result = graven.compare(
        ...     "base,fwb,silo", "hash,queue", transactions=200, from_start=True
        ... )
        >>> result
        <Comparison: 6 results of 3 designs on 2 workloads>
        >>> relative = result.normalised("base")
        >>> for design in result.designs:
        ...     print(design, round(relative.mean("throughput_tx_per_s", design, threads=8), 2))
        base 1.0
        fwb 2.42
        silo 2.62

        Several values of a configuration key, here of the time that a write to PM takes, in
        nanoseconds, with the cycles of each run:

        >>> writes = {"pm.write_ns": [150, 300]}
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, vary=writes, from_start=True
        ... )
        >>> for record in result:
        ...     print(record.design, record.varied["pm.write_ns"], record.stats["cycles"])
        base 150.0 62345
        silo 150.0 26864
        base 300.0 82267
        silo 300.0 36284

        A variant of a design beside it, with one baseline for all:

        >>> small = {"small": ("silo", {"silo.log_buffer_entries": 4})}
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, variants=small, from_start=True
        ... )
        >>> relative = result.normalised("base")
        >>> for design in result.designs:
        ...     print(design, round(relative.value("media_write_requests", design, "hash", 8), 2))
        base 1.0
        silo 0.37
        small 0.95

        Several seeds, with half of the 95 % confidence interval:

        >>> result = graven.compare("base,silo", "hash", transactions=200, seeds=3, from_start=True)
        >>> print(result.normalised("base").interval("throughput_tx_per_s", "silo", "hash", 8))
        2.36 ±0.0992

        Several numbers of threads, and a statistic of one's choice:

        >>> result = graven.compare(
        ...     "silo", "hash", threads=[1, 4], transactions=200, metrics="ipc", from_start=True
        ... )
        >>> [round(result.number("ipc", "silo", "hash", threads), 2) for threads in result.threads]
        [0.17, 0.44]
    """
    found = Machine.find(machine)
    failures = arguments.integer_or_none("recovery", recovery, 1, arguments.RECOVERIES_MAX)
    texts = with_recovery(setting_texts(settings, overrides), failures)
    executor = executor_of(on, jobs)
    shown_by = observer(observe)
    choice = choose(
        arguments.names("designs", designs),
        arguments.names("workloads", workloads),
        found,
        texts,
        vary,
        threads=arguments.counts("threads", threads),
        transactions=arguments.integer_or_none("transactions", transactions),
        metrics=arguments.names("metrics", metrics),
        variants=given(variants),
    )
    varied = [item.key for item in choice.vary]
    whole = arguments.flag("from_start", from_start)
    texts = with_region(texts, found, varied, from_start=whole)
    metrics_shown = shown(choice.metrics, asked=is_asked(texts, varied, found))
    plan = chosen(choice, found, seeds=arguments.seeds(seeds, seed), settings=texts)
    result = Experiment.prepare(plan).run(
        keep=_keeper(store, fresh=fresh), executor=executor, observe=shown_by
    )
    comparison = Comparison(
        result.records, choice.baseline, metrics_shown, machine=found, settings=texts
    )
    _raise_unless_whole(result, comparison)
    return comparison


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
    """Runs all that a file asks for, as `graven sweep` does (docs/sweeps.md).

    Args:
        file: A sweep in TOML.
        jobs: Simulations at a time on this host; its cores if not given.
        on: Where simulations run: `local`, `local:N`, `dask://HOST:PORT`, `slurm`.
        observe: Called with the progress several times a second.
        store: A folder where each result is kept as it comes, and found if it is asked for again.
        fresh: Whether to run even what is there.

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
    from graven.store.keeping import Keeper
    from graven.sweeps import Sweep

    found = Sweep.read(arguments.path("file", file))
    executor = executor_of(on, jobs)
    shown_by = observer(observe)
    keep = _keeper(store, fresh=fresh)
    if not isinstance(keep, Keeper):
        raise ConfigError("store: a sweep keeps its results in one; None is not allowed")
    found.check()
    done = found.complete(keep, executor=executor, observe=shown_by)
    if done.ended.interrupted:
        raise KeyboardInterrupt
    if done.ended.failures:
        raise kind_of(done.ended.failures)(failures_text(done.ended.failures))
    return list(found.reports(keep)) if found.is_crash else list(found.records(keep))


@arguments.in_python
def memory(
    trace: str | PathLike[str],
    *,
    machine: str | PathLike[str] = DEFAULT,
    dram: bool = False,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> MemoryRecord:
    """Drives the memory controller and the device alone from a trace of requests.

    Args:
        trace: A file in NVMain's or DRAMsim3's text format.
        machine: Name of a preset, or path of a TOML file.
        dram: Whether addresses are the DRAM's instead of the PM's; of its requests times alone
            are counted.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: Whether to replay even if the result is there.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: the machine or a setting was refused.
        TraceError: the trace cannot be read; the message names the line.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        >>> from pathlib import Path
        >>> trace = '''0x0000 READ 0
        ... 0x1000 WRITE 10
        ... 0x0040 READ 400
        ... '''
        >>> written = Path("requests.txt").write_text(trace)
        >>> record = graven.memory("requests.txt")
        >>> record
        <MemoryRecord: 3 requests, machine silo>
        >>> record.stats["row_hits"], record.stats["read_latency_cycles_max"]
        (1, 110)
    """
    texts = setting_texts(settings, overrides)
    shown_by = observer(observe)
    is_dram = arguments.flag("dram", dram)
    name, where = arguments.path("trace", trace), Machine.find(machine)
    keep = _keeper(store, fresh=fresh)
    return replay_requests(name, where, texts, dram=is_dram, keep=keep, observe=shown_by)[0]


def replay_requests(
    trace: str,
    machine: Machine,
    settings: Mapping[str, str],
    *,
    dram: bool,
    keep: Keep | None,
    observe: Observer | None,
) -> tuple[MemoryRecord, bool]:
    """As `memory`, of what has been checked; the engine's messages are as they are.

    Returns:
        The result, and whether it was there before.
    """
    from graven.asked import Asked, run_asked

    pairs = [list(pair) for pair in settings.items()]
    common = {"dram": dram, "machine": machine.spec(), "set": pairs}
    replay = _engine.MemoryReplay(json.dumps({"trace": trace, **common}))
    path = Path(trace)
    spec: dict[str, object] = {"workload": path.name, **common}
    if not path.is_file():
        keep = None  # a pipe, which is read once
    elif keep is not None:
        from graven.store.keeping import content_of

        spec["trace_sha256"] = content_of(path)
    asked = [Asked("memory", trace, replay, spec)]
    ran = run_asked(asked, keep=keep, executor=Local(1), observe=observe)
    if ran.interrupted:
        raise KeyboardInterrupt
    for failure in ran.failures:
        raise kind_of([failure], TraceError)(failure.message)
    if 0 not in ran.texts:
        raise Cancelled("the replay was cancelled")
    record = parse_memory_record(ran.texts[0], machine.name, ran.host_s[0] or 0.0)
    return record, ran.found > 0


@arguments.in_python
def crash(
    design: str,
    workload: str,
    *,
    machine: str | PathLike[str] = DEFAULT,
    threads: int | None = None,
    transactions: int | None = None,
    seed: int = 1,
    mutant: str | None = None,
    every: int = 1,
    shares: Shares | None = None,
    lives: int = 1,
    garbage: bool = False,
    violations: int = 1,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> CrashReport:
    """Runs one design on one workload, and lets power fail at every crash point.

    Args:
        design: Name of a design.
        workload: Name of a workload.
        machine: Name of a preset, or path of a TOML file; `cramped` is made for this.
        threads: Program threads; the machine's cores if not given.
        transactions: Transactions over all threads; 1,000 if not given.
        seed: Seed of everything random.
        mutant: A mutant of the design that is put in force.
        every: Power fails at every n-th crash point only.
        shares: How often the more expensive failure modes are checked.
        lives: After some recoveries the workload begins again on what is there, and is crashed,
            too; so many times in a row at most.
        garbage: Whether the log region holds noise at first.
        violations: The run stops after so many.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: Whether to run even if the result is there.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: the engine failed. A design that breaks its guarantee is in the report.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        The text of FWB's paper, taken literally, loses data. The machine has caches that are so
        small that much happens:

        >>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
        >>> report
        <CrashReport: fwb-literal on queue, machine cramped: violated, 2 power failures>
        >>> report.violations[0].what
        'word 0x1000 holds 0x0, committed is 0xa5100, and no open transaction wrote it'

        The design with the missing rule keeps what it guarantees at all crash points:

        >>> report = graven.crash("fwb", "queue", machine="cramped", transactions=100)
        >>> report.verdict, report.crash_points
        ('kept', 848)

        A mutant, which is a design with one rule broken, shows that a run would notice:

        >>> mutant = "commit-not-marked"
        >>> report = graven.crash("silo", "queue", machine="cramped", mutant=mutant)
        >>> report.verdict
        'violated'
    """
    from graven.campaign import CrashCampaign, CrashJob, Shares

    pairs = tuple(setting_texts(settings, overrides).items())
    job = checked_job(design, _workload(workload), machine, threads, transactions, seed, pairs)
    if shares is not None and not isinstance(shares, Shares):
        raise ConfigError(f"shares: {shares!r} is not a graven.Shares")
    shown_by = observer(observe)
    how = CrashJob(
        job,
        None if mutant is None else arguments.text("mutant", mutant),
        arguments.integer("every", every),
        shares or Shares(),
        arguments.integer("lives", lives, 0, arguments.LIVES_MAX),
        arguments.flag("garbage", garbage),
        arguments.integer("violations", violations, 1, arguments.VIOLATIONS_MAX),
    )
    return _only(
        CrashCampaign.prepare([how]).run(
            keep=_keeper(store, fresh=fresh), executor=Local(1), observe=shown_by
        )
    )


@arguments.in_python
def adversary(
    design: str,
    *,
    seeds: int,
    first_seed: int = 1,
    mutant: str | None = None,
    violations: int = 1,
    draws: Mapping[str, int] | None = None,
    jobs: int | None = None,
    observe: Observer | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> AdversaryReport:
    """Runs schedules of the adversary on one design, and lets power fail everywhere in each.

    Args:
        design: Name of a design.
        seeds: How many schedules.
        first_seed: Seed of the first; the others follow.
        mutant: A mutant of the design that is put in force.
        violations: No more schedules are run after so many.
        draws: Bounds of what is drawn, by name (`graven list draws`), where they are not the
            default.
        jobs: Host threads; the host's cores if not given. The report does not depend on it.
        observe: Called with the progress several times a second.
        settings: Configuration on top of what is drawn, by `SECTION.KEY`.
        **overrides: The same by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: the engine failed. A design that breaks its guarantee is in the report.

    Examples:
        >>> report = graven.adversary("silo", seeds=5)
        >>> report
        <AdversaryReport: silo, 5 schedules: kept, 56,028 power failures>
        >>> report.verdict, report.next_seed
        ('kept', 6)

        Five more schedules, with two threads at most:

        >>> graven.adversary("silo", seeds=5, first_seed=6, draws={"threads": 2})
        <AdversaryReport: silo, 5 schedules: kept, 2,590 power failures>
    """
    from graven.schedules import AdversaryCampaign, AdversaryRequest

    pairs = tuple(setting_texts(settings, overrides).items())
    bounds = {
        name: arguments.integer(f"draws, {name}", bound, 0)
        for name, bound in arguments.mapping("draws", draws).items()
    }
    workers = arguments.integer_or_none("jobs", jobs)
    shown_by = observer(observe)
    plan = AdversaryRequest(
        (arguments.text("design", design),),
        arguments.integer("seeds", seeds, 1, arguments.SCHEDULES_MAX),
        arguments.integer("first_seed", first_seed, 0, arguments.FIRST_SEED_MAX),
        None if mutant is None else arguments.text("mutant", mutant),
        pairs,
        arguments.integer("violations", violations, 1, arguments.VIOLATIONS_MAX),
        tuple(bounds.items()),
    )
    return _only(AdversaryCampaign.prepare(plan).run(workers=workers, observe=shown_by))


@arguments.in_python
def litmus(
    program: str | PathLike[str],
    design: Names = None,
    *,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
) -> LitmusReport:
    """Runs a litmus program.

    Args:
        program: Path of a file; or the program itself, as a text of several lines; or the name of
            one that comes with Graven, `silo/undo-order` (`graven list litmus`).
        design: Names of designs, instead of those that the program names.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: Whether to run even if the result is there.

    Raises:
        ConfigError: the program was refused; the message says where and why.
        SimulationError: the engine failed.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        A program that comes with Graven, on the designs that it names:

        >>> report = graven.litmus("silo/undo-order")
        >>> [(result.design, result.verdict) for result in report.results]
        [('silo', 'kept'), ('silo-literal', 'violated')]
        >>> report.as_expected
        True

        A program of one's own: both words change, or neither, wherever power fails.

        >>> program = '''graven litmus 1
        ... title "two words change together"
        ... A = 1
        ... B = 1
        ... thread
        ...   begin
        ...   A = 2
        ...   B = 2
        ...   commit
        ... expect everywhere: A = 1, B = 1 | A = 2, B = 2
        ... '''
        >>> for result in graven.litmus(program, "silo,fwb").results:
        ...     print(result)
        <LitmusResult: silo: kept, 14 power failures>
        <LitmusResult: fwb: kept, 17 power failures>
    """
    from graven.campaign import Program, program_file, run_programs

    shown_by = observer(observe)
    if isinstance(program, str) and "\n" in program:
        found = Program("program", program)
    else:
        found = Program.read(program_file(arguments.path("program", program)))
    names = arguments.names("design", design)
    designs = [] if names is None else design_names(names)
    asked = found.asked(designs)
    keep = _keeper(store, fresh=fresh)
    return _only(run_programs([asked], keep=keep, workers=1, observe=shown_by))


@arguments.in_python
def cost(
    design: str,
    *,
    machine: str | PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Cost:
    """Derives what a design's hardware costs, beside what its paper prints.

    Args:
        design: Name of a design.
        machine: Name of a preset, or path of a TOML file; that of the design's paper if not given.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused.

    Examples:
        >>> cost = graven.cost("silo")
        >>> cost["log-buffer"].value, cost["log-buffer"].unit
        (680, 'B')
        >>> cost["log-buffer"].formula
        'silo.log_buffer_entries × (log-entry + log-address)'

        Bytes that the design adds to the controller, with the buffer of its paper and with one of
        40 entries:

        >>> cost.totals["controller"]
        5440
        >>> graven.cost("silo", silo__log_buffer_entries=40).totals["controller"]
        10880
    """
    from graven.costs import derive

    where = None if machine is None else Machine.find(machine)
    return derive(arguments.text("design", design), where, setting_texts(settings, overrides))


def checked_job(
    design: object,
    workload: str,
    machine: str | PathLike[str],
    threads: object,
    transactions: object,
    seed: object,
    settings: tuple[tuple[str, str], ...],
) -> Job:
    """A job of arguments that are as they were given, but for the workload and the settings.

    Raises:
        ConfigError: one is refused.
    """
    return Job(
        arguments.text("design", design),
        workload,
        Machine.find(machine),
        arguments.integer_or_none("threads", threads),
        arguments.integer_or_none("transactions", transactions),
        arguments.seed(seed),
        settings,
    )


def observer(observe: object) -> Observer | None:
    """Who is told of the progress: the function that is given, or a bar in a notebook.

    Raises:
        ConfigError: it is no function.
    """
    from graven.progress import of_notebook

    arguments.function_or_none("observe", observe)
    return of_notebook() if observe is None else cast("Observer", observe)


def executor_of(on: object, jobs: object) -> Executor:
    """Where simulations run.

    Raises:
        ConfigError: there is no such place, or `jobs` is no number.
    """
    from graven.executors.named import executor

    return executor(arguments.text("on", on), arguments.integer_or_none("jobs", jobs))


def _workload(given: object) -> str:
    """A name, or a program trace: by its path, too."""
    if not isinstance(given, PathLike):
        given = arguments.text("workload", given)
    return arguments.path("workload", given)


def _keeper(store: Folder, *, fresh: bool) -> Keep | None:
    """What keeps results in a folder, and warns of damage there."""
    if store is None:
        return None
    from graven.store import Store
    from graven.store.keeping import Keeper

    is_default = isinstance(store, EllipsisType)
    folder = store_folder() if is_default else Path(arguments.path("store", store))
    fresh = arguments.flag("fresh", fresh)
    return Keeper(Store(folder, warn), fresh=fresh)


def warn(text: str) -> None:
    """Warns of damage in a store."""
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _only(checked: CampaignResult[R]) -> R:
    if checked.interrupted:
        raise KeyboardInterrupt
    if checked.failures:
        raise kind_of(checked.failures)(failures_text(checked.failures))
    if not checked.reports:
        raise Cancelled("the campaign was cancelled")
    return checked.reports[0]


def choose(
    designs: Names,
    workloads: Names,
    machine: Machine,
    settings: Mapping[str, str],
    vary: Variations,
    *,
    threads: Iterable[int] | None = None,
    transactions: int | None = None,
    metrics: Names = None,
    variants: Mapping[str, Variant] = NO_VARIANTS,
) -> Choice:
    """What is compared: as given, else as the machine says, else the default.

    Raises:
        ConfigError: the machine, a setting, a variation or an empty list is refused, or a variant
            sets what is varied. Unknown names are found when the simulations are prepared.
    """
    said = machine.comparison(settings, None if vary is None else _variation_texts(vary))
    names = design_names(said.designs if designs is None else designs)
    names += [name for name in variants if name not in names]
    for item in said.vary or ():
        for name, variant in variants.items():
            if item.key in variant.settings:
                raise ConfigError(
                    f"{OPTION} {name}: `{item.key}` does not fit: {item.origin} varies it"
                )
    counts = said.threads if threads is None else tuple(threads)
    return Choice(
        names,
        workload_names(said.workloads if workloads is None else workloads),
        (None,) if counts is None else counts,
        said.transactions if transactions is None else transactions,
        said.baseline if said.baseline in names else None,
        said.vary or (),
        said.metrics if metrics is None else tuple(_unique("stats", split_names(metrics))),
        variants,
    )


def _variation_texts(vary: Mapping[str, str | Iterable[object]]) -> dict[str, list[str]]:
    found = {}
    for key, values in arguments.mapping("vary", vary).items():
        several = values.split(",") if isinstance(values, str) else values
        if not isinstance(several, Iterable):
            raise ConfigError(f"vary, {key}: {values!r} is one value; give a list")
        found[key] = [arguments.setting_text(value) for value in several]
    return found


def sound_designs() -> list[str]:
    """Designs that are to keep their guarantee, as far as is known."""
    return [design.name for design in catalogue().designs if design.safe]


def design_names(given: Names) -> list[str]:
    """Designs by name; `all` stands for every design, nothing for those compared by default."""
    known = catalogue().designs
    if given is None:
        return [design.name for design in known if design.default]
    groups = {"all": [design.name for design in known]}
    return _unique("designs", [n for name in split_names(given) for n in groups.get(name, [name])])


def workload_names(given: Names) -> list[str]:
    """Workloads by name or group; nothing stands for `micro`."""
    groups = catalogue().workload_groups()
    names = split_names("micro" if given is None else given)
    for name in names:
        if name in groups and not groups[name]:
            raise ConfigError(f"workloads: the group `{name}` has no members yet")
    return _unique("workloads", [n for name in names for n in groups.get(name, [name])])


def split_names(given: str | Iterable[str]) -> list[str]:
    """Names of a list, of several lists, or of one in which commas separate them."""
    texts = [given] if isinstance(given, str) else list(given)
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _unique(what: str, names: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(names))
    if not found:
        raise ConfigError(f"{what}: the list is empty; `graven list {what}` shows the names")
    return found


def setting_texts(
    settings: Mapping[str, object] | None, overrides: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Settings as the texts that `--set` would take, by `SECTION.KEY`."""
    merged = arguments.mapping("settings", settings)
    merged |= {key.replace("__", ".", 1): value for key, value in (overrides or {}).items()}
    return {key: arguments.setting_text(value) for key, value in merged.items()}


def _raise_unless_whole(result: Result, comparison: Comparison | None = None) -> None:
    comparison = Comparison(result.records) if comparison is None else comparison
    if result.interrupted:
        raise Interrupted(comparison)
    if result.failures:
        refusals = () if comparison.records else (ConfigError,)
        kind = kind_of(result.failures, *refusals)
        error = kind(failures_text(result.failures))
        error.comparison = comparison  # type: ignore[attr-defined]
        raise error
