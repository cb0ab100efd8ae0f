"""Program traces: recorded, replayed, looked at; traces of ChampSim made of them and from them.

Traces of memory requests are made others of another format.

Files appear under their names only when they are whole.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from graven import _engine
from graven._engine import Cancelled, ConfigError, SimulationError, TraceError
from graven.api.options import checked_job, setting_texts
from graven.basics import arguments
from graven.basics.errors import OutputError
from graven.basics.numbers import counted
from graven.basics.output import check, growing
from graven.engine.machine import DEFAULT, Machine
from graven.results.record import Record, parse_record
from graven.running.experiment import Experiment, Result, run_one
from graven.running.job import Job, is_binary
from graven.running.pool import Observer, Pool, Task, failures_text

ROOM = 64 << 20
"""Room to ask for before a trace is written; it may well take more."""

NUMBER_MAX = (1 << 32) - 1
"""The largest count of instructions or transactions that a conversion takes."""

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class ThreadSummary:
    """What one thread of a trace does.

    Attributes:
        operations: Everything that it does.
        transactions: Transactions begun.
        loads: Loads, of a word each, of persistent and volatile memory.
        stores: Stores, of a word each, likewise.
        instructions: Instructions that touch no memory.
        locks: Locks acquired.
        end: One past the last byte of persistent memory that it accesses.
        volatile_loads: Of the loads, those of volatile memory.
        volatile_stores: Of the stores, those.
        volatile_end: One past the last byte of volatile memory that it accesses.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> thread = graven.trace_info("hash.gvt").threads[0]
        >>> thread.transactions, thread.loads, thread.stores
        (50, 308, 650)
    """

    operations: int
    transactions: int
    loads: int
    stores: int
    instructions: int
    locks: int
    end: int
    volatile_loads: int
    volatile_stores: int
    volatile_end: int


@dataclass(frozen=True, repr=False)
class TraceInfo:
    """What is in a program trace.

    Attributes:
        header: What was recorded: design, workload, machine, threads, transactions, seed, config.
        bytes: Length of the file.
        blocks: Blocks of operations.
        populated_words: Words that are not zero before any thread runs.
        populated_bytes: Bytes of the file that they take.
        threads: Each thread.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> info = graven.trace_info("hash.gvt")
        >>> info
        <TraceInfo: silo on hash, 2 threads, 2,589 operations, 29,325,073 B>
        >>> info.header["design"], info.header["seed"], len(info.threads)
        ('silo', 1, 2)
        >>> info.operations
        2589
        >>> info.to_dict()["threads"][0]["transactions"]
        50
    """

    header: Mapping[str, Any]
    bytes: int
    blocks: int
    populated_words: int
    populated_bytes: int
    threads: tuple[ThreadSummary, ...]

    def __repr__(self) -> str:
        of = self.header
        what = f"{of['design']} on {of['workload']}" if of["design"] else f"from {of['origin']}"
        parts = [what, counted(len(self.threads), "thread"), counted(self.operations, "operation")]
        return f"<TraceInfo: {', '.join(parts)}, {self.bytes:,} B>"

    @staticmethod
    def _parse(text: str) -> TraceInfo:
        """Reads the engine's JSON."""
        raw = json.loads(text)
        summaries = raw.pop("summaries")
        return TraceInfo(**raw, threads=tuple(ThreadSummary(**thread) for thread in summaries))

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        threads = [dict(vars(thread)) for thread in self.threads]
        return {**vars(self), "header": dict(self.header), "threads": threads}

    @property
    def operations(self) -> int:
        """Operations of all threads."""
        return sum(thread.operations for thread in self.threads)


def trace_info(trace: Path_) -> TraceInfo:
    """Looks at beginning and index of a trace.

    Raises:
        TraceError: it is no whole trace; the message names the byte.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> info = graven.trace_info("hash.gvt")
        >>> info.header["workload"], sum(thread.stores for thread in info.threads)
        ('hash', 1300)
    """
    return TraceInfo._parse(_engine.trace_info(arguments.path("trace", trace)))


def trace_properties(trace: Path_) -> dict[str, Any]:
    """Looks through all of a trace: what its programs are like, as papers describe theirs.

    Returns:
        `transactions` (`count`, and `stores`, `words` and `lines` of each: mean, p50, p99, max),
        `stores`, `silent_share` (stores of what was there), `clean_share` (bytes of stored words
        that the store did not change), `again_share` (stores to a word that the transaction had
        stored to), `outside` (stores outside transactions), `non_temporal`, `loads`,
        `instructions`, `instructions_per_store`, `access_share` (loads and stores among the
        instructions), `locks`, `lines_stored`, `lines`, and `reuse_lines` (other lines that the
        thread stored to since it last stored to a line).

    Raises:
        TraceError: it is no whole trace; the message names the byte.
    """
    found: dict[str, Any] = json.loads(_engine.trace_properties(arguments.path("trace", trace)))
    return found


def record_trace(
    trace: Path_,
    design: str,
    workload: str,
    *,
    machine: Path_ = DEFAULT,
    threads: int | None = None,
    transactions: int | None = None,
    seed: int = 1,
    observe: Observer | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Record:
    """Simulates one design on one workload, and records what the program's threads do.

    Args:
        trace: The file to write.
        design: Name of a design.
        workload: Name of a workload.
        machine: Name of a preset, or path of a TOML file.
        threads: Program threads; the machine's cores if not given.
        transactions: Transactions over all threads; 10,000 if not given.
        seed: Seed of everything random.
        observe: Called with the progress several times a second.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        OutputError: the file cannot be written; nothing has run.
        SimulationError: the run failed, and there is no trace.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> record
        <Record: silo on hash, machine silo, threads 2, transactions 100, seed 1>
        >>> graven.replay("hash.gvt").stats["cycles"] == record.stats["cycles"]
        True
    """
    pairs = tuple(setting_texts(settings, overrides).items())
    name = arguments.text("workload", workload)
    job = checked_job(design, name, machine, threads, transactions, seed, pairs)
    result = run_recorded(job, Path(arguments.path("trace", trace)), observe)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.failures:
        raise SimulationError(failures_text(result.failures))
    return result.records[0]


def run_recorded(job: Job, trace: Path, observe: Observer | None) -> Result:
    """Runs a job and records it; there is a file only if there is a record."""
    Experiment.prepare([job])
    check([trace], ROOM)
    return run_one(replace(job, program_trace=str(trace)), observe=observe)


def replay(
    trace: Path_,
    design: str | None = None,
    *,
    machine: Path_ | None = None,
    observe: Observer | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Record:
    """Runs a program trace.

    Args:
        trace: The file.
        design: Name of a design; the recorded one if not given.
        machine: Name of a preset, or path of a TOML file; the recorded machine if not given.
        observe: Called with the progress several times a second.
        settings: Configuration by `SECTION.KEY`; the workload's sections are as recorded.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused, for example a machine that is too small.
        TraceError: the trace is broken; the message names the byte.
        SimulationError: the run failed.

    Examples:
        The same program, as it was recorded, under another design, and on a machine with slower
        writes to PM (300 ns):

        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> graven.replay("hash.gvt", "base")
        <Record: base on hash, machine silo, threads 2, transactions 100, seed 1>
        >>> slow = graven.replay("hash.gvt", "silo", pm__write_ns=300)
        >>> slow.stats["cycles"] > record.stats["cycles"]
        True
    """
    pairs = [list(pair) for pair in setting_texts(settings, overrides).items()]
    where = None if machine is None else Machine.find(machine).spec()
    trace = arguments.path("trace", trace)
    name = None if design is None else arguments.text("design", design)
    spec = {"trace": trace, "design": name, "machine": where, "set": pairs}
    text = _run(trace, _engine.TraceReplay(json.dumps(spec)), observe)
    return parse_record(text, json.loads(text)["machine"])


def import_champsim(
    sources: Iterable[Path_],
    trace: Path_,
    *,
    transaction_stores: int | None = None,
    instructions: int | None = None,
    observe: Observer | None = None,
) -> TraceInfo:
    """Makes a program trace of ChampSim's traces, a thread of each.

    Args:
        sources: The files; `.xz` and `.gz` are decompressed.
        trace: The file to write.
        transaction_stores: Stores of a transaction; without, there are no transactions.
        instructions: Instructions of each file that are taken, from its first on; all if not given.
        observe: Called several times a second.

    Raises:
        ConfigError: a number is refused, or there are no sources.
        TraceError: a file is no trace; the message names the byte.
        OutputError: the file cannot be written.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=1, transactions=100)
        >>> instructions = graven.export_champsim("hash.gvt", "hash.champsim.xz")

        ChampSim's traces know no transactions; eight stores each are made one:

        >>> info = graven.import_champsim(["hash.champsim.xz"], "again.gvt", transaction_stores=8)
        >>> info
        <TraceInfo: from champsim, 1 thread, 2,571 operations, 13,838 B>
        >>> info.threads[0].transactions
        163
        >>> record = graven.replay("again.gvt", "silo", machine="silo")
        >>> record.stats["committed_transactions"]
        163
    """
    given = {"transaction_stores": transaction_stores, "instructions": instructions}
    numbers = {
        name: arguments.integer_or_none(name, value, 1, NUMBER_MAX) for name, value in given.items()
    }
    out = Path(arguments.path("trace", trace))
    names = arguments.paths("sources", sources)
    with contextlib.ExitStack() as files:
        opened = [files.enter_context(_open(Path(name), "rb")) for name in names]
        check([out], 0)
        place = files.enter_context(growing(out))
        spec = json.dumps({"names": names, "out": str(place), **numbers})
        return TraceInfo._parse(_run(out.name, _engine.Conversion("import", spec, opened), observe))


def export_champsim(
    trace: Path_,
    out: Path_,
    *,
    thread: int = 0,
    first_transaction: int = 0,
    transactions: int | None = None,
    observe: Observer | None = None,
) -> int:
    """Makes a trace for ChampSim of one thread of a program trace; returns its instructions.

    Args:
        trace: The file.
        out: The file to write; `.xz` and `.gz` are compressed.
        thread: The thread, from 0.
        first_transaction: The first of its transactions that is written, from 0.
        transactions: How many; all that follow if not given.
        observe: Called several times a second.

    Raises:
        ConfigError: a number is refused.
        TraceError: the trace is broken, or has no such thread or transaction.
        OutputError: the file cannot be written.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> graven.export_champsim("hash.gvt", "hash.champsim.xz", thread=1, transactions=10)
        870
    """
    given = {
        "thread": thread,
        "first_transaction": first_transaction,
        "transactions": transactions,
    }
    numbers = {
        name: arguments.integer_or_none(name, value, 0, NUMBER_MAX) for name, value in given.items()
    }
    path = Path(arguments.path("out", out))
    check([path], 0)
    with growing(path) as place:
        with _open(place, "wb", suffix=path.suffix) as file:
            spec = json.dumps({"trace": arguments.path("trace", trace), **numbers})
            text = _run(path.name, _engine.Conversion("export", spec, [file]), observe)
        return int(json.loads(text)["instructions"])


def convert_requests(trace: Path_, out: Path_, *, observe: Observer | None = None) -> int:
    """Makes a trace of memory requests one of another format; returns its requests.

    Args:
        trace: A trace of requests in any format that `graven.memory` takes.
        out: The file to write: a binary trace if its name ends in `.grt`, otherwise NVMain's text.
        observe: Called several times a second.

    Raises:
        TraceError: the trace is broken, or has no data, which NVMain's format must have.
        OutputError: the file cannot be written.

    Examples:
        >>> record = graven.run("silo", "hash", transactions=100, request_trace="requests.nvt")
        >>> graven.convert_requests("requests.nvt", "requests.grt")
        1538
        >>> graven.memory("requests.grt").requests
        1538
    """
    path = Path(arguments.path("out", out))
    trace = arguments.path("trace", trace)
    check([path], 0)
    with growing(path) as place:
        spec = json.dumps({"trace": trace, "out": str(place), "is_binary": is_binary(path)})
        text = _run(path.name, _engine.Conversion("requests", spec, []), observe)
        return int(json.loads(text)["requests"])


def _open(path: Path, mode: Literal["rb", "wb"], suffix: str | None = None) -> BinaryIO:
    """A binary file, compressed as its name says."""
    ending = path.suffix if suffix is None else suffix
    try:
        if ending == ".xz":
            return cast("BinaryIO", lzma.open(path, mode))
        if ending == ".gz":
            return cast("BinaryIO", gzip.open(path, mode))
        return path.open(mode)
    except OSError as error:
        reason = error.strerror or error
        if mode == "rb":
            raise TraceError(f"{path}: {reason}") from None
        raise OutputError(f"cannot write {path}: {reason}") from None


def _run(label: str, task: Task, observe: Observer | None) -> str:
    """Runs one task of the engine; its text."""
    outcome = Pool([(label, task)], workers=1).run(observe)
    if outcome.interrupted:
        raise KeyboardInterrupt
    for failure in outcome.failures:
        if isinstance(failure.error, TraceError | ConfigError):
            raise failure.error
        raise SimulationError(failure.message)
    if 0 not in outcome.texts:
        raise Cancelled("it was cancelled")
    return outcome.texts[0]
