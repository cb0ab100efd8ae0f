"""Places of instructions, as the history of a captured program names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def line_of(site: Mapping[str, Any]) -> str | None:
    """`FILE:LINE` of a site, without folders; none where no debugging information names one."""
    for line in site.get("lines", ()):
        if line.get("file") and line.get("line"):
            return f"{PurePath(line['file']).name}:{line['line']}"
    return None


def place_of(site: Mapping[str, Any]) -> str:
    """A site in words: `FUNCTION at FILE:LINE`, or `FUNCTION in MODULE+OFFSET`."""
    module = site.get("module")
    offset = f"{site['address']:#x}"
    where = f"{PurePath(module).name}+{offset}" if module else f"code without a file at {offset}"
    function = next((line["function"] for line in site.get("lines", ()) if "function" in line), "")
    line = line_of(site)
    if line is not None:
        return f"{function} at {line}" if function else line
    return f"{function} in {where}" if function else where
