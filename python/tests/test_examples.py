"""The crates among the examples; the notebooks have tests of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import HERE

EXAMPLES = HERE.parent.parent / "examples"


@pytest.mark.parametrize("name", ["proteus", "hops", "bbb", "atom", "picl", "skip-list"])
def test_the_lock_file_of_a_crate_is_current(name):
    """It lists the crates of this checkout, too, whose dependencies change."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=EXAMPLES / name, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.checkout
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("design", "proteus"),
        ("design", "hops"),
        ("design", "bbb"),
        ("design", "atom"),
        ("design", "picl"),
        ("workload", "skip-list"),
    ],
)
def test_a_crate_has_the_layout_that_graven_new_writes(quick, tmp_path, kind, name):
    done = quick("new", kind, name)
    assert done.returncode == 0, done.stderr
    written = {
        path.relative_to(tmp_path) for path in (tmp_path / name).rglob("*") if path.is_file()
    }
    for path in written:
        assert (EXAMPLES / path).is_file(), path
    crates = Path(os.path.relpath(EXAMPLES.parent / "crates", tmp_path / name)).as_posix()
    for file in ["Cargo.toml", "pyproject.toml", ".gitignore"]:
        text = (tmp_path / name / file).read_text().replace(crates, "../../crates")
        assert (EXAMPLES / name / file).read_text() == text
