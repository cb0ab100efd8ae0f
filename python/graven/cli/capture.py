"""`graven capture`: a program as it is, traced while it runs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from graven import capture as captures
from graven.basics.numbers import exact
from graven.capture import HEADER, KNOWN, Captured, CaptureError
from graven.capture.recipes import capture_recipe, recipes
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.tables import numbers, plain_table
from graven.cli.terminal import REFUSED, complain, note, refusing, results_console
from graven.results.formats import json_text
from graven.running.progress import Display

HELP = """Run PROGRAM as it is, and leave a program trace of what it did with its persistent memory.

No source is needed, and nothing is compiled: the program, which is one for x86-64 or AArch64, runs
under QEMU's user mode, where a plugin sees every load and store. Persistent memory are shared
mappings of the files that --pm-file names, the heap (--pm-heap), variables (--pm-range), or what
markers in the program name; a transaction is what a thread does between two functions (--tx,
--like), while it holds locks (--tx-locks), or between two markers in the program. Loads and stores
of other memory go to DRAM (--only-pm: they are instructions like others). `graven trace replay` and
`graven compare --workloads` run the trace under any design.

\b
Examples:
  graven capture --to puts.gvt --pm-file '*/data.mdb' --like lmdb -- ./puts /dev/shm/db 1000
  graven capture --to kv.gvt --pm-file '*/pool' --tx kv_begin:kv_commit:kv_abort -- ./kv pool
  graven capture --to q.gvt --pm-file '*/pool' --tx-locks --from serve --until serve -- ./q pool
  graven capture --recipe lmdb-insert          a real program, built, run and captured
  graven trace replay puts.gvt --design silo --machine silo

Programs that can be compiled anew may have markers (transactions, the region of interest), which do
nothing otherwise: cc -I"$(graven capture --include-path)" program.c, with #include "graven.h".

What the program prints goes to standard error.

Every capture proves itself: the recorded stores must give the files as they are at the end, and
each load must find what the trace has there. What does not is counted, located and told.

The exit code is 1 if a larger share of bytes or loads than --unexplained is not explained.
"""


ILLEGAL = (
    "that is the signal of an instruction that QEMU does not have: of AArch64 SVE and SME, "
    "and before QEMU 8.1 DC CVAP and DC CVADP"
)
"""Explanation for a program that SIGILL has ended."""

MOVED = (
    "some transactions were ended by threads that had none, and others were never ended: a "
    "transaction that goes on in another thread, as a goroutine or a coroutine may, is not "
    "followed there. Bind it to its thread, in Go by runtime.LockOSThread"
)
"""Warning if transactions may have changed threads."""

NEVER_ENTERED = (
    "among the symbols, and never entered: what the program calls nevertheless, the compiler has "
    "probably inlined where it is called (__attribute__((noinline)), or -fno-inline, keeps it a "
    "function of its own)"
)
"""Warning of functions that were named and that the program has not entered."""

SECTIONS = {
    "sections_untouched": "critical sections without persistent memory, left out",
    "words_left_out": "loads and stores of words by functions that are left out",
    "locks_merged": "locks that are one with others, since they are acquired in a circle",
}
"""Rows about critical sections and their locks, which are left out where the count is 0."""


def _include_path(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(HEADER.parent)
        context.exit()


@click.command(cls=Writer, help=HELP)
@click.option(
    "--to",
    "trace",
    metavar="TRACE",
    type=Written(dir_okay=False),
    help="The trace to write.  [default: of a recipe, its name and .gvt]",
)
@click.option(
    "--recipe",
    type=click.Choice(list(recipes())),
    metavar="NAME",
    help=f"Instead of PROGRAM: build, run and capture one of {', '.join(recipes())}.",
)
@options.persistent_memory
@options.functions
@click.option(
    "--like",
    type=click.Choice(sorted(KNOWN)),
    help="Transactions that are known. "
    + " ".join(f"{name}: {preset.about}." for name, preset in sorted(KNOWN.items())),
)
@click.option(
    "--tx-locks",
    "critical_sections",
    is_flag=True,
    help="Critical sections are transactions: from the acquisition of a thread's first lock to the "
    "release of its last. Those that do not touch persistent memory are none.",
)
@click.option(
    "--from",
    "from_function",
    metavar="FUNCTION",
    help="The trace begins with the first entry of it.  [default: with the first transaction]",
)
@click.option(
    "--until",
    "until_function",
    metavar="FUNCTION",
    help="The trace ends with the return of its first call after that.  [default: with the end of "
    "the last transaction]",
)
@click.option(
    "--leave-out",
    multiple=True,
    metavar="FUNCTION",
    help="Leave out what this function loads and stores; it is counted.",
)
@click.option(
    "--without-persistence",
    is_flag=True,
    help="Leave out the log that the library of --like has of its own: "
    + ", ".join(name for name, preset in KNOWN.items() if preset.persistence)
    + ".",
)
@click.option(
    "--only-pm",
    is_flag=True,
    help="Leave out loads and stores of volatile memory: they are instructions like others. The "
    "trace is smaller, and caches and DRAM have less to do than with the program.",
)
@options.sysroot
@options.number(
    "--skip", "Transactions before the trace begins, from --from on.", least=0, default=0
)
@click.option(
    "--limit",
    "transactions_max",
    type=click.IntRange(min=1),
    metavar="N",
    help="Transactions of the trace at most.  [default: all]",
)
@click.option(
    "--unexplained",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the loads, and of the bytes that were stored, that may be unexplained.",
)
@click.option(
    "--include-path",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_include_path,
    help="Say where graven.h is, the header of the markers, and end.",
)
@options.form("table", "json")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def capture(
    trace: Path | None,
    recipe: str | None,
    only_pm: bool,
    transactions_max: int | None,
    unexplained: float,
    form: str,
    program: tuple[str, ...],
    **how: Any,  # noqa: ANN401 - arguments of `graven.capture.capture`
) -> int:
    """Runs the program, makes the trace, says what is in it."""
    if recipe is not None:
        if program or any(how.values()):
            raise click.UsageError(
                "--recipe says all but --to, --only-pm, --limit and --unexplained"
            )
        trace = trace or Path(f"{recipe}.gvt")
    elif not program:
        raise click.UsageError("name PROGRAM and its arguments behind --, or a --recipe")
    elif trace is None:
        raise click.UsageError("--to says where the trace goes")
    try:
        with refusing("--to: "), Display("captures") as display:
            common: dict[str, Any] = {
                "only_pm": only_pm,
                "transactions_max": transactions_max,
                "observe": display,
            }
            if recipe is not None:
                found = capture_recipe(recipe, trace, **common)
            else:
                found = captures.capture(program, trace, **how, **common)
    except CaptureError as error:
        complain(str(error))
        return REFUSED
    note(f"wrote {trace}")
    if found.report["ends_of_none"] and found.report["unfinished"]:
        note(MOVED)
    if found.never_entered:
        note(f"{', '.join(found.never_entered)}: {NEVER_ENTERED}")
    if form == "json":
        sys.stdout.write(json_text(found.to_dict()))
    else:
        _print(found)
    return 0 if _is_explained(found.report, unexplained) else 1


def _is_explained(report: Mapping[str, Any], share: float) -> bool:
    """Tells whether no more is unexplained than that share."""
    stored = max(1, 8 * report["stores"] + report["kernel_bytes"])
    return bool(
        report["bytes_unexplained"] <= share * stored
        and report["loads_unexplained"] <= share * max(1, report["loads"])
    )


def _print(found: Captured) -> None:
    console, report = results_console(), found.report
    rows = [
        ("threads with persistent memory", f"{report['threads']} of {report['all_threads']}"),
        ("transactions", exact(report["transactions"])),
        ("  that store more than one word", exact(report["transactions_of_several"])),
        ("  that store nothing", exact(report["transactions_without_stores"])),
        ("  aborted", exact(report["aborted"])),
        ("  not over at the end", exact(report["unfinished"])),
        *_if_any(report, {"ends_of_none": "  ends on threads that had none"}),
        ("  before the trace begins", exact(report["skipped"])),
        ("words stored", exact(report["words_stored"])),
        ("  outside transactions", exact(report["words_stored_outside"])),
        ("loads of persistent memory, in all", exact(report["loads"])),
        ("stores, in all", exact(report["stores"])),
        ("bytes that the kernel wrote", exact(report["kernel_bytes"])),
        *_volatile(report),
        ("accesses in the trace whose address was loaded", exact(report["addresses_loaded"])),
        ("locks held to the end of their transactions", exact(report["unlocks_put_off"])),
        *_if_any(report, SECTIONS),
    ]
    if found.counts:
        names = {
            "instructions": "instructions of the program",
            "flushes": "flushes (clwb, dc cvac, …), no operations",
            "fences": "fences, no operations",
            "syncs": "calls of msync, no operations",
        }
        rows += [(label, exact(found.counts[name])) for name, label in names.items()]
    table = plain_table("captured", *numbers(""))
    for row in rows:
        table.add_row(*row)
    console.print(table)
    _print_proof(found)


def _volatile(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows about volatile memory, if the trace has it."""
    if not report["volatile_pages"]:
        return [("loads and stores of volatile memory", "instructions like others (--only-pm)")]
    return [
        ("loads of words of volatile memory", exact(report["volatile_loads"])),
        ("stores", exact(report["volatile_stores"])),
        ("  pages of 4 KB that they touch", exact(report["volatile_pages"])),
    ]


def _if_any(report: Mapping[str, Any], labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """Rows of counts, by their names, that are not 0."""
    return [(label, exact(report[name])) for name, label in labels.items() if report[name]]


def _print_races(found: Captured) -> None:
    console, report = results_console(), found.report
    if not report["races"]:
        return
    count, size = exact(report["races"]), exact(report["racing_bytes"])
    console.print(
        f"{count} loads and stores race with another thread's, on {size} B: nothing that the "
        "program does orders them. The trace has them as they came in this run; another run, or a "
        "replay under a design, may have them the other way round"
    )
    for race in report["first_races"]:
        earlier, later = (_accessor(found, race[which]) for which in ("earlier", "later"))
        console.print(f"  {earlier}; then {later}")


def _accessor(found: Captured, of: Mapping[str, Any]) -> str:
    within = "outside" if of["transaction"] is None else f"in transaction {of['transaction']}"
    place = f"{found.files[of['region']]}: {of['bytes']} B at {of['offset']:#x}"
    return f"{of['access']} of {place} by thread {of['thread']}, {within}"


def _print_proof(found: Captured) -> None:
    console, report = results_console(), found.report
    compared = exact(report["bytes_compared"])
    if not report["bytes_compared"]:
        console.print("the files at the end are not known: nothing was compared")
    elif not report["bytes_unexplained"]:
        console.print(f"the stores give the files as they are at the end: {compared} B, all equal")
    else:
        lost = exact(report["bytes_unexplained"])
        console.print(f"[bold]{lost} of {compared} B at the end are explained by no store[/]")
    if not report["loads_unexplained"]:
        console.print(f"each of {exact(report['loads'])} loads found what the trace has there")
    else:
        lost = exact(report["loads_unexplained"])
        console.print(f"[bold]{lost} of {exact(report['loads'])} loads found something else[/]")
    for place in (*report["unexplained"], *report["loads_astray"]):
        name = found.files[place["region"]]
        of = "" if place["thread"] is None else f", loaded by thread {place['thread']}"
        console.print(f"  {name}: {place['bytes']} B at {place['offset']:#x}{of}")
    _print_races(found)
    for kind, what in (("forks", "processes were made"), ("replaced", "programs were started")):
        if report[kind]:
            console.print(f"{report[kind]} {what}, of which nothing is known")
    if found.exit_code:
        how = (
            f"ended with exit code {found.exit_code}"
            if found.exit_code > 0
            else f"was ended by signal {-found.exit_code}"
        )
        console.print(f"the program {how}")
        if found.exit_code == -signal.SIGILL:
            console.print(ILLEGAL)
    if found.missing:
        console.print(f"in no symbols: {', '.join(found.missing)}")
