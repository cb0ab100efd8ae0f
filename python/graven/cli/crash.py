"""`graven crash`: power fails everywhere, and the recovered bytes are checked."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from graven import _engine
from graven.api.options import design_names, sound_designs, workload_names
from graven.basics import output, signals
from graven.basics.arguments import LIVES_MAX, RECOVERY_DEPTH_MAX, SCHEDULES_MAX, VIOLATIONS_MAX
from graven.basics.errors import OutputError
from graven.basics.numbers import exact, scaled
from graven.cli import completions, options
from graven.cli.files import Writer, Written
from graven.cli.storing import InFile, State, UnderWay, keeper, say_found, watched
from graven.cli.terminal import (
    REFUSED,
    complain,
    note,
    refusing,
    results_console,
)
from graven.cli.verdicts import print_campaigns
from graven.engine.machine import Machine
from graven.engine.variants import Variant
from graven.laboratory.adversary import AdversaryCampaign, AdversaryRequest, Blocks
from graven.laboratory.crashes import TRANSACTIONS, CrashCampaign, CrashJob, Shares
from graven.laboratory.reports import Campaign
from graven.laboratory.state_file import StateFile
from graven.results.formats import json_text
from graven.running.job import matrix
from graven.running.pool import Failure, Observer, Snapshot, failures_text
from graven.running.work import Executor, Local
from graven.store.keeper import Keeper

RESULTS = Path("graven-results")
"""The folder of programs that replay violations."""

ROOM = 4 << 20
"""Room to ask for before a campaign, for a program or a state."""

VERIFY_EVERY = 64
"""Of so many plain power failures, one has its recovered files verified."""

SAVE_SECONDS = 5.0
"""How much work of a campaign with `--state` may be lost."""

HELP = """Let power fail at every crash point, recover from what survived, and check.

A crash point is a change of what a power failure leaves; between two of them every failure is the
same. Each design runs each workload once. At every crash point power fails, the design recovers,
the bytes are checked against the program's stores and acknowledgements, and the run goes on as if
power had not failed. More expensive failure modes are checked at a share of the crash points. The
first violation of a run is minimised to a short program, and written to a file that
`graven litmus` replays.

With --adversary programs, machines and the order of things in memory are drawn, too, within what
is legal: no workload is run, but as many short programs as --seeds says.

\b
Examples:
  graven crash --design silo --workload btree
  graven crash --design silo,fwb --workload micro --machine cramped
  graven crash --design silo --workload hash --mutant no-tuple
  graven crash --design-as small=silo,silo.log_buffer_entries=2 --workload hash
  graven crash --workload db.gvt --design silo --verify 'mdb_stat -n {image}'
  graven crash --adversary --seeds 10000
  graven crash --adversary --seeds 1000000 --state graven-results/soak.json
  graven crash --adversary --design silo --draw transactions=500 --draw varied=0

The machine `cramped` has tiny caches and queues, so that more is under way when power fails.

The exit code is 0 if every guarantee was kept (or was not expected to be), 1 if a design that
claims safety violated its guarantee or a mutant survived, 2 for refused input, also by a design
during its run, 130 for an interrupt.
"""

RUN_ONLY = (
    "workloads", "machine", "threads", "transactions", "seed", "sample", "failure_modes",
    "recovery_depth", "lives", "garbage", "verify", "variants",
)  # fmt: skip
ADVERSARY_ONLY = ("seeds", "first_seed", "draws", "state")


class Forms(click.ParamType[dict[str, int]]):
    """Failure modes, each with its share."""

    name = "failure modes"
    shares = Shares()
    known: Mapping[str, int] = {
        "torn": shares.torn,
        "in-flight": shares.in_flight,
        "recovery": shares.recovery,
        "structures": shares.structures,
    }

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> dict[str, int]:
        """Reads `torn,recovery=16`, `all` or `none`; modes that are not named are not checked."""
        if isinstance(value, dict):
            return value
        if value in ("all", "none"):
            return dict(self.known) if value == "all" else {}
        found: dict[str, int] = {}
        for text in str(value).split(","):
            name, equals, share = (part.strip() for part in text.partition("="))
            if name not in self.known or (equals and not (share.isdecimal() and int(share) > 0)):
                self.fail(
                    f"`{text.strip()}` is no failure mode; allowed are {', '.join(self.known)}, "
                    "each alone or with its share as in recovery=16, or all, or none",
                    param,
                    ctx,
                )
            found[name] = int(share) if equals else self.known[name]
        return found


@click.command(cls=Writer, help=HELP)
@click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="NAMES",
    shell_complete=completions.designs,
    help="Designs, separated by commas, or `all`; may be repeated.  [default: every sound one]",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="NAMES",
    shell_complete=completions.workloads,
    help="Workloads or groups (micro, macro, all), or program traces (.gvt), as --design.  "
    "[default: micro]",
)
@options.machine
@options.threads
@click.option(
    "--transactions",
    type=click.IntRange(min=1),
    default=TRANSACTIONS,
    show_default=True,
    metavar="N",
    help="Transactions of one run, over all its threads.",
)
@options.seed
@options.settings
@options.variants
@click.option(
    "--mutant",
    metavar="NAME",
    help="Make one design worse at one point (`graven list mutants`): it must be killed.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Let power fail at every N-th crash point only.",
)
@click.option(
    "--failure-modes",
    type=Forms(),
    default=dict(Forms.known),
    metavar="NAMES",
    help="Failure modes checked besides plain: torn, in-flight, recovery, structures, each with "
    "=N for every N-th crash point; or none.  [default: "
    + ",".join(f"{name}={share}" for name, share in Forms.known.items())
    + "]",
)
@click.option(
    "--verify",
    metavar="COMMAND",
    help="Of a captured program: run COMMAND on the recovered files, where structures are walked "
    f"(every {VERIFY_EVERY} plain failures, if --failure-modes says nothing); {{image}} is the "
    "first file, {folder} where all are. An exit code other than 0 is a violation.",
)
@click.option(
    "--recovery-depth",
    type=click.IntRange(1, RECOVERY_DEPTH_MAX),
    default=Shares.recovery_depth,
    show_default=True,
    metavar="N",
    help="How often in a row power fails in recovery.",
)
@click.option(
    "--lives",
    type=click.IntRange(0, LIVES_MAX),
    default=CrashJob.lives,
    show_default=True,
    metavar="N",
    help="After some recoveries the workload begins again on what is there, with an eighth of the "
    "transactions, and is crashed, too; so many times in a row at most.",
)
@click.option(
    "--garbage/--no-garbage",
    default=False,
    show_default=True,
    help="Whether the log region holds noise at first.",
)
@click.option(
    "--violations",
    type=click.IntRange(1, VIOLATIONS_MAX),
    default=1,
    show_default=True,
    metavar="N",
    help="Stop a run, or a design's schedules, after so many.",
)
@click.option("--adversary", is_flag=True, help="Draw programs, machines and schedules.")
@click.option(
    "--seeds",
    type=click.IntRange(1, SCHEDULES_MAX),
    default=1000,
    show_default=True,
    metavar="N",
    help="With --adversary: schedules for each design.",
)
@options.first_seed("With --adversary")
@options.draws("With --adversary")
@click.option(
    "--state",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="With --adversary: keep what is done there, and go on from it.",
)
@click.option(
    "--replay",
    type=Written(dir_okay=False),
    metavar="FILE",
    help="Where the minimised program of the first violation goes; for one design and workload.  "
    f"[default: {RESULTS}/DESIGN-WORKLOAD.litmus]",
)
@options.on
@options.keeping
@options.jobs("Runs, or chunks of schedules,")
@options.form("table", "json")
@click.pass_context
def crash(
    context: click.Context,
    designs: tuple[str, ...],
    workloads: tuple[str, ...],
    machine: str,
    threads: int | None,
    transactions: int,
    seed: int,
    settings: dict[str, str],
    variants: dict[str, Variant],
    mutant: str | None,
    sample: int,
    failure_modes: dict[str, int],
    verify: str | None,
    recovery_depth: int,
    lives: int,
    garbage: bool,
    violations: int,
    adversary: bool,
    seeds: int,
    first_seed: int,
    draws: tuple[tuple[str, int], ...],
    state: Path | None,
    replay: Path | None,
    on: str,
    folder: Path,
    no_store: bool,
    fresh: bool,
    jobs: int | None,
    form: str,
) -> int:
    """Checks everything, runs, writes, prints."""
    _check_options(context, adversary=adversary)
    executor = options.executor_of(on, jobs)
    if state is not None and not isinstance(executor, Local):
        raise click.UsageError(f"--state: not with --on {on}, which goes on from the store")
    names = [] if variants else sound_designs()
    if designs:
        names = design_names(designs)
    names += [name for name in variants if name not in names]
    if mutant is not None and len(names) != 1:
        raise click.UsageError(f"--mutant {mutant} is of one design; --design names it")
    task: _Task
    if adversary:
        plan = AdversaryRequest(
            tuple(names), seeds, first_seed, mutant, tuple(settings.items()), violations, draws
        )
        campaigns = len(names)
        keep = keeper(folder, no_store=no_store or state is not None, fresh=fresh, results=0)
        if isinstance(executor, Local):
            kept = None if state is None else InFile(StateFile(state), ROOM)
            task = _Schedules.prepare(plan, kept if keep is None else UnderWay(keep, plan))
        else:
            task = _Blocks(Blocks.of(plan), keep)
    else:
        runs = matrix(
            names,
            workload_names(workloads or None),
            Machine.find(machine),
            threads=(threads,),
            transactions=transactions,
            seed=seed,
            settings=settings,
            variants=variants,
        )
        is_default = context.get_parameter_source("failure_modes") is ParameterSource.DEFAULT
        if verify is not None and is_default:
            failure_modes = {**failure_modes, "structures": VERIFY_EVERY}
        shares = Shares(
            failure_modes.get("torn", 0),
            failure_modes.get("in-flight", 0),
            failure_modes.get("recovery", 0),
            recovery_depth,
            failure_modes.get("structures", 0),
        )
        campaigns = len(runs)
        campaign = CrashCampaign.prepare(
            [
                CrashJob(run, mutant, sample, shares, lives, garbage, violations, verify)
                for run in runs
            ]
        )
        keep = keeper(folder, no_store=no_store, fresh=fresh, results=len(runs))
        task = _Runs(campaign, keep)
    if replay is not None:
        if campaigns != 1:
            raise click.UsageError(
                "--replay is for one design and one workload; without it, every violated one "
                f"has a file of its own in {RESULTS}"
            )
        with refusing("--replay: "):
            output.check([replay], ROOM)
    started = time.monotonic()
    with watched(keep, task.noun) as display:
        done = task.run(executor, display)
    seconds = time.monotonic() - started
    try:
        replays = _write(done.reports, replay)
    except OutputError:
        _print(done.reports, {}, form)
        raise
    _print(done.reports, replays, form)
    if done.checked:
        note(
            f"{exact(done.checked)} power failures in {seconds:.2f} s of host time: "
            f"{scaled(done.checked / seconds)}/s"
        )
    return _status(done, mutant)


def _check_options(context: click.Context, *, adversary: bool) -> None:
    """Options of the one kind of campaign are refused in the other."""
    wrong = RUN_ONLY if adversary else ADVERSARY_ONLY
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "")
        if parameter.name in wrong and given is ParameterSource.COMMANDLINE:
            option = parameter.opts[0]
            if adversary:
                raise click.UsageError(
                    f"{option} does not go with --adversary, which draws programs and machines"
                )
            raise click.UsageError(f"{option} needs --adversary")


@dataclass(frozen=True)
class _Done:
    """The result of a campaign; `checked` are the power failures of this run of the command."""

    reports: Sequence[Campaign]
    failures: Sequence[Failure]
    checked: int
    interruption: str | None


def _workers(executor: Executor) -> int | None:
    """How many at a time on this host."""
    return executor.workers if isinstance(executor, Local) else None


class _Task:
    """One of the two kinds of campaign."""

    noun: str

    def run(self, executor: Executor, display: Observer) -> _Done:
        """Runs it."""
        raise NotImplementedError


@dataclass
class _Runs(_Task):
    campaign: CrashCampaign
    keep: Keeper | None
    noun: str = "runs"

    def run(self, executor: Executor, display: Observer) -> _Done:
        total = len(self.campaign.jobs)
        checked = self.campaign.run(keep=self.keep, executor=executor, observe=display)
        say_found(checked.found, total)
        interruption = None
        if checked.interrupted:
            done = f"{len(checked.reports)} of {total} runs had finished"
            interruption = f"{signals.words()}: {done}"
            if self.keep is not None:
                interruption += "; the same command goes on"
        count = sum(campaign.checked() for campaign in self.campaign.campaigns)
        return _Done(checked.reports, checked.failures, count, interruption)


@dataclass
class _Blocks(_Task):
    """Schedules that are run on other hosts."""

    blocks: Blocks
    keep: Keeper | None
    noun: str = "blocks of schedules"

    def run(self, executor: Executor, display: Observer) -> _Done:
        total = len(self.blocks.plan.designs) * len(self.blocks.blocks)
        checked = self.blocks.run(keep=self.keep, executor=executor, observe=display)
        say_found(checked.found, total)
        interruption = None
        if checked.interrupted:
            interruption = signals.words()
            if self.keep is not None:
                interruption += "; the same command goes on"
        return _Done(checked.reports, checked.failures, 0, interruption)


@dataclass
class _Schedules(_Task):
    campaign: AdversaryCampaign
    state: State | None
    before: int
    noun: str = "schedules"
    _saved: float = field(default_factory=time.monotonic)
    _saved_growth: int = 0
    _warned: bool = False

    @staticmethod
    def prepare(plan: AdversaryRequest, state: State | None) -> _Schedules:
        """Checks the plan, and reads the state if there is one."""
        campaign = AdversaryCampaign.prepare(plan)
        text = None if state is None else state.read()
        if state is None or text is None:
            return _Schedules(campaign, state, 0)
        try:
            campaign = AdversaryCampaign.prepare(plan, text)
        except _engine.ConfigError as error:
            state.refused(error)
            return _Schedules(campaign, state, 0)
        done, total = exact(campaign.schedules), exact(campaign.total)
        note(f"{state.where}: {done} of {total} schedules were done")
        return _Schedules(campaign, state, _judged(campaign))

    def run(self, executor: Executor, display: Observer) -> _Done:
        def observe(snapshot: Snapshot) -> None:
            display(snapshot)
            has_grown = self.campaign.growth > self._saved_growth
            if has_grown and time.monotonic() - self._saved >= SAVE_SECONDS:
                self._save_or_warn()

        checked = self.campaign.run(workers=_workers(executor), observe=observe)
        interruption = None
        if checked.interrupted:
            done, total = exact(self.campaign.schedules), exact(self.campaign.total)
            interruption = f"{signals.words()}: {done} of {total} schedules were done"
            if self.state is not None:
                interruption += "; the same command goes on from there"
        if self.state is not None:
            self._save()
        count = _judged(self.campaign) - self.before
        return _Done(checked.reports, checked.failures, count, interruption)

    def _save(self) -> None:
        growth = self.campaign.growth
        if self.state is not None:
            self.state.write(self.campaign.state())
        self._saved_growth = growth

    def _save_or_warn(self) -> None:
        """Saves; a disk that is full for a while does not end a campaign of hours."""
        self._saved = time.monotonic()
        try:
            self._save()
            self._warned = False
        except OutputError as error:
            if not self._warned:
                note(f"{error}; the campaign goes on, and tries again")
            self._warned = True


def _judged(campaign: AdversaryCampaign) -> int:
    return sum(report.recoveries for report in campaign.reports)


def _write(reports: Sequence[Campaign], replay: Path | None) -> dict[int, Path]:
    """Writes the program of each report's first violation; the files by the report's number."""
    written: dict[int, Path] = {}
    for number, report in enumerate(reports):
        text = report.violations[0].replay if report.violations else None
        if text is None:
            continue
        path = RESULTS / f"{report.name}.litmus" if replay is None else replay
        output.check([path], len(text), make=RESULTS)
        output.write(path, text.encode())
        written[number] = path
    return written


def _print(reports: Sequence[Campaign], replays: Mapping[int, Path], form: str) -> None:
    if form == "json":
        sys.stdout.write(json_text([report.to_dict() for report in reports]))
    else:
        print_campaigns(results_console(), reports, replays)
    sys.stdout.flush()


def _status(done: _Done, mutant: str | None) -> int:
    for failure in done.failures:
        complain(failures_text([failure]))
    if done.interruption is not None:
        note(done.interruption)
        return 130
    violated = [report for report in done.reports if report.violations]
    missed = mutant is not None and not violated
    if done.failures or missed or any(report.claims_safety for report in violated):
        return 1
    return REFUSED if any(report.verdict == "refused" for report in done.reports) else 0
