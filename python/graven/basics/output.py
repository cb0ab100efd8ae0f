"""Files of results: checked before any simulation starts, and written whole or not at all.

One rule for all options and arguments that name a file to be written. A regular file, or one that
is not there yet, is replaced as a whole when all has gone well; of a symbolic link, the file that
it leads to. What is not a regular file, as a device or a pipe that has a name, is written to and
stays what it is; so is an open file of the process: `-` and `/dev/stdout` are standard output, and
`/dev/fd/N` is what a shell gives for `>(command)`.

No file is written twice by one command, nor one that it reads: `apart` refuses that. A name that
says that its file is compressed is refused, too, where it would not be.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from graven.basics import compressed
from graven.basics.errors import OutputError, OutputRefusedError
from graven.basics.numbers import size_text

STANDARD_OUTPUT = "-"
"""Name that stands for standard output in place of a file's."""

_OPEN_FILES = {"stdout": 1, "stderr": 2}

_OPEN_FILE = re.compile(r"/dev/(?P<name>stdout|stderr)|(/dev|/proc/self)/fd/(?P<number>\d+)")


@dataclass(frozen=True)
class Destination:
    """Destination of what is written: a regular file, or something else that exists.

    Attributes:
        given: As it was given.
        file: The regular file, behind all links; it may not be there yet.
        descriptor: The open file of this process.
    """

    given: Path
    file: Path | None = None
    descriptor: int | None = None

    @staticmethod
    def of(path: Path) -> Destination:
        """The destination that a path leads to.

        Raises:
            OutputError: it is a folder, or it leads in a circle.
        """
        if str(path) == STANDARD_OUTPUT:
            return Destination(path, descriptor=1)
        if found := _OPEN_FILE.fullmatch(os.path.normpath(path)):
            number = found["number"]
            return Destination(path, descriptor=int(number or _OPEN_FILES.get(found["name"], 1)))
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Destination(path, file=path.resolve() if path.is_symlink() else path)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {_reason(error)}") from None
        if stat.S_ISDIR(mode):
            raise OutputError(f"cannot write {path}: it is a folder")
        if stat.S_ISREG(mode):
            return Destination(path, file=path.resolve() if path.is_symlink() else path)
        return Destination(path)

    def open(self) -> BinaryIO:
        """Opens a destination that is no regular file.

        Raises:
            OSError: it cannot be written to.
        """
        if self.descriptor is None:
            return self.given.open("wb", buffering=0)
        sys.stdout.flush()
        sys.stderr.flush()
        return os.fdopen(os.dup(self.descriptor), "wb", buffering=0)


Named = Iterable[tuple[str, Path]]
"""Files, each with the option or argument that names it."""


def apart(outputs: Named, inputs: Named = ()) -> None:
    """Refuses to write one file twice, or over one that is read.

    A file is the same by whatever path, and through links of either kind. What is not a regular
    file, as a device or a pipe, is written to and takes no file's place.

    Raises:
        OutputRefusedError: says who names which file.
    """
    of_outputs = [(name, path, _same(path)) for name, path in outputs]
    of_inputs = [(name, path, _same(path)) for name, path in inputs]
    for (one, path, this), (other, same, that) in itertools.combinations(of_outputs, 2):
        if this is not None and this == that:
            both = path if path == same else f"{path} and {same}, which are the same file"
            raise OutputRefusedError(f"{one} and {other}: both name {both}")
    for (one, path, this), (other, same, that) in itertools.product(of_outputs, of_inputs):
        if this is not None and this == that:
            how = "too" if path == same else f"as {same}"
            read = f"{path} would take the place of what is read: {other} names it, {how}"
            raise OutputRefusedError(f"{one}: {read}")


def _same(path: Path) -> tuple[int, int] | str | None:
    """The identity of a path's file, equal for all its paths; none of what is no regular file."""
    if str(path) == STANDARD_OUTPUT or _OPEN_FILE.fullmatch(os.path.normpath(path)):
        return None
    try:
        found = path.stat()
    except (OSError, ValueError):
        # It is not there yet.
        return os.path.realpath(path)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def check(
    paths: Sequence[Path], bytes_needed: int, *, make: Path | None = None, packed: bool = False
) -> None:
    """Refuses now what could not be written later; makes the folder `make` if it is missing.

    Args:
        paths: The files.
        bytes_needed: The room for all of them.
        make: A folder that is made if it is missing.
        packed: True if the files are compressed as their names say.

    Raises:
        OutputRefusedError: names the file, and why it cannot be written.
    """
    for path in paths:
        _check_name(path, packed=packed)
    files = []
    try:
        destinations = [Destination.of(path) for path in paths]
    except OutputError as error:
        raise OutputRefusedError(str(error)) from None
    for destination in destinations:
        if destination.file is not None:
            files.append(destination.file)
        elif destination.descriptor is None and not os.access(destination.given, os.W_OK):
            raise OutputRefusedError(f"cannot write {destination.given}: Permission denied")
        elif destination.descriptor is not None and not _is_open(destination.descriptor):
            raise OutputRefusedError(f"cannot write {destination.given}: it is not open")
    for folder in dict.fromkeys(path.parent for path in files):
        made = folder == make and not folder.exists()
        try:
            if made:
                folder.mkdir(parents=True)
            _require_space(folder, bytes_needed)
            _probe(folder, bytes_needed)
        except OSError as error:
            if made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise OutputRefusedError(f"cannot write into {folder}: {_reason(error)}") from None


def _check_name(path: Path, *, packed: bool) -> None:
    """Refuses a name that says that a file is compressed as it will not be."""
    other = compressed.named_other(path)
    if other is not None and packed:
        allowed = f"{compressed.ALLOWED} are"
        raise OutputRefusedError(f"cannot write {path}: {other} is not written; {allowed}")
    if not packed and (other is not None or compressed.named(path)):
        why = f"it would not be compressed; the name must not end in {path.suffix}"
        raise OutputRefusedError(f"cannot write {path}: {why}")


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _require_space(folder: Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise OSError(
            errno.ENOSPC,
            f"not enough free space: {size_text(free)} free, {size_text(bytes_needed)} needed",
        )


def _probe(folder: Path, bytes_needed: int) -> None:
    """Takes the space for a moment: permissions, quotas and odd file systems show themselves."""
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), 0, bytes_needed)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
        file.write(b"\0")
        file.flush()


@contextlib.contextmanager
def growing(path: Path) -> Iterator[Path]:
    """Place where a file grows; at the end the path names it, unless something went wrong.

    Raises:
        OutputError: the path cannot be written.
    """
    destination = Destination.of(path)
    if destination.file is not None:
        place = destination.file.with_name(f".{destination.file.name}.{os.getpid()}")
    else:
        descriptor, name = tempfile.mkstemp(prefix="graven-")
        os.close(descriptor)
        place = Path(name)
    try:
        yield place
        with _writing(path):
            if destination.file is not None:
                place.replace(destination.file)
            else:
                with place.open("rb") as source, destination.open() as target:
                    shutil.copyfileobj(source, target)
    finally:
        place.unlink(missing_ok=True)


def write(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Writes all of a file: either the old content stands there or the new one.

    If `durable`, that holds after a power failure, too. What is not a regular file is written to.

    Raises:
        OutputError: names the file, and why it cannot be written; the old content stands.
    """
    destination = Destination.of(path)
    with _writing(path):
        if destination.file is not None:
            _replace(destination.file, content, durable=durable)
        else:
            with destination.open() as target:
                shutil.copyfileobj(io.BytesIO(content), target)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes a new folder with files, by their paths in it: all of it, or nothing.

    Raises:
        OutputError: names the folder, and why it cannot be written.
    """
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as partial:
            whole = Path(partial, folder.name)
            for path, content in files.items():
                target = whole / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            whole.rename(folder)


@contextlib.contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file that is written little by little: what stands there is the old content or all of it.

    Raises:
        OutputError: names the file, and why it cannot be written; the old content stands.
    """
    with growing(path) as place, _writing(path), place.open("wb") as file:
        yield file
        file.flush()
        os.fchmod(file.fileno(), _mode(path))
        os.fsync(file.fileno())
    if (file_there := Destination.of(path).file) is not None:
        _sync_folder(file_there.parent)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Names a file in what goes wrong as it is written, unless its reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {_reason(error)}") from None


def _replace(path: Path, content: bytes, *, durable: bool) -> None:
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), _mode(path))
            if durable:
                os.fsync(file.fileno())
        Path(temporary).replace(path)
        if durable:
            _sync_folder(path.parent)
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _mode(path: Path) -> int:
    """The permissions of a file that takes another's place, or of a new one."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
