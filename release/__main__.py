"""`python -m release [--rehearsal] [--quick] [--jobs N]`."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import agreement, archives, building, installed, wheels
from .building import ROOT, Commit
from .problems import ReleaseError

WORK = ROOT / "target" / "release-work"
"""What is built on the way; a second run begins with what was compiled in the first."""

CHECKSUMS = "SHA256SUMS"


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
    version = agreement.version_of(ROOT)
    final = ROOT / "target" / f"{'rehearsal' if rehearsal else 'release'}-{version}"
    if final.exists():
        raise ReleaseError(f"{final} is there already; remove it to make it again")
    _refuse(agreement.problems(ROOT, rehearsal=rehearsal))
    commit = Commit.current(ROOT)
    print(f"Graven {version}, commit {commit.name}", flush=True)
    made = _first(commit, version)
    if not quick:
        _second(commit, made)
    with _step("environment"):
        python = installed.environment(made.wheel, ROOT, WORK / "environment")
    with _step("tests"):
        summary = installed.tested(python, commit, WORK / "tests", jobs)
    print(f"  {summary}")
    return _put(made.files(), agreement.changes_of(ROOT, version, rehearsal=rehearsal), final)


@dataclass(frozen=True)
class _Made:
    """The files of a release, as the first build makes them."""

    sdist: Path
    wheel: Path
    crates: list[Path]

    def files(self) -> list[Path]:
        return [self.sdist, self.wheel, *self.crates]


def _first(commit: Commit, version: str) -> _Made:
    """Builds everything from a checkout of the commit, and checks it."""
    folder, dist = WORK / "first", WORK / "first" / "dist"
    sources = building.copy_of(commit, folder)
    shutil.rmtree(dist, ignore_errors=True)
    environment = building.environment(sources, folder / "compiled", commit)
    with _step("source distribution"):
        sdist = building.sdist(sources, dist, environment)
    _refuse(archives.sdist_problems(sdist, version))
    with _step("crates, each compiled from its package"):
        crates = building.crates(sources, commit, dist, environment, verified=True)
    _refuse([problem for crate in crates for problem in archives.crate_problems(crate)])
    with _step("plugin"):
        plugin = building.plugin(sources, environment)
    with _step("wheel"):
        wheel = building.wheel(sources, plugin, dist, environment, locked=True)
    _refuse(wheels.problems(wheel, version, sources / "litmus"))
    _refuse(wheels.native_problems(wheel, [ROOT, Path.home()]))
    for file in (sdist, wheel):
        building.run("twine", "check", "--strict", file, folder=dist, environment=environment)
    return _Made(sdist, wheel, crates)


def _second(commit: Commit, first: _Made) -> None:
    """Builds everything again in another folder, the wheel from the source distribution."""
    folder = WORK / "second" / "in" / "another"
    dist = folder / "dist"
    sources = building.copy_of(commit, folder)
    shutil.rmtree(dist, ignore_errors=True)
    environment = building.environment(sources, folder / "compiled", commit)
    with _step("source distribution again"):
        sdist = building.sdist(sources, dist, environment)
    with _step("crates again"):
        crates = building.crates(sources, commit, dist, environment, verified=False)
    with _step("plugin again"):
        plugin = building.plugin(sources, environment)
    unpacked = building.unpacked(first.sdist, folder / "unpacked")
    environment = building.environment(unpacked, folder / "compiled", commit)
    with _step("wheel of the source distribution"):
        wheel = building.wheel(unpacked, plugin, dist, environment, locked=False)
    _refuse(differences(first.files(), [sdist, wheel, *crates]))


def differences(first: Sequence[Path], second: Sequence[Path]) -> list[str]:
    """In what two builds differ, by the names of files and their bytes."""
    ours, theirs = ({path.name: path for path in files} for files in (first, second))
    found = [f"{name} was built once only" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name].read_bytes() != theirs[name].read_bytes():
            found.append(f"{ours[name]} and {theirs[name]} differ: the build is not reproducible")
    return found


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
