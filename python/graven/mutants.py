"""Mutants of a design, and which of them the laboratory kills.

The adversary comes first, and all small programs after it, if that is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graven import _engine
from graven.campaign import CampaignResult
from graven.check import Bound, Check
from graven.experiment import Observer, Pool, host_cores

SMALL_PROGRAMS = "small programs"
"""What kills a mutant that the adversary has not killed."""


@dataclass(frozen=True)
class Mutant:
    """A change for the worse.

    Attributes:
        name: What `graven crash --mutant` takes.
        class_: `order`, `dependency`, `width`, `mask` or `recovery`; none of the design's own.
    """

    name: str
    class_: str | None


@dataclass(frozen=True)
class Kill:
    """The end of a mutant.

    Attributes:
        by: `plain`, `torn`, `in-flight`, `recovery`, `later life`, `run` or `assertion` of the
            adversary's schedules, or `small programs`.
        what: The guarantee that was broken, or the assertion.
        seed: Of the schedule that broke it, if one did.
    """

    by: str
    what: str
    seed: int | None


@dataclass(frozen=True)
class Trial:
    """What became of a mutant.

    Attributes:
        design: Whose it is.
        mutant: Which.
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
    raw = json.loads(_engine.Campaign("mutants", json.dumps({"design": design})).run())
    return [Mutant(item["name"], item["class"]) for item in raw]


def try_mutants(
    design: str,
    mutants: Sequence[Mutant],
    schedules: int,
    *,
    first_seed: int = 1,
    workers: int | None = None,
    observe: Observer | None = None,
) -> CampaignResult[Trial]:
    """Gives each mutant to the adversary until it is killed.

    Raises:
        ConfigError: a design or mutant that does not exist.
    """
    tasks = []
    for mutant in mutants:
        spec = {
            "design": design,
            "mutant": mutant.name,
            "first_seed": first_seed,
            "seeds": schedules,
        }
        tasks.append((mutant.name, _engine.Campaign("mutant", json.dumps(spec))))
    outcome = Pool(tasks, workers or host_cores()).run(observe)
    trials = tuple(_parse(text) for _, text in sorted(outcome.texts.items()))
    return CampaignResult(trials, outcome.failures, outcome.interrupted)


def check_mutants(
    trials: Sequence[Trial],
    bound: Bound,
    *,
    workers: int | None = None,
    observe: Observer | None = None,
) -> CampaignResult[Trial]:
    """Executes all programs of a bound on each mutant that survived.

    Returns:
        All trials, with the ends of those that are killed now.

    Raises:
        ConfigError: a bound that is refused.
    """
    survivors = [at for at, trial in enumerate(trials) if trial.kill is None]
    tasks = []
    for at in survivors:
        trial = trials[at]
        check = Check.prepare((trial.design,), bound, mutant=trial.mutant.name)
        tasks.append((trial.mutant.name, check.task(trial.design)))
    outcome = Pool(tasks, workers or host_cores()).run(observe)
    ends = dict(enumerate(trials))
    for index, text in outcome.texts.items():
        violation = json.loads(text)["violation"]
        if violation is not None:
            at = survivors[index]
            ends[at] = replace(trials[at], kill=Kill(SMALL_PROGRAMS, violation["what"], None))
    return CampaignResult(tuple(ends.values()), outcome.failures, outcome.interrupted)


def _parse(text: str) -> Trial:
    raw = json.loads(text)
    kill = None if raw["kill"] is None else Kill(**raw["kill"])
    mutant = Mutant(raw["mutant"], raw["class"])
    return Trial(raw["design"], mutant, raw["schedules"], raw["refused"], kill)
