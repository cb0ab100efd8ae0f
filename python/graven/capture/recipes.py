"""Recipes: real programs that are built, run and captured by name.

`recipes/recipes.toml` says of each how it is built and run, what its persistent memory is, and what
a transaction is. Libraries and programs come from the distribution, or from crates that are built;
nothing that was traced is kept here.
"""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from graven.capture import Captured, CaptureError, Request, Served, run
from graven.running.pool import Observer

FOLDER = Path(__file__).with_name("programs")
"""Recipes and sources."""

EXAMPLES = "/usr/share/doc/libpmemobj-dev/examples"
"""Folder of the examples in PMDK's package."""

MEMORY = Path("/dev/shm")
"""Files there are in memory: what a program makes durable waits for no disk."""

COMPILER_SECONDS = 300
"""Longest time that a program takes to compile."""


@dataclass(frozen=True)
class Recipe:
    """A real program.

    Attributes:
        name: Name of the recipe.
        title: Title of the program.
        transaction: Description of its transactions.
        packages: Packages of the distribution that it needs, by Debian's names.
        arguments: Arguments of the program.
        sources: Patterns of the files that are compiled; none for a program that is installed.
        libraries: Libraries that are linked.
        crate: A folder of recipes, with a program in Rust.
        program: A program that is installed.
        folders: Folders of headers.
        options: Options of the compiler.
        socket: Socket in the file system at which a program that serves listens.
        at_port: True if it listens at a port instead, `{port}` of its arguments, a free one.
        clients: Clients that ask it, one after the other; the last one ends it.

    The others are as in `Request`.
    """

    name: str
    title: str
    transaction: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...]
    sources: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    crate: str | None = None
    program: str | None = None
    pm_files: tuple[str, ...] = ()
    pm_heap: bool = False
    folders: tuple[str, ...] = (".",)
    options: tuple[str, ...] = ()
    input: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    socket: str | None = None
    at_port: bool = False
    clients: tuple[tuple[str, ...], ...] = ()
    transactions: tuple[str, ...] = ()
    like: str | None = None
    without_persistence: bool = False
    skip: int = 0


@cache
def recipes() -> dict[str, Recipe]:
    """All recipes, by name."""
    tables = tomllib.loads((FOLDER / "recipes.toml").read_text(encoding="utf-8"))
    return {name: _recipe(name, tables) for name in tables}


def _recipe(name: str, tables: Mapping[str, Any]) -> Recipe:
    table = dict(tables[name])
    if (other := table.pop("like_recipe", None)) is not None:
        table = {**tables[other], **table}
    table["clients"] = [tuple(client) for client in table.get("clients", ())]
    known = {item.name for item in fields(Recipe)}
    assert not set(table) - known, f"{name}: {set(table) - known}"
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in table.items()
    }
    return Recipe(name, **values)


def capture_recipe(
    name: str,
    trace: str | PathLike[str],
    *,
    only_pm: bool = False,
    transactions_max: int | None = None,
    observe: Observer | None = None,
) -> Captured:
    """Builds a real program, runs it, and makes a trace of what it did.

    Args:
        name: Of the recipe, one of `recipes()`.
        trace: The file to write.
        only_pm: Loads and stores of volatile memory are not in it.
        transactions_max: Transactions in it at most; all if not given.
        observe: Called several times a second while the trace is put together.

    Raises:
        CaptureError: there is no such recipe; a package is missing; the program cannot be captured.
        OutputError: the trace cannot be written; nothing has run.
    """
    recipe = recipes().get(name)
    if recipe is None:
        raise CaptureError(f"there is no recipe {name}; there are {', '.join(recipes())}")
    parent = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="graven-", dir=parent) as made:
        folder = Path(made)
        program, port = _build(recipe, folder), _free_port() if recipe.at_port else None
        request = Request(
            (str(program), *(_filled(a, folder, port) for a in recipe.arguments)),
            recipe.pm_files,
            recipe.pm_heap,
            transactions=recipe.transactions,
            like=recipe.like,
            without_persistence=recipe.without_persistence,
            only_pm=only_pm,
            skip=recipe.skip,
            transactions_max=transactions_max,
            input=recipe.input.encode(),
            environment=recipe.environment,
            served=_served(recipe, folder, port),
        )
        return run(request, Path(trace), observe)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _served(recipe: Recipe, folder: Path, port: int | None) -> Served | None:
    if recipe.socket is not None:
        address: Path | int = Path(_filled(recipe.socket, folder))
    elif port is not None:
        address = port
    else:
        return None
    clients = tuple(tuple(_filled(a, folder, port) for a in client) for client in recipe.clients)
    for client in clients:
        if shutil.which(client[0]) is None:
            raise _missing(recipe, f"{client[0]} is not installed")
    return Served(address, clients)


def _filled(text: str, folder: Path, port: int | None = None) -> str:
    places = {
        "{folder}": str(folder),
        "{examples}": EXAMPLES,
        "{recipes}": str(FOLDER),
        "{python}": sys.executable,
        "{port}": str(port),
    }
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def _build(recipe: Recipe, folder: Path) -> Path:
    """Compiles a program, or finds one that is installed.

    Raises:
        CaptureError: the compiler or a package is missing; what it says.
    """
    if recipe.program is not None:
        found = shutil.which(recipe.program)
        if found is None:
            raise _missing(recipe, f"{recipe.program} is not installed")
        return Path(found)
    return _build_crate(recipe, folder) if recipe.crate is not None else _compile(recipe, folder)


def _build_crate(recipe: Recipe, folder: Path) -> Path:
    if shutil.which("cargo") is None:
        raise CaptureError(f"{recipe.name} cannot be built: there is no cargo (https://rustup.rs)")
    manifest = FOLDER / str(recipe.crate) / "Cargo.toml"
    target = folder / "target"
    options = ("--release", "--locked", "--quiet", "--manifest-path", manifest)
    done = subprocess.run(
        ["cargo", "build", *options, "--target-dir", target],
        capture_output=True,
        text=True,
        timeout=COMPILER_SECONDS,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise CaptureError(f"{recipe.name} cannot be built: {(lines or ['no message'])[0]}")
    return target / "release" / f"{recipe.crate}-recipe"


def _compile(recipe: Recipe, folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise CaptureError("there is no C compiler, cc (Debian, Ubuntu: apt install gcc)")
    sources: list[str] = []
    for pattern in recipe.sources:
        path = Path(FOLDER, _filled(pattern, folder))
        found = sorted(glob.glob(str(path)))  # noqa: PTH207 - patterns of absolute paths
        sources += found
        if not found:
            raise _missing(recipe, f"{path} is not there")
    program = folder / recipe.name
    command = [
        compiler,
        "-O2",
        *recipe.options,
        *(f"-I{Path(FOLDER, _filled(item, folder))}" for item in recipe.folders),
        "-o",
        str(program),
        *dict.fromkeys(sources),
        *(f"-l{library}" for library in recipe.libraries),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILER_SECONDS, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot" in line]
        raise _missing(recipe, (lines or done.stderr.splitlines() or ["no message"])[0])
    return program


def _missing(recipe: Recipe, why: str) -> CaptureError:
    packages = " ".join(recipe.packages)
    return CaptureError(
        f"{recipe.name}: {why} (it needs {packages}; Debian, Ubuntu: apt install {packages})"
    )
