"""Requests to the engine by a specification alone, besides simulations and crashed runs.

These are parts of a check, litmus programs, mutants, faults, and replays of request traces. The
specification has all that a result depends on, but for the engine itself, so that a result is
kept under it and found by it as those of simulations are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from graven import _engine
from graven.running.pool import Task
from graven.running.work import HERE, Came, How, Ran, Work, run_all


@dataclass(frozen=True)
class Asked:
    """Something that the engine has checked and that has not run yet.

    Attributes:
        kind: Kind of its result in a store.
        label: Name in progress and failures.
        task: The task for the engine.
        spec: All that the result depends on; `design`, `workload`, `machine`, `set` and the like
            are what they are for simulations.
    """

    kind: str
    label: str
    task: Task = field(repr=False)
    spec: Mapping[str, Any]


def campaign(
    kind: Literal["check", "mutant", "faults", "agreement"], label: str, spec: Mapping[str, Any]
) -> Asked:
    """Asks something of the laboratory that its specification says whole.

    Raises:
        ConfigError: the engine refuses it.
    """
    return Asked(kind, label, _engine.Campaign(kind, json.dumps(spec)), spec)


def run_asked(asked: Sequence[Asked], how: How = HERE, came: Came | None = None) -> Ran:
    """Runs what has no result yet, several at a time; never raises for what failed."""
    return run_all([Work(item.label, item, item.task) for item in asked], how, came)
