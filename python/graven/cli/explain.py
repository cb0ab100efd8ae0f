"""`graven explain`: what moves a claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from graven.basics import output
from graven.basics.numbers import counted, ratio
from graven.cli import completions, options
from graven.cli.claims import STYLES, print_legend
from graven.cli.programs import CAPTURES, capture_programs, check_readings
from graven.cli.reproduce import estimate, is_default, require_results, simulate
from graven.cli.tables import folded, plain_table
from graven.cli.terminal import note, refusing, results_console
from graven.papers import reference
from graven.papers.counts import MEASURED
from graven.papers.data import Claim, Paper
from graven.papers.files import claim_of
from graven.papers.plan import AUTHORS, OPEN, jobs_of
from graven.papers.programs import answer_with
from graven.papers.reproduction import by_digest
from graven.papers.rules import METHOD_MEANS, legend
from graven.papers.sensitivity import APART, Sensitivity, alternatives_of, document, sensitivity
from graven.results import formats
from graven.running.work import Executor
from graven.store import Store

HELP = """Show what moves a claim of a paper.

CLAIM is the id of a claim that simulations answer (graven reproduce --claims shows them). Its
experiments are simulated by default, under each reading of the paper's text, by the paper's method
(all readings that belong to it), and with each other value of the keys that no sentence decides;
one at a time. The change with the largest effect comes first. Keys that no sentence decides decide
no verdict, and neither do real programs in place of the paper's (--reading "real programs").

Where simulations are missing here, the results that Graven ships are shown, with their version and
size; --simulate runs what is missing, and so do --reading, --on and --jobs.

\b
Examples:
  graven explain silo-throughput-vs-fwb
  graven explain silo-throughput-vs-fwb --quick --simulate
  graven explain lalea-headline-lalea --simulate

Of results that are here, writes FOLDER/quick/explain or FOLDER/full/explain: CLAIM.json, and a
drawing as CLAIM.svg and CLAIM.png. Results are shared with `graven reproduce`; after an interrupt,
the same command continues.
"""


@click.command(help=HELP)
@click.argument("claim_id", metavar="CLAIM", shell_complete=completions.claim)
@options.reproduction
@options.readings()
@click.option("--simulate", "wanted", is_flag=True, help="Run what is missing.")
@options.executor("Simulations")
def explain(
    claim_id: str,
    quick: bool,
    stored: bool,
    out: Path,
    named: tuple[str, ...],
    wanted: bool,
    executor: Executor,
) -> int:
    """Simulates what is not stored, prints, and keeps the table and its drawing."""
    paper, claim = claim_of(claim_id)
    folder = out / ("quick" if quick else "full") / "explain"
    store = Store(out / "store")
    if stored:
        require_results(store, out)
    shipped = reference.of_claim(claim.id)
    if not (stored or wanted or named) and is_default("on") and is_default("jobs") and shipped:
        jobs_of_claim = by_digest(jobs_of(alternatives_of(claim, paper, quick=quick)))
        missing = [job for name, job in jobs_of_claim.items() if not store.has(name)]
        if missing:
            _print_shipped(claim, paper, shipped)
            took = estimate(missing, executor)
            size = " --quick" if quick else ""
            note(
                f"{len(missing):,} of {len(jobs_of_claim):,} simulations have no result in {out}; "
                f"`graven explain {claim.id}{size} --simulate` runs them ({took})"
            )
            return 0
    captures = _captures(paper, claim, named, out, stored=stored)
    needed = by_digest(jobs_of(alternatives_of(claim, paper, quick=quick, captures=captures)))
    with refusing():
        folder.parent.mkdir(parents=True, exist_ok=True)
        room = formats.BYTES_PER_REPORT + store.missing(needed) * formats.BYTES_PER_RECORD
        output.check([folder / f"{claim.id}.json"], room, make=folder)
    status = 0 if stored else simulate(needed, store, executor)
    found = sensitivity(claim, paper, store, quick=quick, captures=captures)
    _write(found, folder, quick=quick)
    _print(found)
    return status


def _captures(
    paper: Paper, claim: Claim, named: tuple[str, ...], out: Path, *, stored: bool
) -> Path | None:
    """Where the traces of the readings with real programs are, if one is asked for."""
    check_readings(named, [paper])
    readings = [paper.readings[name] for name in named]
    programs = [p for one in readings if answer_with(claim, one) for p in one.programs]
    if not programs:
        return None
    if not stored:
        capture_programs(programs, out / CAPTURES)
    return out / CAPTURES


def _write(found: Sensitivity, folder: Path, *, quick: bool) -> None:
    from graven.drawing.figures.rows import Sensitivities
    from graven.drawing.figures.style import Look

    name = found.verdict.claim.id
    chart = Sensitivities.of(found)
    files = {"json": document(found, quick=quick).encode()}
    if chart is not None:
        picture = chart.draw(Look.of("text"))
        files |= {form: picture.encoded(form) for form in ("svg", "png")}
    for form, content in files.items():
        output.write(folder / f"{name}.{form}", content)
    note(f"wrote {folder / name}.json" + (" and its drawing" if chart is not None else ""))


COLUMNS = ("change", "ours", "outcome", "number × default")


def _print_shipped(claim: Claim, paper: Paper, lines: Sequence[reference.Line]) -> None:
    """Results that Graven ships, with what made them."""
    console = results_console()
    default = lines[0]
    console.print(Text(f"{claim.where}: {claim.says}", style="bold"))
    seeds = counted(int(default["seeds"] or 1), "seed")
    made = f"shipped with Graven, made by version {default['version']} at {default['sizes']} sizes"
    made += f", with {seeds}"
    if default["seeds"] != "1":
        made += " by default and by the paper's method, 1 otherwise"
    console.print(Text(f"{made}; nothing was simulated here", style="yellow"), soft_wrap=True)
    said = f"paper: {default['paper']}; ours: {default['ours']}; {default['verdict']}"
    console.print(Text(said), soft_wrap=True)
    table = plain_table(*folded(*COLUMNS))
    ordered = sorted(lines, key=lambda line: line["kind"] == OPEN)
    for number, line in enumerate(ordered):
        if line["kind"] == OPEN and ordered[number - 1]["kind"] != OPEN:
            table.add_section()
        factor = line["moves it by"]
        table.add_row(
            Text("none: the default" if line is default else line["alternative"]),
            Text(line["ours"]),
            _outcome(line["outcome"]),
            f"{ratio(float(factor))} ×" if factor else "",
        )
    console.print(table)
    if claim.circular or claim.why:
        console.print(Text(f"reason: {claim.circular or claim.why}"), soft_wrap=True)
    for name in dict.fromkeys(line["alternative"] for line in lines):
        if name in paper.readings:
            reading = paper.readings[name]
            console.print(Text(f"{name}: {reading.what} ({reading.where})", style="dim"))
    words = legend(line["outcome"] for line in lines)
    if any(line["alternative"] == AUTHORS for line in lines):
        words.append(METHOD_MEANS)
    if any(line["kind"] == OPEN for line in lines):
        words.append(
            "changes below the gap: keys that no sentence decides, which decide no verdict"
        )
    for text in words:
        console.print(Text(text, style="dim"))


def _print(found: Sensitivity) -> None:
    console = results_console()
    verdict = found.verdict
    console.print(Text(f"{verdict.claim.where}: {verdict.claim.says}", style="bold"))
    console.print(
        Text(f"paper: {verdict.paper}; {verdict.text}; {verdict.tried_text}"), soft_wrap=True
    )
    table = plain_table(*folded(*COLUMNS, "grounds"))
    default = verdict.default
    came = default.ours or "; ".join(default.missing[:1])
    table.add_row("none: the default", Text(came), _outcome(default.verdict), "", "")
    for apart in (False, True):
        every = (*found.moves, *found.programs)
        moves = [move for move in every if (move.kind in APART) == apart]
        if moves and apart:
            table.add_section()
        for move in moves:
            table.add_row(
                Text(move.name),
                Text(move.found.ours or "; ".join(move.found.missing[:1])),
                _outcome(move.found.verdict),
                "" if move.factor is None else f"{ratio(move.factor)} ×",
                Text(("decides no verdict: " if apart else "") + move.sentence),
            )
    console.print(table)
    if verdict.note:
        console.print(Text(f"reason: {verdict.note}"), soft_wrap=True)
    print_legend([verdict], about=[move.found.verdict for move in found.moves])
    if verdict.kind == MEASURED and verdict.mark:
        console.print(Text(f"* {verdict.mark}"), soft_wrap=True)


def _outcome(verdict: str) -> Text:
    return Text(verdict, style=STYLES.get(verdict, "dim"))
