"""Mutants of a design, and which of them the laboratory kills.

The adversary comes first; what survives it meets, if that is wanted, the litmus programs that are
for it, and all small programs.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graven import _engine
from graven.laboratory.adversary import Schedules
from graven.laboratory.check import Bound, Check
from graven.laboratory.crashes import CampaignResult
from graven.laboratory.programs import Program, run_programs
from graven.running.requests import campaign, run_asked
from graven.running.work import HERE, How

SMALL_PROGRAMS = "small programs"
"""Killer of a mutant that the adversary has not killed."""

LITMUS_PROGRAM = "litmus program"
"""Killer of one that a program of a library is for."""

OWN = "own"
"""The class of a design's own mutants, as tables have it."""

SMALL_BOUND = Bound(transactions=2, departures=1)
"""Bound of the small programs that survivors meet."""

WAYS = (
    "plain", "torn", "in-flight", "recovery", "later life", "run", "assertion",
    LITMUS_PROGRAM, SMALL_PROGRAMS,
)  # fmt: skip
"""All that kills, as columns have it."""


@dataclass(frozen=True)
class Mutant:
    """A change for the worse.

    Attributes:
        name: Name that `graven crash --mutant` takes.
        class_: `order`, `dependency`, `width`, `mask` or `recovery`; none of the design's own.
    """

    name: str
    class_: str | None


@dataclass(frozen=True)
class Kill:
    """The end of a mutant.

    Attributes:
        by: `plain`, `torn`, `in-flight`, `recovery`, `later life`, `run` or `assertion` of the
            adversary's schedules, `litmus program`, or `small programs`.
        what: The guarantee that was broken, or the assertion.
        seed: Of the schedule that broke it, if one did.
    """

    by: str
    what: str
    seed: int | None


@dataclass(frozen=True)
class Trial:
    """Fate of a mutant.

    Attributes:
        design: Name of its design.
        mutant: The mutant.
        schedules: Schedules that it ran.
        refused: Those among them that it refused.
        kill: Its end; none if it survived.
    """

    design: str
    mutant: Mutant
    schedules: int
    refused: int
    kill: Kill | None

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        kill = None if self.kill is None else dict(self.kill.__dict__)
        return {
            "design": self.design,
            "mutant": self.mutant.name,
            "class": self.mutant.class_,
            "schedules": self.schedules,
            "refused": self.refused,
            "kill": kill,
        }


def mutants_of(design: str) -> list[Mutant]:
    """The mutants of a design: its own, then those that mutation operators make of it.

    Raises:
        ConfigError: there is no such design.
    """
    return [Mutant(item["name"], item["class"]) for item in json.loads(_listed(design))]


@functools.cache
def _listed(design: str) -> str:
    """The engine's list: what it runs to see where operators apply, a process runs once."""
    return _engine.Campaign("mutants", json.dumps({"design": design})).run()


def try_mutants(
    design: str, mutants: Sequence[Mutant], schedules: Schedules, how: How = HERE
) -> CampaignResult[Trial]:
    """Gives each mutant to the adversary until it is killed.

    Args:
        design: Name of the design.
        mutants: Some of its mutants.
        schedules: Schedules of each mutant, at most.
        how: How they are run.

    Raises:
        ConfigError: a design, mutant or bound that does not exist.
    """
    common = {"design": design, **schedules.spec()}
    asked = [campaign("mutant", one.name, {**common, "mutant": one.name}) for one in mutants]
    return CampaignResult.of(run_asked(asked, how), lambda _, text: _parse(text))


def check_mutants(trials: Sequence[Trial], bound: Bound, how: How = HERE) -> CampaignResult[Trial]:
    """Executes all programs of a bound on each mutant that survived.

    Returns:
        All trials, with the ends of those that are killed now.

    Raises:
        ConfigError: a bound that is refused.
    """
    survivors = [at for at, trial in enumerate(trials) if trial.kill is None]
    asked = []
    for at in survivors:
        trial = trials[at]
        check = Check.prepare((trial.design,), bound, mutant=trial.mutant.name)
        asked.append(check.whole(trial.design, trial.mutant.name))
    outcome = run_asked(asked, how)
    found = {survivors[i]: json.loads(text)["violation"] for i, text in outcome.texts.items()}
    ends = {at: violation["what"] for at, violation in found.items() if violation is not None}
    after = _killed(trials, SMALL_PROGRAMS, ends)
    return CampaignResult(after, outcome.failures, outcome.interrupted)


def mutant_of(program: Program) -> str | None:
    """The mutant that a litmus program is for."""
    found = re.search(r"^[ \t]*mutant[ \t]+([^#\n]*[^#\s])", program.text, re.MULTILINE)
    return None if found is None else found[1]


def show_mutants(
    trials: Sequence[Trial], programs: Sequence[Program], how: How = HERE
) -> CampaignResult[Trial]:
    """Runs, on each mutant that survived, the litmus programs that are for it.

    Returns:
        All trials, with the ends of those that are killed now.

    Raises:
        ConfigError: a program that is refused.
    """
    by_mutant: dict[str | None, list[Program]] = {}
    for program in programs:
        by_mutant.setdefault(mutant_of(program), []).append(program)
    survivors = [
        (at, program)
        for at, trial in enumerate(trials)
        if trial.kill is None
        for program in by_mutant.get(trial.mutant.name, ())
    ]
    prepared = [program.asked([trials[at].design]) for at, program in survivors]
    outcome = run_programs(prepared, how)
    what = {
        (report.file, result.design): result.violations[0].what
        for report in outcome.reports
        for result in report.results
        if result.violations
    }
    shown = [(at, (program.file, trials[at].design)) for at, program in survivors]
    ends = {at: what[run] for at, run in shown if run in what}
    after = _killed(trials, LITMUS_PROGRAM, ends)
    return CampaignResult(after, outcome.failures, outcome.interrupted)


def _killed(trials: Sequence[Trial], by: str, ends: Mapping[int, str]) -> tuple[Trial, ...]:
    """All trials, of which those of some places have ended: by what was broken."""
    return tuple(
        replace(trial, kill=Kill(by, ends[at], None)) if at in ends else trial
        for at, trial in enumerate(trials)
    )


def _parse(text: str) -> Trial:
    raw = json.loads(text)
    kill = None if raw["kill"] is None else Kill(**raw["kill"])
    mutant = Mutant(raw["mutant"], raw["class"])
    return Trial(raw["design"], mutant, raw["schedules"], raw["refused"], kill)
