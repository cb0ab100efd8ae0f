"""Checks that this is the code that was meant: a copied checkout still leads to the original.

`make install` has the environment `.venv` of a checkout run the code in that checkout, by absolute
paths. In a copy of the folder, `.venv/bin/graven` is run by the original's Python, and the copy's
Python finds the original's code.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

ENVIRONMENT = "pyvenv.cfg"
"""File that every environment has."""

LINK = "graven.pth"
"""File in which an environment names the folder of the code."""


def wrong_code(script: str | None) -> str | None:
    """Says what to do if the code of another checkout runs than was meant.

    Args:
        script: The script that was called, if it is known.
    """
    inside = (path for path in sys.path if path.startswith(sys.prefix))
    packages = next((path for path in inside if path.endswith("site-packages")), sys.prefix)
    called = None if script is None else Path(script)
    return foreign(called, Path(sys.prefix), Path(__file__).parents[2], Path(packages))


def warn() -> None:
    """Warns who imports the package if it is another checkout's than its environment's."""
    if (wrong := wrong_code(None)) is not None:
        warnings.warn(wrong, RuntimeWarning, stacklevel=3)


def foreign(script: Path | None, prefix: Path, code: Path, packages: Path) -> str | None:
    """The same of a script, an environment, the folder of the code, and that of packages."""
    with contextlib.suppress(OSError, ValueError):
        above = () if script is None else script.resolve().parents
        if len(above) > 1 and (above[1] / ENVIRONMENT).is_file() and not above[1].samefile(prefix):
            return _text(above[1].parent, prefix.parent)
        checkout, link = prefix.parent, packages / LINK
        if link.is_file() and (checkout / "python/graven/__init__.py").is_file():
            meant = Path(link.read_text(encoding="utf-8").strip())
            is_linked = meant.is_dir() and meant.samefile(code)
            if is_linked and not code.samefile(checkout / "python"):
                return _text(checkout, code.parent)
    return None


def _text(copy: Path, original: Path) -> str:
    return (
        f"{copy} has been copied or moved from {original}, whose code this would run; "
        f"`make install` in {copy} sets it up"
    )
