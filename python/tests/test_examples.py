"""The examples run, cell by cell, on the real engine."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import HERE, _command

EXAMPLES = HERE.parent.parent / "examples"

RUN = """
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
assert [report.verdict for report in reports] == ["violated", "kept"]
"""


@pytest.mark.usefixtures("real_engine")
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_runs_from_its_first_cell_to_its_last(name, tmp_path):
    done = _command(["-c", RUN])(str(EXAMPLES / name), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_was_run_and_speaks_of_no_machine(name):
    text = (EXAMPLES / name).read_text()
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(cells) + 1))
    assert "/home/" not in text
    assert "/work/" not in text


@pytest.mark.parametrize("name", ["proteus", "skip-list"])
def test_the_lock_file_of_a_crate_is_current(name):
    """It lists the crates of this checkout, too, whose dependencies change."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=EXAMPLES / name, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.checkout
@pytest.mark.parametrize(("kind", "name"), [("design", "proteus"), ("workload", "skip-list")])
def test_a_crate_has_the_layout_that_graven_new_writes(graven, tmp_path, kind, name):
    done = graven("new", kind, name)
    assert done.returncode == 0, done.stderr
    written = {
        path.relative_to(tmp_path) for path in (tmp_path / name).rglob("*") if path.is_file()
    }
    for path in written:
        assert (EXAMPLES / path).is_file(), path
    crates = (EXAMPLES.parent / "crates").as_posix()
    for file in ["Cargo.toml", "pyproject.toml", ".gitignore"]:
        text = (tmp_path / name / file).read_text().replace(crates, "../../crates")
        assert (EXAMPLES / name / file).read_text() == text
