"""Costs of simulations to the host, measured by `crates/graven/examples/host_cost.rs`."""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

from graven.engine.catalogue import MachinePreset

from .tables import ROOT

DRIVER = ("cargo", "run", "--quiet", "--locked", "--release", "--package", "graven",
          "--example", "host_cost")  # fmt: skip


class Driver:
    """Process that runs one simulation after the other; it starts anew after one that ends it."""

    def __init__(self) -> None:
        self._process = self._started()

    @staticmethod
    def _started() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(DRIVER, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def measure(self, **asked: object) -> dict[str, Any]:
        """Has the driver simulate a request, given by its keys; returns the answer."""
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None
        assert answers is not None
        to.write(json.dumps(asked) + "\n")
        to.flush()
        line = answers.readline()
        if not line:
            self._process.wait()
            self._process = self._started()
            return {"outcome": "the process died"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Lets the process end."""
        self._process.communicate()


def threads_most(machine: MachinePreset) -> int:
    """Returns the number of threads that a machine can run."""
    values = (machine.value("core.count"), machine.value("core.threads_per_core"))
    return math.prod(int(str(value)) for value in values)
