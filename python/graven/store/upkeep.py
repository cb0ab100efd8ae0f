"""Upkeep of a store: checking all of it, cleaning it, merging others into it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graven.basics.errors import OutputError, StoreError
from graven.store import disk, segments
from graven.store.segments import ENDING, Place
from graven.store.store import SEGMENTS, Store
from graven.store.stored import DamagedRecord, NewerRecord, StoredRecord

TOGETHER = 256
"""Segments that are put together in one, at most; all of them are open at a time."""

GROWING = "."
"""Beginning of the name of a segment that is being put together; nothing in it counts yet."""

DAMAGED = "damaged"
"""The folder of a store where lines are put that are not what was written."""


@dataclass
class Findings:
    """Findings in the segments of a store.

    Attributes:
        segments: Number of segments.
        size_bytes: Bytes of all segments.
        records: Records that are whole, one for each digest.
        again: Records whose digest has another record before them.
        damaged: Lines that are not what was written, and how that shows.
        cut_off: Segments whose last line has no end: being written, or cut off by a failure.
        newer: Records of a schema that this version does not know.
        contradictions: Digests that have records with different results.
    """

    segments: int = 0
    size_bytes: int = 0
    records: int = 0
    again: int = 0
    damaged: list[tuple[Place, str]] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)
    newer: int = 0
    contradictions: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """True if nothing is damaged, and no results contradict each other."""
        return not self.damaged and not self.contradictions


Line = tuple[Place, bytes, StoredRecord | DamagedRecord | NewerRecord]


def lines_of(folder: Path, names: Iterable[str]) -> Iterator[Line]:
    """All lines of some segments of a folder, each with what is in it.

    Raises:
        StoreError: a segment cannot be read.
    """
    for name in names:
        try:
            for offset, line in segments.lines(folder / name):
                yield Place(name, offset, len(line)), line, _record_in(line)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"cannot read {folder / name}: {error.strerror or error}") from None


def _record_in(line: bytes) -> StoredRecord | DamagedRecord | NewerRecord:
    try:
        return StoredRecord.parse(line)
    except (DamagedRecord, NewerRecord) as error:
        return error


def verify(store: Store) -> Findings:
    """Reads all of a store, and checks all of it; the index is not asked.

    Raises:
        StoreError: a segment cannot be read.
    """
    folder = store.folder / SEGMENTS
    found = Findings()
    if not store.is_there:
        return found
    sizes = segments.names(folder)
    found.segments, found.size_bytes = len(sizes), sum(sizes.values())
    results: dict[str, int] = {}
    for place, line, record in lines_of(folder, sizes):
        if isinstance(record, NewerRecord):
            found.newer += 1
        elif isinstance(record, DamagedRecord):
            if line.endswith(b"\n"):
                found.damaged.append((place, str(record)))
            else:
                found.cut_off.append(place.segment)
        elif (known := results.get(record.request.digest)) is None:
            results[record.request.digest] = hash(record.result)
            found.records += 1
        else:
            found.again += 1
            if known != hash(record.result):
                found.contradictions.append(record.request.digest)
    return found


@dataclass
class Cleaned:
    """Result of cleaning.

    Attributes:
        before: Segments that were put together.
        kept: Records that are kept.
        dropped: Records that were asked to go, and those that were there more than once.
        set_aside: Damaged lines, which are in the folder `damaged` now.
        left_alone: Segments that a process is writing, or of which that is not known.
        left_behind: Files of a process that was killed as it put segments together: removed.
        bytes_before: Bytes of the segments before.
        bytes_after: Bytes of them now.
    """

    before: int = 0
    kept: int = 0
    dropped: int = 0
    set_aside: int = 0
    left_alone: int = 0
    left_behind: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def clean(store: Store, keep: Callable[[StoredRecord], bool] = lambda _: True) -> Cleaned:
    """Puts segments together that no process writes, without what is not to be kept.

    A new segment is whole and safe before old ones go: cut off at any time, nothing is lost.

    Raises:
        OutputError: something cannot be written; nothing is lost.
        StoreError: a segment cannot be read.
    """
    folder, done = store.folder / SEGMENTS, Cleaned()
    store.close()
    if not store.is_there:
        return done
    seen: set[str] = set()
    try:
        for names in _batches(list(segments.names(folder))):
            with _taken(folder, names) as taken:
                done.left_alone += len(names) - len(taken)
                _put_together(store.folder, taken, seen, keep, done)
        done.left_behind = _remove_left_behind(folder)
    except OSError as error:
        raise OutputError(f"cannot clean {store.folder}: {error.strerror or error}") from None
    done.kept = len(seen)
    store.refresh()
    return done


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[at : at + TOGETHER] for at in range(0, len(names), TOGETHER))


@contextlib.contextmanager
def _taken(folder: Path, names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Those of some segments that nobody writes, with their bytes; nobody begins to, meanwhile."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                descriptor = disk.take(folder / name)
                if descriptor is not None:
                    stack.callback(os.close, descriptor)
                    found[name] = os.fstat(descriptor).st_size
        yield found


def _put_together(
    root: Path,
    old: Mapping[str, int],
    seen: set[str],
    keep: Callable[[StoredRecord], bool],
    done: Cleaned,
) -> None:
    folder = root / SEGMENTS
    damaged: list[tuple[Place, bytes]] = []

    def kept() -> Iterator[bytes]:
        for place, line, record in lines_of(folder, old):
            if isinstance(record, DamagedRecord):
                damaged.append((place, line))
            elif isinstance(record, NewerRecord):
                yield line
            elif record.request.digest in seen or not keep(record):
                done.dropped += 1
            else:
                seen.add(record.request.digest)
                yield line

    done.bytes_after += _write_segment(folder, kept())
    _set_aside(root / DAMAGED, damaged)
    for name in old:
        disk.remove(folder / name)
    disk.synchronise_folder(folder)
    done.before += len(old)
    done.bytes_before += sum(old.values())
    done.set_aside += len(damaged)


def merge(store: Store, other: Store) -> tuple[int, int]:
    """Takes what another store has and this one has not; how many are new, and how many not.

    Raises:
        OutputError: something cannot be written; this store is as it was.
        StoreError: a segment cannot be read.
    """
    store.ensure()
    store.refresh()
    there = other.folder / SEGMENTS
    new: set[str] = set()
    known = 0

    def missing() -> Iterator[bytes]:
        nonlocal known
        for _, line, record in lines_of(there, segments.names(there)):
            if not isinstance(record, StoredRecord):
                continue
            digest = record.request.digest
            if digest in new or store.get(digest) is not None:
                known += 1
            else:
                new.add(digest)
                yield line

    try:
        _write_segment(store.folder / SEGMENTS, missing() if other.is_there else iter(()))
    except OSError as error:
        raise OutputError(f"cannot write into {store.folder}: {error.strerror or error}") from None
    store.refresh()
    return len(new), known


def _write_segment(folder: Path, lines: Iterable[bytes]) -> int:
    """Writes a segment, which bears its name once it is whole, if there are lines; its bytes."""
    descriptor, growing = _growing(folder)
    name, size = growing.name.removeprefix(GROWING), 0
    try:
        for line in lines:
            disk.append(descriptor, line)
            size += len(line)
        disk.synchronise(descriptor)
        if size:
            disk.replace(growing, folder / name)
            disk.synchronise_folder(folder)
    finally:
        os.close(descriptor)
        disk.remove(growing)
    return size


def _growing(folder: Path) -> tuple[int, Path]:
    """A new file for a segment that grows, which nobody takes for one that was left behind."""
    while True:
        path = folder / f"{GROWING}{segments.new_name()}"
        descriptor = disk.create(path)
        if disk.hold(descriptor):
            return descriptor, path
        os.close(descriptor)


def _remove_left_behind(folder: Path) -> int:
    """Removes segments that were growing when their process was killed; how many."""
    found = 0
    for path in sorted(folder.glob(f"{GROWING}*{ENDING}")):
        with contextlib.suppress(FileNotFoundError):
            descriptor = disk.take(path)
            if descriptor is not None:
                disk.remove(path)
                os.close(descriptor)
                found += 1
    return found


def _set_aside(folder: Path, damaged: Iterable[tuple[Place, bytes]]) -> None:
    for place, line in damaged:
        disk.make_folder(folder)
        path = folder / f"{place.segment.removesuffix(ENDING)}-{place.offset}"
        if path.exists():
            continue
        descriptor = disk.create(path)
        try:
            disk.append(descriptor, line)
            disk.synchronise(descriptor)
        finally:
            os.close(descriptor)
        disk.synchronise_folder(folder)
