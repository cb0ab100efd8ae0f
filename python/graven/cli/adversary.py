"""`graven adversary`: drawn programs, machines and schedules; power fails everywhere in them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from graven import _engine
from graven.basics.errors import OutputError
from graven.basics.numbers import exact
from graven.cli import options
from graven.cli.campaigns import Done, Task, carry_out
from graven.cli.files import Writer
from graven.cli.storing import State, UnderWay, say_found, state_file
from graven.cli.terminal import note
from graven.laboratory.adversary import (
    BLOCK,
    AdversaryCampaign,
    AdversaryRequest,
    Blocks,
    Schedules,
)
from graven.running.pool import Observer, Snapshot
from graven.running.work import Executor, How, Local
from graven.store.keeper import Keeper

SAVE_SECONDS = 5.0
"""Most work, in seconds, of a campaign with `--state` that an end without warning loses."""

HELP = """Draw programs, machines and orders of events in memory, and let power fail in them.

Each schedule is a short program of several threads on a small machine, in an order of events that
is legal. Power fails at every crash point, the design recovers, and the bytes are checked against
the program. Standard error has each violation, with its seed, as soon as it is found; the first is
then minimised to a program that `graven litmus` replays (--minimise). Where no design is named,
those that the settings do not fit are left out, and told.

\b
Examples:
  graven adversary --schedules 10000
  graven adversary --schedules 1000000 --state graven-results/soak.json
  graven adversary --design silo --mutant commit-not-marked
  graven adversary --design silo --draw transactions=500 --draw varied=0

The exit code is 0 if every guarantee was kept, 1 if a design that claims safety violated its own
or a mutant survived, 2 for refused input, 130 for an interrupt.
"""


@click.command(cls=Writer, help=HELP)
@options.designs("every sound one")
@options.schedules("each design", 1000)
@options.settings
@options.mutant
@options.violations("a design's schedules")
@options.minimise(_engine.MINIMISING_RUNS)
@options.written("--state", "Keep what is done there, and continue from it.")
@options.replay("one design")
@options.executor("Chunks of schedules")
@options.keeping
@options.form("table", "json")
def adversary(
    designs: str | None,
    schedules: Schedules,
    settings: dict[str, str],
    mutant: str | None,
    violations: int,
    minimise: int | None,
    state: Path | None,
    replay: Path | None,
    executor: Executor,
    keeping: options.Keeping,
    form: str,
) -> int:
    """Checks everything, runs, writes, prints."""
    if state is not None and not isinstance(executor, Local):
        on = click.get_current_context().params["on"]
        raise click.UsageError(f"--state: not with --on {on}, which goes on from the store")
    names = options.designs_crashed(designs, {}, mutant)
    plan = AdversaryRequest(
        tuple(names), schedules, mutant, tuple(settings.items()), violations, minimise
    )
    plan, left_out = plan.fitting(leave_out=designs is None)
    for why in left_out:
        note(f"left out: {why}")
    keep = None if state is not None else keeping.keeper(0)
    task: Task
    if isinstance(executor, Local):
        kept = state_file(state) if keep is None else UnderWay(keep, plan)
        task = _Schedules.prepare(plan, kept)
    else:
        task = _Blocks(Blocks.of(plan), keep)
    return carry_out(
        task,
        executor,
        keep=keep,
        campaigns=len(plan.designs),
        replay=replay,
        mutant=mutant,
        form=form,
    )


@dataclass
class _Blocks(Task):
    """Schedules that are run on other hosts."""

    blocks: Blocks
    keep: Keeper | None
    noun: str = f"blocks of {BLOCK} schedules"

    @property
    def is_kept(self) -> bool:
        return self.keep is not None

    def run(self, executor: Executor, display: Observer) -> Done:
        total = len(self.blocks.plan.designs) * len(self.blocks.blocks)
        checked = self.blocks.run(How(self.keep, executor, display))
        say_found(checked.found, total)
        done = f"{len(checked.reports)} designs have reports"
        return Done(checked.reports, checked.failures, 0, done if checked.interrupted else None)


@dataclass
class _Schedules(Task):
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
        found = _Schedules(AdversaryCampaign.prepare(plan), state, 0)
        text = None if state is None else state.read()
        if state is None or text is None:
            return found
        try:
            campaign = AdversaryCampaign.prepare(plan, text)
        except _engine.ConfigError as error:
            if (refusal := state.refused(error)) is not None:
                raise refusal from None
            return found
        found = _Schedules(campaign, state, _judged(campaign))
        note(f"{state.where}: {found.done} were done")
        return found

    @property
    def is_kept(self) -> bool:
        return self.state is not None

    @property
    def done(self) -> str:
        return f"{exact(self.campaign.schedules)} of {exact(self.campaign.total)} schedules"

    def run(self, executor: Executor, display: Observer) -> Done:
        def observe(snapshot: Snapshot) -> None:
            display(snapshot)
            has_grown = self.campaign.growth > self._saved_growth
            if has_grown and time.monotonic() - self._saved >= SAVE_SECONDS:
                self._save_or_warn()

        workers = executor.workers if isinstance(executor, Local) else None
        checked = self.campaign.run(workers=workers, observe=observe)
        self._save()
        count = _judged(self.campaign) - self.before
        done = f"{self.done} were done" if checked.interrupted else None
        return Done(checked.reports, checked.failures, count, done)

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
