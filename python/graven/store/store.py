"""A store: results in a folder, found by what was asked for."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from graven.basics import output
from graven.basics.errors import OutputError, StoreError
from graven.store import disk, segments
from graven.store.index import Index, file_of
from graven.store.segments import Place, Writer
from graven.store.stored import SCHEMA, DamagedRecord, NewerRecord, Request, StoredRecord

ABOUT = "store.json"
"""The file that says that a folder is a store, and of which schema."""

SEGMENTS = "segments"
"""The folder of a store that has its segments."""

STATES = "under-way"
"""The folder of a store for campaigns that continue where they were, one file for each."""

REFRESH_SECONDS = 1.0
"""Least time between two looks at a store for what other processes have added."""

Warn = Callable[[str], None]


def identity_of(folder: Path) -> str | None:
    """The identity of a store, which no other has; `None` if there is no store with one."""
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8")).get("id")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def unindexed_bytes(folder: Path) -> int:
    """The bytes that are read before the first answer: of all segments, or none with an index."""
    if file_of(folder).exists() or not (folder / SEGMENTS).is_dir():
        return 0
    return sum(segments.names(folder / SEGMENTS).values())


class Store:
    """Results in a folder, which is made when the first is kept.

    Several processes and machines may use it at once. All that it returns has been checked as it
    was read. What is damaged is reported once to `warn`, and is as if it were not there.
    """

    def __init__(self, folder: Path, warn: Warn | None = None, *, read_only: bool = False) -> None:
        """Finds what is there; if it is only to be read, the index is left as it is, too.

        Raises:
            StoreError: the folder is something else, or of a schema that is not known.
        """
        self.folder = folder
        self._segments = folder / SEGMENTS
        self._warn = warn or (lambda _: None)
        self._writer = Writer(self._segments)
        self._index = Index(self._segments, file_of(folder), read_only=read_only)
        self._own: dict[str, Place] = {}
        self._lock = threading.Lock()
        self._looked = 0.0
        self._is_there = False
        self._find()

    # ---- results ---------------------------------------------------------------------------

    def get(self, digest: str) -> str | None:
        """The engine's JSON of a result, if the store has it."""
        record = self.record(digest)
        return None if record is None else record.result

    def has(self, digest: str) -> bool:
        """Tells whether the index has a result, which is checked when it is read."""
        self._look()
        return bool(self._places_of(digest))

    def record(self, digest: str) -> StoredRecord | None:
        """The record of a result, if the store has it."""
        self._look()
        for again in (self.refresh, self._index.forget, None):
            try:
                return self._read(digest)
            except FileNotFoundError:
                # Segments have been put together in the meantime; or the index is broken.
                self._own.pop(digest, None)
                if again is not None:
                    again()
        return None

    def _read(self, digest: str) -> StoredRecord | None:
        for place in self._places_of(digest):
            try:
                found = StoredRecord.parse(segments.read(self._segments, place))
                if found.request.digest == digest:
                    return found
                why = "another one is there than was written"
            except FileNotFoundError:
                raise
            except OSError as error:
                reason = error.strerror or error
                raise StoreError(
                    f"cannot read {self._segments / place.segment}: {reason}"
                ) from None
            except (DamagedRecord, NewerRecord) as error:
                why = str(error)
            self._own.pop(digest, None)
            self._index.set_aside(place, why)
            self._report([(place, why)])
        return None

    def _places_of(self, digest: str) -> list[Place]:
        own = self._own.get(digest)
        if own is not None:
            return [own]
        return self._index.places_of(digest) if self._is_there else []

    def put(self, request: Request, result: str, host_s: float | None = None) -> StoredRecord:
        """Keeps a result: when this returns it would survive a power failure of the host.

        Raises:
            OutputError: it cannot be written.
            StoreError: the folder is not a store.
        """
        self.ensure()
        record = StoredRecord.now(request, result, host_s)
        self._own[request.digest] = self._writer.append(record)
        return record

    def missing(self, digests: Iterable[str]) -> int:
        """Number of these that the store has not."""
        return sum(self.get(digest) is None for digest in digests)

    def records(self) -> Iterator[StoredRecord]:
        """All records, one for each digest, as they stand in the segments."""
        self.refresh()
        if not self._is_there:
            return
        for place in self._index.places():
            with contextlib.suppress(OSError, DamagedRecord, NewerRecord):
                yield StoredRecord.parse(segments.read(self._segments, place))

    # ---- what is under way -----------------------------------------------------------------

    def state(self, request: Request) -> str | None:
        """The state of a campaign that was kept last."""
        path = self._state_file(request)
        try:
            line = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            record = StoredRecord.parse(line)
        except (DamagedRecord, NewerRecord) as error:
            self._warn(f"{path}: what was under way is damaged: {error}; it begins anew")
            return None
        return record.result if record.request.digest == request.digest else None

    def keep_state(self, request: Request, state: str) -> None:
        """Keeps the state of a campaign, in place of the last.

        Raises:
            OutputError: it cannot be written; the last one stands.
        """
        self.ensure()
        path = self._state_file(request)
        try:
            disk.make_folder(path.parent)
        except OSError as error:
            raise OutputError(f"cannot make {path.parent}: {error.strerror or error}") from None
        output.write(path, StoredRecord.now(request, state, None).line())

    def _state_file(self, request: Request) -> Path:
        return self.folder / STATES / f"{request.kind}-{request.digest}{segments.ENDING}"

    # ---- keeping up ------------------------------------------------------------------------

    def refresh(self) -> None:
        """Looks for what other processes have added."""
        with self._lock:
            self._looked = time.monotonic()
            self._is_there = self._is_there or self._find()
            if self._is_there:
                self._report(self._index.refresh())

    def _look(self) -> None:
        if time.monotonic() - self._looked > REFRESH_SECONDS:
            self.refresh()

    def _report(self, damaged: Iterable[tuple[Place, str]]) -> None:
        for place, why in damaged:
            self._warn(
                f"{self._segments / place.segment}: the record at byte {place.offset} is damaged: "
                f"{why}; it is set aside, and made again when it is needed"
            )

    @property
    def probe(self) -> Path:
        """A file that can be written if the first result can be kept."""
        folders = (self._segments, *self._segments.parents)
        return next(folder for folder in folders if folder.exists()) / ".probe"

    @property
    def index(self) -> Index:
        """The index, for queries."""
        return self._index

    @property
    def is_there(self) -> bool:
        """True if the folder has been made."""
        return self._is_there

    def close(self) -> None:
        """Ends this writer's segment, and closes the index."""
        self._writer.close()
        self._index.close()

    # ---- the folder ------------------------------------------------------------------------

    def ensure(self) -> None:
        """Makes the folder if it is not there.

        Raises:
            OutputError: it cannot be made.
        """
        if not self._is_there:
            self._make()

    def _find(self) -> bool:
        try:
            about = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            schema = about["schema"]
        except (FileNotFoundError, NotADirectoryError):
            self._is_there = self._segments.is_dir()
            return self._is_there
        except OSError as error:
            raise StoreError(
                f"cannot read {self.folder / ABOUT}: {error.strerror or error}"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.folder / ABOUT} is not what a store has there ({error}); if the folder is "
                "one, delete that file: it is made again"
            ) from None
        if not isinstance(schema, int) or schema > SCHEMA:
            raise StoreError(
                f"{self.folder} is a store of schema {schema}; this version knows {SCHEMA}: use a "
                "newer Graven, or another folder"
            )
        self._is_there = True
        return True

    def _make(self) -> None:
        about = {"what": "results of graven", "schema": SCHEMA, "id": uuid.uuid4().hex}
        try:
            disk.make_folder(self._segments)
            if not (self.folder / ABOUT).exists():
                output.write(self.folder / ABOUT, (json.dumps(about) + "\n").encode())
        except OSError as error:
            raise OutputError(
                f"cannot make the store {self.folder}: {error.strerror or error}"
            ) from None
        self._is_there = True
