"""`python -m release [--rehearsal] [--quick] [--jobs N]`."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import building, checks
from .building import ROOT, Commit, ReleaseError, run

WORK = ROOT / "target" / "release-work"
"""Folder of what is built on the way; a second run begins with what was compiled in the first."""

CHECKSUMS = "SHA256SUMS"

SELECTED = "not long and not checkout"
"""Tests that need neither minutes nor a package that is in its checkout."""


def main(arguments: Sequence[str]) -> int:
    """Makes a release; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Makes a release.")
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="the changes may be under Unreleased; the folder is target/rehearsal-VERSION",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="build once: not from the source distribution, and no bytes are compared",
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes that test (2)")
    given = parser.parse_args(arguments)
    try:
        folder = _released(rehearsal=given.rehearsal, quick=given.quick, jobs=given.jobs)
    except ReleaseError as error:
        print(f"\nno release: {error}", file=sys.stderr)
        return 1
    print(f"\n{folder}:")
    print((folder / CHECKSUMS).read_text(encoding="utf-8"), end="")
    return 0


def _released(*, rehearsal: bool, quick: bool, jobs: int) -> Path:
    version = checks.version_of(ROOT)
    final = ROOT / "target" / f"{'rehearsal' if rehearsal else 'release'}-{version}"
    if final.exists():
        raise ReleaseError(f"{final} is there already; remove it to make it again")
    section = checks.UNRELEASED if rehearsal else version
    _refuse(list(checks.tree_problems(ROOT, section)))
    commit = Commit.current(ROOT)
    print(f"Graven {version}, commit {commit.name}", flush=True)
    files = _built(commit, WORK / "first")
    _check(files, version)
    if not quick:
        # In another folder, the wheel from the source distribution.
        again = _built(commit, WORK / "second/in/another", of=files[0])
        _refuse(checks.differences(files, again))
    print(f"  {_tested(files[1], commit, jobs)}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return _put(files, checks.changes(changes, section), final)


def _built(commit: Commit, folder: Path, of: Path | None = None) -> list[Path]:
    """Builds the source distribution, the wheel and the crates.

    Args:
        commit: What is built.
        folder: Where.
        of: The source distribution that the wheel is built from; nothing: the checkout, and each
            crate is compiled from its package.
    """
    dist = folder / "dist"
    sources = building.copy_of(commit, folder)
    shutil.rmtree(dist, ignore_errors=True)
    environment = building.environment(sources, folder / "compiled", commit)
    with _step("source distribution"):
        sdist = building.sdist(sources, dist, environment)
    with _step("crates" if of else "crates, each compiled from its package"):
        crates = building.crates(sources, commit, dist, environment, verified=of is None)
    with _step("plugin"):
        plugin = building.plugin(sources, environment)
    if of is not None:
        sources = building.unpacked(of, folder / "unpacked")
        environment = building.environment(sources, folder / "compiled", commit)
    with _step("wheel of the source distribution" if of else "wheel"):
        wheel = building.wheel(sources, plugin, dist, environment, locked=of is None)
    return [sdist, wheel, *crates]


def _check(files: Sequence[Path], version: str) -> None:
    """Refuses archives that are not as they must be."""
    sdist, wheel, *_ = files
    package, info = ROOT / "python", f"graven-{version}.dist-info"
    more = [f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"]
    more += [str(path.relative_to(package)) for path in package.rglob("graven/**/*.litmus")]
    found = [
        problem
        for file in files
        for problem in checks.archive_problems(file, more if file == wheel else ())
    ]
    _refuse([*found, *checks.wheel_problems(wheel, version, [ROOT, Path.home()])])
    run("twine", "check", "--strict", sdist, wheel, folder=WORK)


def _tested(wheel: Path, commit: Commit, jobs: int) -> str:
    """Installs the wheel in a new environment, and runs the commit's tests on it.

    The package itself is removed from the checkout of the tests.

    Returns:
        The line in which pytest says how many there were.
    """
    python, tests = WORK / "environment/bin/python", WORK / "tests"
    with _step("environment"):
        shutil.rmtree(WORK / "environment", ignore_errors=True)
        run(sys.executable, "-m", "venv", WORK / "environment", folder=ROOT)
        locks = ("requirements", "requirements-notebooks")
        versions = [word for lock in locks for word in ("--constraint", f"python/{lock}.lock")]
        package = f"graven[dev,notebooks,polars,xarray] @ {wheel.resolve().as_uri()}"
        quiet = ("--quiet", "--disable-pip-version-check")
        run(python, "-m", "pip", "install", *quiet, *versions, package, folder=ROOT)
        run(python, "-m", "pip", "check", *quiet, folder=ROOT)
    with _step("tests"):
        checkout = building.copy_of(commit, tests)
        shutil.rmtree(checkout / "python" / "graven")
        elsewhere = tests / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        where = run(python, "-c", "import graven; print(graven.__file__)", folder=elsewhere).strip()
        assert str(WORK / "environment") in where, f"{where} is not in the environment"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        options = ("--quiet", "--numprocesses", str(jobs), "--dist", "worksteal", "-m", SELECTED)
        words = (python, "-m", "pytest", *options, checkout / "python/tests")
        return run(*words, folder=elsewhere, environment=clean).splitlines()[-1]


def _put(files: Sequence[Path], changes: str, final: Path) -> Path:
    """Puts the files, their checksums and the changes into a folder, all at once."""
    partial = final.with_name(f"{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, partial / file.name)
    (partial / "CHANGES.md").write_text(f"{changes}\n", encoding="utf-8")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(partial.iterdir())
    ]
    (partial / CHECKSUMS).write_text("".join(sums), encoding="utf-8")
    return partial.rename(final)


@contextmanager
def _step(name: str) -> Iterator[None]:
    begun = time.monotonic()
    print(f"  {name} …", end="", flush=True)
    yield
    print(f" {time.monotonic() - begun:.0f} s", flush=True)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise ReleaseError("\n".join(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
