"""Fixtures. Here `graven._engine` is always the stand-in; the real one runs in other processes."""

from __future__ import annotations

import fcntl
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

import fake_engine  # noqa: E402

fake_engine.install()

from capturing import (  # noqa: E402, F401 - fixtures
    captured,
    command,
    for_arm,
    programs,
    proven,
    service,
    tools,
    tools_for_arm,
)

import graven as package  # noqa: E402

# A run in the background, or under nohup, may ignore signals, which its children would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_STORES = tempfile.TemporaryDirectory(prefix="graven-tests-")

# Simulations all take equally long: they begin in the order in which they are asked for.
os.environ["GRAVEN_PACES"] = str(HERE / "paces.csv")

PACKAGE = Path(package.__file__).parent
"""Of the code that is tested: in the checkout, or installed."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parent), "NO_COLOR": "1", "COLUMNS": "100"}

ENVIRONMENT.pop("GRAVEN_STORE", None)
# What fixtures of modules keep; a test has a store of its own.
os.environ["GRAVEN_STORE"] = str(Path(_STORES.name) / "store")


@pytest.fixture(autouse=True)
def _store_of_its_own(tmp_path, monkeypatch):
    """No test finds what another has kept, wherever it runs."""
    monkeypatch.setenv("GRAVEN_STORE", str(tmp_path / "graven-results" / "store"))


def _command(program):
    def call(*arguments, cwd, **environment):
        return subprocess.run(
            [sys.executable, *program, *arguments],
            cwd=cwd,
            env={**ENVIRONMENT, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture
def graven(tmp_path):
    """The command on the stand-in engine, in an empty folder."""
    call = _command([str(HERE / "fake_graven.py")])
    return lambda *arguments, cwd=tmp_path, **env: call(*arguments, cwd=cwd, **env)


@pytest.fixture
def quick(tmp_path, monkeypatch, capsys):
    """The same as `graven`, in this process: for what does not signal or need a terminal."""
    from graven.cli import execute

    def call(*arguments, cwd=tmp_path, **environment):
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            patch.setattr(sys, "argv", ["graven", *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            capsys.readouterr()
            code = execute()
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return call


def _real_engine_has_designs():
    script = "import graven; raise SystemExit(not graven.catalogue().designs)"
    return _command(["-c", script])(cwd=HERE).returncode == 0


@pytest.fixture(scope="session")
def real_engine():
    """Skips unless the native module is there and knows a design."""
    if not _real_engine_has_designs():
        pytest.skip("the native module is not installed")


@pytest.fixture
def real(request, tmp_path):
    """The command on the real engine, in an empty folder."""
    request.getfixturevalue("real_engine")
    call = _command(["-m", "graven"])
    return lambda *arguments, cwd=tmp_path, **env: call(*arguments, cwd=cwd, **env)


OUT_OF_TREE = HERE.parent.parent / "target/out-of-tree"
"""Where crates are built that are outside the workspace: what they depend on is compiled once."""


@pytest.fixture
def out_of_tree():
    """That folder, for one test at a time: Cargo holds it only while it builds."""
    OUT_OF_TREE.mkdir(parents=True, exist_ok=True)
    with (OUT_OF_TREE / ".tests").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield OUT_OF_TREE


@pytest.fixture
def comparison():
    """All designs of the stand-in on two workloads."""
    import graven

    return graven.compare("ideal,base,silo", "array,btree", transactions=100)


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


@pytest.fixture(scope="module")
def browser():
    """A real browser; what needs one is left out where there is none."""
    from browsers import launched

    with launched() as found:
        yield found
