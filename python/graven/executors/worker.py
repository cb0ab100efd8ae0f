"""Program of an element of a job array of Slurm: `python -m graven.executors.worker FOLDER`.

FOLDER has what was submitted. The element runs its chunk in order, passes over what has a result,
keeps each result in the store as it comes, and writes down what fails. SIGTERM, which Slurm sends
before it kills, stops it at once; what it had not done is submitted again.
"""

from __future__ import annotations

import json
import platform
import sys
import threading
import uuid
from pathlib import Path

from graven.basics import output, signals
from graven.executors import units
from graven.executors.slurm import element_of_this_process
from graven.executors.units import Shared, Unit

GRACE_SECONDS = 10.0
"""Longest time that a simulation takes to stop."""


class _Element:
    """The chunk of one element."""

    def __init__(self, folder: Path, number: int) -> None:
        self.run = uuid.uuid4().hex
        self.is_over = threading.Event()
        self.trouble: str | None = None
        about = json.loads((folder / "array.json").read_text(encoding="utf-8"))
        self._shared = Shared(**about["store"])
        self._lines = (folder / f"{number}.jsonl").read_text(encoding="utf-8").splitlines()
        self._failures = folder / f"failures-{number}-{self.run}.json"

    def work_off(self) -> None:
        """Runs the simulations one after the other."""
        try:
            failed: dict[str, str] = {}
            for line in self._lines:
                came = units.execute(line, self._shared, self.run)
                if not came:
                    return
                why = came.get("failure")
                if why is None and not came["kept"]:
                    why = f"its result cannot be kept in {self._shared.folder}"
                if why is not None:
                    failed[Unit.parse(line).request.digest] = why
                    output.write(self._failures, json.dumps(failed).encode())
        except BaseException as error:
            self.trouble = f"{type(error).__name__}: {error}"
        finally:
            self.is_over.set()


def main() -> int:
    """Runs the chunk of this element; the exit code."""
    signals.catch()
    number = element_of_this_process()
    if len(sys.argv) != 2 or number is None:
        print("graven: this is what `--on slurm` submits; it is not for use by hand")
        return 2
    # Whoever submitted it tells by this line what was begun from what Slurm has forgotten.
    print(f"graven: element {number} begins on {platform.node()}", flush=True)
    element = _Element(Path(sys.argv[1]), number)
    thread = threading.Thread(target=element.work_off, daemon=True)
    try:
        thread.start()
        while not element.is_over.wait(1.0):
            pass
    except KeyboardInterrupt:
        units.stop(element.run)
        element.is_over.wait(GRACE_SECONDS)
        print(f"graven: {signals.words()}; what is left is submitted again", flush=True)
        return signals.exit_code()
    if element.trouble is not None:
        print(f"graven: {element.trouble}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
