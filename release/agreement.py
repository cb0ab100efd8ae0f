"""What must be so before anything is built: a clean tree, one version, its changes written down.

The changelog is one of Keep a Changelog: a section for each version, `## 1.2.0 - 2026-01-31`, and
on top of them `## Unreleased` for what is to come.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from .building import run

UNRELEASED = "Unreleased"

KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Results")
"""Headings in the section of a version."""

VERSION = re.compile(r"\d+\.\d+\.\d+")


def version_of(root: Path) -> str:
    """The version that the workspace declares."""
    return str(_toml(root / "Cargo.toml")["workspace"]["package"]["version"])


def problems(root: Path, *, rehearsal: bool) -> list[str]:
    """All that is not as it must be; a rehearsal needs no section of its version."""
    version = version_of(root)
    section = _section(version, rehearsal=rehearsal)
    return [*_uncommitted(root), *_versions(root, version), *_changes(root, section)]


def changes_of(root: Path, version: str, *, rehearsal: bool) -> str:
    """What the changelog says of a version, or of what is to come."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return changes(text, _section(version, rehearsal=rehearsal))


def changes(text: str, version: str) -> str:
    """The section of a version, without its heading; empty if there is none."""
    sections = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    found = dict(zip((_named(head) for head in sections[::2]), sections[1::2], strict=True))
    return found.get(version, "").strip()


def _section(version: str, *, rehearsal: bool) -> str:
    return UNRELEASED if rehearsal else version


def _named(heading: str) -> str:
    return heading.split(" - ")[0].strip().strip("[]")


def _uncommitted(root: Path) -> Iterator[str]:
    for line in run("git", "status", "--porcelain", folder=root).splitlines():
        yield f"{line[3:]} is not committed: a release is of a commit"


def _versions(root: Path, version: str) -> Iterator[str]:
    workspace = root / "Cargo.toml"
    if VERSION.fullmatch(version) is None:
        yield f"{workspace}: the version is {version!r}; allowed are those like 1.2.0"
    manifest = _toml(workspace)["workspace"]
    for name, dependency in manifest["dependencies"].items():
        if "path" in dependency and dependency.get("version") != f"={version}":
            wanted = f'version = "={version}"'
            yield f"{workspace}: {name} has version {dependency.get('version')!r}, not {wanted}"
    for pattern in manifest["members"]:
        for path in sorted(root.glob(f"{pattern}/Cargo.toml")):
            if _toml(path)["package"].get("version") != {"workspace": True}:
                yield f"{path}: the version is not the workspace's (version.workspace = true)"
    lock = root / "Cargo.lock"
    for package in _toml(lock)["package"]:
        if "source" not in package and package["version"] != version:
            yield f"{lock}: {package['name']} is {package['version']}, not {version}"
    project = root / "pyproject.toml"
    if "version" not in _toml(project)["project"].get("dynamic", ()):
        yield f"{project}: the version is not dynamic, which takes it from Cargo.toml"
    citation = root / "CITATION.cff"
    found = re.findall(r"^version: (\S+)$", citation.read_text(encoding="utf-8"), re.MULTILINE)
    if found != [version]:
        yield f"{citation}: version is {', '.join(found) or 'missing'}, not {version}"


def _changes(root: Path, section: str) -> Iterator[str]:
    path = root / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    for heading in re.findall(r"^## (.*)$", text, re.MULTILINE):
        name, _, day = heading.partition(" - ")
        if heading != UNRELEASED and (VERSION.fullmatch(_named(name)) is None or not _is_day(day)):
            allowed = "`## Unreleased` and `## 1.2.0 - 2026-01-31`"
            yield f"{path}: heading `## {heading}`, allowed are {allowed}"
    for heading in re.findall(r"^### (.*)$", text, re.MULTILINE):
        if heading not in KINDS:
            yield f"{path}: heading `### {heading}`, allowed are {', '.join(KINDS)}"
    if not changes(text, section):
        wanted = section if section == UNRELEASED else f"{section} - YYYY-MM-DD"
        yield f"{path}: nothing is said of {section}; a section `## {wanted}` is needed"


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)
