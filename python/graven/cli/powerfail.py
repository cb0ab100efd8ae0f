"""`graven powerfail`: what a power failure may leave of a program's files, and whether it copes."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from graven import capture as captures
from graven._engine import SimulationError
from graven.basics import output
from graven.basics.numbers import exact
from graven.basics.signals import INTERRUPTED
from graven.capture import CaptureError
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.terminal import REFUSED, complain, note, refusing, results_console
from graven.laboratory import known_checkers
from graven.laboratory.powerfail import (
    ACKNOWLEDGED,
    ENDS,
    MARKS,
    MODELS,
    PROTOCOLS,
    Asked,
    Powerfail,
    explore,
    judge_one,
)
from graven.laboratory.sarif import violations_to_sarif
from graven.results.formats import json_text
from graven.running.job import is_trace
from graven.running.progress import Display

HELP = """Let power fail at any point of a program as it is; ask whether it copes with what is left.

PROGRAM runs once, under QEMU, as `graven capture` runs it; or its TRACE (.gvt) is taken. What it
stores, flushes, fences and synchronises says at each instant which stores a power failure may lose.
Images of its files are made of that, and judged by commands of yours, natively. What they refuse is
made short: which line's store is missing, which one's is left, and what mends it. Compile with -g
for source lines.

\b
Examples:
  graven powerfail --pm-file '*/pool' --verify './kv check {image}' -- ./kv pool
  graven powerfail kv.gvt --verify './kv check {image}'   a program that was captured
  graven powerfail kv.gvt --verify './kv check {image}' --verify './kv put {image} k v'
  graven powerfail --tx put --pm-file '*/pool' --dump './kv list {image}' -- ./kv pool
  graven powerfail kv.gvt --verify './kv check {image}' --recover './kv open {image}'
  graven powerfail kv.gvt --loop './check-many' --images 1000000 --limit 600
  graven powerfail notes.gvt --model page-cache --verify './notes check {image}'

The exit code is 1 if there is a violation, 2 if nothing could be judged.
"""

CALLS_SHOWN = 6
"""Calls that are shown of a store in the terminal."""


@click.command(cls=Writer, help=HELP)
@options.persistent_memory
@options.sysroot
@options.functions
@click.option(
    "--to", "kept", metavar="TRACE", type=Written(dir_okay=False), help="Keep the trace of PROGRAM."
)
@click.option(
    "--model",
    type=click.Choice(MODELS),
    help="Rules of what may be missing: a processor's persistency model, or the page cache "
    "for files on ordinary disks.  [default: by the flushes in the trace]",
)
@click.option(
    "--sector",
    type=click.Choice(["512", "4096"]),
    default="4096",
    show_default=True,
    help="Bytes that the page cache writes as a whole.",
)
@click.option(
    "--verify",
    multiple=True,
    metavar="COMMAND",
    help="Judge files by a command of yours: exit code 0 is good. {image} is the first file, "
    "{folder} where all are; the files are the command's own. Several run in turn on the same "
    "files: a check, then the program's next operation.",
)
@options.verify_like
@click.option(
    "--loop",
    metavar="COMMAND",
    help="Judge by a command that is kept running, for many images: it reads a path in each line, "
    "and answers with a line, `ok` or what is wrong.",
)
@click.option(
    "--dump",
    metavar="COMMAND",
    help="Judge by the state that a command prints: it must be that before or after the operation "
    "under way (--tx).",
)
@click.option(
    "--serve",
    metavar="COMMAND",
    help="Judge by a server: the command starts it on {image} or {folder}, listening on {port} of "
    "the host; it must accept connections, and is stopped when it was asked.",
)
@click.option(
    "--ask",
    metavar=f"COMMAND|{'|'.join(PROTOCOLS)}",
    help="Ask the server of --serve by a command of yours, at {port}: exit code 0 is good; or by "
    "a protocol that is known.",
)
@click.option(
    "--acknowledge",
    type=click.Choice(ACKNOWLEDGED),
    default=ACKNOWLEDGED[0],
    show_default=True,
    help="When the effects of an operation must survive, for --dump: when it has returned; or "
    "never, so that an older state is good, too.",
)
@click.option(
    "--recover",
    metavar="COMMAND",
    help="Let power fail in recoveries, too: the command, which opens {image}, is captured on "
    "images from all over the run.",
)
@click.option(
    "--command-limit",
    "command_seconds",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time of a command; one that takes longer is killed, and the image is bad.",
)
@click.option(
    "--images",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Most images that are judged.",
)
@click.option(
    "--limit",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time of the exploration.",
)
@click.option(
    "--violations",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Most violations, after which it ends.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of images that are drawn.",
)
@options.jobs("Judges")
@click.option(
    "--mend/--no-mend", default=True, show_default=True, help="Try what mends a violation."
)
@click.option(
    "--only", metavar="IMAGE", help="Judge one image, by the name that is printed with a violation."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the files of the first violation, or of --only.",
)
@options.written("--state", "Keep the verdicts there, and continue from them.")
@click.option("--timeline", is_flag=True, help="Print the steps that led to each violation.")
@options.written("--report", "Write the violations as one HTML file.")
@options.written("--sarif", "Write the violations as SARIF 2.1.0, for services that show code.")
@options.form("table", "json", "sarif")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="TRACE | -- PROGRAM...")
def powerfail(
    transactions: tuple[captures.Transactions, ...],
    kept: Path | None,
    sector: str,
    jobs: int | None,
    timeline: bool,
    report: Path | None,
    sarif: Path | None,
    form: str,
    program: tuple[str, ...],
    pm_files: tuple[str, ...],
    pm_heap: bool,
    pm_ranges: tuple[str, ...],
    sysroot: Path | None,
    verify_like: str | None,
    **question: Any,  # noqa: ANN401 - attributes of `Asked`
) -> int:
    """Captures the program or takes its trace, explores, prints."""
    if not program:
        raise click.UsageError("name a TRACE, or PROGRAM and its arguments behind --")
    how = {
        "pm_files": pm_files,
        "pm_heap": pm_heap,
        "pm_ranges": pm_ranges,
        "sysroot": sysroot,
        "transactions": transactions,
    }
    if jobs is not None:
        question["jobs"] = jobs
    if verify_like is not None:
        question["verify"] = (known_checkers.command_like(verify_like), *question["verify"])
    asked = Asked(sector=int(sector), **question)
    if not (asked.verify or asked.loop or asked.dump or asked.serve or asked.only):
        raise click.UsageError("name a judge: --verify, --verify-like, --loop, --serve or --dump")
    is_given = len(program) == 1 and is_trace(program[0])
    if is_given and (kept or any(how.values())):
        raise click.UsageError(f"{program[0]} is a trace: options of captures do not go with it")
    for option, value in (("--only", asked.only), ("--state", asked.state)):
        if value and not is_given:
            raise click.UsageError(f"{option} goes with a TRACE: another run has other images")
    for written in (report, sarif):
        if written is not None:
            with refusing("--report, --sarif: "):
                output.check([written], 0)
    try:
        if asked.only:
            return _say_one(judge_one(program[0], asked), form)
        if is_given:
            found = _explored(program[0], asked)
        else:
            with tempfile.TemporaryDirectory(prefix="graven-powerfail-") as folder:
                trace = kept or Path(folder) / "program.gvt"
                with refusing("--to: "), Display("captures") as display:
                    captures.capture(program, trace, observe=display, only_pm=True, **how)
                found = _explored(trace, asked)
    except (CaptureError, SimulationError) as error:
        complain(str(error))
        return REFUSED
    _write(found, report, sarif)
    if form == "json":
        sys.stdout.write(json_text(found.to_dict()))
    elif form == "sarif":
        sys.stdout.write(json_text(violations_to_sarif(found)))
    else:
        _print(
            results_console(), found, asked, timeline, kept or (program[0] if is_given else None)
        )
    if found.counts["end"] == "cancelled":
        return INTERRUPTED
    return int(bool(found.violations))


def _explored(trace: Path | str, asked: Asked) -> Powerfail:
    with Display("programs") as display:
        return explore(trace, asked, captures.capture, display)


def _say_one(said: Mapping[str, Any], form: str) -> int:
    if form == "json":
        sys.stdout.write(json_text(dict(said)))
    else:
        verdict = "good" if said["said"] is None else f"refused: {said['said']}"
        results_console().print(f"image {said['image']}: {verdict}", markup=False, soft_wrap=True)
    return int(said["said"] is not None)


def _write(found: Powerfail, report: Path | None, sarif: Path | None) -> None:
    if report is not None:
        # Takes a second to import.
        from graven.drawing.pages.powerfail import render

        output.write(report, render(found).encode())
        note(f"wrote {report}")
    if sarif is not None:
        output.write(sarif, json_text(violations_to_sarif(found)).encode())
        note(f"wrote {sarif}")


def _print(
    console: Console, found: Powerfail, asked: Asked, timeline: bool, trace: Path | str | None
) -> None:
    for number, violation in enumerate(found.violations, 1):
        _print_violation(console, number, violation, timeline)
        if trace is not None and violation["recovery_of"] is None:
            again = command_of(found, violation, asked, trace)
            console.print(f"   again: {again}", markup=False, soft_wrap=True)
    counts = found.counts
    console.print(
        f"{exact(counts['stores'])} words stored in {exact(counts['lines'])} lines, "
        f"{exact(counts['points'])} crash points, {exact(counts['images'])} images "
        f"({exact(counts['pairs'])} pairs of lines); {ENDS[counts['end']]}",
        markup=False,
        soft_wrap=True,
    )
    if found.recoveries:
        images = sum(recovery.get("images", 0) for recovery in found.recoveries)
        console.print(
            f"power failed in {len(found.recoveries)} recoveries, too: {exact(images)} images",
            markup=False,
        )
    count = len(found.violations)
    console.print(f"[bold]{exact(count)} violation{'' if count == 1 else 's'}[/]")
    for sentence in found.notes:
        console.print(sentence, markup=False, soft_wrap=True)


def _print_violation(
    console: Console, number: int, violation: Mapping[str, Any], timeline: bool
) -> None:
    images = f"{exact(violation['count'])} image{'' if violation['count'] == 1 else 's'}"
    console.print(f"{number}. [bold]{escape(violation['edge'])}[/]  ({images})", soft_wrap=True)
    rows = [violation["said"]]
    if violation["recovery_of"] is not None:
        rows.append(f"power failed in the recovery of image {violation['recovery_of']}, too")
    for key, label in (("missing", "missing"), ("present", "left")):
        for store in violation[key]:
            rows.append(
                f"{label}: {store['where']}, thread {store['thread']}: {store['at']} = "
                f"{store['new']:#x} (was {store['old']:#x}); calls: {_calls(store['calls'])}"
            )
    if violation["after_where"]:
        rows.append(f"power fails behind {violation['after_where']}")
    if violation["mend"]:
        rows.append(f"repair: {violation['mend']}")
    if timeline:
        for step in violation["timeline"]:
            mark = f"  <- {MARKS[step['mark']]}" if step["mark"] else ""
            place = f" at {step['at']}" if step["at"] else ""
            said = f"{step['where']}: {step['what']}{place}{mark}"
            rows.append(f"  {step['event']:>6} thread {step['thread']} {said}")
    for row in rows:
        indented = row.replace("\n", "\n      ")
        console.print(f"   {indented}", markup=False, soft_wrap=True)


def _calls(calls: list[Mapping[str, Any]]) -> str:
    from graven.laboratory.hygiene import where

    outermost = next((at for at, f in enumerate(calls, 1) if f.get("function") == "main"), None)
    calls = calls[:outermost]
    shown = [where(frame) for frame in calls[:CALLS_SHOWN]]
    more = [f"{len(calls) - CALLS_SHOWN} more"] if len(calls) > CALLS_SHOWN else []
    return " < ".join([*shown, *more])


def command_of(
    found: Powerfail, violation: Mapping[str, Any], asked: Asked, trace: Path | str
) -> str:
    """The command that judges a violation's image again."""
    words = ["graven", "powerfail", str(trace), "--model", found.model]
    if asked.sector != Asked.sector:
        words += ["--sector", str(asked.sector)]
    for command in asked.verify:
        words += ["--verify", command]
    judges = (
        ("--loop", asked.loop),
        ("--dump", asked.dump),
        ("--serve", asked.serve),
        ("--ask", asked.ask),
    )
    for option, value in judges:
        if value is not None:
            words += [option, value]
    if asked.command_seconds != Asked.command_seconds:
        words += ["--command-limit", f"{asked.command_seconds:g}"]
    if asked.acknowledge != Asked.acknowledge:
        words += ["--acknowledge", asked.acknowledge]
    return shlex.join([*words, "--only", violation["image"]])
