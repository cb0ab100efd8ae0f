"""The few operations on files that a store's promises rest on.

Everything that a store writes goes through here, so that a test can record it and ask what a power
failure of the host would leave: what has not been synchronised may be there, in part, or not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

MODE = 0o666
"""Permissions of new files, of which the process's mask takes some away."""


def create(path: Path) -> int:
    """Makes a file that was not there, to append to; its descriptor.

    Raises:
        FileExistsError: there is such a file.
        OSError: it cannot be made.
    """
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags, MODE)


def append(descriptor: int, content: bytes) -> None:
    """Adds to the end of a file; until `synchronise` nothing is sure to be there.

    Raises:
        OSError: the disk is full, for example; part of it may have been written.
    """
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def synchronise(descriptor: int) -> None:
    """Waits until what was appended would survive a power failure of the host.

    Raises:
        OSError: it is not known whether it would.
    """
    os.fsync(descriptor)


def synchronise_folder(path: Path) -> None:
    """Waits until the names in a folder would survive a power failure.

    Some file systems cannot do that for a folder, and then do without.

    Raises:
        OSError: the folder cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Gives a file another name, in place of the file that bears it."""
    source.replace(target)


def remove(path: Path) -> None:
    """Removes a file, if there is one."""
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Makes a folder and those that it is in; those that are new would survive a power failure.

    Raises:
        OSError: one cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        synchronise_folder(folder.parent)


def hold(descriptor: int) -> bool:
    """Says that a file is being written, for as long as it is open.

    Returns:
        True if no other process holds it, and it still has a name: who took it before may have
        removed it. Without locks, files are neither held nor taken, and it is true.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return os.fstat(descriptor).st_nlink > 0


def take(path: Path) -> int | None:
    """Takes a file that no process holds, on any machine, until the descriptor is closed.

    Returns:
        A descriptor; `None` if a process holds it, or if there are no locks to know that from.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
