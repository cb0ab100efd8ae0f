"""The adversary's schedules: a thin front of the engine's campaigns.

The engine has the threads, adds chunks up in their order, and can go on from a state: the result is
the same whatever the number of threads and however often a campaign was interrupted. Here it is
started and awaited, so that an interrupt (Ctrl-C) keeps what is done.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from graven import _engine
from graven._engine import SimulationError
from graven.campaign import CampaignResult
from graven.experiment import (
    GRACE_SECONDS,
    POLL_SECONDS,
    Failure,
    Observer,
    Snapshot,
    host_cores,
)
from graven.reports import AdversaryReport, parse_adversary_report


@dataclass(frozen=True)
class AdversaryRequest:
    """What is asked of the adversary.

    Attributes:
        designs: Designs, each with all schedules.
        seeds: Schedules for each.
        first_seed: Seed of the first.
        mutant: A mutant of the designs that is put in force.
        settings: Configuration on top of what is drawn, by `SECTION.KEY`.
        violations: A design's campaign ends after so many.
        draws: Bounds of what is drawn, by name, where they are not the default.
    """

    designs: tuple[str, ...]
    seeds: int
    first_seed: int = 1
    mutant: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    violations: int = 1
    draws: tuple[tuple[str, int], ...] = ()

    def spec_json(self) -> str:
        """As the engine takes it."""
        spec = {
            "designs": list(self.designs),
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "mutant": self.mutant,
            "set": [list(setting) for setting in self.settings],
            "violations": self.violations,
            "draw": [list(bound) for bound in self.draws],
        }
        return json.dumps(spec)


class AdversaryCampaign:
    """Schedules of the adversary on some designs, which the engine has checked; it runs once.

    Attributes:
        growth: How often reports were seen to have grown: as long as it is the same, so is `state`.
    """

    def __init__(self, engine: _engine.AdversaryCampaign) -> None:
        self._engine = engine
        self._events: dict[str, Any] = {}
        self.growth = 0
        self._receive(0.0)

    @staticmethod
    def prepare(plan: AdversaryRequest, state: str | None = None) -> AdversaryCampaign:
        """Has the engine check what is asked for; nothing runs.

        Args:
            plan: What is asked for.
            state: What `state` gave, to go on from there.

        Raises:
            ConfigError: the engine refuses something, or the state is of another campaign.
        """
        return AdversaryCampaign(_engine.AdversaryCampaign(plan.spec_json(), state))

    def state(self) -> str:
        """All that is needed to go on, as a document."""
        return self._engine.state()

    @property
    def reports(self) -> tuple[AdversaryReport, ...]:
        """What is known so far, by design; of one that has just begun, nothing."""
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
            self._engine.start(workers or host_cores())
            ended = False
            while not ended:
                ended = self._receive(POLL_SECONDS)
                if observe is not None:
                    observe(self._snapshot(started, before))
        except KeyboardInterrupt:
            interrupted = True
            self._stop()
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
        if self._events["grown"]:
            self.growth += 1
        return bool(self._events["ended"])

    def _snapshot(self, started: float, before: float) -> Snapshot:
        """How far it is, in schedules."""
        progress = self._events["progress"]
        done, total = progress["schedules_done"], progress["schedules"]
        return Snapshot(
            done,
            total,
            min(1.0, (done + progress["schedules_partial"]) / total),
            tuple(progress["running"]),
            time.monotonic() - started,
            fraction_before=before,
            checked=progress["failures_checked"],
            minimising=progress["minimising"],
        )
