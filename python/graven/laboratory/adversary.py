"""The adversary's schedules: a thin front of the engine's campaigns.

The engine has the threads, adds chunks up in their order, and can continue from a state: the result
is the same whatever the number of threads and however often a campaign was interrupted. Here it is
started and awaited, so that an interrupt (Ctrl-C) keeps what is done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graven import _engine
from graven._engine import Cancelled, ConfigError, SimulationError
from graven.laboratory.crashes import CampaignResult, Told, first_violation
from graven.laboratory.fitting import Fitting
from graven.laboratory.reports import AdversaryReport, parse_adversary_report
from graven.running.host_memory import limit, refusal
from graven.running.pool import (
    GRACE_SECONDS,
    POLL_SECONDS,
    Deferred,
    Failure,
    Observer,
    Snapshot,
    host_cores,
)
from graven.running.requests import Asked, run_asked
from graven.running.work import HERE, How


@dataclass(frozen=True)
class Schedules:
    """Consecutive schedules of the adversary.

    Attributes:
        number: Schedules of each design, or of each mutant.
        first_seed: Seed of the first.
        draws: Bounds of what is drawn, by name, where they are not the default.
    """

    number: int
    first_seed: int = 1
    draws: tuple[tuple[str, int], ...] = ()

    def spec(self) -> dict[str, Any]:
        """Returns the part of a specification that the engine takes for them."""
        draws = [list(bound) for bound in self.draws]
        return {"seeds": self.number, "first_seed": self.first_seed, "draw": draws}


@dataclass(frozen=True)
class AdversaryRequest:
    """Designs that the adversary is to try, and with which schedules.

    Attributes:
        designs: Designs, each with all schedules.
        schedules: The schedules.
        mutant: A mutant of the designs that is put in force.
        settings: Configuration on top of what is drawn, by `SECTION.KEY`.
        violations: Violations after which a design's campaign ends.
        minimise: Most runs in which the program of a violation is minimised; with 0, it stays as it
            was drawn. As many as the engine takes by default, if not given.
    """

    designs: tuple[str, ...]
    schedules: Schedules
    mutant: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    violations: int = 1
    minimise: int | None = None

    def fitting(self, *, leave_out: bool) -> tuple[AdversaryRequest, tuple[str, ...]]:
        """Has the engine check each design; nothing runs.

        Args:
            leave_out: True to leave out designs that the settings do not fit, if they fit any.

        Returns:
            The request of the designs that are left, and a line for each that is left out.

        Raises:
            ConfigError: the engine refuses something.
        """

        def checked(design: str) -> str:
            AdversaryCampaign.prepare(replace(self, designs=(design,)))
            return design

        asked = [(design, design) for design in self.designs]
        found = Fitting.of(asked, checked, leave_out=leave_out)
        return replace(self, designs=found.taken), found.left_out

    def called(self, design: str) -> str:
        """One of the designs in messages, with the mutant if there is one."""
        mutant = "" if self.mutant is None else f" with {self.mutant}"
        return f"{design}{mutant} under the adversary"

    def spec(self) -> dict[str, Any]:
        """Returns the specification that the engine takes."""
        minimise = {} if self.minimise is None else {"minimise": self.minimise}
        return minimise | {
            "designs": list(self.designs),
            **self.schedules.spec(),
            "mutant": self.mutant,
            "set": [list(setting) for setting in self.settings],
            "violations": self.violations,
        }


ADDRESSES = 2
"""Addresses that a worker takes, in use or not, over the memory that it needs."""

BLOCK = 500
"""Schedules of a design that are run together on another host."""

KIND = "schedule block"
"""Kind of the result of such a block in a store."""


class Block:
    """Some schedules on one design, as a task: they run on one thread, one after the other."""

    def __init__(self, spec: str) -> None:
        """Has the engine check them.

        Raises:
            ConfigError: it refuses something.
        """
        self._engine = _engine.AdversaryCampaign(spec, None)
        self._is_cancelled = False

    def run(self) -> str:
        """The engine's report of them, as JSON.

        Raises:
            Cancelled: it was cancelled.
            SimulationError: the engine failed.
        """
        checked = AdversaryCampaign(self._engine).run(workers=1)
        if self._is_cancelled or checked.interrupted:
            raise Cancelled("the schedules were cancelled")
        if checked.failures:
            raise SimulationError(checked.failures[0].message)
        [report] = json.loads(self._engine.reports())
        return json.dumps(report)

    def memory_bytes(self) -> int:
        """Memory of the host that it needs, at most."""
        return self._engine.memory_bytes()

    def cancel(self) -> None:
        """Makes `run` raise `Cancelled`."""
        self._is_cancelled = True
        self._engine.cancel()

    def progress(self) -> tuple[int, int]:
        """Schedules done, and in all."""
        progress = json.loads(self._engine.wait(0.0))["progress"]
        return progress["schedules_done"], progress["schedules"]


@dataclass(frozen=True)
class Blocks:
    """Schedules cut into blocks, which may run anywhere and in any order.

    What they come to, added up in their order, is what the campaign comes to as a whole: no
    schedule depends on another. A design's campaign ends with its first violation; what later
    blocks of it have come to is left out.

    Attributes:
        plan: What is asked for.
        blocks: Schedules of each block, the same for each design.
    """

    plan: AdversaryRequest
    blocks: tuple[Schedules, ...]

    @staticmethod
    def of(plan: AdversaryRequest) -> Blocks:
        """Cuts them.

        Raises:
            ConfigError: the engine refuses something, or more than one violation is asked for.
        """
        if plan.violations != 1:
            raise ConfigError("--violations: more than one of a design are found on one host alone")
        AdversaryCampaign.prepare(plan)
        asked = plan.schedules
        end = asked.first_seed + asked.number
        firsts = range(asked.first_seed, end, BLOCK)
        return Blocks(
            plan,
            tuple(
                replace(asked, number=min(BLOCK, end - first), first_seed=first) for first in firsts
            ),
        )

    def asked(self) -> list[Asked]:
        """All blocks of all designs."""
        found = []
        for design in self.plan.designs:
            for block in self.blocks:
                spec = replace(self.plan, designs=(design,), schedules=block).spec()
                task = Deferred(partial(Block, json.dumps(spec)))
                label = f"{design}, schedules from {block.first_seed}"
                found.append(Asked(KIND, label, task, spec))
        return found

    def run(self, how: How = HERE) -> CampaignResult[AdversaryReport]:
        """Runs those without a result; of what fails or is missing, later blocks do not count."""
        number = len(self.blocks)
        names = [self.plan.called(design) for design in self.plan.designs]
        with Told(how, lambda at, text: first_violation(names[at // number], text)) as told:
            ran = run_asked(self.asked(), told.how, told.came)
        reports = []
        for at, _ in enumerate(self.plan.designs):
            texts = [ran.texts.get(at * number + block) for block in range(number)]
            if texts[0] is not None:
                reports.append(parse_adversary_report(self._added_up(texts)))
        return CampaignResult(tuple(reports), ran.failures, ran.interrupted, ran.found)

    def _added_up(self, texts: Sequence[str | None]) -> dict[str, Any]:
        total: dict[str, Any] = {}
        for text in texts:
            if text is None or (total and total["violations"]):
                break
            report = json.loads(text)
            if not total:
                total = report
                continue
            for name in ("crash_points", "recoveries", "runs", "refused", "seconds"):
                total[name] += report[name]
            for name in ("failure_modes", "covered"):
                for key, count in report[name].items():
                    total[name][key] = total[name].get(key, 0) + count
            total["refusal"] = total["refusal"] or report["refusal"]
            total["violations"] = report["violations"]
            total["next_seed"] = report["next_seed"]
        return total | {"seeds": self.plan.schedules.number, "seconds": round(total["seconds"], 3)}


def _fitting(workers: int, need: int) -> int:
    """Workers that need `need` bytes each: as many as asked for, or as the host has memory for.

    Raises:
        ConfigError: the host has not memory for one.
    """
    most = limit()
    if most is None:
        return workers
    each = need * ADDRESSES if most.of_address_space else need
    if each > most.bytes:
        raise ConfigError(refusal(each, most, what="a schedule of the adversary needs", smaller=""))
    return min(workers, most.bytes // max(each, 1))


class AdversaryCampaign:
    """Schedules of the adversary on some designs, which the engine has checked; it runs once.

    Attributes:
        growth: How often reports were seen to have grown: as long as it is the same, so is `state`.
    """

    def __init__(
        self, engine: _engine.AdversaryCampaign, called: Callable[[str], str] = str
    ) -> None:
        self._called = called
        self._engine = engine
        self._events: dict[str, Any] = {}
        self._found: list[str] = []
        self.growth = 0
        self._receive(0.0)

    @staticmethod
    def prepare(plan: AdversaryRequest, state: str | None = None) -> AdversaryCampaign:
        """Has the engine check what is asked for; nothing runs.

        Args:
            plan: What is asked for.
            state: A state that `state` gave, to continue from there.

        Raises:
            ConfigError: the engine refuses something, or the state is of another campaign.
        """
        engine = _engine.AdversaryCampaign(json.dumps(plan.spec()), state)
        return AdversaryCampaign(engine, plan.called)

    def state(self) -> str:
        """All that is needed to continue, as a document."""
        return self._engine.state()

    @property
    def reports(self) -> tuple[AdversaryReport, ...]:
        """Reports so far, by design; of one that has just begun, nothing."""
        return tuple(parse_adversary_report(raw) for raw in json.loads(self._engine.reports()))

    @property
    def schedules(self) -> int:
        """Schedules that need no more work, over all designs."""
        return int(self._events["progress"]["schedules_done"])

    @property
    def total(self) -> int:
        """Schedules in all, over all designs."""
        return int(self._events["progress"]["schedules"])

    def run(
        self, *, workers: int | None = None, observe: Observer | None = None
    ) -> CampaignResult[AdversaryReport]:
        """Runs what is left; never raises for what failed or was interrupted."""
        started = time.monotonic()
        before = self.schedules / self.total
        interrupted = False
        try:
            self._engine.start(_fitting(workers or host_cores(), self._engine.memory_bytes()))
            ended = False
            while not ended:
                ended = self._receive(POLL_SECONDS)
                if observe is not None:
                    observe(self._snapshot(started, before))
        except KeyboardInterrupt:
            interrupted = True
            self._stop()
            if observe is not None and self._found:
                observe(self._snapshot(started, before))
        finally:
            self._engine.cancel()
        failures = tuple(
            Failure(failure["design"], failure["message"], SimulationError(failure["message"]))
            for failure in self._events["failures"]
        )
        return CampaignResult(self.reports, failures, interrupted)

    def _stop(self) -> None:
        """Cancels it, and waits until what runs has stopped."""
        self._engine.cancel()
        try:
            self._receive(GRACE_SECONDS)
        except KeyboardInterrupt:
            return  # asked twice: do not even wait

    def _receive(self, seconds: float) -> bool:
        """Waits for the end, but not longer than this; whether it has come."""
        self._events = json.loads(self._engine.wait(seconds))
        for found in self._events["found"]:
            called = self._called(found["design"])
            self._found.append(f"{called} violates its guarantee: {found['what']}")
        if self._events["grown"]:
            self.growth += 1
        return bool(self._events["ended"])

    def _snapshot(self, started: float, before: float) -> Snapshot:
        """How far it is, in schedules."""
        progress = self._events["progress"]
        total = progress["schedules"]
        done = min(total, progress["schedules_done"] + progress["schedules_partial"])
        found, self._found = tuple(self._found), []
        return Snapshot(
            done,
            total,
            done / total,
            tuple(of["design"] for of in progress["running"]),
            time.monotonic() - started,
            fraction_before=before,
            checked=progress["failures_checked"],
            minimising=progress["minimising"],
            parts=tuple(
                f"{of['design']} {of['schedules_done']} of {of['schedules']}"
                for of in progress["running"]
            ),
            found=found,
        )
