"""`graven trace`: what program threads do, recorded once and run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.markup import escape

from graven.api import traces
from graven.api.traces import TraceInfo
from graven.basics.numbers import exact
from graven.cli import completions, options
from graven.cli.run import show
from graven.cli.tables import plain_table
from graven.cli.terminal import note, refusing, results_console
from graven.engine.machine import Machine
from graven.results.formats import json_text
from graven.running.experiment import Result
from graven.running.job import Job, is_binary, is_trace
from graven.running.progress import Display

F = TypeVar("F", bound=Callable[..., Any])

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

REPLAY = """Run TRACE: under the design and on the machine that it was recorded with, or others.

The first gives the recorded result, byte for byte. Elsewhere each thread does what it did, with the
values that it stored; how threads interleave is up to the machine.

\b
Examples:
  graven trace replay btree.gvt
  graven trace replay btree.gvt --design fwb --set pm.write_ns=300
  graven trace replay perlbench.gvt --design silo --machine lalea
"""

CONVERT = """Make a program trace of ChampSim's traces, or one for ChampSim of a program trace.

SOURCES are files of ChampSim, one for each thread, or one program trace. ChampSim's may be
compressed: .xz, .gz.

Or a trace of memory requests (`graven memory`) is made one of another format: binary if FILE ends
in .grt, NVMain's text if it does not and the source is binary.

\b
Examples:
  graven trace convert 600.perlbench.champsimtrace.xz --to perlbench.gvt
  graven trace convert a.xz b.xz --to two.gvt --instructions 1000000 --transaction-stores 8
  graven trace convert btree.gvt --to btree.champsimtrace.xz --thread 3
  graven trace convert requests.nvt --to requests.grt
  graven trace convert requests.grt --to requests.nvt
"""

MAGIC = b"\x89GRVNT\r\n"
"""What a program trace begins with."""

REQUESTS_MAGIC = b"\x89GRVNR\r\n"
"""What a binary trace of memory requests begins with."""


@click.group(help=HELP)
def trace() -> None:
    """The group of commands about program traces."""


def _trace_argument(command: F) -> F:
    kind = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.argument("path", metavar="TRACE", type=kind)(command)


def _number(name: str, least: int, text: str) -> Callable[[F], F]:
    """An option with a number of 32 bits."""
    return click.option(
        name, type=click.IntRange(min=least, max=(1 << 32) - 1), metavar="N", help=text
    )


@trace.command(help=RECORD, short_help="Simulate, and record the program's threads.")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path, dir_okay=False))
@options.one_run
@options.statistics
def record(
    path: Path,
    design: str,
    workload: str,
    machine: str,
    threads: int | None,
    transactions: int | None,
    seed: int,
    settings: dict[str, str],
    form: str,
    every: bool,
) -> int:
    """Checks everything, simulates, prints."""
    where, pairs = Machine.find(machine), tuple(settings.items())
    job = Job(design, workload, where, threads, transactions, seed, pairs)
    with refusing("TRACE: "), Display() as display:
        result = traces.run_recorded(job, path, display)
    if result.records:
        note(f"wrote {path}")
    return show(result, form, every=every)


@trace.command(help=REPLAY, short_help="Run a trace.")
@_trace_argument
@options.design("See `graven list designs`.  [default: recorded]", required=False)
@click.option(
    "--machine",
    metavar="PRESET|FILE",
    shell_complete=completions.machine,
    help="A preset (`graven list machines`), or a TOML file: anything with a folder in it "
    "or ending in .toml.  [default: recorded]",
)
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
    properties = traces.trace_properties(path) if with_properties else None
    if form == "json":
        more = {} if properties is None else {"properties": properties}
        sys.stdout.write(json_text({**found.to_dict(), **more}))
        return 0
    _print_info(found)
    if properties is not None:
        _print_properties(properties)
    return 0


def _print_properties(found: Mapping[str, Any]) -> None:
    console = results_console()
    table = plain_table()
    table.add_column("of each transaction")
    for name in ("mean", "p50", "p99", "max"):
        table.add_column(name, justify="right")
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
    table = plain_table()
    table.add_column("of all threads")
    table.add_column("", justify="right")
    for label, value in lines:
        table.add_row(label, value)
    console.print(table)


def _print_info(found: TraceInfo) -> None:
    console = results_console()
    header = found.header
    if header["origin"] == "champsim":
        console.print("from traces of ChampSim: no values, and no transactions of theirs")
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
    table = plain_table()
    names = ("operations", "transactions", "loads", "stores", "instructions", "locks")
    for name in ("thread", *names):
        table.add_column(name, justify="right")
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


@trace.command(help=CONVERT, short_help="Convert from and to ChampSim's, or of requests.")
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--to",
    "out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; for ChampSim, .xz and .gz are compressed.",
)
@_number(
    "--transaction-stores",
    1,
    "Make a transaction of every N stores of a ChampSim trace.  [default: none]",
)
@_number("--instructions", 1, "Take so many instructions of each ChampSim trace.  [default: all]")
@_number("--thread", 0, "The thread that is written for ChampSim, from 0.  [default: 0]")
@_number("--first-transaction", 0, "Its first transaction that is written, from 0.  [default: 0]")
@_number("--transactions", 1, "How many transactions are written.  [default: all that follow]")
def convert(
    sources: tuple[Path, ...],
    out: Path,
    transaction_stores: int | None,
    instructions: int | None,
    thread: int | None,
    first_transaction: int | None,
    transactions: int | None,
) -> int:
    """Finds out which way, and converts."""
    of_import = {"--transaction-stores": transaction_stores, "--instructions": instructions}
    of_export = {
        "--thread": thread,
        "--first-transaction": first_transaction,
        "--transactions": transactions,
    }
    if is_binary(out) or any(_begins_with(REQUESTS_MAGIC, source) for source in sources):
        _convert_requests(sources, out, of_import | of_export)
        return 0
    programs = [source for source in sources if _begins_with(MAGIC, source)]
    if programs and len(sources) > 1:
        raise click.UsageError(f"SOURCES: {programs[0]} is a program trace; name it alone")
    for option, value in (of_import if programs else of_export).items():
        if value is not None:
            what = "a program trace" if programs else "a trace of ChampSim"
            raise click.UsageError(f"{option} does not go with {what}")
    with refusing("--to: "), Display("conversions") as display:
        if programs:
            count = traces.export_champsim(
                sources[0],
                out,
                thread=thread or 0,
                first_transaction=first_transaction or 0,
                transactions=transactions,
                observe=display,
            )
            note(f"wrote {out}: {exact(count)} instructions")
        else:
            found = traces.import_champsim(
                sources,
                out,
                transaction_stores=transaction_stores,
                instructions=instructions,
                observe=display,
            )
            note(f"wrote {out}: {exact(found.operations)} operations")
    return 0


def _convert_requests(
    sources: tuple[Path, ...], out: Path, options: Mapping[str, int | None]
) -> None:
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"{option} does not go with a trace of requests")
    if len(sources) > 1:
        raise click.UsageError("SOURCES: a trace of requests is made of one other; name it alone")
    if is_trace(str(out)):
        raise click.UsageError(f"--to: {out}: a trace of requests cannot be made a program trace")
    with refusing("--to: "), Display("conversions") as display:
        count = traces.convert_requests(sources[0], out, observe=display)
    note(f"wrote {out}: {exact(count)} requests")


def _begins_with(magic: bytes, path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic
