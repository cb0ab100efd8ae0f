"""Limits of the host's memory that this process may still take, before anything runs.

A process is limited by its address space (`ulimit -v`), by the memory of the control groups that
it is in, of version 2 or 1, each of which limits all below it, and by what the host has left. The
least counts. Where there is no `/proc`, no limit is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graven import _engine
from graven.basics.numbers import size_text

try:
    import resource
except ImportError:  # no Unix
    resource = None  # type: ignore[assignment]

LIMIT_VARIABLE = "GRAVEN_MEMORY_LIMIT"
"""The environment variable with the most memory that simulations may take together."""

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>|B|[KMGT]B)", re.IGNORECASE)

_UNLIMITED = 1 << 60
"""Least limit that version 1 has for a group without one."""


@dataclass(frozen=True)
class Limit:
    """Memory that this process may still take.

    Attributes:
        bytes: The memory.
        source: Name of the limit in messages.
        of_address_space: True if reserved addresses count, too, and not only memory in use.
    """

    bytes: int
    source: str
    of_address_space: bool = False


def size_of(text: str) -> int:
    """Bytes of a size such as `8 GB`, in units of 1,024.

    Raises:
        ValueError: it is none.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return int(float(found["number"]) * _UNITS[found["unit"].upper()])


def _asked_limit() -> Limit | None:
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        return Limit(size_of(text), LIMIT_VARIABLE) if text else None
    except ValueError:
        raise _engine.ConfigError(
            f'{LIMIT_VARIABLE} = "{text}": a size is wanted, such as "8 GB"'
        ) from None


def refusal(
    need: int,
    lacking: Limit,
    *,
    what: str = "it needs",
    smaller: str = "a smaller workload.footprint_bytes (or parameters of the workload that make "
    "its data smaller), fewer transactions, or ",
) -> str:
    """Says why a task cannot run even alone, and what to change to make it `smaller`."""
    return (
        f"{what} up to {size_text(need)} of memory, and {lacking.source} leaves "
        f"{size_text(lacking.bytes)}; {smaller}a higher limit would do; "
        f'{LIMIT_VARIABLE}="{size_text(need)}" has it tried'
    )


def limit(*, root: Path = Path("/")) -> Limit | None:
    """The limit that `GRAVEN_MEMORY_LIMIT` names, else the least that holds for this process.

    Args:
        root: Folder that has `/proc` and `/sys`.

    Returns:
        The limit, or `None` if none is known.

    Raises:
        ConfigError: `GRAVEN_MEMORY_LIMIT` is no size.
    """
    return _asked_limit() or min(_limits(root), key=lambda each: each.bytes, default=None)


def _limits(root: Path) -> Iterator[Limit]:
    if (left := _address_space_left(root)) is not None:
        yield Limit(left, "the limit of address space (ulimit -v)", of_address_space=True)
    yield from _groups(root)
    if (available := _kilobytes(root / "proc/meminfo", "MemAvailable")) is not None:
        yield Limit(available, "the memory that the host has available")


def _address_space_left(root: Path) -> int | None:
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return None
    size = _kilobytes(root / "proc/self/status", "VmSize") or 0
    return max(0, soft - size)


def _kilobytes(path: Path, key: str) -> int | None:
    """Bytes of a line `KEY: NUMBER kB`."""
    found = re.search(rf"^{key}:\s*(\d+) kB$", _text(path), re.MULTILINE)
    return None if found is None else int(found[1]) << 10


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _groups(root: Path) -> Iterator[Limit]:
    """Yields what is left of the memory of each control group that this process is in."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            yield from _walk(
                root / "sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file"
            )
        elif "memory" in controllers.split(","):
            yield from _walk(
                root / "sys/fs/cgroup/memory",
                group,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            )


def _walk(top: Path, group: str, most: str, used: str, cached: str) -> Iterator[Limit]:
    """A control group and those that it is in; in a container its own may be the top."""
    inside = [part for part in group.split("/") if part not in ("", "..")]
    for depth in range(len(inside), -1, -1):
        folder = top.joinpath(*inside[:depth])
        maximum, current = _number(folder / most), _number(folder / used)
        if maximum is None or current is None or maximum >= _UNLIMITED:
            continue
        # Files in the cache are counted as used, and given up when memory is wanted.
        held = re.search(rf"^{cached} (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
        current -= min(current, int(held[1]) if held else 0)
        name = "/" + "/".join(inside[:depth])
        yield Limit(max(0, maximum - current), f"the memory limit of the control group {name}")
