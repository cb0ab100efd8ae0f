"""Fates of designs whose machine does not work as it should at a power failure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graven.laboratory.adversary import Schedules
from graven.laboratory.crashes import CampaignResult
from graven.running.requests import campaign, run_asked
from graven.running.work import HERE, How


@dataclass(frozen=True)
class Fate:
    """Outcomes of power failures with a kind of fault that changed what survived.

    Attributes:
        fault: `lost-drain-1` and `lost-drain-4`: the newest accepted writes are not drained;
            `stuck-bank`: those to a bank are not; `poisoned-log` and `poisoned-data`: a word has
            an uncorrectable error.
        kept: The guarantee was kept, and nothing reported the fault.
        reported: The error is reported to who reads the word: recovery, or the program later.
        lost: The guarantee is broken, and nothing reports it.
    """

    fault: str
    kept: int
    reported: int
    lost: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.kept + self.reported + self.lost


@dataclass(frozen=True)
class FaultReport:
    """Fates of a design.

    Attributes:
        design: Name of the design.
        schedules: Schedules of the adversary that ran.
        fates: By kind of fault.
    """

    design: str
    schedules: int
    fates: tuple[Fate, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return asdict(self)


def survey(
    designs: Sequence[str], schedules: Schedules, how: How = HERE
) -> CampaignResult[FaultReport]:
    """Has power fail with faults in schedules of the adversary.

    Args:
        designs: Names of designs.
        schedules: Schedules of each.
        how: How they are run.

    Raises:
        ConfigError: a design or bound that does not exist.
    """
    asked = [campaign("faults", name, {"design": name, **schedules.spec()}) for name in designs]
    return CampaignResult.of(run_asked(asked, how), lambda _, text: _parse(text))


def _parse(text: str) -> FaultReport:
    raw = json.loads(text)
    fates = tuple(Fate(**fate) for fate in raw["faults"])
    return FaultReport(raw["design"], raw["schedules"], fates)
