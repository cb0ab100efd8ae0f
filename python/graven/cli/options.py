"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graven.basics.arguments import (
    FIRST_SEED_MAX,
    RECOVERIES_MAX,
    SCHEDULES_MAX,
    SEED_MAX,
    SEEDS_MAX,
)
from graven.basics.folders import DEFAULT_STORE, REPRODUCED, STORE_VARIABLE
from graven.cli import completions
from graven.engine.machine import DEFAULT
from graven.engine.variants import OPTION, Variant, all_parsed

if TYPE_CHECKING:
    from graven.running.work import Executor

F = TypeVar("F", bound=Callable[..., Any])


def machine(command: F) -> F:
    """`--machine`."""
    return click.option(
        "--machine",
        default=DEFAULT,
        show_default=True,
        metavar="PRESET|FILE",
        shell_complete=completions.machine,
        help="A preset (`graven list machines`), or a TOML file: anything with a folder in it "
        "or ending in .toml.",
    )(command)


def designs_or_all(command: F) -> F:
    """Designs as arguments, or `all`."""
    return click.argument(
        "designs",
        metavar="DESIGN...|all",
        nargs=-1,
        required=True,
        shell_complete=completions.design_or_all,
    )(command)


def check_baseline(baseline: str | None, designs: Sequence[str]) -> None:
    """Refuses a baseline that is not among the designs compared."""
    if baseline is not None and baseline not in designs:
        compared = ", ".join(designs)
        raise click.UsageError(
            f"--baseline: `{baseline}` is not among the designs compared: {compared}"
        )


def settings(command: F) -> F:
    """`--set`."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        shell_complete=completions.key,
        callback=_settings,
        help="Change one configuration value; may be repeated. `graven list parameters` shows "
        "the keys.",
    )(command)


def variants(command: F) -> F:
    """`--design-as`."""
    return click.option(
        OPTION,
        "variants",
        multiple=True,
        metavar="NAME=DESIGN[,SECTION.KEY=VALUE...]",
        shell_complete=completions.design,
        callback=_variants,
        help="Compare a design with settings of its own as NAME, beside the others; may be "
        "repeated, as in mine=silo,silo.log_buffer_entries=64.",
    )(command)


def _variants(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Variant]:
    return all_parsed(values)


def _settings(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise click.UsageError(
                f"--set: `{text}` is not of the form SECTION.KEY=VALUE, as in pm.write_ns=300"
            )
        found[key.strip()] = value.strip()
    return found


def schedules(what: str, default: int) -> Callable[[F], F]:
    """`--schedules`, `--first-seed` and `--draw`: which schedules of the adversary."""

    def wrapped(command: F) -> F:
        number = click.option(
            "--schedules",
            type=click.IntRange(1, SCHEDULES_MAX),
            default=default,
            show_default=True,
            metavar="N",
            help=f"Schedules of the adversary for {what}.",
        )
        return number(first_seed()(draws()(command)))

    return wrapped


def first_seed(condition: str = "") -> Callable[[F], F]:
    """`--first-seed`, under a condition that its help says."""
    return click.option(
        "--first-seed",
        type=click.IntRange(0, FIRST_SEED_MAX),
        default=1,
        show_default=True,
        metavar="N",
        help=_under(condition, "seed of the first."),
    )


def draws(condition: str = "") -> Callable[[F], F]:
    """`--draw`, under a condition that its help says."""
    return click.option(
        "--draw",
        "draws",
        multiple=True,
        metavar="NAME=NUMBER",
        callback=_read_draws,
        help=_under(
            condition, "change a bound of what is drawn (`graven list draws`); repeatable."
        ),
    )


def _under(condition: str, text: str) -> str:
    """A help text, after its condition if there is one."""
    return f"{condition}: {text}" if condition else text[0].upper() + text[1:]


def _read_draws(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    """Reads `NAME=NUMBER`, each name once; the engine knows which there are."""
    found: dict[str, int] = {}
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value.isdecimal():
            raise click.UsageError(
                f"--draw: `{text}` is not of the form NAME=NUMBER, as in threads=8"
            )
        found[name] = int(value)
    return tuple(found.items())


def reproduction(command: F) -> F:
    """`--quick`, `--stored` and `--out`: sizes, whether to run, and where results are kept."""
    for option in (
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            default=REPRODUCED,
            show_default=True,
            metavar="FOLDER",
            help="Where results are kept and reports are written.",
        ),
        click.option("--stored", is_flag=True, help="Run nothing: show what is stored."),
        click.option(
            "--quick",
            is_flag=True,
            help="Smaller sizes and one seed: minutes instead of an hour or two.",
        ),
    ):
        command = option(command)
    return command


def reading(command: F) -> F:
    """`--reading`."""
    return click.option(
        "--reading",
        "named",
        multiple=True,
        metavar="NAME",
        help="Try one reading more, by its name; may be repeated. Those with real programs are "
        "tried so alone: their traces are captured when they are missing, and kept in "
        "FOLDER/captures.",
    )(command)


def recovery(command: F) -> F:
    """`--recovery`."""
    return click.option(
        "--recovery",
        type=click.IntRange(1, RECOVERIES_MAX),
        metavar="N",
        help="Power fails N times, evenly spaced over a run; the recovery after each is timed on "
        "the machine (recovery_ms and others). It doubles the time that a run takes here. "
        "recovery.at_cycle and recovery.at_percent, with --set, place a single failure.",
    )(command)


def from_start(command: F) -> F:
    """`--from-start`."""
    return click.option(
        "--from-start",
        is_flag=True,
        help="Measure whole runs, from empty caches on. Otherwise a region in steady state of each "
        "is measured: transactions without time fill the caches, a warm-up follows, and then "
        "windows until throughput, media writes, latency and write energy are known within 5 % "
        "(keys region.*).",
    )(command)


def vary(command: F) -> F:
    """`--vary`."""
    return click.option(
        "--vary",
        multiple=True,
        metavar="SECTION.KEY=V1,V2[,...]",
        shell_complete=completions.key,
        callback=_vary,
        help="Compare several values of a configuration key; may be repeated, and then all "
        "combinations are compared.  [default: the machine's]",
    )(command)


def _vary(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] = {}
    for text in given:
        key, _, rest = text.partition("=")
        key, values = key.strip(), [value.strip() for value in rest.split(",")]
        if not key or not all(values):
            raise click.UsageError(
                f"--vary: `{text}` is not of the form SECTION.KEY=V1,V2, as in pm.write_ns=150,300"
            )
        if key in found:
            raise click.UsageError(
                f"--vary: `{key}` is given twice; its values go in one list, "
                f"{key}={','.join(found[key] + values)}"
            )
        found[key] = values
    return found or None


def transactions(
    default: str = "10000", *, what: str = "Transactions of one simulation"
) -> Callable[[F], F]:
    """`--transactions`."""
    return click.option(
        "--transactions",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"{what}, over all its threads.  [default: {default}]",
    )


def measured_transactions(default: str) -> Callable[[F], F]:
    """`--transactions` of a comparison."""
    what = "Transactions that are measured of one simulation"
    return transactions(f"{default}; 10000 of whole runs", what=what)


def seed(command: F) -> F:
    """`--seed`."""
    return click.option(
        "--seed",
        type=click.IntRange(0, SEED_MAX),
        default=1,
        show_default=True,
        metavar="N",
        help="Seed of everything random.",
    )(command)


def threads(command: F) -> F:
    """`--threads`, one number."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Program threads.  [default: one per core]",
    )(command)


def form(*forms: str, text: str = "What goes to standard output.") -> Callable[[F], F]:
    """`--format` as the parameter `form`; the first is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help=text,
    )


def statistics(command: F) -> F:
    """How the statistics of one run are printed: `--format`, `--all`."""
    command = click.option(
        "--all",
        "every",
        is_flag=True,
        help="Every statistic in the table: also those that are zero, and those of single cores "
        "and banks.",
    )(command)
    return form("table", "json", "csv")(command)


def keeping(command: F) -> F:
    """`--store`, `--no-store` and `--fresh`: where results are kept, and whether they are used."""
    for option in (
        click.option(
            "--fresh", is_flag=True, help="Run again what has a result in the store, too."
        ),
        click.option("--no-store", is_flag=True, help="Neither look for results nor keep any."),
        store,
    ):
        command = option(command)
    return command


def store(command: F) -> F:
    """`--store`."""
    return click.option(
        "--store",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_STORE,
        envvar=STORE_VARIABLE,
        show_default=True,
        metavar="FOLDER",
        help=f"Where results are kept, and found by the same command ({STORE_VARIABLE}).",
    )(command)


def on(command: F) -> F:
    """`--on`."""
    return click.option(
        "--on",
        default="local",
        show_default=True,
        metavar="EXECUTOR",
        help="Where simulations run: local, local:N (so many at a time), dask://HOST:PORT (the "
        "workers of a Dask scheduler), slurm (job arrays; SBATCH_PARTITION and so on are heeded).",
    )(command)


def executor_of(on: str, jobs: int | None) -> Executor:
    """What `--on` and `--jobs` say.

    Raises:
        ConfigError: it is not allowed.
    """
    from graven.executors.named import executor

    return executor(on, jobs)


def jobs(what: str) -> Callable[[F], F]:
    """`--jobs`."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"{what} at a time.  [default: one per host core]",
    )


class Seeds(click.ParamType[tuple[int, ...]]):
    """So many seeds from 1 on, or seeds separated by commas."""

    name = "seeds"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, ...]:
        """Reads `3`, which is 1,2,3, or `4,7,9`."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        numbers = [int(part) for part in parts if part.isdecimal()]
        if len(numbers) == len(parts) == 1 and 1 <= numbers[0] <= SEEDS_MAX:
            return tuple(range(1, numbers[0] + 1))
        if len(numbers) < len(parts) or len(parts) == 1 or max(numbers) > SEED_MAX:
            self.fail(
                f"`{value}` is neither a number of seeds from 1 to {SEEDS_MAX} nor several seeds "
                f"from 0 to {SEED_MAX} separated by commas, as in 1,2,3",
                param,
                ctx,
            )
        return tuple(dict.fromkeys(numbers))


def seeds(command: F) -> F:
    """`--seeds`, beside `--seed`."""
    return click.option(
        "--seeds",
        type=Seeds(),
        metavar="N|N,N...",
        help="N seeds from 1 on, or several seeds: every number is a mean over them, with half of "
        "its 95 % confidence interval; ratios are paired by seed.",
    )(command)


def seeds_of(seed: int, seeds: tuple[int, ...] | None) -> tuple[int, ...]:
    """What `--seed` and `--seeds` say together."""
    if seeds is not None and seed != 1:
        raise click.UsageError("--seed and --seeds exclude each other")
    return seeds or (seed,)


class ThreadCounts(click.ParamType[tuple[int, ...]]):
    """One or more numbers of threads, separated by commas."""

    name = "threads"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, ...]:
        """Reads `1,2,4,8`."""
        if isinstance(value, tuple):
            return value
        try:
            counts = tuple(dict.fromkeys(int(text) for text in str(value).split(",")))
        except ValueError:
            counts = ()
        if not counts or min(counts) < 1:
            self.fail(
                f"`{value}` is not a number of threads, or several separated by commas "
                "as in 1,2,4,8",
                param,
                ctx,
            )
        return counts


def one_run(command: F) -> F:
    """What says which simulation: design, workload, machine, size, seed and settings."""
    command = machine(threads(transactions()(seed(settings(command)))))
    workload = click.option(
        "--workload",
        required=True,
        metavar="NAME",
        shell_complete=completions.workload,
        help="See `graven list workloads`; or a trace (.gvt).",
    )
    design = click.option(
        "--design",
        required=True,
        metavar="NAME",
        shell_complete=completions.design,
        help="See `graven list designs`.",
    )
    return design(workload(command))
