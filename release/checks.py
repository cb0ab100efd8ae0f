"""Checks of a release: of the tree before anything is built, and of the archives afterwards.

Cargo and maturin refuse versions of crates that do not agree (`=VERSION`, `--locked`), crates that
do not compile from their package alone, and native code for systems newer than the wheel's.
"""

from __future__ import annotations

import json
import re
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from .building import GLIBC, TARGET, run

UNRELEASED = "Unreleased"

KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Results")
"""Headings in the section of a version."""

PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_{TARGET.split('-')[0]}"


# ---- the tree ----------------------------------------------------------------------------------


def version_of(root: Path) -> str:
    """Returns the version that the workspace declares."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def tree_problems(root: Path, section: str) -> Iterator[str]:
    """Names what keeps a tree from being released.

    Args:
        root: A checkout.
        section: Section that the changelog must have: the version, or `UNRELEASED`.
    """
    for line in run("git", "status", "--porcelain", folder=root).splitlines():
        yield f"{line[3:]} is not committed: a release is of a commit"
    version, citation = version_of(root), root / "CITATION.cff"
    found = re.findall(r"^version: (\S+)$", citation.read_text(encoding="utf-8"), re.MULTILINE)
    if found != [version]:
        yield f"{citation}: version is {', '.join(found) or 'missing'}, not {version}"
    path = root / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    for heading in re.findall(r"^## (.*)$", text, re.MULTILINE):
        if heading != UNRELEASED and not _is_version(heading):
            allowed = "`## Unreleased` and `## 1.2.0 - 2026-01-31`"
            yield f"{path}: heading `## {heading}`, allowed are {allowed}"
    for heading in re.findall(r"^### (.*)$", text, re.MULTILINE):
        if heading not in KINDS:
            yield f"{path}: heading `### {heading}`, allowed are {', '.join(KINDS)}"
    if not changes(text, section):
        wanted = section if section == UNRELEASED else f"{section} - YYYY-MM-DD"
        yield f"{path}: no changes of {section}; a section `## {wanted}` is needed"


def changes(text: str, section: str) -> str:
    """Returns a section of a changelog without its heading; empty if there is none."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    sections = {
        head.split(" - ")[0]: part for head, part in zip(parts[::2], parts[1::2], strict=True)
    }
    return sections.get(section, "").strip()


def _is_version(heading: str) -> bool:
    version, _, day = heading.partition(" - ")
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return re.fullmatch(r"\d+\.\d+\.\d+", version) is not None


# ---- archives ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contents:
    """Files of an archive: those that it needs, and those that it must not have.

    Attributes:
        needed: Names, without the archive's folder.
        refused: Pattern of names that are there by mistake.
        allowed: Pattern of names that are right, whatever the other one matches.
    """

    needed: Sequence[str]
    refused: re.Pattern[str]
    allowed: re.Pattern[str] = re.compile(r"(?!)")


CONTENTS = {
    ".crate": Contents(
        ("Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src/lib.rs"),
        re.compile(r"(^|/)target/|\.(so|gvt)$"),
    ),
    ".gz": Contents(
        ("PKG-INFO", "Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml"),
        re.compile(
            r"(^|/)(__pycache__|target|\.venv|tests|examples|benches|docs)/|\.(so|pyc|gvt|lock)$"
        ),
        re.compile(r"Cargo\.lock|(python/graven|crates/\w+/src)/.*(?<!\.so)(?<!\.pyc)(?<!\.gvt)"),
    ),
    ".whl": Contents(
        ("graven/py.typed", "graven/_engine.pyi", "graven/_engine.abi3.so", "graven/_capture.so"),
        re.compile(r"^(?!graven[/-])|__pycache__"),
    ),
}
"""Contents of packages of crates, of the source distribution and of the wheel, by ending."""

LARGEST_BYTES = 4_000_000
"""Limit of a source distribution: a larger one has something by mistake."""


def names_of(archive: Path) -> list[str]:
    """Returns the names of the files in an archive, without its own folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as files:
            return files.namelist()
    top = archive.name.removesuffix(".crate").removesuffix(".tar.gz")
    with tarfile.open(archive) as files:
        return [item.name.removeprefix(f"{top}/") for item in files if not item.isdir()]


def archive_problems(archive: Path, more: Sequence[str] = ()) -> list[str]:
    """Names what is wrong with the files in an archive.

    Args:
        archive: A package of a crate, a source distribution or a wheel.
        more: Files that it needs besides.
    """
    names, of = names_of(archive), CONTENTS[archive.suffix]
    found = [f"{name} is missing" for name in (*of.needed, *more) if name not in names]
    found += [
        f"{name} is superfluous"
        for name in names
        if of.refused.search(name) and not of.allowed.fullmatch(name)
    ]
    if archive.suffix == ".gz" and archive.stat().st_size > LARGEST_BYTES:
        found.append(f"{archive.stat().st_size:,} bytes, allowed are {LARGEST_BYTES:,}")
    return [f"{archive.name}: {problem}" for problem in found]


def wheel_problems(wheel: Path, version: str, folders: Sequence[Path]) -> list[str]:
    """Names what is wrong with a wheel and its native code, which is to run on old systems.

    Args:
        wheel: The file.
        version: The version of the release.
        folders: Those of this machine, whose names must be in no file.
    """
    found = platform_problems(wheel.name, version, _needed(wheel))
    run("abi3audit", "--strict", wheel.name, folder=wheel.parent)
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            content = files.read(name)
            found += [
                f"{wheel.name}: {name} has this machine's folder {folder}"
                for folder in folders
                if str(folder).encode() in content
            ]
    return found


def platform_problems(name: str, version: str, needed: str) -> list[str]:
    """Compares a wheel's name, and the platform that its native code needs, with the release's."""
    found = []
    pattern = rf"graven-{re.escape(version)}-cp311-abi3-(\w+\.)*{PLATFORM}(\.\w+)*\.whl"
    if re.fullmatch(pattern, name) is None:
        found.append(f"{name}: it is not graven-{version}-cp311-abi3-{PLATFORM}.whl")
    if needed != PLATFORM:
        found.append(f"{name}: its native code needs {needed}, which is not {PLATFORM}")
    return found


def _needed(wheel: Path) -> str:
    shown = run("auditwheel", "show", "--json", wheel.name, folder=wheel.parent)
    return str(json.loads(shown)["overall_tag"])


def differences(first: Sequence[Path], second: Sequence[Path]) -> list[str]:
    """Names the files of two builds that differ, or that one of them lacks."""
    ours, theirs = ({path.name: path for path in files} for files in (first, second))
    found = [f"{name} was built once only" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name].read_bytes() != theirs[name].read_bytes():
            found.append(f"{ours[name]} and {theirs[name]} differ: the build is not reproducible")
    return found
