"""The gallery of pictures in docs/gallery, each made by a command that the guide to plots shows.

    python -m tests.campaigns.gallery [NAME ...] [--to FOLDER] [--theme light|dark] [--form svg|png]

Runs the commands of all pictures, or of those that are named. Results are kept in the folder
`graven-results/gallery`, so that it goes on where it was after an interrupt, and draws again what
it has drawn in seconds.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs/gallery"
WORK = ROOT / "graven-results/gallery"

CHOICE = "--designs base,fwb,morlog-slde,hoop,silo"
FEW = "--from-start --transactions 2000"
"""Of pictures that many simulations go into."""
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
    """Runs a command in the folder of the gallery's results."""
    words = [sys.executable, "-m", "graven", *shlex.split(command)]
    done = subprocess.run(words, cwd=WORK, stdout=subprocess.DEVNULL, check=False)
    if done.returncode and not (may_fail and done.returncode == 1):
        raise SystemExit(f"graven {command}: exit code {done.returncode}")


def draw(shown: Shown, to: Path, theme: str, form: str) -> None:
    """Makes what is missing, and draws a picture."""
    for maker in shown.makers:
        # A run that finds a violation is what a counterexample is drawn of.
        graven(maker, may_fail=maker.startswith("crash"))
    made = WORK / f"{shown.name}.{form}"
    graven(f"plot {shown.plot} --theme {theme} --out {made.name}")
    (to / made.name).write_bytes(made.read_bytes())
    print(to / made.name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws all, or what is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.gallery")
    names = [shown.name for shown in PICTURES]
    parser.add_argument("names", metavar="NAME", nargs="*", choices=[*names, []])
    parser.add_argument("--to", type=Path, default=GALLERY)
    parser.add_argument("--theme", default="light")
    parser.add_argument("--form", default="svg")
    given = parser.parse_args(arguments)
    for folder in (WORK, given.to):
        folder.mkdir(parents=True, exist_ok=True)
    for shown in PICTURES:
        if not given.names or shown.name in given.names:
            draw(shown, given.to, given.theme, given.form)


if __name__ == "__main__":
    main()
