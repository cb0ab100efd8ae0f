"""Fixtures: the command in this process and in others, on the engine with `engine_hook`."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
# Campaigns, which tests import, are beside the package, wherever the tests run.
sys.path.append(str(HERE.parents[1]))

import engine_hook  # noqa: E402
from capturing import (  # noqa: E402, F401 - fixtures
    captured,
    command,
    for_arm,
    programs,
    proven,
    tools,
    tools_for_arm,
)

import graven as package  # noqa: E402
from graven.results.record import Record  # noqa: E402

engine_hook.install()

# A run in the background, or under nohup, may ignore signals, which its children would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_STORES = tempfile.TemporaryDirectory(prefix="graven-tests-")

# Simulations all take equally long: they begin in the order in which they are asked for.
os.environ["GRAVEN_PACES"] = str(HERE / "paces.csv")

PACKAGE = Path(package.__file__).parent
"""Of the code that is tested: in the checkout, or installed."""

TERMINAL = {"NO_COLOR": "1", "COLUMNS": "100"}

ENVIRONMENT = {**os.environ, **TERMINAL, "PYTHONPATH": str(HERE.parent)}

ENVIRONMENT.pop("GRAVEN_STORE", None)
# What fixtures of modules keep; a test has a store of its own.
os.environ["GRAVEN_STORE"] = str(Path(_STORES.name) / "store")


@pytest.fixture(autouse=True)
def _store_of_its_own(tmp_path, monkeypatch):
    """No test finds what another has kept, wherever it runs."""
    monkeypatch.setenv("GRAVEN_STORE", str(tmp_path / "graven-results" / "store"))


def python(*words, cwd=None, **environment):
    """Runs Python with these words, on the package that is tested, to its end."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def separate(tmp_path):
    """The command in a process of its own, in an empty folder."""
    return functools.partial(python, "-m", "graven", cwd=tmp_path)


@pytest.fixture
def quick(tmp_path, monkeypatch, capsys):
    """The command in this process, in an empty folder."""
    from graven.cli import execute

    def call(*arguments, cwd=tmp_path, **environment):
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            patch.setattr(sys, "argv", ["graven", *arguments])
            patch.delenv("GRAVEN_STORE")
            for name, value in {**TERMINAL, **environment}.items():
                patch.setenv(name, value)
            capsys.readouterr()
            try:
                code = execute()
            except SystemExit as ended:  # what completes words for a shell
                code = ended.code
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return call


@pytest.fixture
def unhooked():
    """The engine as users have it, with sizes and papers of its own."""
    engine_hook.remove()
    yield
    engine_hook.install()


@pytest.fixture
def real(unhooked, quick):  # noqa: ARG001
    """The command in this process on the engine as users have it."""
    return quick


def start(cwd, *arguments, **environment):
    """A process of the command with faults, which goes on meanwhile."""
    return subprocess.Popen(
        [sys.executable, HERE / "engine_hook.py", *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def waits(folder, design="silo"):
    """The faults of a design that takes a minute, and leaves a file when it begins."""
    return {"FAULT_SECONDS": "60", "FAULT_SLOW": design, "FAULT_STARTED": str(folder)}


def stopped(process, started, number, code):
    """The output of a process that a signal stops once a file is there."""
    await_file(started)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    return out, errors


def record(design, workload, stats, **more):
    """A result with figures that a test makes up."""
    usual = {"machine": "silo", "threads": 8, "transactions": 100, "seed": 1, "version": ""}
    safe = design != "ideal"
    return Record(design, workload, stats=stats, **{**usual, "safe": safe, "config": {}, **more})


LITMUS = """graven litmus 1
title "a word"
design silo
violates ideal

A = 1

thread
  begin
  A = 2
  commit
"""
"""The least program: the sound design keeps its word, and the one without persistence does not."""


OUT_OF_TREE = HERE.parent.parent / "target/out-of-tree"
"""Where crates are built that are outside the workspace: what they depend on is compiled once."""


@pytest.fixture
def out_of_tree():
    """That folder, for one test at a time: Cargo holds it only while it builds."""
    OUT_OF_TREE.mkdir(parents=True, exist_ok=True)
    with (OUT_OF_TREE / ".tests").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield OUT_OF_TREE


@pytest.fixture(scope="session")
def comparison():
    """Three designs on two workloads."""
    return package.compare("ideal,base,silo", "array,btree", transactions=100, store=None)


def await_file(path, seconds=60):
    """Waits for another process to get somewhere."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.02)


def documents(text):
    """A JSON list, read strictly: a NaN is not JSON."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="session")
def environment():
    """Of other processes that import Graven."""
    return ENVIRONMENT


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory):
    """A folder of papers' results, which examples and notebooks share."""
    return tmp_path_factory.mktemp("reproduced")


@pytest.fixture(scope="module")
def browser():
    """A real browser; what needs one is left out where there is none."""
    from browsers import launched

    with launched() as found:
        yield found
