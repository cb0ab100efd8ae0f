"""`graven trace`: what program threads do, recorded once and run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.markup import escape

from graven._engine import TraceError
from graven.api import traces
from graven.api.assumed import FORMATS, Assumed, WrittenAs
from graven.api.recognised import PROGRAM, PROGRAMS, REQUESTS, recognised
from graven.api.traces import LAYOUTS, TraceInfo
from graven.basics.compressed import Reading
from graven.basics.numbers import exact
from graven.basics.places import place_of
from graven.cli import options
from graven.cli.files import Writers, Written
from graven.cli.run import show
from graven.cli.tables import numbers, plain_table
from graven.cli.terminal import note, refusing, results_console
from graven.engine.machine import DEFAULT, Machine
from graven.results.formats import json_text
from graven.running.experiment import Result
from graven.running.job import Job, is_binary, is_trace
from graven.running.progress import Display

F = TypeVar("F", bound=Callable[..., Any])

IMPORTED = {kind.imported_as: kind for kind in PROGRAMS}
"""Formats of other tools by the origin in the header of a program trace."""

HELP = """Record what program threads do, and run it again.

A program trace has the operations of every thread with their values, transactions and locks, and
the memory that they begin with. docs/guides/traces.md describes the format.

\b
Examples:
  graven trace record btree.gvt --design silo --workload btree
  graven trace info btree.gvt
  graven trace replay btree.gvt --design fwb
  graven trace convert 600.perlbench.xz --to perlbench.gvt
"""

RECORD = """Simulate one design on one workload, and record its program's threads in TRACE.

The result is that of `graven run`.

\b
Examples:
  graven trace record btree.gvt --design silo --workload btree
  graven trace record shared.gvt --design base --workload hash --set workload.sharing=shared
"""

INFO = """Show what is in TRACE.

\b
Examples:
  graven trace info btree.gvt
  graven trace info btree.gvt --properties     sizes of transactions, silent stores, clean bytes
  graven trace info btree.gvt --format json
"""

PRINT = """Print what a captured program did for persistence, in the order of all its threads.

Flushes, fences and system calls, each with the thread, the number of the thread's next operation,
the place in the source, and the calls that led there. Replays under designs ignore them.

\b
Examples:
  graven trace print puts.gvt
  graven trace print puts.gvt --stores --limit 100
  graven trace print puts.gvt --format json
"""

REPLAY = """Run TRACE: under the design and on the machine that it was recorded with, or others.

The first gives the recorded result, byte for byte. Elsewhere each thread does what it did, with the
values that it stored; how threads interleave is up to the machine.

\b
Examples:
  graven trace replay btree.gvt
  graven trace replay btree.gvt --design fwb --set pm.write_ns=300
  graven trace replay perlbench.gvt --design silo --machine lalea
"""

CONVERT = """Make a program trace of traces of another tool, or one for ChampSim of a program trace.

SOURCES are files of ChampSim, valgrind's lackey, DynamoRIO's drmemtrace, or of a core for Ramulator
or USIMM, one for each thread, or one program trace. Their content says which.

Or a trace of memory requests (`graven memory`) is made one of another format (--format).

Sources may be compressed by gzip, xz or bzip2, or be zip files of drmemtrace, whatever their names,
but for program traces.

\b
Examples:
  graven trace convert 600.perlbench.champsimtrace.xz --to perlbench.gvt
  graven trace convert a.xz b.xz --to two.gvt --instructions 1000000 --transaction-stores 8
  graven trace convert cassandra_phase0.xz --to cassandra.gvt --layout cloudsuite
  graven trace convert lackey.txt --to program.gvt
  graven trace convert drmemtrace.*.trace.zip --to threads.gvt
  graven trace convert btree.gvt --to btree.champsimtrace.xz --thread 3
  graven trace convert requests.nvt --to requests.grt
  graven trace convert requests.grt --to requests.trc --format dramsim3 --to-clock 1200MHz
  graven trace convert requests.grt --to requests.nvt
  graven trace convert ramulator.trace --to requests.grt --clock 1200MHz
"""


@click.group(cls=Writers, help=HELP)
def trace() -> None:
    """The group of commands about program traces."""


def _trace_argument(command: F) -> F:
    kind = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.argument("path", metavar="TRACE", type=kind)(command)


def _number(name: str, least: int, text: str) -> Callable[[F], F]:
    """An option with a number of 32 bits."""
    return options.number(name, text, least=least, most=traces.NUMBER_MAX)


@trace.command(help=RECORD, short_help="Simulate, and record the program's threads.")
@click.argument("path", metavar="TRACE", type=Written(dir_okay=False))
@options.one_run
@options.statistics
def record(path: Path, job: Job, form: str, every: bool) -> int:
    """Checks everything, simulates, prints."""
    with refusing("TRACE: "), Display() as display:
        result = traces.run_recorded(job, path, display)
    if result.records:
        note(f"wrote {path}")
    return show(result, form, every=every)


@trace.command(help=REPLAY, short_help="Run a trace.")
@_trace_argument
@options.design("See `graven list designs`.  [default: recorded]", required=False)
@options.optional_machine("recorded")
@options.settings
@options.statistics
def replay(
    path: Path,
    design: str | None,
    machine: str | None,
    settings: dict[str, str],
    form: str,
    every: bool,
) -> int:
    """Checks everything, simulates, prints."""
    with Display("replays") as display:
        found = traces.replay(path, design, machine=machine, settings=settings, observe=display)
    return show(Result((found,), (), interrupted=False), form, every=every)


@trace.command(help=INFO, short_help="Show what is in a trace.")
@_trace_argument
@click.option(
    "--properties",
    "with_properties",
    is_flag=True,
    help="Look through all of it: what its programs are like, as papers describe theirs.",
)
@options.form("table", "json")
def info(path: Path, with_properties: bool, form: str) -> int:
    """Reads beginning and index, or all, prints."""
    found = traces.trace_info(path)
    history = traces.trace_history_counts(path)
    properties = traces.trace_properties(path) if with_properties else None
    if form == "json":
        more: dict[str, Any] = {} if properties is None else {"properties": properties}
        if history:
            more["history"] = history
        sys.stdout.write(json_text({**found.to_dict(), **more}))
        return 0
    _print_info(found)
    if history:
        table = plain_table("of its persistence", *numbers(""))
        for name, count in history.items():
            table.add_row(name, exact(count))
        results_console().print(table)
    if properties is not None:
        _print_properties(properties)
    return 0


@trace.command(
    "print", help=PRINT, short_help="Print a captured program's flushes, fences and system calls."
)
@_trace_argument
@click.option(
    "--stores", is_flag=True, help="Stores too, and loads where there are several threads."
)
@_number("--first", 0, "The first entry that is printed, from 0.  [default: 0]")
@_number("--limit", 1, "Entries that are printed at most.  [default: all]")
@options.form("table", "json")
def print_history(path: Path, stores: bool, first: int | None, limit: int | None, form: str) -> int:
    """Reads the history, prints."""
    most = traces.NUMBER_MAX if limit is None else limit
    found = traces.trace_history(path, first=first or 0, most=most, accesses=stores)
    if form == "json":
        sys.stdout.write(json_text(found))
        return 0
    if not found["all"]:
        note(f"{path}: no history: it is no capture, or one by Graven before version 4 of traces")
    for entry in found["entries"]:
        sys.stdout.write(f"{_entry(entry, found['sites'])}\n")
    return 0


def _entry(entry: Mapping[str, Any], sites: Sequence[Mapping[str, Any]]) -> str:
    """An entry of a history as a line."""
    words = [f"{entry['thread']:>3} {entry['operation']:>9}  {entry['what']}"]
    if "address" in entry:
        words.append(f"{entry['address']:#x}")
    if "volatile_address" in entry:
        words.append(f"{entry['volatile_address']:#x} (volatile)")
    if "value" in entry:
        words.append(f"= {entry['value']:#x}{' (same instruction)' if entry['is_joined'] else ''}")
    if "result" in entry:
        length = "to the end" if entry["bytes"] > 1 << 60 else f"{exact(entry['bytes'])} B"
        words.append(f"{length}, flags {entry['flags']:#x}")
        words.append(f"-> {entry['result']}" if entry["is_over"] else "begins")
        words += [entry["path"]] if entry["path"] else []
    places = [place_of(sites[site]) for site in (entry["site"], *entry["calls"])]
    return f"{' '.join(words)}  {' < '.join(places)}"


def _print_properties(found: Mapping[str, Any]) -> None:
    console = results_console()
    table = plain_table("of each transaction", *numbers("mean", "p50", "p99", "max"))
    transactions = found["transactions"]
    rows = (
        ("stores", transactions["stores"]),
        ("distinct words stored", transactions["words"]),
        ("distinct lines stored", transactions["lines"]),
        ("of a store: other lines since its line was stored to", found["reuse_lines"]),
    )
    for label, sizes in rows:
        mean = "-" if sizes["mean"] is None else f"{sizes['mean']:,.1f}"
        others = (sizes[name] for name in ("p50", "p99", "max"))
        table.add_row(label, mean, *("-" if n is None else exact(n) for n in others))
    console.print(table)

    def share(name: str) -> str:
        return "-" if found[name] is None else f"{100 * found[name]:.1f} %"

    per_store = found["instructions_per_store"]
    lines = (
        ("transactions", exact(transactions["count"])),
        ("stores of words", exact(found["stores"])),
        ("  outside transactions", exact(found["outside"])),
        ("  non-temporal", exact(found["non_temporal"])),
        ("  of what was there (silent)", share("silent_share")),
        ("  to a word that the transaction had stored to", share("again_share")),
        ("bytes of stored words that did not change (clean)", share("clean_share")),
        ("instructions for each store", "-" if per_store is None else f"{per_store:,.1f}"),
        ("loads and stores of persistent memory among the instructions", share("access_share")),
        ("distinct lines stored to", exact(found["lines_stored"])),
        ("distinct lines accessed", exact(found["lines"])),
        ("locks acquired", exact(found["locks"])),
        ("loads of words of volatile memory", exact(found["volatile_loads"])),
        ("stores of words of volatile memory", exact(found["volatile_stores"])),
        ("distinct lines of volatile memory", exact(found["volatile_lines"])),
    )
    table = plain_table("of all threads", *numbers(""))
    for label, value in lines:
        table.add_row(label, value)
    console.print(table)


def _print_info(found: TraceInfo) -> None:
    console = results_console()
    header = found.header
    if header["origin"] in IMPORTED:
        what = IMPORTED[header["origin"]].name.removeprefix("a trace of ")
        console.print(f"from traces of {what}: no values, and no transactions of theirs")
    elif header["origin"] == "program":
        _print_capture(header)
    else:
        console.print(
            f"[bold]{header['workload']}[/] under [bold]{header['design']}[/]: "
            f"{header['transactions']} transactions, {header['threads']} threads, "
            f"machine {header['machine']}, seed {header['seed']}, Graven {header['version']}"
        )
    console.print(
        f"{exact(found.bytes)} B: {exact(found.operations)} operations in "
        f"{exact(found.blocks)} blocks; {exact(found.populated_words)} populated words in "
        f"{exact(found.populated_bytes)} B"
    )
    names = ("operations", "transactions", "loads", "stores", "instructions", "locks")
    table = plain_table(*numbers("thread", *names))
    for number, thread in enumerate(found.threads):
        table.add_row(str(number), *(exact(getattr(thread, name)) for name in names))
    console.print(table)


def _print_capture(header: Mapping[str, Any]) -> None:
    capture = header["capture"]
    report = capture["report"]
    results_console().print(
        f"captured from [bold]{escape(' '.join(capture['arguments']))}[/]: "
        f"{exact(report['transactions'])} transactions, {header['threads']} threads, "
        f"{', '.join(map(escape, capture['files']))}; "
        f"{exact(report['bytes_unexplained'])} B and {exact(report['loads_unexplained'])} loads "
        f"unexplained, Graven {header['version']}"
    )


@trace.command(help=CONVERT, short_help="Convert from other tools' traces, or to them.")
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--to",
    "out",
    required=True,
    metavar="FILE",
    type=Written(dir_okay=False),
    help="The file to write; for ChampSim, .gz, .xz and .bz2 are compressed.",
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    help="The layout of ChampSim traces: 64 bytes an instruction, or 96 in those of CloudSuite.  "
    "[default: champsim, and what looks like the other is refused]",
)
@_number(
    "--transaction-stores",
    1,
    "Make a transaction of every N stores of a trace of another tool.  [default: none]",
)
@_number("--instructions", 1, "Instructions that are taken of each such trace.  [default: all]")
@_number("--thread", 0, "The thread that is written for ChampSim, from 0.  [default: 0]")
@_number(
    "--first-transaction",
    0,
    "First transaction of the thread that is written, from 0.  [default: 0]",
)
@_number("--transactions", 1, "Transactions that are written.  [default: all that follow]")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="The format of a trace of requests that is written.  [default: graven for .grt, "
    "otherwise nvmain]",
)
@click.option(
    "--to-clock",
    metavar="FREQUENCY",
    help="The clock of the cycles of a trace of requests that is written.  [default: the core's]",
)
@options.clock
@options.levels
@options.relative
@options.optional_machine(DEFAULT)
def convert(
    sources: tuple[Path, ...],
    out: Path,
    layout: str | None,
    transaction_stores: int | None,
    instructions: int | None,
    thread: int | None,
    first_transaction: int | None,
    transactions: int | None,
    format_name: str | None,
    to_clock: str | None,
    clock: str | None,
    levels: tuple[int, ...] | None,
    relative: bool,
    machine: str | None,
) -> int:
    """Finds out which way, and converts."""
    of_import: dict[str, Any] = {
        "transaction_stores": transaction_stores,
        "instructions": instructions,
        "layout": layout,
    }
    of_export: dict[str, Any] = {
        "thread": thread,
        "first_transaction": first_transaction,
        "transactions": transactions,
    }
    of_requests: dict[str, Any] = {
        "format": format_name,
        "to_clock": to_clock,
        "clock": clock,
        "levels": levels,
        "relative": relative or None,
        "machine": machine,
    }
    with traces.opened(sources) as files, refusing("--to: "):
        found = [recognised(file.beginning) for file in files]
        if is_binary(out) or any(one in REQUESTS for one in found):
            _refuse(of_import | of_export, "a trace of requests")
            how = Assumed.of(clock, levels, relative), WrittenAs.of(format_name, to_clock)
            _convert_requests(files, out, machine, *how)
        elif PROGRAM in found:
            program = files[found.index(PROGRAM)]
            if len(files) > 1:
                raise click.UsageError(f"SOURCES: {program.path} is a program trace; name it alone")
            _refuse(of_import | of_requests, "a program trace")
            _export(program, out, of_export)
        else:
            _refuse(of_export | of_requests, "a trace of another tool")
            _import(files, out, of_import)
    return 0


def _refuse(options: Mapping[str, object], what: str) -> None:
    """Refuses options that are given though they do not go with what is converted."""
    for name, value in options.items():
        if value is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with {what}")


def _export(program: Reading, out: Path, options: Mapping[str, int | None]) -> None:
    if program.compression is not None:
        raise TraceError(
            f"{program.path}: it is a program trace compressed by {program.compression.name}; "
            "program traces are read as they were written"
        )
    given = {name: value for name, value in options.items() if value is not None}
    with Display("conversions") as display:
        count = traces.export_champsim(program.path, out, **given, observe=display)
    note(f"wrote {out}: {exact(count)} instructions")


def _import(files: Sequence[Reading], out: Path, options: Mapping[str, Any]) -> None:
    with Display("conversions") as display:
        made = traces.import_opened(files, out, options, display)
    count = exact(made.source_instructions or 0)
    note(f"wrote {out}: {exact(made.operations)} operations, of {count} instructions")
    kind = IMPORTED[made.header["origin"]]
    note(f"{kind.name} has no {kind.lacks}; docs/guides/traces.md says what stands for them")
    for text in made.notes:
        note(text)


def _convert_requests(
    files: Sequence[Reading], out: Path, machine: str | None, assumed: Assumed, written: WrittenAs
) -> None:
    if len(files) > 1:
        raise click.UsageError("SOURCES: a trace of requests is made of one other; name it alone")
    if is_trace(str(out)):
        raise click.UsageError(f"--to: {out}: a trace of requests cannot be made a program trace")
    where = Machine.find(DEFAULT if machine is None else machine)
    with Display("conversions") as display:
        count, notes = traces.convert_opened(files[0], out, where, assumed, written, display)
    note(f"wrote {out}: {exact(count)} requests")
    for text in notes:
        note(text)
