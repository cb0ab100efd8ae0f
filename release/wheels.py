"""What a wheel must be: its name, tags, metadata and files, and what its native code needs."""

from __future__ import annotations

import configparser
import json
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

from packaging.utils import parse_wheel_filename

from .building import GLIBC, TARGET, run

PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_{TARGET.split('-')[0]}"

NATIVE = ("graven/_engine.abi3.so", "graven/_capture.so")


def problems(wheel: Path, version: str, programs: Path) -> list[str]:
    """What is wrong with a wheel, whatever system it is for.

    Args:
        wheel: The file.
        version: The version that it should be of.
        programs: The folder of litmus programs that it should have.
    """
    with zipfile.ZipFile(wheel) as files:
        found = [*_name(wheel, version), *_files(files, programs), *_metadata(files, version)]
    return [f"{wheel.name}: {problem}" for problem in found]


def native_problems(wheel: Path, folders: list[Path]) -> list[str]:
    """What is wrong with its native code, which is to run on systems of long ago.

    Args:
        wheel: The file.
        folders: Those of this machine, of which nothing may be in it.
    """
    shown = run("auditwheel", "show", "--json", wheel.name, folder=wheel.parent)
    found = platform_problems(wheel.name, json.loads(shown)["overall_tag"])
    run("abi3audit", "--strict", wheel.name, folder=wheel.parent)
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        found += [f"{name} is missing" for name in NATIVE if name not in names]
        for name in names:
            content = files.read(name)
            for folder in folders:
                if str(folder).encode() in content:
                    found.append(f"{name} has this machine's folder {folder}")
    return [f"{wheel.name}: {problem}" for problem in found]


def platform_problems(name: str, needed: str) -> list[str]:
    """What is wrong with the systems that a wheel's name claims, and those that its code needs."""
    claimed = sorted({tag.platform for tag in parse_wheel_filename(name)[3]})
    found = []
    if PLATFORM not in claimed:
        found.append(f"it is for {', '.join(claimed)}, not for {PLATFORM}")
    if needed != PLATFORM:
        found.append(f"its native code needs {needed}, which is not {PLATFORM}")
    return found


def _name(wheel: Path, version: str) -> Iterator[str]:
    name, found, _, tags = parse_wheel_filename(wheel.name)
    if (name, str(found)) != ("graven", version):
        yield f"it is {name} {found}, not graven {version}"
    wanted = ("cp311", "abi3")
    for tag in tags:
        if (tag.interpreter, tag.abi) != wanted:
            yield f"it has the tag {tag}; allowed is cp311-abi3, for Python 3.11 and all later ones"


def _files(files: zipfile.ZipFile, programs: Path) -> Iterator[str]:
    names = set(files.namelist())
    wanted = {
        f"graven/laboratory/litmus_programs/{file.relative_to(programs).as_posix()}"
        for file in programs.rglob("*.litmus")
    }
    wanted |= {"graven/py.typed", "graven/_engine.pyi", NATIVE[0]}
    yield from (f"{name} is missing" for name in sorted(wanted - names))
    for name in sorted(names):
        if "__pycache__" in name or not name.startswith(("graven/", "graven-")):
            yield f"{name} does not belong there"


def _metadata(files: zipfile.ZipFile, version: str) -> Iterator[str]:
    folder = f"graven-{version}.dist-info"
    metadata = message_from_bytes(files.read(f"{folder}/METADATA"))
    for key, wanted in (
        ("Version", version),
        ("License-Expression", "MIT"),
        ("License-File", "LICENSE"),
        ("Requires-Python", ">=3.11"),
    ):
        if metadata[key] != wanted:
            yield f"METADATA has {key}: {metadata[key]}, not {wanted}"
    for key in ("Summary", "Keywords", "Classifier"):
        if not metadata[key]:
            yield f"METADATA has no {key}"
    if "# Graven" not in str(metadata.get_payload()):
        yield "METADATA has no description, which is the README"
    if f"{folder}/licenses/LICENSE" not in files.namelist():
        yield f"{folder}/licenses/LICENSE is missing"
    points = configparser.ConfigParser()
    points.read_string(files.read(f"{folder}/entry_points.txt").decode())
    if not points.has_option("console_scripts", "graven"):
        yield "entry_points.txt has no command graven"
