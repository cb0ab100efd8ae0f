"""Jobs that Slurm takes and forgets, with stand-ins for its commands."""

from __future__ import annotations

import os
import sys

import pytest

from graven.api.sweeps import Sweep
from graven.executors import slurm
from graven.executors.slurm import Slurm
from graven.store import Store
from graven.store.keeper import Keeper

SWEEP = """
designs = ["silo"]
workloads = ["array"]
transactions = 10
from_start = true
seeds = [1, 2]
"""

SBATCH = """\
#!{python}
# Takes arrays, forgets the first {forgets}, and runs the elements of later ones at once.
import os, pathlib, shlex, subprocess, sys

taken = pathlib.Path({folder!r}) / "taken"
count = len(taken.read_text()) if taken.exists() else 0
taken.write_text("." * (count + 1))
print(count)
if count >= {forgets}:
    words = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    first, last = words["--array"].split("-")
    for element in range(int(first), int(last) + 1):
        with open(words["--output"].replace("%a", str(element)), "a") as log:
            environment = {{**os.environ, "SLURM_ARRAY_TASK_ID": str(element)}}
            {begins}
"""

RUNS = "subprocess.run(shlex.split(words['--wrap'])[1:], env=environment, stdout=log)"


@pytest.fixture
def slurm_that(tmp_path, monkeypatch):
    """Puts commands in the path: a Slurm that forgets arrays, and whose queue is always empty."""

    def made(forgets, begins=RUNS):
        folder = tmp_path / "bin"
        folder.mkdir()
        python = f"{sys.executable} -S" if begins != RUNS else sys.executable
        (folder / "sbatch").write_text(
            SBATCH.format(python=python, folder=str(tmp_path), forgets=forgets, begins=begins)
        )
        for name in ("squeue", "scancel", "scontrol"):
            (folder / name).write_text("#!/bin/sh\n")
        for file in folder.iterdir():
            file.chmod(0o755)
        monkeypatch.setattr(slurm, "AGAIN_SECONDS_MOST", 0.05)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return Slurm(look_seconds=0.01)

    return made


def completed(executor, tmp_path):
    sweep = Sweep.parse(SWEEP, "s.toml", tmp_path)
    return sweep.complete(Keeper(Store(tmp_path / "store")), executor, None)


def test_what_slurm_forgets_before_it_begins_is_submitted_until_it_begins(slurm_that, tmp_path):
    """More often than a simulation that has begun may be lost."""
    done = completed(slurm_that(forgets=2 * slurm.TRIES), tmp_path)
    assert not done.ended.failures
    assert done.came == 2


def test_what_slurm_never_begins_is_given_up_after_a_time(slurm_that, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "BEGIN_SECONDS", 0.2)
    done = completed(slurm_that(forgets=10**6), tmp_path)
    assert len(done.ended.failures) == 2
    for failure in done.ended.failures:
        assert "Slurm has taken it" in failure.message
        assert "never begun it" in failure.message


def test_what_ends_each_time_that_it_has_begun_is_given_up_after_some(slurm_that, tmp_path):
    done = completed(slurm_that(forgets=0, begins="log.write('killed')"), tmp_path)
    assert len(done.ended.failures) == 2
    for failure in done.ended.failures:
        assert f"it was begun {slurm.TRIES} times and lost each time" in failure.message
