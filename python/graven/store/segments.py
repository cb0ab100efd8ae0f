"""Segments: the files of a store, each appended to by one writer alone.

A writer makes a segment of its own when it has its first record, appends a line for each, and says
that a record is kept when the host has said that it would survive a power failure. What is written
never changes: several processes and machines write at once, each to its own. After an
error a writer leaves its segment and begins another, so that nothing follows a line that was cut
off.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from graven.basics.errors import OutputError
from graven.store import disk
from graven.store.stored import StoredRecord

ENDING = ".tsv"
"""End of a segment's name."""

LONGEST_LINE = 1 << 30
"""Bytes after which what has no end is no line."""


@dataclass(frozen=True, order=True)
class Place:
    """Place of a record.

    Attributes:
        segment: The name of the segment.
        offset: Its first byte.
        length: How many bytes it has, with the end of the line.
    """

    segment: str
    offset: int
    length: int


class Writer:
    """Appends to a segment of its own, for as long as it is open; for all threads of a process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._name = ""
        self._size = 0
        self._process = 0

    def append(self, record: StoredRecord) -> Place:
        """Keeps a record: when this returns it would survive a power failure.

        Raises:
            OutputError: it cannot be written; it may or may not be there later.
        """
        line = record.line()
        with self._lock:
            try:
                descriptor = self._open()
                disk.append(descriptor, line)
                disk.synchronise(descriptor)
            except OSError as error:
                self._abandon()
                reason = error.strerror or error
                raise OutputError(f"cannot write into {self._folder}: {reason}") from None
            place = Place(self._name, self._size, len(line))
            self._size += len(line)
            return place

    def close(self) -> None:
        """Ends the segment; the next record begins another."""
        with self._lock:
            self._abandon()

    def _open(self) -> int:
        # A process that was forked has the descriptor of its parent's segment.
        if self._descriptor is None or self._process != os.getpid():
            self._descriptor, self._name = self._created()
            self._size, self._process = 0, os.getpid()
        return self._descriptor

    def _created(self) -> tuple[int, str]:
        while True:
            name = new_name()
            descriptor = disk.create(self._folder / name)
            # Somebody who puts segments together may have taken it at once.
            if disk.hold(descriptor):
                disk.synchronise_folder(self._folder)
                return descriptor, name
            os.close(descriptor)

    def _abandon(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = None


def host(longest: int) -> str:
    """This host's name as it may stand in a file's, with `longest` characters at most."""
    return re.sub(r"[^A-Za-z0-9]+", "-", platform.node())[:longest] or "host"


def new_name() -> str:
    """A name that no other segment has, whatever clocks and machines say; it sorts by time."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{moment}-{host(32)}-{uuid.uuid4().hex}{ENDING}"


_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,200}" + re.escape(ENDING))


def is_name(text: str) -> bool:
    """Tells whether a segment may have this name."""
    return _NAME.fullmatch(text) is not None


def names(folder: Path) -> dict[str, int]:
    """The segments of a folder and their sizes in bytes, by name, in order."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_name(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    found[entry.name] = entry.stat().st_size
    return dict(sorted(found.items()))


def lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """The lines of a segment from a byte on, each with its first byte.

    The last one may have no end: it is being written, or was cut off.

    Raises:
        OSError: the segment cannot be read.
    """
    with path.open("rb") as file:
        file.seek(start)
        while line := file.readline(LONGEST_LINE):
            yield start, line
            start += len(line)


def read(folder: Path, place: Place) -> bytes:
    """The bytes of a line; fewer if the segment has ended before.

    Raises:
        OSError: the segment cannot be read.
    """
    with (folder / place.segment).open("rb") as file:
        if place.offset >= os.fstat(file.fileno()).st_size:
            return b""
        file.seek(place.offset)
        return file.read(place.length)
