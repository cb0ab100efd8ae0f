"""Gallery of pictures in docs/gallery, each made by a command that the guide to plots shows.

Results are kept in the folder `graven-results/gallery`, so that a picture that was drawn is drawn
again in seconds.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from .runner import STATES, Campaign, Failed, Given, Rows
from .tables import ROOT

GALLERY = ROOT / "docs/gallery"
WORK = STATES / "gallery"

PICTURES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""Commands of each picture."""


def graven(command: str, *, may_fail: bool = False) -> None:
    """Runs a command in the folder of the gallery's results.

    Raises:
        Failed: The command did not end well.
    """
    words = [sys.executable, "-m", "graven", *shlex.split(command)]
    done = subprocess.run(words, cwd=WORK, stdout=subprocess.DEVNULL, check=False)
    if done.returncode and not (may_fail and done.returncode == 1):
        raise Failed(f"graven {command}: exit code {done.returncode}")


def draw(name: str, given: Given) -> Rows:
    """Makes the results of a picture that are missing, and draws it."""
    shown = PICTURES[name]
    for folder in (WORK, given.to):
        folder.mkdir(parents=True, exist_ok=True)
    for maker in shown["makers"]:
        # A run that finds a violation is what a counterexample is drawn of.
        graven(maker, may_fail=maker.startswith("crash"))
    made = WORK / f"{name}.{given.form}"
    graven(f"plot {shown['plot']} --theme {given.theme} --out {made.name}")
    (given.to / made.name).write_bytes(made.read_bytes())
    return {}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the place and the look of pictures."""
    parser.add_argument("--to", type=Path, default=GALLERY, metavar="FOLDER")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--form", choices=("svg", "png"), default="svg")


CAMPAIGN = Campaign(lambda _: PICTURES, draw, options=options, repeats=lambda *_: True)
