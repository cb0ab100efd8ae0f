"""The notebooks in examples/, run by Jupyter's own machinery, on the real engine."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HERE

REQUIRED = os.environ.get("GRAVEN_NOTEBOOKS") == "required"
EXAMPLES = HERE.parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
PAGES = (
    "README.md",
    "docs/tutorials/start.md",
    "docs/guides/comparing.md",
    "docs/guides/plots.md",
    "docs/guides/sweeps.md",
)
"""Pages with code of Python."""

NEEDED = {
    "dask": lambda: importlib.util.find_spec("distributed") is not None,
    "qemu": lambda: shutil.which("qemu-x86_64") is not None and shutil.which("cc") is not None,
    "cargo": lambda: (
        shutil.which("cargo") is not None and importlib.util.find_spec("maturin") is not None
    ),
}
"""What notebooks need beside the package, by what their metadata calls it."""

LONG = {"capture", "claim", "design"}
"""Notebooks that take more than a minute."""

FIGURES = {"claim"}
"""Notebooks that have papers' figures simulated, as pages of the documentation have."""


@pytest.fixture
def machinery(monkeypatch):
    if not REQUIRED:
        pytest.importorskip("nbclient")
        pytest.importorskip("ipykernel")
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    from campaigns import notebooks

    return notebooks


def of(name):
    """A notebook as it is in its file."""
    return json.loads((EXAMPLES / f"{name}.ipynb").read_text())


def needs_of(name):
    return of(name)["metadata"]["graven"]["needs"]


def marked(name):
    marks = [pytest.mark.long] if name in LONG else []
    if name in FIGURES:
        marks.append(pytest.mark.xdist_group("figures"))
    # A crate depends on those of the checkout.
    if "cargo" in needs_of(name):
        marks += [pytest.mark.checkout, pytest.mark.xdist_group("out-of-tree")]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_a_notebook_gives_what_is_in_it(machinery, name, tmp_path, monkeypatch, request):
    if "cargo" in needs_of(name):
        monkeypatch.setenv("CARGO_TARGET_DIR", str(request.getfixturevalue("out_of_tree")))
    if name in FIGURES:
        (tmp_path / "graven-results").mkdir()
        reproduced = request.getfixturevalue("reproduced")
        (tmp_path / "graven-results" / "reproduce").symlink_to(reproduced)
    path = EXAMPLES / f"{name}.ipynb"
    kept = machinery.nbformat.read(path, as_version=4)
    for need in needs_of(name):
        if not NEEDED[need]() and not REQUIRED:
            pytest.skip(f"{name} needs {need}")
    found = machinery.executed(path, tmp_path)
    assert machinery.came_out(found) == machinery.came_out(kept)


@pytest.mark.parametrize("name", [name for name in NAMES if needs_of(name)])
def test_a_notebook_says_at_once_what_is_missing(name, tmp_path):
    """Where there are neither programs nor packages beyond Graven's."""
    [first, *_] = [cell for cell in of(name)["cells"] if cell["cell_type"] == "code"]
    without = "import sys\nsys.modules.update(distributed=None, maturin=None)\n"
    done = subprocess.run(
        [sys.executable, "-c", without + "".join(first["source"])],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "this notebook needs " in done.stderr
    assert "install" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_was_run_and_speaks_of_no_machine(name):
    text = (EXAMPLES / f"{name}.ipynb").read_text()
    cells = [cell for cell in of(name)["cells"] if cell["cell_type"] == "code"]
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(cells) + 1))
    assert "/home/" not in text
    assert "/work/" not in text
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert pictures or name in ("capture", "powerfail")


def codes():
    """The code of notebooks, and of pages, by the name of a module for it."""
    for name in NAMES:
        code = ["".join(c["source"]) for c in of(name)["cells"] if c["cell_type"] == "code"]
        yield f"notebook_{name}", "\n".join(code)
    for name in PAGES:
        text = (EXAMPLES.parent / name).read_text()
        code = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        yield f"page_{Path(name).stem}", "\n".join(code)


@pytest.fixture
def modules(tmp_path):
    for name, code in codes():
        (tmp_path / f"{name}.py").write_text(code + "\n")
    return tmp_path


@pytest.mark.checkout
def test_mypy_understands_the_examples(modules):
    config = EXAMPLES.parent / "pyproject.toml"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        config,
        *modules.iterdir(),
    ]
    done = subprocess.run(command, cwd=modules, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.checkout
def test_pyright_understands_the_examples(modules):
    if not REQUIRED:
        pytest.importorskip("basedpyright")
    command = [sys.executable, "-m", "basedpyright", "--level", "error", modules]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=modules, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_needs_no_package_that_the_command_does_not(name):
    """Who has installed the package has none of these, unless they ask for them."""
    sources = ("".join(cell["source"]) for cell in of(name)["cells"] if cell["cell_type"] == "code")
    code = "\n".join(sources)
    for optional in ("pandas", "polars", "xarray"):
        assert f"to_{optional}(" not in code
        assert f"import {optional}" not in code
