"""Running benchmarks under callgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGE = "graven-counts"

COUNTED = "graven_counts::case::the_counted_part"
"""The function while which is executed instructions are counted."""

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GLIBC_TUNABLES": "glibc.cpu.x86_rep_stosb_threshold=0x40000000"
    ":glibc.cpu.x86_rep_movsb_threshold=0x40000000",
}
"""Variables of a benchmark, which has no others.

Names and values in the environment move the stack, and with it some counts. Of instructions that
repeat themselves valgrind counts each repetition; the C library does without them here.
"""

COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


class CountError(Exception):
    """Nothing could be counted, and why."""


@dataclass(frozen=True)
class Count:
    """Cost of a benchmark.

    Attributes:
        instructions: Instructions of the host, in all.
        units: Number of units of the counted part.
        unit: Unit, in the singular: `transaction`.
    """

    instructions: int
    units: int
    unit: str

    @property
    def per_unit(self) -> float:
        """Host instructions for each unit."""
        return self.instructions / self.units


def compiler() -> str:
    """The compiler and its version, as it says itself."""
    return _output(["rustc", "--version"]).strip()


def build() -> Path:
    """Builds the benchmarks, and returns the program that has them.

    Raises:
        CountError: Valgrind is missing, or the build failed.
    """
    if shutil.which("valgrind") is None:
        raise CountError(
            "valgrind is missing, which counts instructions: install the package valgrind"
        )
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--package", PACKAGE]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise CountError(f"{' '.join(command)} failed")
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / PACKAGE


def names(program: Path) -> list[str]:
    """All benchmarks, sorted."""
    return sorted(_output([str(program)]).split())


def count(program: Path, name: str) -> Count:
    """Counts one benchmark.

    Raises:
        CountError: The benchmark failed, or nothing was counted.
    """
    options = ["--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={COUNTED}"]
    command = ["valgrind", *options, str(program), name]
    done = subprocess.run(
        command, cwd="/", env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    collected = COLLECTED.search(done.stderr)
    if done.returncode != 0 or collected is None:
        raise CountError(f"{name} failed:\n{done.stderr.strip()}")
    units, unit = done.stdout.strip().split("\t")
    found = Count(int(collected[1]), int(units), unit)
    if found.instructions == 0 or found.units == 0:
        raise CountError(f"{name} has counted nothing: {found}")
    return found


def _output(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
