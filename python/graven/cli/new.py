"""`graven new`: a crate of one's own with a design, a workload, or what other crates have."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
from jinja2 import Environment, PackageLoader, StrictUndefined

from graven import __version__
from graven.basics import output
from graven.cli.terminal import note
from graven.engine.catalogue import catalogue

HELP = """Write a crate with a design or workload of your own, ready to build and to pass its tests.

An engine is a crate that has what other crates have, so that their designs are used together.

The crate depends on Graven's, registers what it has, and is at the same time a native module for
Python: when it is installed in the environment of this command, every command has it.

\b
Examples:
  graven new design my-log                  a folder my-log, with an undo log to begin with
  graven new workload counters --into ~/src
  graven new engine both --with my-log --with counters
"""

FILES = ("Cargo.toml", "pyproject.toml", "README.md", "src/lib.rs")
"""Files of each kind of crate, beside `.gitignore`."""

SOURCES = {
    "design": ("src/design.rs", "tests/contract.rs"),
    "workload": ("src/workload.rs", "tests/contract.rs"),
    "engine": ("tests/registered.rs",),
}
"""The other files of each kind."""

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@click.command(help=HELP)
@click.argument("kind", type=click.Choice(list(SOURCES)))
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder in which the crate's folder is made.  [default: this one]",
)
@click.option(
    "--graven",
    "crates",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder `crates` of Graven's sources.  [default: of the checkout that runs this]",
)
@click.option(
    "--with",
    "members",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="The folder of a crate that an engine has; repeatable.",
)
def new(kind: str, name: str, into: Path, crates: Path | None, members: tuple[Path, ...]) -> None:
    """Writes the crate."""
    if not NAME.fullmatch(name):
        raise click.UsageError(
            f"{name!r} is no name; allowed are lower-case letters, digits and single hyphens, "
            "as in my-log"
        )
    if (kind == "engine") != bool(members):
        raise click.UsageError("an engine, and nothing else, has crates that --with names")
    known = catalogue()
    designs, workloads = ({item.name for item in of} for of in (known.designs, known.workloads))
    if name in {"design": designs, "workload": workloads}.get(kind, set()):
        raise click.UsageError(f"there is a {kind} {name}; `graven list {kind}s` lists them")
    folder = into / name
    if folder.exists():
        raise click.UsageError(f"{folder} exists already")
    underscored = name.replace("-", "_")
    sources = (_beside() if crates is None else _checked(crates)).resolve()

    def from_crate(path: Path) -> str:
        # Relative, so that the crate and what it depends on move together.
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()

    values = {
        "name": name,
        "crate": f"graven-{name}",
        "module": f"graven_{underscored}",
        "section": underscored,
        "type": "".join(part.capitalize() for part in name.split("-")),
        "graven": from_crate(sources),
        "members": _members(members, from_crate),
    }
    templates = Environment(
        loader=PackageLoader("graven.cli", f"templates/{kind}"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    names = {path: path for path in (*FILES, *SOURCES[kind])} | {".gitignore": "gitignore"}
    files = {
        path: templates.get_template(f"{name}.jinja").render(values).encode()
        for path, name in names.items()
    }
    # The versions with which Graven is built and tested; cargo leaves out what is not needed.
    lock = sources.parent / "Cargo.lock"
    if lock.is_file():
        files["Cargo.lock"] = lock.read_bytes()
    output.write_folder(folder, files)
    note(f"{folder}: a crate; its README.md says how to test and install it")


def _members(folders: tuple[Path, ...], path: Callable[[Path], str]) -> list[dict[str, str]]:
    """Package, library and path of the crates of an engine."""
    members: list[dict[str, str]] = []
    for folder in folders:
        try:
            cargo = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
            package = str(cargo["package"]["name"])
            library = str(cargo.get("lib", {}).get("name", package.replace("-", "_")))
            registers = "pub fn register(" in (folder / "src/lib.rs").read_text(encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise click.UsageError(f"--with: {folder} is no crate with a library") from None
        if not registers:
            raise click.UsageError(
                f"--with: {folder} has no function `register` in src/lib.rs; crates of "
                "`graven new` have one"
            )
        if library in {member["library"] for member in members}:
            raise click.UsageError(f"--with: two crates have a library {library}")
        members.append({"package": package, "library": library, "path": path(folder)})
    return members


def _beside() -> Path:
    """Graven's crates: of the checkout that this package is in."""
    folder = Path(__file__).resolve().parents[3] / "crates"
    if not (folder / "graven" / "Cargo.toml").is_file():
        raise click.UsageError(
            "Graven's Rust sources are not beside this package; --graven names the folder `crates` "
            "of a checkout, or of the unpacked source distribution, which `pip download --no-deps "
            f"--no-binary graven graven=={__version__}` gets"
        )
    return folder


def _checked(crates: Path) -> Path:
    """A folder that is named, if it has the crates of this version."""
    if not (crates / "graven" / "Cargo.toml").is_file():
        raise click.UsageError(f"--graven: {crates} has no crate `graven`")
    workspace = crates.parent / "Cargo.toml"
    try:
        found = tomllib.loads(workspace.read_text(encoding="utf-8"))
        version = found["workspace"]["package"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise click.UsageError(
            f"--graven: {workspace}, which says the version of the crates, cannot be read"
        ) from None
    if version != __version__:
        raise click.UsageError(
            f"--graven: the crates in {crates} are of version {version}, this is {__version__}"
        )
    return crates
