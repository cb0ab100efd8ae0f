"""`graven crash`: power fails everywhere, and the recovered bytes are checked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from graven import _engine
from graven.api.options import workload_names
from graven.basics.arguments import LIVES_MAX, RECOVERY_DEPTH_MAX
from graven.basics.folders import RESULTS
from graven.cli import options
from graven.cli.campaigns import Done, Task, carry_out
from graven.cli.files import Writer
from graven.cli.storing import say_found
from graven.cli.terminal import note
from graven.engine.machine import Machine
from graven.engine.variants import Variant
from graven.laboratory import checker, known_checkers
from graven.laboratory.crashes import TRANSACTIONS, CrashCampaign, CrashJob, Shares
from graven.laboratory.reports import CrashReport
from graven.running.job import matrix
from graven.running.pool import Observer
from graven.running.work import Executor, How
from graven.store.keeper import Keeper

VERIFY_EVERY = 61
"""One of this many plain power failures has its recovered files verified. It is a prime: equal
transactions have equal numbers of crash points, and another number would always take the same."""

HELP = """Let power fail at every crash point of a run, recover from what survived, and check.

A crash point is a change of what a power failure leaves. At each one power fails, the design
recovers, the bytes are checked against the program's stores and acknowledgements, and the run
continues as if power had not failed. Standard error has each violation as soon as it is found; the
first is then minimised to a program that `graven litmus` replays, which may take minutes
(--minimise). `graven adversary` draws programs and schedules instead of running a workload. Where
no design is named, those for which the machine has no room are left out, and told.

\b
Examples:
  graven crash --design silo --workload btree
  graven crash --design silo,fwb --workload micro --machine cramped
  graven crash --design silo --workload hash --mutant commit-not-marked
  graven crash --design-as small=silo,silo.log_buffer_entries=2 --workload hash
  graven crash --workload kv.gvt --design silo --verify './kv check {image}'
  graven crash --workload db.gvt --design silo --verify-like lmdb

The exit code is 0 if every guarantee was kept (or was not expected to be), 1 if a design that
claims safety violated its own or a mutant survived, 2 for refused input, also by a design during
its run, 130 for an interrupt.
"""


MODES = {
    "torn": Shares.torn,
    "in-flight": Shares.in_flight,
    "recovery": Shares.recovery,
    "structures": Shares.structures,
}
"""Failure modes, each with its share by default."""


def _modes(text: str) -> dict[str, int]:
    """Reads `torn,recovery=16`, `all` or `none`; modes that are not named are not checked."""
    if text in ("all", "none"):
        return dict(MODES) if text == "all" else {}
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, share = (word.strip() for word in part.partition("="))
        if name not in MODES or (equals and not (share.isdecimal() and int(share) > 0)):
            raise ValueError(
                f"`{part.strip()}` is no failure mode; allowed are {', '.join(MODES)}, "
                "each alone or with its share as in recovery=16, or all, or none"
            )
        found[name] = int(share) if equals else MODES[name]
    return found


class Crash(Writer):
    """The command; it tells what was a part of it once where that is now."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuses `--adversary`, with the command that takes its place."""
        if "--adversary" in args:
            moved = {"--seeds": "--schedules"}
            rest = [moved.get(word, word) for word in args if word != "--adversary"]
            raise click.UsageError(
                f"--adversary is a command of its own: {shlex.join(['graven', 'adversary', *rest])}"
            )
        return super().parse_args(ctx, args)


@click.command(cls=Crash, help=HELP)
@options.designs("every sound one")
@options.workloads("micro")
@options.machine
@options.threads
@options.number(
    "--transactions", "Transactions of one run, over all its threads.", default=TRANSACTIONS
)
@options.seed
@options.settings
@options.variants
@options.mutant
@options.number("--sample", "Let power fail at every N-th crash point only.", default=1)
@click.option(
    "--failure-modes",
    type=options.Read("failure modes", _modes),
    metavar="NAMES",
    help="Besides plain ones, each at every N-th crash point (=N); or none.  "
    "[default: " + ",".join(f"{name}={share}" for name, share in MODES.items()) + "]",
)
@click.option(
    "--verify",
    metavar="COMMAND",
    help="Run COMMAND on the recovered files of a captured program; {image} is the first, "
    "{folder} has all. An exit code other than 0 is a violation. It runs where structures are "
    f"walked, by default at every {VERIFY_EVERY}st plain failure, and first on good files, which "
    "must pass.",
)
@options.verify_like
@click.option(
    "--verify-limit",
    type=click.FloatRange(0, checker.SECONDS_MAX, min_open=True),
    metavar="SECONDS",
    help="Limit of the time that such a check takes for one failure; one that takes longer "
    f"has found the files bad.  [default: {checker.SECONDS:g}]",
)
@options.number(
    "--at",
    "Let power fail at this crash point only, and only plainly: that of a violation.",
    least=0,
    metavar="POINT",
)
@options.number(
    "--recovery-depth",
    "Power failures in a row during recovery, at most.",
    most=RECOVERY_DEPTH_MAX,
    default=Shares.recovery_depth,
)
@options.number(
    "--lives",
    "Begin the workload again after some recoveries, N times in a row at most.  "
    f"[default: {CrashJob.lives}; with --verify 0]",
    least=0,
    most=LIVES_MAX,
)
@click.option(
    "--garbage/--no-garbage",
    default=False,
    show_default=True,
    help="Begin with noise in the log region.",
)
@options.violations("a run")
@options.minimise(_engine.MINIMISING_RUNS)
@options.replay("one design and workload")
@options.executor("Runs")
@options.keeping
@options.form("table", "json")
def crash(
    designs: str | None,
    workloads: str | None,
    machine: str,
    threads: int | None,
    transactions: int,
    seed: int,
    settings: dict[str, str],
    variants: dict[str, Variant],
    mutant: str | None,
    sample: int,
    failure_modes: dict[str, int] | None,
    verify: str | None,
    verify_like: str | None,
    verify_limit: float | None,
    at: int | None,
    recovery_depth: int,
    lives: int | None,
    garbage: bool,
    violations: int,
    minimise: int | None,
    replay: Path | None,
    executor: Executor,
    keeping: options.Keeping,
    form: str,
) -> int:
    """Checks everything, runs, writes, prints."""
    verify = known_checkers.command_of(verify, verify_like)
    runs = matrix(
        options.designs_crashed(designs, variants, mutant),
        workload_names(workloads),
        Machine.find(machine),
        threads=(threads,),
        transactions=transactions,
        seed=seed,
        settings=settings,
        variants=variants,
    )
    if failure_modes is None:
        failure_modes = MODES if verify is None else {**MODES, "structures": VERIFY_EVERY}
    torn, in_flight, recovery, structures = (failure_modes.get(name, 0) for name in MODES)
    shares = Shares(torn, in_flight, recovery, recovery_depth, structures)
    if verify is None and verify_limit is not None:
        raise click.UsageError("--verify-limit needs --verify or --verify-like")
    if verify is not None and lives is None:
        note(checker.NO_LIVES)
    lives = checker.lives_of(lives, verify, CrashJob.lives)
    how = (mutant, sample, shares, lives, garbage, violations, verify, verify_limit)
    asked = [CrashJob(run, *how, at=at, minimise=minimise) for run in runs]
    if verify is not None:
        asked = checker.keeping(asked, RESULTS)
    # Where no design is named, one that the machine has no room for stops no other.
    campaign = CrashCampaign.prepare(asked, leave_out=designs is None and not variants)
    for why in campaign.left_out:
        note(f"left out: {why}")
    runs = [job.job for job in campaign.jobs]
    keep = keeping.keeper(len(runs))
    return carry_out(
        _Runs(campaign, keep),
        executor,
        keep=keep,
        campaigns=len(runs),
        replay=replay,
        mutant=mutant,
        form=form,
    )


@dataclass
class _Runs(Task):
    campaign: CrashCampaign
    keep: Keeper | None
    noun: str = "runs"
    finished: list[CrashJob] = field(default_factory=list)
    """The runs that have reports."""

    @property
    def is_kept(self) -> bool:
        return self.keep is not None

    def run(self, executor: Executor, display: Observer) -> Done:
        total = len(self.campaign.jobs)
        checked = self.campaign.run(How(self.keep, executor, display))
        say_found(checked.found, total)
        self.finished = [self.campaign.jobs[number] for number in checked.numbers]
        done = f"{len(checked.reports)} of {total} runs had finished"
        count = sum(campaign.checked() for campaign in self.campaign.campaigns)
        interruption = done if checked.interrupted else None
        return Done(checked.reports, checked.failures, count, interruption)

    def recovered(self, done: Done) -> Mapping[int, checker.Kept]:
        reports = [report for report in done.reports if isinstance(report, CrashReport)]
        return checker.keep_replays(self.finished, reports)

    def remark(self, done: Done) -> str | None:
        if all(job.verify is None for job in self.campaign.jobs):
            return None
        return checker.unjudged(r for r in done.reports if isinstance(r, CrashReport))
