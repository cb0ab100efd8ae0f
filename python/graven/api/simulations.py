"""Simulations, comparisons and replays from Python.

Configuration keys are given as keyword arguments with two underscores for the dot,
`pm__write_ns=300`, or as a mapping, `settings={"pm.write_ns": 300}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from graven import _engine
from graven._engine import Cancelled, ConfigError, TraceError
from graven.api.assumed import Assumed
from graven.api.options import (
    Folder,
    Names,
    Variants,
    Variations,
    checked_job,
    executor_of,
    keeper_of,
    observer,
    setting_texts,
    workload_text,
)
from graven.api.plans import Plan
from graven.basics import arguments
from graven.basics.numbers import counted
from graven.basics.output import apart, check
from graven.engine.machine import DEFAULT, Machine
from graven.engine.variants import given
from graven.results.comparison import Comparison
from graven.results.record import MemoryRecord, Record, parse_memory_record
from graven.results.recovery import with_recovery
from graven.running.experiment import Experiment, Result, run_one
from graven.running.job import is_binary
from graven.running.pool import Observer, failures_text, kind_of
from graven.running.work import How, Keep, Local


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
        fresh: True to simulate even if the store has the result.
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
        checked_job(design, workload_text(workload), machine, threads, transactions, seed, pairs),
        request_trace=trace,
        bank_loads=loads,
        timeline=line,
        timeline_transactions=window,
        binary_requests=trace is not None and is_binary(trace),
    )
    files = [(name, Path(path)) for name, path in job.files.items()]
    apart(files, job.inputs)
    check([path for _, path in files], 0)
    result = run_one(job, keep=keeper_of(store, fresh=fresh))
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
        seeds: Several seeds, or N for 1 to N: every number is a mean over them, with half
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
        fresh: True to simulate even what the store has.
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
    executor = executor_of(on, jobs)
    shown_by = observer(observe)
    plan = Plan.of(
        arguments.names("designs", designs),
        arguments.names("workloads", workloads),
        found,
        setting_texts(settings, overrides),
        vary,
        threads=arguments.counts("threads", threads),
        transactions=arguments.integer_or_none("transactions", transactions),
        metrics=arguments.names("metrics", metrics),
        variants=given(variants),
        from_start=arguments.flag("from_start", from_start),
        recovery=failures,
    )
    result = Experiment.prepare(plan.jobs(arguments.seeds(seeds, seed))).run(
        How(keeper_of(store, fresh=fresh), executor, shown_by)
    )
    comparison = Comparison(
        result.records, plan.choice.baseline, plan.metrics, machine=found, settings=plan.settings
    )
    _raise_unless_whole(result, comparison)
    return comparison


@arguments.in_python
def memory(
    trace: str | PathLike[str],
    *,
    machine: str | PathLike[str] = DEFAULT,
    dram: bool = False,
    clock: str | None = None,
    levels: Iterable[int] | None = None,
    relative: bool = False,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> MemoryRecord:
    """Drives the memory controller and the device alone from a trace of requests.

    Args:
        trace: A file in a format of NVMain, DRAMsim3, Ramulator, gem5 (packets) or DRAMSys, or
            binary; those compressed are decompressed, whatever their names.
        machine: Name of a preset, or path of a TOML file.
        dram: Whether addresses are the DRAM's instead of the PM's; of its requests times alone
            are counted.
        clock: The clock of the trace's cycles, for example `"1.2 GHz"`; the core's if not given.
        levels: Numbers of channels, ranks and so on, down to columns of a line each, of addresses
            that are vectors (Ramulator 2).
        relative: Whether cycles of DRAMSys count from the request before, as in `.rstl`.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: True to replay even if the store has the result.
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
    assumed = Assumed.of(clock, levels, relative)
    keep = keeper_of(store, fresh=fresh)
    found = replay_requests(
        name, where, texts, dram=is_dram, assumed=assumed, keep=keep, observe=shown_by
    )
    return found[0]


def replay_requests(
    trace: str,
    machine: Machine,
    settings: Mapping[str, str],
    *,
    dram: bool,
    assumed: Assumed,
    keep: Keep | None,
    observe: Observer | None,
) -> tuple[MemoryRecord, bool]:
    """As `memory`, of what has been checked; the engine's messages are as they are.

    Returns:
        The result, and whether it was there before.
    """
    from graven.api.traces import check_requests, opened
    from graven.running.requests import Asked, run_asked

    pairs = [list(pair) for pair in settings.items()]
    common = {"dram": dram, "machine": machine.spec(), "set": pairs, **assumed.spec()}
    path = Path(trace)
    spec: dict[str, object] = {"workload": path.name, **common}
    with opened([path]) as [file]:
        check_requests(file)
        assumed.check(file)
        # The engine reads faster what it opens itself; a pipe is opened once.
        is_plain = path.is_file() and file.compression is None
        replay = _engine.MemoryReplay(
            json.dumps({"trace": trace, **common}), None if is_plain else cast("BinaryIO", file)
        )
        if not path.is_file():
            keep = None  # it is read once
        elif keep is not None:
            from graven.store.keeper import content_of

            spec["trace_sha256"] = content_of(path)
        asked = [Asked("memory", trace, replay, spec)]
        ran = run_asked(asked, How(keep, Local(1), observe))
    if ran.interrupted:
        raise KeyboardInterrupt
    for failure in ran.failures:
        raise kind_of([failure], TraceError)(failure.message)
    if 0 not in ran.texts:
        raise Cancelled("the replay was cancelled")
    record = parse_memory_record(ran.texts[0], machine.name, ran.host_s[0] or 0.0)
    return record, ran.found > 0


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
