"""Gallery of pictures in docs/gallery, each made by a command that the guide to plots shows.

Results are kept in the folder `graven-results/gallery`, so that a picture that was drawn is drawn
again in seconds.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .runner import STATES, Campaign, Failed, Given, Rows, Task
from .tables import ROOT

GALLERY = ROOT / "docs/gallery"
WORK = STATES / "gallery"

CHOICE = "--designs base,fwb,morlog-slde,hoop,silo"
FEW = "--from-start --transactions 2000"
"""Sizes of pictures that many simulations go into."""
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Shown:
    """A picture of the gallery.

    Attributes:
        name: Its file, without ending.
        makers: Commands that make the results, without `graven`.
        plot: The command that draws it, without `graven plot`.
    """

    name: str
    makers: tuple[str, ...]
    plot: str


def _compared(name: str, kind: str, more: str = "", *, shown: str = "") -> Shown:
    compare = f"compare {CHOICE} {more} --no-report --format csv"
    return Shown(name, (compare.replace("  ", " "),), f"{kind} {CHOICE} {more} {shown}".strip())


PICTURES = (
    _compared("bars", "bars", "--threads 8"),
    Shown(
        "bars-seeds",
        tuple(
            f"compare {CHOICE} {FEW} --threads 4 --no-report --format csv --seed {s}" for s in SEEDS
        ),
        f"bars {CHOICE} {FEW} --threads 4 --seeds {','.join(map(str, SEEDS))} "
        "--absolute --width text",
    ),
    _compared("lines", "lines", f"{FEW} --threads 1,2,4,8", shown="--width text"),
    _compared(
        "lines-key",
        "lines",
        f"{FEW} --threads 4 --workloads hash,btree --vary pm.write_ns=75,150,300,600",
        shown="--baseline base",
    ),
    _compared("traffic", "traffic", "--threads 8", shown="--width text"),
    _compared("energy", "energy", "--threads 8", shown="--absolute --width text"),
    _compared("latency", "latency", "--threads 8", shown="--width text"),
    Shown("paper", ("reproduce silo fig12 --quick",), "paper silo fig12 --quick --width text"),
    Shown(
        "sensitivity",
        ("explain silo-throughput-vs-fwb --quick --simulate",),
        "sensitivity silo-throughput-vs-fwb --quick --width text",
    ),
    Shown(
        "banks",
        (
            "run --design fwb --workload hash --transactions 2000 --bank-loads loads.csv "
            "--format json",
        ),
        "banks loads.csv",
    ),
    Shown(
        "timeline",
        (
            "run --design fwb --workload hash --threads 4 --transactions 2000 "
            "--timeline timeline-run.json --format json",
        ),
        "timeline timeline-run.json --width text",
    ),
    Shown(
        "counterexample",
        ("crash --design fwb-literal --workload queue --machine cramped --transactions 100",),
        "counterexample --design fwb-literal --workload queue --machine cramped --width text",
    ),
)


def graven(command: str, *, may_fail: bool = False) -> None:
    """Runs a command in the folder of the gallery's results.

    Raises:
        Failed: The command did not end well.
    """
    words = [sys.executable, "-m", "graven", *shlex.split(command)]
    done = subprocess.run(words, cwd=WORK, stdout=subprocess.DEVNULL, check=False)
    if done.returncode and not (may_fail and done.returncode == 1):
        raise Failed(f"graven {command}: exit code {done.returncode}")


def tasks(given: Given) -> Iterator[Task]:
    """Gives a task for each picture."""

    def task(shown: Shown) -> Task:
        def run() -> Rows:
            for folder in (WORK, given.to):
                folder.mkdir(parents=True, exist_ok=True)
            for maker in shown.makers:
                # A run that finds a violation is what a counterexample is drawn of.
                graven(maker, may_fail=maker.startswith("crash"))
            made = WORK / f"{shown.name}.{given.form}"
            graven(f"plot {shown.plot} --theme {given.theme} --out {made.name}")
            (given.to / made.name).write_bytes(made.read_bytes())
            return {}

        return Task(shown.name, run, is_kept=False)

    return map(task, PICTURES)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the place and the look of pictures."""
    parser.add_argument("--to", type=Path, default=GALLERY, metavar="FOLDER")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--form", choices=("svg", "png"), default="svg")


CAMPAIGN = Campaign(tasks, options=options)
