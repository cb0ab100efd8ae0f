"""Choice of the native module: the package's own, or one with more designs and workloads.

A module of one's own is a crate that depends on `graven`, registers what it has, and is built for
Python (`docs/guides/designs.md` walks through one). When it is installed beside this package, an
entry point of the group `graven.engines` says so; the variable `GRAVEN_ENGINE` names a module, or
nothing for the package's own.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

VARIABLE = "GRAVEN_ENGINE"
"""The environment variable that names a module."""
GROUP = "graven.engines"
"""The group of the entry points by which installed modules are found."""
STOCK = "graven._engine"
"""The package's own module; whichever is used has its place."""


def chosen() -> str:
    """The name of the module that simulates.

    Raises:
        ImportError: several are installed, and nothing says which.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return named or STOCK
    if not _may_be_installed():
        return STOCK
    from importlib.metadata import entry_points

    installed = sorted({point.value for point in entry_points(group=GROUP)})
    if len(installed) > 1:
        raise ImportError(
            f"{len(installed)} engines are installed: {', '.join(installed)}; "
            f"set {VARIABLE} to one of them, or to nothing for Graven's own"
        )
    return installed[0] if installed else STOCK


def _may_be_installed() -> bool:
    """Tells whether asking for entry points, as long as the rest of the start, may find one.

    Where packages are folders this looks into the files that say their entry points. Archives and
    importers of other kinds are left to the asking.
    """
    if any(hasattr(other, "find_distributions") for other in sys.meta_path if other != PathFinder):
        return True
    for place in map(Path, dict.fromkeys(sys.path)):
        if place.is_file() or any(place.glob("*.egg")):
            return True
        try:
            texts = [file.read_bytes() for file in place.glob("*-info/entry_points.txt")]
        except OSError:
            return True
        if any(GROUP.encode() in text for text in texts):
            return True
    return False


def use() -> None:
    """Puts the module that simulates where the rest of the package imports it from.

    Raises:
        ImportError: it cannot be imported, or it is not such a module.
    """
    if STOCK in sys.modules:
        return
    name = chosen()
    if name == STOCK:
        return
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"the engine {name} cannot be imported: {error}") from error
    if not hasattr(module, "catalogue"):
        raise ImportError(f"{name} is no engine of Graven: it has no function `catalogue`")
    sys.modules[STOCK] = module
