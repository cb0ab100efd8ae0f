"""The profile by which `make optimised` builds the native module.

    python -m release.optimised FOLDER

The module is built so that it counts what it executes, and simulates every design on machines of
the papers: which branches are taken, which functions are called often. Built again by what was
counted, it simulates the same in less of the host's time. The next `make install` that finds a
changed source builds the usual module again.

Needed is `llvm-profdata` of rustc's own version of LLVM: `rustup component add llvm-tools`, or a
distribution's `llvm` package of the same number.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .building import ROOT, ReleaseError, run

PACKAGE = ROOT / "python" / "graven"
MODULE = "_engine.abi3.so"

MACHINES = ("morlog", "hoop", "silo", "lalea")
"""Machines of papers on which all designs are compared; that of FWB's refuses some."""

WORKLOADS = ("hash", "btree", "queue")


def merger(version: str, sysroot: Path) -> str:
    """Finds the program that merges what was counted, by what `rustc -vV` says.

    What one version of LLVM counts another does not read: only a program of rustc's is taken.

    Raises:
        ReleaseError: There is none.
    """
    said = dict(line.split(": ", 1) for line in version.splitlines() if ": " in line)
    major = said["LLVM version"].partition(".")[0]
    own = sysroot / "lib" / "rustlib" / said["host"] / "bin" / "llvm-profdata"
    others = []
    for name in (str(own), f"llvm-profdata-{major}", "llvm-profdata"):
        if shutil.which(name):
            found = _major(name)
            if found == major:
                return name
            others.append(f"{name} is of LLVM {found}; ")
    raise ReleaseError(
        f"llvm-profdata of LLVM {major} is not installed: {''.join(others)}`rustup component add "
        f"llvm-tools`, or the distribution's package llvm-{major}"
    )


def _major(tool: str) -> str:
    """Returns the version of LLVM that a tool is of; nothing if it does not say."""
    version = re.search(r"LLVM version (\d+)", run(tool, "merge", "--version", folder=ROOT))
    return "" if version is None else version[1]


def commands() -> Iterator[tuple[str, ...]]:
    """Yields arguments of `graven` that are simulated while it is counted."""
    for machine in MACHINES:
        yield (
            *("compare", "--machine", machine, "--designs", "all"),
            *("--workloads", ",".join(WORKLOADS), "--transactions", "200"),
        )
    yield ("crash", "--design", "silo", "--workload", "btree", "--machine", "cramped")


def _counted(counts: Path, compiled: Path) -> None:
    """Builds the module that counts, and simulates with it."""
    flags = {**os.environ, "RUSTFLAGS": f"-Cprofile-generate={counts}"}
    build = ("cargo", "build", "--quiet", "--locked", "--release", "--package", "graven-native")
    run(*build, "--target-dir", compiled, folder=ROOT, environment=flags)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied = folder / "python" / "graven"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        shutil.copyfile(compiled / "release" / "lib_engine.so", copied / MODULE)
        here = {**os.environ, "PYTHONPATH": str(copied.parent)}
        for arguments in commands():
            print("graven", *arguments, flush=True)
            run(sys.executable, "-m", "graven", *arguments, folder=folder, environment=here)


def main(arguments: list[str]) -> int:
    """Makes the profile; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release.optimised")
    parser.add_argument("folder", type=Path, help="where it is compiled, and counts.profdata made")
    work = parser.parse_args(arguments).folder.resolve()
    counts = work / "counts"
    try:
        sysroot = Path(run("rustc", "--print", "sysroot", folder=ROOT).strip())
        merge = merger(run("rustc", "-vV", folder=ROOT), sysroot)
        shutil.rmtree(counts, ignore_errors=True)
        _counted(counts, work)
        run(merge, "merge", "--output", work / "counts.profdata", counts, folder=ROOT)
    except ReleaseError as error:
        print(f"not optimised: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
