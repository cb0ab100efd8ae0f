"""The crash laboratory from Python: campaigns, the adversary, litmus programs."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

from graven._engine import Cancelled, ConfigError
from graven.api.options import (
    Folder,
    Names,
    checked_job,
    design_names,
    keeper_of,
    observer,
    setting_texts,
    split_names,
    workload_text,
)
from graven.basics import arguments
from graven.engine.machine import DEFAULT
from graven.running.pool import Observer, failures_text, kind_of
from graven.running.work import How, Local

if TYPE_CHECKING:
    from graven.laboratory.crashes import CampaignResult, Shares
    from graven.laboratory.reports import AdversaryReport, CrashReport, LitmusReport

R = TypeVar("R")


@arguments.in_python
def crash(
    design: str,
    workload: str,
    *,
    machine: str | PathLike[str] = DEFAULT,
    threads: int | None = None,
    transactions: int | None = None,
    seed: int = 1,
    mutant: str | None = None,
    every: int = 1,
    shares: Shares | None = None,
    lives: int | None = None,
    garbage: bool = False,
    violations: int = 1,
    verify: str | None = None,
    verify_like: str | None = None,
    verify_seconds: float | None = None,
    keep: str | PathLike[str] | None = None,
    at: int | None = None,
    minimise: int | None = None,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> CrashReport:
    """Runs one design on one workload, and lets power fail at every crash point.

    Args:
        design: Name of a design.
        workload: Name of a workload.
        machine: Name of a preset, or path of a TOML file; `cramped` is made for this.
        threads: Program threads; the machine's cores if not given.
        transactions: Transactions over all threads; 1,000 if not given.
        seed: Seed of everything random.
        mutant: A mutant of the design that is put in force.
        every: Power fails at every n-th crash point only.
        shares: How often the more expensive failure modes are checked.
        lives: Most times in a row that the workload begins again after a recovery, on what is left,
            and is crashed, too. One if not given, none with `verify`.
        garbage: Whether the log region holds noise at first.
        violations: Violations after which the run stops.
        verify: Of a captured program: a command that checks the recovered files, wherever
            structures are walked (`shares`); `{image}` is the first file, `{folder}` where all are.
            It must pass on the files with which the trace begins, and on those after a run in which
            power does not fail.
        verify_like: In place of `verify`: a known store, whose own tool checks the files: `lmdb`,
            `sqlite`, `tdb` and others of `graven crash --help`.
        verify_seconds: How long it may take on the files of one power failure; 60 if not given.
        keep: The folder where the files are kept of the first violation that it finds.
        at: Power fails at this crash point only, and only plainly.
        minimise: Most runs in which the program of the first violation is minimised; with 0, it
            stays as it was found. 4,000 if not given.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: True to run even if the store has the result.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: the engine failed. A design that breaks its guarantee is in the report.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        The text of FWB's paper, taken literally, loses data. The machine has caches that are so
        small that much happens:

        >>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
        >>> report
        <CrashReport: fwb-literal on queue, machine cramped: violated, 2 power failures>
        >>> report.violations[0].what
        'word 0x1000 holds 0x0, committed is 0xa5100, and no open transaction wrote it'

        The design with the missing rule keeps what it guarantees at all crash points:

        >>> report = graven.crash("fwb", "queue", machine="cramped", transactions=100)
        >>> report.verdict, report.crash_points
        ('kept', 848)

        A mutant, which is a design with one rule broken, shows that a run would notice:

        >>> mutant = "commit-not-marked"
        >>> report = graven.crash("silo", "queue", machine="cramped", mutant=mutant)
        >>> report.verdict
        'violated'
    """
    from graven.laboratory.checker import lives_of, seconds_of
    from graven.laboratory.crashes import CrashCampaign, CrashJob, Shares
    from graven.laboratory.known_checkers import command_of

    pairs = tuple(setting_texts(settings, overrides).items())
    job = checked_job(design, workload_text(workload), machine, threads, transactions, seed, pairs)
    if shares is not None and not isinstance(shares, Shares):
        raise ConfigError(f"shares: {shares!r} is not a graven.Shares")
    command = command_of(
        arguments.text_or_none("verify", verify),
        arguments.text_or_none("verify_like", verify_like),
    )
    seconds = None if verify_seconds is None else seconds_of(verify_seconds)
    shown_by = observer(observe)
    how = CrashJob(
        job,
        arguments.text_or_none("mutant", mutant),
        arguments.integer("every", every),
        shares or Shares(),
        lives_of(
            arguments.integer_or_none("lives", lives, 0, arguments.LIVES_MAX),
            command,
            CrashJob.lives,
        ),
        arguments.flag("garbage", garbage),
        arguments.integer("violations", violations, 1, arguments.VIOLATIONS_MAX),
        command,
        seconds,
        arguments.path_or_none("keep", keep),
        arguments.integer_or_none("at", at, 0),
        arguments.integer_or_none("minimise", minimise, 0, arguments.MINIMISE_MAX),
    )
    keeper = keeper_of(store, fresh=fresh)
    return _only(CrashCampaign.prepare([how]).run(How(keeper, Local(1), shown_by)))


@arguments.in_python
def adversary(
    design: str,
    *,
    schedules: int,
    first_seed: int = 1,
    mutant: str | None = None,
    violations: int = 1,
    minimise: int | None = None,
    draws: Mapping[str, int] | None = None,
    jobs: int | None = None,
    observe: Observer | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> AdversaryReport:
    """Runs schedules of the adversary on one design, and lets power fail everywhere in each.

    Args:
        design: Name of a design.
        schedules: The number of schedules.
        first_seed: Seed of the first; the others follow.
        mutant: A mutant of the design that is put in force.
        violations: Violations after which no more schedules are run.
        minimise: Most runs in which the program of a violation is minimised; with 0, it stays as it
            was drawn. 4,000 if not given.
        draws: Bounds of what is drawn, by name (`graven list draws`), where they are not the
            default.
        jobs: Host threads; the host's cores if not given. The report does not depend on it.
        observe: Called with the progress several times a second.
        settings: Configuration on top of what is drawn, by `SECTION.KEY`.
        **overrides: The same by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused; nothing has run.
        SimulationError: the engine failed. A design that breaks its guarantee is in the report.

    Examples:
        >>> report = graven.adversary("silo", schedules=5)
        >>> report
        <AdversaryReport: silo, 5 schedules: kept, 55,981 power failures>
        >>> report.verdict, report.next_seed
        ('kept', 6)

        Five more schedules, with two threads at most:

        >>> graven.adversary("silo", schedules=5, first_seed=6, draws={"threads": 2})
        <AdversaryReport: silo, 5 schedules: kept, 3,375 power failures>
    """
    from graven.laboratory.adversary import AdversaryCampaign, AdversaryRequest, Schedules

    pairs = tuple(setting_texts(settings, overrides).items())
    bounds = {
        name: arguments.integer(f"draws, {name}", bound, 0)
        for name, bound in arguments.mapping("draws", draws).items()
    }
    workers = arguments.integer_or_none("jobs", jobs)
    shown_by = observer(observe)
    asked = Schedules(
        arguments.integer("schedules", schedules, 1, arguments.SCHEDULES_MAX),
        arguments.integer("first_seed", first_seed, 0, arguments.FIRST_SEED_MAX),
        tuple(bounds.items()),
    )
    plan = AdversaryRequest(
        (arguments.text("design", design),),
        asked,
        arguments.text_or_none("mutant", mutant),
        pairs,
        arguments.integer("violations", violations, 1, arguments.VIOLATIONS_MAX),
        arguments.integer_or_none("minimise", minimise, 0, arguments.MINIMISE_MAX),
    )
    return _only(AdversaryCampaign.prepare(plan).run(workers=workers, observe=shown_by))


@arguments.in_python
def litmus(
    program: str | PathLike[str],
    design: Names = None,
    *,
    model: Names = None,
    observe: Observer | None = None,
    store: Folder = ...,
    fresh: bool = False,
) -> LitmusReport:
    """Runs a litmus program.

    Args:
        program: Path of a file; or the program itself, as a text of several lines; or the name of
            one that comes with Graven, `silo/undo-order` (`graven list litmus`).
        design: Names of designs, instead of those that the program names.
        model: Names of persistency models, instead of those that the program names.
        observe: Called with the progress several times a second.
        store: A folder where the result is kept, and found if it is asked for again; or nothing.
        fresh: True to run even if the store has the result.

    Raises:
        ConfigError: the program was refused; the message says where and why.
        SimulationError: the engine failed.
        OutputError: a result cannot be written.
        StoreError: `store` is not a folder for results.

    Examples:
        A program that comes with Graven, on the designs that it names:

        >>> report = graven.litmus("silo/undo-order")
        >>> [(result.design, result.verdict) for result in report.results]
        [('silo', 'kept'), ('silo-literal', 'violated')]
        >>> report.as_expected
        True

        A program of one's own: both words change, or neither, wherever power fails.

        >>> program = '''graven litmus 1
        ... title "two words change together"
        ... A = 1
        ... B = 1
        ... thread
        ...   begin
        ...   A = 2
        ...   B = 2
        ...   commit
        ... expect everywhere: A = 1, B = 1 | A = 2, B = 2
        ... '''
        >>> for result in graven.litmus(program, "silo,fwb").results:
        ...     print(result)
        <LitmusResult: silo: kept, 14 power failures>
        <LitmusResult: fwb: kept, 17 power failures>

        A program for persistency models, under two of them: is `x` durable before `y`?

        >>> program = '''graven litmus 1
        ... title "a write-back without a fence"
        ... model x86-adr
        ... x = 0
        ... y = 0
        ... thread
        ...   x = 1
        ...   clwb x
        ...   y = 1
        ... allows: y = 1, x = 0
        ... '''
        >>> for answer in graven.litmus(program, model="x86-adr,x86-eadr").answers:
        ...     print(answer.model, answer.answer)
        x86-adr allowed
        x86-eadr forbidden
    """
    from graven.laboratory.programs import Program, program_file, run_programs

    shown_by = observer(observe)
    if isinstance(program, str) and "\n" in program:
        found = Program("program", program)
    else:
        found = Program.read(program_file(arguments.path("program", program)))
    names = arguments.names("design", design)
    designs = [] if names is None else design_names(names)
    models = arguments.names("model", model)
    asked = found.asked(designs, [] if models is None else split_names(models))
    keep = keeper_of(store, fresh=fresh)
    return _only(run_programs([asked], How(keep, Local(1), shown_by)))


def _only(checked: CampaignResult[R]) -> R:
    if checked.interrupted:
        raise KeyboardInterrupt
    if checked.failures:
        raise kind_of(checked.failures)(failures_text(checked.failures))
    if not checked.reports:
        raise Cancelled("the campaign was cancelled")
    return checked.reports[0]
