"""Building of a release: a copy of the commit, an environment, cargo and maturin.

Two builds of one commit give the same bytes, wherever they run: times are the commit's, and paths
of the folder and of cargo's are replaced by fixed ones.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

TARGET = f"{platform.machine()}-unknown-linux-gnu"

GLIBC = "2.17"
"""The oldest C library that the native code runs with; zig links it for that."""

PLUGIN = "python/graven/_capture.so"
"""Place of the plugin that captures programs in the package."""


class ReleaseError(Exception):
    """Keeps a release from being made; says what is wrong, where, and what is allowed."""


def run(*words: str | Path, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Runs a command; returns what it printed.

    Raises:
        ReleaseError: It failed; the message has the command, the folder and the end of its output.
    """
    variables = dict(os.environ if environment is None else environment)
    # The release's own tools, zig and maturin among them, are beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
    program = shutil.which(str(words[0]), path=path)
    if program is None:
        raise ReleaseError(f"{words[0]} is not installed; `make release` installs what is needed")
    done = subprocess.run(
        [program, *map(str, words[1:])],
        cwd=folder,
        env={**variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        command = " ".join(map(str, words))
        raise ReleaseError(f"{command} in {folder} failed ({done.returncode}):\n{last}")
    return done.stdout


@dataclass(frozen=True)
class Commit:
    """Commit that is released."""

    name: str
    time: int
    """Seconds since 1970."""

    @classmethod
    def current(cls, root: Path) -> Commit:
        """Returns the one that is checked out."""
        name, time = run("git", "log", "-1", "--format=%H %ct", folder=root).split()
        return cls(name, int(time))


def copy_of(commit: Commit, folder: Path) -> Path:
    """Checks a commit out, anew; what was compiled for it before stays beside it."""
    checkout = folder / "graven"
    shutil.rmtree(checkout, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    run("git", "clone", "--quiet", "--no-checkout", ROOT, checkout, folder=folder)
    run("git", "checkout", "--quiet", "--detach", commit.name, folder=checkout)
    return checkout


def environment(sources: Path, compiled: Path, commit: Commit) -> dict[str, str]:
    """Returns the variables of tools that build. Neither folder nor time gets into their files."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    remapped = {compiled: "/compiled", sources: "/graven", cargo: "/cargo"}
    flags = [f"--remap-path-prefix={path}={name}" for path, name in remapped.items()]
    return {
        **os.environ,
        "SOURCE_DATE_EPOCH": str(commit.time),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_TARGET_DIR": str(compiled),
        "CARGO_INCREMENTAL": "0",
    }


def sdist(sources: Path, into: Path, environment: Mapping[str, str]) -> Path:
    """Makes the source distribution of the Python package."""
    run("maturin", "sdist", "--out", into, folder=sources, environment=environment)
    return _only(into, "*.tar.gz")


def unpacked(archive: Path, into: Path) -> Path:
    """Unpacks a source distribution; returns its folder."""
    shutil.rmtree(into, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(into, filter="data")
    return _only(into, "*")


def plugin(sources: Path, environment: Mapping[str, str]) -> Path:
    """Builds the plugin that captures programs, from a checkout."""
    package = ("--package", "graven-qemu-plugin", "--target", f"{TARGET}.{GLIBC}")
    options = ("--quiet", "--locked", "--release", *package)
    # As maturin strips the engine; zig's own files would bring the folder of the environment.
    words = ("cargo-zigbuild", "rustc", *options, "--", "-C", "strip=symbols")
    run(*words, folder=sources, environment=environment)
    return Path(environment["CARGO_TARGET_DIR"], TARGET, "release/libgraven_qemu_plugin.so")


def wheel(
    sources: Path, plugin: Path, into: Path, environment: Mapping[str, str], *, locked: bool
) -> Path:
    """Builds the wheel from a checkout or an unpacked source distribution, with the plugin.

    A checkout's versions are locked. The lock file of a source distribution has packages of crates
    that are not in it; cargo removes them, and keeps the versions of the others.
    """
    shutil.copyfile(plugin, sources / PLUGIN)
    options = ("--release", "--quiet", "--zig", "--auditwheel", "check")
    compatibility = ("--compatibility", f"manylinux_{GLIBC.replace('.', '_')}")
    frozen = ("--locked",) if locked else ()
    words = ("maturin", "build", *options, *compatibility, *frozen, "--out", into)
    run(*words, folder=sources, environment=environment)
    return _only(into, "*.whl")


def published(sources: Path) -> list[str]:
    """Returns the crates that are for others, which do not say `publish = false`."""
    words = ("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1")
    packages = json.loads(run(*words, folder=sources))["packages"]
    return sorted(item["name"] for item in packages if item["publish"] is None)


def crates(
    sources: Path, commit: Commit, into: Path, environment: Mapping[str, str], *, verified: bool
) -> list[Path]:
    """Packages those crates; verified, each is compiled from its package alone.

    For cargo, what it has unpacked or compiled of a package of a name, a version and a folder is
    that for good: each commit has a folder of its own.
    """
    packages = Path(environment["CARGO_TARGET_DIR"], "packages")
    for other in set(packages.glob("*")) - {packages / commit.name}:
        shutil.rmtree(other)
    apart = {**environment, "CARGO_TARGET_DIR": str(packages / commit.name)}
    chosen = [word for name in published(sources) for word in ("--package", name)]
    words = ("cargo", "package", "--quiet", "--locked", *chosen)
    options = () if verified else ("--no-verify",)
    run(*words, *options, folder=sources, environment=apart)
    into.mkdir(parents=True, exist_ok=True)
    found = sorted((packages / commit.name / "package").glob("*.crate"))
    return [Path(shutil.copy(file, into)) for file in found]


def _only(folder: Path, pattern: str) -> Path:
    found: Sequence[Path] = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ReleaseError(f"{folder}: {len(found)} files are {pattern}, one was expected")
    return found[0]
