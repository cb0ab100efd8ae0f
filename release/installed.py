"""The wheel in an environment of its own, and the tests on it, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from .building import Commit, copy_of, run

SELECTED = "not long and not checkout"
"""Tests that need neither minutes nor a package that is in its checkout."""


def environment(wheel: Path, root: Path, folder: Path) -> Path:
    """A new environment that has the wheel, with the versions that it is tested with.

    Returns:
        Its Python.
    """
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder, folder=root)
    python = folder / "bin" / "python"
    locks = ("requirements", "requirements-notebooks")
    versions = [word for lock in locks for word in ("--constraint", root / f"python/{lock}.lock")]
    package = f"graven[dev,notebooks,polars,xarray] @ {wheel.resolve().as_uri()}"
    quiet = ("--quiet", "--disable-pip-version-check")
    run(python, "-m", "pip", "install", *quiet, *versions, package, folder=root)
    run(python, "-m", "pip", "check", *quiet, folder=root)
    return python


def tested(python: Path, commit: Commit, folder: Path, workers: int) -> str:
    """Runs the tests of a commit, of which the package itself was removed, on what is installed.

    Returns:
        The line in which pytest says how many there were.
    """
    checkout = copy_of(commit, folder)
    shutil.rmtree(checkout / "python" / "graven")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    where = run(python, "-c", "import graven; print(graven.__file__)", folder=elsewhere).strip()
    assert str(python.parents[1]) in where, f"{where} is not in the environment"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    options = ("--quiet", "--numprocesses", str(workers), "--dist", "worksteal", "-m", SELECTED)
    words = (python, "-m", "pytest", *options, checkout / "python/tests")
    output = run(*words, folder=elsewhere, environment=clean)
    return output.splitlines()[-1]
