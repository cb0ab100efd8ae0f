"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from graven.basics.arguments import (
    FIRST_SEED_MAX,
    RECOVERIES_MAX,
    SCHEDULES_MAX,
    SEED_MAX,
    SEEDS_MAX,
    VIOLATIONS_MAX,
)
from graven.basics.folders import DEFAULT_STORE, REPRODUCED, STORE_VARIABLE
from graven.cli import completions
from graven.cli.files import Written
from graven.engine.machine import DEFAULT
from graven.engine.variants import OPTION, Variant, all_parsed
from graven.running.job import is_trace

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
        help="A preset (`graven list machines`), or a TOML file: FOLDER/NAME or NAME.toml.",
    )(command)


def _joined(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> str | None:
    """Names that are given one by one, or separated by commas, as one list."""
    return ",".join(values) or None


def _single(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """One name, where others take several."""
    if value is not None and "," in value and not is_trace(value):
        raise click.UsageError(f"{parameter.opts[0]}: `{value}` is several; give one")
    return value


def _names(what: str, complete: completions.Complete, text: str) -> Callable[[F], F]:
    """An option for names, in the singular or the plural; the parameter has the plural."""
    return click.option(
        f"--{what}",
        f"--{what}s",
        f"{what}s",
        multiple=True,
        metavar="NAMES",
        callback=_joined,
        shell_complete=complete,
        help=text,
    )


def _name(what: str, complete: completions.Complete, text: str, **how: Any) -> Callable[[F], F]:  # noqa: ANN401
    """An option for one name, in the singular or the plural; the parameter has the singular."""
    return click.option(
        f"--{what}",
        f"--{what}s",
        what,
        metavar="NAME",
        callback=_single,
        shell_complete=complete,
        help=text,
        **how,
    )


def designs(default: str) -> Callable[[F], F]:
    """`--design` or `--designs`: several."""
    text = f"Names with commas, or `all`; repeatable.  [default: {default}]"
    return _names("design", completions.designs, text)


def workloads(default: str) -> Callable[[F], F]:
    """`--workload` or `--workloads`: several."""
    text = "Names, groups (micro, macro, all) or program traces (.gvt).  "
    return _names("workload", completions.workloads, f"{text}[default: {default}]")


def metrics(default: str) -> Callable[[F], F]:
    """`--metric` or `--metrics`: several."""
    text = "Statistics that designs are compared by (`graven list stats`).  "
    return _names("metric", completions.statistics, f"{text}[default: {default}]")


def design(text: str, *, required: bool = True) -> Callable[[F], F]:
    """`--design` or `--designs`: one."""
    return _name("design", completions.design, text, required=required)


def workload(text: str, *, required: bool = True) -> Callable[[F], F]:
    """`--workload` or `--workloads`: one."""
    return _name("workload", completions.workload, text, required=required)


def metric(text: str) -> Callable[[F], F]:
    """`--metric` or `--metrics`: one."""
    return _name("metric", completions.statistics, text)


def designs_argument(metavar: str) -> Callable[[F], F]:
    """Designs as arguments, or as `--design`; the parameter is a list of names with commas."""

    def wrapped(command: F) -> F:
        @wraps(command)
        def with_both(*, given: tuple[str, ...], designs: str | None, **rest: object) -> object:
            both = [*given, *([] if designs is None else [designs])]
            if not both:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            return command(designs=",".join(both), **rest)

        argument = click.argument(
            "given", metavar=metavar, nargs=-1, shell_complete=completions.designs
        )
        option = _names("design", completions.designs, "The same, as an option.")
        return argument(option(cast("F", with_both)))

    return wrapped


def design_argument(command: F) -> F:
    """A design as the argument, or as `--design`."""

    @wraps(command)
    def with_both(*, given: str | None, design: str | None, **rest: object) -> object:
        both = {name for name in (given, design) if name is not None}
        if len(both) != 1:
            raise click.UsageError("DESIGN: give one design, as the argument or as --design")
        return command(design=both.pop(), **rest)

    argument = click.argument(
        "given", metavar="DESIGN", required=False, shell_complete=completions.design
    )
    option = design("The same, as an option.", required=False)
    return argument(option(cast("F", with_both)))


def sound(designs: str) -> list[str]:
    """Designs by name; `all` stands for every sound one."""
    from graven.api.options import sound_designs, split_names

    named = split_names(designs)
    return list(dict.fromkeys(n for d in named for n in (sound_designs() if d == "all" else [d])))


def designs_crashed(
    designs: str | None, variants: Mapping[str, Variant], mutant: str | None
) -> list[str]:
    """The designs of a campaign: those that are named, and variants; else every sound one.

    Raises:
        UsageError: a mutant is of one design, and there are several.
    """
    from graven.api.options import design_names, sound_designs

    names = design_names(designs) if designs else [] if variants else sound_designs()
    names += [name for name in variants if name not in names]
    if mutant is not None and len(names) != 1:
        raise click.UsageError(f"--mutant {mutant} is of one design; --design names it")
    return names


def mutant(command: F) -> F:
    """`--mutant`."""
    return click.option(
        "--mutant",
        metavar="NAME",
        help="Give one design a fault (`graven list mutants`), which must be found.",
    )(command)


def violations(what: str) -> Callable[[F], F]:
    """`--violations`."""
    return click.option(
        "--violations",
        type=click.IntRange(1, VIOLATIONS_MAX),
        default=1,
        show_default=True,
        metavar="N",
        help=f"Stop {what} after N violations.",
    )


def replay(of: str) -> Callable[[F], F]:
    """`--replay`."""
    return click.option(
        "--replay",
        type=Written(dir_okay=False),
        metavar="FILE",
        help=f"Where the program that replays the first violation goes, of {of}.  "
        "[default: in graven-results]",
    )


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
        help="Change a configuration value (`graven list parameters`); repeatable.",
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
        help="Add a design with settings of its own, under NAME; repeatable.",
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
        first_seed = click.option(
            "--first-seed",
            type=click.IntRange(0, FIRST_SEED_MAX),
            default=1,
            show_default=True,
            metavar="N",
            help="Seed of the first.",
        )
        draws = click.option(
            "--draw",
            "draws",
            multiple=True,
            metavar="NAME=NUMBER",
            callback=_read_draws,
            help="Change a bound of what is drawn (`graven list draws`); repeatable.",
        )
        return number(first_seed(draws(command)))

    return wrapped


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


def readings(*modes: str) -> Callable[[F], F]:
    """`--reading` or `--readings`: names of readings, and `modes` that stand for several."""
    groups = f"{', '.join(modes)} (as their methodology describes), or names: " if modes else ""
    default = f"  [default: {modes[0]}]" if modes else ""
    return click.option(
        "--reading",
        "--readings",
        "named",
        multiple=True,
        metavar="NAMES",
        callback=_split,
        help=f"Readings of the papers' texts to try beside the default ones: {groups}those with "
        "real programs are tried so alone, on traces that are captured when they are missing and "
        f"kept in FOLDER/captures.{default}",
    )


def _split(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    names = [name.strip() for value in values for name in value.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


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
        click.option("--fresh", is_flag=True, help="Run again what has a result there, too."),
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
        help=f"Where results are kept and found ({STORE_VARIABLE}).",
    )(command)


def on(command: F) -> F:
    """`--on`."""
    return click.option(
        "--on",
        default="local",
        show_default=True,
        metavar="EXECUTOR",
        help="Where simulations run: local, local:N (N at a time), dask://HOST:PORT, slurm (heeds "
        "SBATCH_PARTITION and the like).",
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
        if len(set(numbers)) < len(numbers):
            self.fail(f"`{value}` has a seed twice", param, ctx)
        return tuple(numbers)


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
    command = workload("See `graven list workloads`; or a trace (.gvt).")(command)
    return design("See `graven list designs`.")(command)
