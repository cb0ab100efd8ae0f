"""The plugin's folder: its setup, and what it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graven.basics.errors import CaptureError
from graven.capture.request import LOCKS, Request

_WORDS = dict.fromkeys(LOCKS.values(), "synchronises") | {"wait": "waits"}
"""Names of these roles in the setup; others are functions."""


def write_setup(request: Request, roles: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Tells the plugin what is persistent, and which functions it follows."""
    lines = request.persistent.setup()
    if not request.only_pm:
        lines.append("volatile yes")
    beginning = request.beginning()
    for name, of in roles.items():
        words = [_WORDS[role] for role in of if role in _WORDS]
        begins = "begins " if beginning.intersection(of) else ""
        lines.append(f"{begins}{words[0] if words else 'function'} {name}")
    (folder / "setup").write_text("".join(f"{line}\n" for line in lines))


@dataclass
class Left:
    """Files that the plugin has left in its folder."""

    folder: Path
    threads: list[Path]
    regions: list[tuple[int, int, str]]
    """Device, inode, and path."""
    counts: dict[str, int]
    found: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    missing: tuple[str, ...] = ()

    @staticmethod
    def read(folder: Path, request: Request) -> Left:
        """Reads the folder."""
        count = len(list(folder.glob("thread-*")))
        threads = [folder / f"thread-{number}" for number in range(count)]
        regions = []
        for line in _lines(folder / "regions"):
            _, device, inode, path = line.split(" ", 3)
            regions.append((int(device), int(inode), path))
        counts = dict(line.split() for line in _lines(folder / "counts"))
        names = list(request.roles())
        found = {names[int(line.split()[0])] for line in _lines(folder / "functions")}
        of_setup = request.persistent.variables
        variables = {of_setup[int(line.split()[0])] for line in _lines(folder / "objects")}
        missing = tuple(name for name in names if name not in found and name not in LOCKS)
        numbers = {name: int(number) for name, number in counts.items()}
        return Left(folder, threads, regions, numbers, found, variables, missing)

    def check(self, request: Request, ended: str) -> None:
        """Refuses what gives no trace; `ended` says how the program has.

        Raises:
            CaptureError: and why.
        """
        persistent = request.persistent
        absent = [name for name in persistent.variables if name not in self.variables]
        if absent:
            raise CaptureError(
                f"no symbols of the program and its libraries have variables {', '.join(absent)}"
                f"{ended} (a program that was stripped has none of its own)"
            )
        if not self.regions and persistent.files and not persistent.heap:
            patterns = ", ".join(persistent.files)
            raise CaptureError(
                f"the program mapped no file, shared, whose path fits {patterns}{ended} "
                "(patterns are held against whole paths: */NAME fits anywhere)"
            )
        if not self.regions and persistent.heap:
            raise CaptureError(f"the program has no heap{ended}")
        if not self.regions and (persistent.ranges or persistent.variables):
            raise CaptureError(f"the program has mapped nothing in the ranges{ended}")
        if not self.regions:
            raise CaptureError(
                "nothing says what is persistent memory: neither files (pm_files) nor the heap "
                "(pm_heap) nor variables and ranges (pm_ranges) were named, and no marker in the "
                f"program (graven_pm) has named something{ended}"
            )
        missing = [name for name in request.needed() if name not in self.found]
        choice = request.needs_one_of()
        if choice and not self.found.intersection(choice):
            missing += [f"any of {' '.join(choice)}"]
        if missing:
            raise CaptureError(
                f"no symbols of the program and its libraries have {', '.join(missing)}{ended} "
                "(a program that was stripped has none of its own)"
            )

    def spec(self, request: Request, place: Path) -> str:
        """For the engine."""
        return json.dumps(
            {
                "threads": [str(path) for path in self.threads],
                "regions": [self._files(number) for number in range(len(self.regions))],
                "sites": self._if_there("sites"),
                "modules": self._if_there("modules"),
                "functions": list(request.roles().items()),
                "critical_sections": request.critical_sections,
                "skip": request.skip,
                "most": request.transactions_max,
                "description": {
                    "arguments": list(request.arguments),
                    "files": [path for _, _, path in self.regions],
                    "transactions": [vars(t) for t in request.all_transactions],
                    "critical_sections": request.critical_sections,
                    "only_pm": request.only_pm,
                    "from": request.from_function,
                    "until": request.until_function,
                    "left_out": [*request.leave_out, *request.left_out_if_there],
                    "counts": self.counts,
                },
                "out": str(place),
            }
        )

    def _if_there(self, name: str) -> str | None:
        """A file of the folder, which a program that has not begun does not leave."""
        path = self.folder / name
        return str(path) if path.exists() else None

    def _files(self, number: int) -> tuple[str, str | None]:
        """A region as it was, and as it is: of a program that was killed, the file itself."""
        before, after = (self.folder / f"region-{number}.{when}" for when in ("before", "after"))
        if after.exists():
            return str(before), str(after)
        device, inode, path = self.regions[number]
        try:
            now = Path(path).stat()
        except OSError:
            return str(before), None
        return str(before), path if (now.st_dev, now.st_ino) == (device, inode) else None


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
