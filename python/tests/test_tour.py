"""`graven tour`: every step runs, it stops when it is told to, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import ENVIRONMENT

from graven.cli.tour import STEPS


def toured(*words, answers="", cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "graven", "tour", *words],
        input=answers, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


def test_every_step_of_the_tour_runs(tmp_path):
    done = toured("--yes", "--into", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for step in STEPS:
        assert f"$ {step.command}" in done.stdout
    for text in ("What silo did", "relative to base", "kept", "VIOLATED", "That was it"):
        assert text in done.stdout
    assert {"throughput.pdf", "throughput.csv"} <= names(tmp_path / "kept")
    assert names(tmp_path) == {"kept"}


@pytest.mark.parametrize("answers", ["\nq\n", "\n"])
def test_it_stops_when_it_is_told_to_or_nobody_answers(tmp_path, answers):
    before = names(tempfile.gettempdir())
    done = toured(answers=answers, cwd=tmp_path)
    assert done.returncode == 0
    assert "btree" in done.stdout, "the first command has run"
    assert "What silo did" not in done.stdout, "the second has not"
    assert "That was it" not in done.stdout
    assert names(tmp_path) == set()
    left = names(tempfile.gettempdir()) - before
    assert not [name for name in left if name.startswith("graven-tour-")]
