"""`graven check`: all small programs, all that may happen to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from graven.basics import signals
from graven.basics.numbers import exact
from graven.cli import options
from graven.cli.files import Writer, Written
from graven.cli.storing import go_on, keeper, say_found, watched
from graven.cli.tables import plain_table
from graven.cli.terminal import complain, note, refusing, results_console
from graven.laboratory.check import Bound, Check, Checked, LifeBound, go_on_from
from graven.laboratory.state_file import StateFile
from graven.results.formats import json_text
from graven.running.pool import failures_text

ROOM = 4 << 20
"""Room to ask for before a check, for a state."""

HELP = """Execute every program up to a size, crash it in every way, and judge each recovery.

Programs: all, up to symmetry, with so many threads, transactions, stores, and words on so many
lines; words of several threads are handed over under a lock. Schedules: the usual run, and all that
depart from it at most so often: a dirty line is evicted, a write is late, a thread waits, memory
chooses another order. Power failures: at every change of the durable state, with any part of the
newest write, any set of writes under way that their order allows, and after any write of recovery,
to any depth; then a second life, and the same there. What an earlier failure has found is counted
and not judged again (docs/explanation/laboratory.md says why that is sound).

\b
Examples:
  graven check silo --transactions 2              seconds
  graven check silo                               the default bound: minutes
  graven check all                                all sound designs; goes on where it was
  graven check all --state check.json             the same, kept in a file of its own
  graven check lad --mutant uncommitted-saved        what a bug looks like, as a least program

Programs are executed sixteen at a time, and what these come to is kept in the store as it comes:
the same command goes on where it was, and with a design more it executes that one's.

The exit code is 0 if all guarantees were kept, 1 if not, 2 for refused input, 130 if interrupted.
"""

_DEFAULT = Bound()


class Words(click.ParamType[tuple[int, ...]]):
    """Words of each line, separated by commas."""

    name = "words"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, ...]:
        """Reads `2,2`."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value} is not of the form N,N, as in 2,2: words of each line", param, ctx)


@click.command(cls=Writer, help=HELP)
@options.designs_argument("DESIGN...|all")
@click.option(
    "--threads",
    type=int,
    default=_DEFAULT.threads,
    show_default=True,
    metavar="N",
    help="Threads at most, 1 to 4.",
)
@click.option(
    "--transactions",
    type=int,
    default=_DEFAULT.transactions,
    show_default=True,
    metavar="N",
    help="Transactions of all threads together at most, 1 to 6.",
)
@click.option(
    "--stores",
    type=int,
    default=_DEFAULT.stores,
    show_default=True,
    metavar="N",
    help="Stores of a transaction at most, 0 to 4.",
)
@click.option(
    "--words",
    type=Words(),
    default=_DEFAULT.words,
    metavar="N[,N...]",
    help="Words of each line.  [default: 2,2]",
)
@click.option(
    "--departures",
    type=int,
    default=_DEFAULT.departures,
    show_default=True,
    metavar="N",
    help="Departures of a run from the usual one at most, 0 to 4.",
)
@click.option("--no-hand-overs", is_flag=True, help="No word is stored to by several threads.")
@click.option(
    "--life-transactions",
    type=int,
    default=_DEFAULT.life.transactions,
    show_default=True,
    metavar="N",
    help="Transactions of the second life at most; 0: there is none.",
)
@click.option(
    "--life-stores",
    type=int,
    default=_DEFAULT.life.stores,
    show_default=True,
    metavar="N",
    help="Stores of each at most, 1 or 2.",
)
@click.option("--mutant", metavar="NAME", help="A mutant of the designs that is enabled.")
@click.option(
    "--state",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="Where what is done is kept, to go on from, in place of the store.",
)
@options.on
@options.keeping
@options.settings
@options.jobs("Parts")
@options.form("table", "json")
def check(
    designs: str,
    threads: int,
    transactions: int,
    stores: int,
    words: tuple[int, ...],
    departures: int,
    no_hand_overs: bool,
    life_transactions: int,
    life_stores: int,
    mutant: str | None,
    state: Path | None,
    on: str,
    folder: Path,
    no_store: bool,
    fresh: bool,
    settings: dict[str, str],
    jobs: int | None,
    form: str,
) -> int:
    """Prepares, runs, prints."""
    executor = options.executor_of(on, jobs)
    life = LifeBound(life_transactions, life_stores)
    bound = Bound(threads, transactions, stores, words, not no_hand_overs, departures, life)
    names = options.sound(designs)
    plan = Check.prepare(names, bound, mutant=mutant, settings=settings)
    kept = None if state is None else StateFile(state)
    if kept is not None:
        with refusing("--state: "):
            kept.check(ROOM)
        go_on_from(plan, kept)
    keep = keeper(
        folder, no_store=no_store or state is not None, fresh=fresh, results=plan.part_count
    )

    def save(text: str) -> None:
        if kept is not None:
            kept.write(text)

    with watched(keep, "parts") as display:
        failures, interrupted = plan.run(keep=keep, executor=executor, observe=display, save=save)
    say_found(plan.found, plan.part_count)
    results = plan.results
    if form == "json":
        sys.stdout.write(json_text([result.to_dict() for result in results]))
    else:
        _print(results_console(), bound, results)
    for failure in failures:
        complain(failures_text([failure]))
    if interrupted:
        done = f"{sum(map(len, plan.parts.values())):,} of {plan.part_count:,} parts were done"
        note(f"{signals.words()}: {done}" + (go_on(keep) if state is None else f"; see {state}"))
        return 130
    broken = any(result.violation is not None for result in results)
    return 1 if failures or broken else 0


def _print(console: Console, bound: Bound, results: Sequence[Checked]) -> None:
    console.print(f"All programs of {bound}.", style="bold", highlight=False)
    table = plain_table()
    table.add_column("design", no_wrap=True)
    for name in ("programs", "schedules", "power failures", "different", "second lives"):
        table.add_column(name, justify="right")
    table.add_column("guarantee")
    for result in results:
        programs = exact(result.programs_done)
        if not result.is_complete:
            programs += f" of {exact(result.programs)}"
        table.add_row(
            result.design,
            programs,
            exact(result.schedules),
            exact(result.failures),
            exact(result.failures - result.equal),
            exact(result.lives),
            _verdict(result),
        )
    console.print(table)
    for result in results:
        if result.refused:
            note(f"{result.design} refused {exact(result.refused)} runs: {result.refusal}")
        if result.crowded:
            note(
                f"{result.design}: at {exact(result.crowded)} crash points more than eight writes "
                "were under way; sets of the first eight were tried"
            )
        if result.violation is not None:
            console.print(f"\n{result.design}: {result.violation.what}", highlight=False)
            console.print(result.violation.program or "", highlight=False, markup=False)
            console.print(result.violation.timeline, highlight=False, markup=False)


def _verdict(result: Checked) -> str:
    if result.violation is not None:
        return "[bold]VIOLATED[/]"
    return "kept" if result.is_complete else "not known"
