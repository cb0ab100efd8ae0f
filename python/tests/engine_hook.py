"""A hook into the engine: runs are small unless a test says a size, and faults are injected.

Every task is the engine's own. A specification without sizes gets small ones, and the environment
makes tasks wait or fail:

- `FAULT_SLOW` is the design, the design and workload as `DESIGN-WORKLOAD`, or nothing for all, and
  `FAULT_SECONDS` the time that such tasks wait before they run. They leave a file of that name in
  the folder `FAULT_STARTED`.
- `FAULT_FAIL` is the design whose tasks fail, or `*`.
- `FAULT_BUILD` is what distinguishes the build.

`python engine_hook.py ARGUMENTS` is the command with this hook.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from graven import _engine
from graven.papers import files

PAPERS = Path(__file__).parent / "papers"
"""Small papers, which take the place of those of the engine."""

FOOTPRINT = "workload.footprint_bytes"

ENGINE = {name: getattr(_engine, name) for name in ("Simulation", "Campaign", "build", "papers")}
"""What the hook takes the place of."""


def _small(spec):
    """The same specification with small sizes, of a whole run."""
    if "set" not in spec or "workload" not in spec:
        return spec
    pairs = [pair for pair in spec["set"] if pair != ["region.kind", "steady"]]
    given = {key for key, *_ in [*pairs, *spec.get("vary", ())]}
    if FOOTPRINT not in given and "footprint_bytes" not in str(spec["machine"]):
        pairs.append([FOOTPRINT, "128 KB"])
    return spec | {"set": pairs, "transactions": spec["transactions"] or 20}


class _Task:
    """A task of the engine, which waits or fails first where the environment says so."""

    def __init__(self, kind, spec_json, *more):
        spec = json.loads(spec_json)
        self._task = ENGINE[kind](*more, json.dumps(_small(spec)))
        self._design = spec.get("design") or "litmus"
        self._name = f"{self._design}-{spec.get('workload', 'program')}"
        self._is_cancelled = threading.Event()

    def __getattr__(self, name):
        return getattr(self._task, name)

    def cancel(self):
        self._is_cancelled.set()
        self._task.cancel()

    def run(self):
        seconds = float(os.environ.get("FAULT_SECONDS", "0"))
        if seconds and os.environ.get("FAULT_SLOW") in (None, self._design, self._name):
            if "FAULT_STARTED" in os.environ:
                Path(os.environ["FAULT_STARTED"], self._name).touch()
            self._is_cancelled.wait(seconds)
        if not self._is_cancelled.is_set() and os.environ.get("FAULT_FAIL") in (self._design, "*"):
            raise _engine.SimulationError("cycle 1234: line 0x40 read back stale")
        return self._task.run()


class Simulation(_Task):
    def __init__(self, spec_json):
        super().__init__("Simulation", spec_json)


class Campaign(_Task):
    def __init__(self, kind, spec_json):
        super().__init__("Campaign", spec_json, kind)


def _papers():
    return json.dumps(
        {
            folder.name: {file.stem: file.read_text() for file in folder.iterdir()}
            for folder in sorted(PAPERS.iterdir(), reverse=True)
        }
    )


def install():
    _engine.Simulation = Simulation
    _engine.Campaign = Campaign
    _engine.build = lambda: os.environ.get("FAULT_BUILD", ENGINE["build"]())
    _engine.papers = _papers
    files.papers.cache_clear()


def remove():
    for name, value in ENGINE.items():
        setattr(_engine, name, value)
    files.papers.cache_clear()


if __name__ == "__main__":
    from graven.cli import main

    install()
    main()
