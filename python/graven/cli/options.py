"""Options that several commands share, declared once.

Some come to a command as one argument: `--on` and `--jobs` as an executor, those of the store as
`Keeping`, all that says which simulation as a job.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import click

from graven.basics.arguments import (
    FIRST_SEED_MAX,
    MINIMISE_MAX,
    RECOVERIES_MAX,
    SCHEDULES_MAX,
    SEED_MAX,
    SEEDS_MAX,
    VIOLATIONS_MAX,
)
from graven.basics.folders import DEFAULT_STORE, REPRODUCED, STORE_VARIABLE
from graven.cli import completions
from graven.cli.files import Written
from graven.engine.machine import DEFAULT, Machine
from graven.engine.variants import OPTION, Variant, all_parsed
from graven.laboratory.known_checkers import KNOWN as KNOWN_CHECKERS
from graven.running.job import Job, is_trace

if TYPE_CHECKING:
    from graven.api.plans import Plan
    from graven.capture import Transactions
    from graven.laboratory.adversary import Schedules
    from graven.running.work import Executor
    from graven.store.keeper import Keeper

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


# ---- kinds of options --------------------------------------------------------------------------


def number(
    name: str,
    text: str,
    *,
    least: int | None = 1,
    most: int | None = None,
    default: int | None = None,
    metavar: str = "N",
) -> Callable[[F], F]:
    """An option with a whole number; without `least` the engine says what is allowed."""
    return click.option(
        name,
        type=int if least is None else click.IntRange(least, most),
        default=default,
        show_default=default is not None,
        metavar=metavar,
        help=text,
    )


def written(name: str, text: str) -> Callable[[F], F]:
    """An option with a file that is written."""
    return click.option(name, type=Written(dir_okay=False), metavar="FILE", help=text)


class Read(click.ParamType[T], Generic[T]):
    """Values that a function reads from a text; the message of its `ValueError` says why not."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self.read = read

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> T:
        """Reads a text; defaults, which are values already, stay."""
        if not isinstance(value, str):
            return cast("T", value)
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def several(read: Callable[[Any], object]) -> Mapping[str, Any]:
    """Arguments of click for a repeatable option, whose texts a function reads together."""
    return {"multiple": True, "callback": lambda _context, _parameter, texts: read(texts)}


def pairs(option: str, texts: Sequence[str], form: str) -> Iterator[tuple[str, str]]:
    """Splits texts at their `=`.

    Raises:
        UsageError: one has none, or nothing on one of its sides; it says the `form`.
    """
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or not value:
            raise click.UsageError(f"{option}: `{text}` is not of the form {form}")
        yield key, value


def as_one(
    parameter: str, make: Callable[..., object], *options: Callable[[F], F]
) -> Callable[[F], F]:
    """Options that a command gets as one argument.

    Args:
        parameter: Name of the argument.
        make: Makes it; takes the value of each option under the name of its parameter.
        options: In the order in which the help shows them.
    """
    names = tuple(inspect.signature(make).parameters)

    def wrapped(command: F) -> F:
        @wraps(command)
        def with_one(**given: object) -> object:
            made = make(**{name: given.pop(name) for name in names})
            return command(**given, **{parameter: made})

        return together(*options)(cast("F", with_one))

    return wrapped


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options, in the order in which the help shows them."""

    def wrapped(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return wrapped


# ---- machines ----------------------------------------------------------------------------------


machine = click.option(
    "--machine",
    default=DEFAULT,
    show_default=True,
    metavar="PRESET|FILE",
    shell_complete=completions.machine,
    help="A preset (`graven list machines`), or a TOML file: FOLDER/NAME or NAME.toml.",
)
"""`--machine`."""


clock = click.option(
    "--clock",
    metavar="FREQUENCY",
    help="The clock of the cycles of a request trace, as 1200MHz or '1.2 GHz'.  "
    "[default: the core's]",
)
"""`--clock`."""


def _level_counts(text: str) -> tuple[int, ...]:
    """Reads `1,2,4`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"`{text}` is not a list of numbers separated by commas as in 1,2,4")
    return tuple(map(int, parts))


levels = click.option(
    "--levels",
    metavar="COUNTS",
    type=Read("levels", _level_counts),
    help="Numbers of channels, ranks and so on, down to columns of 64 B each, of a request trace "
    "whose addresses are vectors (Ramulator 2), as 1,2,4,4,65536,128.",
)
"""`--levels`."""


relative = click.option(
    "--relative",
    is_flag=True,
    help="Cycles of a request trace of DRAMSys count from the request before, as in .rstl.",
)
"""`--relative`."""


def optional_machine(default: str) -> Callable[[F], F]:
    """`--machine`, where another one than the usual is meant if it is not given."""
    return click.option(
        "--machine",
        metavar="PRESET|FILE",
        shell_complete=completions.machine,
        help="A preset (`graven list machines`), or a TOML file: anything with a folder in it or "
        f"ending in .toml.  [default: {default}]",
    )


# ---- captured programs -------------------------------------------------------------------------


def persistent_memory(command: F) -> F:
    """`--pm-file`, `--pm-heap`, `--pm-range`: the program's persistent memory."""
    for one in reversed(_PERSISTENT):
        command = one(command)
    return command


_PERSISTENT: tuple[Callable[[F], F], ...] = (
    click.option(
        "--pm-file",
        "pm_files",
        multiple=True,
        metavar="PATTERN",
        help="Shared mappings of files whose paths fit are persistent memory: */NAME, /dev/shm/*.",
    ),
    click.option(
        "--pm-heap",
        is_flag=True,
        help="Memory that malloc gives is persistent: memory before the break, anonymous mappings.",
    ),
    click.option(
        "--pm-range",
        "pm_ranges",
        multiple=True,
        metavar="VARIABLE|ADDRESS:BYTES",
        help="A variable of the program or a library, or a range of addresses, is persistent "
        "memory.",
    ),
)


def _transactions(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Transactions, ...]:
    # Most commands capture nothing.
    from graven.capture import Transactions

    return tuple(map(Transactions.parse, texts))


functions = click.option(
    "--tx",
    "transactions",
    multiple=True,
    metavar="BEGIN:COMMIT[:ABORT]|FUNCTION",
    callback=_transactions,
    help="Functions: a transaction begins at the entry of the first, and ends at the return of "
    "the others, or its own. Those within another are part of it.",
)
"""`--tx`."""


def verify_like(command: F) -> F:
    """`--verify-like`: the checker of a known store, in place of a command."""
    return click.option(
        "--verify-like",
        type=click.Choice(sorted(KNOWN_CHECKERS)),
        help="Check with the tool of a known store, in place of a command. "
        + "; ".join(f"{name}: {known.about}" for name, known in KNOWN_CHECKERS.items())
        + ".",
    )(command)


sysroot = click.option(
    "--sysroot",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Folder of the program's loader and libraries, if not /: those of a program for "
    "AArch64.  [default: QEMU_LD_PREFIX, or where the distribution has them]",
)
"""`--sysroot`."""


# ---- names -------------------------------------------------------------------------------------


def _single(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuses a list where one name is taken."""
    if value is not None and "," in value and not is_trace(value):
        raise click.UsageError(f"{parameter.opts[0]}: `{value}` is several; give one")
    return value


def _names(what: str, complete: completions.Complete, text: str) -> Callable[[F], F]:
    """An option for names, in the singular or the plural; the parameter has the plural."""
    return click.option(
        f"--{what}",
        f"--{what}s",
        f"{what}s",
        metavar="NAMES",
        shell_complete=complete,
        help=text,
        **several(lambda texts: ",".join(texts) or None),
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


def models(command: F) -> F:
    """`--model` or `--models`: several."""
    text = "Persistency models instead of those that a program names (`graven list models`)."
    return _names("model", completions.models, text)(command)


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

    def joined(given: tuple[str, ...], designs: str | None) -> str:
        both = [*given, *([] if designs is None else [designs])]
        if not both:
            raise click.UsageError(f"Missing argument '{metavar}'.")
        return ",".join(both)

    argument: Callable[[F], F] = click.argument(
        "given", metavar=metavar, nargs=-1, shell_complete=completions.designs
    )
    option: Callable[[F], F] = _names("design", completions.designs, "The same, as an option.")
    return as_one("designs", joined, argument, option)


def design_argument(command: F) -> F:
    """A design as the argument, or as `--design`."""

    def one(given: str | None, design: str | None) -> str:
        both = {name for name in (given, design) if name is not None}
        if len(both) != 1:
            raise click.UsageError("DESIGN: give one design, as the argument or as --design")
        return both.pop()

    argument: Callable[[F], F] = click.argument(
        "given", metavar="DESIGN", required=False, shell_complete=completions.design
    )
    option: Callable[[F], F] = design("The same, as an option.", required=False)
    return as_one("design", one, argument, option)(command)


def sound(designs: str) -> list[str]:
    """Designs by name; `all` stands for every sound one."""
    from graven.api.options import sound_designs, split_names

    named = split_names(designs)
    return list(dict.fromkeys(n for d in named for n in (sound_designs() if d == "all" else [d])))


def names_none(designs: str) -> bool:
    """Tells whether designs are not named one by one: `all`."""
    from graven.api.options import split_names

    return set(split_names(designs)) == {"all"}


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


def check_baseline(baseline: str | None, designs: Sequence[str]) -> None:
    """Refuses a baseline that is not among the designs compared."""
    if baseline is not None and baseline not in designs:
        compared = ", ".join(designs)
        raise click.UsageError(
            f"--baseline: `{baseline}` is not among the designs compared: {compared}"
        )


# ---- configuration -----------------------------------------------------------------------------


settings = click.option(
    "--set",
    "settings",
    metavar="SECTION.KEY=VALUE",
    shell_complete=completions.key,
    help="Change a configuration value (`graven list parameters`); repeatable.",
    **several(
        lambda texts: dict(pairs("--set", texts, "SECTION.KEY=VALUE, as in pm.write_ns=300"))
    ),
)
"""`--set`."""


variants = click.option(
    OPTION,
    "variants",
    metavar="NAME=DESIGN[,SECTION.KEY=VALUE...]",
    shell_complete=completions.design,
    help="Add a design with settings of its own, under NAME; repeatable.",
    **several(all_parsed),
)
"""`--design-as`."""


def _varied(texts: Sequence[str]) -> dict[str, list[str]] | None:
    form = "SECTION.KEY=V1,V2, as in pm.write_ns=150,300"
    found: dict[str, list[str]] = {}
    for text, (key, given) in zip(texts, pairs("--vary", texts, form), strict=True):
        values = [value.strip() for value in given.split(",")]
        if not all(values):
            raise click.UsageError(f"--vary: `{text}` is not of the form {form}")
        if key in found:
            raise click.UsageError(
                f"--vary: `{key}` is given twice; its values go in one list, "
                f"{key}={','.join(found[key] + values)}"
            )
        found[key] = values
    return found or None


vary = click.option(
    "--vary",
    metavar="SECTION.KEY=V1,V2[,...]",
    shell_complete=completions.key,
    help="Compare several values of a configuration key; may be repeated, and then all "
    "combinations are compared.  [default: the machine's]",
    **several(_varied),
)
"""`--vary`."""


recovery = number(
    "--recovery",
    "Power fails N times, evenly spaced over a run; the recovery after each is timed on "
    "the machine (recovery_ms and others). It doubles the time that a run takes here. "
    "recovery.at_cycle and recovery.at_percent, with --set, place a single failure.",
    most=RECOVERIES_MAX,
)
"""`--recovery`."""


from_start = click.option(
    "--from-start",
    is_flag=True,
    help="Measure whole runs, from empty caches on. Otherwise a region in steady state of each "
    "is measured: transactions without time fill the caches, a warm-up follows, and then "
    "windows until throughput, media writes, latency and write energy are known within 5 % "
    "(keys region.*).",
)
"""`--from-start`."""


# ---- sizes -------------------------------------------------------------------------------------


def transactions(
    default: str = "10000", *, what: str = "Transactions of one simulation"
) -> Callable[[F], F]:
    """`--transactions`."""
    return number("--transactions", f"{what}, over all its threads.  [default: {default}]")


threads = number("--threads", "Program threads.  [default: one per core]")
"""`--threads`, one number."""


def _thread_counts(text: str) -> tuple[int, ...]:
    """Reads `1,2,4,8`."""
    parts = [part.strip() for part in text.split(",")]
    counts = tuple(dict.fromkeys(int(part) for part in parts if part.isdecimal()))
    if not all(part.isdecimal() for part in parts) or min(counts) < 1:
        raise ValueError(
            f"`{text}` is not a number of threads, or several separated by commas as in 1,2,4,8"
        )
    return counts


def _seeds(text: str) -> tuple[int, ...]:
    """Reads `3`, which is 1,2,3, or `4,7,9`."""
    parts = [part.strip() for part in text.split(",")]
    numbers = [int(part) for part in parts if part.isdecimal()]
    if len(numbers) == len(parts) == 1 and 1 <= numbers[0] <= SEEDS_MAX:
        return tuple(range(1, numbers[0] + 1))
    if len(numbers) < len(parts) or len(parts) == 1 or max(numbers) > SEED_MAX:
        raise ValueError(
            f"`{text}` is neither a number of seeds from 1 to {SEEDS_MAX} nor several seeds "
            f"from 0 to {SEED_MAX} separated by commas, as in 1,2,3"
        )
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"`{text}` has a seed twice")
    return tuple(numbers)


seed = number("--seed", "Seed of everything random.", least=0, most=SEED_MAX, default=1)
"""`--seed`."""


seeds = click.option(
    "--seeds",
    type=Read("seeds", _seeds),
    metavar="N|N,N...",
    help="N seeds from 1 on, or several seeds: every number is a mean over them, with half of "
    "its 95 % confidence interval; ratios are paired by seed.",
)
"""`--seeds`, beside `--seed`."""


# ---- simulations -------------------------------------------------------------------------------


def _job(
    design: str,
    workload: str,
    machine: str,
    threads: int | None,
    transactions: int | None,
    seed: int,
    settings: Mapping[str, str],
) -> Job:
    where = Machine.find(machine)
    return Job(design, workload, where, threads, transactions, seed, tuple(settings.items()))


one_run = as_one(
    "job",
    _job,
    design("See `graven list designs`."),
    workload("See `graven list workloads`; or a trace (.gvt)."),
    machine,
    threads,
    transactions(),
    seed,
    settings,
)
"""One simulation as a `job`: design, workload, machine, size, seed and settings."""


@dataclass(frozen=True)
class Comparing:
    """Options of a comparison, as they were given."""

    designs: str | None
    workloads: str | None
    machine: str
    threads: tuple[int, ...] | None
    transactions: int | None
    seed: int
    seeds: tuple[int, ...] | None
    settings: dict[str, str]
    vary: dict[str, list[str]] | None
    variants: dict[str, Variant]
    from_start: bool

    def plan(self, *, recovery: int | None = None, metrics: str | None = None) -> Plan:
        """Decides what is compared, and how it is measured.

        Raises:
            ConfigError: something is refused.
        """
        from graven.api.plans import Plan

        return Plan.of(
            self.designs,
            self.workloads,
            Machine.find(self.machine),
            self.settings,
            self.vary,
            threads=self.threads,
            transactions=self.transactions,
            metrics=metrics,
            variants=self.variants,
            from_start=self.from_start,
            recovery=recovery,
        )

    def all_seeds(self) -> tuple[int, ...]:
        """Reads `--seed` and `--seeds` together.

        Raises:
            UsageError: both are given.
        """
        if self.seeds is not None and self.seed != 1:
            raise click.UsageError("--seed and --seeds exclude each other")
        return self.seeds or (self.seed,)


def comparing(*, designs_: str, workloads_: str, threads_: str, size: str) -> Callable[[F], F]:
    """A comparison as `asked`; the arguments are what the help says of defaults."""
    return as_one(
        "asked",
        Comparing,
        designs(designs_),
        workloads(workloads_),
        machine,
        click.option(
            "--threads",
            type=Read("threads", _thread_counts),
            metavar="N[,N...]",
            help="Program threads; several counts are compared with each other.  "
            f"[default: {threads_}]",
        ),
        transactions(
            f"{size}; 10000 of whole runs", what="Transactions that are measured of one simulation"
        ),
        seed,
        seeds,
        settings,
        vary,
        variants,
        from_start,
    )


# ---- the laboratory ----------------------------------------------------------------------------


mutant = click.option(
    "--mutant",
    metavar="NAME",
    help="Give one design a fault (`graven list mutants`), which must be found.",
)
"""`--mutant`."""


def violations(what: str) -> Callable[[F], F]:
    """`--violations`."""
    text = f"Stop {what} after N violations."
    return number("--violations", text, most=VIOLATIONS_MAX, default=1)


def minimise(default: int) -> Callable[[F], F]:
    """`--minimise`; `default` is what the engine takes if it is not given."""
    text = (
        "Minimise the program of a violation in N runs at most; with 0, leave it as it was found."
    )
    return number("--minimise", f"{text}  [default: {default}]", least=0, most=MINIMISE_MAX)


def replay(of: str) -> Callable[[F], F]:
    """`--replay`."""
    return written(
        "--replay",
        f"File for the program that replays the first violation, of {of}.  "
        "[default: in graven-results]",
    )


def _schedules(schedules: int, first_seed: int, draws: tuple[tuple[str, int], ...]) -> Schedules:
    from graven.laboratory.adversary import Schedules

    return Schedules(schedules, first_seed, draws)


def schedules(what: str, default: int) -> Callable[[F], F]:
    """`--schedules`, `--first-seed` and `--draw`, as `schedules`."""
    first_seed: Callable[[F], F] = number(
        "--first-seed", "Seed of the first.", least=0, most=FIRST_SEED_MAX, default=1
    )
    draws: Callable[[F], F] = click.option(
        "--draw",
        "draws",
        metavar="NAME=NUMBER",
        help="Change a bound of what is drawn (`graven list draws`); repeatable.",
        **several(_draws),
    )
    text = f"Schedules of the adversary for {what}."
    return as_one(
        "schedules",
        _schedules,
        number("--schedules", text, most=SCHEDULES_MAX, default=default),
        first_seed,
        draws,
    )


def _draws(texts: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Reads `NAME=NUMBER`, each name once; the engine knows which there are."""
    form = "NAME=NUMBER, as in threads=8"
    found: dict[str, int] = {}
    for text, (name, value) in zip(texts, pairs("--draw", texts, form), strict=True):
        if not value.isdecimal():
            raise click.UsageError(f"--draw: `{text}` is not of the form {form}")
        found[name] = int(value)
    return tuple(found.items())


# ---- papers ------------------------------------------------------------------------------------


reproduction = together(
    click.option(
        "--quick",
        is_flag=True,
        help="Smaller sizes and one seed: minutes instead of an hour or two.",
    ),
    click.option("--stored", is_flag=True, help="Run nothing: show what is stored."),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=REPRODUCED,
        show_default=True,
        metavar="FOLDER",
        help="Folder for results and reports.",
    ),
)
"""`--quick`, `--stored` and `--out`: sizes, whether to run, and where results are kept."""


def readings(*modes: str) -> Callable[[F], F]:
    """`--reading` or `--readings`: names of readings, and `modes` that stand for several."""
    groups = f"{', '.join(modes)} (as their methodology describes), or names: " if modes else ""
    default = f"  [default: {modes[0]}]" if modes else ""
    return click.option(
        "--reading",
        "--readings",
        "named",
        metavar="NAMES",
        help=f"Readings of the papers' texts to try beside the default ones: {groups}those with "
        "real programs are tried so alone, on traces that are captured when they are missing and "
        f"kept in FOLDER/captures.{default}",
        **several(_split),
    )


def _split(texts: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in texts for name in text.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


# ---- output, the store, executors --------------------------------------------------------------


def form(*forms: str, text: str = "Format of standard output.") -> Callable[[F], F]:
    """`--format` as the parameter `form`; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text
    )


def statistics(command: F) -> F:
    """`--format` and `--all`: what is printed of the statistics of one run."""
    every = click.option(
        "--all",
        "every",
        is_flag=True,
        help="Every statistic in the table: also those that are zero, and those of single cores "
        "and banks.",
    )
    return form("table", "json", "csv")(every(command))


store = click.option(
    "--store",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STORE,
    envvar=STORE_VARIABLE,
    show_default=True,
    metavar="FOLDER",
    help=f"Folder where results are kept and found ({STORE_VARIABLE}).",
)
"""`--store`."""


@dataclass(frozen=True)
class Keeping:
    """The store that results are kept in, if in any, and whether those in it are used."""

    folder: Path
    no_store: bool
    fresh: bool

    def keeper(self, results: int) -> Keeper | None:
        """Finds results in the store, and keeps new ones, `results` at most; or does neither.

        Raises:
            Refusal: results cannot be kept there.
            StoreError: the folder is not a store.
        """
        from graven.cli.storing import keeper

        return None if self.no_store else keeper(self.folder, fresh=self.fresh, results=results)


keeping = as_one(
    "keeping",
    Keeping,
    store,
    click.option("--no-store", is_flag=True, help="Neither look for results nor keep any."),
    click.option("--fresh", is_flag=True, help="Run again what has a result there, too."),
)
"""`--store`, `--no-store` and `--fresh`, as `keeping`."""


def executor_of(on: str, jobs: int | None) -> Executor:
    """Reads `--on` and `--jobs`.

    Raises:
        ConfigError: one is not allowed.
    """
    from graven.executors.named import executor

    return executor(on, jobs)


def jobs(what: str) -> Callable[[F], F]:
    """`--jobs`."""
    return number("--jobs", f"{what} at a time.  [default: one per host core]")


def executor(what: str) -> Callable[[F], F]:
    """`--on` and `--jobs`, as `executor`."""
    on: Callable[[F], F] = click.option(
        "--on",
        default="local",
        show_default=True,
        metavar="EXECUTOR",
        help="Executor of simulations: local, local:N (N at a time), dask://HOST:PORT, slurm "
        "(heeds SBATCH_PARTITION and the like).",
    )
    return as_one("executor", executor_of, on, jobs(what))
