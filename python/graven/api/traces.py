"""Program traces: recorded, replayed, looked at, made of traces of other tools, and these of them.

Traces of memory requests are made others of another format.

Files appear under their names only when they are whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from graven import _engine
from graven._engine import Cancelled, ConfigError, SimulationError, TraceError
from graven.api.assumed import Assumed, WrittenAs
from graven.api.options import checked_job, setting_texts
from graven.api.recognised import (
    CHAMPSIM,
    DRMEMTRACE,
    PROGRAMS,
    REQUESTS,
    TEXT,
    Format,
    recognised,
)
from graven.basics import arguments
from graven.basics.compressed import Reading, packing
from graven.basics.errors import OutputError
from graven.basics.numbers import counted
from graven.basics.output import apart, check, growing
from graven.engine.machine import DEFAULT, Machine
from graven.results.record import Record, parse_record
from graven.running.experiment import Experiment, Result, run_one
from graven.running.job import Job
from graven.running.pool import Observer, Pool, Task, failures_text

ROOM = 64 << 20
"""Room to ask for before a trace is written; it may well take more."""

NUMBER_MAX = (1 << 32) - 1
"""The largest count of instructions or transactions that a conversion takes."""

Layout = Literal["champsim", "cloudsuite"]

LAYOUTS = ("champsim", "cloudsuite")
"""Layouts of ChampSim's traces: its own, and that of CloudSuite."""

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class ThreadSummary:
    """Counts of what one thread of a trace does.

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
    """Contents of a program trace.

    Attributes:
        header: What was recorded: design, workload, machine, threads, transactions, seed, config.
        bytes: Length of the file.
        blocks: Blocks of operations.
        populated_words: Words that are not zero before any thread runs.
        populated_bytes: Bytes of the file that they take.
        threads: Each thread.
        notes: Of an import: sentences about what was odd in its sources.
        source_instructions: Of an import: instructions of its sources.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> info = graven.trace_info("hash.gvt")
        >>> info
        <TraceInfo: silo on hash, 2 threads, 2,589 operations, 29,325,588 B>
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
    notes: tuple[str, ...] = field(default=(), compare=False)
    source_instructions: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        of = self.header
        what = f"{of['design']} on {of['workload']}" if of["design"] else f"from {of['origin']}"
        parts = [what, counted(len(self.threads), "thread"), counted(self.operations, "operation")]
        return f"<TraceInfo: {', '.join(parts)}, {self.bytes:,} B>"

    @staticmethod
    def _parse(text: str) -> TraceInfo:
        """Reads the engine's JSON."""
        raw = json.loads(text)
        summaries, notes = raw.pop("summaries"), tuple(raw.pop("notes", ()))
        threads = tuple(ThreadSummary(**thread) for thread in summaries)
        return TraceInfo(**raw, threads=threads, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        threads = [dict(vars(thread)) for thread in self.threads]
        document = {**vars(self), "header": dict(self.header), "threads": threads}
        del document["notes"], document["source_instructions"]
        return document

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
    path = arguments.path("trace", trace)
    with _named(path):
        return TraceInfo._parse(_engine.trace_info(path))


def trace_properties(trace: Path_) -> dict[str, Any]:
    """Looks through all of a trace: what its programs are like, as papers describe theirs.

    Returns:
        `transactions` (`count`, and `stores`, `words` and `lines` of each: mean, p50, p99, max),
        `stores`, `silent_share` (stores of the old value), `clean_share` (bytes of stored words
        that the store did not change), `again_share` (stores to a word that the transaction had
        stored to), `outside` (stores outside transactions), `non_temporal`, `loads`,
        `instructions`, `instructions_per_store`, `access_share` (loads and stores among the
        instructions), `locks`, `lines_stored`, `lines`, and `reuse_lines` (other lines that the
        thread stored to since it last stored to a line).

    Raises:
        TraceError: it is no whole trace; the message names the byte.
    """
    path = arguments.path("trace", trace)
    with _named(path):
        found: dict[str, Any] = json.loads(_engine.trace_properties(path))
    return found


def trace_history_counts(trace: Path_) -> dict[str, int]:
    """Counts what a captured program did for persistence, and its stores, by kind.

    Returns:
        Numbers of entries by their names (`store`, `clwb`, `sfence`, `msync`, …); nothing of a
        trace that was not captured, or by a version before 4 of the format.

    Raises:
        TraceError: it is no whole trace; the message names the byte.
    """
    path = arguments.path("trace", trace)
    with _named(path):
        found: dict[str, int] = json.loads(_engine.trace_history_counts(path))
    return found


def trace_history(
    trace: Path_, *, first: int = 0, most: int = NUMBER_MAX, accesses: bool = False
) -> dict[str, Any]:
    """Reads what a captured program did for persistence, in the order of all its threads.

    Args:
        trace: The trace.
        first: The first entry that is read, from 0.
        most: Entries that are read at most.
        accesses: Stores too, and loads of programs with several threads.

    Returns:
        `entries`, each with `thread`, `operation`, `what` and what belongs to it; `sites`, which
        the entries' `site` and `calls` (the innermost first) number; `all`, the number of entries.

    Raises:
        TraceError: it is no whole trace; the message names the byte.
    """
    path = arguments.path("trace", trace)
    with _named(path):
        text = _engine.trace_history(path, first, most, accesses)
    found: dict[str, Any] = json.loads(text)
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
    apart([("trace", trace)], job.inputs)
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
    name = arguments.text_or_none("design", design)
    spec = {"trace": trace, "design": name, "machine": where, "set": pairs}
    with _named(trace):
        text = _run(trace, _engine.TraceReplay(json.dumps(spec)), observe)
    return parse_record(text, json.loads(text)["machine"])


def import_champsim(
    sources: Iterable[Path_],
    trace: Path_,
    *,
    transaction_stores: int | None = None,
    instructions: int | None = None,
    layout: Layout | None = None,
    observe: Observer | None = None,
) -> TraceInfo:
    """Makes a program trace of ChampSim's traces, a thread of each.

    Args:
        sources: The files; those compressed by gzip, xz or bzip2 are decompressed, whatever their
            names.
        trace: The file to write.
        transaction_stores: Stores of a transaction; without, there are no transactions.
        instructions: Instructions of each file that are taken, from its first on; all if not given.
        layout: The layout of the files: `champsim`, of 64 bytes an instruction, or `cloudsuite`, of
            96; if not given, the first, and files that look like the other are refused.
        observe: Called several times a second.

    Returns:
        What is in the program trace; its `notes` say what was odd in the sources.

    Raises:
        ConfigError: a number is refused, or there are no sources.
        TraceError: a file is no trace; the message names the byte, and the format that it looks
            like.
        OutputError: the file cannot be written, or is one of the sources.

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
    options = _import_options(transaction_stores, instructions, layout)
    out = Path(arguments.path("trace", trace))
    names = arguments.paths("sources", sources)
    with opened(names) as files:
        return import_opened(files, out, options, observe, (CHAMPSIM,))


def import_trace(
    sources: Iterable[Path_],
    trace: Path_,
    *,
    transaction_stores: int | None = None,
    instructions: int | None = None,
    layout: Layout | None = None,
    observe: Observer | None = None,
) -> TraceInfo:
    r"""Makes a program trace of traces of another tool, a thread of each; their content says which.

    They are ChampSim's, valgrind's lackey's, DynamoRIO's drmemtrace's, or those of a core for
    Ramulator or USIMM.

    Args:
        sources: The files, all of one format; those compressed by gzip, xz or bzip2, and zip files
            of drmemtrace, are decompressed, whatever their names.
        trace: The file to write.
        transaction_stores: Stores of a transaction; without, there are no transactions.
        instructions: Instructions of each file that are taken, from its first on; all if not given.
        layout: The layout of ChampSim's files, as for `import_champsim`.
        observe: Called several times a second.

    Returns:
        What is in the program trace; its `notes` say what was left out of the sources.

    Raises:
        ConfigError: a number is refused, or there are no sources.
        TraceError: a file is no such trace, or of another format than the first; the message names
            the byte or line, and the format that it looks like.
        OutputError: the file cannot be written, or is one of the sources.

    Examples:
        >>> from pathlib import Path
        >>> lines = ["I  00400000,3", " L 1ffe000000,8", "I  00400003,2", " M 1ffe00000c,8"]
        >>> _ = Path("lackey.txt").write_text("\n".join(lines) + "\n")
        >>> info = graven.import_trace(["lackey.txt"], "lackey.gvt")
        >>> info.header["origin"], info.threads[0].loads, info.threads[0].stores
        ('lackey', 3, 2)
    """
    options = _import_options(transaction_stores, instructions, layout)
    out = Path(arguments.path("trace", trace))
    with opened(arguments.paths("sources", sources)) as files:
        return import_opened(files, out, options, observe)


def _import_options(
    transaction_stores: int | None, instructions: int | None, layout: Layout | None
) -> dict[str, Any]:
    given = {"transaction_stores": transaction_stores, "instructions": instructions}
    numbers = {
        name: arguments.integer_or_none(name, value, 1, NUMBER_MAX) for name, value in given.items()
    }
    if layout is not None and layout not in LAYOUTS:
        raise ConfigError(f"layout: {layout!r} is not allowed; {', '.join(LAYOUTS)} are")
    return {**numbers, "layout": layout}


def import_opened(
    files: Sequence[Reading],
    out: Path,
    options: Mapping[str, Any],
    observe: Observer | None,
    allowed: Sequence[Format] = PROGRAMS,
) -> TraceInfo:
    """Imports as `import_trace`, from open files."""
    apart([("trace", out)], [("sources", file.path) for file in files])
    check([out], 0)
    kind = _format_of(files, allowed)
    if options["layout"] is not None and kind is not CHAMPSIM:
        raise ConfigError(f"layout: {files[0].path} is {kind.name}, and ChampSim's have layouts")
    with growing(out) as place, contextlib.ExitStack() as more:
        names = [str(file.path) for file in files]
        given = {name: value for name, value in options.items() if name != "layout" or value}
        spec = {"names": names, "out": str(place), "format": kind.imported_as, **given}
        sources: list[Reading] = list(files)
        if kind is DRMEMTRACE:
            sources, spec["threads"] = _each_thread(files, more)
        task = _engine.Conversion("import", json.dumps(spec), cast("list[BinaryIO]", sources))
        return TraceInfo._parse(_run(out.name, task, observe))


def _each_thread(
    files: Sequence[Reading], opened: contextlib.ExitStack
) -> tuple[list[Reading], list[int | None]]:
    """Opens files of drmemtrace once for each of their threads; and the threads' numbers.

    Only the first version of the format has several threads in a file. A pipe, which can be read
    once, has one.
    """
    sources: list[Reading] = []
    numbers: list[int | None] = []
    for file in files:
        threads: list[int | None] = [None]
        if int.from_bytes(file.beginning[4:12], "little") == 1 and file.path.is_file():
            with contextlib.closing(open_trace(file.path)) as scanned:
                spec = json.dumps({"name": str(file.path)})
                task = _engine.Conversion("threads", spec, [cast("BinaryIO", scanned)])
                threads = json.loads(_run(file.path.name, task, None))["threads"]
        readings = [
            opened.enter_context(contextlib.closing(open_trace(file.path))) for _ in threads[1:]
        ]
        sources += [file, *readings]
        numbers += threads if len(threads) > 1 else [None]
    return sources, numbers


def _format_of(files: Sequence[Reading], allowed: Sequence[Format]) -> Format:
    """The format that all files look like; ChampSim's, which begins with nothing special, of none.

    Raises:
        TraceError: one looks like another format.
    """
    kinds = [recognised(file.beginning) or CHAMPSIM for file in files]
    for file, found in zip(files, kinds, strict=True):
        if found not in allowed:
            tools = [kind.name.removeprefix("a trace of ") for kind in allowed]
            expected = " or ".join(filter(None, [", ".join(tools[:-1]), tools[-1]]))
            raise TraceError(
                f"{file.path}: expected a trace of {expected}, found {_looks_like(found)}"
            )
        if found is not kinds[0]:
            expected = f"{kinds[0].name}, as {files[0].path} is one"
            raise TraceError(f"{file.path}: expected {expected}, found {_looks_like(found)}")
    return kinds[0]


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
        out: The file to write; `.gz`, `.xz` and `.bz2` are compressed.
        thread: The thread, from 0.
        first_transaction: The first of its transactions that is written, from 0.
        transactions: How many; all that follow if not given.
        observe: Called several times a second.

    Raises:
        ConfigError: a number is refused.
        TraceError: the trace is broken, or has no such thread or transaction.
        OutputError: the file cannot be written, or is the trace.

    Examples:
        >>> record = graven.record_trace("hash.gvt", "silo", "hash", threads=2, transactions=100)
        >>> graven.export_champsim("hash.gvt", "hash.champsim.xz", thread=1, transactions=10)
        870
    """
    given = {"thread": thread, "first_transaction": first_transaction, "transactions": transactions}
    numbers = {
        name: arguments.integer_or_none(name, value, 0, NUMBER_MAX) for name, value in given.items()
    }
    path = Path(arguments.path("out", out))
    trace = arguments.path("trace", trace)
    apart([("out", path)], [("trace", Path(trace))])
    check([path], 0, packed=True)
    with growing(path) as place:
        spec = json.dumps({"trace": trace, **numbers})
        try:
            with packing(place, path) as file, _named(trace):
                text = _run(path.name, _engine.Conversion("export", spec, [file]), observe)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
        return int(json.loads(text)["instructions"])


def convert_requests(
    trace: Path_,
    out: Path_,
    *,
    format: str | None = None,
    to_clock: str | None = None,
    clock: str | None = None,
    levels: Iterable[int] | None = None,
    relative: bool = False,
    machine: Path_ = DEFAULT,
    observe: Observer | None = None,
) -> int:
    """Makes a trace of memory requests one of another format; returns its requests.

    Args:
        trace: A trace of requests in any format that `graven.memory` takes.
        out: The file to write.
        format: Its format: `graven` (binary), `nvmain`, `dramsim3`, `ramulator` (1), `ramulator2`
            (`LoadStoreTrace`), `dramsys` (`.stl`) or `gem5` (packets); if not given, binary where
            the file's name ends in `.grt`, otherwise NVMain's.
        to_clock: The clock of the cycles that are written, for example `"1.2 GHz"`; if not given,
            the core's. Formats of Ramulator have no times, and gem5's packets have ticks of 1 ps.
        clock: The clock of the trace's cycles, for example `"1.2 GHz"`: they are converted to
            cycles of the machine's core; if not given, cycles stay as they are.
        levels: As for `graven.memory`.
        relative: Likewise.
        machine: Name of a preset, or path of a TOML file; its core has the clock of the result.
        observe: Called several times a second.

    Raises:
        TraceError: the trace is broken.
        OutputError: the file cannot be written, or is the trace.

    Examples:
        >>> record = graven.run("silo", "hash", transactions=100, request_trace="requests.nvt")
        >>> graven.convert_requests("requests.nvt", "requests.grt")
        1538
        >>> graven.memory("requests.grt").requests
        1538
    """
    path = Path(arguments.path("out", out))
    assumed, written = Assumed.of(clock, levels, relative), WrittenAs.of(format, to_clock)
    found = Machine.find(machine)
    with opened([arguments.path("trace", trace)]) as [file]:
        return convert_opened(file, path, found, assumed, written, observe)[0]


def convert_opened(
    file: Reading,
    out: Path,
    machine: Machine,
    assumed: Assumed,
    written: WrittenAs,
    observe: Observer | None,
) -> tuple[int, tuple[str, ...]]:
    """Converts as `convert_requests`, from an open file; the requests, and what was odd."""
    apart([("out", out)], [("trace", file.path)])
    check([out], 0)
    check_requests(file)
    assumed.check(file)
    with growing(out) as place:
        spec = {"trace": str(file.path), "out": str(place), **written.spec(out)}
        spec |= {"machine": machine.spec(), **assumed.spec()}
        files = cast("list[BinaryIO]", [file])
        task = _engine.Conversion("requests", json.dumps(spec), files)
        found = json.loads(_run(out.name, task, observe))
        return int(found["requests"]), tuple(found.get("notes", ()))


def check_requests(file: Reading) -> None:
    """Refuses a file that looks like a trace of something else than requests.

    Raises:
        TraceError: it names the format.
    """
    found = recognised(file.beginning)
    if found is not None and found not in (*REQUESTS, TEXT):
        of = "NVMain, DRAMsim3, Ramulator, gem5, DRAMSys, Graven"
        expected = f"expected a trace of memory requests (of {of})"
        raise TraceError(f"{file.path}: {expected}, found {_looks_like(found)}")


@contextlib.contextmanager
def opened(names: Iterable[Path_]) -> Iterator[list[Reading]]:
    """Opens traces, which are decompressed as they are read.

    Raises:
        TraceError: one cannot be read.
    """
    with contextlib.ExitStack() as files:
        yield [files.enter_context(contextlib.closing(open_trace(Path(name)))) for name in names]


def open_trace(path: Path) -> Reading:
    """Opens one trace.

    Raises:
        TraceError: it cannot be read.
    """
    try:
        return Reading(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Says of a file that is no program trace which format it looks like."""
    try:
        yield
    except TraceError as error:
        if ": byte 0: expected a program trace" not in str(error) or not Path(path).is_file():
            raise
        with open_trace(Path(path)) as file:
            found, packed = recognised(file.beginning), file.compression
        parts = [str(error)]
        if packed is not None:
            parts.append(f"it is compressed by {packed.name}")
        if found is not None:
            what = "it" if packed is None else "its content"
            parts.append(f"{what} {'is' if found is TEXT else 'looks like'} {found}")
        raise TraceError("; ".join(parts)) from None


def _looks_like(found: Format | None) -> str:
    return str(found) if found is TEXT else f"what looks like {found}"


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
