"""`graven tour`: two minutes with the program, step by step."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

import click

from graven.basics import signals
from graven.cli.terminal import complain, note

WIDTH = 78

HELP = """Show in two minutes what Graven does: nine commands, each with a few words before it.

Every step says what comes, runs a command, and waits for Enter (or `q`, to stop). Nothing is left
behind: the commands run in a folder of their own, which is removed at the end, unless --into names
one.

\b
Examples:
  graven tour
  graven tour --yes                          without waiting
  graven tour --into tour                    and keep what the commands write
"""


@dataclass(frozen=True)
class Step:
    """A few words, and the command that shows it."""

    words: str
    command: str


STEPS = (
    Step(
        "Graven simulates computers with persistent memory whose hardware keeps transactions crash "
        "consistent, design by design. These are the workloads that designs run: real data "
        "structures, with their nodes and pointers in simulated memory.",
        "graven list workloads",
    ),
    Step(
        "One simulation: Silo, whose log is in the memory controller, on a B-tree. The first lines "
        "say what the design did, then comes the machine, statistic by statistic, with units.",
        "graven run --design silo --workload btree --transactions 2000",
    ),
    Step(
        "Several designs on several workloads, relative to the baseline. What is measured is a "
        "region in steady state: caches are full, scans have come round, and windows are added "
        "until their interval is narrow. Results are kept in a store; whatever asks for the same "
        "simulations again finds them there.",
        "graven compare --designs base,fwb,silo --workloads btree,hash --no-report",
    ),
    Step(
        "Mind what is measured. FWB writes caches back every 3 million cycles. A whole run of "
        "10,000 transactions from empty caches on ends before the first time, so that writes "
        "which are still to come cost it nothing. Papers often measure such runs; the last lines "
        "count what is left to write. The same hash table:",
        "graven compare --designs base,fwb,silo --workloads hash --from-start --transactions 10000 "
        "--metrics throughput_tx_per_s --no-report",
    ),
    Step(
        "A figure for a paper, from the results before these: nothing is simulated. The data are "
        "beside it, as CSV.",
        "graven plot bars --designs base,fwb,silo --workloads btree,hash --out throughput.pdf",
    ),
    Step(
        "Now the crash laboratory. Power fails at every change of the durable state of a run; "
        "recovery has nothing but the surviving bytes; a checker that knows only what was stored "
        "and acknowledged says whether the promise was kept. Silo keeps it:",
        "graven crash --design silo --workload hash --machine cramped --transactions 20",
    ),
    Step(
        "The text of the paper taken literally loses data. The program that shows it is made as "
        "small as it gets, and the timeline says who did what. It ends with exit code 1.",
        "graven adversary --design silo-literal --schedules 1000",
    ),
    Step(
        "The papers themselves: each figure with the paper's numbers beside ours, and a verdict on "
        "each claim. This is one of Silo's, at small sizes.",
        "graven reproduce silo fig4 --quick",
    ),
    Step(
        "What hardware costs, derived from the configuration and beside what the paper prints.",
        "graven cost silo",
    ),
)

END = """That was it. `graven --help` has all commands, `graven COMMAND --help` examples of each.
A design of your own begins with `graven new design my-log`; a program of yours, as it is, with
`graven capture`."""


@click.command(help=HELP)
@click.option("--yes", is_flag=True, help="Do not wait between steps.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Run the commands there, and leave what they write.",
)
def tour(yes: bool, into: Path | None) -> int:
    """Goes through the steps."""
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        return _through(into, wait=not yes)
    with tempfile.TemporaryDirectory(prefix="graven-tour-") as folder:
        return _through(Path(folder), wait=not yes)


def _through(folder: Path, *, wait: bool) -> int:
    for number, step in enumerate(STEPS, 1):
        print(f"\n{number} of {len(STEPS)}. ", end="")
        print(textwrap.fill(step.words, WIDTH).replace("\n", "\n   "))
        print(f"\n   $ {step.command}\n", flush=True)
        if wait and not _goes_on():
            return 0
        words = shlex.split(step.command)[1:]
        done = subprocess.run([sys.executable, "-m", "graven", *words], cwd=folder, check=False)
        if done.returncode in (signals.INTERRUPTED, -2):
            return signals.INTERRUPTED
        if done.returncode not in (0, 1):
            complain(f"`{step.command}` ended with exit code {done.returncode}")
            return 1
    print(f"\n{END}")
    return 0


def _goes_on() -> bool:
    """Whether to run the next command: Enter runs it, `q` or the end of the input stops."""
    note("Enter runs it, q stops")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() not in ("q", "quit", "exit")
