"""The wheel, in an environment of its own: what its users have, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.long, pytest.mark.checkout, pytest.mark.xdist_group("wheel")]


def done(*words, cwd, **environment):
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    pip = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    came = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**kept, **pip, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert came.returncode == 0, came.stderr or came.stdout
    return came.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """As `pip wheel .` builds it at the root; with what was compiled before."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).with_name("maturin")
    words = (maturin, "build", "--release", "--locked", "--out", folder)
    done(*words, cwd=ROOT, **{key: v for key, v in os.environ.items() if key.startswith("CARGO")})
    [found] = folder.glob("graven-*.whl")
    return found


@pytest.fixture(scope="module")
def program(wheel, tmp_path_factory):
    """The command of an environment that has the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("environment")
    done(sys.executable, "-m", "venv", folder, cwd=folder)
    done(folder / "bin" / "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "bin" / "graven"


def test_the_wheel_is_for_every_python_from_3_11_on_and_has_every_litmus_program(wheel):
    assert wheel.name.startswith("graven-")
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    programs = [file.relative_to(ROOT / "litmus") for file in ROOT.glob("litmus/**/*.litmus")]
    assert len(programs) > 50
    assert {f"graven/laboratory/litmus_programs/{file.as_posix()}" for file in programs} <= names
    assert "graven/_engine.abi3.so" in names


def test_the_wheel_simulates_crashes_and_reproduces(program, tmp_path):
    few = ("--transactions", "100", "--from-start")
    compared = done(
        program, "compare", "--designs", "base,silo", "--workloads", "hash", *few,
        "--format", "json", "--report", "report.html", cwd=tmp_path,
    )  # fmt: skip
    assert [item["design"] for item in json.loads(compared)] == ["base", "silo"]
    assert (tmp_path / "report.html").stat().st_size > 10_000
    crash = ("crash", "--design", "silo", "--workload", "hash", "--machine", "cramped")
    assert "kept" in done(program, *crash, "--transactions", "10", cwd=tmp_path)
    assert "all as expected" in done(program, "litmus", "any", cwd=tmp_path)
    done(program, "results", "verify", cwd=tmp_path)
    assert "silo" in done(program, "reproduce", "silo", "fig4", "--quick", cwd=tmp_path)


def test_another_folder_with_the_wheel_is_not_the_checkout(program, tmp_path):
    python = program.with_name("python")
    where = done(python, "-c", "import graven; print(graven.__file__)", cwd=tmp_path)
    assert str(program.parents[1]) in where
