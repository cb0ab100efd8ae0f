"""A copied checkout says that it is one, and `make install` sets it up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from graven.engine.checkout import foreign

ROOT = Path(__file__).parents[2]


@pytest.fixture
def original(tmp_path):
    """A checkout with its environment, as far as it is looked at."""
    folder = tmp_path / "original"
    packages = folder / ".venv/lib/site-packages"
    for path in (folder / "python/graven", packages, folder / ".venv/bin"):
        path.mkdir(parents=True)
    (folder / "python/graven/__init__.py").touch()
    (folder / ".venv/bin/graven").touch()
    (folder / ".venv/pyvenv.cfg").write_text(f"command = python -m venv {folder}/.venv\n")
    (packages / "graven.pth").write_text(f"{folder}/python\n")
    return folder


def asked(script, of, code):
    return foreign(script, of / ".venv", code / "python", of / ".venv/lib/site-packages")


def test_a_checkout_runs_its_own_code(original, tmp_path):
    link = tmp_path / "bin" / "graven"
    link.parent.mkdir()
    link.symlink_to(original / ".venv/bin/graven")
    (tmp_path / "linked").symlink_to(original)
    inside = (".venv/bin/graven", "python/graven/__main__.py")
    scripts = [link, tmp_path / "linked/.venv/bin/graven", Path("-c"), Path("/x"), None]
    for script in (*scripts, *(original / name for name in inside)):
        assert asked(script, original, original) is None


def test_what_the_users_path_leads_to_is_meant(original, tmp_path):
    other = tmp_path / "other"
    (other / "python").mkdir(parents=True)
    assert asked(original / ".venv/bin/pytest", original, other) is None


def test_the_script_of_a_copy_says_that_it_is_one(original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    said = asked(copy / ".venv/bin/graven", original, original)
    assert said == (
        f"{copy} has been copied or moved from {original}, whose code this would run; "
        f"`make install` in {copy} sets it up"
    )


def test_python_of_a_copy_says_that_it_is_one(original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    for script in (original / "python/graven/__main__.py", Path("/x"), None):
        assert asked(script, copy, original) is not None
    (copy / ".venv/lib/site-packages/graven.pth").write_text(f"{copy}/python\n")
    assert asked(copy / ".venv/bin/graven", copy, copy) is None, "it has been set up"


def test_an_installed_package_is_no_copy(tmp_path):
    packages = tmp_path / "env/lib/site-packages"
    (packages / "graven").mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").touch()
    assert foreign(tmp_path / "env/bin/graven", tmp_path / "env", packages, packages) is None


def test_make_sets_up_a_copy_and_leaves_a_checkout_alone(original, tmp_path):
    for name in ("Makefile", "Cargo.toml", "Cargo.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, original)
    (original / "python/Cargo.toml").touch()
    (original / "python/requirements.lock").touch()
    for name in (".python", ".requirements", ".installed"):
        (original / ".venv" / name).touch()
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)

    def makes(folder):
        done = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", ".venv/.requirements"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return "venv --clear" in done.stdout

    assert not makes(original)
    assert makes(copy)
