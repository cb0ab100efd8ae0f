"""Files of results: checked before any simulation starts, and written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graven.errors import OutputError
from graven.records import Record, to_csv, to_json, to_parquet

BYTES_PER_RECORD = 64 << 10
"""Room to ask for before a run, for one record in all formats together; several times its size."""

BYTES_PER_REPORT = 8 << 20
"""Room to ask for before a run, for one report."""

FORMATS = ("json", "csv", "parquet")


def encode(records: Sequence[Record], form: str, *, full: bool) -> bytes:
    """Records in one of `FORMATS`; `full` adds the configuration of each."""
    if form == "json":
        return to_json(records, full=full).encode()
    if form == "csv":
        return to_csv(records, full=full).encode()
    return to_parquet(records, full=full)


@dataclass(frozen=True)
class Target:
    """A file to be written: `form` is one of `FORMATS`, or `html` for the report."""

    path: Path
    form: str


def targets(out: Path | None, report: Path | None) -> list[Target]:
    """The files that `--out` and `--report` ask for.

    Raises:
        OutputError: `out` is a file whose name does not say its format.
    """
    found: list[Target] = []
    if out is not None and (out.is_dir() or not out.suffix):
        found += [Target(out / f"results.{form}", form) for form in FORMATS]
        found.append(Target(out / "report.html", "html"))
    elif out is not None:
        form = out.suffix[1:].lower()
        if form not in FORMATS:
            allowed = ", ".join(f".{form}" for form in FORMATS)
            raise OutputError(
                f"--out: {out}: the name of a file must end in {allowed} "
                "(a name without an ending is a folder)"
            )
        found.append(Target(out, form))
    if report is not None:
        found = [target for target in found if target.form != "html"]
        found.append(Target(report, "html"))
    return found


def check(paths: Sequence[Path], bytes_needed: int, *, make: Path | None = None) -> None:
    """Refuses now what could not be written later; makes the folder `make` if it is missing.

    Raises:
        OutputError: names the file, and why it cannot be written.
    """
    for path in paths:
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
    for folder in dict.fromkeys(path.parent for path in paths):
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
            raise OutputError(f"cannot write into {folder}: {_reason(error)}") from None


def _require_space(folder: Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise OSError(
            errno.ENOSPC,
            f"not enough free space: {_size(free)} free, {_size(bytes_needed)} needed",
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


def partial(path: Path) -> Path:
    """Where a file grows, so that only a whole one ever bears its name."""
    return path.with_name(f".{path.name}.{os.getpid()}")


@contextlib.contextmanager
def growing(path: Path) -> Iterator[Path]:
    """Where a file grows; it bears its name when all has gone well, and is gone otherwise."""
    place = partial(path)
    try:
        yield place
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)


def write(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replaces a file as a whole: either the old content stands there or the new one.

    If `durable`, that holds after a power failure, too.

    Raises:
        OutputError: names the file, and why it cannot be written; the old content stands.
    """
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            if durable:
                os.fsync(file.fileno())
        Path(temporary).replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


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


def _size(count: int) -> str:
    return f"{count / (1 << 20):.1f} MB"
