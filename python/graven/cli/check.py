"""`graven check`: all small programs, all that may happen to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from graven.basics.numbers import exact
from graven.cli import options
from graven.cli.files import Writer
from graven.cli.storing import conclude, say_found, show, state_file, watched
from graven.cli.tables import numbers, plain_table, whole
from graven.cli.terminal import note, results_console
from graven.laboratory.check import Bound, Check, Checked, LifeBound, go_on_from
from graven.running.work import Executor, How

F = TypeVar("F", bound=Callable[..., Any])

HELP = """Execute every program up to a size, crash it in every way, and judge each recovery.

Programs: all, up to symmetry, within bounds of threads, transactions, stores, lines and words of
them; words of several threads are handed over under a lock. Schedules: the usual run, and all that
depart from it at most so often: a dirty line is evicted, a write is late, a thread waits, memory
chooses another order. Power failures: at every change of the durable state, with any part of the
newest write, any set of writes under way that their order allows, and after any write of recovery,
to any depth; then a second life, and the same there. What an earlier failure has found is counted
and not judged again (docs/explanation/laboratory.md says why that is sound).

Each design has its structures, logs and fields as small as two threads of two stores can use, so
that they fill, overflow and come round within a program; --set changes that for a parameter,
--full-size for all.

\b
Examples:
  graven check silo --transactions 2              seconds
  graven check silo                               the default bound: minutes
  graven check all                                all sound designs; continues where it was
  graven check all --state check.json             the same, kept in a file of its own
  graven check silo --full-size                   with the sizes of an ordinary run
  graven check lad --mutant uncommitted-saved        what a bug looks like, as a least program

Programs are executed sixteen at a time, and what these come to is kept in the store as it comes:
the same command continues where it was, and with a design more it executes that one's. Of `all`,
designs that the settings do not fit are left out, and told.

The exit code is 0 if all guarantees were kept, 1 if not, 2 for refused input, 130 if interrupted.
"""

_DEFAULT = Bound()


def _words(text: str) -> tuple[int, ...]:
    """Reads the words of each line, `2,2`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text} is not of the form N,N, as in 2,2: words of each line") from None


def _bound(
    threads: int,
    transactions: int,
    stores: int,
    words: tuple[int, ...],
    departures: int,
    no_hand_overs: bool,
    life_transactions: int,
    life_stores: int,
) -> Bound:
    life = LifeBound(life_transactions, life_stores)
    return Bound(threads, transactions, stores, words, not no_hand_overs, departures, life)


def _at_most(name: str, default: int, text: str) -> Callable[[F], F]:
    """A part of the bound; the engine knows which numbers are allowed."""
    return options.number(name, text, least=None, default=default)


bounded = options.as_one(
    "bound",
    _bound,
    _at_most("--threads", _DEFAULT.threads, "Threads at most, 1 to 4."),
    _at_most(
        "--transactions",
        _DEFAULT.transactions,
        "Transactions of all threads together at most, 1 to 6.",
    ),
    _at_most("--stores", _DEFAULT.stores, "Stores of a transaction at most, 0 to 4."),
    click.option(
        "--words",
        type=options.Read("words", _words),
        default=_DEFAULT.words,
        metavar="N[,N...]",
        help="Words of each line.  [default: 2,2]",
    ),
    _at_most(
        "--departures",
        _DEFAULT.departures,
        "Departures of a run from the usual one at most, 0 to 4.",
    ),
    click.option("--no-hand-overs", is_flag=True, help="No word is stored to by several threads."),
    _at_most(
        "--life-transactions",
        _DEFAULT.life.transactions,
        "Transactions of the second life at most; 0: there is none.",
    ),
    _at_most("--life-stores", _DEFAULT.life.stores, "Stores of each at most, 1 or 2."),
)
"""Options that say how large programs may be, as `bound`."""


@click.command(cls=Writer, help=HELP)
@options.designs_argument("DESIGN...|all")
@bounded
@click.option("--mutant", metavar="NAME", help="A mutant of the designs that is enabled.")
@click.option(
    "--full-size",
    is_flag=True,
    help="Designs have the default sizes of structures, logs and fields.",
)
@options.written("--state", "Keep what is done there in place of the store, and continue from it.")
@options.executor("Parts")
@options.keeping
@options.settings
@options.form("table", "json")
def check(
    designs: str,
    bound: Bound,
    mutant: str | None,
    full_size: bool,
    state: Path | None,
    executor: Executor,
    keeping: options.Keeping,
    settings: dict[str, str],
    form: str,
) -> int:
    """Prepares, runs, prints."""
    plan = Check.prepare(
        options.sound(designs),
        bound,
        mutant=mutant,
        settings=settings,
        full_size=full_size,
        leave_out=options.names_none(designs),
    )
    for why in plan.left_out:
        note(f"left out: {why}")
    kept = state_file(state)
    if kept is not None:
        go_on_from(plan, kept)
    keep = None if kept is not None else keeping.keeper(plan.part_count)
    save = None if kept is None else kept.write
    with watched(keep, "parts") as display:
        failures, interrupted = plan.run(How(keep, executor, display), save)
    say_found(plan.found, plan.part_count)
    results = plan.results
    show(form, results, lambda: _print(results_console(), bound, results))
    done = f"{sum(map(len, plan.parts.values())):,} of {plan.part_count:,} parts were done"
    return conclude(
        failures,
        done if interrupted else None,
        is_kept=keep is not None or kept is not None,
        is_fine=all(result.violation is None for result in results),
    )


def _print(console: Console, bound: Bound, results: Sequence[Checked]) -> None:
    console.print(f"All programs of {bound}.", style="bold", highlight=False)
    counted = ("programs", "schedules", "power failures", "different", "second lives")
    table = plain_table(whole("design"), *numbers(*counted), "guarantee")
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
        console.print(_sizes(result), highlight=False)
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


def _sizes(result: Checked) -> str:
    """Says which sizes the design had."""
    size = "default sizes" if result.full_size else "scaled down"
    settings = ", ".join(f"{key} = {value}" for key, value in result.settings.items())
    return f"{result.design}, {size}: {settings}" if settings else f"{result.design}, {size}"


def _verdict(result: Checked) -> str:
    if result.violation is not None:
        return "[bold]VIOLATED[/]"
    return "kept" if result.is_complete else "not known"
