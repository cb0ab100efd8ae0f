"""`graven hygiene`: what a program forgets for its persistence, line by line."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from graven import capture as captures
from graven.basics import output
from graven.basics.numbers import exact, scaled
from graven.capture import CaptureError
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.terminal import REFUSED, complain, note, refusing, results_console
from graven.laboratory.hygiene import SEVERITIES, Hygiene, judge, read_suppressions, where
from graven.laboratory.sarif import to_sarif
from graven.results.formats import json_text
from graven.running.job import is_trace
from graven.running.progress import Display

HELP = """Find the lines of a program that are careless about persistence, without any crash.

PROGRAM runs as it is, under QEMU, as `graven capture` runs it; or its TRACE (.gvt) is looked at.
Each store to persistent memory is followed to the flush and the fence, or the msync, that make it
durable. Findings are stores that never become so, calls that fail, loads of what others have not
made durable; and waste: flushes and fences that do nothing. One finding for each source line, with
counts, the calls that led there, and what mends it. Compile with -g for source lines.

\b
Examples:
  graven hygiene --pm-file '*/pool' -- ./kv pool
  graven hygiene --pm-heap -- ./index 200          a program whose heap is persistent
  graven hygiene kv.gvt                            a program that was captured
  graven hygiene kv.gvt --report findings.html --sarif findings.sarif
  graven hygiene kv.gvt --suppress known.txt       lines such as: never-flushed init_*

The exit code is 1 if a finding is as bad as --fail-on says, 2 if nothing could be judged.
"""

CALLS_SHOWN = 6
"""Calls that are shown of a finding in the terminal."""


@click.command(cls=Writer, help=HELP)
@options.persistent_memory
@options.sysroot
@click.option(
    "--to",
    "kept",
    metavar="TRACE",
    type=Written(dir_okay=False),
    help="Keep the trace of PROGRAM.",
)
@click.option(
    "--suppress",
    "suppressions",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Leave out findings by lines of FILE: CLASS FUNCTION, where * fits anything. FUNCTION is "
    "that of the line, or one that led to it.",
)
@click.option(
    "--libraries",
    is_flag=True,
    help="Findings in libraries of the system, too: they are counted otherwise, and not listed.",
)
@options.optional_machine("silo")
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "never"]),
    default="bug",
    show_default=True,
    help="Findings that make the exit code 1: bugs only, waste too, or none.",
)
@options.written("--report", "Write the findings as one HTML file.")
@options.written("--sarif", "Write the findings as SARIF 2.1.0, for services that show code.")
@options.form("table", "json", "sarif")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="TRACE | -- PROGRAM...")
def hygiene(
    kept: Path | None,
    suppressions: tuple[Path, ...],
    libraries: bool,
    machine: str | None,
    fail_on: str,
    report: Path | None,
    sarif: Path | None,
    form: str,
    program: tuple[str, ...],
    **how: Any,  # noqa: ANN401 - arguments of `graven.capture.capture`
) -> int:
    """Captures the program or takes its trace, judges, prints."""
    if not program:
        raise click.UsageError("name a TRACE, or PROGRAM and its arguments behind --")
    chosen = [one for path in suppressions for one in read_suppressions(path)]
    on = machine or "silo"
    is_given = len(program) == 1 and is_trace(program[0])
    if is_given and (kept or any(how.values())):
        raise click.UsageError(f"{program[0]} is a trace: options of captures do not go with it")
    for written in (report, sarif):
        if written is not None:
            with refusing("--report, --sarif: "):
                output.check([written], 0)
    if is_given:
        found = judge(program[0], machine=on, suppressions=chosen, libraries=libraries)
    else:
        try:
            with tempfile.TemporaryDirectory(prefix="graven-hygiene-") as folder:
                trace = kept or Path(folder) / "program.gvt"
                with refusing("--to: "), Display("captures") as display:
                    captures.capture(program, trace, observe=display, only_pm=True, **how)
                found = judge(trace, machine=on, suppressions=chosen, libraries=libraries)
        except CaptureError as error:
            complain(str(error))
            return REFUSED
    _write(found, report, sarif)
    if form == "json":
        sys.stdout.write(json_text(found.to_dict()))
    elif form == "sarif":
        sys.stdout.write(json_text(to_sarif(found)))
    else:
        _print(results_console(), found)
    failing = {"bug": SEVERITIES[:1], "waste": SEVERITIES, "never": ()}[fail_on]
    return int(any(finding["severity"] in failing for finding in found.findings))


def _write(found: Hygiene, report: Path | None, sarif: Path | None) -> None:
    if report is not None:
        # Takes a second to import.
        from graven.drawing.pages.hygiene import render

        output.write(report, render(found).encode())
        note(f"wrote {report}")
    if sarif is not None:
        output.write(sarif, json_text(to_sarif(found)).encode())
        note(f"wrote {sarif}")


def _print(console: Console, found: Hygiene) -> None:
    for number, finding in enumerate(found.findings, 1):
        _print_finding(console, number, finding, found.machine)
    totals = found.totals
    counts = ", ".join(
        f"{exact(totals[name])} {label}"
        for name, label in (
            ("stores", "words stored"),
            ("flushes", "flushes"),
            ("fences", "fences"),
            ("locked", "locked instructions"),
            ("syncs", "calls that synchronise"),
            ("sends", "calls that send"),
        )
    )
    console.print(counts, markup=False)
    bugs, waste = len(found.of("bug")), len(found.of("waste"))
    said = f"{_counted(bugs, 'bug')} and {_counted(waste, 'line')} of waste"
    if found.in_libraries:
        modules = (finding["place"].get("module", "") for finding in found.in_libraries)
        names = {PurePath(module).name for module in modules}
        count = _counted(len(found.in_libraries), "finding")
        said += f"; {count} in {', '.join(sorted(names))} (--libraries)"
    if found.suppressed:
        said += f"; {_counted(len(found.suppressed), 'finding')} suppressed"
    console.print(f"[bold]{said}[/]")
    for sentence in found.notes:
        console.print(sentence, markup=False, soft_wrap=True)


def _counted(count: int, noun: str) -> str:
    return f"{exact(count)} {noun}{'' if count == 1 else 's'}"


def _print_finding(console: Console, number: int, finding: Mapping[str, Any], machine: str) -> None:
    times = "once" if finding["count"] == 1 else f"{exact(finding['count'])} times"
    console.print(
        f"{number}. [bold]{escape(finding['where'])}[/]  {finding['class']} "
        f"({finding['severity']}), {times}",
        soft_wrap=True,
    )
    rows = [finding["problem"]]
    if finding.get("detail"):
        rows[0] += f" ({finding['detail']})"
    if finding["at"]:
        rows[0] += f"; first: {finding['at']}, thread {finding['thread']}"
    for partner in finding["partners"]:
        rows.append(f"{partner['is']}: {where(partner['place'])}")
    rows.append(f"calls: {_calls(finding['calls'])}")
    if len(finding["callers"]) > 1:
        callers = (f"{where(c['place'])} ×{exact(c['count'])}" for c in finding["callers"])
        rows.append(f"called from: {', '.join(callers)}")
    if finding["cost_ns"]:
        rows.append(f"cost: {_time(finding['cost_ns'])} of simulated time on machine {machine}")
    rows.append(f"repair: {finding['repair']}")
    for row in rows:
        console.print(f"   {row}", markup=False, soft_wrap=True)


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    shown = [where(frame) for frame in calls[:CALLS_SHOWN]]
    more = [f"{len(calls) - CALLS_SHOWN} more"] if len(calls) > CALLS_SHOWN else []
    return " < ".join([*shown, *more])


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{scaled(ns / size)} {unit}"
    return f"{scaled(ns)} ns"
