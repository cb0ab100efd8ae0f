"""The only place that knows the interface of `graven._engine`: its classes, functions, and kinds.

Everything else here deals in kinds of its own and in JSON. When the interface is renamed, this file
is what follows.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import BinaryIO, Protocol

from graven import _engine

from .store import Json

REFUSALS: tuple[type[Exception], ...] = (
    _engine.ConfigError,
    _engine.TraceError,
    _engine.SimulationError,
    _engine.Cancelled,
)
"""Errors that the engine raises; all others are mistakes of this package."""

SECONDS_MAX = 1800.0
"""A task that takes longer is cancelled; no recorded run comes near."""


class _Task(Protocol):
    def run(self) -> str: ...
    def cancel(self) -> None: ...


def _run(task: _Task) -> Json:
    timer = threading.Timer(SECONDS_MAX, task.cancel)
    timer.start()
    try:
        return json.loads(task.run())
    finally:
        timer.cancel()


def simulation(spec: Json) -> Json:
    """Simulates; the spec may name files to write."""
    return _run(_engine.Simulation(json.dumps(spec)))


def memory_replay(spec: Json) -> Json:
    """Replays a request trace on memory alone."""
    return _run(_engine.MemoryReplay(json.dumps(spec)))


def run_campaign(spec: Json) -> Json:
    """Crashes one run everywhere."""
    return _run(_engine.Campaign("run", json.dumps(spec)))


def adversary_campaign(spec: Json) -> Json:
    """Crashes schedules of the adversary."""
    return _run(_engine.Campaign("adversary", json.dumps(spec)))


def litmus_campaign(spec: Json) -> Json:
    """Runs a litmus program and crashes it."""
    return _run(_engine.Campaign("litmus", json.dumps(spec)))


def trace_replay(spec: Json) -> Json:
    """Replays a program trace."""
    return _run(_engine.TraceReplay(json.dumps(spec)))


def trace_import(spec: Json, files: Sequence[BinaryIO]) -> Json:
    """Makes a program trace of ChampSim's traces."""
    return _run(_engine.Conversion("import", json.dumps(spec), list(files)))


def trace_export(spec: Json, out: BinaryIO) -> Json:
    """Makes a ChampSim trace of a thread of a program trace."""
    return _run(_engine.Conversion("export", json.dumps(spec), [out]))


def trace_info(path: str) -> Json:
    """Tells what is in a program trace."""
    return json.loads(_engine.trace_info(path))


def cost(spec: Json) -> Json:
    """Makes a design's cost sheet."""
    return json.loads(_engine.cost(json.dumps(spec)))


def comparison(spec: Json) -> Json:
    """Tells what is compared on a machine."""
    return json.loads(_engine.comparison(json.dumps(spec)))


def catalogue() -> Json:
    """Lists everything that can be named, as it was recorded: what is common to several, with each.

    The engine says each thing once.
    """
    said = json.loads(_engine.catalogue())
    parameters = {each["key"]: each for part in said["sections"] for each in part["parameters"]}
    shared = [each for key, each in parameters.items() if key.startswith("workload.")]
    statistics = {
        each["name"]: {key: value for key, value in each.items() if key != "designs"}
        for each in said["stats"]
    }
    for statistic in said["stats"]:
        if not statistic["designs"]:
            del statistic["designs"]
    for design in said["designs"]:
        design["sound"] = design["safe"]
        design["statistics"] = [statistics[name] for name in design["statistics"]]
    for workload in said["workloads"]:
        workload["parameters"][:0] = shared
    for machine in said["machines"]:
        for value in machine["values"]:
            declared = parameters[value["key"]]
            value.update(unit=declared["unit"], doc=declared["doc"])
    return said
