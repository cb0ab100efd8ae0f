"""What a source distribution and the packages of crates have, and what they do not."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

LARGEST_BYTES = 4_000_000
"""Of a source distribution: what is larger has something by mistake."""

BUILT = re.compile(r"(^|/)(__pycache__|target|\.venv)/|\.(so|pyc|gvt)$")
"""Of files in it: what is made of others."""

SUPERFLUOUS = re.compile(r"(^|/)(tests|examples|benches|docs)/|\.lock$")
"""Of files in it that are neither the package's nor a crate's sources: what no build needs."""

SOURCES = re.compile(r"(python/graven|crates/\w+/src)/")

OUTSIDE = re.compile(r"include_(?:str|bytes)!\([^)]*?\"(?P<path>[^\"]*\.\./\.\./[^\"]*)\"")
"""What is included from outside of a crate: from its `src`, more than one folder up."""


def sdist_problems(archive: Path, version: str) -> list[str]:
    """What is wrong with a source distribution; that it can be built is seen by building it."""
    top = f"graven-{version}/"
    found = []
    if archive.stat().st_size > LARGEST_BYTES:
        found.append(f"{archive.stat().st_size:,} bytes, allowed are {LARGEST_BYTES:,}")
    with tarfile.open(archive) as files:
        names = [member.name for member in files if not member.isdir()]
    outside = [name for name in names if not name.startswith(top)]
    found += [f"{name} is outside of {top}" for name in outside]
    inside = {name.removeprefix(top) for name in names}
    for name in ("PKG-INFO", "Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml"):
        if name not in inside:
            found.append(f"{name} is missing")
    for name in sorted(inside - {"Cargo.lock"}):
        is_source = SOURCES.match(name) is not None
        if BUILT.search(name) or (SUPERFLUOUS.search(name) and not is_source):
            found.append(f"{name} is superfluous")
    return [f"{archive.name}: {problem}" for problem in found]


def crate_problems(archive: Path) -> list[str]:
    """What is wrong with a package of a crate."""
    top = archive.name.removesuffix(".crate")
    found = []
    with tarfile.open(archive) as files:
        names = files.getnames()
        for name in ("Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src/lib.rs"):
            if f"{top}/{name}" not in names:
                found.append(f"{name} is missing")
        for name in names:
            if not name.endswith(".rs") or _is_for_tests(name):
                continue
            reader = files.extractfile(name)
            text = "" if reader is None else reader.read().decode()
            found += [
                f"{name.removeprefix(top + '/')} includes {match['path']}, which is outside of it"
                for match in OUTSIDE.finditer(text)
            ]
    return [f"{archive.name}: {problem}" for problem in found]


def _is_for_tests(name: str) -> bool:
    return "testing" in name or "/tests/" in name
